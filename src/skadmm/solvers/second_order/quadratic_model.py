"""The quadratic model of the mean loss, and its minimisation with ψ by sweeps of ADMM.

    minimise over x, y   ½ x·H x − q·x + (τ/2)‖x − centre‖²_D + ψ(y)   subject to   A x + B y = c

One sweep is an x-step with the inverse of H + τD + ρAᵀA, then the y and dual updates every method shares.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from skadmm.kernels.compile import kernel
from skadmm.kernels.expansion import mirror
from skadmm.kernels.rows import copy_into
from skadmm.problem.problem import Problem
from skadmm.solvers import dual_update
from skadmm.solvers.dual_update import Point, couple, y_dual_update

RELAXATION = 1.6
FIRST_SHARE = 1e-3
"""At first the penalty's curvature is this share of the loss's; the residuals balance it later."""
BALANCE = 2.0
"""ρ is changed when one residual is this many times the other, squared."""
LARGEST_CHANGE = 10.0
RESTLESS, LARGEST_SHARE = 0.1, 100.0
"""A relative primal residual as large as this, while y does not move, means that ρ is too small; but the penalty's
curvature never becomes more than so many times the loss's."""


class Residuals(NamedTuple):
    """Where the sweeps ended: how many, and the relative primal and dual residuals."""

    sweeps: int
    primal: float
    dual: float

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.primal, self.dual)


@kernel
def _sweep(inverse, right, split, point, rho, limit, tolerance, y_before, dual_before, scratch):
    primal, dual = 0.0, 0.0
    done = 0
    for _ in range(limit):
        copy_into(point.y, y_before)
        copy_into(point.dual, dual_before)
        for j in range(right.size):
            scratch[j] = right[j] - rho * point.coupling[j]
        np.dot(inverse, scratch, point.x)
        y_dual_update(split, point, 0.0)
        done += 1
        y_move, dual_move, y_size, dual_size = 0.0, 0.0, 1e-300, 1e-300
        for e in range(point.y.size):
            y_move += (point.y[e] - y_before[e]) ** 2
            y_size += point.y[e] ** 2
        for e in range(point.dual.size):
            dual_move += (point.dual[e] - dual_before[e]) ** 2
            dual_size += point.dual[e] ** 2
        # The dual moves by the primal residual; the dual residual is ρ times a move of y. While y is zero there is
        # nothing to compare with but the residual itself.
        primal, dual = np.sqrt(dual_move / max(y_size, dual_move)), np.sqrt(y_move / dual_size)
        if primal <= tolerance and dual <= tolerance:
            break
    return done, primal, dual


@kernel
def _couple(split, point):
    couple(split, point, 0.0)


class ModelSolver:
    """Sweeps on quadratic models of one problem; keeps y, the dual and ρ from one model to the next."""

    def __init__(self, problem: Problem, point: Point, rho: float, *, adaptive: bool) -> None:
        self.problem = problem
        self.point = point
        self.adaptive = adaptive
        self.rho = rho
        self._started = not adaptive
        self._even = rho
        """The ρ at which the penalty's curvature equals the loss's, on average."""
        constraint = problem.constraint
        self._gram = (constraint.A.T @ constraint.A).toarray() if constraint.n_constraints else None
        self._split = dual_update.build(problem, self.rho, RELAXATION)
        self._buffers = (
            np.empty(problem.n_split),
            np.empty(problem.n_constraints),
            np.empty(problem.n_features),
        )

    def minimise(
        self, H: np.ndarray, q: np.ndarray, centre: np.ndarray, damping: np.ndarray, limit: int, tolerance: float
    ) -> Residuals:
        """``point`` ← an approximate minimiser, started from its y and dual. `damping` is the diagonal of τD."""
        if self._gram is None:
            limit = 1
        else:
            curvature = max(float(np.trace(H) + damping.sum()), 1e-12)
            self._even = curvature / (self.problem.constraint.sum_of_squares or 1.0)
            if not self._started:
                self._started = True
                self._set_rho(FIRST_SHARE * self._even)
        right = q + damping * centre
        inverse = self._inverse(H, damping)
        _couple(self._split, self.point)
        answer = Residuals(*_sweep(inverse, right, self._split, self.point, self.rho, limit, tolerance, *self._buffers))
        if self._gram is not None and self.adaptive:
            self._balance(answer)
        return answer

    def _inverse(self, H: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """(H + τD + ρAᵀA)⁻¹; more damping where rounding has spoilt definiteness."""
        matrix = H.copy() if self._gram is None else H + self.rho * self._gram
        diagonal = np.einsum("ii->i", matrix)
        diagonal += damping
        extra = 1e-14 * max(float(diagonal.max()), np.finfo(float).tiny)
        while True:
            factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
            if not failed:
                inverse, failed = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
            if not failed:
                mirror(inverse)
                return inverse
            diagonal += extra
            extra *= 100.0

    def _balance(self, answer: Residuals) -> None:
        """Bring the two residuals together."""
        if answer.primal == 0:
            return
        if answer.dual == 0:
            # y does not move: at zero, below its threshold λ/ρ, it asks for a larger ρ; near the end it may rest.
            room = LARGEST_SHARE * self._even / self.rho
            change = min(LARGEST_CHANGE, room) if answer.primal > RESTLESS and room > 1.0 else 1.0
        else:
            change = float(np.sqrt(answer.primal / answer.dual))
        if not 1 / BALANCE < change < BALANCE:
            self._set_rho(self.rho * min(max(change, 1 / LARGEST_CHANGE), LARGEST_CHANGE))

    def _set_rho(self, rho: float) -> None:
        self.point.dual[:] *= self.rho / rho
        self.rho = rho
        self._split = self._split._replace(rho=rho) if self._gram is not None else self._split

    def resume_from(self, rho: float) -> None:
        """Go on with the ρ, and so the scale of the dual, of an earlier run."""
        self._started = True
        self.rho = rho
        if self._gram is not None:
            self._split = self._split._replace(rho=rho)

    def multiplier(self) -> np.ndarray:
        """β = ρ·dual."""
        return self.rho * self.point.dual
