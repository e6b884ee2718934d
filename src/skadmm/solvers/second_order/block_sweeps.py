"""Block coordinate descent on a quadratic model: sweeps over blocks with the Gram matrix of a working set.

    minimise over x   ½ (x − x₀)·G (x − x₀) + q₀·(x − x₀) + Σ_b penalty_b(x_b)

q is the gradient of the smooth part, kept up to date, so a block whose step is zero costs no more than its own size.

For the squared loss many strengths of the penalty are solved in one call. The loss of the next point is known without
the samples,

    L(x + δ) = L(x) + ½ δ·(q(x) + q(x + δ)),      q(x + δ) = q(x) + Gδ,

and so is the duality gap. With slopes θ = w(Xx − b) scaled by s the dual objective is

    D(s) = s (2L − x·q) − s² L,      s at most the inverse of the dual norm of q relative to the penalty,

because (1/n) Σ θ b = x·q − 2L. Squared terms of the penalty are further samples with target zero, so they are part of L
and q. A strength therefore ends as soon as its gap allows.

References
----------
Bertrand, Q. and Massias, M. (2021). Anderson acceleration of coordinate descent. AISTATS.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from skadmm.kernels.compile import inlined, kernel
from skadmm.regularizers._norms import clip_linf

SETTLED = 0.1
"""Sweeps over the nonzero blocks end when they change this share of what a sweep over all blocks does."""
EXTRAPOLATION_DAMPING = 1e-12
"""The damping of the matrix of an extrapolation, relative to its largest entry."""


class Workspace(NamedTuple):
    """Arrays that sweeps need besides the model and the point; those of an extrapolation are empty where none is made.
    Kernels that allocate them would take longer to compile."""

    blocks: Any
    aim: Any
    new: Any
    points: Any
    """The points after the last sweeps."""
    slopes: Any
    """q at these points."""
    weights: Any
    system: Any


def workspace(features: int, blocks: int, short: int = 0) -> Workspace:
    """Arrays for sweeps over these numbers of features and blocks, with extrapolations from `short` sweeps."""
    points, slopes = np.empty((2, short + 1, features))
    aim, new = np.empty((2, features))
    return Workspace(np.empty(blocks, np.int64), aim, new, points, slopes, np.empty(short), np.empty((short, short)))


@inlined
def block_prox(v, start, stop, step, l1, lower, upper, norm, group, out):
    """out ← the proximal step of block [start, stop): the ℓ1 part and bounds by coordinate, then the norm."""
    for j in range(start, stop):
        bound = step * l1[j]
        u = v[j] - min(max(v[j], -bound), bound)
        out[j] = min(max(u, lower[j]), upper[j])
    if norm == 1:
        size = 0.0
        for j in range(start, stop):
            size += out[j] * out[j]
        size = math.sqrt(size)
        limit = step * group
        factor = 0.0 if size <= limit else 1.0 - limit / size
        for j in range(start, stop):
            out[j] *= factor
    elif norm == 2:
        clip_linf(out, range(start, stop), step * group, out)


@inlined
def sweep_blocks(G, bound, blocks, count, starts, l1, lower, upper, norm, group, x, q, aim, new):
    """One step of each of the first `count` of `blocks`; the largest change times its curvature."""
    largest = 0.0
    for place in range(count):
        b = blocks[place]
        start, stop = starts[b], starts[b + 1]
        L = bound[b]
        for j in range(start, stop):
            aim[j] = x[j] - q[j] / L
        block_prox(aim, start, stop, 1.0 / L, l1, lower, upper, norm[b], group[b], new)
        for j in range(start, stop):
            step = new[j] - x[j]
            if step != 0.0:
                x[j] = new[j]
                row = G[j]
                for k in range(q.size):
                    q[k] += step * row[k]
                largest = max(largest, abs(step) * L)
    return largest


@inlined
def select_blocks(x, starts, every, out):
    """The first places of out ← the blocks that are not zero, or all; their number."""
    count = 0
    for b in range(starts.size - 1):
        some = every
        for j in range(starts[b], starts[b + 1]):
            some = some or x[j] != 0.0
        if some:
            out[count] = b
            count += 1
    return count


@kernel
def sweeps(model, work, x, q, goal, limit, short):
    """Sweeps over all blocks and, between them, over those that are not zero, until none changes by more than `goal`.

    Returns the changes of the first and the last sweep over all blocks; the last is at most `goal` where they have
    arrived.
    """
    G, bound, starts, l1, lower, upper, norm, group = model
    blocks, aim, new = work.blocks, work.aim, work.new
    first = last = np.inf
    for made in range(limit):
        count = 0
        for inner in range(short + 1):  # one call of the sweep for both kinds, because each is a copy of its code
            if inner <= 1:
                count = select_blocks(x, starts, inner == 0, blocks)
            moved = sweep_blocks(G, bound, blocks, count, starts, l1, lower, upper, norm, group, x, q, aim, new)
            if inner == 0:
                last = moved
                if made == 0:
                    first = last
            if moved <= (goal if inner == 0 else 0.5 * goal):
                break
        if last <= goal:
            break
    return first, last


@kernel
def violations(x, gradient, features, starts, l1, lower, upper, norm, group, out):
    """out_b ← how far block b is from optimal: the size of the smallest element of gradient + ∂penalty."""
    for b in range(starts.size - 1):
        kind = norm[b]
        total = 0.0
        off = False
        square = 0.0
        for p in range(starts[b], starts[b + 1]):
            value = x[features[p]]
            square += value * value
            off = off or value != 0.0
        size = math.sqrt(square)
        absolute = 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            value, g, limit = x[j], gradient[j], l1[j]
            if kind == 1 and off:
                g += group[b] * value / size
            if value != 0.0:
                r = g + (limit if value > 0.0 else -limit)
            else:
                r = max(abs(g) - limit, 0.0) * (1.0 if g > 0.0 else -1.0)
            # −r is the direction of descent of x_j, which a bound may prevent.
            if (r > 0.0 and value <= lower[j]) or (r < 0.0 and value >= upper[j]):
                r = 0.0
            total += r * r
            absolute += abs(r)
        if kind == 1 and not off:
            out[b] = max(math.sqrt(total) - group[b], 0.0)
        elif kind == 2 and not off:
            out[b] = max(absolute - group[b], 0.0)
        elif kind == 2:
            out[b] = -1.0
        else:
            out[b] = math.sqrt(total)


@kernel
def support_system(G, support, block, x, q, l1, group, norms, hessian, gradient):
    """The lower triangle of the Hessian and the gradient on a support, where the penalty is smooth; x is there."""
    for c in range(support.size):
        row, b = G[support[c]], block[c]
        for r in range(c, support.size):
            hessian[r, c] = row[support[r]]
        gradient[c] = q[support[c]] + (l1[support[c]] if x[c] > 0.0 else -l1[support[c]])
        if group[b] > 0.0:
            weight, unit = group[b] / norms[b], x[c] / norms[b]
            gradient[c] += group[b] * unit
            hessian[c, c] += weight
            for r in range(c, support.size):
                if block[r] != b:
                    break
                hessian[r, c] -= weight * unit * x[r] / norms[b]


def add_rows_of(G: np.ndarray, rows: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """out ← out + Σ_k scale_k G[rows_k], as far as `out` goes."""
    out += scale @ G[rows, : out.size]


@kernel
def square_part(G, index, out):
    """out ← the rows and columns of G with these numbers."""
    for a in range(index.size):
        row = G[index[a]]
        for b in range(index.size):
            out[a, b] = row[index[b]]


@kernel
def bounds_of(x, q, features, starts, l1, norm, group, strength, loss):
    """The objective and a lower bound of the optimum; features without a penalty must have q = 0."""
    penalty, inner, ratio = 0.0, 0.0, 0.0
    for b in range(starts.size - 1):
        kind = norm[b]
        square, absolute, largest, size = 0.0, 0.0, 0.0, 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            value, slope = x[j], q[j]
            v, g = abs(value), abs(slope)
            inner += value * slope
            if kind == 0:
                limit = strength * l1[j]
                if limit > 0.0:
                    penalty += limit * v
                    ratio = max(ratio, g / limit)
            square += value * value
            largest = max(largest, v)
            absolute += g
            size += g * g
        limit = strength * group[b]
        if kind == 1:
            penalty += limit * math.sqrt(square)
            ratio = max(ratio, math.sqrt(size) / limit)
        elif kind == 2:
            penalty += limit * largest
            ratio = max(ratio, absolute / limit)
    scale = 1.0
    if loss > 0.0:
        scale = max((2.0 * loss - inner) / (2.0 * loss), 0.0)
    if ratio > 0.0:
        scale = min(scale, 1.0 / ratio)
    return loss + penalty, scale * (2.0 * loss - inner) - scale * scale * loss


@inlined
def shortest_combination(system, out):
    """out ← the weights w, which add up to one, of minimum w·system w, by Cholesky factors in place of the lower
    triangle; False where the matrix is not positive definite."""
    size, total = out.size, 0.0
    for a in range(size):
        out[a] = 1.0
        for b in range(a, size):
            for c in range(a):
                system[b, a] -= system[b, c] * system[a, c]
        if system[a, a] <= 0.0:
            return False
        system[a, a] = math.sqrt(system[a, a])
        for b in range(a + 1, size):
            system[b, a] /= system[a, a]
        for c in range(a):
            out[a] -= system[a, c] * out[c]
        out[a] /= system[a, a]
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            out[a] -= system[c, a] * out[c]
        out[a] /= system[a, a]
        total += out[a]
    for a in range(size):
        out[a] /= total
    return True


@inlined
def products_of_steps(points, system):
    """system ← the products of the steps between points, damped; Anderson's method takes their shortest combination."""
    steps, largest = system.shape[0], 0.0
    for a in range(steps):
        for b in range(a + 1):
            total = 0.0
            for j in range(points.shape[1]):
                total += (points[a + 1, j] - points[a, j]) * (points[b + 1, j] - points[b, j])
            system[a, b] = total
        largest = max(largest, system[a, a])
    for a in range(steps):
        system[a, a] += EXTRAPOLATION_DAMPING * largest


@inlined
def combine_points(points, slopes, weights, x, q, aim, new):
    """aim and new ← the combinations of the points after the first one and of their q; the change of the loss from x to
    there. q is affine in x, so no product with G is needed."""
    rise = 0.0
    for j in range(x.size):
        there, slope = 0.0, 0.0
        for a in range(weights.size):
            there += weights[a] * points[a + 1, j]
            slope += weights[a] * slopes[a + 1, j]
        aim[j], new[j] = there, slope
        rise += 0.5 * (there - x[j]) * (q[j] + slope)
    return rise


@inlined
def penalties_of(x, other, model):
    """The norms of all blocks of two points."""
    total, other_total = 0.0, 0.0
    for b in range(model.starts.size - 1):
        kind, weight = model.norm[b], model.group[b]
        square, largest, other_square, other_largest = 0.0, 0.0, 0.0, 0.0
        for j in range(model.starts[b], model.starts[b + 1]):
            size, other_size, limit = abs(x[j]), abs(other[j]), model.l1[j]
            total += limit * size
            other_total += limit * other_size
            square += size * size
            other_square += other_size * other_size
            largest = max(largest, size)
            other_largest = max(other_largest, other_size)
        if kind == 1:
            total += weight * math.sqrt(square)
            other_total += weight * math.sqrt(other_square)
        elif kind == 2:
            total += weight * largest
            other_total += weight * other_largest
    return total, other_total


@inlined
def keep_point(x, q, k, points, slopes):
    """Row k of `points` and `slopes` ← x and q."""
    for j in range(x.size):
        points[k, j], slopes[k, j] = x[j], q[j]


@inlined
def change_since(points, slopes, x, q):
    """The change of the loss from the first point."""
    change = 0.0
    for j in range(x.size):
        change += 0.5 * (x[j] - points[0, j]) * (slopes[0, j] + q[j])
    return change


@kernel
def follow_strengths(
    l1, group, model, work, index, strengths, first, x, q, loss, accuracy, limit, short, solutions, found
):
    """Block coordinate descent at one strength after another, from number `first` on, each from the last solution.

    A round is a sweep over all blocks, up to `short` over those that are not zero, and an extrapolation from these,
    where that decreases the objective. `l1` and `group` are those of the penalty at strength one; `model` has its own,
    which are overwritten. `index` has the numbers of all features. Row k of `solutions` and of `found` (loss,
    objective, lower bound) takes what strength k ends with. Returns the number of the strength that did not reach its
    accuracy in `limit` sweeps over all blocks, and the loss there.

    The parts of a round are called from here, not from each other, because a function is copied once for each level.
    """
    G, bound, starts, scaled_l1, lower, upper, norm, scaled_group = model
    blocks, aim, new, points, slopes, weights, system = work
    relative, smallest, largest_gap, floor = accuracy
    for k in range(first, strengths.size):
        for j in range(x.size):
            scaled_l1[j] = strengths[k] * l1[j]
        for b in range(group.size):
            scaled_group[b] = strengths[k] * group[b]
        solved = False
        for made in range(limit + 1):
            objective, dual = bounds_of(x, q, index, starts, l1, norm, group, strengths[k], loss)
            solved = objective - dual <= max(min(relative * max(objective, floor), largest_gap), smallest)
            if solved or made == limit:
                break
            keep_point(x, q, 0, points, slopes)
            largest, moved, count, kept = 0.0, 0.0, 0, 0
            while kept <= short and (kept <= 1 or moved > SETTLED * largest):
                if kept <= 1:
                    count = select_blocks(x, starts, kept == 0, blocks)
                moved = sweep_blocks(
                    G, bound, blocks, count, starts, scaled_l1, lower, upper, norm, scaled_group, x, q, aim, new
                )
                if kept == 0:
                    largest = moved
                    loss += change_since(points, slopes, x, q)
                keep_point(x, q, kept, points, slopes)
                kept += 1
            loss += change_since(points, slopes, x, q)
            if kept <= short:
                continue
            products_of_steps(points, system)
            if shortest_combination(system, weights):
                rise = combine_points(points, slopes, weights, x, q, aim, new)
                there, here = penalties_of(aim, x, model)
                if rise + there < here:
                    loss += rise
                    for j in range(x.size):
                        x[j], q[j] = aim[j], new[j]
        found[k, 0], found[k, 1], found[k, 2] = loss, objective, dual
        if not solved:
            return k, loss
        for j in range(x.size):
            solutions[k, j] = x[j]
    return strengths.size, loss
