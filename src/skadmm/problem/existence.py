"""Is the minimum attained? Directions along which the penalty is constant and the loss decreases without end.

A loss whose infimum lies at infinity has no minimiser along a direction u that no penalty sees (A u = 0, and Ω is zero
or a set that u does not leave) when no sample's loss ever increases along it: aᵢ·u ≥ 0 where ℓ(·, bᵢ) is flat at +∞,
aᵢ·u ≤ 0 where it is flat at −∞, aᵢ·u = 0 where it is neither, not all zero. The logistic loss is flat on the side of
its label; Poisson's, exp(z) − bz, at −∞ where b = 0. The null space of A is found where that is cheap: features that no
row of A reaches; for rows of two entries (graphs), one direction for each connected component; for wider rows that join
a few hundred features, a dense basis.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from skadmm.backends import LocalBackend, tasks
from skadmm.kernels.compile import kernel
from skadmm.kernels.loss_functions import derivative
from skadmm.kernels.rows import as_matrix, times_basis
from skadmm.kernels.samples import targets_of
from skadmm.losses.offset import split_offset
from skadmm.operators.clusters import clusters
from skadmm.problem.problem import Problem
from skadmm.problem.structure import null_space
from skadmm.regularizers import Zero

FAR, FLAT, FALLING = 700.0, 1e-100, 0.9
"""A loss is flat at infinity where its derivative at ±FAR is no more than FLAT, or has the sign of that at ±FAR/2 and
falls to this share of it or less; exp(±FAR) is still a number. A loss that is linear far away has the same derivative
at both."""
LONG_STEP, FAR_AWAY = 1e100, 1e90
"""A proximal step that moves every coordinate which a regulariser penalises, from a point outside of any bounds."""
MAX_DIRECTIONS = 400
"""Where A has rows of more than two entries, its null space is examined up to this dimension."""
ROUNDING = 1e-13
"""The rounding error of aᵢ·u, relative to its terms."""
FIRST_CHUNK = 4096
"""The number of samples in the first chunk that is examined."""
MAX_FOR_PROGRAM = 1_000_000
"""A linear programme over several directions at once is tried up to this many entries (samples × directions)."""
CLEAR_GAIN, MAX_VIOLATION = 1e-4, 1e-8
"""A solution of the programme is a direction where it gains more than the first and no sample loses more than the
second; within its tolerances there are solutions of size 1e-7 where no direction exists."""


@kernel
def _slopes_at_margin(targets, margin, out):
    for i in range(out.size):
        out[i] = derivative(targets.loss, margin, targets.target[i])


def _flat_sides(samples: Any) -> np.ndarray:
    """For each target, the side on which the loss is flat at infinity: 1, −1, or 0 for neither. Offsets change none."""
    if samples.target.dtype.names is not None:
        loss, target, _ = split_offset(samples.loss, samples.target)
        samples = samples._replace(loss=loss, target=target)
    targets = targets_of(samples)

    def flattens(side: float) -> np.ndarray:
        """Does a derivative vanish at infinity?"""
        far, nearer = np.empty((2, samples.target.size))
        for out, margin in ((far, side * FAR), (nearer, 0.5 * side * FAR)):
            _slopes_at_margin(targets, margin, out)
        falling = (far * nearer > 0.0) & (np.abs(far) <= FALLING * np.abs(nearer)) & np.isfinite(far)
        return (np.abs(far) <= FLAT) | falling

    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(flattens(1.0), 1.0, np.where(flattens(-1.0), -1.0, 0.0))


class Recession(NamedTuple):
    """Features along which the minimum is not attained."""

    features: np.ndarray
    """Their indices."""
    names: list[str]
    """Their names."""
    jointly: bool
    """Do they move jointly, or each on its own?"""
    samples_touched: int
    """Samples read to find them."""
    labels: bool = True
    """Are the targets classes?"""

    def __str__(self) -> str:
        shown = ", ".join(self.names[:20]) + (", …" if len(self.names) > 20 else "")
        several = len(self.names) != 1
        features = f"{len(self.names):,} features" if several else "1 feature"
        coefficients, them = ("their coefficients grow", "them") if several else ("its coefficient grows", "it")
        if not self.labels:
            why = f"no penalty applies to {features} along which no sample's loss increases ({shown})"
        elif self.jointly:
            together = f"{features} move together ({shown})"
            why = f"no penalty changes when {together}, which moves every margin towards its label"
        else:
            occur = "occur" if several else "occurs"
            why = f"no penalty applies to {features} that {occur} with one label only ({shown})"
        return (
            f"there is no minimiser: {why}, so {coefficients} without bound. Penalise every feature: l1_ratio > 0 or "
            f"ridge > 0, or with Problem the identity added to A, stack(A, 'identity'); or drop {them}"
        )


def penalised_rows(problem: Problem) -> scipy.sparse.csr_array:
    """Rows R with R u = 0 where ψ does not change along u: those of A, but not those with a weight of zero or in no
    group; where B has such columns, combinations of the rows of A."""
    A, B = problem.constraint.A, problem.constraint.B
    if problem.n_split == 0:
        return A
    above, below = _opening(problem.prox_psi, problem.n_split)
    kept = ~(above & below)
    if kept.all():
        return A
    if B is None:
        return scipy.sparse.csr_array(A[kept])
    if A.shape[0] > MAX_DIRECTIONS:
        return A
    outside = scipy.linalg.null_space(B[:, ~kept].toarray().T)  # y follows any A u but for these directions
    return scipy.sparse.csr_array(outside.T @ A)


def _opening(prox: Callable[[np.ndarray, float], np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Which coordinates may grow, and which may fall, without end and at no cost: a long proximal step does not move
    them."""
    above, below = (prox(np.full(size, sign * FAR_AWAY), LONG_STEP) == sign * FAR_AWAY for sign in (1.0, -1.0))
    return above, below


class Directions(NamedTuple):
    """Directions along which the penalty is constant."""

    vectors: list[tuple[np.ndarray, np.ndarray]]
    """Each as (features, entries), one for each component of A's rows."""
    signs: np.ndarray
    """1 for a feature that may only grow, −1 for one that may only fall, 0 for one that may do both."""


def flat_directions(problem: Problem) -> Directions:
    """Directions along which the penalty is constant; none where Ω is one that they would change."""
    d = problem.n_features
    free, signs = np.ones(d, bool), np.zeros(d)
    if not isinstance(problem.omega, Zero):
        above, below = _opening(problem.prox_omega, d)
        free, signs = above | below, above.astype(float) - below.astype(float)
        if not free.any():
            return Directions([], signs)
    A = penalised_rows(problem)
    if not free.all():
        held = scipy.sparse.eye_array(d, format="csr")[~free]
        A = scipy.sparse.csr_array(scipy.sparse.vstack([A, held]))
    counts = np.diff(A.indptr)
    alone = A.indices[A.indptr[:-1][counts == 1]]
    if np.bincount(alone, minlength=d).all():
        return Directions([], signs)
    return Directions(_null_vectors(problem, A, counts), signs)


def _null_vectors(
    problem: Problem, A: scipy.sparse.csr_array, counts: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """A basis of {u : A u = 0}, as (features, entries), as far as it is easily found."""
    d = problem.n_features
    if counts.max(initial=0) > 2 and problem.backend.local_rows:
        space = null_space(A)
        if space is not None and space.basis.shape[1] <= MAX_DIRECTIONS:
            columns = scipy.sparse.csc_array(space.basis)
            parts = [slice(*columns.indptr[k : k + 2]) for k in range(columns.shape[1])]
            return [(columns.indices[part], columns.data[part]) for part in parts]
    wide = np.zeros(d, bool)  # features in a row of more than two entries are not examined
    for row in np.flatnonzero(counts > 2):
        wide[A.indices[A.indptr[row] : A.indptr[row + 1]]] = True
    labels, factors = clusters(A, np.ones(A.shape[0], bool))
    _, component = scipy.sparse.csgraph.connected_components(abs(A).T @ abs(A), directed=False)
    excluded = np.zeros(component.max() + 1, bool)
    excluded[component[wide]] = True
    order = np.argsort(labels, kind="stable")
    order = order[(labels[order] >= 0) & ~excluded[component[order]]]
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []
    return [(group, factors[group]) for group in groups]


def find(problem: Problem) -> Recession | None:
    """The features along which the minimum is not attained; None where no such direction was found."""
    if problem.loss.attained:
        return None
    directions, signs = flat_directions(problem)
    if not directions:
        return None
    n = problem.n_samples
    if not problem.backend.local_rows:
        if not problem.loss.labels or signs.any():  # workers compare with labels only
            return None
        guilty = [features for features, entries in directions if _agrees(problem, features, entries)]
        return _found(problem, guilty)
    low, high = np.zeros(len(directions)), np.zeros(len(directions))
    kept = []
    joint = len(directions) > 1 and n * len(directions) <= MAX_FOR_PROGRAM
    for agreement in _agreements(problem, directions):
        np.minimum(low, agreement.min(axis=0).toarray().ravel(), out=low)
        np.maximum(high, agreement.max(axis=0).toarray().ravel(), out=high)
        if joint:
            kept.append(agreement.toarray())
        elif np.all(low < 0.0) and np.all(high > 0.0):
            return None
    held = _as_columns(directions, problem.n_features)[signs != 0.0].multiply(signs[signs != 0.0][:, None])
    least, most = np.zeros_like(low), np.zeros_like(high)
    if held.shape[0]:
        least, most = (bound.toarray().ravel() for bound in (held.min(axis=0), held.max(axis=0)))
    onward = (low == 0.0) & (high > 0.0) & (least >= 0.0)
    back = (low < 0.0) & (high == 0.0) & (most <= 0.0)
    guilty = [directions[k][0] for k in np.flatnonzero(onward | back)]
    if not guilty and kept:
        moving = _jointly_improving(np.concatenate(kept), held.toarray())
        if moving.any():
            return _found(problem, [directions[k][0] for k in np.flatnonzero(moving)], jointly=True)
    return _found(problem, guilty)


def _as_columns(directions: list[tuple[np.ndarray, np.ndarray]], d: int) -> scipy.sparse.csr_array:
    """A matrix with a column for each direction."""
    features, entries = (np.concatenate(part) for part in zip(*directions, strict=True))
    column = np.repeat(np.arange(len(directions)), [group.size for group, _ in directions])
    return scipy.sparse.csr_array((entries, (features, column)), shape=(d, len(directions)))


def _agreements(problem: Problem, directions: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[Any]:
    """aᵢ·u of the samples with a weight, a column for each direction u, in chunks of rows.

    Each has the sign of the side on which the loss of the sample is flat, or occurs with both signs where it is flat on
    neither.
    """
    basis = _as_columns(directions, problem.n_features)
    backend, n = cast(LocalBackend, problem.backend), problem.n_samples
    if problem.is_coupled:
        yield from _leads(problem, basis)
        return
    side = _flat_sides(backend.samples())
    counts = backend.weight > 0 if backend.weighted else np.ones(n, bool)
    for place in _places(n, backend.rows_per_chunk):
        backend.between_chunks()
        chunk = as_matrix(backend.rows, place.start, place.stop)
        part = _without_rounding(chunk, scipy.sparse.csr_array(times_basis(chunk, basis)), basis)
        signed = scipy.sparse.csr_array(scipy.sparse.diags_array(side[place] * counts[place]) @ part)
        neither = scipy.sparse.csr_array(part)[(side[place] == 0.0) & counts[place]]
        yield scipy.sparse.csc_array(scipy.sparse.vstack([signed, neither, -neither]))


def _places(n: int, rows_per_chunk: int) -> Iterator[slice]:
    """The chunks of the samples. The first is small, because a few samples are often enough to exclude a direction."""
    start, size = 0, min(FIRST_CHUNK, rows_per_chunk)
    while start < n:
        yield slice(start, min(start + size, n))
        start, size = start + size, rows_per_chunk


def _leads(problem: Problem, basis: Any) -> Iterator[Any]:
    """By how much the margin of a sample's own class rises more than that of each class, along each direction."""
    rows, k = problem.rows, problem.n_outputs
    counts = problem.sample_weight > 0
    _, target, _ = split_offset(problem.loss, problem.target)
    own = np.repeat(k * np.arange(problem.n_rows) + target.reshape(-1, k).argmax(axis=1), k)
    for start in range(0, problem.n_samples, problem.rows_per_chunk):
        problem.backend.between_chunks()
        place = slice(start, min(start + problem.rows_per_chunk, problem.n_samples))
        chunk = as_matrix(rows, place.start, place.stop)
        part = scipy.sparse.csr_array(
            _without_rounding(chunk, scipy.sparse.csr_array(times_basis(chunk, basis)), basis)
        )
        lead = scipy.sparse.csr_array(part[own[place] - start] - part)
        yield scipy.sparse.csc_array(scipy.sparse.diags_array(counts[place].astype(float)) @ lead)


def _without_rounding(chunk: Any, part: Any, basis: Any) -> Any:
    """aᵢ·u with zeros in place of entries that are rounding errors of their terms."""
    entries = chunk.data if scipy.sparse.issparse(chunk) else chunk
    largest = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))  # without a copy of the chunk
    terms = np.asarray(abs(basis).sum(axis=0)).ravel()
    part.data[np.abs(part.data) <= ROUNDING * largest * terms[part.indices]] = 0.0
    return part


def _agrees(problem: Problem, features: np.ndarray, entries: np.ndarray) -> bool:
    """Does no sample's loss increase along a direction, and that of some decrease?"""
    direction = np.zeros(problem.n_features)
    direction[features] = entries
    ranges = problem.backend.each(tasks.agreement, direction)
    smallest, largest = min(low for low, _ in ranges), max(high for _, high in ranges)
    return (smallest == 0.0) != (largest == 0.0)


def _found(problem: Problem, guilty: list[np.ndarray], *, jointly: bool = False) -> Recession | None:
    if not guilty:
        return None
    jointly = jointly or any(features.size > 1 for features in guilty)
    features = np.unique(np.concatenate(guilty))
    names = problem.feature_names or [str(feature) for feature in range(problem.n_features)]
    named = [names[feature] for feature in features]
    return Recession(features, named, jointly, problem.n_samples, bool(problem.loss.labels))


def _jointly_improving(agreements: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Which directions take part in a combination along which no sample's loss increases, and that of some decreases;
    `held` has the entries that may only be positive, times their signs."""
    from scipy.optimize import linprog

    units = np.abs(agreements).max(axis=0)
    rows = np.vstack([agreements, held]) / np.where(units > 0.0, units, 1.0)
    sizes = np.abs(rows).max(axis=1)
    rows = rows[sizes > 0.0] / sizes[sizes > 0.0, None]  # so that the tolerances of the programme fit every sample
    gain = rows[: np.count_nonzero(sizes[: agreements.shape[0]])].sum(axis=0)
    solution = linprog(-gain, A_ub=-rows, b_ub=np.zeros(rows.shape[0]), bounds=(-1.0, 1.0), method="highs")
    if solution.status != 0 or -solution.fun <= CLEAR_GAIN or (rows @ solution.x).min() < -MAX_VIOLATION:
        return np.zeros(gain.size, bool)
    return np.abs(solution.x) > 1e-9
