"""Under a logarithmic link the units of the targets and a constant in the offset change the intercept alone, and
certificates hold however large the loss at zero is."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoRegressor, FusedLassoRegressorCV, Problem, Status, TrendFilter, alpha_max, path, solve
from skadmm.backends import Processes
from skadmm.backends.writer import write_blocks
from skadmm.losses import Tweedie
from skadmm.problem.certificate import Certifier
from skadmm.regularizers import L1

RNG = np.random.default_rng(3)
X = RNG.standard_normal((150, 4))
MEANS = np.exp(X @ [1.0, 0.5, 0.0, 0.0])
COUNTS = RNG.poisson(MEANS).astype(float)
COSTS = RNG.gamma(3.0, MEANS / 3.0)
LOSSES = {
    "poisson": ("poisson", COUNTS),
    "negative-binomial": ("negative-binomial", COUNTS),
    "gamma": ("gamma", COSTS),
    "tweedie 1.1": (Tweedie(1.1), COSTS * (COSTS > 0.5)),
    "tweedie 1.5": (Tweedie(1.5), COSTS * (COSTS > 0.5)),
    "tweedie 1.9": (Tweedie(1.9), COSTS * (COSTS > 0.5)),
}
OFFSETS = [-40.0, -30.0, 5.0, 20.0, 25.0, 30.0, 40.0, 500.0, 1000.0]
UNITS = [1e-12, 1e-6, 1e5, 1e10, 1e15]
MARGINS = np.column_stack([X, np.ones(150)])
PENALISED = np.eye(4, 5)


@functools.cache
def fitted(name):
    loss, target = LOSSES[name]
    return FusedLassoRegressor(0.02, loss=loss, tol=1e-10).fit(X, target)


@functools.cache
def searched(name):
    loss, target = LOSSES[name]
    return FusedLassoRegressorCV(alphas=6, cv=3, loss=loss, tol=1e-7).fit(X, target)


def same_solution(model, wanted, shift):
    assert model.result_.status is Status.SOLVED
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(wanted.intercept_ + shift, abs=1e-6)


@pytest.mark.parametrize("table", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", LOSSES)
def test_a_constant_in_the_offset(name, offset, table):
    loss, target = LOSSES[name]
    model = FusedLassoRegressor(0.02, loss=loss, tol=1e-10).fit(table(X), target, offset=np.full(150, offset))
    same_solution(model, fitted(name), -offset)


@pytest.mark.parametrize("unit", UNITS)
def test_units_of_costs(unit):
    """The gamma loss is that of y in other units plus a constant; Tweedie losses are multiplied by unit^(2 − p)."""
    model = FusedLassoRegressor(0.02, loss="gamma", tol=1e-10).fit(X, COSTS * unit)
    same_solution(model, fitted("gamma"), np.log(unit))
    for power in (1.1, 1.5, 1.9):
        loss, target = LOSSES[f"tweedie {power}"]
        model = FusedLassoRegressor(0.02 * unit ** (2.0 - power), loss=loss, tol=1e-10).fit(X, target * unit)
        same_solution(model, fitted(f"tweedie {power}"), np.log(unit))


def test_units_of_rates():
    for unit in UNITS:
        model = FusedLassoRegressor(0.02 * unit, loss="poisson", tol=1e-10).fit(X, COUNTS * unit)
        same_solution(model, fitted("poisson"), np.log(unit))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", LOSSES)
def test_cross_validation_chooses_the_same(name, offset):
    loss, target = LOSSES[name]
    model = FusedLassoRegressorCV(alphas=6, cv=3, loss=loss, tol=1e-7)
    model.fit(X, target, offset=np.full(150, offset))
    wanted = searched(name)
    np.testing.assert_allclose(model.alphas_, wanted.alphas_, rtol=1e-8)
    assert model.alpha_ == pytest.approx(wanted.alpha_)
    np.testing.assert_allclose(model.cv_mean_, wanted.cv_mean_, rtol=1e-3)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-12, 1e10, 1e15])
def test_cross_validation_of_costs_in_other_units(unit):
    model = FusedLassoRegressorCV(alphas=6, cv=3, loss="gamma", tol=1e-7).fit(X, COSTS * unit)
    np.testing.assert_allclose(model.cv_mean_, searched("gamma").cv_mean_, rtol=1e-3)
    assert model.alpha_ == pytest.approx(searched("gamma").alpha_)


@pytest.mark.parametrize(
    "model", [FusedLassoRegressor(0.02, tol=1e-10), FusedLassoRegressorCV(alphas=6, cv=3, tol=1e-7)]
)
@pytest.mark.parametrize("storage", ["blocks", "processes", "dask"])
def test_where_rows_are_stored(model, storage, tmp_path, client):
    model.set_params(loss="gamma")
    target = COSTS * 1e15
    wanted = type(model)(**model.get_params()).fit(X, target)
    if storage == "blocks":
        write_blocks(tmp_path / "t", [(X[:70], target[:70]), (X[70:], target[70:])], ones=True)
        model.fit(tmp_path / "t")
    elif storage == "processes":
        model.fit(Processes(X, workers=2), target)
    else:
        import dask.array as da

        model.fit(da.from_array(X, chunks=(50, 4)), da.from_array(target, chunks=50))
    assert model.result_.status is Status.SOLVED
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-6 if model.tol < 1e-8 else 1e-3)


def test_fits_after_the_fit():
    offset = np.full(150, 500.0)
    for options in ({"relax": True}, {"adaptive": True}, {"standardize": True}):
        wanted = FusedLassoRegressor(0.05, loss="poisson", tol=1e-10, **options).fit(X, COUNTS)
        model = FusedLassoRegressor(0.05, loss="poisson", tol=1e-10, **options).fit(X, COUNTS, offset=offset)
        np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-5)


def test_several_outputs_of_different_units():
    Y = np.column_stack([COSTS, COSTS * 1e12])
    model = FusedLassoRegressor(0.02, loss="gamma", tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_, np.tile(fitted("gamma").coef_, (2, 1)), atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shift", [0.0, 15.0, -15.0, 25.0, -25.0, 40.0])
@pytest.mark.parametrize("name", LOSSES)
def test_no_claim_is_smaller_than_the_truth(name, shift, intercept):
    """From zero, without a start by an estimator: what a run claims bounds what is left, in every method."""
    loss, target = LOSSES[name]
    rows, A = (MARGINS, PENALISED) if intercept else (X, np.eye(4))
    problem = Problem(rows, target, loss=loss, psi=L1(0.02), A=A, offset=np.full(150, shift))
    runs = [solve(problem, tol=tol) for tol in (1e-2, 1e-4, 1e-9)]
    runs += [solve(problem, "saga-admm", tol=1e-4, passes=5), solve(problem, "batch-admm", tol=1e-4, passes=5)]
    best = min(run.objective for run in runs if np.isfinite(run.objective))
    if intercept:
        best = min(best, solve(Problem(rows, target, loss=loss, psi=L1(0.02), A=A), tol=1e-9).objective)
    for run in runs:
        left = (run.objective - best) / abs(run.objective)
        if np.isfinite(run.gap):
            assert run.gap >= left - 1e-9
        if run.status is Status.SOLVED and run.stopped_on == "kkt":
            assert left <= 100.0 * run.kkt.relative + 1e-9


def test_what_gaps_are_measured_against():
    """The objective itself, however large the loss at a margin of zero is."""
    shifted = Problem(MARGINS, COUNTS, loss="poisson", psi=L1(0.02), A=PENALISED, offset=np.full(150, 25.0))
    best = solve(shifted, tol=1e-9)
    assert shifted.loss_at_zero > 1e9
    assert Certifier(shifted).size(best.objective) == best.objective
    nearby = best.x + np.append(np.zeros(4), 0.6)
    objective, multiplier = shifted.objective(nearby), best.settings["rho"] * best.dual
    left = (objective - best.objective) / objective
    assert left > 0.1
    kkt = shifted.kkt(nearby, nearby[:4], multiplier, loss=objective - 0.02 * np.abs(nearby[:4]).sum())
    assert kkt.relative > 0.1


@pytest.mark.parametrize("offset", [30.0, 500.0, -500.0])
def test_there_is_a_minimiser(offset):
    """An offset changes no side on which a loss is flat."""
    for name, (loss, target) in LOSSES.items():
        problem = Problem(MARGINS, target, loss=loss, psi=L1(0.02), A=PENALISED, offset=np.full(150, offset))
        start = np.array([0.0, 0.0, 0.0, 0.0, -offset])
        result = solve(problem, tol=1e-6, x0=start)
        assert result.status is Status.SOLVED, name
    zero = Problem(MARGINS, np.zeros(150), loss="poisson", psi=L1(0.02), A=PENALISED, offset=np.full(150, offset))
    assert solve(zero, passes=5).status is Status.NO_MINIMISER


def test_paths_and_alpha_max_take_a_start():
    plain = Problem(MARGINS, COUNTS, loss="poisson", psi=L1(1.0), A=PENALISED)
    moved = Problem(MARGINS, COUNTS, loss="poisson", psi=L1(1.0), A=PENALISED, offset=np.full(150, 500.0))
    start = np.array([0.0, 0.0, 0.0, 0.0, -500.0])
    assert alpha_max(moved, x0=start) == pytest.approx(alpha_max(plain))
    wanted, found = path(plain, n_alphas=5), path(moved, n_alphas=5, x0=start)
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-5)
    np.testing.assert_allclose(found.x[:, :4], wanted.x[:, :4], atol=1e-3)
    with pytest.raises(ValueError, match="x0"):
        path(moved, n_alphas=5, x0=np.zeros(3))


def test_ordinary_problems_keep_their_scales():
    for loss, target in (("poisson", COUNTS), ("gamma", COSTS), ("squared", COSTS)):
        problem = Problem(X, target, loss=loss, psi=L1(0.02))
        for objective in (None, 0.3):
            assert problem.scales(objective) == (abs(problem.loss_at_zero), problem.gradient_scale)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("offset", [-40.0, 25.0, 60.0, 200.0, 500.0])
def test_signals_have_the_same_trend(order, offset):
    counts = np.random.default_rng(1).poisson(np.repeat([1.0, 4.0, 2.0], 20)).astype(float)
    positions = np.arange(60.0)[:, None]
    wanted = TrendFilter(0.05, order=order, loss="poisson", tol=1e-8).fit(positions, counts)
    model = TrendFilter(0.05, order=order, loss="poisson", tol=1e-8).fit(positions, counts, offset=np.full(60, offset))
    assert model.result_.status == Status.SOLVED
    np.testing.assert_allclose(model.coef_ + offset, wanted.coef_, atol=1e-3)
    assert model.result_.objective == pytest.approx(wanted.result_.objective, rel=1e-7)


def test_a_bound_that_a_point_contradicts_is_none():
    """Rounding errors of a dual point that is far away can be larger than the optimum."""
    certifier = Certifier(Problem(X, COUNTS, loss="poisson", psi=L1(0.1)))
    assert certifier.pair(1.0, 1.5).dual == -np.inf
    assert certifier.pair(1.0, 1.0 + 1e-14).relative == 0.0
    assert certifier.pair(1.0, 0.5).relative == 0.5
