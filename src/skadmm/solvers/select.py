"""The choice of the method for a problem, and of its second-order solvers: one table, read from the top; the first row
whose fact holds (``situation.py``) decides.

A row names the solvers in the order in which they take over from each other: the first runs until it meets the
tolerance, stalls or becomes slow, and the next continues from its point. Where all of a row have stalled, those of
``last_resorts.py`` follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from skadmm._names import unknown
from skadmm.problem import separation
from skadmm.problem.problem import Problem
from skadmm.problem.smoothing import smoothed
from skadmm.solvers.base import ALGORITHMS, Algorithm, Engine, Setup, inverse, register
from skadmm.solvers.dual_update import Point
from skadmm.solvers.last_resorts import rescuers
from skadmm.solvers.registry import BY_OUTPUT, FOR_KINKS, SOLVERS, Solvers, start_alone
from skadmm.solvers.second_order import l1_rows
from skadmm.solvers.second_order.base import Entry, SolverEngine
from skadmm.solvers.second_order.block_descent import BlockDescent
from skadmm.solvers.second_order.block_newton import BlockNewton
from skadmm.solvers.second_order.chain_descent import ChainDescent
from skadmm.solvers.second_order.conic import Conic
from skadmm.solvers.second_order.coordinate_descent import CoordinateDescent
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
from skadmm.solvers.second_order.signal_interior_point import SignalInteriorPoint
from skadmm.solvers.second_order.signal_newton import SignalNewton
from skadmm.solvers.second_order.working_set import WorkingSet
from skadmm.solvers.situation import (
    Situation,
    few_on_workers,
    prefers_conjugate_gradients,
    prefers_interior_point,
    works_along_chains,
    works_by_output,
)

Running = SolverEngine[Any]


class Row(NamedTuple):
    """A row of the table."""

    when: Callable[[Situation], bool]
    """A fact of a situation."""
    solvers: Solvers
    because: str
    """Why these solvers, as ``Result.message`` says it."""


TABLE = (
    Row(Situation.smooth_outputs, (LimitedMemory, OutputDescent), "several outputs, and the problem is smooth"),
    Row(Situation.sparse_groups, (OutputSweeps,), "several outputs, sparse rows, and groups of coefficients"),
    Row(Situation.several_outputs, (OutputDescent,), "several outputs, and the penalty separates over blocks"),
    Row(Situation.joined_within_bounds, (Conic, NewtonADMM), "the loss joins outputs, and psi is a constraint"),
    Row(Situation.is_coupled, (NewtonADMM,), "the loss joins several outputs"),
    Row(Situation.small_graph_signal, (ChainDescent, InteriorPoint), "it is a signal over a graph"),
    Row(Situation.is_graph_signal, (ChainDescent,), "it is a signal over a graph"),
    Row(Situation.small_graph_trend, (GraphTrendADMM, InteriorPoint), "it is a trend over a graph"),
    Row(Situation.is_graph_trend, (GraphTrendADMM,), "it is a trend over a graph"),
    Row(Situation.is_signal, (InteriorPoint,), "the Hessian is diagonal"),
    Row(Situation.is_curved_signal, (SignalNewton,), "every sample involves one coefficient"),
    Row(Situation.blocks_on_workers, (BlockNewton,), "many features in blocks, rows on workers"),
    Row(Situation.bounded_blocks, (BlockDescent, Multipliers), "the penalty separates, with bounds, over features"),
    Row(Situation.few_samples_within_bounds, (Conic, Multipliers), "psi is a constraint, and samples are few"),
    Row(Situation.only_multipliers, (Multipliers,), "B has no inverse, or psi is a constraint"),
    Row(Situation.conic_split, (Multipliers,), "B is not −I"),
    Row(Situation.general_split, (Multipliers, NewtonADMM), "B is not −I"),
    Row(Situation.separates_on_path, (BlockDescent,), "the penalty separates over blocks of features"),
    Row(Situation.works_on_blocks, (BlockDescent,), "the penalty separates over blocks of features"),
    Row(
        Situation.sparse_squares,
        (BlockDescent, ReducedNewton),
        "a lasso with squared loss, with few features or few that leave zero",
    ),
    Row(Situation.general_rows, (RowInteriorPoint,), "many features, few samples, and A is not a graph"),
    Row(Situation.many_on_workers, (ReducedNewton,), "many features, rows on workers"),
    Row(Situation.joined_features, (MultipliersCG,), "many features, in rows or groups that share them"),
    Row(Situation.dense_model, (NewtonADMM,), "a dense second-order model fits"),
    Row(Situation.has_long_rows, (WorkingSet,), "many features, rows of A with three entries or more"),
    Row(Situation.tied_chains, (ProxGradient, ReducedNewton), "the penalty lies along chains"),
    Row(
        Situation.weak_squares,
        (RowInteriorPoint, ReducedNewton),
        "a lasso with squared loss, fewer samples than features and a very small strength",
    ),
    Row(Situation.few_leave_zero, (CoordinateDescent, ReducedNewton), "few features will leave zero"),
    Row(Situation.untied, (ProxGradient, ReducedNewton), "no feature is tied to another"),
    Row(Situation.anything_else, (ReducedNewton,), "many features, tied by a graph"),
)


ON_BLOCKS: tuple[Solvers, ...] = ((BlockDescent,), (BlockNewton,), (OutputDescent,))
"""The rows after which a dense model takes over, where it fits."""
FOR_ALL_STRENGTHS = (
    BlockDescent, BlockNewton, OutputDescent, OutputSweeps, ChainDescent, GraphTrendADMM, InteriorPoint, SignalNewton,
    SignalInteriorPoint, ReducedNewton,
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


def refusal(problem: Problem) -> str | None:
    """Why second-order steps cannot take a problem; None when they can."""
    several = problem.n_outputs > 1
    if several and problem.loss.smooth and OutputDescent.applies(problem) is None:
        return None
    if problem.is_coupled:
        return NewtonADMM.applies(problem)
    if several and works_by_output(problem, rho_given=False):
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


def solvers_for(setup: Setup, point: Point, *, following: bool = False) -> tuple[Solvers, str]:
    """The solvers of a problem in the order in which they run, and why; `following` on a path."""
    if not setup.problem.loss.smooth:
        if SignalInteriorPoint.applies(setup.problem) is None:
            return (SignalInteriorPoint,), "the loss consists of two straight pieces"
        return (SOLVERS[FOR_KINKS],), "the loss has kinks"
    if works_by_output(setup.problem, setup.rho_given) and not (following and setup.problem.psi.subdifferentiable):
        return (SOLVERS[BY_OUTPUT],), "no term joins two outputs"
    situation = Situation(setup, point, following)
    row = next(row for row in TABLE if row.when(situation))
    if row.solvers in ON_BLOCKS and NewtonADMM.applies(setup.problem) is None:
        return (*row.solvers, NewtonADMM), row.because
    if row.solvers == (OutputDescent,):
        return (OutputDescent, OutputSweeps), row.because
    return row.solvers, row.because


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
