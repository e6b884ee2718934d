"""What a run returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
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


class Status(Enum):
    """How a run ended."""

    SOLVED = "solved"
    """The tolerance was met; ``Result.stopped_on`` says which measure met it."""
    PASS_LIMIT = "pass limit"
    TIME_LIMIT = "time limit"
    STALLED = "stalled"
    """No step improves the objective any more, and the tolerance is not met."""
    NO_MINIMISER = "no minimiser"
    """The objective decreases without end along an unpenalised direction; the message names the features."""
    STOPPED = "stopped by callback"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Snapshot:
    """What a callback sees: read-only copies of the current iterate."""

    method: str
    step_number: int
    passes: float
    seconds: float
    x: np.ndarray
    y: np.ndarray
    dual: np.ndarray
    record: Mapping[str, float]
    """The newest row of the trace."""


Callback = Callable[[Snapshot], bool | None]
"""Called at every recording; a true return value stops the run."""


@dataclass(repr=False)
class Result:
    """The outcome of :func:`skadmm.solve`.

    ``x``, ``y`` and ``dual`` are the last good iterate, ``x_average`` and ``y_average`` the means over all steps
    (Algorithm 1's output). ``passes`` counts every sample touched, also to initialise tables and to select the step,
    divided by n; ``run_passes`` leaves out the selection of the step. ``seconds`` is the time spent in the method,
    recording excluded.
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
    """What the run was made with; ``step`` is None for a method that has none."""
    objective: float
    """At (x, y(x)) where B is invertible, else at (x, y)."""
    feasibility: float
    kkt: KKT
    gap: float
    """The relative duality gap, or NaN where there is no certificate."""
    stopped_on: str | None
    """The measure that met the tolerance: "gap" or "kkt"; None if none did."""
    passes: float
    seconds: float
    records: list[dict[str, float]] = field(repr=False)
    tuning: StepChoice | None = field(default=None, repr=False)
    solver: str = ""
    """The second-order solvers that ran, in order; empty for a first-order method."""
    tables: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """The arrays that ``warm_start`` continues from."""
    selection_passes: float = 0.0
    """How many of the passes were spent on selecting the step."""

    @property
    def run_passes(self) -> float:
        """Passes of the run itself, without those that selected the step."""
        return self.passes - self.selection_passes

    @property
    def cost(self) -> str:
        """The passes in words: those of the run, and those that selected the step."""
        return passes_in_words(self.run_passes, self.selection_passes)

    @property
    def trace(self) -> pd.DataFrame:
        """The run as recorded, one row per recording."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(TRACE_COLUMNS))

    def plot(self, **options: Any) -> Any:
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
            "passes": self.cost.replace(" passes", "", 1),
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
           "gap", "stopped_on", "passes", "seconds", "records", "solver", "selection_passes")  # fmt: skip
"""The fields of a result that are stored as they are."""


def _encode(result: Result, encode: codec.Encode) -> dict[str, Any]:
    """All of a result but its tables: a loaded model starts again from its coefficients."""
    held = {name: getattr(result, name) for name in _STORED}
    return {"held": encode(held | {"status": result.status.name, "kkt": tuple(result.kkt)})}


def _decode(stored: dict[str, Any], decode: codec.Decode) -> Result:
    held = decode(stored["held"])
    held = {"solver": "", "selection_passes": 0.0} | held  # files of 0.1.0 have neither
    if set(held) != {*_STORED, "status", "kkt"}:
        raise ValueError("a result lacks some of its fields")
    return Result(**(held | {"status": Status[held["status"]], "kkt": KKT(*held["kkt"])}))


codec.register("result", Result, _encode, _decode)
