"""Extreme shapes and scales: a certified answer or a named status, never NaN.

SKADMM_FUZZ_PROBLEMS sets how many problems are tried; counts are printed.
"""

import collections
import os

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skadmm import Problem, Status, solve
from skadmm.operators import chain, incidence, stack
from skadmm.regularizers import L1, L2, SquaredL2

PROBLEMS = int(os.environ.get("SKADMM_FUZZ_PROBLEMS", "40"))
SCALES = [1e-150, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e150]


@st.composite
def extreme(draw):
    n, d = draw(st.sampled_from([1, 2, 3, 17, 40])), draw(st.sampled_from([1, 2, 5, 12]))
    make = np.random.default_rng(draw(st.integers(0, 2**31)))
    table = make.standard_normal((n, d)) * draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        table[:, make.integers(d)] *= draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        table[make.integers(n)] = 0.0
    if draw(st.booleans()):
        table[:, make.integers(d)] = 0.0
    if draw(st.booleans()):
        table[:] = table[make.integers(n, size=n)]
    loss = draw(st.sampled_from(["logistic", "squared", "squared-hinge", "huber"]))
    numbers = make.standard_normal(n) * draw(st.sampled_from(SCALES))
    target = numbers if loss in ("squared", "huber") else np.where(numbers > 0, 1.0, -1.0)
    strength = draw(st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e6]))
    kind = draw(st.sampled_from(["none", "identity", "chain", "stacked", "disconnected", "ridge", "group"]))
    model = {
        "none": {},
        "identity": {"psi": L1(strength)},
        "chain": {"psi": L1(strength), "A": chain(d)} if d > 1 else {"psi": L1(strength)},
        "stacked": {"psi": L1(strength), "A": stack(chain(d), "identity")} if d > 1 else {"psi": L1(strength)},
        "disconnected": {"psi": L1(strength), "A": incidence([(0, 1)], n_features=d)} if d > 1 else {},
        "ridge": {"omega": SquaredL2(strength), "psi": L1(strength)},
        "group": {"psi": L2(strength)},
    }[kind]
    sparse = draw(st.booleans())
    method = draw(st.sampled_from(["auto", "auto", "sa-iu-admm", "batch-admm"]))
    return scipy.sparse.csr_array(table) if sparse else table, target, loss, model, method


outcomes: collections.Counter = collections.Counter()


@settings(max_examples=PROBLEMS, deadline=None, derandomize=PROBLEMS <= 40, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(extreme())
def check_problem(case):
    table, target, loss, model, method = case
    with np.errstate(all="ignore"):
        try:
            problem = Problem(table, target, loss, **model)
        except ValueError as error:
            assert "class(es)" in str(error)  # noqa: PT017  one class only
            outcomes["refused"] += 1
            return
        result = solve(problem, method, passes=30, tol=1e-6, step="theory" if method != "auto" else "auto")
    outcomes[str(result.status)] += 1
    assert isinstance(result.status, Status)
    for array in (result.x, result.y, result.dual, result.x_average):
        assert np.isfinite(array).all()
    assert not np.isnan(result.objective)
    if result.status is Status.SOLVED and result.stopped_on == "gap":
        assert 0 <= result.gap <= 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_problems():
    check_problem()
    print(f"problems: {sum(outcomes.values()):,}, " + ", ".join(f"{n:,} {what}" for what, n in outcomes.items()))


# -- what this has found --------------------------------------------------------------------------------------------


def test_features_that_neither_the_samples_nor_the_penalty_see():
    """Squares of the entries are nothing, and A sees one direction of two: the system of the x-update is singular."""
    problem = Problem(np.array([[1.3e-151, -1.3e-151]]), np.array([6e-151]), "squared", psi=L1(0.0), A=chain(2))
    result = solve(problem, "batch-admm", passes=30, tol=1e-6, step="theory")
    assert np.isfinite(result.x).all()
    assert not np.isnan(result.objective)


@pytest.mark.parametrize("method", ["batch-admm", "batch-iu-admm"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_entries_whose_squares_overflow(method):
    problem = Problem(np.array([[1.26e157, -1.32e7]]), np.array([1e-151]), "squared")
    with np.errstate(all="ignore"):
        result = solve(problem, method, passes=30, tol=1e-6, step="theory")
    assert np.isfinite(result.x).all()
    assert not np.isnan(result.objective)
