"""Every loss × penalty × {dense, CSR} × {memory, files, Dask}: optima of CVXPY, gaps that hold."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from outcomes import ALL_CASES, ALL_PENALTIES, KINKED, ONES, WEIGHT, N, check, optimum, problem_of

from skadmm import Problem, Status, solve
from skadmm.backends.writer import write_blocks
from skadmm.losses import LOSSES

PARTS = [slice(0, 50), slice(50, N)]
KINDS = {"dense": lambda rows: rows, "csr": sp.csr_array}


@functools.cache
def best(name, penalty):
    return optimum(name, penalty, weight=WEIGHT)


def test_every_loss_of_one_margin_has_a_case():
    """A loss of a recipe or of a user is tested elsewhere; those of the package are here."""
    assert set(ALL_CASES) <= {name for name, loss in LOSSES.items() if not loss.coupled}
    assert len(ALL_CASES) == 13


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("penalty", ALL_PENALTIES)
@pytest.mark.parametrize("name", ALL_CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_memory_and_in_files(kind, name, penalty, tmp_path):
    rows, target = KINDS[kind](ONES), ALL_CASES[name][1]
    write_blocks(tmp_path / "blocks", [(rows[part], target[part], WEIGHT[part]) for part in PARTS])
    memory = problem_of(name, penalty, rows, sample_weight=WEIGHT)
    check(solve(memory, tol=1e-8), memory, best(name, penalty))
    loss = ALL_CASES[name][0]
    files = Problem(tmp_path / "blocks", None, loss, **ALL_PENALTIES[penalty][0])
    assert files.backend.name == "files"
    check(solve(files, tol=1e-8), files, best(name, penalty))


def on_dask(array, kind=None):
    """Two blocks of rows on the cluster."""
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    if kind == "csr":
        return [dask.delayed(sp.csr_array)(array[part]) for part in PARTS]
    return da.from_array(array, chunks=((50, N - 50), *((size,) for size in array.shape[1:])))


def cells():
    """All of them; two penalties per loss and kind of rows, in turn, for ``make test``, the others for ``test-all``."""
    smooth = [name for name in ALL_CASES if name not in KINKED]
    for i, name in enumerate(smooth):
        for j, kind in enumerate(KINDS):
            for m, penalty in enumerate(ALL_PENALTIES):
                chosen = (m - i - 2 * j) % len(ALL_PENALTIES) < 2
                yield pytest.param(kind, name, penalty, marks=() if chosen else pytest.mark.slow)


@pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and loops
@pytest.mark.parametrize(("kind", "name", "penalty"), list(cells()))
def test_rows_on_a_cluster(kind, name, penalty, client):
    loss, target = ALL_CASES[name]
    problem = Problem(
        on_dask(ONES, kind), on_dask(target), loss, sample_weight=on_dask(WEIGHT), **ALL_PENALTIES[penalty][0]
    )
    check(solve(problem, tol=1e-8), problem, best(name, penalty))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINKED)
def test_a_kinked_loss_on_a_cluster_is_not_certified(name, client):
    """The solver of kinks takes rows of this process; subgradient methods run, and do not claim an optimum."""
    loss, target = ALL_CASES[name]
    problem = Problem(on_dask(ONES), on_dask(target), loss, **ALL_PENALTIES["l1"][0])
    with pytest.raises(ValueError, match="cannot take this problem"):
        solve(problem, "dual-proximal")
    result = solve(problem, passes=20)
    assert result.status is not Status.SOLVED
    assert optimum(name, "l1") <= result.objective < problem.objective(np.zeros(problem.n_features))
