"""Diagonal preconditioning is the same as rescaling the columns by hand, and nothing else."""

import numpy as np
import pytest
import scipy.sparse
from twins import CLASSES, KINDS, RHO, WEIGHT, X0, A, C, D, X

from skadmm import Problem, solve
from skadmm.operators import chain
from skadmm.problem.rescaling import diagonal, rescaled
from skadmm.regularizers import L1, Box, GroupL2, NonNegative, SquaredL2

UNITS = np.array([1.0, 30.0, 0.02, 5.0, 0.3])  # the columns of X in very different units
TABLE = X * UNITS
SPLIT = {"A": A, "c": C, "psi": L1(0.03), "sample_weight": WEIGHT}


def by_formula(table, weight, operator, rho=RHO):
    squares = 0.25 * np.average(table**2, axis=0, weights=weight) + rho * np.sum(operator**2, axis=0)
    return 1 / np.sqrt(squares)


def test_the_scale_is_its_formula():
    for kind in KINDS.values():
        assert np.allclose(diagonal(Problem(kind(TABLE), CLASSES, **SPLIT), RHO), by_formula(TABLE, WEIGHT, A))
    bare = TABLE.copy()
    bare[:, 2] = 0
    assert diagonal(Problem(bare, CLASSES), RHO)[2] == 1  # a feature that nothing touches keeps its unit


@pytest.mark.parametrize(
    ("method", "omega", "by_hand", "kind"),
    [
        ("sa-iu-admm", None, lambda s: None, "dense"),
        ("svrg-admm", None, lambda s: None, "dense"),
        ("sa-iu-admm", L1(0.02), lambda s: L1(0.02, weights=s), "csr"),
    ],
)
def test_a_run_is_that_on_rescaled_columns(method, omega, by_hand, kind):
    scale = by_formula(TABLE, WEIGHT, A)
    options = {"rho": RHO, "passes": 5, "batch_size": 7, "step": 0.3, "record_every": 0.5}
    seen = []
    mine = solve(
        Problem(KINDS[kind](TABLE), CLASSES, omega=omega, **SPLIT), method, x0=X0, precondition="diagonal",
        test=(TABLE, CLASSES), callback=lambda snapshot: seen.append(snapshot.x) and None, **options,
    )  # fmt: skip
    rescaled = Problem(KINDS[kind](TABLE * scale), CLASSES, omega=by_hand(scale), **(SPLIT | {"A": A * scale}))
    theirs = solve(rescaled, method, x0=X0 / scale, test=(TABLE * scale, CLASSES), **options)
    for name in ("x", "x_average"):
        assert np.allclose(getattr(mine, name), scale * getattr(theirs, name), rtol=1e-9, atol=1e-12)
    for name in ("y", "dual", "y_average"):
        assert np.allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-9, atol=1e-12)
    columns = ["passes", "objective", "objective_average", "feasibility", "test_loss"]
    assert np.allclose(mine.trace[columns], theirs.trace[columns], rtol=1e-9, atol=1e-12)
    assert np.array_equal(seen[0], X0) or np.allclose(seen[0], X0, rtol=1e-15)
    assert np.array_equal(seen[-1], mine.x)
    assert mine.kkt.stationarity != theirs.kkt.stationarity  # measured in x, not in u


def test_folding_takes_any_omega():
    groups = [[0, 1], [2, 3, 4]]
    for omega in (GroupL2(0.05, groups=groups), SquaredL2(0.05)):
        problem = Problem(TABLE, CLASSES, omega=omega, **SPLIT)
        with pytest.raises(ValueError, match=rf"^precondition='diagonal': omega={type(omega).__name__} .*'fold'"):
            solve(problem, "sa-iu-admm", rho=RHO, step=1.0, passes=1, precondition="diagonal")
    best = solve(problem, "san-admm", passes=200, tol=1e-9).objective
    folded = solve(
        problem, "batch-iu-admm", rho=RHO, step="theory", passes=3000, precondition="diagonal", omega_mode="fold",
        record_every=0,
    )  # fmt: skip
    assert folded.objective == pytest.approx(best, rel=1e-6)


def test_it_helps_where_units_differ():
    problem = Problem(TABLE, CLASSES, **SPLIT)
    plain, scaled = (
        solve(problem, "batch-iu-admm", rho=RHO, step="theory", passes=200, precondition=kind).kkt.relative
        for kind in (None, "diagonal")
    )
    assert scaled < 1e-3 * plain


def test_a_warm_start_goes_on_in_the_same_units():
    problem = Problem(TABLE, CLASSES, **SPLIT)
    options = {"rho": RHO, "step": 0.3, "precondition": "diagonal", "record_every": 0}
    first = solve(problem, "sa-iu-admm", passes=3, **options)
    second = solve(problem, "sa-iu-admm", passes=2, warm_start=first, **options)
    whole = solve(problem, "sa-iu-admm", passes=5, **options)
    assert np.array_equal(second.x, whole.x)
    with pytest.raises(
        ValueError, match=r"^warm_start: the earlier run had precondition='diagonal', this one has None"
    ):
        solve(problem, "sa-iu-admm", passes=2, warm_start=first, **(options | {"precondition": None}))
    fewer = Problem(TABLE[:, :3], CLASSES, psi=L1(0.03))
    with pytest.raises(ValueError, match=rf"^warm_start: the earlier run had {D} features, this one has 3"):
        solve(fewer, "sa-iu-admm", passes=2, warm_start=first, **options)


def test_float32_rows_stay_float32():
    table = TABLE.astype(np.float32)
    scale = by_formula(TABLE, WEIGHT, A)
    dense = rescaled(Problem(table, CLASSES, **SPLIT), scale).rows.values
    sparse = rescaled(Problem(scipy.sparse.csr_array(table), CLASSES, **SPLIT), scale).rows.data
    assert dense.dtype == sparse.dtype == np.float32
    assert np.allclose(dense, TABLE * scale, rtol=1e-6)


@pytest.mark.parametrize("omega", [L1(0.2), L1(0.2, weights=np.arange(5.0)), Box(-0.5, 0.5), NonNegative()], ids=repr)
def test_omega_in_new_units_has_the_same_values(omega):
    problem = Problem(TABLE, CLASSES, omega=omega, **SPLIT)
    scale = diagonal(problem, RHO)
    other = rescaled(problem, scale)
    for u in np.random.default_rng(0).standard_normal((20, D)) / scale * 0.5:
        for point in (u, np.abs(u), np.clip(u, -0.5 / scale, 0.5 / scale)):
            assert other.omega_value(point) == pytest.approx(problem.omega_value(scale * point))


def test_constants_are_those_of_the_new_columns():
    problem = Problem(TABLE, CLASSES, **SPLIT)
    assert problem.L > 0  # kept from here on, of the old columns
    assert problem.gradient_scale > 0
    scale = diagonal(problem, RHO)
    by_hand = Problem(TABLE * scale, CLASSES, **(SPLIT | {"A": A * scale}))
    assert pytest.approx(by_hand.L) == rescaled(problem, scale).L
    assert rescaled(problem, scale).gradient_scale == pytest.approx(by_hand.gradient_scale)
    assert rescaled(problem, scale).L_A(RHO) == pytest.approx(by_hand.L_A(RHO))


@pytest.mark.parametrize(
    ("method", "kind", "said"),
    [
        ("sa-admm", "full", r"^precondition='full': it takes 'diagonal' or None$"),
        ("san-admm", "diagonal", r"^precondition='diagonal': san-admm is a second-order method"),
    ],
)
def test_what_is_refused(method, kind, said):
    with pytest.raises(ValueError, match=said):
        solve(Problem(TABLE, CLASSES, **SPLIT), method, passes=1, precondition=kind)


def test_the_balanced_rho_does_not_depend_on_units():
    """With X and A multiplied by factors, ρAᵀA keeps its share of the curvature, and so does the run."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    target = X[:, 0] + 0.1 * rng.standard_normal(60)
    for factor in (1.0, 100.0):
        problem = Problem(factor * X, target, "squared", psi=L1(0.01), A=chain(6))
        hessian, gram = factor**2 * X.T @ X / 60, (problem.constraint.A.T @ problem.constraint.A).toarray()
        rho = solve(problem, "batch-admm", passes=2, step=1e-6).settings["rho"]
        assert rho * np.trace(gram) == pytest.approx(np.trace(hessian))
        assert solve(problem, "batch-admm", passes=2, step=1e-6, rho=0.3).settings["rho"] == 0.3
        assert solve(problem, "exact-admm", passes=2).settings["rho"] == 0.01
