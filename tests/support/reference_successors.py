"""Slow twins of the methods with a variance-reduced gradient, in plain NumPy, written from their papers' equations.

As in ``reference.py`` nothing here imports skadmm, and a method is a generator of (x, y, dual). Gradients are kept
whole, one row a sample; an epoch's iterates are kept in a list, and averaged.
"""

from collections.abc import Iterator

import numpy as np
from reference import Model, Triple, count_blocks, first_table


def _x_step(model: Model, x, y, dual, gradient, L, linearised: bool) -> np.ndarray:
    """argmin over u of gradient·u + Ω(u) + (ρ/2)‖Au + By − c + dual‖² + (L/2)‖u − x‖², whole or linearised."""
    rho, A = model.rho, model.A
    if not linearised:
        right = L * x - rho * A.T @ (model.B @ y - model.c + dual) - gradient
        return np.linalg.solve(rho * A.T @ A + (L + model.ridge) * np.eye(x.size), right)
    step = 1 / (L + rho * np.linalg.norm(A, 2) ** 2)
    u = x - step * (gradient + rho * A.T @ (A @ x + model.B @ y - model.c + dual))
    return u if model.omega_prox is None else model.omega_prox(u, step)


def saga(
    model: Model, blocks: list[np.ndarray], x0: np.ndarray, *, linearised: bool = False, table: str = "x0"
) -> Iterator[Triple]:
    n, n_blocks = model.X.shape[0], count_blocks(model, blocks)
    x, y, dual = model.start(x0)
    gradients = first_table(model, x, table)
    for block in blocks:
        new = model.gradients(x)[block]
        gradient = (new - gradients[block]).sum(0) * n_blocks / n + gradients.mean(0)
        gradients[block] = new
        x = _x_step(model, x, y, dual, gradient + model.omega_slope(x), 1 / model.step, linearised)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def _dual_of(model: Model, x: np.ndarray) -> np.ndarray:
    """−(1/ρ)(Aᵀ)†∇F(x)."""
    smooth = model.gradients(x).mean(0) + model.omega_slope(x) + model.ridge * x
    return -np.linalg.pinv(model.A.T) @ smooth / model.rho


def svrg(
    model: Model, blocks: list[np.ndarray], x0: np.ndarray, *, linearised: bool = False, form: str = "general",
    epoch: float = 2.0,
) -> Iterator[Triple]:  # fmt: skip
    """Zheng and Kwok (2016), their Algorithms 1 (strongly convex) and 2 (general), x before y."""
    n, n_blocks = model.X.shape[0], count_blocks(model, blocks)
    every = max(1, round(epoch * n_blocks))
    snapshot, y_mean, dual = model.start(x0)
    x, y = snapshot, y_mean
    for start in range(0, len(blocks), every):
        if form == "strongly-convex":
            x, y, dual = snapshot, y_mean, _dual_of(model, snapshot)
        there = model.gradients(snapshot)
        xs, ys = [], []
        for block in blocks[start : start + every]:
            gradient = (model.gradients(x) - there)[block].sum(0) * n_blocks / n + there.mean(0)
            x = _x_step(model, x, y, dual, gradient + model.omega_slope(x), 1 / model.step, linearised)
            y, dual = model.y_and_dual(x, dual)
            xs.append(x)
            ys.append(y)
            yield x, y, dual
        snapshot, y_mean = np.mean(xs, axis=0), np.mean(ys, axis=0)


def asvrg(
    model: Model, blocks: list[np.ndarray], x0: np.ndarray, *, linearised: bool = False, form: str = "general",
    epoch: float = 2.0, theta: float = 0.5,
) -> Iterator[Triple]:  # fmt: skip
    """Liu, Shang and Cheng (2017), their Algorithms 1 (strongly convex) and 2 (general), z before y; yields z."""
    n, n_blocks = model.X.shape[0], count_blocks(model, blocks)
    every = max(1, round(epoch * n_blocks))
    snapshot, y_mean, dual = model.start(x0)
    z, y, accelerated = snapshot, y_mean, theta < 1
    for start in range(0, len(blocks), every):
        if form == "strongly-convex":
            z, y, dual = snapshot, y_mean, _dual_of(model, snapshot)
        there = model.gradients(snapshot)
        x = (1 - theta) * snapshot + theta * z
        xs, ys = [], []
        for block in blocks[start : start + every]:
            gradient = (model.gradients(x) - there)[block].sum(0) * n_blocks / n + there.mean(0)
            z = _x_step(model, z, y, dual, gradient + model.omega_slope(x), theta / model.step, linearised)
            y, dual = model.y_and_dual(z, dual)
            x = (1 - theta) * snapshot + theta * z
            xs.append(x)
            ys.append(y)
            yield z, y, dual
        snapshot, y_mean = np.mean(xs, axis=0), (1 - theta) * y_mean + theta * np.mean(ys, axis=0)
        if form == "general" and accelerated:
            theta = (np.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2


METHODS = {
    f"{name}-{kind}": (method, kind == "iu-admm")
    for name, method in (("saga", saga), ("svrg", svrg), ("asvrg", asvrg))
    for kind in ("admm", "iu-admm")
}


def iterates(method: str, model: Model, blocks: list[np.ndarray], x0: np.ndarray, **options) -> Iterator[Triple]:
    twin, linearised = METHODS[method]
    return twin(model, blocks, x0, linearised=linearised, **options)
