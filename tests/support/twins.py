"""One small problem told twice: to skadmm, and to the NumPy twins of ``reference.py``."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import reference
import reference_successors
import scipy.sparse

from skadmm import ALGORITHMS, Problem
from skadmm.losses import LOSSES
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers import Setup, dual_update

N, D, ITERATIONS, TOLERANCE = 38, 5, 200, 1e-10  # 38 = 5·7 + 3: the last block of seven is short
RHO, PSI, OMEGA = 0.3, 0.03, 0.05

KINDS = {"dense": np.ascontiguousarray, "csr": scipy.sparse.csr_array}

rng = np.random.default_rng(20130613)
X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.8) / np.sqrt(D)
NUMBERS = X @ np.array([1.0, 1.0, 0.0, -2.0, 0.5]) + 0.7 * rng.standard_normal(N)
CLASSES = np.where(np.median(NUMBERS) < NUMBERS, 1.0, -1.0)
WEIGHT = rng.uniform(0.5, 2.0, N)
A = np.vstack([np.eye(D)[1:] - np.eye(D)[:-1], np.eye(D)])
M = A.shape[0]
C = 0.1 * rng.standard_normal(M)
X0 = 0.5 * rng.standard_normal(D)


def target(loss: str) -> np.ndarray:
    if LOSSES[loss].labels:
        return CLASSES
    if LOSSES[loss].target_maximum == 1.0:
        return 1.0 / (1.0 + np.exp(-NUMBERS))
    return np.exp(NUMBERS) if LOSSES[loss].target_minimum == 0.0 else NUMBERS


@dataclass
class Pair:
    """The same problem for both sides."""

    problem: Problem
    model: reference.Model
    mode: str = "none"


def pair(loss: str = "logistic", kind: str = "dense", *, step: float = 0.0, **changes: Any) -> Pair:
    """The weighted problem with c ≠ 0 and no Ω; `changes` go to both sides."""
    told = {"A": A, "c": C, "psi": L1(PSI)} | changes
    problem = Problem(KINDS[kind](X), target(loss), loss, sample_weight=WEIGHT, **told)
    model = reference.Model(
        X, target(loss), reference.LOSSES[loss], np.asarray(told["A"], float), reference.soft(PSI), RHO, step,
        B=changes.get("B"), c=told["c"], weight=WEIGHT,
    )  # fmt: skip
    return Pair(problem, model)


def with_omega(loss: str, kind: str, mode: str, omega: str) -> Pair:
    """The same with Ω entering by `mode`; the twin of "fold" is the stacked model without Ω."""
    both = pair(loss, kind, omega={"l1": L1(OMEGA), "squared-l2": SquaredL2(OMEGA)}[omega])
    model, prox = both.model, {"l1": reference.soft(OMEGA), "squared-l2": reference.shrink(OMEGA)}[omega]
    if mode == "prox":
        model.omega_prox = prox
    elif mode == "system":
        model.ridge = OMEGA
    elif mode == "subgradient":
        model.omega_gradient = {"l1": lambda x: OMEGA * np.sign(x), "squared-l2": lambda x: OMEGA * x}[omega]
    elif mode == "fold":
        both.problem = both.problem.fold()
        both.model = reference.Model(
            model.X, model.b, model.loss, np.vstack([A, np.eye(D)]),
            reference.stacked(model.psi_prox, prox, M), RHO, 0.0, c=np.concatenate([C, np.zeros(D)]), weight=WEIGHT,
        )  # fmt: skip
    both.mode = mode
    return both


def order_of(batch_size: int, count: int = ITERATIONS) -> np.ndarray:
    return np.random.default_rng(batch_size).integers(-(-N // batch_size), size=count)


def engine_of(both: Pair, method: str, batch_size: int) -> Any:
    algorithm = ALGORITHMS[method]
    both.model.step = both.model.step or algorithm.theory_step(both.problem, RHO)
    setup = Setup(both.problem, RHO, both.model.step, batch_size, both.mode, options=algorithm.settled({}))
    return algorithm.start(setup, dual_update.start(both.problem, X0, both.model.start(X0)[1], None))


def compiled_iterates(engine: Any, order: np.ndarray) -> list[np.ndarray]:
    """(x, y, dual) after every step, one after the other in one row."""
    iterates = []
    for k in order:
        engine.advance(np.array([k]))
        iterates.append(np.concatenate([engine.point.x, engine.point.y, engine.point.dual]))
    return np.array(iterates)


def twin_iterates(model: reference.Model, method: str, batch_size: int, order: np.ndarray) -> np.ndarray:
    blocks = reference.cut(model.X.shape[0], batch_size)
    visited = [blocks[k] for k in order]
    if method in reference.METHODS:
        steps = reference.METHODS[method](model, visited, X0)
    else:
        steps = reference_successors.iterates(method, model, visited, X0)
    return np.array([np.concatenate(triple) for triple in steps])


def assert_twins(both: Pair, method: str, batch_size: int, iterations: int = ITERATIONS) -> np.ndarray:
    """Every iterate of the compiled method is the twin's."""
    order = order_of(batch_size, iterations)
    mine = compiled_iterates(engine_of(both, method, batch_size), order)
    theirs = twin_iterates(both.model, method, batch_size, order)
    assert mine.shape == theirs.shape
    assert np.isfinite(theirs).all()
    worst = np.abs(mine - theirs).max(axis=1)
    late = int(worst.argmax())
    assert worst[late] <= TOLERANCE, f"{method}, b={batch_size}: off by {worst[late]:.1e} at iteration {late + 1}"
    return mine
