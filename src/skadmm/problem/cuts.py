"""Flows in a network whose capacities grow with a number α: the smallest α at which all demands are met.

By the max-flow min-cut theorem that is the largest ratio, over sets S of nodes, of what S demands beyond the fixed
capacity into it to the growing capacity into it. Newton's method on that maximum (Dinkelbach, 1967) takes a handful of
maximum flows, each continued from the one before, and ends with the exact ratio of one set.

References
----------
Dinic, E. A. (1970). Algorithm for solution of a problem of maximum flow in networks with power estimation.
Dinkelbach, W. (1967). On nonlinear fractional programming. Management Science 13.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skadmm import _cancel
from skadmm.kernels.compile import kernel

MAX_ROUNDS = 200
"""Maximum flows, at most."""
ROUNDING = 1e-12
"""The share of the demands that may stay unmet."""


class Network(NamedTuple):
    """Arcs from `tail` to `head`. Each carries a flow between −`back` and `ahead`, times α where it is `growing`."""

    tail: np.ndarray
    head: np.ndarray
    ahead: np.ndarray
    back: np.ndarray
    growing: np.ndarray
    """Which arcs grow with α."""
    demand: np.ndarray
    """The net flow into each node; they sum to zero."""


@kernel
def _levels(source, first, following, target, residual, level, queue):
    """Distances from the source along arcs with residual capacity; returns the number of nodes reached."""
    level[:] = -1
    level[source] = 0
    queue[0] = source
    reached = 1
    done = 0
    while done < reached:
        node = queue[done]
        done += 1
        arc = first[node]
        while arc >= 0:
            if residual[arc] > 0.0 and level[target[arc]] < 0:
                level[target[arc]] = level[node] + 1
                queue[reached] = target[arc]
                reached += 1
            arc = following[arc]
    return reached


@kernel
def _block(source, sink, first, following, target, residual, level, current, stack):
    """A blocking flow along arcs from one level to the next; returns its amount. `current`: the arcs not yet tried."""
    total = 0.0
    depth = 0
    node = source
    while True:
        if node == sink:
            smallest = residual[stack[0]]
            at = 0
            for k in range(1, depth):
                if residual[stack[k]] < smallest:
                    smallest = residual[stack[k]]
                    at = k
            for k in range(depth):
                residual[stack[k]] -= smallest
                residual[stack[k] ^ 1] += smallest
            total += smallest
            depth = at  # back to where the arc is full
            node = target[stack[at] ^ 1]
            continue
        arc = current[node]
        while arc >= 0 and not (residual[arc] > 0.0 and level[target[arc]] == level[node] + 1):
            arc = following[arc]
        current[node] = arc
        if arc >= 0:
            stack[depth] = arc
            depth += 1
            node = target[arc]
        else:
            if depth == 0:
                return total
            level[node] = -1
            depth -= 1
            node = target[stack[depth] ^ 1]


def _link(tail: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The arcs that leave each node: the first of each node, and the one that follows each arc; −1 where none does."""
    order = np.argsort(tail, kind="stable")
    same = tail[order[1:]] == tail[order[:-1]]
    first, following = np.full(n_nodes, -1), np.full(tail.size, -1)
    following[order[1:][same]] = order[:-1][same]
    last = np.append(~same, True)
    first[tail[order[last]]] = order[last]
    return first, following


def smallest_growth(network: Network) -> float:
    """The smallest α ≥ 0 at which the demands can be met; infinite where no α is enough."""
    n = network.demand.size
    source, sink = n, n + 1
    giving, taking = np.flatnonzero(network.demand < 0), np.flatnonzero(network.demand > 0)
    if taking.size == 0:
        return 0.0
    # Arc 2k goes ahead and 2k + 1 back.
    tails = np.concatenate([network.tail, np.full(giving.size, source), taking])
    heads = np.concatenate([network.head, giving, np.full(taking.size, sink)])
    both = np.stack([tails, heads], axis=1).astype(np.int64)
    tail, target = both.ravel(), both[:, ::-1].ravel().copy()
    first, following = _link(tail, n + 2)
    m = network.tail.size
    capacity = np.stack([network.ahead, network.back], axis=1).ravel()
    growing = np.repeat(network.growing, 2)
    residual = np.zeros(tail.size)
    residual[: 2 * m][~growing] = capacity[~growing]
    residual[2 * m : 2 * (m + giving.size) : 2] = -network.demand[giving]
    residual[2 * (m + giving.size) :: 2] = network.demand[taking]
    total_demand = float(network.demand[taking].sum())
    level, queue = np.empty(n + 2, np.int64), np.empty(n + 2, np.int64)
    current, stack = np.empty(n + 2, np.int64), np.empty(n + 2, np.int64)
    alpha, met = 0.0, 0.0
    start = _single_nodes(network)
    for _ in range(MAX_ROUNDS):
        if not np.isfinite(start):
            return np.inf
        residual[: 2 * m][growing] += (start - alpha) * capacity[growing]
        alpha = start
        while True:
            _cancel.check_cancelled()
            _levels(source, first, following, target, residual, level, queue)
            if level[sink] < 0:
                break
            np.copyto(current, first)
            met += _block(source, sink, first, following, target, residual, level, current, stack)
        start = _ratio(network, level[:n] < 0)
        if met >= total_demand * (1 - ROUNDING) or not start > alpha * (1 + ROUNDING):
            break
    return alpha


def _ratio(network: Network, inside: np.ndarray) -> float:
    """The demand of the nodes `inside` beyond the fixed capacity into them, over the growing capacity into them."""
    entering = ~inside[network.tail] & inside[network.head]
    leaving = inside[network.tail] & ~inside[network.head]
    growing = network.growing
    fixed = network.ahead[entering & ~growing].sum() + network.back[leaving & ~growing].sum()
    growing_capacity = network.ahead[entering & growing].sum() + network.back[leaving & growing].sum()
    excess = network.demand[inside].sum() - fixed
    if growing_capacity > 0:
        return float(excess / growing_capacity)
    return np.inf if excess > ROUNDING * np.abs(network.demand[inside]).sum() else 0.0


def _single_nodes(network: Network) -> float:
    """The largest ratio of a set of one node, or of all but one."""
    n, growing = network.demand.size, network.growing
    largest = 0.0
    for into, out, sign in ((network.head, network.tail, 1.0), (network.tail, network.head, -1.0)):
        sums = [
            np.bincount(into, weights=np.where(kind, network.ahead, 0.0), minlength=n)
            + np.bincount(out, weights=np.where(kind, network.back, 0.0), minlength=n)
            for kind in (growing, ~growing)
        ]
        excess = sign * network.demand - sums[1]
        ratios = (excess > 0) & (sums[0] > 0)
        largest = max(largest, float(np.max(excess[ratios] / sums[0][ratios], initial=0.0)))
    return largest


__all__ = ["Network", "smallest_growth"]
