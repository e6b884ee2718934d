"""The settings of SAN-ADMM (``newton_admm.py``), and what it keeps between two steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skadmm.backends.base import Evaluation
from skadmm.io.state import transient
from skadmm.oracle import SampleOracle
from skadmm.oracle.batches import BatchConfig
from skadmm.solvers.second_order.base import OracleState
from skadmm.solvers.second_order.quadratic_model import ModelConfig, ModelState


@dataclass(frozen=True)
class NewtonADMMConfig(ModelConfig, BatchConfig):
    """Settings of SAN-ADMM, with those of its batches and of the sweeps on its models."""

    batch_sweeps: int = 10
    """The maximum number of sweeps on the model of a batch."""
    batch_tolerance: float = 1e-4
    """The relative residuals at which sweeps on the model of a batch end."""
    slow_decrease: float = 0.1
    """Where H is that of a part of the samples and a step decreases the objective by more than this share of the
    decrease before it, H is built from all samples."""
    batch_damping: float = 1.0
    """The damping τ of a batch's model, times the number of samples seen."""
    full_sweeps: int = 150
    """The maximum number of sweeps on the model of all samples, times the number of evaluations so far."""
    max_sweeps: int = 3000
    """The maximum number of sweeps on one model, for any number of evaluations."""
    small_model: float = 3e6
    """Sweeps that have not reached their tolerance continue, with ρ balanced between rounds, for up to `exact_rounds`
    rounds that together take at most this many multiplications."""
    full_tolerance: float = 1e-5
    """The relative residuals at which sweeps on the model of all samples end; each evaluation divides them by ten."""
    min_tolerance: float = 1e-12
    """The smallest relative residuals at which sweeps end."""
    first_damping: float = 1e-6
    """The damping τ of the first full model, which is divided by three after every whole step."""
    min_damping: float = 1e-12
    """The smallest damping τ."""
    max_end_damping: float = 1.0
    """The largest damping τ with which a small predicted decrease ends a run."""
    raised_damping: float = 1e-4
    """The smallest damping τ after a step that had to be shortened, times the share of its maximum curvature that the
    loss has at the point."""
    revisit_large_shifts: bool = True
    """True where samples with large shifts take steps of their own."""
    large_shift_rounds: int = 3
    """The maximum number of such steps after one evaluation."""
    large_shift_sweeps: int = 20
    """The number of sweeps after each such step."""
    curved_share: float = 0.25
    """Where most samples have large shifts, those of them with curvature take such steps, with as many sweeps as on the
    model of all samples. This is the maximum share of such samples."""
    curved_entries: float = 4e6
    """The maximum number of entries in the rows of such samples, which are copied and therefore read again where they
    are in files."""
    settled_move: float = 0.1
    """Steps on samples with large shifts end when no margin moves by more than this."""
    longest_step: float = 16.0
    """A step is lengthened up to this many times where the objective decreases faster than its model along it."""
    max_refusals: int = 6
    """The solver stops after this many refused steps in a row."""
    many_evaluations: int = 25
    """The number of evaluations of all samples after which another solver may take over."""
    stale_curvature: float = 0.01
    """Curvature is brought up to date in H where it changed by more than this share of the largest; a tenth of it at
    each further evaluation."""
    certify_below: float = 100.0
    """A certificate is computed when the objective last fell by no more than this times √tol, relatively: steps are
    Newton's, so the next decrease is about the square of this one."""
    adapt_rho: bool | None = None
    """True where sweeps may change ρ; None allows it where ρ was not given."""
    polish_answer: bool = True
    """True refines the solution on the pattern of y at the end. A path does not, because the next strength continues
    from the point."""
    stop_on_model: bool = False
    """Stop when the model predicts a relative decrease of the objective below tol, without a certificate, and return
    the model's minimiser. It saves half of the evaluations; cross-validation uses it."""
    exact_rounds: int = 10
    """The maximum number of rounds of ``full_sweeps`` sweeps on one model, with ρ balanced between them, where the
    minimiser of the model is needed."""
    exact_tolerance: float = 1e-6
    """The relative residuals at which the minimiser of a model counts as found."""


@dataclass(kw_only=True)
class NewtonADMMState(OracleState):
    """State of SAN-ADMM. ``point.x`` is the newest candidate; ``objective`` is that of the anchor, over all samples,
    known from the first full evaluation on."""

    anchor: np.ndarray
    """The last point that a line search accepted."""
    place: np.ndarray
    """The point where all samples were last evaluated."""
    loss: float = np.inf
    """The mean loss at that point."""
    gradient: np.ndarray
    """The gradient of the mean loss at the anchor."""
    H: np.ndarray
    """Σ h a aᵀ over the samples seen."""
    q: np.ndarray
    """Σ (h z − slope) a over them."""
    squares: np.ndarray
    """Σ a² over them."""
    seen: int = 0
    """How many samples are part of H."""
    placed: bool = False
    """True where the margins of all samples are those at the anchor."""
    batch: int = 0
    """The number of the next growing batch."""
    full_evaluations: int = 0
    """The number of evaluations of all samples at this strength of ψ."""
    refusals: int = 0
    """Steps refused in a row."""
    decrease: float = 0.0
    """The relative decrease of the objective in the last line search."""
    decrease_before: float = np.inf
    """The same in the step before it, where H is that of a part of the samples in both."""
    predicted_decrease: float = np.inf
    """The relative decrease that the model at the anchor predicts, where the solver stops on that."""
    tau: float
    """The damping of the model."""
    max_curvature: float = 0.0
    """The largest curvature at the last evaluation."""
    stale: float = 0.0
    """The change of a curvature above which it is brought up to date in H."""
    certified: bool = False
    """True where ``lower_bound`` includes the bound of the current anchor and multiplier."""
    answered: bool = False
    """True where ``point`` is the solution and ``objective`` its objective."""
    model: ModelState
    """The state of the sweeps."""
    oracle: SampleOracle = transient()
    """Margins, slopes and curvatures of the samples, wherever they are kept; a checkpoint stores it separately."""
    refined: Evaluation | None = transient(default=None)
    """At the anchor, where the end of the run has refined it."""
