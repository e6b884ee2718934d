"""The first part of solve(): its arguments checked, and what follows from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm import _checks
from skadmm._types import RandomState, TableLike, Values
from skadmm.problem.problem import Problem, held_out
from skadmm.problem.rescaling import PRECONDITIONERS, balanced_rho, diagonal, rescaled
from skadmm.regularizers import SquaredL2, Zero
from skadmm.run import memory
from skadmm.run.driver import Limits
from skadmm.run.result import Callback, Result, Status
from skadmm.solvers import ALGORITHMS, SOLVERS, dual_update, select, settled_options
from skadmm.solvers.base import Algorithm, Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.select import check_method

PAPER_RHO, PAPER_PASSES = 0.01, 30.0
SAFETY_NET = 2000.0
"""The limit of passes of a run that has a tolerance to meet and no limit of its own."""
ELSEWHERE = ("batch-admm", "batch-iu-admm")
"""Methods that work on every backend, also on rows that are in other processes."""
WITH_MEMORY = ("san-admm", "sa-admm", "sa-iu-admm", "saga-admm", "saga-iu-admm")
"""Methods that need a backend on which tasks keep values with the blocks of rows."""
OMEGA_MODES = ("prox", "system", "fold", "subgradient")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The keywords of :func:`skadmm.solve`, as the user gave them; its docstring explains each."""

    rho: float | str
    passes: float | None
    step: float | str
    batch_size: int | None
    sampler: str | ArrayLike
    omega_mode: str | None
    options: Mapping[str, Any] | None
    precondition: str | None
    tol: float | None
    time_limit: float | None
    record_every: float
    test: tuple[TableLike, Values] | None
    x0: ArrayLike | None
    y0: ArrayLike | None
    dual0: ArrayLike | None
    warm_start: Result | None
    callback: Callback | Iterable[Callback]
    random_state: RandomState
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    memory_limit: float | None
    staleness: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run that can be started: every argument checked, every default filled in."""

    problem: Problem
    """The problem as the user gave it."""
    working: Problem
    """The problem, with Ω folded into ψ where `omega_mode` is "fold"."""
    scaled: Problem
    """The problem that the method works on, in the coordinates u of x = scale · u."""
    scale: np.ndarray | None
    """The scale of the coordinates; None where u is x."""
    algorithm: Algorithm
    solver: str
    """The second-order solver chosen by name; empty otherwise."""
    reason: str
    """Why "auto" chose the method; empty where the user did."""
    rho: float
    rho_given: bool
    """False where ρ is a default, which the method may change."""
    step: float | str
    batch_size: int
    sampler: str | ArrayLike
    omega_mode: str
    """How Ω enters; "none" where there is no Ω."""
    options: dict[str, Any]
    """The settings of the method alone, defaults included."""
    precondition: str | None
    limits: Limits
    test_problem: Problem | None
    start: Point
    """x, y and the dual at the start, in the coordinates of `scaled`."""
    start_given: bool
    """True where x0 has more than one coefficient per output; with one, it is an intercept alone."""
    warm_start: Result | None
    callbacks: list[Callback]
    seed: int
    seed_drawn: bool
    """False where the user gave the seed."""
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    staleness: int

    def identity(self) -> dict[str, Any]:
        """The settings that must be equal to those of a checkpoint. Limits of passes and time may differ."""
        return {
            "method": self.algorithm.name, "solver": self.solver, "rho": self.rho if self.rho_given else "auto",
            "step": self.step, "batch_size": self.batch_size, "sampler": self.sampler, "omega_mode": self.omega_mode,
            "tol": self.limits.tol, "record_every": self.limits.record_every,
            "random_state": "drawn" if self.seed_drawn else self.seed,
            "staleness": self.staleness, "precondition": self.precondition, "options": self.options,
            "start": (self.start.x, self.start.y, self.start.dual),
            "test": None if self.test_problem is None else (self.test_problem.rows, self.test_problem.target),
            "warm_start": None if self.warm_start is None else self.warm_start.tables,
        }  # fmt: skip


def _check_backend(problem: Problem, algorithm: Algorithm) -> None:
    """Raise where the method needs a capability that the backend does not have."""
    backend = problem.backend
    if backend.local_rows:
        return
    possible = (*WITH_MEMORY, *ELSEWHERE) if backend.block_memory else ELSEWHERE
    if algorithm.name not in possible:
        takes = ", ".join(map(repr, possible))
        raise ValueError(f"method={algorithm.name!r}: on the {backend.name} backend it takes one of {takes}")


def _default_rho(problem: Problem, algorithm: Algorithm, precondition: str | None) -> float:
    """The ρ of ``rho="auto"``: a balanced one for methods with a step size. The paper's for methods that solve their
    x-steps whatever ρ is, and for a preconditioner, whose scale contains both curvatures."""
    if algorithm.stepless or precondition is not None:
        return PAPER_RHO
    return balanced_rho(problem) or PAPER_RHO


def prepare(problem: Problem, method: str, given: Arguments) -> Plan:
    """Check the arguments of solve(); every message names the argument, what came, and what is allowed."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem={type(problem).__name__}: it takes a skadmm.Problem")
    check_method(method)
    choice = select.choose(problem) if method == "auto" else None
    solver = method if method in SOLVERS else ""
    algorithm = ALGORITHMS[choice.method if choice is not None else "san-admm" if solver else method]
    rho_given = given.rho != "auto"
    rho = (
        _checks.number(given.rho, "rho", above=0) if rho_given else _default_rho(problem, algorithm, given.precondition)
    )
    limits = _limits(given, until_solved=choice is not None or algorithm.certifies)
    batch_size = problem.backend.natural_batch if choice is None else choice.batch_size
    if given.batch_size is not None:
        batch_size = _checks.count(given.batch_size, "batch_size")
    batch_size = min(batch_size, problem.n_rows)
    memory_limit = given.memory_limit
    if memory_limit is not None and memory_limit != np.inf:
        memory_limit = _checks.number(memory_limit, "memory_limit", above=0)
    checkpoint_every = _checks.number(given.checkpoint_every, "checkpoint_every", least=0)
    seed = _seed(given.random_state)
    omega_mode = _omega_mode(given.omega_mode, problem, algorithm)
    options: dict[str, Any] = {}
    if solver:
        options = settled_options(solver, given.options)
    elif algorithm.options or given.options is not None:
        options = algorithm.settled(given.options)
    working = problem.fold() if omega_mode == "fold" else problem
    staleness = 0 if given.staleness == 0 else _checks.count(given.staleness, "staleness", least=0)
    _check_backend(problem, algorithm)
    size, rows = max(working.n_samples, working.n_features), working.constraint.A.nnz
    if memory_limit is not None or size > memory.SMALL or rows > memory.SMALL_ROWS:
        memory.check(Setup(working, rho, 1.0, batch_size, omega_mode, rho_given=rho_given), algorithm, memory_limit)
    callbacks = _as_callbacks(given.callback)
    test_problem = _as_test(problem, given.test)
    step = given.step
    if given.warm_start is not None:
        agreed = {"rho": rho if rho_given else None, "batch_size": batch_size, "precondition": given.precondition}
        step = _matching_step(given.warm_start, step, algorithm, agreed | ({} if solver else options))
    scale = _scale(given.precondition, algorithm, working, rho, given.warm_start)
    start_given = _says_something(given.x0, problem)
    start = _starting_point(problem, working, given)
    if scale is not None:
        start.x[:] /= scale
    return Plan(
        problem=problem, working=working, scaled=working if scale is None else rescaled(working, scale), scale=scale,
        algorithm=algorithm, solver=solver, reason="" if choice is None else choice.reason,
        rho=rho, rho_given=rho_given, step=step, batch_size=batch_size, sampler=given.sampler, omega_mode=omega_mode,
        options=options, precondition=given.precondition, limits=limits, test_problem=test_problem, start=start,
        start_given=start_given, warm_start=given.warm_start, callbacks=callbacks, seed=seed,
        seed_drawn=not isinstance(given.random_state, (int, np.integer)), checkpoint=given.checkpoint,
        checkpoint_every=checkpoint_every, staleness=staleness,
    )  # fmt: skip


def _says_something(x0: Any, problem: Problem) -> bool:
    """Return whether a starting point was given that is more than a constant for each output."""
    return x0 is not None and int(np.count_nonzero(x0)) > problem.n_outputs


def _limits(given: Arguments, *, until_solved: bool) -> Limits:
    """The limits of the run; the default number of passes is larger where there is a tolerance to meet."""
    passes = given.passes
    if passes is None:
        passes = SAFETY_NET if given.tol is not None and until_solved else PAPER_PASSES
    return Limits(
        _checks.number(passes, "passes", above=0),
        np.inf if given.time_limit is None else _checks.number(given.time_limit, "time_limit", above=0),
        None if given.tol is None else _checks.number(given.tol, "tol", above=0),
        _checks.number(given.record_every, "record_every", least=0) or np.inf,
    )


def _omega_mode(given: str | None, problem: Problem, algorithm: Algorithm) -> str:
    """How Ω enters this run; "none" when there is no Ω."""
    omega = problem.omega
    if given is not None and given not in OMEGA_MODES:
        raise ValueError(f"omega_mode={given!r}: it takes one of {', '.join(map(repr, OMEGA_MODES))}, or None")
    if isinstance(omega, Zero):
        return "none"
    possible = [mode for mode in algorithm.omega if mode != "system" or isinstance(omega, SquaredL2)]
    if not omega.subdifferentiable:
        possible = [mode for mode in possible if mode != "subgradient"]
    if given is not None:
        if given not in possible:
            raise ValueError(
                f"omega_mode={given!r}: {algorithm.name} can take omega={type(omega).__name__} "
                f"by {', '.join(map(repr, possible))}"
            )
        return given
    if omega.smooth and "subgradient" in possible and "system" not in possible:
        return "subgradient"
    return possible[0]


def _starting_point(problem: Problem, working: Problem, given: Arguments) -> Point:
    """The point to start from; folding Ω into ψ adds z = x to y, with a zero dual."""
    d, p, m = problem.n_features, problem.n_split, problem.n_constraints
    x = np.zeros(d) if given.x0 is None else _checks.vector(given.x0, "x0", d, of="the number of columns of X")
    y = None if given.y0 is None else _checks.vector(given.y0, "y0", p, of="the length of y")
    dual = None if given.dual0 is None else _checks.vector(given.dual0, "dual0", m, of="the number of rows of A")
    if working is not problem:
        if y is not None:
            y = np.concatenate([y, x])
        if dual is not None:
            dual = np.concatenate([dual, np.zeros(d)])
    return dual_update.start(working, x, y, dual)


def _scale(
    precondition: str | None, algorithm: Algorithm, problem: Problem, rho: float, warm_start: Result | None
) -> np.ndarray | None:
    """The scale of the run's coordinates, x = scale · u; None for x itself."""
    if precondition is None:
        return None
    if precondition not in PRECONDITIONERS:
        raise ValueError(f"precondition={precondition!r}: it takes {', '.join(map(repr, PRECONDITIONERS))} or None")
    if algorithm.certifies:
        raise ValueError(
            f"precondition={precondition!r}: {algorithm.name} is a second-order method, which does not depend on the "
            "scale of the columns; it takes None"
        )
    if not problem.backend.local_rows:
        raise ValueError(f"precondition={precondition!r}: rows on a cluster cannot be rescaled; it takes None")
    if warm_start is None:
        return diagonal(problem, rho)
    scale = warm_start.tables["scale"]
    if scale.size != problem.n_features:
        raise ValueError(f"warm_start: the earlier run had {scale.size} features, this one has {problem.n_features}")
    return scale


def _matching_step(earlier: Result, step: float | str, algorithm: Algorithm, agreed: dict[str, Any]) -> float | str:
    """The step to continue with; an error where the earlier run's tables would not fit. A ρ of None fits any."""
    if not isinstance(earlier, Result):
        raise TypeError(f"warm_start={type(earlier).__name__}: it takes a Result of an earlier solve")
    if earlier.status is Status.DIVERGED:
        raise ValueError("warm_start: the earlier run diverged, its tables cannot be used; start from x0=result.x")
    pairs = {name: (earlier.settings.get(name), now) for name, now in agreed.items()}
    for name, (then, now) in ({"method": (earlier.method, algorithm.name)} | pairs).items():
        if then != now and not (name == "rho" and now is None):
            raise ValueError(f"warm_start: the earlier run had {name}={then!r}, this one has {now!r}; they must agree")
    return earlier.settings["step"] if step == "auto" and not algorithm.stepless else step


def _as_callbacks(callback: Callback | Iterable[Callback]) -> list[Callback]:
    callbacks: list[Any]
    callbacks = [callback] if callable(callback) else list(callback) if isinstance(callback, Iterable) else [callback]
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback={one!r}: it takes a function of a Snapshot, or several")
    return callbacks


def _as_test(problem: Problem, test: tuple[TableLike, Values] | None) -> Problem | None:
    if test is None:
        return None
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise TypeError(f"test={type(test).__name__}: it takes a pair (X, target)")
    return held_out(problem, *test)


def _seed(random_state: RandomState) -> int:
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state={random_state!r}: it takes an integer ≥ 0")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise TypeError(f"random_state={random_state!r}: it takes an integer ≥ 0, a NumPy generator or None")
