"""Proximal Newton steps for signals under losses other than the squared one.

    minimise over x      Σ_j f_j(x_j) + Σ bound_e |(A x)_e|

Every sample sees one coefficient, so the loss is a sum of functions f_j of one coefficient each, and its second-order
model is a diagonal quadratic: a signal under squared loss, which the solvers of those minimise exactly. Where a loss is
flat (Huber's beyond δ, the logistic one far out) a share of its largest curvature is added; the share falls while the
model predicts well, and rises where it does not.

The multiplier u of a model gives the bound. Its slopes g_j = f_j'(x) + h_j Δ_j equal −(Aᵀu)_j, to all digits since no
product with A is taken, and |u| is within its bounds, so that −Σ f_j*(g_j) is a lower bound of the optimum.

References
----------
Lee, J. D., Sun, Y. and Saunders, M. A. (2014). Proximal Newton-type methods for minimizing composite functions. SIAM
Journal on Optimization 24.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.backends.base import Evaluation
from skadmm.kernels import loss_functions
from skadmm.kernels.compile import kernel
from skadmm.operators.line import Line
from skadmm.problem.certificate import Assessment, Certificate, dual_rounding
from skadmm.problem.problem import COUPLED, Problem
from skadmm.solvers import dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.base import SecondOrderSolver, SolverState, ridge_of
from skadmm.solvers.second_order.chain_descent import ChainDescent, Structure, structure_of
from skadmm.solvers.second_order.chain_layers import layer_numbers, rows_of_two
from skadmm.solvers.second_order.diagonal_quadratic import DiagonalQuadratic
from skadmm.solvers.second_order.interior_point import InteriorPoint, no_signal
from skadmm.solvers.second_order.l1_rows import row_strengths

MAX_SCALINGS = 60
"""The maximum number of trials in the search for the scale that brings slopes into the domain of the conjugate."""


@kernel
def _curvatures(loss, z, b, out):
    """ℓ'' of each sample."""
    for i in range(z.size):
        out[i] = loss_functions.curvature(loss, z[i], b[i])


@dataclass(frozen=True)
class SignalNewtonConfig:
    """Settings of Newton steps on signals."""

    max_steps: int = 200
    """The maximum number of steps."""
    max_model_steps: int = 300
    """The maximum number of steps on one model."""
    first_share: float = 0.1
    """The share of the largest curvature added to every sample's at the start."""
    smallest_share: float = 1e-9
    """The smallest share that is added."""
    largest_share: float = 1e6
    """The largest share that is added; the solver stops above it."""
    fall: float = 0.1
    """The factor of the share after a step whose decrease was predicted well."""
    rise: float = 8.0
    """The factor of the share after a step that was not taken."""
    good_ratio: float = 0.5
    """A prediction is good where the decrease is at least this share of it."""
    sufficient: float = 1e-4
    """A step is taken where the decrease is at least this share of the prediction."""
    polynomial_steps: int = 6
    """Newton steps that make slopes orthogonal to polynomials, for the bound along a line."""
    orthogonality: float = 1e-12
    """Slopes whose part along polynomials is larger than this share after those steps give no bound."""
    rounding: float = 1e-14
    """A predicted decrease below this share of the objective is rounding: the solver stops."""


@dataclass(kw_only=True)
class SignalNewtonState(SolverState):
    """State of Newton steps on signals."""

    share: float
    """The share of the largest curvature that is added."""


class _Model(NamedTuple):
    """The minimiser of a model."""

    x: np.ndarray
    y: np.ndarray
    multiplier: np.ndarray
    slopes: np.ndarray
    """The slopes of the model of each f_j at the minimiser."""
    decrease: float
    """The predicted decrease, from the objective at the start to the model's minimum."""


class SignalNewton(SecondOrderSolver[SignalNewtonState]):
    """x ← the minimiser of the second-order model at x. A step counts the samples it evaluates."""

    name = "signal-newton"
    summary = "Proximal Newton steps on signals: any smooth loss, one feature per sample, ψ = ℓ1"
    Config: ClassVar[type[Any]] = SignalNewtonConfig
    config: SignalNewtonConfig

    def __init__(self, setup: Setup, config: SignalNewtonConfig | None = None) -> None:
        super().__init__(setup, config)
        problem = setup.problem
        entries = problem.local.single_entries
        assert not isinstance(entries, str), "see applies()"
        self.entries = entries
        self.ridge = np.broadcast_to(np.asarray(ridge_of(problem), dtype=np.float64), problem.n_features)
        strengths = row_strengths(problem.psi, problem.n_split)
        assert strengths is not None, "see applies()"
        self.strengths = strengths
        self.full = entries.squares
        self.structure = self._layers()

    @classmethod
    def applies(cls, problem: Problem) -> str | None:
        """Every sample sees one coefficient, and ψ is an ℓ1 norm with positive weights, B = −I and c = 0."""
        if problem.is_coupled:
            return COUPLED
        return no_signal(problem)

    def init(self, point: Point, rho: float) -> SignalNewtonState:
        """Start from the given point, whose y must be Ax."""
        point.y[:] = self.problem.constraint.A @ point.x
        return SignalNewtonState(point=point, rho=rho, multiplier=rho * point.dual, share=self.config.first_share)

    def step(self, state: SignalNewtonState) -> None:
        """Minimise the model, and move to its minimiser where the objective decreases."""
        _cancel.check_cancelled()
        config, point = self.config, state.point
        here = self._evaluate(state, point.x)
        state.objective = self._objective(here, point.x, point.y)
        model = self._minimised(state, here)
        there = self._evaluate(state, model.x)
        objective = self._objective(there, model.x, model.y)
        # A loss of unbounded curvature has very large slopes after a step that is far too long; their rounding would
        # make the bound useless.
        if objective <= state.objective + abs(state.objective):
            self._raise_bound(state, there, model, objective)
        objective = objective if np.isfinite(objective) else np.inf
        fallen, negligible = state.objective - objective, config.rounding * abs(state.objective)
        if fallen >= config.sufficient * model.decrease - negligible:
            point.x[:], point.y[:] = model.x, model.y
            state.multiplier = model.multiplier
            point.dual[:] = model.multiplier / state.rho
            state.objective = objective
            if fallen >= config.good_ratio * model.decrease - negligible:
                state.share = max(config.fall * state.share, config.smallest_share)
        else:
            state.share *= config.rise
        state.finished = self.tol is not None and self.optimality(state)[1] <= self.tol
        tired = state.steps + 1 >= config.max_steps or state.share > config.largest_share
        state.stalled = not state.finished and (tired or model.decrease <= negligible)

    def finish(self, state: SignalNewtonState) -> None:
        """The last point is the answer."""

    def certificate(self, state: SignalNewtonState) -> Certificate | None:
        """Bounds from the multipliers of the models."""
        return None if state.objective == np.inf else Certificate(state.objective, state.lower_bound)

    def optimality(self, state: SignalNewtonState) -> tuple[str, float]:
        """The relative duality gap."""
        return "gap", Certificate(state.objective, state.lower_bound).relative

    def assessed(self, state: SignalNewtonState, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The last point, with the bounds of its run."""
        certificate = self.certificate(state)
        if certificate is None or not (np.array_equal(x, state.point.x) and np.array_equal(y, state.point.y)):
            return None
        evaluation = self.problem.backend.evaluations.uncounted(x)
        kkt = self.problem.kkt(x, y, state.multiplier, evaluation.gradient, evaluation.loss)
        return Assessment(evaluation.loss, evaluation.gradient, kkt, certificate)

    # -- the model -------------------------------------------------------------------------------------------------

    def _evaluate(self, state: SignalNewtonState, x: np.ndarray) -> Evaluation:
        evaluation, touched = self.problem.backend.evaluations.at(x)
        state.point.clock[1] += touched
        return evaluation

    def _objective(self, evaluation: Evaluation, x: np.ndarray, y: np.ndarray) -> float:
        return evaluation.loss + 0.5 * float(x @ (self.ridge * x)) + float(self.strengths @ np.abs(y))

    def _by_feature(self, per_sample: np.ndarray) -> np.ndarray:
        """Σ wᵢ aᵢⱼ² cᵢ / n of each feature."""
        return self.entries.by_feature(per_sample[self.entries.sample] * self.entries.value**2)

    def _minimised(self, state: SignalNewtonState, here: Evaluation) -> _Model:
        """The minimiser of the second-order model at the point."""
        problem, x = self.problem, state.point.x
        curvature = self._curvature(here)
        largest = min(problem.loss.curvature_bound, max(float(curvature.max()), 1.0))
        h = self._by_feature(curvature) + state.share * largest * self.full + self.ridge
        slope = here.gradient + self.ridge * x
        line = problem.constraint.line
        quadratic = DiagonalQuadratic(
            h, self.ridge, h * x - slope, self._constant(h, slope, x), problem.constraint.A, line
        )
        solver = self._model_solver(quadratic)
        inner = solver.init(dual_update.start(problem, x, state.point.y, None), state.rho)
        for _ in range(self.config.max_model_steps):
            if inner.finished or inner.stalled:
                break
            solver.step(inner)
            inner.steps += 1
        solver.finish(inner)
        move = inner.point.x - x
        predicted = float(slope @ move) + 0.5 * float(move @ (h * move)) + float(self.strengths @ np.abs(inner.point.y))
        decrease = float(self.strengths @ np.abs(state.point.y)) - predicted
        return _Model(inner.point.x, inner.point.y, inner.multiplier, slope + h * move, decrease)

    def _curvature(self, here: Evaluation) -> np.ndarray:
        """ℓ'' of each sample."""
        assert here.margins is not None
        out = np.empty(self.problem.n_samples)
        _curvatures(self.problem.loss, here.margins, self.problem.target, out)
        return out

    @staticmethod
    def _constant(h: np.ndarray, slope: np.ndarray, x: np.ndarray) -> float:
        """The constant of a squared loss with the same model: ½ Σ h t² at the targets t = x − slope/h."""
        return 0.5 * float(np.sum((h * x - slope) ** 2 / h))

    def _layers(self) -> Structure | None:
        A = self.problem.constraint.A
        if self.problem.constraint.line is not None or rows_of_two(A) is not None or layer_numbers(A) is None:
            return None
        return structure_of(self.problem, DiagonalQuadratic(self.full, self.ridge, self.full, 0.0, A, None))

    def _model_solver(self, quadratic: DiagonalQuadratic) -> Any:
        if self.structure is None:
            return InteriorPoint(self.setup, None, quadratic)
        return ChainDescent(self.setup, None, self.structure._replace(quadratic=replace(quadratic, line=None)))

    # -- the bound -------------------------------------------------------------------------------------------------

    def _raise_bound(self, state: SignalNewtonState, there: Evaluation, model: _Model, objective: float) -> None:
        """The bound of the model's slopes; along a line, where that is not good enough, that of the loss's own."""
        rounding = dual_rounding(self.problem, max(there.loss, objective))
        known = self.certifier.consistent(state.lower_bound, objective)  # that of a point with a far larger objective
        state.lower_bound = max(known, self.certifier.consistent(self._bound(there, model) - rounding, objective))
        line, tol = self.problem.constraint.line, 0.0 if self.tol is None else self.tol
        if line is not None and Certificate(objective, state.lower_bound).relative > tol:
            bound = self._bound_along(line, state, model.x) - rounding
            state.lower_bound = max(state.lower_bound, self.certifier.consistent(bound, objective))

    def _bound_along(self, line: Line, state: SignalNewtonState, x: np.ndarray) -> float:
        """The dual objective of the slopes of the loss itself at x plus a polynomial, the one that makes them
        orthogonal to all polynomials, so that they are −Aᵀu. They and u are scaled until u is within its bounds.
        −∞ where no such polynomial is found: other slopes prove nothing."""
        basis, config = line.null_space(), self.config
        for made in range(config.polynomial_steps + 1):
            evaluation = self._evaluate(state, x)
            slope = evaluation.gradient + self.ridge * x
            if not np.all(np.isfinite(slope)):
                return -np.inf
            along = basis.T @ slope
            left, size = float(np.linalg.norm(along)), float(np.linalg.norm(slope))
            if left <= config.rounding * size:
                break
            if made == config.polynomial_steps:
                if left > config.orthogonality * size:
                    return -np.inf
                break
            h = self._by_feature(self._curvature(evaluation)) + self.ridge
            try:
                x = x - basis @ np.linalg.solve(basis.T @ (h[:, None] * basis), along)
            except np.linalg.LinAlgError:
                return -np.inf
            if not np.all(np.isfinite(x)):
                return -np.inf
        u = np.abs(line.multiplier(-slope))
        scale = min(1.0, float(np.min(self.strengths / np.maximum(u, 1e-300))))
        total = self.problem.backend.mean_conjugate(evaluation.slopes, scale)
        return -float(total) - 0.5 * scale**2 * float(x @ (self.ridge * x)) if np.isfinite(total) else -np.inf

    def _bound(self, there: Evaluation, model: _Model) -> float:
        """The dual objective of the model's slopes, shared out among the samples; −∞ where no scale makes it finite."""
        wanted = model.slopes - self.ridge * model.x - there.gradient
        change = np.zeros(self.problem.n_samples)
        entries = self.entries
        part = entries.value * (wanted / self.full)[entries.feature]
        change[entries.sample] = part * entries.weight[entries.sample] if entries.weight.size else part
        slopes = there.slopes + change
        held = 0.5 * float(model.x @ (self.ridge * model.x))
        backend, short = self.problem.backend, 0.0
        for _ in range(MAX_SCALINGS):
            scale = 1.0 - short
            total = backend.mean_conjugate(slopes, scale)
            if np.isfinite(total):
                return -float(total) - scale**2 * held
            short = max(2.0 * short, 1e-15)
            if short > 0.5:
                break
        return -np.inf
