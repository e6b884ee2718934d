"""The second-order solvers by name: each runs alone, says so, agrees with the others, and refuses with a reason."""

import ast
import dataclasses
import inspect
import itertools
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import SOLVERS, FusedLassoRegressor, Problem, Status, compare, solve
from skadmm.operators import chain, grid, incidence, stack, trend
from skadmm.regularizers import L1, GroupL2, NonNegative, SquaredL2

N, D = 200, 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X @ np.repeat([1.0, 0.0, -1.0, 0.0], D // 4) + RNG.standard_normal(N)
PROBLEMS = {
    "lasso": Problem(X, Y, "squared", psi=L1(0.1)),
    "fused": Problem(X, Y, "squared", psi=L1(0.1), A=stack(chain(D), "identity")),
    "logistic": Problem(X, Y > 0, "logistic", psi=L1(0.01), A=stack(chain(D), "identity")),
    "trend": Problem(X, Y, "squared", psi=L1(0.1), A=trend(D, 1)),
    "groups": Problem(X, Y, "squared", psi=GroupL2(0.1, np.arange(D) // 4)),
    "signal": Problem(np.eye(D), Y[:D], "squared", psi=L1(0.1), A=trend(D, 1)),
    "image": Problem(np.eye(D), Y[:D], "squared", psi=L1(0.02), A=grid((5, 8))),
    "surface": Problem(np.eye(D), Y[:D], "squared", psi=L1(0.02), A=grid((5, 8)).T @ grid((5, 8))),
    "constrained": Problem(X, Y, "squared", psi=L1(0.1), A=chain(D), omega=NonNegative()),
    "smooth": Problem(X, Y > 0, "logistic", omega=SquaredL2(0.1)),
    "outputs": Problem(X, np.column_stack([Y, -Y]), "squared", psi=L1(0.1)),
    "kinks": Problem(X, Y, "absolute", psi=L1(0.1)),
    "quantile curve": Problem(np.eye(D), Y[:D], "quantile", psi=L1(0.05), A=trend(D, 1)),
}
PAIRS = [(problem, solver) for problem in PROBLEMS for solver in SOLVERS]


@pytest.mark.parametrize(("name", "solver"), PAIRS)
def test_a_solver_runs_alone_or_refuses_with_a_reason(name, solver):
    problem = PROBLEMS[name]
    best = solve(problem, tol=1e-8)
    assert best.solver.split(", then ")[0] in SOLVERS
    assert "it ran" in best.message
    assert ", since " in best.message
    working = problem.fold() if name == "constrained" else problem
    reason = SOLVERS[solver].reason_against(working)
    if reason is not None:
        with pytest.raises(ValueError, match=f"method='{solver}' cannot take this problem"):
            solve(problem, solver, tol=1e-8)
        return
    result = solve(problem, solver, tol=1e-8)
    assert result.solver == solver
    assert result.method == "san-admm"
    assert result.objective <= best.objective * (1 + 1e-6)
    assert result.status in (Status.SOLVED, Status.STALLED)


def test_every_solver_takes_some_problem():
    for solver in SOLVERS:
        assert any(SOLVERS[solver].reason_against(problem) is None for problem in PROBLEMS.values()), solver


def test_solvers_are_reached_from_estimators_and_comparisons():
    model = FusedLassoRegressor(alpha=0.1, method="reduced-newton", fit_intercept=False).fit(X, Y)
    assert model.result_.solver == "reduced-newton"
    frame = compare(PROBLEMS["fused"], ["reduced-newton", "multipliers"], repeats=1, tol=1e-6, passes=50)
    assert set(frame["method"]) == {"reduced-newton", "multipliers"}
    with pytest.raises(ValueError, match="is not known"):
        solve(PROBLEMS["lasso"], "reduced-newtn")


def test_a_sparse_or_fused_start_is_continued_on_its_clusters():
    """From such a start clusters need fewer outer products; a start at zero, or without ties, tells nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 200))
    edges = np.unique(np.sort(rng.integers(0, 200, (600, 2)), axis=1), axis=0)
    A = stack(incidence(edges[edges[:, 0] != edges[:, 1]], n_features=200), "identity")
    problem = Problem(X, X[:, :40].sum(axis=1) + rng.standard_normal(2000), "squared", psi=L1(2e-3), A=A)
    cold = solve(problem, tol=1e-6)
    assert cold.solver == solve(problem, tol=1e-6, x0=rng.standard_normal(200)).solver == "newton-admm"
    assert 0.0 < np.mean(A @ cold.x == 0.0) < 1.0
    warm = solve(problem, tol=1e-8, x0=cold.x)
    assert warm.solver == "reduced-newton"
    assert warm.status is Status.SOLVED
    assert warm.objective <= cold.objective * (1 + 1e-8)


def test_a_very_weak_lasso_with_few_samples_gets_interior_point_steps():
    """Sweeps converge slowly there; with larger strengths, more samples or sparse rows they come first."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 200))
    target = rows[:, :10].sum(axis=1) + 0.5 * rng.standard_normal(60)
    largest = float(np.abs(rows.T @ target).max()) / 60

    def first(share, X=rows, y=target):
        return solve(Problem(X, y, "squared", psi=L1(share * largest)), tol=1e-6)

    weak = first(1e-5)
    assert weak.status is Status.SOLVED
    assert weak.solver == "row-interior-point"
    other = solve(Problem(rows, target, "squared", psi=L1(1e-5 * largest)), "reduced-newton", tol=1e-8, passes=5000)
    assert weak.objective == pytest.approx(other.objective, rel=1e-5)
    assert not first(1e-2).solver.startswith("row-interior-point")
    assert not first(1e-5, sp.csr_array(rows)).solver.startswith("row-interior-point")
    assert not first(1e-5, np.vstack([rows] * 4), np.tile(target, 4)).solver.startswith("row-interior-point")


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_named_solver_goes_on_from_a_checkpoint_to_the_same_bits(solver, tmp_path):
    problem = a_problem_for(solver)
    whole = solve(problem, solver, tol=1e-10, passes=30)
    for passes in (2, 5, 30):
        path = tmp_path / "run.skadmm"
        resumed = solve(problem, solver, tol=1e-10, passes=passes, checkpoint=path, checkpoint_every=0)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.solver == whole.solver


# -- settings --------------------------------------------------------------------------------------------------


def documented_fields(config):
    """The fields of a Config that a docstring follows in the source of it or of its bases."""
    found = set()
    for base in config.__mro__:
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
        for field, after in itertools.pairwise(body):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and is_text and isinstance(after.value.value, str):
                found.add(field.target.id)
    return found


def a_problem_for(solver):
    return next(
        problem
        for name, problem in PROBLEMS.items()
        if name != "constrained" and SOLVERS[solver].reason_against(problem) is None
    )


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_config_is_frozen_documented_and_complete(solver):
    config = SOLVERS[solver].Config
    assert config.__dataclass_params__.frozen
    assert config.__doc__
    names = {field.name for field in dataclasses.fields(config)}
    assert documented_fields(config) == names
    assert dataclasses.replace(config()) == config()


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_an_unknown_option_raises_with_the_known_ones(solver):
    with pytest.raises(ValueError, match="options has 'max_sweep'") as raised:
        solve(a_problem_for(solver), solver, options={"max_sweep": 10})
    for field in dataclasses.fields(SOLVERS[solver].Config):
        assert field.name in str(raised.value)


def test_values_of_options_are_checked():
    problem = PROBLEMS["lasso"]
    with pytest.raises(ValueError, match=r"options\['max_sweeps'\]='ten': it takes an integer ≥ 1"):
        solve(problem, "coordinate-descent", options={"max_sweeps": "ten"})
    with pytest.raises(ValueError, match=r"options\['gives_way'\]=1: it takes True or False"):
        solve(problem, "coordinate-descent", options={"gives_way": 1})
    with pytest.raises(ValueError, match=r"options\['slope_left'\]=-1.0: it takes a finite number ≥ 0"):
        solve(problem, "multipliers", options={"slope_left": -1.0})
    with pytest.raises(TypeError, match="it takes a dictionary"):
        solve(problem, "multipliers", options=["max_idle"])


CHANGES = {
    "coordinate-descent": {"violation_left": 0.5},
    "proximal-gradient": {"rate_span": 2, "memory": 1},
    "multipliers": {"sigma_growth": 2.0},
}


@pytest.mark.parametrize("solver", list(CHANGES))
def test_an_option_changes_the_run_and_not_the_answer(solver):
    problem = PROBLEMS["lasso"]
    usual = solve(problem, solver, tol=1e-9)
    other = solve(problem, solver, tol=1e-9, options=CHANGES[solver])
    assert usual.status is other.status is Status.SOLVED
    assert not np.array_equal(usual.x, other.x) or usual.passes != other.passes
    assert other.objective == pytest.approx(usual.objective, rel=1e-8)
    assert CHANGES[solver].items() <= other.settings.items()


def test_a_checkpoint_of_other_options_is_refused(tmp_path):
    run = {"problem": PROBLEMS["lasso"], "method": "coordinate-descent", "tol": 1e-9, "checkpoint": tmp_path / "run"}
    solve(options={"max_sweeps": 10}, passes=5, **run)
    with pytest.raises(ValueError, match="checkpoint"):
        solve(options={"max_sweeps": 20}, **run)
    assert solve(options={"max_sweeps": 10}, **run).status is Status.SOLVED


def test_a_warm_start_takes_a_run_with_other_options():
    first = solve(PROBLEMS["lasso"], "coordinate-descent", tol=1e-4)
    again = solve(PROBLEMS["lasso"], "coordinate-descent", tol=1e-9, options={"max_sweeps": 10}, warm_start=first)
    assert again.status is Status.SOLVED
