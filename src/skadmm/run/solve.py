"""solve(): arguments are checked (``prepare.py``), the run is driven (``driver.py``), the result is reported
(``report.py``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm import _cancel
from skadmm._types import RandomState, TableLike, Values
from skadmm.kernels.threads import one_thread
from skadmm.problem.problem import Problem
from skadmm.run import report, step_size
from skadmm.run.checkpoint import Checkpoint, fingerprint
from skadmm.run.driver import Run
from skadmm.run.prepare import Arguments, Plan, prepare
from skadmm.run.progress import Progress
from skadmm.run.recording import Recorder
from skadmm.run.result import Callback, Result
from skadmm.run.sampling import SAMPLERS, as_sampler
from skadmm.solvers.base import Setup


class CallbackError(RuntimeError):
    """The error of :func:`skadmm.solve` where a callback raised; what the run had computed is kept.

    Parameters
    ----------
    message : str
        What happened.
    result : Result
        The run up to the error of the callback.

    See Also
    --------
    skadmm.Snapshot : What a callback receives.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, CallbackError, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> def broken(snapshot):
    ...     raise ZeroDivisionError
    >>> try:
    ...     solve(problem, "sa-admm", step=0.1, passes=2, callback=broken)
    ... except CallbackError as error:
    ...     print(error.result.x.shape)
    (4,)
    """

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
    sampler: str | ArrayLike = "uniform",
    omega_mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    precondition: str | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    record_every: float = 1.0,
    test: tuple[TableLike, Values] | None = None,
    x0: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    dual0: ArrayLike | None = None,
    warm_start: Result | None = None,
    callback: Callback | Iterable[Callback] = (),
    random_state: RandomState = 0,
    verbose: int = 0,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    memory_limit: float | None = None,
    staleness: int = 0,
) -> Result:
    """Solve a problem: minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y) subject to A x + B y = c.

    Parameters
    ----------
    problem : Problem
        The problem.
    method : str
        A name in ``skadmm.ALGORITHMS``, or "auto": ``Result.message`` says what was chosen, and why. A name in
        ``skadmm.SOLVERS`` runs one of the second-order solvers behind san-admm alone; ``Result.solver`` names those
        that ran.
    rho : float or "auto"
        The penalty parameter ρ. "auto" is the one at which ρAᵀA has as much curvature as the loss (the paper's
        experiments have 0.01) for methods with a step size; 0.01 for exact-admm and with `precondition`; san-admm
        adapts it.
    passes : float or None
        Stop after this many effective passes over the data (step selection not counted in this limit). A step that has
        begun is completed, and a second-order method evaluates its solution after that, so the run may take a few
        passes more, which ``Result.message`` states. None: 30, as in the paper; 2,000 as a safety net where `tol` is
        given and the method is "auto" or certifies its answers.
    step : float, "auto" or "theory"
        The step size: x moves by about `step` times a gradient. "auto" selects it on a subset of 500 samples, from the
        start of the run, as the paper does; ``Result.tuning`` says what that cost, by what the selected step was
        multiplied (n/500 for sa-admm and sa-iu-admm with the option ``table="zero"``), and whether it is at an end of
        the grid that was tried, which the message also says. Methods without a step ignore it.
    batch_size : int or None
        Samples in one block. The samples of a block are read together and share one row of a table. 1 by default;
        "auto" chooses it along with the method.
    sampler : {"uniform", "permutation", "cyclic"} or array of int
        In which order blocks of samples are visited: drawn with replacement, a new permutation in every pass, or in
        order; or the indices of the blocks themselves.
    omega_mode : None, "prox", "system", "fold" or "subgradient"
        How Ω enters. By default: the method's proximal step where it has one; in the linear system for a squared ℓ2
        where the method solves one; the gradient for another smooth Ω; folded into ψ otherwise.
    options : dict or None
        Settings of the method alone, such as ``{"epoch": 2}`` of svrg-admm, or ``{"table": "x0"}`` of the methods with
        a table of gradients; ``ALGORITHMS[method].options`` lists them.
        A second-order solver given by name takes the fields of ``SOLVERS[method].Config``.
    precondition : None or "diagonal"
        Run a first-order method in the coordinates u of x = scale · u, in which the bound of the curvature has a
        diagonal of ones; for columns of different scales. The result is in x. A copy of X is held in memory.
    tol : float or None
        Stop when the relative duality gap is at most this, or, where there is no certificate, the relative KKT
        residual; ``Result.stopped_on`` says which. For a method that does not compute it anyway the check counts as
        one pass each time.
    time_limit : float or None
        In seconds, recording excluded. At most half of it goes into the selection of a step, which then takes the
        best of the candidates tried so far.
    record_every : float
        Passes between recordings; recording is off the clock. 0 records the start and the end only.
    test : (X, target) or None
        Held-out data for the column ``test_loss``.
    x0, y0, dual0 : arrays or None
        Where to start: x at 0, y at y(x0), the dual at 0 by default.
    warm_start : Result or None
        An earlier result of the same method on a problem of the same shape; the run continues from its tables.
    callback : function or functions of a Snapshot
        Called at every recording; a true return value stops the run.
    random_state : int, Generator or None
        Draws the blocks, and the samples on which the step is selected.
    verbose : int
        1 shows a progress bar on a terminal.
    progress : bool or None
        Show the bar in any case, or never.
    checkpoint : path or None
        Store the run in this file. Where the file exists already, the run continues from it, and the result is bit for
        bit that of a run that was never stopped. A checkpoint of another problem, method, setting or version is
        refused; `passes` and `time_limit` may change. On Dask, workers store their part in a folder of this name with
        ``.blocks`` added.
    checkpoint_every : float
        Seconds between two checkpoints; 0 writes one after every slice of steps.
    memory_limit : float or None
        Bytes that the method may take in addition to the data; by default all free memory. A run that would need more
        is refused before it starts, with the numbers; infinity disables the check.
    staleness : int
        On Dask, for sa-admm and sa-iu-admm: a step may use a block's gradient at the point of this many steps before,
        so that this many more blocks are evaluated at the same time. 0 always uses the current point.

    Returns
    -------
    Result
        The solution, the status, the duality gap or KKT residual, and the recorded trace.

    See Also
    --------
    skadmm.Problem : The problem.
    skadmm.Result : What is returned.
    skadmm.path : Solves for many strengths of ψ.
    skadmm.compare : Runs several methods.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> result = solve(problem, tol=1e-6)
    >>> result.x.round(2), result.gap <= 1e-6
    (array([0.88, 0.  , 0.  , 0.  ]), True)
    >>> first_order = solve(problem, "sa-admm", rho=1.0, passes=30)
    >>> print(f"{result.objective:.4f} {first_order.objective:.4f}")
    0.1012 0.1012
    """
    plan = prepare(
        problem, method,
        Arguments(
            rho=rho, passes=passes, step=step, batch_size=batch_size, sampler=sampler, omega_mode=omega_mode,
            options=options, precondition=precondition, tol=tol, time_limit=time_limit, record_every=record_every,
            test=test, x0=x0, y0=y0, dual0=dual0, warm_start=warm_start, callback=callback, random_state=random_state,
            checkpoint=checkpoint, checkpoint_every=checkpoint_every, memory_limit=memory_limit, staleness=staleness,
        ),
    )  # fmt: skip
    with _cancel.run_control() as control, one_thread():
        run = _start(plan, control)
        shown = progress is not False and bool(progress or verbose)
        with Progress(plan.algorithm.name, plan.limits.passes, progress) if shown else nullcontext() as bar:
            answer, ending = report.finish(run, run.loop(bar))
        result = report.result(run, answer, report.explained(run, plan, ending))
    failure = run.recorder.failure
    if failure is not None:
        raise CallbackError(f"a callback raised {failure!r}; the run so far is in .result", result) from failure
    return result


def _start(plan: Plan, control: _cancel.RunControl) -> Run:
    """The run before its first step, or as its checkpoint holds it."""
    algorithm = plan.algorithm
    plan.problem.backend.evaluations.start_run()
    checkpoint = kept = None
    if plan.checkpoint is not None:
        identity = fingerprint(plan.problem, **plan.identity())
        checkpoint = Checkpoint(plan.checkpoint, plan.checkpoint_every, identity)
        kept = checkpoint.read()
    if checkpoint is not None and kept is not None:
        seed, step, tuning = checkpoint.beginning(kept)
    elif algorithm.stepless and plan.step == "auto":
        seed, step, tuning = plan.seed, None, None
    else:
        seed = plan.seed
        step, tuning = step_size.resolve(
            plan.step, plan.scaled, algorithm, rho=plan.rho, batch_size=plan.batch_size, omega_mode=plan.omega_mode,
            seed=seed, options=plan.options, start=plan.start, seconds=plan.limits.seconds,
            interrupted=lambda: control.interrupted,
        )  # fmt: skip
    setup = Setup(
        plan.scaled, plan.rho, np.nan if step is None else step, plan.batch_size, plan.omega_mode,
        rho_given=plan.rho_given, solver=plan.solver, warm=plan.start_given, tol=plan.limits.tol,
        staleness=plan.staleness, options=plan.options, checkpoint=checkpoint,
    )  # fmt: skip
    whole = algorithm.full and isinstance(plan.sampler, str) and plan.sampler in SAMPLERS
    sampler = None if whole else as_sampler(plan.sampler, setup.n_blocks, seed)
    engine = algorithm.start(setup, plan.start)
    if plan.warm_start is not None:
        engine.restore(plan.warm_start.tables)
    settings = {
        "rho": plan.rho, "step": step, "batch_size": plan.batch_size, "omega_mode": plan.omega_mode, "seed": seed
    }  # fmt: skip
    settings |= plan.options | ({} if plan.precondition is None else {"precondition": plan.precondition})
    recorder = Recorder(
        algorithm.name, plan.problem, plan.working, engine,
        scale=plan.scale, test_problem=plan.test_problem, callbacks=plan.callbacks,
    )  # fmt: skip
    run = Run(
        algorithm, recorder, sampler, plan.limits,
        tuning=tuning, settings=settings, checkpoint=checkpoint, control=control,
    )  # fmt: skip
    if checkpoint is not None and kept is not None:
        checkpoint.resume_from(run, kept)
    return run
