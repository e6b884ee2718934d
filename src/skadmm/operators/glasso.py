"""The graphical lasso of one block."""

import warnings

import numpy as np
from scipy import linalg


def sparse_precision(S: np.ndarray, alpha: float) -> tuple[np.ndarray, bool]:
    """argmin over Θ ≻ 0 of tr(SΘ) − log det Θ + alpha Σ_{i≠j} |Θ_ij|, and whether it converged.

    Coordinate descent first, for it is fastest; where S is close to singular it can break down, and ADMM, which
    needs no inverse of S, takes over.
    """
    precision = _by_coordinate_descent(S, alpha)
    return (precision, True) if precision is not None else _by_admm(S, alpha)


def _by_coordinate_descent(S: np.ndarray, alpha: float) -> np.ndarray | None:
    from sklearn.covariance import graphical_lasso

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # The solver stops on a gap that has a sign and may pass through 0 early, so optimality decides.
        warnings.simplefilter("ignore")
        for tol in (1e-6, 1e-8):
            try:
                _, precision = graphical_lasso(S, alpha, tol=tol * len(S), enet_tol=1e-8)
                if optimality_violation(S, precision, alpha) <= 1e-2 * alpha:
                    return precision
            except (FloatingPointError, linalg.LinAlgError, ValueError):
                return None
    return None


def optimality_violation(S: np.ndarray, precision: np.ndarray, alpha: float) -> float:
    """How far 0 is from S − Θ⁻¹ + alpha ∂‖Θ‖_{1,off}, in the largest entry."""
    W = linalg.inv(precision)
    bound = np.full_like(S, alpha)
    np.fill_diagonal(bound, 0.0)
    R = W - S
    on_support = np.abs(R - bound * np.sign(precision))[precision != 0].max()
    return float(max(on_support, (np.abs(R) - bound).max()))


def _by_admm(S: np.ndarray, alpha: float, tol: float = 1e-5, max_iter: int = 300) -> tuple[np.ndarray, bool]:
    """Over-relaxed ADMM on Θ = Z with balanced residuals (Boyd et al. 2011, section 6.5)."""
    rho, relax = 1.0, 1.6
    Z = np.diag(1 / np.diag(S))
    dual = np.zeros_like(S)
    for iteration in range(max_iter):
        eigenvalues, Q = linalg.eigh(rho * (Z - dual) - S, driver="evd")
        theta = (Q * ((eigenvalues + np.sqrt(eigenvalues**2 + 4 * rho)) / (2 * rho))) @ Q.T
        V = relax * theta + (1 - relax) * Z + dual
        before, Z = Z, V - np.clip(V, -alpha / rho, alpha / rho)
        np.fill_diagonal(Z, np.diag(V))
        dual = V - Z
        primal_residual = linalg.norm(theta - Z) / linalg.norm(Z)
        dual_residual = linalg.norm(Z - before) / max(linalg.norm(dual), np.finfo(float).tiny)
        if max(primal_residual, dual_residual) < tol:
            return (Z + Z.T) / 2, True
        if iteration % 5 == 4 and iteration < max_iter // 2:
            ratio = np.clip(np.sqrt(primal_residual / max(dual_residual, 1e-12)), 0.2, 5.0)
            rho, dual = rho * ratio, dual / ratio
    return (Z + Z.T) / 2, False
