"""The second-order solvers by name: each runs alone, says so, agrees with the others, and refuses with a reason."""

import numpy as np
import pytest

from skadmm import SOLVERS, FusedLassoRegressor, Problem, Status, compare, solve
from skadmm.operators import chain, stack, trend
from skadmm.regularizers import L1, GroupL2, NonNegative

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
    "constrained": Problem(X, Y, "squared", psi=L1(0.1), A=chain(D), omega=NonNegative()),
}
PAIRS = [(problem, solver) for problem in PROBLEMS for solver in SOLVERS]


@pytest.mark.parametrize(("name", "solver"), PAIRS)
def test_a_solver_runs_alone_or_refuses_with_a_reason(name, solver):
    problem = PROBLEMS[name]
    best = solve(problem, tol=1e-8)
    assert best.solver.split(", then ")[0] in SOLVERS
    assert "it ran" in best.message
    working = problem.fold() if name == "constrained" else problem
    reason = SOLVERS[solver].applies(working)
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
        assert any(SOLVERS[solver].applies(problem) is None for problem in PROBLEMS.values()), solver


def test_solvers_are_reached_from_estimators_and_comparisons():
    model = FusedLassoRegressor(alpha=0.1, method="reduced-newton", fit_intercept=False).fit(X, Y)
    assert model.result_.solver == "reduced-newton"
    frame = compare(PROBLEMS["fused"], ["reduced-newton", "multipliers"], repeats=1, tol=1e-6, passes=50)
    assert set(frame["method"]) == {"reduced-newton", "multipliers"}
    with pytest.raises(ValueError, match="is not known"):
        solve(PROBLEMS["lasso"], "reduced-newtn")


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_a_named_solver_goes_on_from_a_checkpoint_to_the_same_bits(solver, tmp_path):
    name = next(name for name in PROBLEMS if name != "constrained" and SOLVERS[solver].applies(PROBLEMS[name]) is None)
    whole = solve(PROBLEMS[name], solver, tol=1e-10, passes=30)
    for passes in (2, 5, 30):
        path = tmp_path / "run.skadmm"
        resumed = solve(PROBLEMS[name], solver, tol=1e-10, passes=passes, checkpoint=path, checkpoint_every=0)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.solver == whole.solver
