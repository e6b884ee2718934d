"""What the data sets and solvers of this benchmark share. Nothing here imports benchopt."""
