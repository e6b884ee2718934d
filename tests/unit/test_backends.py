"""What every storage backend must do: the same values as rows in memory, by every function that solvers use."""

import numpy as np
import pytest
from twins import NUMBERS, PSI, RHO, WEIGHT, X0, A, D, N, X

from skadmm import Problem, solve
from skadmm.backends import BACKENDS, LocalBackend, tasks
from skadmm.regularizers import L1

SHOWN = [name for name, kind in BACKENDS.items() if kind.example is not None]
"""Memory is also the reference. Files and Dask need a folder or a cluster: test_files.py and test_dask.py test them."""


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def weight(request):
    return WEIGHT if request.param else None


def pair_of(name, weight):
    """The same problem in memory, and on the backend."""
    table = BACKENDS[name].example(X)
    options = {"loss": "huber", "psi": L1(PSI), "A": A, "sample_weight": weight}
    return Problem(X, NUMBERS, **options), Problem(table, NUMBERS, **options)


def test_files_and_dask_have_tests_of_their_own():
    assert {"files", "dask", "processes"} == set(BACKENDS) - set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_backend_has_the_values_of_memory(name, weight):
    here, there = pair_of(name, weight)
    assert there.backend.name == name
    assert not isinstance(there.backend, LocalBackend) or there.backend.local_rows
    for fact in ("n", "d", "nnz", "sparse", "weighted"):
        assert getattr(there.backend, fact) == getattr(here.backend, fact), fact
    for constant in ("largest_norm", "mean_norm", "at_zero"):
        np.testing.assert_allclose(getattr(there.backend, constant), getattr(here.backend, constant), rtol=1e-12)
    np.testing.assert_allclose(there.backend.top_eigenvalue, here.backend.top_eigenvalue, rtol=1e-3)
    np.testing.assert_allclose(there.loss_value(X0), here.loss_value(X0), rtol=1e-13)
    np.testing.assert_allclose(there.gradient(X0), here.gradient(X0), rtol=1e-12, atol=1e-15)
    assert there.backend.block_sizes(7).sum() == N
    assert sum(there.backend.each(lambda samples: samples.target.size)) == N
    np.testing.assert_allclose(
        there.backend.mean(tasks.mean_square, X0), here.backend.mean(tasks.mean_square, X0), rtol=1e-12
    )


@pytest.mark.parametrize("name", SHOWN)
def test_a_backend_evaluates_and_certifies_as_memory_does(name, weight):
    here, there = pair_of(name, weight)
    expected, found = here.backend.evaluate(X0), there.backend.evaluate(X0)
    assert found.loss == pytest.approx(expected.loss, rel=1e-13)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-12, atol=1e-15)
    at = there.backend.mean_conjugate(found.slopes, 0.5)
    assert at == pytest.approx(here.backend.mean_conjugate(expected.slopes, 0.5), rel=1e-12)


@pytest.mark.parametrize("name", SHOWN)
def test_a_backend_copies_samples_into_memory(name, weight):
    here, there = pair_of(name, weight)
    some = np.array([0, 3, N - 1])
    expected, found = here.subset(some), there.subset(some)
    assert found.backend.local_rows
    assert found.loss_value(X0) == pytest.approx(expected.loss_value(X0), rel=1e-13)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("method", ["batch-admm", "batch-iu-admm"])
def test_methods_that_read_all_samples_run_on_a_backend(name, method):
    here, there = pair_of(name, None)
    run = {"rho": RHO, "step": "theory", "passes": 30, "record_every": 5}
    expected, found = solve(here, method, **run), solve(there, method, **run)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-11)
    assert found.x.shape == (D,)
    assert found.passes == expected.passes
    assert found.objective == pytest.approx(expected.objective, rel=1e-11)
