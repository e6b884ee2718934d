"""The optimality residual: how far a point and its multiplier are from the KKT conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from skadmm.problem.constraint import Constraint

GRADIENT_FLOOR = 1e-4
"""Residuals of gradients are measured against at least this share of ‖∇f(0)‖, which rounding can reach."""
ROUNDING_FLOOR = 1e-4
"""Feasibility is measured relative to at least this share of ‖|A||x|‖: where Ax vanishes, the rest is rounding."""
WITHOUT_Y = 1e-6
"""The same share where y does not follow from x, so that infeasibility is an error of x itself."""
CANCELLATION = 1e-8
"""Stationarity is measured relative to at least this share of ‖β‖ times the root mean square norm of a row of A: where
Aᵀβ vanishes, the rest is rounding."""
ZERO_SOLUTION = 1e-6
"""Where the solution may be zero: against at least this share of what A makes of a gradient step from zero."""
OBJECTIVE_FLOOR = 1e-3
"""What infeasibility is worth is measured against at least this share of the scale of the loss, which is that at zero,
or at the best constant margin where the loss at zero is much larger: see :meth:`skadmm.Problem.scales`."""


class KKT(NamedTuple):
    """The residual of the optimality conditions: its three parts, and the largest of them relative to its scale.

    Parameters
    ----------
    stationarity : float
        ‖x − prox_Ω(x − ∇f(x) − Aᵀβ)‖ with β = ρ·dual.
    feasibility : float
        ‖Ax + By − c‖.
    split : float
        ‖y − prox_ψ(y − Bᵀβ)‖.
    relative : float
        The largest of the three, each relative to its scale; ``solve(tol=...)`` compares it with `tol` where there is
        no duality gap.

    See Also
    --------
    skadmm.Result : Has the residual of the solution in ``kkt``.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> solve(problem, tol=1e-6).kkt.relative < 1e-5
    True
    """

    stationarity: float
    feasibility: float
    split: float
    relative: float


class Scales(NamedTuple):
    """What losses and gradients are measured against."""

    loss: float
    gradient: float


class Penalised(Protocol):
    """What the residual asks of a problem."""

    @property
    def constraint(self) -> Constraint: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_constraints(self) -> int: ...
    @property
    def gradient_scale(self) -> float: ...
    @property
    def loss_at_zero(self) -> float: ...
    @property
    def L_mean(self) -> float: ...
    def scales(self, objective: float | None = None) -> Scales: ...
    def prox_omega(self, v: np.ndarray, step: float = 1.0) -> np.ndarray: ...
    def prox_psi(self, v: np.ndarray, step: float = 1.0) -> np.ndarray: ...
    def omega_value(self, x: np.ndarray) -> float: ...
    def psi_value(self, y: np.ndarray) -> float: ...
    def y_of_x(self, x: np.ndarray) -> np.ndarray | None: ...
    def least_decrease(self, gradient: np.ndarray) -> float: ...


@np.errstate(over="ignore", invalid="ignore")  # far from a solution a residual may be infinite
def kkt_residual(
    problem: Penalised,
    x: np.ndarray,
    y: np.ndarray,
    multiplier: np.ndarray,
    gradient: np.ndarray,
    loss: float | None = None,
) -> KKT:
    """How far (x, y, β) is from optimal, β = ρ·dual the unscaled multiplier and `gradient` that of the loss at x.

    Relative means: stationarity against the larger of ‖∇f(x)‖ and ‖Aᵀβ‖, the split against ‖Bᵀβ‖, both not below 1e-4
    ‖∇f(0)‖ (or ‖∇f(0)‖ itself where there is no constraint), stationarity not below 1e-8 ‖β‖ times the size of a row of
    A; feasibility against the largest of ‖Ax‖, ‖By‖ and ‖c‖, but not below 1e-4 ‖|A||x|‖ (1e-6 where y does not follow
    from x, and there the rows that fold Ω count apart), nor, where the solution is zero, below a millionth of what A
    makes of a gradient step from zero. With the mean loss at x the residual is also no less than what its parts are
    worth, against the objective, but not below 1e-3 of the scale of the loss: |β·(Ax + By − c)| and
    |ψ(y(x)) − ψ(y)| for feasibility, and for the other two what :func:`_excess` says. These numbers do not change with
    the units of the columns, as norms of gradients do. Where nothing but the loss is minimised, the residual is no less
    than what the loss can still fall by, against the same: along directions in which the rows hardly differ the
    gradient is small far from the optimum, too.
    """
    constraint = problem.constraint
    At_beta, Bt_beta = constraint.At(multiplier), constraint.Bt(multiplier)
    residual = constraint.residual(x, y)
    off_x = x - problem.prox_omega(x - gradient - At_beta)
    off_y = y - problem.prox_psi(y - Bt_beta) if y.size else y
    stationarity, split = float(np.linalg.norm(off_x)), float(np.linalg.norm(off_y))
    floor = (GRADIENT_FLOOR if problem.n_constraints else 1.0) * problem.scales(loss).gradient
    row_size = np.sqrt(constraint.sum_of_squares / max(1, problem.n_constraints))
    rounding = CANCELLATION * float(row_size * np.linalg.norm(multiplier))
    relative = max(
        _against(stationarity, gradient, At_beta, least=max(floor, rounding)),
        _relative_feasibility(problem, x, y, residual),
        _against(split, Bt_beta, least=floor),
    )
    if loss is not None and y.size:
        priced = abs(float(multiplier @ residual))
        priced += _excess(problem.omega_value, x, off_x, gradient + At_beta)
        priced += _excess(problem.psi_value, y, off_y, Bt_beta)
        relative = max(relative, _worth(problem, x, y, priced, loss))
    if problem.n_constraints == 0:
        relative = max(relative, _left(problem, gradient, problem.scales().loss if loss is None else loss))
    return KKT(stationarity, float(np.linalg.norm(residual)), split, relative)


def _against(part: float, *vectors: np.ndarray, least: float = 0.0) -> float:
    scale = max(least, *(float(np.linalg.norm(v)) for v in vectors))
    return part / scale if scale > 0 else np.inf if part > 0 else 0.0


def _relative_feasibility(problem: Penalised, x: np.ndarray, y: np.ndarray, residual: np.ndarray) -> float:
    """The relative infeasibility of the given rows and of those that fold Ω, each relative to its own scale where y
    does not follow from x."""
    constraint = problem.constraint
    terms = abs(constraint.A) @ np.abs(x)
    sides = constraint.A @ x, constraint.By(y), constraint.c
    if constraint.B is None or constraint.has_y_of_x:
        return _feasibility(problem, residual, sides, ROUNDING_FLOOR * float(np.linalg.norm(terms)))
    first = constraint.n_constraints - constraint.folded
    return max(
        _feasibility(problem, residual[rows], [v[rows] for v in sides], WITHOUT_Y * float(np.linalg.norm(terms[rows])))
        for rows in (slice(first), slice(first, None))
    )


def _feasibility(problem: Penalised, residual: np.ndarray, sides: Sequence[np.ndarray], rounding: float) -> float:
    feasibility = float(np.linalg.norm(residual))
    relative = _against(feasibility, *sides, least=rounding)
    if relative > 0.1:  # x and y of the size of what separates them: the solution may be zero
        least = max(rounding, ZERO_SOLUTION * _typical_split(problem))
        relative = _against(feasibility, *sides, least=least)
    return relative


def _typical_split(problem: Penalised) -> float:
    """The size of Ax after a gradient step from zero, were A to treat all directions alike."""
    step = problem.gradient_scale / problem.L_mean if problem.L_mean > 0 else 1.0
    return step * float(np.sqrt(problem.constraint.sum_of_squares / problem.n_features))


def _left(problem: Penalised, gradient: np.ndarray, loss: float) -> float:
    """What the loss alone can still fall by, relative to it."""
    scale = _objective_scale(problem, loss)
    left = problem.least_decrease(gradient) / scale if scale > 0.0 else 0.0
    return left if np.isfinite(left) else 0.0


def _excess(penalty: Callable[[np.ndarray], float], v: np.ndarray, off: np.ndarray, slope: np.ndarray) -> float:
    """How much `off` = v − prox(v − slope) adds to the objective, where the optimum v* is no farther away than zero is.

    With p = v − off, `off` − `slope` is a subgradient of the penalty at p, so the objective is above its optimum by no
    more than off·(v − v*), for which the norm of the products off_j v_j stands here, and the penalty's distance from
    its tangent at p.
    """
    nearest = v - off
    beyond = penalty(v) - penalty(nearest) - float((off - slope) @ off)
    return float(np.linalg.norm(off * v)) + (abs(beyond) if np.isfinite(beyond) else 0.0)


def _worth(problem: Penalised, x: np.ndarray, y: np.ndarray, priced: float, loss: float) -> float:
    """What the residuals add to the objective, `priced` and what y(x) changes, relative to it."""
    psi, exact = problem.psi_value(y), problem.y_of_x(x)
    change = 0.0 if exact is None else problem.psi_value(exact) - psi
    scale = _objective_scale(problem, loss + problem.omega_value(x) + psi)
    worth = (priced + abs(change)) / scale if scale > 0.0 else 0.0
    return worth if np.isfinite(worth) else 0.0


def _objective_scale(problem: Penalised, objective: float) -> float:
    """What differences of objectives are measured against. Where the loss at zero is zero, that at the very small x of
    ``gradient_scale`` takes its place."""
    largest = problem.scales(objective).loss
    if largest == 0.0 and problem.L_mean > 0.0:
        largest = 0.5 * problem.gradient_scale**2 / problem.L_mean
    return max(abs(objective), OBJECTIVE_FLOOR * largest)
