"""Plain full-gradient methods, compiled: Condat–Vũ with diagonal steps, and FISTA on a smoothed penalty."""

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from benchmark_utils.problem import CURVATURE, largest_eigenvalue, loss_and_slopes, smoothness


@numba.njit(cache=True, nogil=True)
def _multiply(data, indices, indptr, x, out):
    for i in range(out.size):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * x[indices[p]]
        out[i] = total


@numba.njit(cache=True, nogil=True)
def _slopes(logistic, margins, target):
    for i in range(margins.size):
        if logistic:
            t = target[i] * margins[i]
            margins[i] = -target[i] / (1.0 + np.exp(t)) if t < 700 else 0.0
        else:
            margins[i] -= target[i]
        margins[i] /= target.size


class MeanLoss:
    """The gradient of the mean loss; sparse rows by columns and by rows in compiled code, dense ones by BLAS."""

    def __init__(self, X: Any, target: np.ndarray, loss: str) -> None:
        self.X, self.target, self.loss = X, target, loss
        self.sparse = sp.issparse(X)
        self.margins = np.empty(X.shape[0])
        if self.sparse:
            X = sp.csr_array(X)
            self.rows = (X.data, X.indices, X.indptr)
            T = sp.csr_array(X.T)
            self.columns = (T.data, T.indices, T.indptr)

    def gradient(self, x: np.ndarray, out: np.ndarray) -> None:
        """out ← ∇f(x)."""
        if self.sparse:
            _multiply(*self.rows, x, self.margins)
        else:
            np.dot(self.X, x, out=self.margins)
        _slopes(self.loss == "logistic", self.margins, self.target)
        if self.sparse:
            _multiply(*self.columns, self.margins, out)
        else:
            np.dot(self.X.T, self.margins, out=out)


@numba.njit(cache=True, nogil=True)
def _primal_dual_step(data, indices, indptr, tau, sigma, strength, gradient, penalty_gradient, x, w):
    """x⁺ = x − τ(∇f(x) + Aᵀw); w⁺ = clip(w + σA(2x⁺ − x)); penalty_gradient ← Aᵀw⁺."""
    ahead = np.empty_like(x)
    for j in range(x.size):
        new = x[j] - tau[j] * (gradient[j] + penalty_gradient[j])
        ahead[j] = 2.0 * new - x[j]
        x[j] = new
        penalty_gradient[j] = 0.0
    for e in range(w.size):
        image = 0.0
        for p in range(indptr[e], indptr[e + 1]):
            image += data[p] * ahead[indices[p]]
        w[e] = min(max(w[e] + sigma[e] * image, -strength), strength)
        for p in range(indptr[e], indptr[e + 1]):
            penalty_gradient[indices[p]] += data[p] * w[e]


class CondatVu:
    """Condat (2013), Vũ (2013), with the diagonal steps of Pock and Chambolle (2011).

    The curvature is bounded by a multiple M of its own diagonal; τ⁻¹ = M/2 + s Σ_e |A_ej| and σ = s / Σ_j |A_ej| meet
    the condition τ⁻¹ − AᵀσA ⪰ M/2 for every s > 0.
    """

    def __init__(self, X: Any, target: np.ndarray, loss: str, A: Any, strength: float, balance: float) -> None:
        n, d = X.shape
        self.loss, self.A, self.strength = MeanLoss(X, target, loss), sp.csr_array(A), strength
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.einsum("ij,ij->j", X, X)
        diagonal = CURVATURE[loss] / n * squares
        root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        top = largest_eigenvalue(lambda v: root * (X.T @ (X @ (root * v))) * CURVATURE[loss] / n, d)
        magnitude = abs(self.A)
        s = balance * top * float(diagonal.mean()) / float(magnitude.sum(axis=0).mean())
        self.tau = 1.0 / (0.5 * top * diagonal + s * np.asarray(magnitude.sum(axis=0)).ravel())
        self.sigma = s / np.maximum(np.asarray(magnitude.sum(axis=1)).ravel(), 1e-300)
        self.x, self.w = np.zeros(d), np.zeros(A.shape[0])
        self._gradient, self._penalty_gradient = np.zeros(d), np.zeros(d)

    def step(self) -> None:
        """One full gradient, one pair of updates."""
        self.loss.gradient(self.x, self._gradient)
        A = self.A
        _primal_dual_step(A.data, A.indices, A.indptr, self.tau, self.sigma, self.strength, self._gradient,
                          self._penalty_gradient, self.x, self.w)  # fmt: skip


def smoothed(A: Any, strength: float, width: float, x: np.ndarray) -> tuple[float, np.ndarray]:
    """λ Σ huber(Ax) with |·| rounded within ±width, and its gradient; at most λ·width/2 per row below λ‖Ax‖₁."""
    z = A @ x
    inside = np.abs(z) <= width
    value = np.where(inside, 0.5 * z * z / width, np.abs(z) - 0.5 * width)
    return strength * float(value.sum()), strength * (A.T @ np.clip(z / width, -1.0, 1.0))


def smoothed_objective(
    X: Any, target: np.ndarray, loss: str, A: Any, strength: float, width: float, x: np.ndarray
) -> tuple[float, np.ndarray]:
    """The whole smoothed objective and its gradient, for L-BFGS."""
    value, slopes = loss_and_slopes(loss, X @ x, target)
    penalty, penalty_gradient = smoothed(A, strength, width, x)
    return value + penalty, X.T @ slopes / X.shape[0] + penalty_gradient


class SmoothedFista:
    """Accelerated gradient (Nesterov 2005; Beck and Teboulle 2009) on the smoothed penalty, restarted when it turns."""

    def __init__(self, X: Any, target: np.ndarray, loss: str, A: Any, strength: float, width: float) -> None:
        self.loss, self.A, self.At = MeanLoss(X, target, loss), sp.csr_array(A), sp.csr_array(A.T)
        self.strength, self.width = strength, width
        d = X.shape[1]
        top = largest_eigenvalue(lambda v: A.T @ (A @ v), d)
        self.step_size = 1.0 / (smoothness(X, loss) + strength * top / width)
        self.x, self.ahead, self._gradient = np.zeros(d), np.zeros(d), np.zeros(d)
        self.momentum = 1.0

    def step(self) -> None:
        """One full gradient."""
        self.loss.gradient(self.ahead, self._gradient)
        penalty_gradient = self.At @ np.clip(self.A @ self.ahead / self.width, -1.0, 1.0)
        new = self.ahead - self.step_size * (self._gradient + self.strength * penalty_gradient)
        turned = (self.ahead - new) @ (new - self.x) > 0
        following = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.momentum**2))
        factor = 0.0 if turned else (self.momentum - 1.0) / following
        self.ahead = new + factor * (new - self.x)
        self.x, self.momentum = new, following
