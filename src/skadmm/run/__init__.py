"""What drives solvers: solve(), path() and compare(); recording, checkpoints, limits and results."""
