"""A table of zeros with rows on a cluster: the twins' iterates, and no sample that has not been seen gets a slope."""

import numpy as np
import pytest
import reference
from table_twins import METHODS, assert_twins, iterates_of, started, twin_of
from twins import KINDS, TOLERANCE, WEIGHT, A, C, N, X, order_of, pair, target

from skadmm import Problem
from skadmm.backends import worker

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

BLOCK = 14  # two blocks of seven
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("client"),
]  # Dask's own, about ports and loops
CELLS = [(method, loss, kind) for method in METHODS for loss in reference.LOSSES for kind in KINDS]


def pieces(array, kind=np.asarray):
    return [dask.delayed(kind)(array[start : start + BLOCK]) for start in range(0, N, BLOCK)]


def on_cluster(both, loss, kind):
    rows, weight = pieces(X, KINDS[kind]), pieces(WEIGHT)
    return Problem(rows, pieces(target(loss)), loss, sample_weight=weight, psi=both.problem.psi, A=A, c=C)


@pytest.mark.parametrize(
    ("method", "loss", "kind"),
    CELLS,
)
def test_iterates_are_the_twins(method, loss, kind):
    both = pair(loss, kind)
    there = on_cluster(both, loss, kind)
    for batch_size in (1, 7):
        assert_twins(both, method, batch_size, problem=there, iterations=60)


@pytest.mark.parametrize("method", METHODS)
def test_workers_that_forget_do_not_fill_the_table(method):
    """All that workers keep is lost, twice, and another engine goes on from the state of the first."""
    both, order = pair(), order_of(1, 60)
    there = on_cluster(both, "logistic", "dense")
    engine, rows = started(both, method, 1, "zero", there), []
    for part in np.split(order, [15, 30]):
        rows.append(iterates_of(engine, part))
        forget = (lambda samples, memory: memory.clear(), ())
        there.backend.map_reduce("forget", worker.run_and_concat, [forget] * there.backend.sizes.size)
        assert engine.rule.visited.sum() < N
        state = {name: array.copy() for name, array in engine.state().items()}
        engine = started(both, method, 1, "zero", there)
        engine.resume(state)
    assert np.abs(np.vstack(rows) - twin_of(method, both.model, 1, order, "zero")).max() <= TOLERANCE


def test_several_steps_in_one_request_are_the_twins():
    both, order = pair(), np.sort(order_of(1, 60))  # in turn, so that many follow each other on the worker
    there = on_cluster(both, "logistic", "dense")
    for method in ("sa-iu-admm", "saga-iu-admm"):
        engine = started(both, method, 1, "zero", there)
        engine.advance(order)
        point = engine.point
        last = twin_of(method, both.model, 1, order, "zero")[-1]
        assert np.abs(np.concatenate([point.x, point.y, point.dual]) - last).max() <= TOLERANCE
        assert np.flatnonzero(engine.rule.visited).tolist() == sorted(set(order.tolist()))


def test_stale_steps_know_which_blocks_were_seen():
    """With one block after the other requested ahead, a run still ends with every block that was drawn marked."""
    both, order = pair(), order_of(7, 12)
    there = on_cluster(both, "logistic", "dense")
    engine = started(both, "sa-iu-admm", 7, "zero", there, staleness=2)
    engine.advance(order)
    mean = np.mean([both.model.gradients(engine.rule.points[k])[block].sum(0) * engine.rule.visited[k]
                    for k, block in enumerate(reference.cut(N, 7))], axis=0) * len(reference.cut(N, 7)) / N  # fmt: skip
    assert np.abs(engine.rule.grad_bar - mean).max() <= TOLERANCE
    assert np.flatnonzero(engine.rule.visited).tolist() == sorted(set(order.tolist()))
