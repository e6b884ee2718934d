"""Slow proximal steps, one per regulariser, written from its definition and sharing no code with the package.

A twin takes the regulariser as a person writes it (before ``prepared``), the vector and the step.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.optimize

HALVINGS = 200


def by_bisection(slope: Callable, v: np.ndarray, step: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Each u in [lower, upper] where the right derivative of (u − v)²/(2·step) + h(u) turns positive."""
    for _ in range(HALVINGS):
        middle = 0.5 * (lower + upper)
        rising = (middle - v) / step + slope(middle) >= 0.0
        lower, upper = np.where(rising, lower, middle), np.where(rising, middle, upper)
    # Zero as the limit from one side only is a number below 1e-30.
    return np.where(np.abs(upper) < 1e-30, 0.0, upper)


def separable(slope: Callable, v: np.ndarray, step: float) -> np.ndarray:
    """No norm moves a coordinate past zero, so the answer is in [−|v|, |v|]."""
    return by_bisection(slope, v, step, -np.abs(v) - 1.0, np.abs(v) + 1.0)


def weights_of(reg, count: int) -> np.ndarray:
    return np.ones(count) if reg.weights is None else np.asarray(reg.weights, dtype=float)


def right_sign(u: np.ndarray) -> np.ndarray:
    return np.where(u >= 0.0, 1.0, -1.0)


def zero(reg, v, step):
    return v.copy()


def l1(reg, v, step):
    bound = reg.strength * weights_of(reg, v.size)
    return separable(lambda u: bound * right_sign(u), v, step)


def squared_l2(reg, v, step):
    weights = weights_of(reg, v.size)
    return separable(lambda u: reg.strength * weights * u, v, step)


def elastic_net(reg, v, step):
    bound = reg.l1_ratio * weights_of(reg, v.size)
    return separable(lambda u: reg.strength * (bound * right_sign(u) + (1.0 - reg.l1_ratio) * u), v, step)


def l2_norm(v, bound):
    """Moreau: v minus its projection v/(1 + multiplier) on the ball of radius `bound`."""
    if np.linalg.norm(v) <= bound:
        return np.zeros_like(v)
    if bound == 0.0:
        return v.copy()
    low, high = 0.0, np.linalg.norm(v) / bound
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(v / (1.0 + middle)) > bound else (low, middle)
    return v - v / (1.0 + high)


def linf_norm(v, bound):
    """Moreau: v minus its projection on the ℓ1 ball of radius `bound`, found by sorting."""
    if np.abs(v).sum() <= bound:
        return np.zeros_like(v)
    if bound == 0.0:
        return v.copy()
    largest = np.sort(np.abs(v))[::-1]
    levels = (np.cumsum(largest) - bound) / np.arange(1, v.size + 1)
    level = levels[np.flatnonzero(largest > levels)[-1]]
    return v - np.sign(v) * np.maximum(np.abs(v) - level, 0.0)


def group_lists(groups, size: int) -> list[list[int]]:
    if groups is None:
        return [list(range(size))]
    if all(np.ndim(entry) == 0 for entry in groups):
        labels = sorted({label for label in groups if label >= 0})
        return [[j for j in range(size) if groups[j] == label] for label in labels]
    return [list(group) for group in groups]


def group_norm(norm: Callable) -> Callable:
    def twin(reg, v, step):
        out = v.copy()
        groups = group_lists(reg.groups, v.size)
        for group, weight in zip(groups, weights_of(reg, len(groups)), strict=True):
            out[group] = norm(v[group], step * reg.strength * weight)
        return out

    return twin


def box(reg, v, step):
    reach = np.abs(v) + 1.0
    lower = np.broadcast_to(reg.lower, v.shape).astype(float)
    upper = np.broadcast_to(reg.upper, v.shape).astype(float)
    # An open side is closed beyond both v and the other side.
    lower = np.where(np.isinf(lower), np.minimum(-reach, np.where(np.isinf(upper), 0.0, upper) - reach), lower)
    upper = np.where(np.isinf(upper), np.maximum(reach, lower + 2.0 * reach), upper)
    return by_bisection(np.zeros_like, v, step, lower, upper)


def non_negative(reg, v, step):
    return by_bisection(np.zeros_like, v, step, np.zeros_like(v), np.abs(v) + 1.0)


def by_subgradient(subgradient_at: Callable, v: np.ndarray, step: float) -> np.ndarray:
    """For a separable regulariser that is finite everywhere: bisection on any of its subgradients."""
    reach = np.abs(v) + 1.0
    while any((r - x) / step + subgradient_at(j, r) < 0.0 for j, (r, x) in enumerate(zip(reach, v, strict=True))):
        reach *= 2.0
    while any((-r - x) / step + subgradient_at(j, -r) > 0.0 for j, (r, x) in enumerate(zip(reach, v, strict=True))):
        reach *= 2.0

    def slope(u):
        return np.array([subgradient_at(j, u[j]) for j in range(u.size)])

    return by_bisection(slope, v, step, -reach, reach)


def lowest(value: Callable, v: np.ndarray, step: float, start: np.ndarray) -> float:
    """The smallest ‖u − v‖²/(2·step) + reg(u) that a search without derivatives finds from `start`."""

    def objective(u):
        return (u - v) @ (u - v) / (2.0 * step) + value(u)

    options = {"xtol": 1e-10, "ftol": 1e-15}
    with np.errstate(invalid="ignore"):
        found = scipy.optimize.minimize(objective, start, method="Powell", options=options).fun
    return min(found, objective(start))


def nuclear(reg, v, step):
    """v less its projection on the ball of the spectral norm: of every pair σ u wᵀ what exceeds the bound is left."""
    bound, at = reg.strength * step, v.size - reg.single
    out = v - np.clip(v, -bound, bound)
    V = v[:at].reshape(reg.columns, -1).T
    if V.size and bound > 0.0:
        left, sizes, right = scipy.linalg.svd(V, full_matrices=False, lapack_driver="gesvd")
        out[:at] = (V - (left * np.minimum(sizes, bound)) @ right).T.ravel()
    return out


REFERENCES: dict[str, Callable] = {
    "zero": zero,
    "l1": l1,
    "l2": lambda reg, v, step: l2_norm(v, step * reg.strength),
    "squared-l2": squared_l2,
    "linf": lambda reg, v, step: linf_norm(v, step * reg.strength),
    "elastic-net": elastic_net,
    "group-l2": group_norm(l2_norm),
    "group-linf": group_norm(linf_norm),
    "non-negative": non_negative,
    "box": box,
    "nuclear": nuclear,
}
