"""The second-order solvers, which certify their solutions."""
