"""What a second-order solver may ask about the samples, wherever they are kept.

The oracle keeps three numbers per sample: its margin zᵢ = aᵢ·x, and the slope and curvature of its loss there. A solver
sees sums over samples only. One step is

    begin     choose the samples, a growing batch or all of them, and the point where their margins start
    along     Σ of the losses along a step (``ends``, ``losses``): a line search costs no further reading of rows
    settle    take the step, all samples (``join``: a batch): the sums that a quadratic model is made of
    renew     bring Σ h a aᵀ up to date, where a model is needed

Oracles: ``local.py`` (rows in memory), ``single_pass.py`` (rows in files), ``remote.py`` (rows on a cluster), and
``speculative.py``, which saves a slow oracle most of its requests.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm.oracle.batches import GrowingBatch
from skadmm.problem.free_columns import FreeColumns

LARGE_SHIFT = 0.5
"""The shift of a margin by a step above which a sample counts as a large-shift sample."""
LARGE_SHIFT_SHARE = 0.02
"""The maximum share of the samples that are revisited as large-shift samples."""


MOST_SHIFTED = 0.5
"""Where more than this share of the margins have large shifts, only samples with curvature are revisited, if few."""
CURVED = 1e-3
"""A sample counts as having curvature where its curvature is at least this share of the largest one."""


class LostMemory(Exception):  # noqa: N818
    """Raised where the numbers kept for some samples are lost: call ``restart`` and evaluate all samples again."""


class ModelSums(Protocol):
    """The sums over samples of which a quadratic model is made; a solver keeps them."""

    H: np.ndarray
    """Σ h a aᵀ."""
    q: np.ndarray
    """Σ (h z − slope) a."""
    squares: np.ndarray
    """Σ a²."""
    seen: int
    """The number of samples."""


class Ends(NamedTuple):
    """Σ of the losses at both ends of a step."""

    start: float
    end: float


class BatchSums(NamedTuple):
    """The changes that a batch makes to the model after a step."""

    H: Any
    """The change of Σ h a aᵀ: a matrix, or 0.0 for none."""
    q: np.ndarray
    """The change of Σ (h z − slope) a."""
    squares: np.ndarray
    """Σ a² over the samples that are new; zero for the others."""
    max_curvature: float


class FullSums(NamedTuple):
    """Sums over all samples after a step."""

    gradient: np.ndarray
    """Σ slope a."""
    max_curvature: float


class CurvatureChange(NamedTuple):
    """The changes that bring Σ h a aᵀ up to date."""

    H: Any
    """The change of Σ h a aᵀ: a matrix, or 0.0 for none."""
    squares: Any
    """Σ a² where the sums are built from zero; else 0.0."""


class ShiftAlong(NamedTuple):
    """Sums over the large-shift samples along a step."""

    slope: float
    """Σ slope · move, where `move` is the move of each margin."""
    curvature: float
    """Σ h · move², with the curvatures in H."""
    start: float
    """Σ of the losses at the start of the step."""
    end: float
    """Σ of the losses at its end."""
    longest: float
    """The largest move of a margin."""


class ShiftSums(NamedTuple):
    """The changes that a step on the large-shift samples makes to the model."""

    H: np.ndarray
    """The change of Σ h a aᵀ."""
    q: np.ndarray
    """The change of Σ (h z − slope) a."""


class MarginsAndSlopes(NamedTuple):
    """The margin and the slope of every sample at the point where all of them were last evaluated."""

    margins: np.ndarray
    slopes: np.ndarray


class LargeShifts(Protocol):
    """Steps on the samples whose margins the last step shifted most; the others keep their expansions."""

    def threshold(self) -> float:
        """The shift above which a sample is a large-shift sample; ∞ where there are none."""

    def curved(self, limit: float) -> float:
        """The curvature above which at most `limit` samples shifted by more than LARGE_SHIFT, where more than a share
        of MOST_SHIFTED of all samples did; 0 otherwise.

        The expansions of samples without curvature are nearly exact, because the tail of a loss is linear. Where
        classes are separable or nearly so, most samples are in that tail.
        """

    def begin(self, threshold: float, count: int | None = None, curvature: float = -1.0) -> int:
        """Copy the samples whose margins moved by more than `threshold` and whose curvature is above `curvature`, for
        steps of their own, and return their number. A caller that passes `count` saves a request."""

    def along(self, step: np.ndarray) -> ShiftAlong:
        """Sums of the losses of the copied samples along a step."""

    def losses(self, t: float) -> float:
        """Σ of the losses of the copied samples at t times that step."""

    def move(self, length: float) -> ShiftSums:
        """Take `length` times the step."""

    def end(self) -> None:
        """Return to all samples, at the margins they had before; H keeps the changes of these steps."""


class SampleOracle(Protocol):
    """Margins, slopes and curvatures of the samples, and sums over them."""

    @property
    def large_shifts(self) -> LargeShifts:
        """Steps on the samples whose margins moved most."""

    @property
    def free_columns(self) -> FreeColumns:
        """Newton's steps on the coefficients that no penalty reaches, for a certificate."""

    def begin(
        self, batch: GrowingBatch | None, x: np.ndarray | None, new: bool = False, stale: float | None = None
    ) -> None:
        """Choose the samples of a batch, or all where it is None. Margins start at `x`, or at their current values
        where it is None.

        `new` and `stale` are what ``join`` or ``renew`` will be given if the step is taken whole; `stale` is None where
        no model will be needed. Only a speculative oracle uses them.
        """

    def along(self, step: np.ndarray | None, t: float) -> float:
        """Σ of the losses at t times a step, with slopes and curvatures there; a step of None stays at the start."""

    def ends(self, step: np.ndarray) -> Ends:
        """Σ of the losses at t = 0 and at t = 1; slopes and curvatures are those at 1."""

    def losses(self, t: float) -> float:
        """Σ of the losses at another t of the same step, with slopes and curvatures there."""

    def join(self, length: float, new: bool) -> BatchSums:
        """Take `length` times the step of a batch; `new` where its samples were never part of H."""

    def settle(self, length: float) -> FullSums:
        """Take `length` times the step of all samples."""

    def renew(self, stale: float, afresh: bool) -> CurvatureChange:
        """Bring Σ h a aᵀ up to date over samples whose curvature changed by more than `stale`; `afresh` starts at 0."""

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w), θ the slopes at the last evaluation, or those that ``free_columns`` has found."""

    def margins_and_slopes(self) -> MarginsAndSlopes | None:
        """The margins and slopes of every sample; None where they are not in this process."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""

    def resume(self, state: dict[str, Any]) -> bool:
        """Restore the state of a checkpoint. Returns False where it could not be found, so that the samples have to be
        evaluated again."""

    def restart(self) -> None:
        """Forget all samples, as at the beginning."""

    def close(self) -> None:
        """Release everything, because the run has ended."""


class SinglePass(SampleOracle, Protocol):
    """An oracle that can compute all of a step in one request, assuming that the step will be taken whole."""

    def batch_ahead(self, step: np.ndarray | None, new: bool) -> tuple[Ends, BatchSums]:
        """``ends`` of a step and what ``join(1.0, new)`` would return."""

    def batch_taken(self) -> None:
        """Take the step of ``batch_ahead`` whole."""

    def evaluate_ahead(self, step: np.ndarray | None, both: bool, stale: float | None) -> Ahead:
        """Σ of the losses at both ends of a step, or only at its end, and what follows if it is taken whole."""

    def evaluation_taken(self) -> None:
        """Take the step of ``evaluate_ahead`` whole."""

    def renewed(self, stale: float) -> None:
        """Record that H has been brought up to date by the sum of ``evaluate_ahead``."""


class Ahead(NamedTuple):
    """All samples along a step, and after it if it is taken whole."""

    ends: Ends
    sums: FullSums
    """What ``settle(1.0)`` would return."""
    H: Any
    """What ``renew`` would add to Σ h a aᵀ: a matrix, or 0.0 for none."""
    large_shifts: int
    """The number of margins that would have moved by more than LARGE_SHIFT."""
