"""SAN-ADMM: stochastic average Newton ADMM, the second-order member of the family.

SA-ADMM replaces ℓᵢ by its linearisation at x_τᵢ plus (L/2)‖x − x_τᵢ‖². For a linear model the natural surrogate is of
second order in the margin zᵢ = aᵢ·x_τᵢ:

    ℓᵢ(x) ≈ ℓ(zᵢ) + ℓ'(zᵢ)(aᵢ·x − zᵢ) + ½ hᵢ (aᵢ·x − zᵢ)²,      hᵢ = ℓ''(zᵢ)

Its average needs only H̄ = (1/n) Σ hᵢ aᵢaᵢᵀ and q̄ = (1/n) Σ (hᵢzᵢ − ℓ'(zᵢ)) aᵢ: three scalars a sample and d², no table
of iterates. A step looks at some samples, then minimises the average and ψ by sweeps of ADMM (``_model.py``).

Which samples:
  growing   The first pass in stages, each as large as all before it; the average is over the samples seen so far. The
            rows of a stage are spread over the data, so sorted data do no harm.
  full      From then on all samples, at the same point, so the objective, its gradient and the duality gap are exact.
  hard      After a full look, the few samples whose margins moved most are looked at again on their own, several
            times: rare features creep along the loss's tail by one unit of margin a step, and that costs little here.

Margins are linear along a segment, so every look carries an exact line search from the last point accepted, at the
price of scalars only: a step that makes things worse is cut back, and more damping follows.
"""

from collections.abc import Callable

import numpy as np

from skadmm.algorithms._base import Setup
from skadmm.algorithms._model import ModelSolver
from skadmm.algorithms._split import Point
from skadmm.certificate import Certificate, Certifier
from skadmm.kernels.expansion import (
    SCALAR_WORK,
    add_squares,
    expand,
    expand_along,
    in_parts,
    loss_along,
    margins,
    sum_outer,
    sum_rows,
)
from skadmm.kernels.threads import fitting_threads
from skadmm.polish import polished

FIRST_STAGE = 32
"""The first stage holds one in so many samples …"""
ROWS_PER_FEATURE = 8
"""… but at least this many per feature."""
FIRST_LOOKS = 3
SETTLED_MOVE = 0.1
"""Hard rows are left alone once none of their margins moves by more."""
STAGE_SWEEPS, STAGE_TOLERANCE, STAGE_DAMPING = 10, 1e-4, 1.0
"""In the first pass: sweeps a model, where they may end, and τ times the samples seen."""
FULL_SWEEPS, MOST_SWEEPS = 150, 3000
FULL_TOLERANCE, LEAST_TOLERANCE = 1e-5, 1e-12
FULL_DAMPING, LEAST_DAMPING, RAISED_DAMPING = 1e-6, 1e-12, 1e-4
HARD_MOVE, HARD_SHARE, HARD_LOOKS, HARD_SWEEPS = 0.5, 0.02, 3, 20
"""A margin that moved by more than this is hard; at most this share of the samples; so many looks, and sweeps after."""
STALE_CURVATURE = 0.01
"""Curvature is brought up to date where it changed by more than this share of its largest value; a tenth of it at each
further full look."""
SHORTEST = 2.0**-20
ROUNDING = 1e-14
"""Objectives closer than this, relatively, are the same."""
MOST_REFUSALS = 6
"""So many steps refused in a row mean that rounding, or the inner sweeps, allow no more."""


class SanEngine:
    """SAN-ADMM in motion. ``point.x`` is the newest candidate, ``anchor`` the last point a line search accepted."""

    steps_per_pass = 1

    def __init__(self, setup: Setup, point: Point) -> None:
        problem = self.problem = setup.problem
        self.point = point
        self.tol = setup.tol
        self.ridge = problem.omega.strength if setup.omega_mode == "system" else 0.0
        self.folded = setup.omega_mode == "fold"
        self.solver = ModelSolver(problem, point, setup.rho, adaptive=not setup.rho_given)
        self.certifier = Certifier(problem)
        self.certificate: Certificate | None = None
        self.finished = False
        self.stalled = False
        self.refusals = 0
        self.samples = problem.samples()
        n, d = problem.n_samples, problem.n_features
        self.all = np.arange(n)
        plan = [] if setup.warm else stages(n, d)
        self.stages = plan[:1] * (FIRST_LOOKS - 1) + plan
        self.stage, self.full_looks, self.seen = 0, 0, 0
        self.known = np.zeros(n, bool)
        """Is the sample part of the model?"""
        self.anchor = point.x.copy()
        self.objective = np.inf
        """At the anchor, over all samples; known from the first full look on."""
        self.gradient = np.zeros(d)
        self.lower_bound = -np.inf
        self.z, self.slope, self.bend = np.zeros(n), np.zeros(n), np.zeros(n)
        """Margin, slope and curvature of each sample where it was last looked at."""
        self.held = np.zeros(n)
        """The curvature of each sample that is part of H."""
        self.move = np.zeros(n)
        """Scratch: the margins of a step."""
        self.moved = np.zeros(n)
        """How far each margin went between its last two looks."""
        self.H, self.q, self.squares = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        self.tau = FULL_DAMPING
        self.full_sweeps, self.looks_at_hard_rows = FULL_SWEEPS, True

    # -- what the loop sees ----------------------------------------------------------------------------------

    @property
    def rho(self) -> float:
        """The penalty parameter now."""
        return self.solver.rho

    def optimality(self) -> tuple[str, float]:
        """The relative gap at the anchor; where there is no certificate, the relative KKT residual."""
        if self.certifier.kind != "none":
            return "gap", Certificate(self.objective, self.lower_bound).relative
        if "gradient_scale" not in self.problem.__dict__:
            self._touch(self.problem.n_samples)
        kkt = self.problem.kkt(self.anchor, self.point.y, self.solver.multiplier(), self.gradient)
        return "kkt", kkt.relative

    def advance(self, order: np.ndarray) -> None:
        """As many steps as `order` has entries; which samples they look at is the schedule's own affair."""
        with fitting_threads(self.problem.n_features):
            for _ in order:
                if self.finished:
                    return
                if self.stage < len(self.stages):
                    self._growing_step()
                else:
                    self._full_step()
                self.point.clock[0] += 1
                self.point.x_sum[:] += self.point.x
                self.point.y_sum[:] += self.point.y

    def finish(self) -> None:
        """Accept or refuse the last candidate, make the answer exactly fused and sparse, and certify it."""
        with fitting_threads(self.problem.n_features):
            if self.full_looks == 0 or not (self.finished or np.array_equal(self.anchor, self._candidate())):
                self._full_look()
            self._certify()
            refined = polished(self.problem, self.anchor, self.point.y, self._mean_H(), self.q / self.seen)
        if refined is not None and not np.array_equal(refined, self.anchor):
            self._touch(self.problem.n_samples)
            objective = self.problem.objective(refined)
            if objective <= self.objective:
                self.anchor, self.objective = refined, objective
        self.point.x[:] = self.anchor
        self.certificate = Certificate(self.objective, self.lower_bound)

    def tables(self) -> dict[str, np.ndarray]:
        """The point alone: a model is quickly built anew."""
        return {name: getattr(self.point, name) for name in self.point._fields} | {"rho": np.array([self.rho])}

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point: it needs no first pass."""
        for name in self.point._fields:
            array = getattr(self.point, name)
            if name not in tables or tables[name].shape != array.shape:
                raise ValueError(f"warm_start: the earlier run has no matching table {name!r}")
            array[...] = tables[name]
        self.solver.take_up(float(tables["rho"][0]))
        self.anchor[:] = self.point.x
        self.stage = len(self.stages)

    # -- steps -----------------------------------------------------------------------------------------------

    def _growing_step(self) -> None:
        """A stage of the first pass: new samples join the average; those of the first stage are expanded anew."""
        index = self.stages[self.stage]
        new = not self.known[index[0]]
        before = self.z[index]
        old = self.held * self.z - self.slope
        self._margins(index, self.anchor, self.z)
        self._search(index)
        if new:
            self.known[index] = True
            self.seen += index.size
            add_squares(self.problem.rows, index, self.squares)
        self.H += self._outer(index, self.bend - self.held)
        self.q += self._rows(index, self.bend * self.z - self.slope - old)
        self.held[index] = self.bend[index]
        self.moved[index] = np.abs(self.z[index] - before)
        self.stage += 1
        self._minimise(STAGE_DAMPING / self.seen, STAGE_SWEEPS, STAGE_TOLERANCE)

    def _full_step(self) -> None:
        """All samples at one point: exact objective, gradient and gap; then the model, then the hard rows."""
        length = self._full_look()
        if self.tol is not None:
            self._certify()
        self.refusals = 0 if length > 0.0 else self.refusals + 1
        self.stalled = self.refusals == MOST_REFUSALS
        self.finished = self.stalled or (self.tol is not None and self.optimality()[1] <= self.tol)
        if self.finished:
            self.point.x[:] = self.anchor
            self.certificate = Certificate(self.objective, self.lower_bound)
            return
        if length == 1.0:
            self.tau = max(self.tau / 3.0, LEAST_DAMPING)
        else:
            self.tau = max((8.0 if length > 0.1 else 64.0) * self.tau, RAISED_DAMPING)
        limit = min(self.full_sweeps * self.full_looks, MOST_SWEEPS)
        tolerance = max(FULL_TOLERANCE * 0.1**self.full_looks, LEAST_TOLERANCE)
        self._minimise(self.tau, limit, tolerance)
        if length > 0.1 and self.looks_at_hard_rows:
            self._look_at_hard_rows(tolerance)
        self._polish()

    def _polish(self) -> None:
        """The candidate with y's pattern, exact on it, where the model likes that better."""
        x, H, q = self.point.x, self._mean_H(), self.q / self.seen
        refined = polished(self.problem, x, self.point.y, H, q)
        if refined is None or self.folded:
            return

        def value(v: np.ndarray) -> float:
            return float(v @ (0.5 * (H @ v) - q)) + self.problem.penalty(v) - 0.5 * self.ridge * float(v @ v)

        if value(refined) <= value(x):
            x[:] = refined

    def _full_look(self) -> float:
        """Line search over all samples from the anchor to the candidate, and a model at the point it accepts."""
        n = self.problem.n_samples
        before = self.z.copy()
        if self.full_looks == 0:
            self._margins(self.all, self.anchor, self.z)
        length, loss = self._search(self.all, self.gradient if self.full_looks else None)
        self.objective = loss / n + self.problem.penalty(self.anchor)
        self.gradient = self._rows(self.all, self.slope) / n
        if self.seen < n:  # a warm start comes without a model
            self.H[:], self.held[:], self.squares[:] = 0.0, 0.0, 0.0
            self.seen = n
            add_squares(self.problem.rows, self.all, self.squares)
        stale = STALE_CURVATURE * 0.1**self.full_looks * float(self.bend.max())
        rows = np.flatnonzero(np.abs(self.bend - self.held) > stale)
        if rows.size:
            self.H += self._outer(rows, self.bend - self.held)
            self.held[rows] = self.bend[rows]
        self.q = self.H @ self.anchor - n * self.gradient
        np.abs(self.z - before, out=self.moved)
        self.full_looks += 1
        return length

    def _look_at_hard_rows(self, tolerance: float) -> None:
        """Again and again the few samples whose margins moved most, the others by their expansions."""
        index = hard_rows(self.moved)
        if index.size == 0:
            return
        n = self.problem.n_samples
        x, z, slope, bend = self.anchor.copy(), self.z.copy(), self.slope.copy(), self.bend.copy()
        move, change = np.zeros(n), np.zeros(n)
        for _ in range(HARD_LOOKS):
            step = self._candidate() - x
            self._margins(index, step, move)
            self._touch(index.size)
            merit = self._hard_merit(index, x, step, z, slope, move)
            length = shorten(merit, merit(0.0))
            x += length * step
            old = self.held[index] * z[index] - slope[index]
            z[index] += length * move[index]
            expand(self.samples, index, z, slope, bend)
            change[index] = bend[index] * z[index] - slope[index] - old
            self.q += self._rows(index, change)
            change[index] = bend[index] - self.held[index]
            self.H += self._outer(index, change)
            self.held[index] = bend[index]
            self._minimise(self.tau, HARD_SWEEPS, tolerance, centre=x)
            if length * np.abs(move[index]).max() < SETTLED_MOVE:
                break

    def _hard_merit(self, index, x, step, z, slope, move):
        """Along a step: the whole model, with the hard rows' quadratics exchanged for their true losses."""
        rise, bow = float(step @ (self.H @ x - self.q)), float(step @ (self.H @ step))
        tilt, bend = float(slope[index] @ move[index]), float(self.held[index] @ move[index] ** 2)
        start = loss_along(self.samples, index, z, move, 0.0)

        def merit(t: float) -> float:
            others = (rise - tilt) * t + 0.5 * (bow - bend) * t * t
            true = loss_along(self.samples, index, z, move, t) - start
            return (others + true) / self.seen + self.problem.penalty(x + t * step)

        return merit

    # -- parts of a step -------------------------------------------------------------------------------------

    def _candidate(self) -> np.ndarray:
        """The newest x; where Ω was folded, its own copy of x, which is exactly sparse and inside constraints."""
        return self.point.y[-self.problem.n_features :] if self.folded else self.point.x

    def _search(self, index: np.ndarray, gradient: np.ndarray | None = None) -> tuple[float, float]:
        """From the anchor towards the candidate, as far as the objective on `index` falls.

        Returns the length taken and the sum of the losses there; slopes and curvatures are those of that point.
        """
        candidate = self._candidate().copy()
        step = candidate - self.anchor
        self._touch(index.size)
        if not step.any():
            return 1.0, self._expand(index, 0.0)
        self._margins(index, step, self.move)
        penalty = self.problem.penalty(self.anchor)
        expected = 0.0
        if gradient is None:
            start = self._expand(index, 0.0) / index.size + penalty
        else:
            start = self.objective
            expected = float(gradient @ step) + self.problem.penalty(candidate) - penalty
        losses = {}

        def merit(t: float) -> float:
            losses[t] = self._expand(index, t)
            return losses[t] / index.size + self.problem.penalty(candidate if t == 1.0 else self.anchor + t * step)

        length = shorten(merit, start, expected)
        if length == 0.0:
            merit(0.0)
        self.anchor = candidate if length == 1.0 else self.anchor + length * step
        self.z[index] += length * self.move[index]
        return length, losses[length]

    def _minimise(self, tau: float, limit: int, tolerance: float, centre: np.ndarray | None = None) -> None:
        metric = self.problem.loss.curvature_bound * self.squares / self.seen
        metric[metric == 0.0] = 1.0
        y_sum = self.point.y_sum.copy()  # counts steps, not sweeps
        centre = self.anchor if centre is None else centre
        self.solver.minimise(self._mean_H(), self.q / self.seen, centre, tau * metric, limit, tolerance)
        self.point.y_sum[:] = y_sum

    def _mean_H(self) -> np.ndarray:
        H = self.H / self.seen
        np.einsum("ii->i", H)[:] += self.ridge
        return H

    def _certify(self) -> None:
        """The best lower bound so far, from the slopes at the anchor and the newest multiplier."""
        slopes, gradient = self.slope, self.gradient
        if self.certifier.free.size:
            straight = self.certifier.orthogonal_slopes(slopes, self.z)
            if straight is None:
                return
            slopes, gradient, touched = straight
            self._touch(touched)
        bounds = self.certifier.certify(self.objective, slopes, gradient, self.solver.multiplier(), self.point.y == 0)
        self.lower_bound = max(self.lower_bound, bounds.dual)

    def _touch(self, samples: int) -> None:
        self.point.clock[1] += samples

    def _margins(self, index: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
        in_parts(lambda part: margins(self.problem.rows, part, x, out), index, self._entries(index))

    def _expand(self, index: np.ndarray, t: float) -> float:
        """Slopes and curvatures of the rows of `index` at their margins moved by t; the sum of their losses."""

        def part(some: np.ndarray) -> float:
            return expand_along(self.samples, some, self.z, self.move, t, self.slope, self.bend)

        return float(sum(in_parts(part, index, SCALAR_WORK * index.size)))

    def _rows(self, index: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return sum_rows(self.problem.rows, index, scale, self._entries(index))

    def _outer(self, index: np.ndarray, scale: np.ndarray) -> np.ndarray:
        per_row = self.problem.nnz / self.problem.n_samples
        return sum_outer(self.problem.rows, index, scale, self._entries(index) * per_row)

    def _entries(self, index: np.ndarray) -> float:
        """About how many stored entries these rows have."""
        return index.size * self.problem.nnz / self.problem.n_samples


def stages(n: int, d: int) -> list[np.ndarray]:
    """The rows of each stage of the first pass: every 2^k-th row, then those in between, each stage doubling."""
    first = max(n // FIRST_STAGE, min(n, ROWS_PER_FEATURE * d), 1)
    stride = 1 << int(np.log2(n / first))
    answer = [np.arange(0, n, stride)]
    while stride > 1:
        answer.append(np.arange(stride // 2, n, stride))
        stride //= 2
    return answer


def hard_rows(moved: np.ndarray) -> np.ndarray:
    """The rows whose margins moved most: more than HARD_MOVE, and at most a share of all."""
    most = int(HARD_SHARE * moved.size)
    index = np.flatnonzero(moved > HARD_MOVE)
    if index.size > most:
        index = np.sort(np.argpartition(-moved, most)[:most]) if most else index[:0]
    return index


def shorten(merit: Callable[[float], float], start: float, expected: float = 0.0) -> float:
    """The first of 1, ½, ¼, … at which `merit` has fallen enough from `start`, its value at 0; 0 if none has."""
    length = 1.0
    while length >= SHORTEST:
        if merit(length) <= start + 1e-4 * length * min(expected, 0.0) + ROUNDING * abs(start):
            return length
        length *= 0.5
    return 0.0
