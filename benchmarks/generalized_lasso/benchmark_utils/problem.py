"""The objective (1/n) Σ ℓ(aᵢ·x, bᵢ) + λ‖Ax‖₁, or with Σ_g ‖x_g‖₂ over groups, and properties of A that solvers need."""

import functools
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.special

NO_GROUPS = (True, "it has no norms of groups")
"""What a solver without them returns from ``skip``."""
CURVATURE = {"logistic": 0.25, "squared": 1.0}


class Groups(sp.csr_array):
    """The identity, whose consecutive rows belong together: the penalty is λ Σ_g ‖x_g‖₂ instead of λ‖Ax‖₁."""

    group_size = 1

    @classmethod
    def of(cls, d: int, group_size: int) -> "Groups":
        """Groups of `group_size` among d features."""
        A = cls(sp.eye_array(d, format="csr"))
        A.group_size = group_size
        return A


def penalty(A: Any, strength: float, x: np.ndarray) -> float:
    """λ‖Ax‖₁, or λ Σ_g ‖x_g‖₂."""
    if structure_of(A) == "groups":
        return strength * float(np.linalg.norm(x.reshape(-1, A.group_size), axis=1).sum())
    return strength * float(np.abs(A @ x).sum())


def loss_and_slopes(loss: str, margins: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean loss, and ℓ' at every margin."""
    if loss == "logistic":
        return float(np.logaddexp(0.0, -target * margins).mean()), -target * scipy.special.expit(-target * margins)
    return float(0.5 * np.mean((margins - target) ** 2)), margins - target


def objective(X: Any, target: np.ndarray, loss: str, A: Any, strength: float, x: np.ndarray) -> float:
    """What every solver minimises."""
    return loss_and_slopes(loss, X @ x, target)[0] + penalty(A, strength, x)


def gradient(X: Any, target: np.ndarray, loss: str, x: np.ndarray) -> np.ndarray:
    """Of the mean loss."""
    return X.T @ loss_and_slopes(loss, X @ x, target)[1] / X.shape[0]


def structure_of(A: Any) -> str:
    """ "groups", "identity", "chain" or "general"."""
    m, d = A.shape
    if isinstance(A, Groups):
        return "groups"
    if m == d and (sp.eye_array(d, format="csr") != A).nnz == 0:
        return "identity"
    if m == d - 1 and abs(A - sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(m, d), format="csr")).nnz == 0:
        return "chain"
    return "general"


def largest_eigenvalue(product: Any, d: int) -> float:
    """Of a symmetric positive operator of order d, rounded up slightly."""
    operator = sp.linalg.LinearOperator((d, d), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(d)
    return 1.01 * float(sp.linalg.eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])


def smoothness(X: Any, loss: str) -> float:
    """A bound of the curvature of the mean loss."""
    n, d = X.shape
    return CURVATURE[loss] * largest_eigenvalue(lambda v: X.T @ (X @ v) / n, d)


def gradient_seconds(X: Any, target: np.ndarray, loss: str, times: int = 10) -> float:
    """The unit of GPE: one full gradient, the faster of NumPy's or SciPy's and skadmm's."""
    from skadmm import Problem
    from skadmm.kernels.samples import mean_gradient

    x, out = np.zeros(X.shape[1]), np.empty(X.shape[1])
    samples = Problem(X, target, loss).samples()
    return min(_best_of(functools.partial(gradient, X, target, loss, x), times),
               _best_of(functools.partial(mean_gradient, samples, x, out), times))  # fmt: skip


def _best_of(function: Any, times: int) -> float:
    function()
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        spent.append(time.perf_counter() - began)
    return min(spent)
