"""First-order methods equal their NumPy twins, iterate by iterate, over losses × matrix kinds × batch sizes."""

import numpy as np
import pytest
import reference
import reference_successors
from twins import KINDS, RHO, X0, assert_twins, order_of, pair, twin_iterates

from skadmm import ALGORITHMS, Status, solve

ELSEWHERE = {
    "exact-admm": "test_equivalence_nonlinear.py",
    "online-admm": "test_equivalence_nonlinear.py",
    "san-admm": "second order: its own tests hold it against its own reference",
}
ELSEWHERE |= dict.fromkeys(reference_successors.METHODS, "test_equivalence_successors.py")
METHODS = [name for name in reference.METHODS if name not in ELSEWHERE]


WITH_TWINS = {
    "sa-admm", "sa-iu-admm", "batch-admm", "batch-iu-admm", "stoc-admm", "opg-admm", "rda-admm", "online-admm",
    "exact-admm", "saga-admm", "saga-iu-admm", "svrg-admm", "svrg-iu-admm", "asvrg-admm", "asvrg-iu-admm",
}  # fmt: skip
"""The methods of the package; none of them may lose its twin."""


def test_every_twin_belongs_to_a_method():
    """A method without a twin is held to what test_conformance.py asks of all methods."""
    twins = set(reference.METHODS) | set(reference_successors.METHODS)
    assert twins <= set(ALGORITHMS)
    assert twins >= WITH_TWINS
    assert set(METHODS) >= {"sa-admm", "sa-iu-admm", "batch-admm", "batch-iu-admm", "stoc-admm", "opg-admm", "rda-admm"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_iterates_are_the_twins(method, loss, kind):
    for batch_size in (1, 7):
        assert_twins(pair(loss, kind), method, batch_size)


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("method", METHODS)
def test_solve_ends_where_the_twin_ends(method, batch_size):
    both = pair("logistic", "csr")
    both.model.step = ALGORITHMS[method].theory_step(both.problem, RHO)
    steps = 20
    order = order_of(batch_size, steps)
    seen = []
    result = solve(
        both.problem, method, rho=RHO, step="theory", batch_size=batch_size, sampler=order, x0=X0, passes=50,
        callback=lambda snapshot: seen.append(snapshot) or snapshot.step_number >= steps, record_every=1e-9,
    )  # fmt: skip
    assert result.status is Status.STOPPED
    taken = seen[-1].step_number
    visited = np.resize(order, taken)  # an array of indices starts again when it ends
    iterates = twin_iterates(both.model, method, batch_size, visited)
    ends = np.concatenate([result.x, result.y, result.dual])
    assert np.abs(ends - iterates[-1]).max() <= 1e-10
    d = X0.size
    assert np.abs(result.x_average - iterates[:, :d].mean(0)).max() <= 1e-10
    assert np.abs(result.y_average - iterates[:, d : d + result.y.size].mean(0)).max() <= 1e-10
