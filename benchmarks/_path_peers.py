"""Paths of other packages for ``paths.py``: each takes a task and returns a function of its own tolerance.

The function solves for all strengths, each started from the one before where the package can, and returns an array of
coefficients with a row per strength. No intercept; the mean loss and group weights of one, as in ``skadmm.path``.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Solve = Callable[[float], np.ndarray]


class Task(NamedTuple):
    """A path: data, loss, the size of all groups (1: plain ℓ1), and the strengths in decreasing order."""

    X: Any
    target: np.ndarray
    loss: str
    group_size: int
    strengths: np.ndarray

    @property
    def columns(self) -> Any:
        """X in the layout that coordinate descent reads."""
        return sp.csc_matrix(self.X) if sp.issparse(self.X) else np.asfortranarray(self.X)


def scikit_learn(task: Task) -> Solve:
    """``lasso_path``: squared loss, plain ℓ1."""
    from sklearn.linear_model import lasso_path

    columns = task.columns
    return lambda tol: lasso_path(columns, task.target, alphas=task.strengths, tol=tol, max_iter=100_000)[1].T


def celer(task: Task) -> Solve:
    """``celer_path``: plain ℓ1."""
    from celer import celer_path

    columns, target = task.columns, task.target
    kind = "lasso" if task.loss == "squared" else "logreg"
    return lambda tol: celer_path(columns, target, kind, alphas=task.strengths, tol=tol)[1].T


def skglm(task: Task) -> Solve:
    """An estimator of skglm at each strength, from its last coefficients; its tolerance is a share of the strength."""
    import skglm as package

    if task.group_size > 1:
        model = package.GroupLasso(groups=task.group_size, fit_intercept=False, warm_start=True)
    elif task.loss == "squared":
        model = package.Lasso(fit_intercept=False, warm_start=True)
    else:
        model = package.SparseLogisticRegression(fit_intercept=False, warm_start=True)
    columns = task.columns

    def solve(tol: float) -> np.ndarray:
        found = []
        model.__dict__.pop("coef_", None)
        for strength in task.strengths:
            model.set_params(alpha=strength, tol=tol * strength).fit(columns, task.target)
            found.append(np.ravel(model.coef_).copy())
        return np.array(found)

    return solve


def adelie(task: Task) -> Solve:
    """``grpnet``."""
    import adelie as package

    starts = np.arange(0, task.X.shape[1], task.group_size)
    matrix = package.matrix.sparse(task.columns) if sp.issparse(task.X) else task.columns
    model = (
        package.glm.gaussian(task.target) if task.loss == "squared" else package.glm.binomial(1.0 * (task.target > 0))
    )

    def solve(tol: float) -> np.ndarray:
        state = package.grpnet(
            matrix, model, groups=starts, penalty=np.ones(starts.size), lmda_path=task.strengths, intercept=False,
            progress_bar=False, early_exit=False, tol=tol, irls_tol=tol,
        )  # fmt: skip
        return state.betas.toarray()

    return solve


PEERS: dict[str, tuple[str, Callable[[Task], bool], Callable[[Task], Solve]]] = {
    "scikit-learn": ("sklearn", lambda task: task.group_size == 1 and task.loss == "squared", scikit_learn),
    "celer": ("celer", lambda task: task.group_size == 1, celer),
    "skglm": ("skglm", lambda task: task.group_size == 1 or task.loss == "squared", skglm),
    "adelie": ("adelie", lambda task: True, adelie),
}
"""The module that each needs, which tasks it takes, and how it solves them."""


def peers_for(task: Task) -> dict[str, Solve]:
    """The installed packages that take a task."""
    return {
        name: solve(task)
        for name, (module, takes, solve) in PEERS.items()
        if takes(task) and importlib.util.find_spec(module) is not None
    }
