"""The method of multipliers with Newton steps: the engine that arrives where ADMM's sweeps on a model do not.

With y split off by K v + k = s (v is x; where B is not −I, x and y together, and A x + B y = c are rows with s = 0),

    φ(v) = f(x) + min over s of g(s) + (σ/2)‖K v + k − s + u/σ‖² + (κ/2)‖v − v₀‖²_M

is convex and differentiable, with a semismooth gradient: its second derivative is H_f + σKᵀ(I − J)K + κM, J the
Jacobian of the prox of g (``regularizers/_envelope.py``). Newton steps with a line search minimise it to any accuracy;
then the multiplier u becomes σ(w − prox(w)), a subgradient of g, the centre v₀ moves to v, and σ grows where the
constraint lags behind. It converges for any convex problem, whatever the rank of A, B or X, and near the solution the
steps are few; each reads all samples and factorises a matrix of the size of v.

References
----------
Rockafellar, R. T. (1976). Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
Li, X., Sun, D. and Toh, K.-C. (2018). A highly efficient semismooth Newton augmented Lagrangian method for solving
lasso problems. SIAM Journal on Optimization 28.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from skadmm import _cancel
from skadmm.kernels.expansion import add_squares, expand, expand_along, margins, sum_outer, sum_rows
from skadmm.kernels.threads import one_thread
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.problem.problem import Problem
from skadmm.regularizers._envelope import can_differentiate, envelope_curvature, parts_of, prox_with_steps
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.line_search import ROUNDING
from skadmm.solvers.second_order.point_engine import PointEngine, ridge_of
from skadmm.solvers.second_order.polish import polished

LARGEST = 5000
"""The most variables for which the Newton matrix is formed and factorised."""
LEAST_CURVATURE = 1e-6
"""A column counts with at least this share of the median curvature when rows of the constraint are weighted."""
FIRST_PROXIMITY, LEAST_PROXIMITY = 1e-3, 1e-8
"""κ at first and at least; a tenth of it after every change of the multiplier."""
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-9, 1e-13, 1e3
"""The diagonal of the Newton matrix is increased by this share; more after a short step, less after a whole one."""
INNER, LEAST_INNER = 0.1, 1e-13
"""The gradient of φ must fall to this share of the constraint's residual, both relative, before u changes."""
LEAST_SIGMA = 1e-8
"""σ at first is at least this share of the one that gives loss and constraint the same curvature."""
LAGGING, GROWTH, MOST_GROWTH = 0.3, 5.0, 1e9
"""σ grows by a factor where a change of u leaves more than this share of the constraint's residual; at most so far."""
MOST_TRIALS, FLAT, SHORT = 30, 0.1, 1e-2
"""Of a line search: points tried, the share of the slope that may be left, and a length that asks for more damping."""
MANY_STEPS = 12
"""More Newton steps than this between two changes of the multiplier mean that σ is too large."""
MANY_NEWTON_STEPS = 150
"""Where it is fast it takes fewer steps than this; another solver may take over then."""
MOST_REFUSALS = 8
MOST_IDLE = 60
"""So many changes of the multiplier without a better measure of optimality mean that rounding allows no more."""


def refusal(problem: Problem) -> str | None:
    """Why the method of multipliers cannot take a problem; None when it can."""
    size = problem.n_features + (0 if problem.constraint.B is None else problem.n_split)
    if not problem.backend.local_rows:
        return "its rows are on a cluster"
    if size > LARGEST:
        return f"{size} variables are more than a Newton matrix can hold ({LARGEST})"
    if problem.n_split and not can_differentiate(problem.psi, problem.n_split):
        return f"psi={type(problem.psi).__name__} has no derivative of its prox at this size"
    return None


def constraint_values(problem: Problem, x: np.ndarray) -> np.ndarray:
    """A x − c, exactly zero where it is nothing but rounding."""
    y = np.asarray(problem.y_of_x(x))
    y[np.abs(y) <= 1e-13 * (abs(problem.constraint.A) @ np.abs(x))] = 0.0
    return y


def _inverse_reach(matrix: Any, curvature: np.ndarray) -> np.ndarray:
    """1 / Σ_j a_ej²/curvature_j for each row e; the median for rows of zeros."""
    reach = np.asarray((matrix.multiply(matrix) @ sp.diags_array(1.0 / curvature)).sum(axis=1)).ravel()
    seen = reach > 0.0
    inverse = np.full(reach.size, 1.0 / float(np.median(reach[seen])) if seen.any() else 1.0)
    inverse[seen] = 1.0 / reach[seen]
    return inverse


class Multipliers(PointEngine):
    """The method of multipliers in motion. One step is one Newton step: one evaluation of all samples."""

    solver_name = "multipliers"
    FIXED = ("tol", "ridge", "folded", "metric", "weight", "offset", "every")

    def __init__(self, setup: Setup, point: Point, rho: float | None = None) -> None:
        problem = self.problem = setup.problem
        self.point, self.tol = point, setup.tol
        self.rho = setup.rho if rho is None else rho
        self.ridge = ridge_of(problem) if setup.omega_mode == "system" else 0.0
        self.folded = setup.omega_mode == "fold"
        self.certifier = Certifier(problem)
        self.certificate: Certificate | None = None
        self.finished = self.stalled = False
        n, d, p = problem.n_samples, problem.n_features, problem.n_split
        self.samples, self.every = problem.samples(), np.arange(n)
        constraint = problem.constraint
        if constraint.B is None:
            self.K, self.offset = constraint.A, -constraint.c
        else:
            pick = sp.hstack([sp.csr_array((p, d)), sp.eye_array(p)], format="csr")
            equal = sp.hstack([constraint.A, constraint.B], format="csr")
            self.K = sp.csr_array(sp.vstack([pick, equal], format="csr"))
            self.offset = np.concatenate([np.zeros(p), -constraint.c])
        self.Kt = sp.csr_array(self.K.T)
        squares = np.zeros(d)
        add_squares(problem.rows, self.every, squares)
        self.parts = parts_of(problem.psi, p)
        self.metric = np.zeros(self.K.shape[1])
        self.metric[:d] = problem.loss.curvature_bound * squares / n + self.ridge
        self.weight = self._row_weights()
        self.metric += np.asarray((sp.diags_array(self.weight) @ self.K.multiply(self.K)).sum(axis=0)).ravel()
        self.metric[self.metric == 0.0] = 1.0
        self.v = np.concatenate([point.x, point.y])[: self.K.shape[1]]
        self.u = np.zeros(self.K.shape[0])
        self._take_multiplier(self.rho * point.dual)
        self.centre = self.v.copy()
        self.sigma, self.kappa, self.tau = 1.0, FIRST_PROXIMITY, FIRST_DAMPING
        self.z, self.move = np.zeros(n), np.zeros(n)
        self.slope, self.curvatures = np.empty(n), np.empty(n)
        self.loss = np.inf
        """The mean loss at v."""
        self.residual_before = np.inf
        """The constraint's residual at the last change of the multiplier."""
        self.refusals, self.idle, self.steps = 0, 0, 0
        self.first_size = 0.0
        """Of the loss's gradient at the start: what is left of it counts against that."""
        self.newton_steps = 0
        """Since the multiplier last changed."""
        self.settled = False
        """Is φ at its minimum, as far as rounding allows?"""
        self.evaluated = False
        # The best point so far, by the measure that the run stops on.
        self.reached, self.objective, self.lower_bound = np.inf, np.inf, -np.inf
        self.x, self.y = point.x.copy(), point.y.copy()
        self.multiplier = self.rho * point.dual

    # -- what the loop sees ----------------------------------------------------------------------------------

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many Newton steps as `order` has entries."""
        with one_thread():
            for _ in order:
                if self.finished or self.point.clock[1] >= until:
                    return
                if not self.evaluated:
                    self._start()
                self._step()
                self.give_up()
                self._step_made()
                self.steps += 1

    @property
    def slow(self) -> bool:
        """Has it come to its end, or made more steps than it takes where it is fast, short of the tolerance?"""
        many = self.stalled or (self.steps >= MANY_NEWTON_STEPS and not self.finished)
        return many and self.tol is not None and self.reached > self.tol

    def optimality(self) -> tuple[str, float]:
        """The relative gap, or the relative KKT residual where there is no certificate."""
        return ("gap" if self._gapped and self.lower_bound > -np.inf else "kkt"), self.reached

    @property
    def _gapped(self) -> bool:
        """Is there a duality gap to stop on?"""
        return self.certifier.kind != "none" and self.problem.y_of_x(self.x) is not None

    def finish(self) -> None:
        """The best point, exactly fused and sparse."""
        with one_thread():
            if not self.evaluated:
                self._start()
            if not self.finished:
                self._evaluate()
            self._polish()
        self.give_up()
        if self._gapped:
            self.certificate = Certificate(self.objective, self.lower_bound)

    def give_up(self) -> None:
        """The best point so far."""
        self.point.x[:], self.point.y[:] = self.x, self.y
        self.point.dual[:] = self.multiplier / self.rho

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        super().restore(tables)
        self.v = np.concatenate([self.point.x, self.point.y])[: self.K.shape[1]]
        self.centre = self.v.copy()
        self._take_multiplier(self.multiplier)
        self.x, self.y = self.point.x.copy(), self.point.y.copy()
        self.evaluated = False

    # -- parts -----------------------------------------------------------------------------------------------

    def _row_weights(self) -> np.ndarray:
        """For each row of K the σ at which its curvature is that of the loss; the same over a part of g that is not
        separable. Columns and rows of any scale count alike then."""
        constraint, d = self.problem.constraint, self.problem.n_features
        known = self.metric[:d][self.metric[:d] > 0.0]
        curvature = np.maximum(self.metric[:d], LEAST_CURVATURE * (float(np.median(known)) if known.size else 1.0))
        weight = _inverse_reach(constraint.A, curvature)
        if constraint.B is not None:
            # y has no curvature of its own: it takes that of the rows it stands in.
            of_y = np.asarray((sp.diags_array(weight) @ constraint.B.multiply(constraint.B)).sum(axis=0)).ravel()
            weight = np.concatenate([of_y, weight])
        for part in self.parts:
            if not part.reg.separable:
                weight[part.where] = np.exp(np.mean(np.log(weight[part.where])))
        return weight

    @property
    def penalty_parameter(self) -> np.ndarray:
        """σ of each row."""
        return self.sigma * self.weight

    def _take_multiplier(self, beta: np.ndarray) -> None:
        if self.problem.constraint.B is None:
            self.u[:] = beta
        else:
            self.u[:] = np.concatenate([-self.problem.constraint.Bt(beta), beta])

    def _give_multiplier(self, u: np.ndarray) -> np.ndarray:
        return u.copy() if self.problem.constraint.B is None else u[self.problem.n_split :].copy()

    def _prox(self, w: np.ndarray) -> np.ndarray:
        s, steps = np.zeros_like(w), 1.0 / self.penalty_parameter
        for part in self.parts:
            s[part.where] = prox_with_steps(part.reg, w[part.where], steps[part.where])
        return s

    def _start(self) -> None:
        d = self.problem.n_features
        margins(self.problem.rows, self.every, self.v[:d], self.z)
        self.loss = (
            float(expand(self.samples, self.every, self.z, self.slope, self.curvatures)) / self.problem.n_samples
        )
        self.point.clock[1] += self.problem.n_samples
        self.evaluated = True
        self.first_size = max(self.first_size, self._size(np.append(self._gradient(), np.zeros(self.v.size - d))))
        self.sigma = self._first_sigma()
        self._evaluate()

    def _first_sigma(self) -> float:
        """σ for which the thresholds of the prox are of the size of K v after one Newton step on the loss."""
        gradient = np.zeros_like(self.v)
        gradient[: self.problem.n_features] = self._gradient()
        moved = self._solve(self._matrix(None), gradient)
        size = float(np.linalg.norm(self.weight * (self.K @ (self.v + moved) + self.offset)))
        bound = self.problem.psi.lipschitz(self.problem.n_split) if self.problem.n_split else 0.0
        if not 0.0 < bound < np.inf or size == 0.0:
            return 1.0
        return float(np.clip(bound / size, LEAST_SIGMA, 1.0))

    def _gradient(self) -> np.ndarray:
        """Of the loss, at v's x."""
        return sum_rows(self.problem.rows, self.every, self.slope, self.problem.nnz) / self.problem.n_samples

    def _merit(self, v: np.ndarray, loss: float) -> float:
        """φ(v) less a constant."""
        d, p = self.problem.n_features, self.problem.n_split
        w = self.K @ v + self.offset + self.u / self.penalty_parameter
        s = self._prox(w)
        away = v - self.centre
        psi = self.problem.psi_value(s[:p]) if p else 0.0
        split = 0.5 * float((w - s) @ (self.penalty_parameter * (w - s)))
        near = 0.5 * self.kappa * float(away @ (self.metric * away))
        return loss + 0.5 * float(v[:d] @ (self.ridge * v[:d])) + psi + split + near

    def _step(self) -> None:
        """Change the multiplier as often as the gradient of φ is small enough; then a Newton step."""
        d = self.problem.n_features
        loss_gradient = self._gradient()
        for _ in range(50):
            w = self.K @ self.v + self.offset + self.u / self.penalty_parameter
            s = self._prox(w)
            t = self.penalty_parameter * (w - s)
            smooth = np.zeros_like(self.v)
            smooth[:d] = loss_gradient + self.ridge * self.v[:d]
            pull = self.Kt @ t
            gradient = smooth + pull + self.kappa * self.metric * (self.v - self.centre)
            scale = max(self._size(smooth), self._size(pull), 1e-10 * self.first_size, 1e-300)
            primal = self._primal_residual(s)
            if not self.settled and self._size(gradient) > max(min(INNER * primal, 1e-2 * scale), LEAST_INNER * scale):
                break
            self._change_multiplier(t, s, primal, loss_gradient)
            if self.finished:
                return
        self._newton(w, gradient)

    def _size(self, gradient: np.ndarray) -> float:
        """The norm of a gradient in which columns of different scales count alike."""
        return float(np.sqrt(np.sum(gradient**2 / self.metric)))

    def _primal_residual(self, s: np.ndarray) -> float:
        """‖K v + k − s‖ with the rows' weights, in the units of :meth:`_size`."""
        left = self.K @ self.v + self.offset - s
        return float(np.sqrt(left @ (self.weight * left)))

    def _change_multiplier(self, t: np.ndarray, s: np.ndarray, primal: float, gradient: np.ndarray) -> None:
        self.u = t
        self.settled = False
        self.centre = self.v.copy()
        self.kappa = max(0.1 * self.kappa, LEAST_PROXIMITY)
        better = self._evaluate(s, gradient)
        self.idle = 0 if better else self.idle + 1
        if self.newton_steps > MANY_STEPS:
            self.sigma /= GROWTH
        elif primal > LAGGING * self.residual_before and self.sigma < MOST_GROWTH:
            self.sigma *= GROWTH
        self.newton_steps = 0
        self.residual_before = primal
        if self.tol is not None and self.reached <= self.tol:
            self.finished = True
        elif self.idle >= MOST_IDLE:
            self.finished = self.stalled = True

    def _newton(self, w: np.ndarray, gradient: np.ndarray) -> None:
        _cancel.check_cancelled()
        step = self._solve(self._matrix(w), gradient)
        self._search(step, float(gradient @ step))

    def _matrix(self, w: np.ndarray | None) -> np.ndarray:
        """The second derivative of φ; without the envelope's where `w` is None."""
        problem, d, n = self.problem, self.problem.n_features, self.problem.n_samples
        matrix = np.zeros((self.v.size, self.v.size))
        curved = np.flatnonzero(self.curvatures)
        if curved.size:
            per_row = problem.nnz / n if problem.is_sparse else d
            matrix[:d, :d] = sum_outer(problem.rows, curved, self.curvatures / n, 0.5 * curved.size * per_row**2)
        if w is not None:
            matrix += (self.Kt @ (self._envelope(w) @ self.K)).toarray()
        diagonal = np.einsum("ii->i", matrix)
        diagonal[:d] += self.ridge
        diagonal += self.kappa * self.metric
        return matrix

    def _envelope(self, w: np.ndarray) -> sp.csr_array:
        """σ(I − J) of all rows."""
        steps = 1.0 / self.penalty_parameter
        blocks = [envelope_curvature(part.reg, w[part.where], steps[part.where]) for part in self.parts]
        equal = w.size - self.problem.n_split
        if equal:
            blocks.append(sp.eye_array(equal, format="csr"))
        whole = sp.block_diag(blocks, format="csr") if blocks else sp.csr_array((0, 0))
        return sp.csr_array(sp.diags_array(self.penalty_parameter) @ whole)

    def _solve(self, matrix: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """−(matrix + τ diag)⁻¹ gradient, in units in which the diagonal is one; zero where numbers are not finite."""
        diagonal = np.diag(matrix)
        unit = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300 + 1e-14 * self.metric))
        scaled = unit[:, None] * matrix * unit
        if not (np.isfinite(scaled).all() and np.isfinite(gradient).all()):
            return np.zeros_like(gradient)
        tau = self.tau
        while True:
            damped = scaled + tau * np.eye(unit.size)
            factor, failed = scipy.linalg.lapack.dpotrf(damped, lower=1, overwrite_a=0)
            if not failed:
                right = -unit * gradient
                step = scipy.linalg.cho_solve((factor, True), right, check_finite=False)
                step += scipy.linalg.cho_solve((factor, True), right - damped @ step, check_finite=False)
                if np.isfinite(step).all():
                    return unit * step
            tau = max(100.0 * tau, 1e-14)

    def _search(self, step: np.ndarray, slope: float) -> None:
        """Along the step to where φ, which is convex, has a tenth of its slope left; a whole step where that falls."""
        n, d = self.problem.n_samples, self.problem.n_features
        margins(self.problem.rows, self.every, step[:d], self.move)
        self.point.clock[1] += n
        before = self._merit(self.v, self.loss)
        slope = min(slope, 0.0)
        low, high, middle, loss = 0.0, np.inf, 1.0, self.loss
        for _ in range(MOST_TRIALS):
            length = middle
            trial = self.v + length * step
            loss = (
                float(expand_along(self.samples, self.every, self.z, self.move, length, self.slope, self.curvatures))
                / n
            )
            here = self._slope_along(trial, step)
            if not (np.isfinite(here) and np.isfinite(loss)) or here > FLAT * abs(slope):
                high = length
            elif here < -FLAT * abs(slope) and high < np.inf:
                low = length
            else:
                break
            middle = 0.5 * (low + high)
        if not self._merit(trial, loss) <= before + ROUNDING * abs(before):
            length, trial = 0.0, self.v
            loss = (
                float(expand_along(self.samples, self.every, self.z, self.move, 0.0, self.slope, self.curvatures)) / n
            )
        self.v = trial.copy()
        self.z += length * self.move
        self.loss = loss
        if length >= SHORT:
            self.tau = max(0.1 * self.tau, LEAST_DAMPING)
        else:
            self.tau = min(max(100.0 * self.tau, 1e-8), MOST_DAMPING)
        self.newton_steps += 1
        self.settled = length == 0.0 or -slope <= ROUNDING * max(abs(before), np.finfo(float).tiny)
        self.refusals = 0 if length > 0.0 else self.refusals + 1
        if self.refusals >= MOST_REFUSALS:
            self._evaluate()
            self.finished = self.stalled = True

    def _slope_along(self, v: np.ndarray, step: np.ndarray) -> float:
        """The derivative of φ at v along the step; slopes and `move` of the samples are those of v and of the step."""
        d, n = self.problem.n_features, self.problem.n_samples
        w = self.K @ v + self.offset + self.u / self.penalty_parameter
        t = self.penalty_parameter * (w - self._prox(w))
        smooth = float(self.slope @ self.move) / n + float(v[:d] @ (self.ridge * step[:d]))
        return smooth + float(t @ (self.K @ step)) + self.kappa * float((self.metric * (v - self.centre)) @ step)

    # -- the best point --------------------------------------------------------------------------------------

    def _evaluate(self, s: np.ndarray | None = None, gradient: np.ndarray | None = None) -> bool:
        """Measure the point that v stands for, and keep it where it is the best so far; was it?"""
        problem, d, p = self.problem, self.problem.n_features, self.problem.n_split
        if s is None:
            s = self._prox(self.K @ self.v + self.offset + self.u / self.penalty_parameter)
        beta, y = self._give_multiplier(self.u), s[:p]
        x, slope, z, loss = self.v[:d], self.slope, self.z, self.loss
        if self.folded and not np.array_equal(x, y[-d:]):
            x = y[-d:]
            evaluation = problem.backend.evaluate(x)
            self.point.clock[1] += problem.n_samples
            loss, gradient, slope, z = evaluation.loss, evaluation.gradient, evaluation.slopes, evaluation.margins
        gradient = self._gradient() if gradient is None else gradient
        exact_y = problem.y_of_x(x)
        objective = loss + problem.penalty(x, y if exact_y is None else exact_y)
        if self._gapped:
            kept = self.objective, self.multiplier
            self.objective, self.multiplier = objective, beta
            self.point.clock[1] += self._raise_bound(slope, z, gradient, y == 0)
            self.objective, self.multiplier = kept
            reached = Certificate(objective, self.lower_bound).relative
            if self.lower_bound == -np.inf:  # no dual point was found
                reached = problem.kkt(x, y, beta, gradient, loss).relative
            better = objective <= self.objective
            if not better and self.lower_bound > -np.inf:
                self.reached = Certificate(self.objective, self.lower_bound).relative
        else:
            reached = problem.kkt(x, y, beta, gradient, loss).relative
            better = reached < self.reached or not np.isfinite(self.objective)
        if better:
            gained = reached < 0.9 * self.reached
            self.reached, self.objective, self.multiplier = reached, objective, beta
            self.x, self.y = x.copy(), y.copy()
            return gained
        return False

    def _polish(self) -> None:
        """The best point with y's zeros exact in A x, where that is no worse."""
        problem, d, n = self.problem, self.problem.n_features, self.problem.n_samples
        if self.folded or problem.constraint.B is not None or not problem.n_split:
            return
        evaluation = problem.backend.evaluate(self.x)
        z, slope, curvatures = np.asarray(evaluation.margins), np.empty(n), np.empty(n)
        expand(self.samples, self.every, z, slope, curvatures)
        per_row = problem.nnz / n if problem.is_sparse else d
        H = sum_outer(problem.rows, np.flatnonzero(curvatures), curvatures / n, 0.5 * n * per_row**2)
        np.einsum("ii->i", H)[:] += self.ridge
        q = H @ self.x - evaluation.gradient - self.ridge * self.x
        refined = polished(problem, self.x, self.y, H, q)
        self.point.clock[1] += 2 * n
        if refined is None or np.array_equal(refined, self.x):
            return
        seen = problem.backend.evaluate(refined)
        self.point.clock[1] += n
        y = constraint_values(problem, refined)
        objective = seen.loss + problem.penalty(refined, y)
        if objective > self.objective + ROUNDING * abs(self.objective):
            return
        if not self._gapped:
            reached = problem.kkt(refined, y, self.multiplier, seen.gradient, seen.loss).relative
            if reached > max(self.reached, self.tol or 0.0):
                return
            self.reached = reached
        self.x, self.y, self.objective = refined, y, objective
