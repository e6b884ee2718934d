"""A search that is killed: a program that fits a CV model, and what its result is compared by.

``python searches.py STORAGE CHECKPOINT OUT [SCHEDULER]`` fits it, with a checkpoint after every strength.
"""

import sys
from pathlib import Path

import numpy as np

from skadmm.estimators import ESTIMATORS, _checkpoint

N, D, BLOCK = 600, 8, 150
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, D))
Y = X @ np.repeat([1.0, 0.0, -1.0, 0.0], 2) + RNG.standard_normal(N)
FOUND = ("alphas_", "cv_losses_", "coefs_path_", "coef_", "intercept_")


def model_of(checkpoint=None, storage="memory"):
    size = {"alphas": 4, "cv": 3} if storage == "dask" else {"alphas": 10, "cv": 4}
    options = {"loss": "huber", "eps": 0.01, "tol": 1e-8, "checkpoint": checkpoint}
    return ESTIMATORS["FusedLassoRegressorCV"](**size, **options)


def table_of(storage, folder):
    """The samples in some storage; `folder` is where files go."""
    if storage == "memory":
        return X, Y
    if storage == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(BLOCK, D)), da.from_array(Y, chunks=BLOCK)
    if not (folder / "rows").exists():
        from skadmm.backends.writer import write_blocks

        parts = [slice(start, start + BLOCK) for start in range(0, N, BLOCK)]
        write_blocks(folder / "rows", [(X[part], Y[part]) for part in parts], ones=True)
    return folder / "rows", None


def found_by(model):
    return {name: np.asarray(getattr(model, name)) for name in FOUND}


def main(storage, checkpoint, out, scheduler=None):
    _checkpoint.SECONDS = 0.0
    if scheduler is not None:
        from distributed import Client

        Client(scheduler)
    np.savez(out, **found_by(model_of(checkpoint, storage).fit(*table_of(storage, Path(out).parent))))


if __name__ == "__main__":
    main(*sys.argv[1:])
