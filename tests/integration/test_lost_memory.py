"""Second-order steps when a worker forgets where its samples stand: at every single request of a run.

What a cluster does at random (``test_dask.py`` kills workers) is done here one request after the other, in memory.
"""

import numpy as np
import pytest
import scipy.sparse
from forgetful import Forgetful

from skadmm import Problem, Status, solve
from skadmm.operators import chain, stack
from skadmm.oracle.remote import RemoteOracle
from skadmm.oracle.speculative import SpeculativeOracle
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers.second_order import l1_rows, newton_admm

N, D = 600, 5
ALL = stack(chain(D), "identity")
MODELS = {
    "l1": {"psi": L1(1e-3), "A": ALL},
    "ridge": {"psi": L1(1e-3), "A": ALL, "omega": SquaredL2(0.1)},
    "free": {
        "psi": L1(1e-2),
        "A": scipy.sparse.hstack([stack(chain(D - 1), "identity"), scipy.sparse.csr_array((2 * D - 3, 1))]).tocsr(),
    },
}


def oracles(problem, when, ahead, monkeypatch):
    """Let the solver ask such a cluster; the clusters that it has asked."""
    used = []

    def oracle_for(backend, checkpoint):
        used.append(Forgetful(problem, when))
        return SpeculativeOracle(RemoteOracle(used[-1]), N) if ahead else RemoteOracle(used[-1])

    monkeypatch.setattr(newton_admm, "oracle_for", oracle_for)
    return used


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("ahead", [False, True], ids=["one after the other", "at once"])
def test_memory_lost_at_any_request(kind, ahead, monkeypatch):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N, D)) * [1, 1, 8, 1, 1]
    target = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(N) > 0, 1.0, -1.0)
    problem = Problem(X, target, **MODELS[kind])
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)

    def run(when):
        used = oracles(problem, when, ahead, monkeypatch)
        return solve(problem, "san-admm", tol=1e-8, passes=40), used[0].asked

    undisturbed, requests = run(-1)
    assert undisturbed.status is Status.SOLVED
    assert requests > (10 if ahead else 20)
    # A certificate with a free feature takes two passes of its own: one evaluation more, and the one cut short.
    most = 6.0 if kind == "free" else 2.0
    for when in range(1, requests + 1):
        result, asked = run(when)
        assert asked > when
        assert result.status is Status.SOLVED
        assert result.objective == pytest.approx(undisturbed.objective, rel=1e-8)
        assert result.passes <= undisturbed.passes + most + 1e-9


@pytest.mark.parametrize("ahead", [False, True], ids=["one after the other", "at once"])
def test_memory_lost_in_the_last_evaluation(ahead, monkeypatch):
    """A run that ends at the pass limit is certified as well, whenever the memory goes."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((N, D)) * [1, 1, 8, 1, 1]
    target = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(N) > 0, 1.0, -1.0)
    problem = Problem(X, target, **MODELS["l1"])
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)

    def run(when):
        used = oracles(problem, when, ahead, monkeypatch)
        return solve(problem, "san-admm", passes=4.2, record_every=0), used[0].asked

    undisturbed, requests = run(-1)
    certified = []
    usual = newton_admm.NewtonADMM.finish

    def finish(self, state):
        usual(self, state)
        certified.append(self.certificate(state).relative)

    monkeypatch.setattr(newton_admm.NewtonADMM, "finish", finish)
    for when in range(1, requests + 1):
        assert run(when)[0].objective == pytest.approx(undisturbed.objective, rel=1e-6)
    assert max(certified) < 1e-3
