"""When a run ends: its limits, and how an ending is described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from skadmm.run.result import Status

MEASURES = {"gap": "duality gap", "kkt": "KKT residual"}
"""What a tolerance is compared with, by the name that ``Result.stopped_on`` gives it."""


@dataclass(frozen=True)
class Limits:
    """When a run ends, and how often it is recorded."""

    passes: float
    """Passes over the data, step selection excluded."""
    seconds: float
    """The time limit; infinite where there is none."""
    tol: float | None
    record_every: float
    """Passes between two recordings; infinite for the start and the end only."""


class Ending(NamedTuple):
    """How a run ended."""

    status: Status
    message: str
    """A sentence about it, without its full stop."""
    stopped_on: str | None = None
    """The measure that met the tolerance; None where none did."""
    cut_short: bool = False
    """True where the run ended in the middle of a step."""


def solved(measure: str, reached: float, tol: float) -> Ending:
    """The tolerance was met."""
    return Ending(Status.SOLVED, f"the relative {MEASURES[measure]} {reached:.2e} met tol={tol:g}", measure)


def out_of_time(limits: Limits, *, cut_short: bool = False) -> Ending:
    """The time limit was reached."""
    return Ending(Status.TIME_LIMIT, f"the time limit of {limits.seconds:g} s was reached", cut_short=cut_short)


def out_of_passes(limits: Limits) -> Ending:
    """The limit of passes was reached."""
    reached = f"the limit of {limits.passes:g} passes was reached"
    return Ending(Status.PASS_LIMIT, reached if limits.tol is not None else f"{reached}; no tol was given to stop at")


def interrupted(*, cut_short: bool = False) -> Ending:
    """The user pressed Ctrl-C."""
    return Ending(Status.INTERRUPTED, "interrupted; x is the last good iterate", cut_short=cut_short)


STALLED = Ending(
    Status.STALLED, "no step improves the objective any more, because of rounding or because the problem is ill-posed"
)
STOPPED = Ending(Status.STOPPED, "a callback asked to stop")


def diverged(cause: str, *, has_step: bool) -> Ending:
    """Numbers are no longer finite, or the objective has grown without bound."""
    advice = "Try a smaller step, or step='auto'" if has_step else "Rescale the columns of X and the target"
    return Ending(Status.DIVERGED, f"{cause}; x is the last good iterate. {advice}")
