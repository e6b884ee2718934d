"""Methods reach the optimum that CVXPY finds, to the accuracy their rate allows.

Every method in PROMISES meets every structure with Ω = ℓ1 and Ω = squared ℓ2, in the method's default way, under the
logistic loss, and the fused ones without Ω under the squared loss. Huber and squared hinge come with the other
structures without Ω, for one method of each kind only: every further pair of loss and structure is a kernel to compile
for each method.
"""

import functools
import itertools
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import pywt

from skadmm import ALGORITHMS, Problem, solve
from skadmm.operators import chain, incidence, overlapping_groups, trend, wavelet
from skadmm.paper.settings import PAPER_METHODS
from skadmm.regularizers import L1, GroupL2, SquaredL2

N, D = 80, 16
RHO = 0.1
LAMBDA, OMEGA = 0.05, 0.02


class Promise(NamedTuple):
    """What a method must reach: relative suboptimality of the objective at (x, y(x))."""

    multiple: float
    """The step, in units of the theory's."""
    passes: float
    last: float | None
    """Of the last iterate."""
    average: float | None
    """Of the averages over all steps."""


# Deterministic and stochastic average methods need no shrinking step, and on problems like these their last iterate
# converges linearly or faster: the limit is Clarabel's own accuracy, 1e-8. Their averages remember every early iterate,
# so they fall as 1/T (SAN-ADMM is not made to be averaged). The theory's L is the roughest sample's, ten times too
# careful here (multiple = 10).
# The methods that see one sample at a time have a noise that only the shrinking step and the averages fight, at a rate
# of 1/√T: after T = 40,000 steps, some thousandths. Their last iterate still carries the noise of its step, so nothing
# is promised of it. RDA-ADMM pulls every iterate towards zero on top of that.
PROMISES = {
    "batch-admm": Promise(1, 600, last=1e-7, average=2e-3),
    "batch-iu-admm": Promise(1, 600, last=1e-7, average=2e-3),
    "exact-admm": Promise(1, 20_000, last=1e-7, average=1e-3),
    "san-admm": Promise(1, 50, last=1e-7, average=None),
    "sa-admm": Promise(10, 200, last=1e-6, average=1e-2),
    "sa-iu-admm": Promise(10, 200, last=1e-6, average=1e-2),
    "stoc-admm": Promise(10, 500, last=None, average=1e-2),
    "opg-admm": Promise(10, 500, last=None, average=1e-2),
    "online-admm": Promise(10, 500, last=None, average=1e-2),
    "rda-admm": Promise(10, 500, last=None, average=2e-2),
}
# The duality gap proves the optimum of the variance-reduced methods in test_equivalence_successors.py.
METHODS = list(PROMISES)
ONE_OF_EACH_KIND = ("batch-admm", "sa-iu-admm", "opg-admm")

EDGES = [(0, 1), (1, 2), (2, 3), (0, 3), (4, 5), (5, 6), (6, 7), (4, 7), (8, 9), (9, 10), (10, 11), (7, 8), (12, 13),
         (13, 14), (14, 15), (3, 15)]  # fmt: skip
GROUPS = [list(range(0, 6)), list(range(4, 10)), list(range(8, 14)), list(range(12, 16))]
STRUCTURES = {"fused-chain": "squared", "fused-graph": "squared", "trend": "huber", "wavelet": "huber",
              "overlapping-groups": "squared-hinge"}  # fmt: skip
OMEGAS = {"none": None, "l1": L1(OMEGA), "squared-l2": SquaredL2(OMEGA)}


@functools.cache
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    margin = X @ np.repeat([1.0, -0.5, 0.0, 0.5], D // 4)
    labels = np.where(margin + rng.standard_normal(N) > 0, 1.0, -1.0)
    return X, labels, margin + 0.5 * rng.standard_normal(N)


def penalty(structure: str) -> dict[str, Any]:
    """A and ψ."""
    if structure == "overlapping-groups":
        A, rows = overlapping_groups(GROUPS, D)
        return {"A": A, "psi": GroupL2(LAMBDA, groups=rows)}
    builders = {
        "fused-chain": lambda: chain(D),
        "fused-graph": lambda: incidence(EDGES, n_features=D),
        "trend": lambda: trend(D, 1),
        "wavelet": lambda: wavelet(D, "db2"),
    }
    return {"A": builders[structure](), "psi": L1(LAMBDA)}


def cvxpy_loss(name: str, z, b):
    losses = {
        "logistic": lambda: cp.sum(cp.logistic(cp.multiply(-b, z))),
        "squared": lambda: cp.sum_squares(z - b) / 2,
        "huber": lambda: cp.sum(cp.huber(z - b, 1.0)) / 2,
        "squared-hinge": lambda: cp.sum_squares(cp.pos(1 - cp.multiply(b, z))) / 2,
    }
    return losses[name]() / N


def cvxpy_penalty(structure: str, x):
    """ψ(Ax), without our operators."""
    periodic = functools.partial(pywt.wavedec, wavelet="db2", mode="periodization")
    forms = {
        "fused-chain": lambda: cp.norm1(cp.diff(x)),
        "fused-graph": lambda: sum(cp.abs(x[i] - x[j]) for i, j in EDGES),
        "trend": lambda: cp.norm1(cp.diff(x, 2)),
        "wavelet": lambda: cp.norm1(np.column_stack([np.concatenate(periodic(e)) for e in np.eye(D)]) @ x),
        "overlapping-groups": lambda: sum(cp.norm(x[group]) for group in GROUPS),
    }
    return LAMBDA * forms[structure]()


@functools.cache
def solved(structure: str, omega: str) -> tuple[Problem, float]:
    """The problem and its optimum by CVXPY."""
    X, labels, numbers = data()
    loss = STRUCTURES[structure] if omega == "none" else "logistic"
    target = labels if loss in ("logistic", "squared-hinge") else numbers
    x = cp.Variable(D)
    objective = cvxpy_loss(loss, X @ x, target) + cvxpy_penalty(structure, x)
    if omega == "l1":
        objective += OMEGA * cp.norm1(x)
    if omega == "squared-l2":
        objective += OMEGA / 2 * cp.sum_squares(x)
    model = cp.Problem(cp.Minimize(objective))
    model.solve(solver=cp.CLARABEL)
    assert model.status == cp.OPTIMAL
    problem = Problem(X, target, loss=loss, omega=OMEGAS[omega], **penalty(structure))
    assert problem.objective(x.value) == pytest.approx(model.value, rel=1e-9), "the two objectives differ"
    return problem, float(model.value)


def test_the_methods_of_the_paper_make_a_promise():
    assert set(PROMISES) >= {*PAPER_METHODS, "exact-admm", "online-admm", "san-admm"}


def cases():
    for method, structure, omega in itertools.product(METHODS, STRUCTURES, OMEGAS):
        if omega != "none" or STRUCTURES[structure] == "squared" or method in ONE_OF_EACH_KIND:
            yield method, structure, omega


@pytest.mark.parametrize(("method", "structure", "omega"), list(cases()))
def test_the_optimum_is_reached(method, structure, omega):
    problem, best = solved(structure, omega)
    promise = PROMISES[method]
    step = promise.multiple * ALGORITHMS[method].theory_step(problem, RHO)
    run = solve(problem, method, rho=RHO, step=step, passes=promise.passes, record_every=0)
    if promise.average is not None:
        average = (problem.objective(run.x_average) - best) / best
        assert -1e-7 <= average <= promise.average, f"the averages are off by {average:.1e}"
    if promise.last is not None:
        last = (run.objective - best) / best
        assert abs(last) <= promise.last, f"the last iterate is off by {last:.1e}"
        assert run.feasibility <= 1e-4, f"the constraint is off by {run.feasibility:.1e}"
