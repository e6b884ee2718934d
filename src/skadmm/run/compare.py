"""compare(): several methods under the same splits and seeds, as one tidy table."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm import _checks
from skadmm.kernels.rows import as_matrix
from skadmm.problem.problem import Problem
from skadmm.run.result import TRACE_COLUMNS, Result, Status
from skadmm.run.solve import solve
from skadmm.solvers import ALGORITHMS, SOLVERS
from skadmm.solvers.select import check_method

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "method",
    "repeat",
    "seed",
    "record",
    *TRACE_COLUMNS,
    "run_passes",
    "run_seconds",
    "selection_passes",
    "selection_seconds",
    "step",
    "status",
)

FAILED = "failed"
"""The status of a run that raised; ``frame.attrs["failures"]`` holds the message."""

# Either set by compare() itself, or meaningless for several methods.
_RESERVED = ("problem", "method", "random_state", "warm_start")


def compare(
    problem: Problem,
    methods: Iterable[str] | None = None,
    *,
    repeats: int = 10,
    test_size: float | int | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    random_state: int = 0,
    **common: Any,
) -> pd.DataFrame:
    """Run several methods on equal terms: repeat r has one split and one seed, the same for all of them.

    Parameters
    ----------
    problem : Problem
        The problem that all methods solve.
    methods : names, or None
        Names in ``skadmm.ALGORITHMS`` or ``skadmm.SOLVERS``. None takes every method in ``skadmm.ALGORITHMS``.
    repeats : int
        Runs of each method, each with a seed of its own.
    test_size : float in (0, 1), int or None
        Hold out this share (or number) of the samples, drawn again for each repeat; the rest is trained on, and
        ``test_loss`` is the mean loss on what was held out. None trains on everything.
    settings : {method: {option: value}} or None
        Options of :func:`skadmm.solve` for one method, over `common`.
    random_state : int
        Splits and seeds follow from it; repeat r does not depend on the number of repeats.
    **common
        Options of :func:`skadmm.solve` for all methods. ``step="auto"`` (the default) selects a step for every run,
        and its cost is part of the run's passes and seconds.

    Returns
    -------
    DataFrame
        One row per recording: ``method``, ``repeat``, ``seed``, ``record`` (its number within the run), the columns of
        ``Result.trace``, ``step`` and ``status``. ``passes`` and ``seconds`` include step selection, which
        ``selection_passes`` and ``selection_seconds`` give by itself; ``run_passes`` and ``run_seconds`` are without
        it. Kernels are compiled before the clock starts.

        A method that diverges keeps its rows up to there; one that raises leaves a row of status "failed", with a
        warning, and the others continue. If no method ran at all, the first error is raised. Ctrl-C returns the
        recordings so far. ``frame.attrs`` holds ``settings`` (by method), ``failures``, ``interrupted``, ``test_size``,
        ``repeats``, ``random_state`` and the size of the ``problem``.

    See Also
    --------
    skadmm.plotting.comparison : Draws the frame.
    skadmm.solve : One run.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, compare
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> frame = compare(problem, ["sa-admm", "batch-admm"], repeats=2, passes=3, step=0.1)
    >>> frame.groupby("method")["run_passes"].max()
    method
    batch-admm    3.0
    sa-admm       3.0
    Name: run_passes, dtype: float64
    """
    import pandas as pd

    if not isinstance(problem, Problem):
        raise TypeError(f"problem={type(problem).__name__}: it takes a skadmm.Problem")
    names = _method_names(methods)
    options = _options(names, settings or {}, common)
    repeats = _checks.count(repeats, "repeats")
    random_state = _checks.count(random_state, "random_state", least=0)
    held_out = None if test_size is None else _held_out(test_size, problem.n_samples)
    if held_out is not None and any("test" in chosen for chosen in options.values()):
        raise ValueError("test and test_size were both given: compare takes one of them")

    rows: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    resolved: dict[str, dict[str, Any]] = {}
    errors: list[Exception] = []
    interrupted = False
    try:
        for repeat in range(repeats):
            sequence = np.random.SeedSequence(random_state, spawn_key=(repeat,))
            seed = int(sequence.generate_state(1)[0])
            train, test = (problem, None) if held_out is None else _split(problem, held_out, seed)
            for name in names:
                if repeat == 0:
                    _compile(train, name, options[name])
                run = {"method": name, "repeat": repeat, "seed": seed}
                chosen = options[name] if test is None else options[name] | {"test": test}
                try:
                    result = solve(train, name, random_state=seed, **chosen)
                except Exception as error:
                    errors.append(error)
                    failures.append(run | {"error": type(error).__name__, "message": str(error)})
                    rows.append(run | {"record": 0, "status": FAILED})
                    continue
                rows.extend(_rows(run, result, train.n_samples))
                resolved.setdefault(name, _plain(chosen) | _used_settings(result))
                if result.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True

    if errors and len(errors) == len(rows):
        raise errors[0]
    for name in dict.fromkeys(failure["method"] for failure in failures):
        mine = [failure for failure in failures if failure["method"] == name]
        text = f"{name} failed in {len(mine)} of {repeats} repeats: {mine[0]['error']}: {mine[0]['message']}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame.attrs.update(
        settings=resolved,
        failures=failures,
        interrupted=interrupted,
        test_size=test_size,
        repeats=repeats,
        random_state=random_state,
        problem={"n_samples": problem.n_samples, "n_features": problem.n_features, "loss": problem.loss.name},
    )
    return frame


def _method_names(methods: Iterable[str] | None) -> list[str]:
    if methods is None:
        return list(ALGORITHMS)
    if isinstance(methods, str):
        raise TypeError(f"methods={methods!r}: it takes a list of names, such as [{methods!r}]")
    names = list(dict.fromkeys(methods))
    if not names:
        raise ValueError("methods is empty: it takes at least one name")
    for name in names:
        check_method(name)
    return [name if name in SOLVERS else ALGORITHMS[name].name for name in names]


def _options(
    names: list[str], settings: Mapping[str, Mapping[str, Any]], common: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options of each method's solve(); an error where there is no such method or option."""
    known = [name for name in inspect.signature(solve).parameters if name not in _RESERVED]
    for name in settings:
        if name not in names:
            raise ValueError(f"settings has {name!r}, which is not among methods: {', '.join(names)}")
    for where, given in (("compare", common), *((f"settings[{name!r}]", settings[name]) for name in settings)):
        for option in given:
            if option not in known:
                raise TypeError(f"{where} got the option {option!r}: it takes {', '.join(known)}")
    return {name: common | dict(settings.get(name, {})) for name in names}


def _held_out(test_size: Any, n: int) -> int:
    """How many samples are held out of n."""
    whole = isinstance(test_size, (int, np.integer)) and not isinstance(test_size, bool)
    share = isinstance(test_size, (float, np.floating)) and 0 < test_size < 1
    size = int(test_size) if whole else round(float(test_size) * n) if share else 0
    if not 0 < size < n:
        raise ValueError(
            f"test_size={test_size!r}: it takes a share in (0, 1) or a number of samples in 1 … {n - 1}, or None"
        )
    return size


def _split(problem: Problem, size: int, seed: int) -> tuple[Problem, tuple[Any, np.ndarray]]:
    """The problem without `size` random samples, and those as (X, target)."""
    order = np.random.default_rng(seed).permutation(problem.n_samples)
    train, test = problem.subset(np.sort(order[size:])), problem.subset(np.sort(order[:size]))
    rows, target = test.rows, test.target
    return train, (as_matrix(rows), target if test.classes is None else test.classes[(target > 0).astype(int)])


def _compile(problem: Problem, name: str, options: dict[str, Any]) -> None:
    """Run the method on a few samples first, so that no method's seconds hold the compilation of its kernels."""
    few = problem.subset(np.arange(min(200, problem.n_samples)))
    kept = {
        option: options[option]
        for option in ("rho", "batch_size", "omega_mode", "options", "precondition")
        if option in options
    }
    # An error here occurs in the runs themselves too, which report it.
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        solve(few, name, step="theory", passes=10, record_every=0, progress=False, **kept)


def _rows(run: dict[str, Any], result: Result, n: int) -> list[dict[str, Any]]:
    tuning = result.tuning
    selection_passes = tuning.samples_touched / n if tuning else 0.0
    selection_seconds = tuning.seconds if tuning else 0.0
    about = {
        "selection_passes": selection_passes,
        "selection_seconds": selection_seconds,
        "step": np.nan if result.settings["step"] is None else result.settings["step"],
        "status": str(result.status),
    }
    return [
        run
        | {"record": number}
        | record
        | {"run_passes": record["passes"] - selection_passes, "run_seconds": record["seconds"] - selection_seconds}
        | about
        for number, record in enumerate(result.records)
    ]


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the options that are plain values, for the attributes of the table; arrays and callbacks are left out."""
    return {name: value for name, value in options.items() if isinstance(value, (str, int, float, bool, type(None)))}


def _used_settings(result: Result) -> dict[str, Any]:
    """The settings that the run used, except those in every row."""
    return {name: value for name, value in result.settings.items() if name not in ("step", "seed")}
