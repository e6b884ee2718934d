"""Methods with a table of gradients equal their NumPy twins however the table starts, in memory and in files."""

import numpy as np
import pytest
import reference
import reference_successors
from twins import KINDS, RHO, TOLERANCE, WEIGHT, X0, A, C, N, X, order_of, pair, target, with_omega

from skadmm import ALGORITHMS, Problem, solve
from skadmm.backends.convert import write_blocks
from skadmm.run import step_size
from skadmm.solvers import Setup, dual_update

METHODS = ("sa-admm", "sa-iu-admm", "saga-admm", "saga-iu-admm")


def twin_of(method, model, batch_size, order, table):
    """(x, y, dual) after every step of the NumPy twin."""
    blocks = reference.cut(N, batch_size)
    visited = [blocks[k] for k in order]
    if method in reference.METHODS:
        steps = reference.METHODS[method](model, visited, X0, table=table)
    else:
        steps = reference_successors.iterates(method, model, visited, X0, table=table)
    return np.array([np.concatenate(triple) for triple in steps])


def started(both, method, batch_size, table, problem=None):
    algorithm = ALGORITHMS[method]
    both.model.step = both.model.step or 10 * algorithm.theory_step(both.problem, RHO)
    problem = problem or both.problem
    setup = Setup(problem, RHO, both.model.step, batch_size, both.mode, options=algorithm.settled({"table": table}))
    return algorithm.start(setup, dual_update.start(problem, X0, both.model.start(X0)[1], None))


def iterates_of(engine, order):
    rows = []
    for k in order:
        engine.advance(np.array([k]))
        rows.append(np.concatenate([engine.point.x, engine.point.y, engine.point.dual]))
    return np.array(rows)


def assert_twins(both, method, batch_size, table="zero", problem=None):
    order = order_of(batch_size)
    engine = started(both, method, batch_size, table, problem)
    mine = iterates_of(engine, order)
    theirs = twin_of(method, both.model, batch_size, order, table)
    assert np.isfinite(theirs).all()
    assert np.abs(mine - theirs).max() <= TOLERANCE
    seen = sum(block.size for block in (reference.cut(N, batch_size)[k] for k in order))
    assert engine.point.clock[1] == seen + (N if table == "x0" else 0)  # no pass fills a table of zeros
    assert np.flatnonzero(engine.rule.visited).tolist() == sorted(set(order.tolist()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_iterates_from_a_table_of_zeros_are_the_twins(method, loss, kind):
    for batch_size in (1, 7):
        assert_twins(pair(loss, kind), method, batch_size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_iterates_on_files_are_the_twins(method, loss, kind, tmp_path):
    make = KINDS[kind]
    parts = ((make(X[k : k + 15]), target(loss)[k : k + 15], WEIGHT[k : k + 15]) for k in range(0, N, 15))
    write_blocks(tmp_path / "rows", parts)
    both = pair(loss, kind)
    there = Problem(tmp_path / "rows", loss=loss, psi=both.problem.psi, A=A, c=C)
    for batch_size in (1, 7):
        assert_twins(both, method, batch_size, problem=there)


@pytest.mark.parametrize(
    ("method", "mode", "omega"),
    [("sa-admm", "system", "squared-l2"), ("sa-iu-admm", "prox", "l1"), ("saga-iu-admm", "prox", "l1")],
)
def test_iterates_with_omega_are_the_twins(method, mode, omega):
    assert_twins(with_omega("logistic", "dense", mode, omega), method, 7)
