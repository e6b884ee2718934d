"""Coordinate descent on chosen features, slowly: with the Hessian of every model in full, and sharing no code with the
package."""

from collections.abc import Iterator

import numpy as np
from reference import Model


def coordinate_steps(
    model: Model, threshold: np.ndarray, steepest: float, x0: np.ndarray, few: int
) -> Iterator[np.ndarray]:
    """x after each step: a step minimises over some features until the largest pull among them is a tenth.

    They are those that are not zero and the ones that pull most, `few` or twice those that are not zero in all.
    `steepest` is the largest ℓ''.
    """
    n, d = model.X.shape

    def gradient(x):
        return model.gradients(x).mean(axis=0) + model.ridge * x

    def objective(x):
        return model.mean_loss(x) + 0.5 * model.ridge * x @ x + threshold @ np.abs(x)

    def pulls(x):
        g = gradient(x)
        return np.array([abs(g[j] + threshold[j] * np.sign(x[j])) - threshold[j] * (x[j] == 0) for j in range(d)]).clip(
            0
        )

    def hessian(x):
        curvatures = np.maximum(model.weight * model.loss(model.X @ x, model.b)[2], 1e-6 * steepest)
        return (model.X.T * curvatures) @ model.X / n + model.ridge * np.eye(d)

    x = x0
    while True:
        worst = left = pulls(x).max()
        size = max(few, 2 * np.count_nonzero(x))
        by_pull = sorted(np.flatnonzero((x != 0) | (pulls(x) > 0)), key=lambda j: (x[j] == 0, -pulls(x)[j]))
        chosen = sorted(by_pull[:size])
        for _ in range(10):
            aim = minimised(hessian(x), gradient(x), x, threshold, chosen, 0.1 * left)
            expected = gradient(x) @ (aim - x) + threshold @ (np.abs(aim) - np.abs(x))
            length = 1.0
            while objective(x + length * (aim - x)) > objective(x) + 1e-4 * length * expected + 1e-14 * objective(x):
                length /= 2
            x = aim if length == 1.0 else x + length * (aim - x)
            left = pulls(x)[chosen].max()
            if left <= 0.1 * worst:
                break
        yield x


def minimised(H, gradient, start, threshold, chosen, goal) -> np.ndarray:
    """The minimum over the chosen features of gradient·(u − start) + ½(u − start)ᵀH(u − start) + Σ threshold |u|, by
    sweeps: one over all, up to ten over those that are not zero, until one over all changes little."""
    u = start.copy()

    def sweep(order):
        largest = 0.0
        for j in order:
            before = u[j]
            v = u[j] - (gradient + H @ (u - start))[j] / H[j, j]
            u[j] = np.sign(v) * max(abs(v) - threshold[j] / H[j, j], 0.0)
            largest = max(largest, H[j, j] * abs(u[j] - before))
        return largest

    while sweep(chosen) > goal:
        some = [j for j in chosen if u[j] != 0]
        for _ in range(10):
            if sweep(some) <= 0.5 * goal:
                break
    return u
