"""Methods with a table of gradients beside their NumPy twins, however the table starts and wherever the rows are."""

import numpy as np
import reference
import reference_successors
from twins import ITERATIONS, RHO, TOLERANCE, X0, N, order_of

from skadmm import ALGORITHMS
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


def started(both, method, batch_size, table, problem=None, **more):
    algorithm = ALGORITHMS[method]
    both.model.step = both.model.step or 10 * algorithm.theory_step(both.problem, RHO)
    problem = problem or both.problem
    options = algorithm.settled({"table": table})
    setup = Setup(problem, RHO, both.model.step, batch_size, both.mode, options=options, **more)
    return algorithm.start(setup, dual_update.start(problem, X0, both.model.start(X0)[1], None))


def iterates_of(engine, order):
    rows = []
    for k in order:
        engine.advance(np.array([k]))
        rows.append(np.concatenate([engine.point.x, engine.point.y, engine.point.dual]))
    return np.array(rows)


def assert_twins(both, method, batch_size, table="zero", problem=None, iterations=ITERATIONS):
    order = order_of(batch_size, iterations)
    engine = started(both, method, batch_size, table, problem)
    mine = iterates_of(engine, order)
    theirs = twin_of(method, both.model, batch_size, order, table)
    assert np.isfinite(theirs).all()
    assert np.abs(mine - theirs).max() <= TOLERANCE
    seen = sum(block.size for block in (reference.cut(N, batch_size)[k] for k in order))
    assert engine.point.clock[1] == seen + (N if table == "x0" else 0)  # no pass fills a table of zeros
    assert np.flatnonzero(engine.rule.visited).tolist() == sorted(set(order.tolist()))
