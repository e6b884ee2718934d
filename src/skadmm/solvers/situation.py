"""The facts about a problem on which the choice of its solvers depends, each with the reason why it matters.

A fact is a function of a problem where other parts of the package ask for it too, and else a property of a
:class:`Situation`: a problem at the start of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from skadmm.kernels.rows import is_dense
from skadmm.losses import Squared
from skadmm.operators.row_correction import factor_work
from skadmm.problem import separation
from skadmm.problem.problem import Problem
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order import chains, l1_rows
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_newton import BlockNewton
from skadmm.solvers.second_order.blocks import has_groups, has_maximum_norms
from skadmm.solvers.second_order.chain_descent import ChainDescent
from skadmm.solvers.second_order.chain_layers import layer_numbers, rows_of_two
from skadmm.solvers.second_order.conic import Conic, has_conic_loss
from skadmm.solvers.second_order.coordinate_descent import violations
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic
from skadmm.solvers.second_order.graph_trend import GraphTrendADMM
from skadmm.solvers.second_order.interior_point import InteriorPoint
from skadmm.solvers.second_order.limited_memory import LimitedMemory
from skadmm.solvers.second_order.multipliers import Multipliers
from skadmm.solvers.second_order.multipliers_cg import MultipliersCG
from skadmm.solvers.second_order.newton_admm import MAX_FEATURES, NewtonADMM
from skadmm.solvers.second_order.output_descent import OutputDescent
from skadmm.solvers.second_order.reduced_newton import ReducedNewton
from skadmm.solvers.second_order.row_interior_point import RowInteriorPoint
from skadmm.solvers.second_order.signal_newton import SignalNewton
from skadmm.solvers.second_order.working_set import WorkingSet

T = TypeVar("T")


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
    weak_share: float = 1e-4
    """Coordinate descent takes very many sweeps where λ is at most this share of the largest entry of the gradient and
    samples are fewer than features."""
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


class Fact(cached_property[T]):
    """A property that is computed once, and that the table can name without a situation."""

    def __call__(self, situation: Situation) -> T:
        """The property of a situation: ``Situation.tall(situation)`` is ``situation.tall``."""
        return self.__get__(situation, type(situation))


class Situation:
    """A problem at the start of a run. Every row of the table names one of its facts."""

    def __init__(self, setup: Setup, point: Point, following: bool = False) -> None:
        self.setup, self.point, self.problem = setup, point, setup.problem
        self.following = following
        """True on a path, where each strength starts from the previous one."""

    # -- several outputs -------------------------------------------------------------------------------------

    @Fact
    def is_coupled(self) -> bool:
        """The loss joins several outputs: where no row above has taken it, only a dense model can."""
        return self.problem.is_coupled

    @Fact
    def several_outputs(self) -> bool:
        """Several outputs, with a penalty that separates over disjoint blocks of their coefficients."""
        return self.problem.n_outputs > 1 and works_on_outputs(self.problem, self.setup.rho_given)

    @Fact
    def smooth_outputs(self) -> bool:
        """Several outputs, and nothing but the loss and a squared norm."""
        return self.several_outputs and LimitedMemory.applies(self.problem) is None

    @Fact
    def sparse_groups(self) -> bool:
        """Several outputs, sparse rows, many coefficients in groups: a sweep over columns costs less than a Gram
        matrix."""
        many = self.problem.n_features > MAX_FEATURES and self.several_outputs
        return many and has_groups(self.problem) and not is_dense(self.problem.rows.rows)

    # -- signals ---------------------------------------------------------------------------------------------

    @Fact
    def one_coefficient_per_sample(self) -> bool:
        """Each sample depends on one coefficient, so the Hessian of the loss is diagonal."""
        if not self.problem.backend.local_rows or self.problem.backend.several_entries:
            return False
        return not isinstance(self.problem.local.single_entries, str)

    @Fact
    def is_signal(self) -> bool:
        """A diagonal quadratic that no other solver takes more cheaply."""
        return self.one_coefficient_per_sample and prefers_interior_point(self.problem)

    @Fact
    def is_graph_signal(self) -> bool:
        """A signal over a graph that splits into few layers of chains."""
        return self.one_coefficient_per_sample and prefers_chain_descent(self.problem)

    @Fact
    def small_graph_signal(self) -> bool:
        """A graph signal on which an interior point step is affordable too."""
        return self.is_graph_signal and self.problem.n_features <= CONFIG.small_graph and self.is_signal

    @Fact
    def is_graph_trend(self) -> bool:
        """A trend of order one or two over a large graph."""
        large = self.problem.n_features >= CONFIG.many_nodes and self.problem.constraint.line is None
        return large and GraphTrendADMM.applies(self.problem) is None

    @Fact
    def small_graph_trend(self) -> bool:
        """A trend over a graph on which an interior point step is affordable too."""
        return self.is_graph_trend and self.problem.n_features <= CONFIG.small_graph

    @Fact
    def is_curved_signal(self) -> bool:
        """A signal under another loss than the squared one."""
        return self.one_coefficient_per_sample and prefers_signal_newton(self.problem)

    # -- constraints and B -----------------------------------------------------------------------------------

    @Fact
    def only_multipliers(self) -> bool:
        """B without an inverse, or ψ a constraint: sweeps of ADMM on a model cannot take either."""
        folded, constraint = self.setup.omega_mode == "fold", self.problem.constraint
        if constraint.B is not None and not constraint.has_y_of_x:
            return True
        return not (folded or self.problem.psi.subdifferentiable)

    @Fact
    def few_samples_within_bounds(self) -> bool:
        """ψ a constraint, fewer samples than features, and a conic form of all terms: multipliers converge slowly."""
        wide = not self.tall and not self.setup.rho_given
        return wide and self.only_multipliers and Conic.applies(self.problem) is None and has_conic_loss(self.problem)

    @Fact
    def joined_within_bounds(self) -> bool:
        """A loss that joins outputs, ψ a constraint, and a conic form of all terms: sweeps of ADMM converge slowly."""
        joined = self.problem.is_coupled and not self.setup.rho_given
        return joined and self.only_multipliers and Conic.applies(self.problem) is None

    @Fact
    def general_split(self) -> bool:
        """A general B, for which y of every sweep would be an iteration of its own."""
        given = self.setup.rho_given
        return self.problem.constraint.B is not None and not given and Multipliers.applies(self.problem) is None

    @Fact
    def conic_split(self) -> bool:
        """A general B, and a conic form of all terms, which is the last resort there: no dense model is needed."""
        return self.general_split and Conic.applies(self.problem) is None

    # -- blocks of features ----------------------------------------------------------------------------------

    @Fact
    def separates(self) -> bool:
        """The penalty separates over disjoint blocks of features, and block descent is not slow on them."""
        if self.setup.rho_given or BlockDescent.applies(self.problem) is not None:
            return False
        return not slow_on_blocks(self.problem)

    @Fact
    def separates_on_path(self) -> bool:
        """The same on a path, where block descent keeps margins and Gram matrix from strength to strength."""
        return self.following and self.separates

    @Fact
    def bounded_blocks(self) -> bool:
        """ψ is, in part, a constraint, and separates over blocks of features."""
        return not self.problem.psi.subdifferentiable and self.separates

    @Fact
    def works_on_blocks(self) -> bool:
        """Block descent is the fastest solver at a single strength too."""
        few = self.problem.n_features < CONFIG.many_features
        if few and self.problem.psi.separable and self.problem.omega.separable:
            return False  # there are no groups
        return self.separates and works_on_blocks(self.problem, self.setup.rho_given)

    @Fact
    def blocks_on_workers(self) -> bool:
        """Many features, rows elsewhere, and a penalty over disjoint blocks that is no ℓ1 norm alone."""
        return blocks_on_workers(self.problem, self.setup.rho_given)

    # -- many features ---------------------------------------------------------------------------------------

    @Fact
    def many_on_workers(self) -> bool:
        """Many features, and rows elsewhere, from which a dense model would have to be sent at every step."""
        return clusters_on_workers(self.problem, self.setup.rho_given)

    @Fact
    def general_rows(self) -> bool:
        """Few samples, and many features in rows of A that are no graph."""
        return prefers_row_interior_point(self.problem, self.setup.rho_given)

    @Fact
    def joined_features(self) -> bool:
        """More features than a dense model takes, joined in a way that leaves neither clusters nor blocks."""
        return prefers_conjugate_gradients(self.problem, self.setup.rho_given)

    @Fact
    def dense_model(self) -> bool:
        """A dense model over all features is the fastest; on a path it is with few features."""
        if self.following and self.problem.n_features < CONFIG.some_features:
            return True
        return not (self.prefers_clusters or few_at_once(self.problem, self.setup.rho_given))

    @Fact
    def prefers_clusters(self) -> bool:
        """Clusters are faster although a dense Hessian would fit: the solution is likely to be sparse or fused, or the
        start is. Where ρ was given, ADMM uses it."""
        problem = self.problem
        if self.setup.rho_given or not problem.backend.local_rows or problem.nnz > CONFIG.max_copied:
            return False
        if problem.n_features < CONFIG.some_features or not self.has_short_rows:
            return False
        share_tied = float(np.mean(problem.constraint.A @ self.point.x == 0.0))
        if CONFIG.tied_share <= share_tied < 1.0:
            return True
        return self.strong

    @Fact
    def has_short_rows(self) -> bool:
        """Rows of A with one or two entries, each with an ℓ1 term: features form clusters."""
        return l1_rows.has_short_rows(self.problem)

    @Fact
    def has_long_rows(self) -> bool:
        """Rows of A with three entries or more: features form no clusters."""
        return not self.has_short_rows

    @Fact
    def anything_else(self) -> bool:
        """Always true: the last row of the table."""
        return True

    # -- sparse and fused solutions --------------------------------------------------------------------------

    @Fact
    def tall(self) -> bool:
        """At least as many samples as features."""
        return self.problem.n_samples >= self.problem.n_features

    @Fact
    def chains(self) -> chains.ChainPenalty | None:
        """The penalty, where it lies along chains: its proximal step is exact and cheap."""
        return chains.penalty_along_chains(self.problem)

    @Fact
    def tied_chains(self) -> bool:
        """Chains that tie features, with samples enough for the loss to be curved."""
        return self.chains is not None and self.chains.ties and self.tall

    @Fact
    def untied(self) -> bool:
        """No feature is tied to another."""
        return self.chains is not None and not self.chains.ties

    @Fact
    def strong(self) -> bool:
        """The solution is likely to be sparse or fused: λ is not small against the gradient."""
        return self._relative_strength >= CONFIG.sparse_share

    @Fact
    def _relative_strength(self) -> float:
        """The median λ relative to the largest entry of the gradient at the start, infinite where that is zero."""
        largest = float(np.abs(self.gradient_of_subset).max())
        return float(np.median(l1_rows.checked_strengths(self.problem))) / largest if largest > 0.0 else np.inf

    @Fact
    def gradient_of_subset(self) -> np.ndarray:
        """The gradient at the start, of a subset of the samples."""
        every = self.problem.n_samples // CONFIG.subset
        subset = self.problem if every <= 1 else self.problem.subset(np.arange(0, self.problem.n_samples, every))
        self.point.clock[1] += subset.n_samples
        return subset.gradient(self.point.x)

    @Fact
    def sparse_squares(self) -> bool:
        """The lasso with the squared loss, rows in memory, and few features in all or few that will leave zero."""
        if not isinstance(self.problem.loss, Squared) or self.problem.backend.slow_reads or not self.untied:
            return False
        if not (self.separates and self.strong):
            return False
        few = self.problem.n_features < CONFIG.some_features
        return few or self._share_leaving(self.gradient_of_subset) <= CONFIG.few_leaving

    @Fact
    def weak_squares(self) -> bool:
        """The lasso with the squared loss, dense rows, fewer samples than features, and a very small λ: almost as many
        coefficients as there are samples leave zero, and sweeps over them converge slowly."""
        problem = self.problem
        if not isinstance(problem.loss, Squared) or problem.is_sparse or self.tall or not self.untied:
            return False
        if self.setup.rho_given or RowInteriorPoint.applies(problem) is not None:
            return False
        return self._relative_strength <= CONFIG.weak_share

    @Fact
    def few_leave_zero(self) -> bool:
        """No feature is tied to another, and most will stay at zero."""
        if not self.untied:
            return False
        if not self.tall or self.problem.is_sparse:
            return True
        evaluation, touched = self.problem.backend.evaluations.at(self.point.x)
        self.point.clock[1] += touched
        return self._share_leaving(evaluation.gradient) <= CONFIG.few_leaving

    def _share_leaving(self, gradient: np.ndarray) -> float:
        """The share of the features that violate optimality at the start, where none is tied to another."""
        threshold = chains.chains_of(self.problem).threshold
        return float(np.mean(violations(self.point.x, gradient, threshold) > 0.0))


def works_on_outputs(problem: Problem, rho_given: bool) -> bool:
    """Return whether block descent solves a problem of several outputs."""
    return not rho_given and OutputDescent.applies(problem) is None and not slow_on_blocks(problem)


def works_by_output(problem: Problem, rho_given: bool) -> bool:
    """Return whether several outputs are solved one after the other, because no term joins them."""
    if problem.n_outputs == 1 or rho_given or not problem.loss.smooth or works_on_outputs(problem, rho_given):
        return False
    return separation.reason_against(problem) is None


def works_on_blocks(problem: Problem, rho_given: bool) -> bool:
    """Return whether block descent solves a single strength: for groups, and for many features with other terms than
    ℓ1."""
    if rho_given or BlockDescent.applies(problem) is not None or slow_on_blocks(problem):
        return False
    many = problem.n_features >= CONFIG.many_features and not l1_rows.has_short_rows(problem)
    return many or has_groups(problem)


def slow_on_blocks(problem: Problem) -> bool:
    """Return whether block descent is slow: the penalty has ℓ∞ norms of blocks, on which it takes no Newton steps, the
    loss is not quadratic, and a dense model is cheap because there are few features."""
    few = problem.n_features < CONFIG.many_features and not isinstance(problem.loss, Squared)
    return few and has_maximum_norms(problem) and NewtonADMM.applies(problem) is None


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


def prefers_row_interior_point(problem: Problem, rho_given: bool = False) -> bool:
    """Return whether there are many features, few samples, and rows of A that do not form a graph."""
    n, d = problem.n_samples, problem.n_features
    if rho_given or d < CONFIG.many_features or n > d or l1_rows.has_short_rows(problem):
        return False
    return RowInteriorPoint.applies(problem) is None


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


def prefers_conjugate_gradients(problem: Problem, rho_given: bool = False) -> bool:
    """Return whether there are more features than a dense model takes, in rows of A or groups that share them, and
    neither clusters, nor a working set, nor an interior point method can take them."""
    if problem.n_features <= MAX_FEATURES or few_at_once(problem, rho_given) or few_on_workers(problem, rho_given):
        return False
    if BlockDescent.applies(problem) is None or prefers_row_interior_point(problem, rho_given):
        return False
    return MultipliersCG.applies(problem) is None


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


def few_on_workers(problem: Problem, rho_given: bool = False) -> bool:
    """Are clusters or working sets solved for on rows elsewhere, so that nothing has the size of d²?"""
    return clusters_on_workers(problem, rho_given) or blocks_on_workers(problem, rho_given)
