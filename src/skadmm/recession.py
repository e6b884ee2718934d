"""Is the minimum attained? Directions along which the penalty is flat and the loss falls for ever.

The logistic loss has no minimiser along a direction u that no penalty sees (A u = 0, no Ω) when every sample agrees
with it: bᵢ aᵢ·u ≥ 0 for all i, not all zero. The null space of A is found where that is cheap: features that no row
of A reaches, and, for rows of two entries (graphs), one direction for each connected component.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse.csgraph

from skadmm.blocks import tasks
from skadmm.kernels.rows import multiply
from skadmm.polish import clusters
from skadmm.problem import Problem
from skadmm.regularizers import Zero

MOST_FOR_PROGRAM = 1_000_000
"""A linear programme over several directions at once is tried up to this many entries (samples × directions)."""


class Recession(NamedTuple):
    """What keeps the minimum from being attained."""

    features: np.ndarray
    """The features concerned, by number."""
    names: list[str]
    together: bool
    """Do they move together, or each for itself?"""
    samples_touched: int

    def __str__(self) -> str:
        shown = ", ".join(self.names[:20]) + (", …" if len(self.names) > 20 else "")
        if self.together:
            why = (
                f"no penalty sees {len(self.names)} feature(s) move together ({shown}), and that brings every sample "
                "nearer to its label"
            )
        else:
            why = f"no penalty reaches {len(self.names)} feature(s) that occur with one label only ({shown})"
        return (
            f"there is no minimiser: {why}, so their coefficients grow for ever. Penalise every feature (A = [G; I]), "
            "or drop them"
        )


def flat_directions(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Directions the penalty does not see, as (features, entries), one for each component of A's rows."""
    A = problem.constraint.A
    d = problem.n_features
    counts = np.diff(A.indptr)
    alone = A.indices[A.indptr[:-1][counts == 1]]
    if not isinstance(problem.omega, Zero) or np.unique(alone).size == d:
        return []
    wide = np.zeros(d, bool)  # features in a row that is not a pair: not looked into
    for row in np.flatnonzero(counts > 2):
        wide[A.indices[A.indptr[row] : A.indptr[row + 1]]] = True
    labels, factors = clusters(A, np.ones(A.shape[0], bool))
    _, component = scipy.sparse.csgraph.connected_components(abs(A).T @ abs(A), directed=False)
    spoilt = np.zeros(component.max() + 1, bool)
    spoilt[component[wide]] = True
    order = np.argsort(labels, kind="stable")
    order = order[(labels[order] >= 0) & ~spoilt[component[order]]]
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []
    return [(group, factors[group]) for group in groups]


def find(problem: Problem) -> Recession | None:
    """The features along which the minimum is not attained; None where no such direction was found."""
    if getattr(problem.loss, "attained", True):
        return None
    directions = flat_directions(problem)
    if not directions:
        return None
    n = problem.n_samples
    if problem.remote:
        guilty = [features for features, entries in directions if _agrees(problem, features, entries)]
        return _found(problem, guilty)
    active = problem.sample_weight > 0 if problem.sample_weight.size else np.ones(n, bool)
    guilty, together = [], False
    agreements = np.empty((n, len(directions))) if n * len(directions) <= MOST_FOR_PROGRAM else None
    margins = np.empty(n)
    for number, (features, entries) in enumerate(directions):
        direction = np.zeros(problem.n_features)
        direction[features] = entries
        multiply(problem.rows, direction, margins)
        agreement = (problem.target * margins)[active]
        if agreement.any() and (agreement.min() >= 0 or agreement.max() <= 0):
            guilty.append(features)
        if agreements is not None:
            agreements[:, number] = problem.target * margins
    if not guilty and agreements is not None and len(directions) > 1 and _together(agreements[active]):
        guilty, together = [features for features, _ in directions], True
    return _found(problem, guilty, together=together)


def _agrees(problem: Problem, features: np.ndarray, entries: np.ndarray) -> bool:
    """Does every sample agree with a direction, and some of them gain?"""
    direction = np.zeros(problem.n_features)
    direction[features] = entries
    ranges = problem.home.each(tasks.agreement, direction)
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return (least == 0.0) != (most == 0.0)


def _found(problem: Problem, guilty: list[np.ndarray], *, together: bool = False) -> Recession | None:
    if not guilty:
        return None
    together = together or any(features.size > 1 for features in guilty)
    features = np.sort(np.concatenate(guilty))
    names = problem.feature_names or [str(feature) for feature in range(problem.n_features)]
    return Recession(features, [names[feature] for feature in features], together, problem.n_samples)


def _together(agreements: np.ndarray) -> bool:
    """Is there a combination of the directions with which every sample agrees, and some gain?"""
    from scipy.optimize import linprog

    gain = agreements.sum(axis=0)
    answer = linprog(-gain, A_ub=-agreements, b_ub=np.zeros(agreements.shape[0]), bounds=(-1.0, 1.0), method="highs")
    return bool(answer.status == 0 and -answer.fun > 1e-9 * max(np.abs(agreements).sum(), 1e-300))
