"""What every registered method must do, with or without a twin: improve, agree on sparse rows, repeat, and resume."""

import functools

import numpy as np
import pytest
from twins import CLASSES, KINDS, PSI, RHO, A, D, X

from skadmm import ALGORITHMS, Problem, solve
from skadmm.regularizers import L1

FIRST_ORDER = [name for name, algorithm in ALGORITHMS.items() if not algorithm.certifies]
RUN = {"rho": RHO, "step": "theory", "batch_size": 4, "random_state": 0, "record_every": 0}


@functools.cache
def problem(kind="dense"):
    return Problem(KINDS[kind](X), CLASSES, "logistic", psi=L1(PSI), A=A)


@functools.cache
def optimum():
    return solve(problem(), "san-admm", tol=1e-10).objective


@functools.cache
def run(method, kind="dense"):
    return solve(problem(kind), method, passes=400, **RUN)


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_it_comes_close_to_the_optimum(method):
    """By a factor of five at least, with its last iterate or its average; never below the certified optimum."""
    start, best, result = problem().objective(np.zeros(D)), optimum(), run(method)
    reached = min(problem().objective(result.x), problem().objective(result.x_average))
    assert best * (1 - 1e-9) <= reached
    assert reached - best <= 0.2 * (start - best)


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_it_comes_close_to_the_constraint(method):
    """‖Ax − y‖ of the averages is small beside ‖Ax‖."""
    result = run(method)
    assert problem().feasibility(result.x_average, result.y_average) <= 0.1 * np.linalg.norm(A @ result.x_average)


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_sparse_rows_give_the_same_answer(method):
    dense, sparse = (solve(problem(kind), method, passes=5, **RUN) for kind in KINDS)
    np.testing.assert_allclose(sparse.x, dense.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sparse.y, dense.y, rtol=0, atol=1e-10)
    assert sparse.passes == dense.passes


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_an_interrupted_run_goes_on_to_the_same_bits(method, tmp_path):
    whole = solve(problem(), method, passes=6, **RUN)
    for passes in (2, 4, 6):
        resumed = solve(problem(), method, passes=passes, checkpoint=tmp_path / "run", checkpoint_every=0, **RUN)
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.dual, whole.dual)
    assert resumed.passes == whole.passes
