"""SAN-ADMM for many features: Newton steps on the few units the solution is made of.

When every row of A holds one feature or two, a point has a pattern: rows where (Ax)_e = 0 tie features to each other
or to zero, and what is left free are a few *units*, each a cluster of equal features. A step

  looks     at all samples: objective, gradient, and by a flow along the tied rows (``_flow.py``) the smallest
            subgradient, which gives a dual point, and the rows that want to open;
  opens     the rows that pull most, so new units appear;
  contracts X to the units, one column each, and expands the loss to second order there;
  descends  on that model with its kinks (``_descent.py``), which closes rows again;
  searches  along the step, in the margins.

All features start at zero and tied; the number of units grows towards that of the solution, and nothing of the size of
d² is ever formed.
"""

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from skadmm import _cancel
from skadmm.kernels.contraction import columns_of, contracted, sum_cross
from skadmm.kernels.expansion import add_squares, expand_along, margins, sum_outer, sum_rows
from skadmm.kernels.rows import entries_per_row
from skadmm.kernels.threads import one_thread
from skadmm.operators.clusters import clusters
from skadmm.operators.row_correction import correction
from skadmm.problem.certificate import Certificate, Certifier
from skadmm.problem.problem import Problem
from skadmm.regularizers import L1, SquaredL2, Stacked, Zero
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.line_search import MOST_REFUSALS, shorten
from skadmm.solvers.second_order.min_norm_subgradient import balance
from skadmm.solvers.second_order.point_engine import PointEngine, ridge_of
from skadmm.solvers.second_order.reduced_model import ROUNDING, ReducedModel

FIRST_OPENED, OPENED_SHARE = 300, 0.3
"""In a step, at most so many zero features may open, or this share of those that are not zero; and with them the
connected sets they belong to, of which a part would stay tied to zero through the rest."""
AT_BOUND = 1e-9
"""A multiplier this close to its bound, relatively, is on it."""
FEW_FLOW_SWEEPS, FLOW_SWEEPS, FLOW_TOLERANCE, LEAST_FLOW_TOLERANCE = 10, 300, 1e-3, 1e-10
FLOW_ROUNDS, LEAST_FLOW_GAIN, LEAST_FLOW_STEP = 30, 1e-3, 1e-3
"""Rounds of sweeps and least-squares solves; they end when a solve takes less than this share from ‖r‖². A solve is
shortened down to this length."""
SETTLING = 1e-3
"""Once a step improves the objective by less than this share, the flow is worth more sweeps."""
TURNS, SWEEPS = 2, 20
"""Turns of descent and exact solve a step, and sweeps a turn."""
IDLE_FACTOR, IDLE_CURVATURE = 0.1, (1e-6, 1e-1)
"""Samples whose curvature is below a share of the largest are left out of H: a tenth of the last relative improvement,
within these bounds."""
DAMPING, LEAST_DAMPING = 1e-6, 1e-12
"""The diagonal of H is increased by τ times what the loss's steepest curvature makes it: τ at first, and at least."""
MANY_STEPS = 50
"""Where it is fast it takes fewer steps than this; another solver may take over then."""
EASED, RAISED, REFUSED = 0.1, 8.0, 1000.0
"""What τ is multiplied by after a whole step, a step cut short, and a step that led nowhere."""


MAX_CLUSTERS = 5000
"""The most clusters for which a dense Hessian is formed."""


def row_strengths(psi: Any, size: int) -> np.ndarray | None:
    """λ_e of each row where ψ is a weighted ℓ1, or two of them stacked; None otherwise."""
    if isinstance(psi, L1):
        return np.full(size, psi.strength) if psi.weights.size == 0 else psi.strength * psi.weights
    if isinstance(psi, Stacked):
        first, second = row_strengths(psi.first, psi.split), row_strengths(psi.second, size - psi.split)
        return None if first is None or second is None else np.concatenate([first, second])
    return None


def applies(problem: Problem) -> bool:
    """Is the penalty a weighted ℓ1 of rows with one feature or two, each with a weight?"""
    constraint = problem.constraint
    strengths = row_strengths(problem.psi, problem.n_split)
    if strengths is None or not isinstance(problem.omega, (Zero, SquaredL2)) or constraint.B is not None:
        return False
    counts = np.diff(constraint.A.indptr)
    narrow = counts.size > 0 and counts.min() >= 1 and counts.max() <= 2 and bool(np.all(constraint.A.data != 0))
    return bool(narrow and strengths.min() > 0 and not constraint.c.any())


def reason_against(problem: Problem) -> str | None:
    """Why Newton steps on clusters cannot take a problem; None when they can."""
    if not problem.backend.local_rows:
        return f"it {problem.lacks_local_rows()}"
    if not applies(problem):
        return "psi must be an ℓ1 norm with weights > 0, on rows of A with one or two entries, with B = −I and c = 0"
    if starting_clusters(problem) > MAX_CLUSTERS:
        return f"more than {MAX_CLUSTERS} connected components carry no ℓ1 term of their own"
    return None


def starting_clusters(problem: Problem) -> int:
    """How many units there are at x = 0 with every row tied: what no ℓ1 of its own holds at zero."""
    labels, _ = clusters(problem.constraint.A, np.ones(problem.n_constraints, bool))
    return int(labels.max(initial=-1)) + 1


def _names(basis: Any) -> np.ndarray:
    """A number for each unit that depends on its features and factors alone."""
    d = basis.shape[0]
    spread = np.random.default_rng(0).standard_normal(d)
    return basis.T @ spread


class ReducedNewton(PointEngine):
    """Newton steps on units. One step is one look at all samples."""

    solver_name = "reduced-newton"
    FIXED = ("first", "last", "single")

    def __init__(self, setup: Setup, point: Point) -> None:
        problem = self.problem = setup.problem
        self.point = point
        self.tol = setup.tol
        self.rho = setup.rho
        self.ridge = ridge_of(problem)
        self.certifier = Certifier(problem)
        self.certificate = None
        self.finished = self.stalled = False
        self.refusals = 0
        self.samples = problem.samples()
        strengths = row_strengths(problem.psi, problem.n_split)
        assert strengths is not None, "see applies()"
        self.strength, self.A = strengths, problem.constraint.A
        self.magnitude = abs(self.A)
        self.first, self.last = self.A.indices[self.A.indptr[:-1]], self.A.indices[self.A.indptr[1:] - 1]
        """The features of each row of A, which are the same where it has one."""
        self.single = self.first == self.last
        self.columns = columns_of(problem.rows)
        self.squares = np.zeros(problem.n_features)
        add_squares(problem.rows, np.arange(problem.n_samples), self.squares)
        self.squares /= problem.n_samples
        n = problem.n_samples
        self.all = np.arange(n)
        self.z, self.move = np.zeros(n), np.zeros(n)
        self.slope, self.curvatures, self.used_curvatures = np.empty(n), np.empty(n), np.zeros(n)
        """Slope and curvature of each sample, and the curvature that is part of H."""
        self.known: tuple[np.ndarray, np.ndarray] = np.empty(0), np.empty((0, 0))
        """The last step's units, by name, and H on them."""
        self.multiplier = self.rho * point.dual
        self.tau = DAMPING
        self.objective, self.lower_bound, self.improvement = np.inf, -np.inf, 1.0
        self.gradient = np.zeros(problem.n_features)
        self.residual = np.zeros(problem.n_features)
        self.tied = np.ones(problem.n_constraints, bool)
        self.evaluated = False
        self.steps = 0

    # -- what the loop sees ----------------------------------------------------------------------------------

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """As many steps as `order` has entries."""
        for _ in order:
            if self.finished or self.point.clock[1] >= until:
                return
            if not self.evaluated:
                self._start()
            self._step()
            self._step_made()
            self.steps += 1
            self.stalled = self.refusals == MOST_REFUSALS
            self.finished = self.stalled or (self.tol is not None and self.optimality()[1] <= self.tol)

    @property
    def slow(self) -> bool:
        """Has it come to its end, or made more steps than it takes where it is fast, short of the tolerance?"""
        ended = self.stalled or (self.steps >= MANY_STEPS and not self.finished)
        return ended and self.tol is not None and self.optimality()[1] > self.tol

    def optimality(self) -> tuple[str, float]:
        """The relative gap; where there is no certificate, the relative KKT residual."""
        if self.certifier.kind != "none":
            return "gap", Certificate(self.objective, self.lower_bound).relative
        kkt = self.problem.kkt(self.point.x, self.point.y, self.multiplier, self.gradient)
        return "kkt", kkt.relative

    def finish(self) -> None:
        """x is exactly fused and sparse at all times; certify it, where that has not been done."""
        if not self.evaluated:
            self._start()
        if self.tol is None or self.optimality()[1] > self.tol:
            self._certify(thorough=True)
        self.certificate = Certificate(self.objective, self.lower_bound)

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Go on from an earlier point."""
        super().restore(tables)
        self.evaluated = False

    # -- a step ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        margins(self.problem.rows, self.all, self.point.x, self.z)
        self._evaluate_point(self._expand(0.0))

    def _evaluate_point(self, loss: float) -> None:
        """The whole problem at x, whose slopes and curvatures are known."""
        problem, n, x = self.problem, self.problem.n_samples, self.point.x
        self.objective = loss / n + problem.penalty(x)
        self.gradient = sum_rows(problem.rows, self.all, self.slope, problem.nnz) / n
        self.point.clock[1] += n
        y = self.A @ x
        y[np.abs(y) <= ROUNDING * (self.magnitude @ np.abs(x))] = 0.0
        self.point.y[:] = y
        self.tied = y == 0.0
        beta = np.clip(self.multiplier, -self.strength, self.strength)
        beta[~self.tied] = (self.strength * np.sign(y))[~self.tied]
        residual = self.gradient + self.ridge * x + self.A.T @ beta
        self._flow(beta, residual)
        self.multiplier, self.residual = beta, residual
        self.point.dual[:] = beta / self.rho
        self.evaluated = True
        if self.tol is not None:
            self._certify()

    def _flow(self, beta: np.ndarray, residual: np.ndarray) -> None:
        """Towards the smallest residual, by multipliers of the tied rows; more carefully as the steps get smaller."""
        tolerance = min(max(FLOW_TOLERANCE * self.improvement, LEAST_FLOW_TOLERANCE), FLOW_TOLERANCE)
        tied = np.flatnonzero(self.tied)

        def sweep(beta: np.ndarray, residual: np.ndarray, sweeps: int) -> bool:
            csr = self.A
            made = balance(csr.indptr, csr.indices, csr.data, tied, self.strength, beta, residual, sweeps, tolerance)
            return bool(made < sweeps)

        if self.improvement > SETTLING:
            sweep(beta, residual, FEW_FLOW_SWEEPS)
            return
        for _ in range(FLOW_ROUNDS):
            if tied.size == 0 or sweep(beta, residual, FLOW_SWEEPS):
                return
            _cancel.check_cancelled()
            before = float(residual @ residual)
            self._flow_on_face(beta, residual)
            if float(residual @ residual) > (1.0 - LEAST_FLOW_GAIN) * before:
                return

    def _flow_on_face(self, beta: np.ndarray, residual: np.ndarray) -> None:
        """A long way to go, as along a chain of many tied features: on the rows that are not held by their bounds the
        smallest residual is a least-squares problem, and from there β goes back inside its bounds."""
        at_bound = (np.abs(beta) >= self.strength * (1.0 - AT_BOUND)) & (np.sign(beta) * (self.A @ residual) <= 0.0)
        face = np.flatnonzero(self.tied & ~at_bound)
        if face.size == 0:
            return
        change = correction(self.A[face], residual)
        bound = self.strength[face]
        length = 1.0
        while length > LEAST_FLOW_STEP:
            moved = np.zeros_like(beta)
            moved[face] = np.clip(beta[face] + length * change, -bound, bound) - beta[face]
            left = residual + self.A.T @ moved
            if left @ left < residual @ residual:
                beta += moved
                residual[:] = left
                return
            length *= 0.5

    def _step(self) -> None:
        with one_thread():
            labels, factors, n_clusters = self._opened()
            if n_clusters == 0:
                self.refusals += 1
                self.improvement = 0.0
                self._evaluate_point(self._expand(0.0))
                return
            free = np.flatnonzero(labels >= 0)
            basis = scipy.sparse.csr_array((factors[free], (free, labels[free])), shape=(labels.size, n_clusters))
            rows = contracted(self.columns, labels, factors, n_clusters)
            first = np.empty(n_clusters, np.int64)
            first[labels[free[::-1]]] = free[::-1]
            start = self.point.x[first] / factors[first]
            H = self._curvature(rows, basis)
            gradient = basis.T @ (self.gradient + self.ridge * self.point.x)
            pairs, strength, zero = self._terms(basis)
            model = ReducedModel(H, gradient, start, pairs, strength, zero)
            u = model.minimise(TURNS, SWEEPS)
        candidate = np.zeros_like(self.point.x)
        candidate[free] = factors[free] * u[labels[free]]
        self._search(rows, u - start, candidate)

    def _opened(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Open the rows with the largest violation: the units, as a label (−1: zero) and a factor for each feature."""
        if self.improvement > SETTLING and not self.refusals:
            # While the flow is rough, so are the sets it joins: better the features that move by themselves.
            labels, factors = clusters(self.A, self.tied & ~self._wants_to_open(self._largest_violations()))
            if labels.max() >= 0:
                return labels, factors, int(labels.max()) + 1
        labels, factors = clusters(self.A, self.tied & ~self._opening_sets())
        return labels, factors, int(labels.max()) + 1

    def _largest_violations(self) -> np.ndarray:
        """The residual, without the zero features but those where it is largest."""
        violation = self.residual.copy()
        zero = np.flatnonzero((self.point.x == 0.0) & (violation != 0.0))
        if zero.size > self._most_opened:
            order = np.argpartition(-np.abs(violation[zero]), self._most_opened)
            violation[zero[order[self._most_opened :]]] = 0.0
        return violation

    @property
    def _most_opened(self) -> int:
        return max(FIRST_OPENED, int(OPENED_SHARE * np.count_nonzero(self.point.x)))

    def _opening_sets(self) -> np.ndarray:
        """The rows to open so that whole connected sets of features leave zero."""
        at_zero = self.point.x == 0.0
        leaving = at_zero & (self.residual != 0.0)
        leaving[self.first[self.single & ~self._wants_to_open(self.residual)]] = False  # its own ℓ1 term holds it
        if np.count_nonzero(leaving) > self._most_opened:
            leaving = self._largest_sets(leaving, self._most_opened)
        opening = self._wants_to_open(np.where(at_zero & ~leaving, 0.0, self.residual))
        # A multiplier that the flow has left short of its bound must not hold a leaving feature at zero.
        apart = (leaving[self.first] != leaving[self.last]) & at_zero[self.first] & at_zero[self.last]
        return opening | (self.tied & apart)

    def _wants_to_open(self, violation: np.ndarray) -> np.ndarray:
        """The tied rows whose multiplier is on its bound and which a step along −`violation` would open."""
        on_bound = self.tied & (np.abs(self.multiplier) >= self.strength * (1.0 - AT_BOUND))
        return on_bound & (np.sign(self.multiplier) * (self.A @ violation) < 0.0)

    def _largest_sets(self, leaving: np.ndarray, most: int) -> np.ndarray:
        """The `most` features in `leaving` with the largest residual, and all that tied rows join to one of them."""
        joined = self.tied & ~self._wants_to_open(self.residual) & leaving[self.first] & leaving[self.last]
        d = leaving.size
        edges = scipy.sparse.coo_array((np.ones(joined.sum()), (self.first[joined], self.last[joined])), shape=(d, d))
        count, member_of = scipy.sparse.csgraph.connected_components(edges, directed=False)
        features = np.flatnonzero(leaving)
        largest = features[np.argpartition(-np.abs(self.residual[features]), most)[:most]]
        chosen = np.zeros(count, bool)
        chosen[member_of[largest]] = True
        return leaving & chosen[member_of]

    def _curvature(self, rows: Any, basis: Any) -> np.ndarray:
        """H on the units, damped. What the last step knows of it is kept where that is less work: for units that are
        still there, and for samples whose curvature has hardly changed."""
        n = self.problem.n_samples
        work = max(1.0, entries_per_row(rows)) ** 2
        low, high = IDLE_CURVATURE
        idle = min(max(IDLE_FACTOR * self.improvement, low), high) * float(self.curvatures.max())
        names = _names(basis)
        before, H_before = self.known
        fresh = np.flatnonzero(~np.isin(names, before))
        stale, bent = np.abs(self.curvatures - self.used_curvatures) > idle, self.curvatures > idle
        used = np.flatnonzero(self.used_curvatures)
        if 2 * used.size * fresh.size / names.size + np.count_nonzero(stale) < np.count_nonzero(bent):
            H = np.zeros((names.size, names.size))
            kept = np.flatnonzero(np.isin(names, before))
            sorter = np.argsort(before)
            where = sorter[np.searchsorted(before, names[kept], sorter=sorter)]
            H[np.ix_(kept, kept)] = H_before[np.ix_(where, where)]
            if fresh.size:
                strip = sum_cross(
                    rows,
                    fresh,
                    used,
                    self.used_curvatures / n,
                    used.size * work * fresh.size / names.size,
                )
                H[fresh], H[:, fresh] = strip, strip.T
            index = np.flatnonzero(stale)
        else:
            self.used_curvatures[:] = 0.0
            H, index = np.zeros((names.size, names.size)), np.flatnonzero(bent)
        if index.size:
            H += sum_outer(rows, index, (self.curvatures - self.used_curvatures) / n, 0.5 * index.size * work)
            self.used_curvatures[index] = self.curvatures[index]
        self.known = names, H.copy()
        diagonal = np.einsum("ii->i", H)
        diagonal += basis.power(2).T @ np.full(basis.shape[0], self.ridge)
        metric = self.problem.loss.curvature_bound * (basis.power(2).T @ self.squares)
        # A unit that no sample sees has kinks to hold it and no use for curvature, but some there must be.
        diagonal += np.where(metric > 0.0, self.tau * metric, LEAST_DAMPING * max(float(metric.max()), 1.0))
        return H

    def _terms(self, basis: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """ψ on the units: rows of two units with their strengths, and the strength of each unit's own rows."""
        reduced = scipy.sparse.csr_array(self.A @ basis)
        reduced.data[np.abs(reduced.data) <= ROUNDING * np.abs(self.A.data).max()] = 0.0
        reduced.eliminate_zeros()
        counts = np.diff(reduced.indptr)
        single, double = np.flatnonzero(counts == 1), np.flatnonzero(counts == 2)
        at = reduced.indptr[single]
        weights = self.strength[single] * np.abs(reduced.data[at])
        zero = np.bincount(reduced.indices[at], weights, minlength=basis.shape[1])
        return scipy.sparse.csr_array(reduced[double]), self.strength[double], zero

    def _search(self, rows: Any, step: np.ndarray, candidate: np.ndarray) -> None:
        """From x towards the candidate, as far as the objective falls; then look."""
        x, penalty = self.point.x.copy(), self.problem.penalty(self.point.x)
        margins(rows, self.all, step, self.move)
        smooth = self.gradient @ (candidate - x)
        expected = float(smooth) + self.problem.penalty(candidate) - penalty
        losses = {}

        def merit(t: float) -> float:
            losses[t] = self._expand(t)
            return losses[t] / self.problem.n_samples + self.problem.penalty(
                candidate if t == 1.0 else x + t * (candidate - x)
            )

        before = self.objective
        length = shorten(merit, before, expected)
        if length == 0.0:
            merit(0.0)
        self.z += length * self.move
        self.point.x[:] = candidate if length == 1.0 else x + length * (candidate - x)
        self._evaluate_point(losses[length])
        self.improvement = max(before - self.objective, 0.0) / max(abs(self.objective), np.finfo(float).tiny)
        self.tau = max(self.tau * (EASED if length == 1.0 else RAISED if length > 0.01 else REFUSED), LEAST_DAMPING)
        self.refusals = 0 if self.improvement > ROUNDING else self.refusals + 1

    def _expand(self, t: float) -> float:
        return float(expand_along(self.samples, self.all, self.z, self.move, t, self.slope, self.curvatures))

    def _certify(self, *, thorough: bool = False) -> None:
        """The best lower bound so far. The cheap one corrects β on single-feature rows only."""
        slack = self.tied if thorough or self.certifier.kind != "l1" else None
        self.point.clock[1] += self._raise_bound(self.slope, self.z, self.gradient, slack)
