"""What the theorems state: the O(1/T) bounds of the stochastic average methods.

For every multiplier α, the T steps of Algorithm 1 satisfy, in expectation over uniformly drawn samples,

    Φ(x̄_T, ȳ_T) − Φ(x*, y*) + ρ αᵀ(Ax̄_T + Bȳ_T − c)
        ≤ (1/2T) { ‖x* − x₀‖²_Hx + nL‖x* − x₀‖² + ‖y* − y₀‖²_Hy + ρ‖α − α₀‖² },

with ‖v‖²_H = vᵀHv, Hx = L_A I − ρAᵀA (absent where the penalty is kept whole) and Hy = ρBᵀB. The samples enter the
left side through x alone, so α may be chosen after the run. With α = (γ/ρ) r/‖r‖ for r = Ax̄_T + Bȳ_T − c the last
term on the left becomes γ‖r‖, and on the right

    ρ‖α − α₀‖² ≤ ρ(γ/ρ + ‖α₀‖)² ≤ 2ρ(γ²/ρ² + ‖α₀‖²).

The theorems use the last form, with its factor 2, as the paper does. The corollary is the case γ = L̃√L_B, because
ψ(y(x̄)) − ψ(ȳ) ≤ L̃‖B⁻¹r‖ ≤ L̃√L_B ‖r‖. The paper prints ρ(γ²/ρ² + ‖α₀‖²) there, without the factor; what the
argument gives is ρ(γ/ρ + ‖α₀‖)², the middle form, which is the printed one when α₀ = 0.

The term nL comes from the mean S_t of ‖x* − x_τᵢ‖². Step t adds L/2 (S_t − ‖x* − x_{t+1}‖²) to the right side, and
uniform sampling makes E S_{t+1} = ‖x* − x_{t+1}‖²/n + (1 − 1/n) S_t, so the sum telescopes to nL/2 (S_0 − E S_T). With
fixed blocks the same holds with the number of blocks in place of n; one block of all samples is the batch method.

All of this is for a table of gradients at iterates, filled at x₀ (``table="x0"``). In a table of zeros the term of a
sample that has not been seen is no surrogate of its loss. The argument holds from the step at which the last sample has
been seen, with the state of that step as the start, S_0 the mean over its points; from the first step on it is open.

References
----------
Zhong, L. W. and Kwok, J. T. (2013). Fast stochastic alternating direction method of multipliers. Theorems 1 and 2,
Corollary 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skadmm import _checks
from skadmm.backends import tasks
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, Zero
from skadmm.solvers import ALGORITHMS

METHODS = ("sa-admm", "sa-iu-admm", "batch-admm", "batch-iu-admm")
"""The methods the theorems are about; a batch method is its stochastic one with a single block."""

Solution = tuple[Any, Any]
"""An optimal pair (x*, y*)."""


class Constants(NamedTuple):
    """The four terms in the braces of a bound, which is their sum over 2T.

    Parameters
    ----------
    linearised : float
        ‖x* − x₀‖²_Hx, the cost of linearising the penalty; 0 where it is kept whole.
    table : float
        The term nL‖x* − x₀‖², the cost of gradients that are up to a pass old.
    split : float
        ‖y* − y₀‖²_Hy.
    multiplier : float
        What bounds ρ‖α − α₀‖².

    See Also
    --------
    skadmm.paper.theory.constants : Computes them.

    Examples
    --------
    >>> from skadmm.paper.theory import Constants
    >>> Constants(1.0, 2.0, 3.0, 4.0).total
    10.0
    """

    linearised: float
    table: float
    split: float
    multiplier: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.linearised + self.table + self.split + self.multiplier


def theorem1(problem: Problem, solution: Solution, *, T: Any, rho: float, gamma: float, **start: Any) -> Any:
    """Compute the bound of Theorem 1, for the linearised updates uzawa and our_up_x2: ``sa-iu-admm``.

    E[Φ(x̄_T, ȳ_T) − Φ(x*, y*) + γ‖Ax̄_T + Bȳ_T − c‖]
    ≤ (1/2T) {‖x* − x₀‖²_Hx + nL‖x* − x₀‖² + ‖y* − y₀‖²_Hy + 2ρ(γ²/ρ² + ‖α₀‖²)}.

    Parameters
    ----------
    problem : Problem
        The problem; see :func:`bound`.
    solution : (x*, y*)
        An optimal pair.
    T : int or array of int
        Steps.
    rho : float
        The penalty parameter ρ.
    gamma : float
        The weight γ of the feasibility violation.
    **start
        The arguments `step`, `batch_size`, `x0`, `y0` and `dual0` of :func:`bound`.

    Returns
    -------
    float or array
        The right-hand side, for each T.

    See Also
    --------
    skadmm.paper.theory.bound : Chooses the theorem by the method.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import theorem1
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> bounds = theorem1(problem, solution, T=[100, 200], rho=0.01, gamma=1.0)
    >>> bool(np.isclose(bounds[0], 2 * bounds[1]))
    True
    """
    return bound(problem, solution, method="sa-iu-admm", T=T, rho=rho, gamma=_given(gamma), **start)


def theorem2(problem: Problem, solution: Solution, *, T: Any, rho: float, gamma: float, **start: Any) -> Any:
    """Compute the bound of Theorem 2, for the update our_upd_x, which keeps the penalty whole: ``sa-admm``.

    E[Φ(x̄_T, ȳ_T) − Φ(x*, y*) + γ‖Ax̄_T + Bȳ_T − c‖]
    ≤ (1/2T) {nL‖x* − x₀‖² + ‖y* − y₀‖²_Hy + 2ρ(γ²/ρ² + ‖α₀‖²)}.

    Parameters
    ----------
    problem : Problem
        The problem; see :func:`bound`.
    solution : (x*, y*)
        An optimal pair.
    T : int or array of int
        Steps.
    rho : float
        The penalty parameter ρ.
    gamma : float
        The weight γ of the feasibility violation.
    **start
        The arguments `step`, `batch_size`, `x0`, `y0` and `dual0` of :func:`bound`.

    Returns
    -------
    float or array
        The right-hand side, for each T.

    See Also
    --------
    skadmm.paper.theory.bound : Chooses the theorem by the method.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import theorem2
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> bounds = theorem2(problem, solution, T=[100, 200], rho=0.01, gamma=1.0)
    >>> bool(np.isclose(bounds[0], 2 * bounds[1]))
    True
    """
    return bound(problem, solution, method="sa-admm", T=T, rho=rho, gamma=_given(gamma), **start)


def corollary(
    problem: Problem, solution: Solution, *, T: Any, rho: float, method: str = "sa-iu-admm", **start: Any
) -> Any:
    """Compute the bound of the corollary, on the objective at the feasible point (x̄_T, y(x̄_T)).

    E[Φ(x̄_T, y(x̄_T)) − Φ(x*, y*)] ≤ the bound of the method's theorem with ρ(γ/ρ + ‖α₀‖)² as its last term,
    γ = L̃√L_B, L̃ the Lipschitz constant of ψ and L_B the largest eigenvalue of (B⁻¹)ᵀB⁻¹.

    Parameters
    ----------
    problem : Problem
        The problem; see :func:`bound`.
    solution : (x*, y*)
        An optimal pair.
    T : int or array of int
        Steps.
    rho : float
        The penalty parameter ρ.
    method : str
        ``sa-iu-admm``, ``sa-admm``, or the batch version of either.
    **start
        The arguments `step`, `batch_size`, `x0`, `y0` and `dual0` of :func:`bound`.

    Returns
    -------
    float or array
        The right-hand side, for each T.

    See Also
    --------
    skadmm.paper.theory.bound : Chooses the theorem by the method.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import corollary
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> corollary(problem, solution, T=100, rho=0.01) > 0
    True
    """
    return bound(problem, solution, method=method, T=T, rho=rho, gamma=None, **start)


def bound(
    problem: Problem,
    solution: Solution,
    *,
    method: str = "sa-iu-admm",
    T: Any,
    rho: float,
    gamma: float | None = None,
    step: float | None = None,
    batch_size: int = 1,
    x0: Any = None,
    y0: Any = None,
    dual0: Any = None,
) -> Any:
    """Compute the bound that the paper proves for a method after T steps.

    It holds for indices drawn uniformly with replacement and for the averages over all T steps.

    Parameters
    ----------
    problem : Problem
        A method that folds Ω into ψ is bounded on ``problem.fold()``, whose solution is (x*, [y*; x*]).
    solution : (x*, y*)
        An optimal pair.
    method : str
        ``sa-iu-admm`` (Theorem 1), ``sa-admm`` (Theorem 2), or the batch version of either.
    T : int or array of int
        Steps. A pass is one step for every block; filling the table is not a step.
    rho : float
        The penalty parameter ρ.
    gamma : float or None
        The weight γ of the feasibility violation in the theorem; None is the corollary, without a violation.
    step : float or None
        1/L, by default the step that ``solve(step="theory")`` takes. The theorems require that L is at least the
        smoothness of every block's mean loss.
    batch_size : int
        Samples in a block; the number of blocks takes the place of n.
    x0, y0, dual0 : arrays or None
        The starting point, with the defaults of :func:`skadmm.solve`.

    Returns
    -------
    float or array
        The right-hand side, for each T.

    See Also
    --------
    skadmm.paper.theory.constants : The terms of the bound, without T.
    skadmm.paper.theory.left_side : What it bounds, measured.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import bound
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> bound(problem, solution, T=50, rho=0.01) > bound(problem, solution, T=500, rho=0.01)
    True
    """
    steps = _as_steps(T)
    terms = constants(
        problem, solution, method=method, rho=rho, gamma=gamma, step=step, batch_size=batch_size,
        x0=x0, y0=y0, dual0=dual0,
    )  # fmt: skip
    if step is not None:
        smoothness = block_smoothness(problem, _block_size(problem, method, batch_size))
        if step * smoothness > 1 + 1e-9:
            raise ValueError(f"step={step:g}: the theorem takes steps up to 1/L = {1 / smoothness:g}")
    values = terms.total / (2.0 * steps)
    return float(values) if values.ndim == 0 else values


def constants(
    problem: Problem,
    solution: Solution,
    *,
    method: str = "sa-iu-admm",
    rho: float,
    gamma: float | None = None,
    step: float | None = None,
    batch_size: int = 1,
    x0: Any = None,
    y0: Any = None,
    dual0: Any = None,
) -> Constants:
    """Compute the terms of the bound.

    A step larger than that of the theorems is accepted here, since no bound is claimed.

    Parameters
    ----------
    problem : Problem
        The problem; see :func:`bound`.
    solution : (x*, y*)
        An optimal pair.
    method : str
        ``sa-iu-admm``, ``sa-admm``, or the batch version of either.
    rho : float
        The penalty parameter ρ.
    gamma : float or None
        The weight γ of the feasibility violation; None for the corollary.
    step : float or None
        1/L; by default the step that ``solve(step="theory")`` takes.
    batch_size : int
        Samples in a block.
    x0, y0, dual0 : arrays or None
        The starting point, with the defaults of :func:`skadmm.solve`.

    Returns
    -------
    Constants
        The four terms.

    See Also
    --------
    skadmm.paper.theory.bound : Their sum over 2T.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import constants
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> constants(problem, solution, rho=0.01, method="sa-admm").linearised
    0.0
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem={type(problem).__name__}: it takes a skadmm.Problem")
    rho = _checks.number(rho, "rho", above=0)
    batch_size = _block_size(problem, method, batch_size)
    algorithm = ALGORITHMS[method]
    if not algorithm.linearised and not isinstance(problem.omega, (Zero, SquaredL2)):
        raise ValueError(
            f"method={method!r} folds omega={type(problem.omega).__name__} into psi: give problem.fold(), "
            "whose solution is (x*, [y*; x*])"
        )
    L = 1.0 / (algorithm.theory_step(problem, rho) if step is None else _checks.number(step, "step", above=0))
    n_blocks = -(-problem.n_samples // batch_size)
    constraint = problem.constraint

    x_star, y_star = _pair(problem, solution)
    x = np.zeros(problem.n_features) if x0 is None else _checks.vector(x0, "x0", x_star.size, of="that of x")
    if y0 is None:
        default = problem.y_of_x(x)
        y = np.zeros(problem.n_split) if default is None else default
    else:
        y = _checks.vector(y0, "y0", y_star.size, of="that of y")
    m = problem.n_constraints
    dual = np.zeros(m) if dual0 is None else _checks.vector(dual0, "dual0", m, of="the number of rows of A")

    to_x, to_y = x_star - x, y_star - y
    dual_norm = float(np.linalg.norm(dual))
    if gamma is None:
        multiplier = rho * (corollary_gamma(problem) / rho + dual_norm) ** 2
    else:
        multiplier = 2 * rho * ((_checks.number(gamma, "gamma", least=0) / rho) ** 2 + dual_norm**2)
    linearised = problem.L_A(rho) * _squared(to_x) - rho * _squared(constraint.A @ to_x)
    return Constants(
        # Hx is positive semidefinite; rounding may say otherwise.
        linearised=max(linearised, 0.0) if algorithm.linearised else 0.0,
        table=n_blocks * L * _squared(to_x),
        split=rho * _squared(constraint.By(to_y)),
        multiplier=multiplier,
    )


def corollary_gamma(problem: Problem) -> float:
    """Compute γ = L̃√L_B, the cost of moving y from ȳ_T to y(x̄_T) per unit of feasibility violation.

    L̃ is the Lipschitz constant of ψ and L_B the largest eigenvalue of (B⁻¹)ᵀB⁻¹.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    float
        The weight γ of the corollary.

    See Also
    --------
    skadmm.paper.theory.corollary : Uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import corollary_gamma
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> corollary_gamma(problem)
    0.2
    """
    lipschitz = problem.psi.lipschitz(problem.n_split)
    if not np.isfinite(lipschitz):
        raise ValueError(f"psi={type(problem.psi).__name__} is not Lipschitz: the corollary takes a psi that is")
    inverse = problem.constraint.B_inverse_norm_squared
    if not np.isfinite(inverse):
        raise ValueError("B is not invertible: the corollary takes a B that is, for y(x) to exist")
    return float(lipschitz * np.sqrt(inverse))


def block_smoothness(problem: Problem, batch_size: int = 1) -> float:
    """Bound the smoothness of the mean loss of every block: the smallest L that the theorems allow.

    Parameters
    ----------
    problem : Problem
        The problem.
    batch_size : int
        Samples in a block.

    Returns
    -------
    float
        The bound.

    See Also
    --------
    skadmm.paper.theory.bound : Uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import block_smoothness
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> block_smoothness(problem) >= block_smoothness(problem, batch_size=10)
    True
    """
    if batch_size >= problem.n_samples:
        return min(problem.L_mean, problem.L_full)
    starts = np.arange(0, problem.n_samples, batch_size)
    sizes = np.diff(np.append(starts, problem.n_samples))
    smoothness = problem.curvature_scale * np.concatenate(problem.backend.each(tasks.weighted_norms))
    return float((np.add.reduceat(smoothness, starts) / sizes).max())


def left_side(problem: Problem, x: Any, y: Any = None, *, optimum: float, gamma: float = 0.0) -> float:
    """Compute what the bounds bound, Φ(x, y) − Φ* + γ‖Ax + By − c‖.

    With y left out it is Φ(x, y(x)) − Φ*, as in the corollary.

    Parameters
    ----------
    problem : Problem
        The problem.
    x, y : arrays
        The averages of a run, or any point.
    optimum : float
        The optimum Φ* = Φ(x*, y*).
    gamma : float
        The weight γ ≥ 0. Below ‖β*‖, the norm of the optimal multiplier, the left side may be negative.

    Returns
    -------
    float
        The value that a theorem bounds.

    See Also
    --------
    skadmm.paper.theory.bound : The bound.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.paper.theory import left_side
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-8)
    >>> solution = (result.x, result.y)
    >>> abs(left_side(problem, result.x, optimum=result.objective)) < 1e-9
    True
    """
    x = _checks.vector(x, "x", problem.n_features, of="the number of columns of X")
    excess = -_checks.number(optimum, "optimum")
    if y is None:
        return excess + problem.objective(x)
    y = _checks.vector(y, "y", problem.n_split, of="the length of y")
    gamma = _checks.number(gamma, "gamma", least=0)
    return excess + problem.objective(x, y) + gamma * problem.feasibility(x, y)


def slope(T: Any, errors: Any) -> float:
    """Fit the slope of log(error) against log(T) by least squares: −1 for an error of C/T, −½ for C/√T.

    Parameters
    ----------
    T : array of int
        Two different numbers of steps at least.
    errors : array of the same length
        Positive numbers.

    Returns
    -------
    float
        The slope.

    See Also
    --------
    skadmm.paper.theory.bound : Decreases like 1/T.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.paper.theory import slope
    >>> round(slope([10, 100, 1000], [1.0, 0.1, 0.01]), 6)
    -1.0
    """
    steps = np.atleast_1d(_as_steps(T))
    values = _checks.vector(errors, "errors", steps.size, of="that of T")
    if np.unique(steps).size < 2:
        raise ValueError(f"T={T!r}: a slope takes two different values at least")
    if not np.all(values > 0):
        raise ValueError(f"errors has the smallest value {values.min():g}: a logarithm takes numbers > 0")
    return float(np.polyfit(np.log(steps), np.log(values), 1)[0])


def _as_steps(T: Any) -> np.ndarray:
    steps = np.asarray(T)
    if steps.dtype.kind not in "iu" or steps.ndim > 1 or steps.size == 0 or np.any(steps < 1):
        raise ValueError(f"T={T!r}: it takes an integer ≥ 1, or a vector of them")
    return steps


def _given(gamma: Any) -> float:
    """γ of a theorem; the None that means the corollary is refused."""
    return _checks.number(gamma, "gamma", least=0)


def _block_size(problem: Problem, method: str, batch_size: int) -> int:
    """The samples of a block; all of them for a batch method."""
    if method not in METHODS:
        raise ValueError(f"method={method!r}: the theorems are about {', '.join(METHODS)}")
    batch_size = _checks.count(batch_size, "batch_size")
    return problem.n_samples if ALGORITHMS[method].full else min(batch_size, problem.n_samples)


def _pair(problem: Problem, solution: Any) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(solution, tuple) or len(solution) != 2:
        raise TypeError(f"solution={type(solution).__name__}: it takes the pair (x*, y*)")
    x = _checks.vector(solution[0], "solution[0]", problem.n_features, of="the number of columns of X")
    return x, _checks.vector(solution[1], "solution[1]", problem.n_split, of="the length of y")


def _squared(v: np.ndarray) -> float:
    return float(v @ v)
