"""More features than a dense model takes, with rows on workers: Newton steps on few coordinates, the answer of memory.

A problem of 6,000 features is refused by ``newton-admm``; the reduced Newton solver asks the workers for the Hessian on
a few clusters, the block Newton solver for that on a working set of groups, and both for gradients.
"""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from forgetful import Forgetful

from skadmm import GroupLassoClassifierCV, Problem, Status, path, solve
from skadmm.backends import Processes
from skadmm.backends.worker import packed, unpacked
from skadmm.operators import chain, incidence, overlapping_groups, stack, trend
from skadmm.oracle.reduced_hessian import HessianChange
from skadmm.oracle.remote_reduced import RemoteReducedOracle
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, GroupLInf, SquaredL2, Stacked
from skadmm.solvers.second_order import block_newton, multipliers_cg, reduced_newton

N, D = 300, 6000


def data(loss="logistic", seed=0):
    rng = np.random.default_rng(seed)
    columns = (rng.random((N, 12)) ** 3 * D).astype(np.int32)
    X = sp.csr_array((rng.standard_normal(12 * N), columns.ravel(), np.arange(0, 12 * N + 1, 12)), shape=(N, D))
    X.sum_duplicates()
    coefficients = np.zeros(D)
    coefficients[:40], coefficients[100:120] = 1.0, -1.5
    margins = X @ coefficients + 0.3 * rng.standard_normal(N)
    return X, margins if loss == "squared" else np.where(margins > 0, 1.0, -1.0)


def graph():
    rng = np.random.default_rng(1)
    first = np.arange(D)
    return incidence(np.stack([first, (first + rng.integers(1, 30, D)) % D], axis=1), n_features=D)


MODELS = {
    "graph": {"psi": L1(0.02), "A": stack(graph(), "identity")},
    "chain and ridge": {"psi": L1(0.02), "A": stack(chain(D), "identity"), "omega": SquaredL2(0.01)},
    "lasso with an intercept": {"psi": L1(0.02), "A": sp.eye_array(D - 1, D, format="csr")},
}
GROUPS = [list(range(start, min(start + 5, D - 1))) for start in range(0, D - 1, 5)]
GROUPED = {
    "groups": {"psi": GroupL2(0.03, [*GROUPS, [D - 1]]), "A": "identity"},
    "groups with an intercept": {"psi": GroupL2(0.02, GROUPS), "A": sp.eye_array(D - 1, D, format="csr")},
    "groups and ridge": {"psi": GroupL2(0.02, [*GROUPS, [D - 1]]), "A": "identity", "omega": SquaredL2(0.01)},
    "sparse groups": {
        "psi": Stacked(GroupL2(0.01, [*GROUPS, [D - 1]]), L1(0.01), split=D),
        "A": sp.vstack([sp.eye_array(D), sp.eye_array(D)], format="csr"),
    },
    "maximum norms": {"psi": GroupLInf(0.02, [*GROUPS, [D - 1]]), "A": "identity"},
    "elastic net": {"psi": ElasticNet(0.02, 0.7), "A": "identity"},
    "lasso with bounds": {
        "psi": Stacked(L1(0.02), Box(-0.2, 0.5), split=D),
        "A": sp.vstack([sp.eye_array(D), sp.eye_array(D)], format="csr"),
    },
}
"""Penalties over disjoint blocks that are no ℓ1 norm alone."""
SHARING, COPIES = overlapping_groups([range(start, min(start + 6, D)) for start in range(0, D - 2, 4)], d=D)
JOINED = {
    "trend": {"psi": L1(0.02), "A": stack(trend(D, 1), "identity")},
    "shared features": {"psi": GroupL2(0.03, COPIES), "A": SHARING},
    "shared features with an intercept": {"psi": GroupL2(0.03, COPIES[:-1]), "A": SHARING[: COPIES[-1][0], :]},
    "shared features, ridge": {"psi": GroupL2(0.03, COPIES), "A": SHARING, "omega": SquaredL2(0.01)},
    "shared features, lasso": {
        "psi": Stacked(GroupL2(0.02, COPIES), L1(0.01), split=SHARING.shape[0]), "A": stack(SHARING, "identity"),
    },
}  # fmt: skip
"""Rows of A with three entries or more, and groups that share features."""
SOLVER = dict.fromkeys(MODELS, "reduced-newton") | dict.fromkeys(GROUPED, "block-newton")
SOLVER |= dict.fromkeys(JOINED, "multipliers-cg")


@pytest.fixture(scope="module")
def dask_blocks():
    """A function that puts rows and targets on two Dask workers."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster):
        yield lambda array: [dask.delayed(array[start : start + N // 3]) for start in range(0, N, N // 3)]


CLOSE = 1e-7
"""How close coefficients of one solution are. A gap of 1e-16, the smallest there is, promises no more than its square
root, 1e-8, times what the curvature of the objective makes of it."""


def assert_same(there, here):
    assert there.objective == pytest.approx(here.objective, rel=1e-12)
    assert np.abs(there.x - here.x).max() < CLOSE


SEPARATE = MODELS | GROUPED
ALL = SEPARATE | JOINED


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", SEPARATE)
def test_two_processes_agree_with_memory(kind, loss):
    X, target = data(loss)
    model = ALL[kind] | {"loss": loss}
    there = Problem(Processes(X, workers=2), target, **model)
    here, elsewhere = (solve(p, "auto", tol=1e-10) for p in (Problem(X, target, **model), there))
    assert elsewhere.status is Status.SOLVED
    assert elsewhere.solver == SOLVER[kind]
    assert 0 < np.count_nonzero(elsewhere.x) < D / 4
    assert_same(elsewhere, here)


@pytest.mark.parametrize("kind", ["graph", "groups with an intercept"])
def test_two_dask_workers_agree_with_memory(kind, dask_blocks):
    X, target = data()
    here = solve(Problem(X, target, **ALL[kind]), tol=1e-10)
    there = solve(Problem(dask_blocks(X), dask_blocks(target), **ALL[kind]), tol=1e-10)
    assert there.status is Status.SOLVED
    assert there.solver == SOLVER[kind]
    assert_same(there, here)


@pytest.mark.parametrize("kind", JOINED)
def test_features_that_rows_or_groups_share_agree_with_memory(kind):
    X, target = data()
    here, there = (solve(Problem(rows, target, **JOINED[kind]), tol=1e-6) for rows in (X, Processes(X, workers=2)))
    assert here.status is there.status is Status.SOLVED
    assert there.solver == SOLVER[kind]
    assert "it ran multipliers-cg" in there.message
    assert 0 < np.count_nonzero(there.x) < D / 4
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    assert there.gap <= 1e-6


def test_shared_features_on_dask_agree_with_memory(dask_blocks):
    X, target = data()
    model = JOINED["shared features, ridge"]
    here, there = (solve(Problem(*both, **model), tol=1e-6) for both in ((X, target), map(dask_blocks, (X, target))))
    assert there.status is Status.SOLVED
    assert there.solver == "multipliers-cg"
    assert there.objective == pytest.approx(here.objective, rel=1e-6)


def test_paths_over_groups_agree_with_memory():
    X, target = data()
    model, alphas = {"psi": GroupL2(1.0, GROUPS), "A": sp.eye_array(D - 1, D, format="csr")}, [0.03, 0.02, 0.015]
    here, there = (path(Problem(rows, target, **model), alphas, tol=1e-11) for rows in (X, Processes(X, workers=2)))
    assert set(there.statuses) == {"solved"}
    np.testing.assert_allclose(there.x, here.x, atol=CLOSE, rtol=0)


def test_cross_validation_over_groups_agrees_with_memory():
    X, target = data()
    search = {"groups": [*GROUPS, [D - 1]], "alphas": 3, "cv": 2, "eps": 0.3, "tol": 1e-10}
    here, there = (GroupLassoClassifierCV(**search).fit(rows, target) for rows in (X, Processes(X, workers=2)))
    assert there.alpha_ == pytest.approx(here.alpha_, rel=1e-10)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("kind", ["graph", "groups"])
def test_what_is_moved_does_not_grow_with_the_square_of_the_features(kind):
    """Per step: a gradient over all features from every worker, and what concerns the clusters or the working set."""
    X, target = data()
    problem = Problem(Processes(X, workers=2), target, **ALL[kind])
    sizes = []
    usual = problem.backend.map_reduce

    def map_reduce(kind, function, arguments, **options):
        total = usual(kind, function, arguments, **options)
        sizes.append(sum(part.nbytes for part in flat((arguments[0], total))))
        return total

    problem.backend.map_reduce = map_reduce
    result = solve(problem, tol=1e-6)
    assert result.status is Status.SOLVED
    assert max(sizes) < 8 * (2 * D + 600**2)


def flat(value):
    if isinstance(value, np.ndarray):
        return [value]
    return [part for entry in value for part in flat(entry)] if isinstance(value, (tuple, list)) else []


def test_a_penalty_that_needs_more_is_refused_with_the_reason():
    X, target = data()
    problem = Problem(Processes(X, workers=2), target, psi=L1(0.1), A=np.ones((3, D)))
    with pytest.raises(ValueError, match=r"6000 features are more than a dense .* rows of A have too many entries"):
        solve(problem, "san-admm")


LOST = {"graph": 3, "lasso with an intercept": 3, "groups with an intercept": 3, "shared features, ridge": 12}
"""Every how many requests memory is lost in a run of its own, where there are many requests."""


@pytest.mark.parametrize("kind", LOST)
def test_memory_lost_at_any_request(kind, monkeypatch):
    X, target = data()
    problem = Problem(X, target, **ALL[kind])

    def run(when):
        used = []

        def oracle_for(backend, checkpoint):
            used.append(Forgetful(problem, when))
            return RemoteReducedOracle(used[-1])

        for module in (reduced_newton, block_newton, multipliers_cg):
            monkeypatch.setattr(module, "reduced_oracle_for", oracle_for)
        return solve(problem, SOLVER[kind], tol=1e-8, passes=100), used[0].asked

    undisturbed, requests = run(-1)
    assert undisturbed.status is Status.SOLVED
    for when in range(1, requests + 1, 1 if requests < 40 else LOST[kind]):
        result, asked = run(when)
        assert asked > when
        assert result.status is Status.SOLVED
        assert result.objective == pytest.approx(undisturbed.objective, rel=1e-8)


@pytest.mark.parametrize("kind", ["graph", "groups with an intercept"])
def test_a_killed_process_does_not_change_the_answer(kind):
    X, target = data()
    problem = Problem(Processes(X, workers=2), target, **ALL[kind])
    expected = solve(problem, tol=1e-9)
    killed = []

    def kill(snapshot):
        if snapshot.step_number == 2 and not killed:
            from skadmm.backends.processes.pool import workers

            killed.append(workers(2)[1].pid)
            threading.Thread(target=os.kill, args=(killed[0], signal.SIGKILL)).start()

    again = solve(problem, tol=1e-9, callback=kill, record_every=1)
    assert killed
    assert again.status is Status.SOLVED
    assert np.abs(again.x - expected.x).max() < 1e-8


@pytest.mark.parametrize("kind", ["graph", "groups", "shared features, ridge"])
def test_a_checkpoint_resumes_to_the_same_bits(kind, tmp_path):
    X, target = data()
    problem = Problem(Processes(X, workers=2), target, **ALL[kind])
    settings = {"tol": 1e-9, "record_every": 1, "random_state": 0}
    whole = solve(problem, **settings)
    kept = settings | {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    part = solve(problem, callback=lambda snapshot: snapshot.step_number >= 3, **kept)
    assert part.status is not Status.SOLVED
    resumed = solve(problem, **kept)
    assert resumed.status is Status.SOLVED
    assert resumed.x.tobytes() == whole.x.tobytes()


def test_what_is_sent_is_what_arrives():
    rng = np.random.default_rng(2)
    for x in (np.zeros(5), rng.standard_normal(5), np.array([0.0, 0.0, 3.0, 0.0])):
        assert np.array_equal(unpacked(packed(x)), x)
    known, H = np.zeros((4, 4)), rng.standard_normal((4, 4))
    H += H.T
    known[:3, :3] = H[:3, :3]
    change = HessianChange.between(known, H, np.array([3]))
    assert change.strip.shape == (1, 4)
    assert change.rest == 0.0
    assert np.array_equal(change.added_to(known, np.array([3])), H)
    other = H + np.diag([1.0, 0.0, 0.0, 0.0])
    assert np.allclose(HessianChange.between(H, other, np.empty(0, int)).added_to(H.copy(), np.empty(0, int)), other)
