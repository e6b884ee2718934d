"""Block coordinate descent on a quadratic model: sweeps over blocks with the Gram matrix of a working set.

    minimise over x   ½ (x − x₀)·G (x − x₀) + q₀·(x − x₀) + Σ_b penalty_b(x_b)

q is the gradient of the smooth part, kept up to date, so a block whose step is zero costs no more than its own size.
"""

import math

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.regularizers._norms import clip_linf


@kernel
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


@kernel
def _sweep(G, bound, blocks, starts, l1, lower, upper, norm, group, x, q, aim, new):
    """One step of each block in `blocks`; the largest change times its curvature."""
    largest = 0.0
    for b in blocks:
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


@kernel
def sweeps(G, bound, starts, l1, lower, upper, norm, group, x, q, goal, limit, short):
    """Sweeps over all blocks and, between them, over those that are not zero, until none changes by more than `goal`.

    Returns the number of sweeps, and whether they have arrived.
    """
    n_blocks = starts.size - 1
    every = np.arange(n_blocks)
    aim, new = np.empty(x.size), np.empty(x.size)
    made = 0
    while made < limit:
        made += 1
        if _sweep(G, bound, every, starts, l1, lower, upper, norm, group, x, q, aim, new) <= goal:
            return made, True
        count = 0
        some = np.empty(n_blocks, np.int64)
        for b in range(n_blocks):
            for j in range(starts[b], starts[b + 1]):
                if x[j] != 0.0:
                    some[count] = b
                    count += 1
                    break
        some = some[:count]
        for _ in range(short):
            if _sweep(G, bound, some, starts, l1, lower, upper, norm, group, x, q, aim, new) <= 0.5 * goal:
                break
    return made, False


@kernel
def violations(x, gradient, features, starts, l1, lower, upper, norm, group, out):
    """out_b ← how far block b is from optimal: the size of the smallest element of gradient + ∂penalty."""
    for b in range(starts.size - 1):
        total = 0.0
        off = False
        square = 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            square += x[j] * x[j]
            off = off or x[j] != 0.0
        size = math.sqrt(square)
        absolute = 0.0
        for p in range(starts[b], starts[b + 1]):
            j = features[p]
            g = gradient[j]
            if norm[b] == 1 and off:
                g += group[b] * x[j] / size
            if x[j] != 0.0:
                r = g + (l1[j] if x[j] > 0.0 else -l1[j])
            else:
                r = max(abs(g) - l1[j], 0.0) * (1.0 if g > 0.0 else -1.0)
            # −r is the direction in which x_j wants to move: a bound may hold it.
            if (r > 0.0 and x[j] <= lower[j]) or (r < 0.0 and x[j] >= upper[j]):
                r = 0.0
            total += r * r
            absolute += abs(r)
        if norm[b] == 1 and not off:
            out[b] = max(math.sqrt(total) - group[b], 0.0)
        elif norm[b] == 2 and not off:
            out[b] = max(absolute - group[b], 0.0)
        elif norm[b] == 2:
            out[b] = -1.0
        else:
            out[b] = math.sqrt(total)
