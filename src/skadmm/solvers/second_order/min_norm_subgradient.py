"""The subgradient of minimum norm: multipliers for the rows of A that are zero.

Where y_e = (Ax)_e is not zero its multiplier is ±λ_e; where it is zero it may be anything in between, and

    minimise over β_e ∈ [−λ_e, λ_e], e tied      ½‖g + Aᵀβ‖²

gives the steepest descent direction −r, r = g + Aᵀβ. x is optimal exactly when r = 0. A tied row whose multiplier is at
its bound and whose (Ar)_e is not zero leaves zero along −r; all others stay as they are. Solved by projected
over-relaxed Gauss–Seidel sweeps, which soon visit only the few rows near features whose r still changes, and by
least-squares solves on the rows that are not at their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skadmm import _cancel
from skadmm.kernels.compile import inlined, kernel
from skadmm.kernels.rows import span, unsigned
from skadmm.operators.row_correction import correction
from skadmm.solvers.second_order.l1_rows import ShortRows


@dataclass(frozen=True)
class SubgradientConfig:
    """Settings of the search for the subgradient of minimum norm."""

    relaxation: float = 1.5
    """The over-relaxation of a sweep on rows with two entries."""
    settled_improvement: float = 1e-3
    """Once a step improves the objective by less than this share, the subgradient is computed accurately."""
    rough_sweeps: int = 10
    """The number of sweeps where the subgradient is not computed accurately."""
    sweeps_per_solve: int = 300
    """The number of sweeps between two least-squares solves where it is computed accurately."""
    max_face_solves: int = 30
    """The maximum number of least-squares solves."""
    min_face_gain: float = 1e-3
    """Least-squares solves end when one reduces ‖r‖² by less than this share."""
    min_face_length: float = 1e-3
    """A solve's step is shortened down to this length."""
    sweep_tolerance: float = 1e-3
    """Sweeps end when no multiplier changes by more than this share of its bound, times the last improvement."""
    min_sweep_tolerance: float = 1e-10
    """The smallest tolerance of the sweeps, as a share of the bound."""


@inlined
def minimise_single_rows(indptr, indices, data, tied, strength, beta, r):
    """The best β on each row in `tied` that has one entry, and r with it."""
    for e in tied:
        p = indptr[e]
        if indptr[e + 1] - p == 1 and r[unsigned(indices[p])] != 0.0:
            j = unsigned(indices[p])
            exact = beta[e] - r[j] / data[p]
            wanted = min(max(exact, -strength[e]), strength[e])
            r[j] = 0.0 if wanted == exact else r[j] + data[p] * (wanted - beta[e])
            beta[e] = wanted


def scratch_of(features: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last arguments of :func:`sweep_multipliers` for these numbers of features and tied rows."""
    return np.empty(features, bool), np.empty(features, bool), np.empty(rows, np.int64)


@kernel
def sweep_multipliers(
    indptr, indices, data, tied, strength, beta, r, relaxation, sweeps, tolerance, active, changed, visited
):
    """Improve β on the rows in `tied` and r = g + Aᵀβ with it; returns the sweeps made.

    A row is left out until the r of one of its features changes. Rows with one entry come first: of most features at
    zero they take all of r, and the rows that join those features are left out. `active`, `changed` and `visited` are
    those of `scratch_of`.
    """
    minimise_single_rows(indptr, indices, data, tied, strength, beta, r)
    for j in range(r.size):
        active[j] = r[j] != 0.0
    done = 0
    while done < sweeps:
        count = 0
        for e in tied:
            for p in span(indptr, e):
                if active[unsigned(indices[p])]:
                    visited[count] = e
                    count += 1
                    break
        if count == 0:
            return done
        changed[:] = False
        largest = 0.0
        for sweep in range(2 if done < 4 else 10):
            largest = 0.0
            for k in range(count):
                e = visited[k] if sweep % 2 == 0 else visited[count - 1 - k]
                violation, square = 0.0, 0.0
                for p in span(indptr, e):
                    violation += data[p] * r[unsigned(indices[p])]
                    square += data[p] * data[p]
                if violation == 0.0:
                    continue
                single = indptr[e + 1] - indptr[e] == 1
                wanted = beta[e] - (1.0 if single else relaxation) * violation / square
                wanted = min(max(wanted, -strength[e]), strength[e])
                change = wanted - beta[e]
                if change == 0.0:
                    continue
                beta[e] = wanted
                for p in span(indptr, e):
                    r[unsigned(indices[p])] += data[p] * change
                    changed[unsigned(indices[p])] = True
                if single and abs(wanted) < strength[e]:
                    r[indices[indptr[e]]] = 0.0  # exactly
                largest = max(largest, abs(change) / strength[e])
            done += 1
            if largest <= tolerance:
                return done
        active, changed = changed, active
    return done


def minimise_norm(
    penalty: ShortRows,
    tied: np.ndarray,
    beta: np.ndarray,
    residual: np.ndarray,
    improvement: float,
    config: SubgradientConfig,
) -> None:
    """Reduce ‖`residual`‖ = ‖g + Aᵀβ‖ by the multipliers `beta` of the rows in `tied` (a mask), in place.

    The smaller the last step's relative `improvement` of the objective, the more accurately.
    """
    A, rows = penalty.A, np.flatnonzero(tied)
    tolerance = min(max(config.sweep_tolerance * improvement, config.min_sweep_tolerance), config.sweep_tolerance)

    scratch = scratch_of(residual.size, rows.size)

    def converged(sweeps: int) -> bool:
        made = sweep_multipliers(
            A.indptr, A.indices, A.data, rows, penalty.strengths, beta, residual, config.relaxation, sweeps, tolerance,
            *scratch,
        )  # fmt: skip
        return bool(made < sweeps)

    if improvement > config.settled_improvement:
        converged(config.rough_sweeps)
        return
    for _ in range(config.max_face_solves):
        if rows.size == 0 or converged(config.sweeps_per_solve):
            return
        _cancel.check_cancelled()
        before = float(residual @ residual)
        _solve_on_face(penalty, tied, beta, residual, config)
        if float(residual @ residual) > (1.0 - config.min_face_gain) * before:
            return


def _solve_on_face(
    penalty: ShortRows, tied: np.ndarray, beta: np.ndarray, residual: np.ndarray, config: SubgradientConfig
) -> None:
    """On the rows that their bounds do not hold, the minimum norm is a least-squares problem; from its solution β is
    clipped to its bounds. Sweeps alone are slow along a chain of many tied features."""
    A = penalty.A
    held = penalty.at_bound(beta) & (np.sign(beta) * (A @ residual) <= 0.0)
    face = np.flatnonzero(tied & ~held)
    if face.size == 0:
        return
    change = correction(A[face], residual)
    bound = penalty.strengths[face]
    length = 1.0
    while length > config.min_face_length:
        moved = np.zeros_like(beta)
        moved[face] = np.clip(beta[face] + length * change, -bound, bound) - beta[face]
        candidate = residual + penalty.transposed @ moved
        if candidate @ candidate < residual @ residual:
            beta += moved
            residual[:] = candidate
            return
        length *= 0.5
