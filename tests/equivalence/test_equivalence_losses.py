"""First-order methods equal their NumPy twins, iterate by iterate, for every loss of one margin in the registry.

The losses of ``reference.py`` take all methods and both kinds of rows in test_equivalence.py; the others, of counts,
costs, shares, quantiles and classes with kinks, take the methods here, dense and sparse rows in turn. A loss that is
added to the registry is included; without a twin in ``reference_losses.py`` its own functions stand in for it.
"""

import numpy as np
import pytest
import reference
import reference_losses
from twins import RHO, X0, D, N, assert_twins, pair, target

from skadmm import ALGORITHMS
from skadmm.losses import LOSSES, curvature, derivative, value

METHODS = ["sa-admm", "svrg-admm", "sa-iu-admm", "stoc-admm", "saga-iu-admm", "opg-admm"]
SCALAR = [name for name, loss in LOSSES.items() if not loss.coupled and name not in reference.LOSSES]
KINDS = ["dense", "csr"]


def cells():
    """Every loss with every method; all but two methods per loss, in turn, take part in ``make test-all`` only."""
    for i, loss in enumerate(SCALAR):
        for j, method in enumerate(METHODS):
            marks = () if j // 2 == i % 2 else pytest.mark.slow
            yield pytest.param(method, loss, KINDS[(i // 2 + j) % 2], marks=marks)
    for loss in ("poisson", "tweedie"):  # a step of these two minimises the loss itself
        for method in ("exact-admm", "online-admm"):
            yield pytest.param(method, loss, "dense", marks=pytest.mark.slow)


WITH_TWINS = {
    "poisson", "gamma", "binomial", "tweedie", "negative-binomial", "quantile", "smoothed-quantile", "absolute",
    "hinge",
}  # fmt: skip
"""The losses of the package here; none of them may lose its twin."""


def twin_of(name):
    """The loss in NumPy; by the functions of the package, interpreted sample by sample, where nobody wrote a twin."""
    if name in reference_losses.LOSSES:
        return reference_losses.LOSSES[name]
    functions = [np.vectorize(lambda z, b, f=f: f(LOSSES[name](), z, b)) for f in (value, derivative, curvature)]
    return lambda z, b: tuple(function(z, b) for function in functions)


def test_every_twin_belongs_to_a_loss():
    assert set(reference_losses.LOSSES) <= set(SCALAR)
    assert set(reference_losses.LOSSES) >= WITH_TWINS


@pytest.mark.parametrize("name", reference_losses.LOSSES)
def test_the_twins_have_the_values_of_the_package(name):
    z = np.linspace(-2.0, 2.0, N)
    for mine, function in zip(twin_of(name)(z, target(name)), (value, derivative, curvature), strict=True):
        theirs = [function(LOSSES[name](), *both) for both in zip(z, target(name), strict=True)]
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("method", "loss", "kind"), list(cells()))
def test_iterates_are_the_twins(method, loss, kind, monkeypatch):
    monkeypatch.setitem(reference.LOSSES, loss, twin_of(loss))
    for batch_size in (1, 7):
        both = pair(loss, kind)
        # Where ℓ'' is unbounded, no step is safe everywhere; a twentieth of the usual one is from this start.
        both.model.step = 0.05 * ALGORITHMS[method].theory_step(both.problem, RHO)
        iterates = assert_twins(both, method, batch_size)
        assert np.abs(iterates[-1, :D] - X0).max() > 1e-3  # it has moved
