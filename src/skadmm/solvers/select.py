"""The choice of the method for a problem, and of its second-order solvers: one table, read from the top; the first row
whose condition holds decides.

A row names the solvers in the order in which they take over from each other: the first runs until it meets the
tolerance, stalls or becomes slow, and the next continues from its point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skadmm._names import unknown
from skadmm.kernels.rows import is_dense
from skadmm.losses import Squared
from skadmm.operators.row_correction import factor_work
from skadmm.problem import separation
from skadmm.problem.problem import Problem
from skadmm.problem.smoothing import smoothed
from skadmm.solvers.base import ALGORITHMS, Algorithm, Engine, Setup, inverse, register
from skadmm.solvers.dual_update import Point
from skadmm.solvers.registry import SOLVERS, start_alone
from skadmm.solvers.second_order import chains, conic_terms, l1_rows
from skadmm.solvers.second_order.base import Entry, SecondOrderSolver, SolverEngine
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_newton import BlockNewton
from skadmm.solvers.second_order.blocks import has_groups, has_maximum_norms
from skadmm.solvers.second_order.chain_descent import ChainDescent
from skadmm.solvers.second_order.chain_layers import layer_numbers, rows_of_two
from skadmm.solvers.second_order.conic import INSTALL, Conic, has_conic_loss
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent, violations
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic
from skadmm.solvers.second_order.graph_trend import GraphTrendADMM
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.limited_memory import LimitedMemory
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.multipliers_cg import MultipliersCG
from skadmm.solvers.second_order.newton_admm import MAX_FEATURES, NewtonADMM
from skadmm.solvers.second_order.output_descent import OutputDescent
from skadmm.solvers.second_order.output_sweeps import OutputSweeps
from skadmm.solvers.second_order.prox_gradient import ProxGradient
from skadmm.solvers.second_order.reduced_newton import ReducedNewton
from skadmm.solvers.second_order.row_interior_point import RowInteriorPoint
from skadmm.solvers.second_order.signal_newton import SignalNewton
from skadmm.solvers.second_order.tied_set import TiedSet
from skadmm.solvers.second_order.working_set import WorkingSet

Solvers = tuple[type[SecondOrderSolver[Any]], ...]
Running = SolverEngine[Any]


@dataclass(frozen=True)
class SelectionConfig:
    """Where one solver becomes faster than another; measured with ``benchmarks/`` on real and random data."""

    many_features: int = 800
    """From this many features on, clusters or a working set are faster than a dense Hessian, where they apply."""
    samples_per_feature: int = 5
    """With fewer samples per feature than this, growing batches gain nothing, and clusters are faster too."""
    few_features: int = 50
    """Up to this many features, with at least as many samples, a dense Hessian costs less than the steps it saves."""
    some_features: int = 150
    """The number of features from which clusters are faster where the solution is sparse or fused."""
    sparse_share: float = 0.01
    """A sparse or fused solution is likely where λ is at least this share of the largest entry of the gradient."""
    tied_share: float = 0.01
    """A start is sparse or fused where at least this share of the rows of Ax is zero, but not every row."""
    subset: int = 1000
    """The number of samples in the subset on which that gradient is computed."""
    max_copied: int = 100_000_000
    """Up to this many stored entries the columns of the clusters may be copied."""
    few_leaving: float = 0.5
    """Few features will leave zero where at most this share of them violates optimality at the start."""
    last_resort: int = 2000
    """Up to this many features the method of multipliers takes over from a solver that has stalled."""
    small_graph: int = 20_000
    """Up to this many nodes of a graph, interior point steps may take over on a signal."""
    many_nodes: int = 2000
    """From this many nodes of a graph on, trends of order one and two are left to ADMM, which factorises nothing but
    the Laplacian."""
    max_factor_work: float = 1e10
    """Multiplications of one factorisation of an interior point step on a graph, by a bound of its fill."""


CONFIG = SelectionConfig()


class Situation:
    """The properties of a problem that the rows of the table use, each computed once."""

    def __init__(self, setup: Setup, point: Point, config: SelectionConfig, following: bool = False) -> None:
        self.setup, self.point, self.config, self.problem = setup, point, config, setup.problem
        self.following = following
        """True on a path, where each strength starts from the previous one."""

    @cached_property
    def one_coefficient_per_sample(self) -> bool:
        """Return whether each sample depends on one coefficient."""
        if not self.problem.backend.local_rows or self.problem.backend.several_entries:
            return False
        return not isinstance(self.problem.local.single_entries, str)

    @cached_property
    def is_signal(self) -> bool:
        """A diagonal quadratic that no other solver takes more cheaply."""
        return self.one_coefficient_per_sample and prefers_interior_point(self.problem)

    @cached_property
    def is_graph_signal(self) -> bool:
        """A signal over a graph that splits into few layers of chains."""
        return self.one_coefficient_per_sample and prefers_chain_descent(self.problem)

    @property
    def small_graph_signal(self) -> bool:
        """A graph signal on which an interior point step is affordable too."""
        return self.is_graph_signal and self.problem.n_features <= self.config.small_graph and self.is_signal

    @cached_property
    def is_graph_trend(self) -> bool:
        """A trend of order one or two over a large graph."""
        large = self.problem.n_features >= self.config.many_nodes and self.problem.constraint.line is None
        return large and GraphTrendADMM.applies(self.problem) is None

    @property
    def small_graph_trend(self) -> bool:
        """A trend over a graph on which an interior point step is affordable too."""
        return self.is_graph_trend and self.problem.n_features <= self.config.small_graph

    @cached_property
    def is_curved_signal(self) -> bool:
        """A signal under another loss than the squared one."""
        return self.one_coefficient_per_sample and prefers_signal_newton(self.problem)

    @property
    def only_multipliers(self) -> bool:
        """B without an inverse, or ψ a constraint."""
        folded, constraint = self.setup.omega_mode == "fold", self.problem.constraint
        if constraint.B is not None and not constraint.has_y_of_x:
            return True
        return not (folded or self.problem.psi.subdifferentiable)

    @property
    def few_samples_within_bounds(self) -> bool:
        """ψ a constraint, fewer samples than features, and a conic form of all terms: multipliers converge slowly."""
        wide = not self.tall and not self.setup.rho_given
        return wide and self.only_multipliers and Conic.applies(self.problem) is None and has_conic_loss(self.problem)

    @property
    def joined_within_bounds(self) -> bool:
        """A loss that joins outputs, ψ a constraint, and a conic form of all terms: sweeps of ADMM converge slowly."""
        joined = self.problem.is_coupled and not self.setup.rho_given
        return joined and self.only_multipliers and Conic.applies(self.problem) is None

    @property
    def bounded_blocks(self) -> bool:
        """ψ is, in part, a constraint, and separates over blocks of features."""
        return not self.problem.psi.subdifferentiable and self.separates

    @property
    def general_split(self) -> bool:
        """A general B, for which y of every sweep would be an iteration of its own."""
        given = self.setup.rho_given
        return self.problem.constraint.B is not None and not given and Multipliers.applies(self.problem) is None

    @cached_property
    def several_outputs(self) -> bool:
        """Several outputs, with a penalty that separates over disjoint blocks of their coefficients."""
        return self.problem.n_outputs > 1 and works_on_outputs(self.problem, self.setup.rho_given)

    @property
    def smooth_outputs(self) -> bool:
        """Several outputs, and nothing but the loss and a squared norm."""
        return self.several_outputs and LimitedMemory.applies(self.problem) is None

    @property
    def sparse_groups(self) -> bool:
        """Several outputs, sparse rows, many coefficients in groups: a sweep over columns costs less than a Gram
        matrix."""
        many = self.problem.n_features > MAX_FEATURES and self.several_outputs
        return many and has_groups(self.problem) and not is_dense(self.problem.rows.rows)

    @cached_property
    def separates(self) -> bool:
        """Return whether the penalty separates over disjoint blocks of features."""
        if self.setup.rho_given or BlockDescent.applies(self.problem) is not None:
            return False
        return not slow_on_blocks(self.problem)

    @property
    def works_on_blocks(self) -> bool:
        """Return whether block descent is the fastest solver at a single strength too."""
        few = self.problem.n_features < self.config.many_features
        if few and self.problem.psi.separable and self.problem.omega.separable:
            return False  # there are no groups
        return self.separates and works_on_blocks(self.problem, self.setup.rho_given)

    @property
    def many_on_workers(self) -> bool:
        """Are there many features, and rows elsewhere, from which a dense model would have to be sent at every step?"""
        return clusters_on_workers(self.problem, self.setup.rho_given)

    @property
    def blocks_on_workers(self) -> bool:
        """Are there many features, rows elsewhere, and a penalty over disjoint blocks that is no ℓ1 norm alone?"""
        return blocks_on_workers(self.problem, self.setup.rho_given)

    @cached_property
    def dense_model(self) -> bool:
        """Return whether a dense model over all features is the fastest; on a path it is with few features."""
        if self.following and self.problem.n_features < self.config.some_features:
            return True
        return not (prefers_clusters(self) or few_at_once(self.problem, self.setup.rho_given))

    @cached_property
    def has_short_rows(self) -> bool:
        """Rows of A with one or two entries, each with an ℓ1 term."""
        return l1_rows.has_short_rows(self.problem)

    @cached_property
    def chains(self) -> chains.ChainPenalty | None:
        """The penalty, where it lies along chains."""
        return chains.penalty_along_chains(self.problem)

    @property
    def general_rows(self) -> bool:
        """Few samples, and many features in rows of A that are no graph."""
        return prefers_row_interior_point(self.problem, self.setup.rho_given)

    @property
    def joined_features(self) -> bool:
        """More features than a dense model takes, joined in a way that leaves neither clusters nor blocks."""
        return prefers_conjugate_gradients(self.problem, self.setup.rho_given)

    @property
    def tall(self) -> bool:
        """At least as many samples as features."""
        return self.problem.n_samples >= self.problem.n_features

    @property
    def tied_chains(self) -> bool:
        """Chains that tie features, with samples enough for the loss to be curved."""
        return self.chains is not None and self.chains.ties and self.tall

    @cached_property
    def gradient_of_subset(self) -> np.ndarray:
        """The gradient at the start, of a subset of the samples."""
        every = self.problem.n_samples // self.config.subset
        subset = self.problem if every <= 1 else self.problem.subset(np.arange(0, self.problem.n_samples, every))
        self.point.clock[1] += subset.n_samples
        return subset.gradient(self.point.x)

    @property
    def strong(self) -> bool:
        """The solution is likely to be sparse or fused: λ is not small against the gradient."""
        largest = float(np.abs(self.gradient_of_subset).max())
        return bool(np.median(l1_rows.checked_strengths(self.problem)) >= self.config.sparse_share * largest)

    @property
    def sparse_squares(self) -> bool:
        """The lasso with the squared loss, rows in memory, and few features in all or few that will leave zero."""
        if not isinstance(self.problem.loss, Squared) or self.problem.backend.slow_reads or not self.untied:
            return False
        if not (self.separates and self.strong):
            return False
        few = self.problem.n_features < self.config.some_features
        return few or self._share_leaving(self.gradient_of_subset) <= self.config.few_leaving

    def _share_leaving(self, gradient: np.ndarray) -> float:
        """The share of the features that violate optimality at the start, where none is tied to another."""
        threshold = chains.chains_of(self.problem).threshold
        return float(np.mean(violations(self.point.x, gradient, threshold) > 0.0))

    @cached_property
    def few_leave_zero(self) -> bool:
        """No feature is tied to another, and most will stay at zero."""
        if self.chains is None or self.chains.ties:
            return False
        if not self.tall or self.problem.is_sparse:
            return True
        evaluation, touched = self.problem.backend.evaluations.at(self.point.x)
        self.point.clock[1] += touched
        return self._share_leaving(evaluation.gradient) <= self.config.few_leaving

    @property
    def untied(self) -> bool:
        """No feature is tied to another."""
        return self.chains is not None and not self.chains.ties


class Row(NamedTuple):
    """A row of the table."""

    when: Callable[[Situation], bool]
    solvers: Solvers
    because: str


TABLE = (
    Row(lambda s: s.smooth_outputs, (LimitedMemory, OutputDescent), "several outputs, and the problem is smooth"),
    Row(lambda s: s.sparse_groups, (OutputSweeps,), "several outputs, sparse rows, and groups of coefficients"),
    Row(lambda s: s.several_outputs, (OutputDescent,), "several outputs, and the penalty separates over blocks"),
    Row(lambda s: s.joined_within_bounds, (Conic, NewtonADMM), "the loss joins outputs, and psi is a constraint"),
    Row(lambda s: s.problem.is_coupled, (NewtonADMM,), "the loss joins several outputs"),
    Row(lambda s: s.small_graph_signal, (ChainDescent, InteriorPoint), "it is a signal over a graph"),
    Row(lambda s: s.is_graph_signal, (ChainDescent,), "it is a signal over a graph"),
    Row(lambda s: s.small_graph_trend, (GraphTrendADMM, InteriorPoint), "it is a trend over a graph"),
    Row(lambda s: s.is_graph_trend, (GraphTrendADMM,), "it is a trend over a graph"),
    Row(lambda s: s.is_signal, (InteriorPoint,), "the Hessian is diagonal"),
    Row(lambda s: s.is_curved_signal, (SignalNewton,), "every sample involves one coefficient"),
    Row(lambda s: s.blocks_on_workers, (BlockNewton,), "many features in blocks, rows on workers"),
    Row(lambda s: s.bounded_blocks, (BlockDescent, Multipliers), "the penalty separates, with bounds, over features"),
    Row(lambda s: s.few_samples_within_bounds, (Conic, Multipliers), "psi is a constraint, and samples are few"),
    Row(lambda s: s.only_multipliers, (Multipliers,), "B has no inverse, or psi is a constraint"),
    Row(lambda s: s.general_split and Conic.applies(s.problem) is None, (Multipliers,), "B is not −I"),
    Row(lambda s: s.general_split, (Multipliers, NewtonADMM), "B is not −I"),
    Row(lambda s: s.following and s.separates, (BlockDescent,), "the penalty separates over blocks of features"),
    Row(lambda s: s.works_on_blocks, (BlockDescent,), "the penalty separates over blocks of features"),
    Row(
        lambda s: s.sparse_squares,
        (BlockDescent, ReducedNewton),
        "a lasso with squared loss, with few features or few that leave zero",
    ),
    Row(lambda s: s.general_rows, (RowInteriorPoint,), "many features, few samples, and A is not a graph"),
    Row(lambda s: s.many_on_workers, (ReducedNewton,), "many features, rows on workers"),
    Row(lambda s: s.joined_features, (MultipliersCG,), "many features, in rows or groups that share them"),
    Row(lambda s: s.dense_model, (NewtonADMM,), "a dense second-order model fits"),
    Row(lambda s: not s.has_short_rows, (WorkingSet,), "many features, rows of A with three entries or more"),
    Row(lambda s: s.tied_chains, (ProxGradient, ReducedNewton), "the penalty lies along chains"),
    Row(lambda s: s.few_leave_zero, (CoordinateDescent, ReducedNewton), "few features will leave zero"),
    Row(lambda s: s.untied, (ProxGradient, ReducedNewton), "no feature is tied to another"),
    Row(lambda s: True, (ReducedNewton,), "many features, tied by a graph"),
)


FOR_KINKS = "dual-proximal"
"""The solver of losses that are not differentiable. It imports this file: the smooth problems that it solves get their
solvers from the table."""
BY_OUTPUT = "separate-outputs"
"""The solver of several outputs that no term joins. It imports this file too."""
ON_BLOCKS: tuple[Solvers, ...] = ((BlockDescent,), (BlockNewton,), (OutputDescent,))
"""The rows after which a dense model takes over, where it fits."""
FOR_ALL_STRENGTHS = (
    BlockDescent, BlockNewton, OutputDescent, OutputSweeps, ChainDescent, GraphTrendADMM, InteriorPoint, SignalNewton,
    ReducedNewton,
)  # fmt: skip
"""Solvers that stay on a path from the strength at which they are chosen. Their choice depends only on the structure of
the penalty, or what they keep from the last solution saves more than another solver would."""


class Choice(NamedTuple):
    """A method, the block size for it, and the reason."""

    method: str
    batch_size: int
    reason: str


def check_method(name: str) -> None:
    """Raise ValueError where a name is neither "auto" nor that of a method or a solver."""
    known = ("auto", *ALGORITHMS, *SOLVERS)
    if name not in known:
        raise ValueError(unknown("method", name, known))


def choose(problem: Problem) -> Choice:
    """The method of ``method="auto"``: second-order where d² fits and the model allows it, else SA-IU-ADMM in
    blocks."""
    n, d = problem.n_samples, problem.n_features
    why_not = refusal(problem)
    if why_not is None:
        return Choice("san-admm", 1, f"auto chose san-admm: second-order steps suit {n} samples of {d} features")
    if not (problem.backend.local_rows or problem.backend.block_memory):
        return Choice("batch-iu-admm", problem.backend.natural_batch, f"auto chose batch-iu-admm: {why_not}")
    if not problem.backend.local_rows:
        return Choice("sa-iu-admm", problem.backend.natural_batch, f"auto chose sa-iu-admm: {why_not}")
    per_row = max(1.0, problem.nnz / problem.n_rows)
    balanced = (d + problem.constraint.A.nnz) / per_row
    batch_size = int(min(max(1.0, balanced), max(1, problem.n_rows // 32)))
    return Choice(
        "sa-iu-admm",
        batch_size,
        f"auto chose sa-iu-admm: {why_not}; blocks of {batch_size} balance the work on rows and on x and y",
    )


def works_on_blocks(problem: Problem, rho_given: bool) -> bool:
    """Return whether block descent solves a single strength: for groups, and for many features with other terms than
    ℓ1."""
    if rho_given or BlockDescent.applies(problem) is not None or slow_on_blocks(problem):
        return False
    many = problem.n_features >= CONFIG.many_features and not l1_rows.has_short_rows(problem)
    return many or has_groups(problem)


def works_on_outputs(problem: Problem, rho_given: bool) -> bool:
    """Return whether block descent solves a problem of several outputs."""
    return not rho_given and OutputDescent.applies(problem) is None and not slow_on_blocks(problem)


def works_by_output(problem: Problem, rho_given: bool) -> bool:
    """Return whether several outputs are solved one after the other, because no term joins them."""
    if problem.n_outputs == 1 or rho_given or not problem.loss.smooth or works_on_outputs(problem, rho_given):
        return False
    return separation.reason_against(problem) is None


def slow_on_blocks(problem: Problem) -> bool:
    """Return whether block descent is slow: the penalty has ℓ∞ norms of blocks, on which it takes no Newton steps, the
    loss is not quadratic, and a dense model is cheap because there are few features."""
    few = problem.n_features < CONFIG.many_features and not isinstance(problem.loss, Squared)
    return few and has_maximum_norms(problem) and NewtonADMM.applies(problem) is None


def solvers_for(setup: Setup, point: Point, *, following: bool = False) -> tuple[Solvers, str]:
    """The solvers of a problem in the order in which they run, and why; `following` on a path."""
    if not setup.problem.loss.smooth:
        return (SOLVERS[FOR_KINKS],), "the loss has kinks"
    if works_by_output(setup.problem, setup.rho_given) and not (following and setup.problem.psi.subdifferentiable):
        return (SOLVERS[BY_OUTPUT],), "no term joins two outputs"
    situation = Situation(setup, point, CONFIG, following)
    row = next(row for row in TABLE if row.when(situation))
    if row.solvers in ON_BLOCKS and NewtonADMM.applies(setup.problem) is None:
        return (*row.solvers, NewtonADMM), row.because
    if row.solvers == (OutputDescent,):
        return (OutputDescent, OutputSweeps), row.because
    return row.solvers, row.because


def rescuers(setup: Setup, solvers: Solvers) -> Solvers:
    """The solvers that take over where all of `solvers` have stalled short of the tolerance."""
    problem = setup.problem
    if setup.tol is None or not problem.loss.smooth or SOLVERS[BY_OUTPUT] in solvers:
        return ()
    small = problem.n_features <= CONFIG.last_resort
    if small and not {Multipliers, InteriorPoint} & {*solvers} and Multipliers.applies(problem) is None:
        # Clusters of columns of very different scales converge slowly; a dense model does not depend on scales.
        dense = (NewtonADMM,) if ReducedNewton in solvers and NewtonADMM.applies(problem) is None else ()
        return (*dense, Multipliers, *last_resorts(problem, (*solvers, Multipliers)))
    return last_resorts(problem, solvers)


def last_resorts(problem: Problem, solvers: Solvers) -> Solvers:
    """The solvers that take over where all others have stalled: a conic programme where the problem is small, and
    Newton steps from its solution; an interior point method where the problem is large and its samples are few."""
    if problem.is_coupled:
        dense = (NewtonADMM,) if NewtonADMM.applies(problem) is None else ()
        return (Conic, *dense) if Conic not in solvers and Conic.applies(problem) is None else ()
    if Multipliers in solvers:
        tied = (TiedSet,) if TiedSet.applies(problem) is None else ()
        return (*tied, Conic, Multipliers) if Conic.applies(problem) is None else tied
    if RowInteriorPoint in solvers:
        return (WorkingSet,) if WorkingSet.applies(problem) is None else ()
    graph = ReducedNewton in solvers and problem.n_features > CONFIG.last_resort
    return (RowInteriorPoint,) if graph and RowInteriorPoint.applies(problem) is None else ()


def missing_last_resort(problem: Problem) -> str:
    """Advice to install a solver that could continue where a run has stalled; empty where none could."""
    missing = not conic_terms.is_installed() and problem.backend.local_rows and Conic.too_large(problem) is None
    return f"a conic solver could continue from here: {INSTALL}" if missing else ""


def prefers_row_interior_point(problem: Problem, rho_given: bool = False) -> bool:
    """Return whether there are many features, few samples, and rows of A that do not form a graph."""
    n, d = problem.n_samples, problem.n_features
    if rho_given or d < CONFIG.many_features or n > d or l1_rows.has_short_rows(problem):
        return False
    return RowInteriorPoint.applies(problem) is None


def refusal(problem: Problem) -> str | None:
    """Why second-order steps cannot take a problem; None when they can."""
    if problem.n_outputs > 1 and problem.loss.smooth and OutputDescent.applies(problem) is None:
        return None
    if problem.is_coupled:
        return NewtonADMM.applies(problem)
    if works_by_output(problem, rho_given=False):
        problem = separation.one_output(problem, 0).problem
    if not (problem.backend.local_rows or problem.backend.block_memory):
        return f"the {problem.backend.name} backend keeps rows in other processes, without state between two steps"
    if not problem.loss.smooth:
        reason = SOLVERS[FOR_KINKS].applies(problem)
        if reason is not None:
            return f"loss={problem.loss.name} has kinks: it {reason}"
        problem = smoothed(problem, 1.0)
    why_not = NewtonADMM.applies(problem)
    if why_not is None or works_along_chains(problem) or prefers_interior_point(problem):
        return None
    d = problem.n_features
    if d > MAX_FEATURES:
        if few_on_workers(problem):
            return None
        if prefers_conjugate_gradients(problem):
            return None
        if not problem.backend.local_rows:
            return f"{why_not}, and {MultipliersCG.name} cannot take this problem: {MultipliersCG.applies(problem)}"
        few_clusters = l1_rows.has_short_rows(problem) and l1_rows.starting_clusters(problem) <= MAX_FEATURES
        if few_clusters or BlockDescent.applies(problem) is None or RowInteriorPoint.applies(problem) is None:
            return None
        if WorkingSet.applies(problem) is not None:
            return (
                f"{d} features are more than second-order steps can hold ({MAX_FEATURES}), "
                "and not every feature has an ℓ1 term of its own"
            )
        return None
    return Multipliers.applies(problem)


def works_along_chains(problem: Problem) -> bool:
    """Return whether a problem is a signal along a line, or over a graph of few layers of chains, under any loss."""
    if prefers_signal_newton(problem) or prefers_chain_descent(problem):
        return True
    return problem.constraint.line is not None and InteriorPoint.applies(problem) is None


def prefers_chain_descent(problem: Problem) -> bool:
    """Return whether a problem is a signal over a graph of two or a few more layers of chains. One layer is left to a
    proximal step."""
    if problem.constraint.line is not None or ChainDescent.applies(problem) is not None:
        return False
    return not _single_proximal_step(problem)


def prefers_signal_newton(problem: Problem) -> bool:
    """Return whether a problem is a signal under another loss than the squared one, along a line or over a graph of few
    layers of chains."""
    if problem.loss.name == "squared" or SignalNewton.applies(problem) is not None:
        return False
    A = problem.constraint.A
    return problem.constraint.line is not None or (rows_of_two(A) is None and layer_numbers(A) is not None)


def _single_proximal_step(problem: Problem) -> bool:
    """Return whether one proximal step solves a problem: its penalty lies along chains, and its Hessian is a multiple
    of the identity."""
    h = DiagonalQuadratic.of(problem).h
    return bool(np.all(h == h[0])) and chains.reason_against(problem) is None


def prefers_interior_point(problem: Problem) -> bool:
    """Return whether a problem is a signal for which no other solver is faster.

    One proximal step solves a signal whose penalty lies along chains, where the Hessian is a multiple of the identity.
    On a large graph the factors fill up, and Newton steps on clusters take less.
    """
    if InteriorPoint.applies(problem) is not None:
        return False
    if problem.constraint.line is not None or not l1_rows.has_short_rows(problem):
        return True
    if problem.n_features > CONFIG.small_graph and ChainDescent.applies(problem) is None:
        return False
    A = abs(problem.constraint.A)
    return not _single_proximal_step(problem) and factor_work(A @ A.T) <= CONFIG.max_factor_work


def few_at_once(problem: Problem, rho_given: bool = False) -> bool:
    """Return whether features are solved in clusters or sets, because they are many or have few samples each."""
    if not problem.backend.local_rows:
        return False
    n, d = problem.n_samples, problem.n_features
    many = d >= CONFIG.many_features
    few_samples = n < CONFIG.samples_per_feature * d and not (n >= d and d <= CONFIG.few_features)
    if (many or (few_samples and not rho_given)) and l1_rows.has_short_rows(problem):
        return True
    return many and WorkingSet.applies(problem) is None


def clusters_on_workers(problem: Problem, rho_given: bool = False) -> bool:
    """Are clusters of features solved for on rows elsewhere? A ρ that was given is left to ADMM, where it fits."""
    d = problem.n_features
    if problem.backend.local_rows or d < CONFIG.many_features or (rho_given and d <= MAX_FEATURES):
        return False
    return ReducedNewton.applies(problem) is None


def blocks_on_workers(problem: Problem, rho_given: bool = False) -> bool:
    """Are working sets of blocks solved for on rows elsewhere? What clusters can solve for is left to them."""
    d = problem.n_features
    if problem.backend.local_rows or d < CONFIG.many_features or (rho_given and d <= MAX_FEATURES):
        return False
    return BlockNewton.applies(problem) is None and ReducedNewton.applies(problem) is not None


def prefers_conjugate_gradients(problem: Problem, rho_given: bool = False) -> bool:
    """Return whether there are more features than a dense model takes, in rows of A or groups that share them, and
    neither clusters, nor a working set, nor an interior point method can take them."""
    if problem.n_features <= MAX_FEATURES or few_at_once(problem, rho_given) or few_on_workers(problem, rho_given):
        return False
    if BlockDescent.applies(problem) is None or prefers_row_interior_point(problem, rho_given):
        return False
    return MultipliersCG.applies(problem) is None


def few_on_workers(problem: Problem, rho_given: bool = False) -> bool:
    """Are clusters or working sets solved for on rows elsewhere, so that nothing has the size of d²?"""
    return clusters_on_workers(problem, rho_given) or blocks_on_workers(problem, rho_given)


def prefers_clusters(situation: Situation) -> bool:
    """Return whether clusters are faster although a dense Hessian would fit: the solution is likely to be sparse or
    fused, or the start is. Where ρ was given, ADMM uses it."""
    setup, problem, config = situation.setup, situation.problem, situation.config
    if setup.rho_given or not problem.backend.local_rows or problem.nnz > config.max_copied:
        return False
    if problem.n_features < config.some_features or not situation.has_short_rows:
        return False
    if config.tied_share <= _share_tied(problem, situation.point.x) < 1.0:
        return True
    return situation.strong


def _share_tied(problem: Problem, x: np.ndarray) -> float:
    """The share of the rows of Ax that are zero."""
    return float(np.mean(problem.constraint.A @ x == 0.0))


def _start(setup: Setup, point: Point) -> Engine:
    if setup.solver:
        return start_alone(setup, point)
    reason = refusal(setup.problem) if setup.omega_mode != "fold" else None
    if reason is not None:
        raise ValueError(f"method='san-admm': {reason}")
    solvers, because = solvers_for(setup, point)
    engine = start(setup, point, solvers)
    engine.reason = because
    return engine


def start(
    setup: Setup, point: Point, solvers: Solvers, configs: Mapping[str, Any] | None = None, rho: float | None = None
) -> Running:
    """An engine that runs the solvers one after the other; `configs` has Configs of their own, by name."""

    def entries(of: Solvers) -> list[Entry]:
        return [Entry(solver, (configs or {}).get(solver.name)) for solver in of]

    first, *then = entries(solvers)
    solver = first.solver(setup, first.config)
    state = solver.init(point, setup.rho if rho is None else rho)
    return SolverEngine(solver, state, then, lambda: entries(rescuers(setup, solvers)))


register(
    Algorithm(
        name="san-admm",
        summary="Stochastic average Newton ADMM: second-order surrogates, certified answers",
        reference="This package; contains Zhong and Kwok (2013) with hᵢaᵢaᵢᵀ → L·I",
        gradient="average",
        linearised=False,
        constant_step=True,
        omega=("system", "fold"),
        start=_start,
        theory_step=lambda problem, rho: inverse(problem.L),
        full=True,
        stepless=True,
        certifies=True,
    )
)
