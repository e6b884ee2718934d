"""Slow twins of every method, in plain NumPy, written from the paper's equations and nothing else.

Nothing here imports skadmm. A model is a `Model`; a method is a generator that yields (x, y, dual) after every
step, given the blocks in the order they are visited.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.optimize

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


# -- losses: value, derivative, second derivative --------------------------------------------------------------


def logistic(z, b):
    return np.logaddexp(0, -b * z), -b / (1 + np.exp(b * z)), np.exp(b * z) / (1 + np.exp(b * z)) ** 2


def squared(z, b):
    return 0.5 * (z - b) ** 2, z - b, np.ones_like(z)


def huber(z, b, delta=1.0):
    r = z - b
    inside = np.abs(r) <= delta
    return (
        np.where(inside, 0.5 * r**2, delta * np.abs(r) - 0.5 * delta**2),
        np.clip(r, -delta, delta),
        inside.astype(float),
    )


def squared_hinge(z, b):
    slack = np.maximum(0, 1 - b * z)
    return 0.5 * slack**2, -b * slack, (slack > 0).astype(float)


def multinomial(k):
    """Of k margins per sample, one after the other, with targets one-hot; k times the loss, for its mean over n·k
    margins is that over n samples. The value is on the first margin of each sample."""

    def loss(z, b):
        z, b = z.reshape(-1, k), b.reshape(-1, k)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        value = np.zeros_like(z)
        value[:, 0] = -np.log(np.sum(p * b, axis=1))
        return k * value.ravel(), k * (p - b).ravel(), k * p.ravel()

    return loss


def multinomial_hessian(k):
    """The same second derivative as a matrix over all margins."""

    def hessian(z, b):
        out, p = np.zeros((z.size, z.size)), multinomial(k)(z, b)[2].reshape(-1, k) / k
        for i in range(z.size // k):
            part = slice(i * k, (i + 1) * k)
            out[part, part] = k * (np.diag(p[i]) - np.outer(p[i], p[i]))
        return out

    return hessian


LOSSES = {"logistic": logistic, "squared": squared, "huber": huber, "squared-hinge": squared_hinge}


# -- proximal points -------------------------------------------------------------------------------------------


def soft(strength):
    return lambda v, step: np.sign(v) * np.maximum(np.abs(v) - step * strength, 0)


def shrink(strength):
    return lambda v, step: v / (1 + step * strength)


def group_shrink(strength, groups):
    """The prox of strength · Σ ‖v_g‖₂; `step` is one number."""

    def prox(v, step):
        out, step = v.copy(), np.max(step)
        for group in groups:
            size = np.linalg.norm(v[group])
            out[group] *= max(0.0, 1 - step * strength / size) if size > 0 else 0.0
        return out

    return prox


def clip_largest(strength):
    """The prox of strength · ‖v‖∞: what exceeds a level, found by bisection, is cut off; `step` is one number."""

    def prox(v, step):
        low, high, cut = 0.0, np.abs(v).max(), strength * np.max(step)
        if np.abs(v).sum() <= cut:
            return np.zeros_like(v)
        for _ in range(200):
            level = (low + high) / 2
            excess = np.maximum(np.abs(v) - level, 0).sum()
            low, high = (level, high) if excess > cut else (low, level)
        return np.clip(v, -high, high)

    return prox


def lasso_y_step(B, rho, strength):
    """argmin over y of strength·‖y‖₁ + (ρ/2)‖By + v‖²: coordinate descent finds the signs, a linear system the rest."""
    gram = np.sum(B**2, axis=0)

    def sweep(y, v):
        for j in range(y.size):
            rest = v + B @ y - B[:, j] * y[j]
            y[j] = soft(strength)(-(B[:, j] @ rest) / gram[j], 1 / (rho * gram[j]))

    def y_step(v):
        y = np.zeros(B.shape[1])
        for _ in range(10_000):
            sweep(y, v)
            exact, on = np.zeros_like(y), y != 0
            exact[on] = np.linalg.solve(B[:, on].T @ B[:, on], -B[:, on].T @ v - strength / rho * np.sign(y[on]))
            pull = np.abs(rho * B.T @ (B @ exact + v))
            if np.array_equal(np.sign(exact), np.sign(y)) and np.all(pull <= strength * (1 + 1e-12)):
                return exact
        raise AssertionError("the signs were not found")

    return y_step


def stacked(first, second, at):
    """Two regularisers side by side: the first on the coordinates before `at`, the second on the rest."""

    def prox(v, step):
        step = np.broadcast_to(step, v.shape)
        return np.concatenate([first(v[:at], step[:at]), second(v[at:], step[at:])])

    return prox


# -- the model -------------------------------------------------------------------------------------------------


@dataclass
class Model:
    X: np.ndarray
    b: np.ndarray
    loss: Callable
    A: np.ndarray
    psi_prox: Callable
    """psi_prox(v, step)."""
    rho: float
    step: float
    B: np.ndarray | None = None
    c: np.ndarray | None = None
    weight: np.ndarray | None = None
    omega_prox: Callable | None = None
    omega_gradient: Callable | None = None
    ridge: float = 0.0
    """The strength of a squared ℓ2 that is part of the x-system."""
    y_step: Callable | None = None
    """y from v = Ax − c + dual, where BᵀB is not diagonal."""
    hessian: Callable | None = None
    """hessian(z, b), where the loss joins margins."""

    def __post_init__(self):
        m = self.A.shape[0]
        self.B = -np.eye(m) if self.B is None else self.B
        self.c = np.zeros(m) if self.c is None else self.c
        n = self.X.shape[0]
        self.weight = np.ones(n) if self.weight is None else self.weight * n / self.weight.sum()

    def gradients(self, x):
        """∇ℓᵢ(x), one row a sample."""
        return (self.weight * self.loss(self.X @ x, self.b)[1])[:, None] * self.X

    def mean_loss(self, x):
        return np.mean(self.weight * self.loss(self.X @ x, self.b)[0])

    def omega_slope(self, x):
        return np.zeros_like(x) if self.omega_gradient is None else self.omega_gradient(x)

    def y_and_dual(self, x, dual) -> tuple[np.ndarray, np.ndarray]:
        """Steps 5 and 6 of Algorithm 1; in closed form for B with BᵀB diagonal."""
        v = self.A @ x - self.c + dual
        if self.y_step is not None:
            y = self.y_step(v)
            return y, v + self.B @ y
        gram = np.sum(self.B**2, axis=0)
        y = self.psi_prox(-(self.B.T @ v) / gram, 1 / (self.rho * gram))
        return y, v + self.B @ y

    def start(self, x0) -> Triple:
        y = np.linalg.lstsq(self.B, self.c - self.A @ x0, rcond=None)[0]
        return x0.copy(), y, np.zeros(self.A.shape[0])


# -- the methods -----------------------------------------------------------------------------------------------


def first_table(model: Model, x0: np.ndarray, table: str) -> np.ndarray:
    """∇ℓᵢ(x₀), one row a sample; or zeros, where no sample has been seen yet."""
    return model.gradients(x0) if table == "x0" else np.zeros_like(model.X)


def sa_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray, table: str = "x0") -> Iterator[Triple]:
    n, d = model.X.shape
    L, rho, A = 1 / model.step, model.rho, model.A
    x, y, dual = model.start(x0)
    points = np.tile(x, (n, 1))  # x_τᵢ, one row a sample: the table of the paper
    gradients = first_table(model, x, table)
    for block in blocks:
        points[block] = x
        gradients[block] = model.gradients(x)[block]
        right = (
            L * points.mean(0) - rho * A.T @ (model.B @ y - model.c + dual) - gradients.mean(0) - model.omega_slope(x)
        )
        x = np.linalg.solve(rho * A.T @ A + (L + model.ridge) * np.eye(d), right)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def sa_iu_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray, table: str = "x0") -> Iterator[Triple]:
    n, _ = model.X.shape
    L, rho, A = 1 / model.step, model.rho, model.A
    L_A = rho * np.linalg.norm(A, 2) ** 2
    x, y, dual = model.start(x0)
    points, gradients = np.tile(x, (n, 1)), first_table(model, x, table)
    for block in blocks:
        points[block] = x
        gradients[block] = model.gradients(x)[block]
        pull = rho * A.T @ (A @ x + model.B @ y - model.c + dual)
        x = (L * points.mean(0) + L_A * x - gradients.mean(0) - pull) / (L_A + L)
        if model.omega_prox is not None:
            x = model.omega_prox(x, 1 / (L_A + L))
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def batch_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    everything = np.arange(model.X.shape[0])
    return sa_admm(model, [everything for _ in blocks], x0)


def batch_iu_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    everything = np.arange(model.X.shape[0])
    return sa_iu_admm(model, [everything for _ in blocks], x0)


def _block_gradient(model: Model, block: np.ndarray, x: np.ndarray, n_blocks: int) -> np.ndarray:
    return model.gradients(x)[block].sum(0) * n_blocks / model.X.shape[0] + model.omega_slope(x)


def stoc_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    d, rho, A = x0.size, model.rho, model.A
    n_blocks = count_blocks(model, blocks)
    x, y, dual = model.start(x0)
    for t, block in enumerate(blocks, start=1):
        eta = model.step / np.sqrt(t)
        right = x / eta - _block_gradient(model, block, x, n_blocks) - rho * A.T @ (model.B @ y - model.c + dual)
        x = np.linalg.solve(np.eye(d) / eta + rho * A.T @ A, right)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def opg_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    rho, A = model.rho, model.A
    n_blocks = count_blocks(model, blocks)
    x, y, dual = model.start(x0)
    for t, block in enumerate(blocks, start=1):
        eta = model.step / np.sqrt(t)
        pull = rho * A.T @ (A @ x + model.B @ y - model.c + dual)
        x = x - eta * (_block_gradient(model, block, x, n_blocks) + pull)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def rda_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    rho, A = model.rho, model.A
    n_blocks = count_blocks(model, blocks)
    x, y, dual = model.start(x0)
    xs, ys, duals, gradients = [], [], [], []
    for t, block in enumerate(blocks, start=1):
        gradients.append(_block_gradient(model, block, x, n_blocks))
        xs.append(x)
        ys.append(y)
        duals.append(dual)
        mean_x, mean_y, mean_dual = (np.mean(past, axis=0) for past in (xs, ys, duals))
        pull = rho * A.T @ (A @ mean_x + model.B @ mean_y - model.c + mean_dual)
        x = -model.step * np.sqrt(t) * (np.mean(gradients, axis=0) + pull)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def _newton(value_gradient_hessian: Callable, x: np.ndarray) -> np.ndarray:
    """A smooth convex function to its minimum, by damped Newton with the whole Hessian."""
    value, gradient, hessian = value_gradient_hessian(x)
    for _ in range(100):
        direction = -np.linalg.solve(hessian, gradient)
        if np.abs(direction).max() <= 1e-13 * (1 + np.abs(x).max()):
            return x + direction  # the next step is below rounding
        length = 1.0
        while length > 1e-10:
            new = value_gradient_hessian(x + length * direction)
            # Close to the minimum the value cannot tell any more; the gradient can.
            if new[0] <= value + 1e-4 * length * gradient @ direction or (
                np.linalg.norm(new[1]) < 0.9 * np.linalg.norm(gradient) and abs(new[0] - value) < 1e-12 * abs(value)
            ):
                break
            length /= 2
        else:
            return x
        x = x + length * direction
        value, gradient, hessian = new
    return x


def _quadratic(model: Model, y: np.ndarray, dual: np.ndarray) -> Callable:
    q = model.B @ y - model.c + dual
    A, rho = model.A, model.rho
    return lambda x: (
        rho / 2 * np.sum((A @ x + q) ** 2) + model.ridge / 2 * x @ x,
        rho * A.T @ (A @ x + q) + model.ridge * x,
        rho * A.T @ A + model.ridge * np.eye(x.size),
    )


def _weighted_loss(model: Model, rows: np.ndarray, scale: float) -> Callable:
    X, b, w = model.X[rows], model.b[rows], model.weight[rows] * scale

    def evaluate(x):
        value, slope, curvatures = model.loss(X @ x, b)
        curved = curvatures[:, None] * X if model.hessian is None else model.hessian(X @ x, b) @ X
        return np.sum(w * value), X.T @ (w * slope), X.T @ (w[:, None] * curved)

    return evaluate


def exact_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    n = model.X.shape[0]
    x, y, dual = model.start(x0)
    loss = _weighted_loss(model, np.arange(n), 1 / n)
    for _ in blocks:
        slope, quadratic = model.omega_slope(x), _quadratic(model, y, dual)

        def objective(u, quadratic=quadratic, slope=slope):
            parts = zip(loss(u), quadratic(u), (slope @ u, slope, 0), strict=True)
            return tuple(sum(part) for part in parts)

        x = _newton(objective, x)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


def online_admm(model: Model, blocks: list[np.ndarray], x0: np.ndarray) -> Iterator[Triple]:
    n_blocks = count_blocks(model, blocks)
    x, y, dual = model.start(x0)
    for t, block in enumerate(blocks, start=1):
        eta = model.step / np.sqrt(t)
        loss = _weighted_loss(model, block, n_blocks / model.X.shape[0])
        slope, quadratic, centre = model.omega_slope(x), _quadratic(model, y, dual), x

        def objective(u, loss=loss, quadratic=quadratic, slope=slope, centre=centre, eta=eta):
            near = (u - centre) @ (u - centre) / (2 * eta), (u - centre) / eta, np.eye(u.size) / eta
            parts = zip(loss(u), quadratic(u), near, (slope @ u, slope, 0), strict=True)
            return tuple(sum(part) for part in parts)

        x = _newton(objective, x)
        y, dual = model.y_and_dual(x, dual)
        yield x, y, dual


METHODS = {
    "sa-admm": sa_admm,
    "sa-iu-admm": sa_iu_admm,
    "batch-admm": batch_admm,
    "batch-iu-admm": batch_iu_admm,
    "stoc-admm": stoc_admm,
    "opg-admm": opg_admm,
    "rda-admm": rda_admm,
    "exact-admm": exact_admm,
    "online-admm": online_admm,
}


def penalty_prox(A: np.ndarray, strength: np.ndarray) -> Callable:
    """The prox of Σ strength_e |(Ax)_e|, by its dual: v − step·Aᵀβ, with β the nearest in the box of strengths."""

    def prox(v, step):
        inside = scipy.optimize.lsq_linear(step * A.T, v, (-strength, strength), tol=1e-15, max_iter=1000)
        return v - step * (A.T @ inside.x)

    return prox


def proximal_steps(model: Model, strength: np.ndarray, steepest: float, x0: np.ndarray) -> Iterator[np.ndarray]:
    """x ← prox at x − t∇f(x), t by Barzilai and Borwein, short and long in turn; t halved while the objective does not
    fall below the largest of the last five. `steepest` is the largest ℓ''; the model's ridge is part of f."""
    prox = penalty_prox(model.A, strength)

    def f(x):
        return model.mean_loss(x) + 0.5 * model.ridge * x @ x

    def slope(x):
        return model.gradients(x).mean(axis=0) + model.ridge * x

    def objective(x):
        return f(x) + strength @ np.abs(model.A @ x)

    x = x0
    g = slope(x)
    t = (g @ g) / (steepest * np.mean(model.weight * (model.X @ g) ** 2) + model.ridge * g @ g)
    seen = [objective(x)]
    for turn in itertools.count():
        while True:
            new = prox(x - t * g, t)
            if objective(new) <= max(seen[-5:]) - 1e-5 * np.sum((new - x) ** 2) / (2 * t) + 1e-14 * abs(seen[-1]):
                break
            t /= 2
        step, change = new - x, slope(new) - g
        if step @ change > 0:
            t = (step @ step) / (step @ change) if turn % 2 else (step @ change) / (change @ change)
        x, g = new, slope(new)
        seen.append(objective(x))
        yield x


def count_blocks(model: Model, blocks: list[np.ndarray]) -> int:
    """The number of fixed blocks the samples are cut into."""
    return -(-model.X.shape[0] // max(block.size for block in blocks))


def cut(n: int, batch_size: int) -> list[np.ndarray]:
    """The fixed blocks."""
    return [np.arange(start, min(start + batch_size, n)) for start in range(0, n, batch_size)]


def minimise(model: Model, psi_value: Callable, x0: np.ndarray) -> np.ndarray:
    """A smooth check that is slow and sure: used only for tiny ψ = 0 problems."""
    answer = scipy.optimize.minimize(
        lambda x: model.mean_loss(x) + psi_value(x), x0, jac=lambda x: model.gradients(x).mean(0), method="BFGS",
        options={"gtol": 1e-12, "maxiter": 10_000},
    )  # fmt: skip
    return answer.x
