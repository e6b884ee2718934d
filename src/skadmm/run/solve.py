"""solve(): arguments in at the door, a run (``_loop.py``), a result out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from skadmm import _cancel, _checks
from skadmm.kernels.threads import one_thread
from skadmm.problem import existence
from skadmm.problem.problem import Problem, held_out
from skadmm.problem.rescaling import PRECONDITIONERS, diagonal, rescaled
from skadmm.regularizers import SquaredL2, Zero
from skadmm.run import memory, step_size
from skadmm.run.checkpoint import Checkpoint, fingerprint
from skadmm.run.driver import Limits, Run
from skadmm.run.progress import Progress
from skadmm.run.result import Result, Snapshot, Status
from skadmm.run.sampling import as_sampler
from skadmm.solvers import ALGORITHMS, SOLVERS, automatic, dual_update, settled_options
from skadmm.solvers.base import Algorithm, Setup

PAPER_RHO, PAPER_PASSES = 0.01, 30.0
SAFETY_NET = 500.0
"""Passes after which a run that is to meet a tolerance ends in any case."""
ON_DASK = ("san-admm", "sa-admm", "sa-iu-admm", "saga-admm", "saga-iu-admm", "batch-admm", "batch-iu-admm")
OMEGA_MODES = ("prox", "system", "fold", "subgradient")


class CallbackError(RuntimeError):
    """A callback raised. What the run had computed is in ``result``."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    rho: float | str = "auto",
    passes: float | None = None,
    step: float | str = "auto",
    batch_size: int | None = None,
    sampler: Any = "uniform",
    omega_mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    precondition: str | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    record_every: float = 1.0,
    test: tuple[Any, Any] | None = None,
    x0: Any = None,
    y0: Any = None,
    dual0: Any = None,
    warm_start: Result | None = None,
    callback: Callable[[Snapshot], bool | None] | Iterable[Callable[[Snapshot], bool | None]] = (),
    random_state: Any = 0,
    verbose: int = 0,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    memory_limit: float | None = None,
    staleness: int = 0,
) -> Result:
    """Minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y) subject to A x + B y = c.

    Parameters
    ----------
    problem : Problem
    method : str
        A name in ``skadmm.ALGORITHMS``, or "auto": ``Result.message`` says what was chosen, and why. A name in
        ``skadmm.SOLVERS`` runs one of the second-order solvers behind san-admm alone; ``Result.solver`` names those
        that ran.
    rho : float or "auto"
        The penalty parameter ρ. "auto" is the paper's 0.01 for the first-order methods; san-admm finds its own.
    passes : float or None
        Stop after this many effective passes over the data (step selection not counted in this limit). None: 30, as in
        the paper; 500 as a safety net where `tol` is given and the method is "auto" or certifies its answers.
    step : float, "auto" or "theory"
        A length: x moves by about `step` times a gradient. "auto" selects it on a subset of 500 samples, as the
        paper does; ``Result.tuning`` tells what that cost.
    batch_size : int or None
        Samples of one fixed block are seen together and share one row of a table. 1 by default; "auto"
        chooses it along with the method.
    sampler : "uniform", "permutation", "cyclic" or an array of block indices
    omega_mode : None, "prox", "system", "fold" or "subgradient"
        How Ω enters. By default: the method's proximal step where it has one; in the linear system for a squared ℓ2
        where the method solves one; the gradient for another smooth Ω; folded into ψ otherwise.
    options : dict or None
        Settings of the method alone, such as ``{"epoch": 2}`` of svrg-admm; ``ALGORITHMS[method].options`` lists them.
        A second-order solver given by name takes the fields of ``SOLVERS[method].Config``.
    precondition : None or "diagonal"
        Run a first-order method in x = scale · u, where the bound of the curvature has a diagonal of ones; for columns
        of different sizes. The result is in x. It holds a copy of X.
    tol : float or None
        Stop when the relative duality gap is at most this, or, where there is no certificate, the relative KKT
        residual; ``Result.stopped_on`` says which. For a method that does not compute it anyway the check counts as
        one pass each time.
    time_limit : float or None
        Seconds, recording excluded.
    record_every : float
        Passes between recordings; recording is off the clock. 0 records the start and the end only.
    test : (X, target) or None
        Held-out data for the column ``test_loss``.
    x0, y0, dual0 : arrays or None
        Where to start: x at 0, y at y(x0), the dual at 0 by default.
    warm_start : Result or None
        An earlier result of the same method on a problem of the same shape: go on from its tables.
    callback : function or functions of a Snapshot
        Called at every recording; a true return value stops the run.
    random_state : int, Generator or None
    verbose : int
        1 shows a progress bar on a terminal.
    progress : bool or None
        Show the bar in any case, or never.
    checkpoint : path or None
        Keep the run in this file. Where the file exists already, go on from it: the result is bit for bit that of a run
        that was never stopped. A checkpoint of another problem, method, setting or version is refused; `passes` and
        `time_limit` may change. On Dask, workers keep their part in a folder of this name with ``.blocks`` added.
    checkpoint_every : float
        Seconds between two checkpoints; 0 writes one whenever the run looks up.
    memory_limit : float or None
        Bytes that the method may take besides the data; by default what is free. A run that would need more is refused
        before it starts, with the numbers; infinity switches the check off.
    staleness : int
        On Dask, for sa-admm and sa-iu-admm: a step may use a block's answer to a question asked this many steps before,
        so that so many more blocks are at work at once. 0 waits for every answer.

    Returns
    -------
    Result
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem={type(problem).__name__}: it takes a skadmm.Problem")
    choice = automatic.choose(problem) if method == "auto" else None
    solver = method if method in SOLVERS else ""
    if choice is not None:
        method = choice.method
    elif solver:
        method = "san-admm"
    algorithm = ALGORITHMS[method]
    if passes is None:
        passes = SAFETY_NET if tol is not None and (choice is not None or algorithm.certifies) else PAPER_PASSES
    rho_given = rho != "auto"
    rho = _checks.number(rho, "rho", above=0) if rho_given else PAPER_RHO
    limits = Limits(
        _checks.number(passes, "passes", above=0),
        np.inf if time_limit is None else _checks.number(time_limit, "time_limit", above=0),
        None if tol is None else _checks.number(tol, "tol", above=0),
        _checks.number(record_every, "record_every", least=0) or np.inf,
    )
    if batch_size is None:
        batch_size = problem.backend.natural_batch if choice is None else choice.batch_size
    batch_size = min(_checks.count(batch_size, "batch_size"), problem.n_samples)
    if memory_limit is not None and memory_limit != np.inf:
        memory_limit = _checks.number(memory_limit, "memory_limit", above=0)
    every = _checks.number(checkpoint_every, "checkpoint_every", least=0)
    seed = _seed(random_state)
    mode = _omega_mode(omega_mode, problem, algorithm)
    own = settled_options(solver, options) if solver else algorithm.settled(options)
    working = problem.fold() if mode == "fold" else problem
    staleness = _checks.count(staleness, "staleness", least=0)
    if not problem.backend.local_rows and algorithm.name not in ON_DASK:
        raise ValueError(f"method={method!r}: on Dask it takes one of {', '.join(map(repr, ON_DASK))}")
    memory.check(Setup(working, rho, 1.0, batch_size, mode), algorithm, memory_limit)
    start = _starting_point(problem, working, x0, y0, dual0)
    callbacks = _as_callbacks(callback)
    test_problem = None if test is None else _as_test(problem, test)
    if warm_start is not None:
        fixed = {"method": method, "rho": rho if rho_given else None, "batch_size": batch_size}
        step = _matching_step(warm_start, step, fixed | {"precondition": precondition} | ({} if solver else own))
    scale = _scale(precondition, algorithm, working, rho, warm_start)
    inner = working if scale is None else rescaled(working, scale)

    with _cancel.run_control() as control, one_thread():
        control.off = True  # until there is a run to stop, Ctrl-C leaves a note only
        keeper: Any = None
        kept = None
        if checkpoint is not None:
            told = {
                "method": method, "solver": solver, "rho": rho if rho_given else "auto", "step": step,
                "batch_size": batch_size,
                "sampler": sampler, "omega_mode": mode, "tol": limits.tol, "record_every": limits.record_every,
                "random_state": seed if isinstance(random_state, int) else "drawn",
                "staleness": staleness, "precondition": precondition, "options": own,
                "start": (start.x, start.y, start.dual), "test": _data_of(test_problem),
                "warm_start": None if warm_start is None else warm_start.tables,
            }  # fmt: skip
            keeper = Checkpoint(checkpoint, every, fingerprint(problem, **told))
            kept = keeper.read()
        if kept is None:
            context = {"rho": rho, "batch_size": batch_size, "omega_mode": mode, "seed": seed, "options": own}
            length, tuning = step_size.resolve(step, inner, algorithm, **context)
        else:
            seed, length, tuning = keeper.beginning(kept)
        setup = Setup(
            inner, rho, length, batch_size, mode,
            rho_given=rho_given, solver=solver, warm=x0 is not None, tol=limits.tol, staleness=staleness, options=own,
            checkpoint=keeper,
        )  # fmt: skip
        if scale is not None:
            start.x[:] /= scale
        order = as_sampler(sampler, setup.n_blocks, seed, drawn=not algorithm.full)
        engine = algorithm.start(setup, start)
        if warm_start is not None:
            engine.restore(warm_start.tables)

        endless = existence.find(problem)
        settings = {"rho": rho, "step": length, "batch_size": batch_size, "omega_mode": mode, "seed": seed}
        settings |= own | ({} if precondition is None else {"precondition": precondition})
        run = Run(
            algorithm, engine, problem, working, order, limits, test_problem, callbacks, tuning, settings, keeper,
            control, scale,
        )  # fmt: skip
        if kept is not None:
            keeper.resume_from(run, kept)
        with Progress(method, passes, shown=progress, verbose=verbose) as bar:
            control.off = False
            status, message = run.loop(bar)
            control.off = True
            run.finish(status)
            status, message = run.revised(status, message)
        if endless is not None and status is not Status.DIVERGED:
            status, message = Status.NO_MINIMISER, f"{endless}; x is where the run stood when {message}"
        ran = f"; it ran {run.engine.solver_name}" if run.engine.solver_name else ""
        result = run.result(status, f"{message} ({choice.reason}{ran})" if choice else message)
    if run.failure is not None:
        raise CallbackError(f"a callback raised {run.failure!r}; the run so far is in .result", result) from run.failure
    return result


def _omega_mode(asked: str | None, problem: Problem, algorithm: Algorithm) -> str:
    """How Ω enters this run; "none" when there is no Ω."""
    omega = problem.omega
    if asked is not None and asked not in OMEGA_MODES:
        raise ValueError(f"omega_mode={asked!r}: it takes one of {', '.join(map(repr, OMEGA_MODES))}, or None")
    if isinstance(omega, Zero):
        return "none"
    possible = [mode for mode in algorithm.omega if mode != "system" or isinstance(omega, SquaredL2)]
    if not omega.subdifferentiable:
        possible = [mode for mode in possible if mode != "subgradient"]
    if asked is not None:
        if asked not in possible:
            raise ValueError(
                f"omega_mode={asked!r}: {algorithm.name} can take omega={type(omega).__name__} "
                f"by {', '.join(map(repr, possible))}"
            )
        return asked
    if omega.smooth and "subgradient" in possible and "system" not in possible:
        return "subgradient"
    return possible[0]


def _starting_point(problem: Problem, working: Problem, x0: Any, y0: Any, dual0: Any) -> Any:
    d, p, m = problem.n_features, problem.n_split, problem.n_constraints
    x = np.zeros(d) if x0 is None else _checks.vector(x0, "x0", d, of="the number of columns of X")
    y = None if y0 is None else _checks.vector(y0, "y0", p, of="the length of y")
    dual = None if dual0 is None else _checks.vector(dual0, "dual0", m, of="the number of rows of A")
    if working is not problem:
        if y is not None:
            y = np.concatenate([y, x])
        if dual is not None:
            dual = np.concatenate([dual, np.zeros(d)])
    return dual_update.start(working, x, y, dual)


def _scale(
    asked: str | None, algorithm: Algorithm, problem: Problem, rho: float, earlier: Result | None
) -> np.ndarray | None:
    """The units of the run's coordinates, x = scale · u; None for x itself."""
    if asked is None:
        return None
    if asked not in PRECONDITIONERS:
        raise ValueError(f"precondition={asked!r}: it takes {', '.join(map(repr, PRECONDITIONERS))} or None")
    if algorithm.certifies:
        raise ValueError(
            f"precondition={asked!r}: {algorithm.name} is second-order, the scale of columns does not matter to it; "
            "it takes None"
        )
    if not problem.backend.local_rows:
        raise ValueError(f"precondition={asked!r}: rows on a cluster stay as they are; it takes None")
    if earlier is None:
        return diagonal(problem, rho)
    scale = earlier.tables["scale"]
    if scale.size != problem.n_features:
        raise ValueError(f"warm_start: the earlier run had {scale.size} features, this one has {problem.n_features}")
    return scale


def _matching_step(earlier: Result, step: Any, fixed: dict[str, Any]) -> Any:
    """The step to go on with; an error where the earlier run's tables would not fit. No ρ means any will do."""
    if not isinstance(earlier, Result):
        raise TypeError(f"warm_start={type(earlier).__name__}: it takes a Result of an earlier solve")
    if earlier.status is Status.DIVERGED:
        raise ValueError("warm_start: the earlier run diverged, its tables are of no use; start from x0=result.x")
    for name, now in fixed.items():
        then = earlier.method if name == "method" else earlier.settings.get(name)
        if then != now and not (name == "rho" and now is None):
            raise ValueError(f"warm_start: the earlier run had {name}={then!r}, this one has {now!r}; they must agree")
    return earlier.settings["step"] if step == "auto" else step


def _as_callbacks(callback: Any) -> list[Callable[[Snapshot], bool | None]]:
    callbacks = [callback] if callable(callback) else list(callback) if isinstance(callback, Iterable) else [callback]
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback={one!r}: it takes a function of a Snapshot, or several")
    return callbacks


def _as_test(problem: Problem, test: Any) -> Problem:
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise TypeError(f"test={type(test).__name__}: it takes a pair (X, target)")
    return held_out(problem, *test)


def _data_of(problem: Problem | None) -> Any:
    return None if problem is None else (problem.rows, problem.target)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return _checks.count(random_state, "random_state", least=0)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise TypeError(f"random_state={random_state!r}: it takes an integer ≥ 0, a NumPy generator or None")
