"""What a run returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm import _summary
from skadmm._plots import plot
from skadmm.io import codec
from skadmm.problem.kkt import KKT

if TYPE_CHECKING:
    import pandas as pd

    from skadmm.run.step_size import StepChoice

TRACE_COLUMNS = ("passes", "seconds", "objective", "objective_average", "feasibility", "kkt", "gap", "test_loss")


class Status(StrEnum):
    """How a run ended. A status equals its text: ``result.status == "solved"``.

    ``SOLVED`` means that the tolerance was met; ``Result.stopped_on`` names the measure. ``PASS_LIMIT`` and
    ``TIME_LIMIT`` mean that a limit came first. ``STALLED`` means that no step improves the objective, although the
    tolerance is not met or none was given. ``NO_MINIMISER`` means that the objective decreases without end along a
    direction that is not penalised; the message names the features. ``STOPPED`` (by a callback), ``INTERRUPTED``
    (Ctrl-C) and ``DIVERGED`` end a run early.

    See Also
    --------
    skadmm.Result : Has the status and a message.

    Examples
    --------
    >>> from skadmm import Status
    >>> print(Status.SOLVED)
    solved
    >>> Status.SOLVED == "solved"
    True
    >>> [status.value for status in Status]
    ['solved', 'pass limit', 'time limit', 'stalled', 'no minimiser', 'stopped by callback', 'interrupted', 'diverged']
    """

    SOLVED = "solved"
    """The tolerance was met; ``Result.stopped_on`` says which measure met it."""
    PASS_LIMIT = "pass limit"
    TIME_LIMIT = "time limit"
    STALLED = "stalled"
    """No step improves the objective any more, and the tolerance is not met, or none was given."""
    NO_MINIMISER = "no minimiser"
    """The objective decreases without end along an unpenalised direction; the message names the features."""
    STOPPED = "stopped by callback"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Snapshot:
    """What a callback of :func:`skadmm.solve` receives: read-only copies of the current iterate.

    Parameters
    ----------
    method : str
        The name of the method.
    step_number : int
        Steps made so far.
    passes : float
        Effective passes over the data so far.
    seconds : float
        Time spent in the method so far.
    x, y, dual : ndarray
        The current iterate.
    record : mapping
        The newest row of the trace.

    See Also
    --------
    skadmm.solve : Calls callbacks at every recording.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> def enough(snapshot):
    ...     return snapshot.record["objective"] < 0.2
    >>> print(solve(problem, "sa-admm", step=0.1, passes=20, callback=enough).status)
    stopped by callback
    """

    method: str
    step_number: int
    passes: float
    seconds: float
    x: np.ndarray
    y: np.ndarray
    dual: np.ndarray
    record: Mapping[str, float]


Callback = Callable[[Snapshot], bool | None]
"""Called at every recording; a true return value stops the run."""


@dataclass(repr=False)
class Result:
    """The outcome of :func:`skadmm.solve`.

    ``print(result)`` gives one line, ``result.trace`` the recordings as a DataFrame, ``result.plot()`` their picture.
    ``passes`` counts every sample touched, also to initialise tables and to select the step, divided by n;
    ``run_passes`` leaves out the selection of the step.

    Parameters
    ----------
    x, y, dual : ndarray
        The solution, or the last finite iterate of a run that diverged; `dual` is scaled, the multiplier of the
        constraint is ρ times it.
    x_average, y_average : ndarray
        The means over all steps, the output of the paper's Algorithm 1; x and y again for second-order solvers.
    status : Status
        How the run ended.
    message : str
        The ending in words: which solver was chosen and why, and what to do where the tolerance was not met.
    method : str
        The name of the method.
    settings : dict
        The settings of the run; ``step`` is None for a method that has none.
    objective : float
        The objective at (x, y(x)) where B is invertible, else at (x, y).
    feasibility : float
        ‖Ax + By − c‖.
    kkt : KKT
        The residual of the optimality conditions.
    gap : float
        The relative duality gap, or NaN where there is no certificate.
    stopped_on : str or None
        The measure that met the tolerance, "gap" or "kkt"; None if none did.
    passes : float
        Effective passes over the data.
    seconds : float
        The time spent in the method, recording excluded.
    records : list of dict
        The rows of ``trace``.
    tuning : StepChoice or None
        How the step was selected.
    solver : str
        The second-order solvers that ran, in order; empty for a first-order method.
    tables : dict of arrays
        What ``solve(warm_start=result)`` continues from.
    selection_passes : float
        How many of the passes were spent on selecting the step.
    n_outputs : int
        The number of outputs whose coefficients x holds, one after the other.

    See Also
    --------
    skadmm.solve : Returns it.
    skadmm.Status : The ways in which a run ends.

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
    >>> result.status, result.stopped_on
    (<Status.SOLVED: 'solved'>, 'gap')
    >>> result.gap <= 1e-6
    True
    >>> result.x.round(2)
    array([0.88, 0.  , 0.  , 0.  ])
    """

    x: np.ndarray
    y: np.ndarray
    dual: np.ndarray
    x_average: np.ndarray
    y_average: np.ndarray
    status: Status
    message: str
    method: str
    settings: dict[str, Any]
    objective: float
    feasibility: float
    kkt: KKT
    gap: float
    stopped_on: str | None
    passes: float
    seconds: float
    records: list[dict[str, float]] = field(repr=False)
    tuning: StepChoice | None = field(default=None, repr=False)
    solver: str = ""
    tables: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    selection_passes: float = 0.0
    n_outputs: int = 1

    @property
    def coef(self) -> np.ndarray:
        """x with one row per output; x itself where there is one output."""
        return self.x if self.n_outputs == 1 else self.x.reshape(self.n_outputs, -1)

    @property
    def run_passes(self) -> float:
        """Passes of the run itself, without those that selected the step."""
        return self.passes - self.selection_passes

    @property
    def cost(self) -> str:
        """The passes in words: those of the run, and those that selected the step."""
        words = passes_in_words(self.run_passes, self.selection_passes)
        return words.replace("passes", "pass", 1) if words.startswith("1 ") else words

    @property
    def trace(self) -> pd.DataFrame:
        """The run as recorded, one row per recording."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(TRACE_COLUMNS))

    def plot(self, **options: Any) -> np.ndarray:
        """Objective and feasibility against passes and seconds; see :func:`skadmm.plotting.convergence`."""
        return plot("convergence")(self, **options)

    def __str__(self) -> str:
        gap = "" if np.isnan(self.gap) else f", gap {self.gap:.2e}"
        return (
            f"{self.method}: {self.status} after {self.cost} and {self.seconds:.3g} s; "
            f"objective {self.objective:.8g}, feasibility {self.feasibility:.2e}, kkt {self.kkt.relative:.2e}{gap}"
        )

    def _facts(self) -> dict[str, Any]:
        """The essentials, in words."""
        return {
            "method": self.method,
            "solver": self.solver or None,
            "status": self.status,
            "objective": f"{self.objective:.8g}",
            "gap": None if np.isnan(self.gap) else f"{self.gap:.2e}",
            "kkt": f"{self.kkt.relative:.2e}",
            "passes": passes_in_words(self.run_passes, self.selection_passes).replace(" passes", "", 1),
            "seconds": f"{self.seconds:.3g}",
            "x": f"{self.x.size} entries, {int(np.count_nonzero(self.x))} not zero",
        }

    def __repr__(self) -> str:
        return _summary.line("Result", self._facts())

    def _repr_html_(self) -> str:
        return _summary.table("Result", self._facts() | {"message": self.message})


def passes_in_words(run: float, selection: float) -> str:
    """For example "3 passes (+113.75 to select the step)"."""
    return f"{run:.6g} passes" + (f" (+{selection:.6g} to select the step)" if selection > 0.0 else "")


_STORED = ("x", "y", "dual", "x_average", "y_average", "message", "method", "settings", "objective", "feasibility",
           "gap", "stopped_on", "passes", "seconds", "records", "solver", "selection_passes", "n_outputs")  # fmt: skip
"""The fields of a result that are stored as they are."""


def _encode(result: Result, encode: codec.Encode) -> dict[str, Any]:
    """All of a result but its tables: a loaded model starts again from its coefficients."""
    held = {name: getattr(result, name) for name in _STORED}
    return {"held": encode(held | {"status": result.status.name, "kkt": tuple(result.kkt)})}


def _decode(stored: dict[str, Any], decode: codec.Decode) -> Result:
    held = decode(stored["held"])
    held = {"solver": "", "selection_passes": 0.0, "n_outputs": 1} | held  # older files lack some of these
    if set(held) != {*_STORED, "status", "kkt"}:
        raise ValueError("a result lacks some of its fields")
    return Result(**(held | {"status": Status[held["status"]], "kkt": KKT(*held["kkt"])}))


codec.register("result", Result, _encode, _decode)
