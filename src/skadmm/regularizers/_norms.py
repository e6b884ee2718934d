"""Norms over some coordinates of a vector, and the proximal step of ‖·‖∞.

`coordinates` is a ``range`` or an array of indices: a whole vector and a group of it share one implementation.
"""

import math

from skadmm.kernels.compile import jitable


@jitable
def norm_l1(v, coordinates):
    """Σ |v_j|."""
    total = 0.0
    for j in coordinates:
        total += abs(v[j])
    return total


@jitable
def norm_l2(v, coordinates):
    """√(Σ v_j²)."""
    total = 0.0
    for j in coordinates:
        total += v[j] * v[j]
    return math.sqrt(total)


@jitable
def norm_linf(v, coordinates):
    """max |v_j|."""
    largest = 0.0
    for j in coordinates:
        # Not max(): a comparison that fails for NaN must let it through.
        if not abs(v[j]) <= largest:
            largest = abs(v[j])
    return largest


@jitable
def clip_linf(v, coordinates, bound, out):
    """out_j ← the proximal step of bound·‖·‖∞, which clips to ±τ with Σ max(|v_j| − τ, 0) = bound.

    By Moreau's identity this is v minus its projection on the ℓ1 ball of radius `bound`. τ comes from Newton's
    iteration on that equation (Michelot, 1986): the left side is convex and piecewise linear, so from below τ only
    grows, the set it counts only shrinks, and the last step is exact. Nothing is sorted or allocated.
    """
    total = norm_l1(v, coordinates)
    if bound == 0.0:
        level = math.inf
    elif total <= bound:
        level = 0.0
    else:
        count = len(coordinates)
        level = (total - bound) / count
        while True:
            above = 0
            total = 0.0
            for j in coordinates:
                size = abs(v[j])
                above += 1 if size > level else 0
                total += size if size > level else 0.0
            # The iteration continues only while the count decreases, so that rounding cannot make it cycle.
            if above == 0 or above >= count:
                break
            count = above
            level = (total - bound) / count
    for j in coordinates:
        # Comparisons in place of min and max: NaN goes through.
        below = level if v[j] > level else v[j]
        out[j] = -level if below < -level else below


@jitable
def subgradient_linf(v, coordinates, strength, out):
    """out_j ← the subgradient of strength·‖·‖∞ of least norm: shared equally by the largest coordinates."""
    largest = norm_linf(v, coordinates)
    ties = 0
    for j in coordinates:
        if abs(v[j]) == largest:
            ties += 1
    for j in coordinates:
        if largest == 0.0 or abs(v[j]) != largest:
            out[j] = 0.0
        else:
            out[j] = math.copysign(strength / ties, v[j])
