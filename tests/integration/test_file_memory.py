"""What a fit of a table on disk keeps in memory: no problem longer than it is needed, and rows in chunks."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from skadmm import FusedLassoClassifierCV, Problem
from skadmm.backends import FileBackend
from skadmm.backends.convert import write_blocks
from skadmm.operators import chain
from skadmm.regularizers import L1
from skadmm.run.path import alpha_max


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    target = np.where(X[:, 0] + 0.5 + rng.standard_normal(3000) > 0, "yes", "no")
    path = tmp_path_factory.mktemp("table") / "rows"
    write_blocks(path, [(X[k : k + 1000], target[k : k + 1000]) for k in range(0, 3000, 1000)], ones=True)
    return path


def test_a_problem_is_freed_with_its_last_name(folder):
    """Without the collector of cycles: its numbers per sample would be there for several folds at once."""
    gc.collect()
    gc.disable()
    try:
        problem = Problem(folder, psi=L1(0.1))
        problem.backend.evaluations.at(np.zeros(7))
        gone = weakref.ref(problem.backend)
        del problem
        assert gone() is None
    finally:
        gc.enable()


def test_copies_have_evaluations_of_their_own():
    backend = Problem(np.eye(3), np.ones(3), loss="squared").backend
    first = backend.evaluations.at(np.zeros(3))[0]
    for other in (copy.copy(backend), pickle.loads(pickle.dumps(backend))):
        assert other.evaluations.known(np.zeros(3)) is None
        assert other.evaluations.at(np.zeros(3))[0].loss == first.loss


def test_rows_are_read_in_chunks_with_a_free_intercept(folder, monkeypatch):
    """Where a direction is free, alpha_max reads the table; its pages are released chunk by chunk."""
    A = np.hstack([chain(6).toarray(), np.zeros((5, 1))])
    problem = Problem(folder, psi=L1(0.1), A=A)
    expected = alpha_max(problem)
    released = []
    usual = FileBackend.between_chunks
    monkeypatch.setattr(FileBackend, "between_chunks", lambda self: released.append(1) or usual(self))
    small = Problem(folder, psi=L1(0.1), A=A)
    small.backend.rows_per_chunk = 500
    assert alpha_max(small) == pytest.approx(expected, rel=1e-9)
    assert len(released) >= 6


def test_the_folds_of_a_table_on_disk_share_no_memory(folder, monkeypatch):
    """At no time is there a problem for every fold."""
    alive, most = weakref.WeakSet(), []
    usual = FileBackend.__init__

    def init(self, *arguments, **options):
        usual(self, *arguments, **options)
        alive.add(self)
        most.append(len(alive))

    monkeypatch.setattr(FileBackend, "__init__", init)
    gc.collect()
    gc.disable()
    try:
        FusedLassoClassifierCV(alphas=3, cv=6).fit(folder)
    finally:
        gc.enable()
    assert max(most) <= 4
