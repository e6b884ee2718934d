"""The smallest strength of ψ at which everything that ψ penalises is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import ArrayLike

from skadmm.kernels.compile import compiled, kernel
from skadmm.operators.line import GraphTrend, Line, as_line
from skadmm.problem.on_subspace import minimise
from skadmm.problem.problem import Problem
from skadmm.problem.smallest_strength import Demands, Dual, smallest_strength, smallest_strength_over_graph
from skadmm.problem.smoothing import minimise_by_smoothing
from skadmm.problem.structure import NullSpace, null_space
from skadmm.regularizers import L1, Box, ElasticNet, NonNegative, SquaredL2, Zero, with_strength
from skadmm.regularizers._base import conjugate, dual_norm, dual_norm_at, prox, subgradient, value, value_at

ROUNDING = 1e-13
"""The rounding error of gradients, relative to their size."""
LONG_STEP = 1e9
"""A proximal step that moves every coordinate which ψ penalises."""


_value = compiled(value)
_conjugate = compiled(conjugate)
_subgradient = compiled(subgradient)
_dual_norm = compiled(dual_norm)
_prox = compiled(prox)


@kernel
def _intervals(reg, lower, upper, penalised):
    """The subdifferential of each coordinate at zero, and whether the coordinate is penalised at all."""
    for j in range(lower.size):
        above, below = dual_norm_at(reg, j, 1.0), dual_norm_at(reg, j, -1.0)
        upper[j] = 1.0 / above if above > 0.0 else np.inf
        lower[j] = -1.0 / below if below > 0.0 else -np.inf
        level = value_at(reg, j, 0.0)
        penalised[j] = value_at(reg, j, 1.0) != level or value_at(reg, j, -1.0) != level


def alpha_max(problem: Problem, trend: Line | GraphTrend | None = None, *, x0: ArrayLike | None = None) -> float:
    """Compute the smallest strength of ψ at which the part of Ax that it penalises is zero at a solution.

    Rows of A that ψ does not penalise (weight zero, in no group) do not count: features that only they reach are free.
    Let N be the null space of the other rows, x₀ a minimiser of f + Ω on N, and K the subdifferential at zero of ψ with
    strength one (for a norm, the unit ball of its dual norm). The strength is the smallest s for which some w in sK has
    −∇f(x₀) − Aᵀw ∈ ∂Ω(x₀).

    Parameters
    ----------
    problem : Problem
        With B = −I and c = 0, on any backend. Its ψ must have a strength, whose value does not matter.
    trend : Line or GraphTrend, optional
        The structure of A, where it is known; evenly spaced differences are recognised without it.
    x0 : array or None
        A point from which the search for x₀ starts, by default zero. A good one has the best constant margin, where the
        loss at zero is very large: under a logarithmic link with targets in large units, or with large offsets.

    Returns
    -------
    float
        Exact for a separable ψ where the rows of A have one entry, or two that add up to zero (any graph, with or
        without the identity), where A is differences along a line, or where it has at most ``LARGEST_PROGRAM`` entries
        (a linear programme). Exact for any other norm in the package where A is the identity or a line, and for ψ = ℓ2
        on any A. Otherwise (overlapping groups, other large A, an Ω that is neither separable nor differentiable) an
        upper bound. It is an upper bound for a loss with kinks, too: at a kink, the subgradients of the samples are
        taken from the certificate of one minimiser.

    Raises
    ------
    ValueError
        Where no strength makes the penalised part exactly zero (as for ψ = squared ℓ2), or where A is too large and too
        general for its null space to be found.
    TypeError
        Where ψ has no strength.

    See Also
    --------
    skadmm.path : Begins at this strength.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, alpha_max, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> top = alpha_max(problem)
    >>> bool(np.isclose(top, np.abs(X.T @ y).max() / 50))
    True
    >>> solve(problem.replace(psi=L1(1.001 * top)), tol=1e-6).x
    array([0., 0., 0., 0.])
    """
    if problem.n_split == 0:
        raise ValueError("alpha_max needs a problem with a psi")
    if problem.constraint.B is not None or problem.constraint.c.any():
        raise ValueError("alpha_max takes problems with B = −I and c = 0")
    psi = with_strength(problem.psi, 1.0)
    dual, kept = _dual_of(psi, problem.n_split)
    A = problem.constraint.A
    if not kept.all():
        A, trend = sp.csr_array(A[kept]), None
    if A.shape[0] == 0:
        return 0.0
    seen = np.zeros(A.shape[1], bool)
    seen[A.indices] = True
    reached = np.flatnonzero(seen)
    narrow = A if seen.all() else sp.csr_array(A[:, reached])
    line = trend
    if not isinstance(line, Line):
        line = problem.constraint.line if narrow is problem.constraint.A else as_line(narrow)
    flat = _null_space(A, trend, line, reached)
    demands = _demands(problem, flat, None if x0 is None else np.asarray(x0, dtype=np.float64))
    if demands is None:
        return 0.0
    if isinstance(trend, GraphTrend) and demands.exact:
        strength = smallest_strength_over_graph(trend, demands.lower, dual)
    else:
        # Features that no row reaches are at their minimum, whatever w is.
        of_reached = Demands(demands.lower[reached], demands.upper[reached], demands.exact)
        basis = sp.csr_array(flat.basis[reached])
        strength = smallest_strength(narrow, of_reached, dual, line, basis)
    if not np.isfinite(strength):
        raise ValueError(f"alpha_max: no strength of psi={type(psi).__name__} makes Ax exactly zero: give the alphas")
    return strength


def _dual_of(psi: Any, m: int) -> tuple[Dual, np.ndarray]:
    """The set of multipliers of ψ on the rows that it penalises, and a mask of these rows."""
    kept = np.empty(m, bool)
    lower = upper = None
    if psi.separable:
        lower, upper = np.empty(m), np.empty(m)
        _intervals(psi, lower, upper, kept)
        never = kept & (lower == 0.0) & (upper == 0.0)
        lower, upper = lower[kept], upper[kept]
    else:
        moved = [np.empty(m), np.empty(m)]
        for sign, out in zip((1.0, -1.0), moved, strict=True):
            _prox(psi, np.full(m, sign), LONG_STEP, out)
        kept = (moved[0] != 1.0) | (moved[1] != -1.0)
        never = np.zeros(m, bool)
    if (psi.smooth and kept.any()) or never.any():
        row = "" if psi.smooth else f" on row {np.flatnonzero(never)[0]} of A"
        raise ValueError(
            f"alpha_max: psi={type(psi).__name__} is differentiable at zero{row}, so Ax shrinks with its strength but "
            "never becomes exactly zero, and there is no largest useful strength: give the alphas"
        )

    def norm(w: np.ndarray) -> float:
        whole = np.zeros(m)
        whole[kept] = w
        return float(_dual_norm(psi, whole))

    return Dual(norm, lower, upper, euclidean=psi.name == "l2"), kept


def _null_space(A: sp.csr_array, trend: Line | GraphTrend | None, line: Line | None, reached: np.ndarray) -> NullSpace:
    """A basis of {x : Ax = 0}; features that no row reaches are free."""
    d = A.shape[1]
    if line is not None:
        inner = line.null_space()
        missing = np.ones(d, bool)
        missing[reached] = False
        free = np.flatnonzero(missing)
        rows = np.concatenate([np.repeat(reached, inner.shape[1]), free])
        columns = np.concatenate(
            [np.tile(np.arange(inner.shape[1]), reached.size), inner.shape[1] + np.arange(free.size)]
        )
        entries = np.concatenate([inner.ravel(), np.ones(free.size)])
        basis = sp.csr_array((entries, (rows, columns)), shape=(d, inner.shape[1] + free.size))
        return NullSpace(basis, line.order == 0)
    found = null_space(trend.G if isinstance(trend, GraphTrend) else A)  # all powers of G have its null space
    if found is None:
        raise ValueError(f"alpha_max: A is too large and general for its null space ({d} features): give the alphas")
    return found


class _Separable(NamedTuple):
    """Ω(x) = Σ l1_j |x_j| + ½ ridge_j x_j², lower ≤ x ≤ upper."""

    l1: np.ndarray
    ridge: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def _separable(omega: Any, d: int) -> _Separable | None:
    """Ω in this form; None where it has another."""
    l1, ridge, lower, upper = np.zeros(d), np.zeros(d), np.full(d, -np.inf), np.full(d, np.inf)
    if isinstance(omega, (L1, ElasticNet)):
        ratio = omega.l1_ratio if isinstance(omega, ElasticNet) else 1.0
        l1[:] = omega.strength * ratio * (omega.weights if omega.weights.size else 1.0)
        ridge[:] = omega.strength * (1.0 - ratio)
    elif isinstance(omega, SquaredL2):
        ridge[:] = omega.strength * (omega.weights if omega.weights.size else 1.0)
    elif isinstance(omega, NonNegative):
        lower[:] = 0.0
    elif isinstance(omega, Box):
        lower, upper = omega.lower, omega.upper
    elif not isinstance(omega, Zero):
        return None
    return _Separable(l1, ridge, lower, upper)


def _on_null_space(problem: Problem, flat: NullSpace, start: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """∇f at the minimiser x₀ of f + Ω on the null space, and bounds of ∂Ω(x₀); one of its elements for a general Ω."""
    omega, d = problem.omega, problem.n_features
    parts = _separable(omega, d)
    if parts is None:
        if not problem.loss.smooth:
            raise ValueError(
                f"alpha_max: loss={problem.loss.name} has kinks, and omega={type(omega).__name__} is not separable: "
                "give the alphas"
            )
        if flat.basis.shape[1] and not omega.smooth:
            raise ValueError(
                f"alpha_max: omega={type(omega).__name__} is neither separable nor differentiable, and psi leaves some "
                "features free: give the alphas"
            )
        x = minimise(problem, flat, smooth=_smooth(omega), start=start) if flat.basis.shape[1] else np.zeros(d)
        element = np.zeros(d)
        if omega.smooth or _conjugate(omega, element) > -_value(omega, x):  # else 0 is an element itself
            _subgradient(omega, x, element)
        return problem.gradient(x), element, element
    gradient = None
    if problem.loss.smooth:
        x = minimise(problem, flat, parts.l1, parts.ridge, parts.lower, parts.upper, start=start)
    else:
        x, gradient = minimise_by_smoothing(
            problem,
            lambda smooth, start: minimise(smooth, flat, parts.l1, parts.ridge, parts.lower, parts.upper, start=start),
        )
    if not flat.disjoint and parts.l1.any():  # zeros have rounding errors
        x = np.where(np.abs(x) <= 1e-8 * np.abs(x).max(initial=0.0), 0.0, x)
    base = parts.ridge * x
    lower = base + np.where(x > 0, parts.l1, -parts.l1)
    upper = base + np.where(x < 0, -parts.l1, parts.l1)
    size = 1e-10 * np.maximum(1.0, np.abs(x))
    lower[x <= parts.lower + size] = -np.inf
    upper[x >= parts.upper - size] = np.inf
    return problem.gradient(x) if gradient is None else gradient, lower, upper


def _smooth(omega: Any) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The value and the gradient of a differentiable Ω, as a function."""

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        slope = np.empty(x.size)
        _subgradient(omega, x, slope)
        return float(_value(omega, x)), slope

    return evaluate


def _demands(problem: Problem, flat: NullSpace, start: np.ndarray | None) -> Demands | None:
    """The bounds between which Aᵀw must lie; None where w = 0 satisfies them."""
    gradient, lower, upper = _on_null_space(problem, flat, start)
    low, high = -gradient - upper, -gradient - lower
    noise = ROUNDING * max(float(np.abs(gradient).max(initial=0.0)), problem.scales().gradient)
    exact = bool(np.all(low == high))
    basis = flat.basis
    if exact and basis.shape[1]:  # what is left of the gradient on the null space is rounding
        gram = sp.csc_array(basis.T @ basis)
        low = high = low - basis @ scipy.sparse.linalg.splu(gram).solve(basis.T @ low)
    elif not exact:
        low, high = low - noise, high + noise
    if np.all((low <= noise) & (high >= -noise)):
        return None
    return Demands(low, high, exact)
