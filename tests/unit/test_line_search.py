"""Lengths of steps: shortened where the objective rises, lengthened where it falls faster than a quadratic."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from skadmm import Problem, solve
from skadmm.operators import chain
from skadmm.regularizers import L1
from skadmm.solvers.second_order.line_search import lengthen, shorten


def test_a_quadratic_is_not_lengthened():
    def merit(t):
        return 0.5 * (t - 1.0) ** 2

    assert shorten(merit, merit(0.0), -1.0) == 1.0
    assert lengthen(merit, merit(0.0), -1.0, 16.0) == 1.0


@pytest.mark.parametrize("longest", [1.0, 4.0, 16.0])
def test_the_tail_of_a_loss_is(longest):
    """Newton's step on exp(−z) is 1 wherever it starts; with a small price on z the minimum is far away."""

    def merit(t):
        return np.exp(-t) + 1e-4 * t

    assert lengthen(merit, merit(0.0), -1.0, longest) == min(longest, 8.0)


def test_lengths_beyond_the_domain_are_refused():
    assert lengthen(lambda t: np.exp(-t) if t <= 2.0 else np.inf, 1.0, -1.0, 16.0) == 2.0


@pytest.mark.parametrize("strength", [1e-4, 1e-6])
def test_separable_classes_take_few_passes(strength):
    """Most samples are on the tail of the loss, and those with curvature are revisited on their own."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = Problem(X, np.where(y == 1, 1.0, -1.0), psi=L1(strength), A=chain(X.shape[1]))
    passes = [
        solve(problem, "newton-admm", tol=1e-6, options=options).passes
        for options in ({}, {"longest_step": 1.0, "curved_share": 0.0})
    ]
    assert passes[0] < 0.85 * passes[1]
