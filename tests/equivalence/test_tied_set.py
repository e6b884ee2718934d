"""Active sets of tied features: the same minimum as other solvers and CVXPY, for columns of any scales."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse

from skadmm import SOLVERS, FusedLassoClassifier, FusedLassoRegressor, Problem, Status, solve
from skadmm.operators import chain, grid, stack
from skadmm.regularizers import L1, Box, GroupL2, NonNegative
from skadmm.regularizers.stacked import Stacked
from skadmm.solvers.second_order import conic_terms
from skadmm.solvers.second_order.polish import ConstrainedRows
from skadmm.solvers.second_order.tied_set import TiedSet

RNG = np.random.default_rng(0)
N, D = 60, 12
X = RNG.standard_normal((N, D))
NUMBERS = X @ np.repeat([0.0, 1.0, -0.5], 4) + 0.3 * RNG.standard_normal(N)
CLASSES = np.where(NUMBERS > 0, 1.0, -1.0)
SCALES = 10.0 ** np.random.default_rng(1).uniform(-4, 4, 30)


def ordered(strength, bounds=(-np.inf, np.inf)):
    """ℓ1 of coefficients and differences, increasing coefficients within bounds."""
    A = scipy.sparse.vstack([chain(D), scipy.sparse.eye_array(D), chain(D), scipy.sparse.eye_array(D)], format="csr")
    constraint = Stacked(NonNegative(), Box(np.full(D, bounds[0]), np.full(D, bounds[1])), D - 1)
    return A, Stacked(L1(strength), constraint, 2 * D - 1)


CASES = {
    "lasso": lambda: ("identity", L1(0.1)),
    "chain": lambda: (stack(chain(D), "identity"), L1(0.05)),
    "grid": lambda: (stack(grid((3, 4)), "identity"), L1(0.02)),
    "signs": lambda: ("identity", NonNegative()),
    "bounds": lambda: ("identity", Box(-0.2, 0.6)),
    "a value": lambda: ("identity", Box(0.1, 0.1)),
    "order": lambda: ordered(0.02),
    "order within bounds": lambda: ordered(0.02, (-0.1, 0.4)),
}


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "squared-hinge"])
@pytest.mark.parametrize("case", CASES)
def test_it_finds_the_minimum_that_multipliers_find(case, loss):
    A, psi = CASES[case]()
    target = CLASSES if loss in ("logistic", "squared-hinge") else NUMBERS
    problem = Problem(X, target, loss=loss, psi=psi, A=A)
    found, expected = solve(problem, "tied-set", tol=1e-8), solve(problem, "multipliers", tol=1e-9, passes=5000)
    assert found.status is Status.SOLVED
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson", "absolute", "hinge"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("options", [{}, {"positive": True}, {"bounds": (-0.5, 0.5)}], ids=str)
def test_an_order_over_columns_of_scales_from_1e_minus_4_to_1e4(loss, standardize, options, monkeypatch):
    monkeypatch.setattr(conic_terms, "is_installed", lambda: False)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 30)) * SCALES
    margins = X @ (np.sort(rng.standard_normal(30)) / SCALES) / 5
    y = margins + 0.3 * rng.standard_normal(60)
    y = {"poisson": rng.poisson(np.exp(margins)), "logistic": y > 0, "hinge": y > 0}.get(loss, y)
    model = FusedLassoClassifier if loss in ("logistic", "hinge") else FusedLassoRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model(0.01, loss=loss, monotone="increasing", standardize=standardize, **options).fit(X, y)
    assert fitted.result_.gap <= 1e-6
    assert (np.diff(fitted.coef_.ravel()) >= 0).all()


def test_the_objective_over_columns_of_different_scales_is_that_of_cvxpy():
    rng, scales = np.random.default_rng(3), 10.0 ** np.linspace(-2, 2, 8)
    X = rng.standard_normal((40, 8)) * scales
    y = X @ (np.array([2.0, -1, 1, 0, 3, 1, -2, 1]) / scales) + rng.standard_normal(40)
    problem = Problem(X, y, loss="squared", psi=Stacked(L1(0.05), NonNegative(), 8), A=stack("identity", chain(8)))
    u = cp.Variable(8)
    x = cp.multiply(u, 1 / scales)
    sign = np.sign(np.asarray(chain(8) @ np.arange(8.0)))
    order = cp.multiply(sign, cp.diff(x)) >= 0
    model = cp.Problem(cp.Minimize(cp.sum_squares(X / scales @ u - y) / 80 + 0.05 * cp.norm1(x)), [order])
    model.solve(solver=cp.CLARABEL)
    found = solve(problem, "tied-set", tol=1e-9)
    assert found.objective == pytest.approx(model.value, rel=1e-6)


def test_points_move_onto_an_order_where_that_costs_least():
    """The mean of two tied features is close to the one whose column has the larger entries."""
    problem = Problem(X[:, :2], NUMBERS, loss="squared", psi=NonNegative(), A=scipy.sparse.csr_array([[-1.0, 1.0]]))
    rows = ConstrainedRows.of(problem)
    moved = rows.moved(np.array([1.0, 0.0]), np.zeros(1), np.array([1.0, 1e8]))
    np.testing.assert_allclose(moved, [1e-8, 1e-8], rtol=1e-6)


def test_the_multiplier_that_is_returned_gives_the_bound():
    """Losses with kinks take it as their own; an earlier one kept their bound from rising."""
    rng = np.random.default_rng(971112)
    X = rng.standard_normal((100, 30))
    y = X @ np.sort(rng.standard_normal(30)) / 5 + rng.standard_normal(100) > 0
    fitted = FusedLassoClassifier(0.002, loss="hinge", monotone="decreasing", l1_ratio=1.0).fit(X, y)
    assert fitted.result_.gap <= 1e-6


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"psi": GroupL2(0.1, groups=[0] * 6 + [1] * 6)}, "GroupL2"),
        ({"psi": L1(0.1), "A": np.ones((2, D))}, "three entries"),
        ({"psi": Box(-1.0, 2.0), "A": chain(D)}, "other than zero"),
        ({"psi": L1(0.1), "omega": L1(0.1)}, "omega=L1"),
        ({"psi": L1(0.1), "B": 2.0 * np.eye(D), "A": "identity"}, "B = −I"),
    ],
)
def test_what_it_refuses(options, reason):
    assert reason in TiedSet.applies(Problem(X, NUMBERS, loss="squared", **options))


def test_many_features_are_refused_with_their_number():
    problem = Problem(np.ones((3, 1001)), np.ones(3), loss="squared", psi=L1(0.1))
    assert "1001" in SOLVERS["tied-set"].applies(problem)


@pytest.mark.parametrize("seed", range(6))
def test_features_without_curvature_bring_no_overflow(seed):
    """Columns of zeros, and few samples with a kinked loss."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.csr_array(rng.standard_normal((12, 30)) * (rng.random((12, 30)) < 0.1))
    y = X.sum(axis=1) + 0.5 * rng.standard_normal(12) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FusedLassoClassifier(0.02, loss="hinge", l1_ratio=0.3, standardize=True, positive=True).fit(X, y)
    assert model.result_.gap <= 1e-6
    assert (model.coef_ >= 0).all()
