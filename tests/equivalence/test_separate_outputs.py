"""Several outputs that no term joins: each by itself, with one certificate for all."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoRegressor, Problem, Status, solve
from skadmm.backends.writer import write_blocks
from skadmm.operators import across_outputs, chain, output_groups, stack
from skadmm.problem import separation
from skadmm.regularizers import L1, Box, GroupL2, GroupLInf, NonNegative, Nuclear, SquaredL2, Stacked

N, D, K = 50, 12, 3
CHAIN = stack(chain(D), "identity")
TERMS = {
    "fused": {"psi": L1(0.05), "A": CHAIN},
    "fused with weights": {"psi": L1(0.05, np.linspace(0.5, 1.5, K * (2 * D - 1))), "A": CHAIN},
    "fused and ridge": {"psi": L1(0.05), "A": CHAIN, "omega": SquaredL2(0.1)},
    "groups of the chain": {"psi": GroupL2(0.05, np.arange(K * (2 * D - 1)) // 4), "A": None},
    "positive": {
        "psi": Stacked(L1(0.05), NonNegative(), K * (D - 1)),
        "A": sp.vstack([sp.kron(sp.eye_array(K), chain(D)), sp.eye_array(K * D)], format="csr"),
    },
    "decreasing": {"psi": Box(-np.inf, 0.0), "A": chain(D)},
}


def samples(seed=0, n=N, d=D, k=K, loss="squared"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    Y = X @ np.repeat(rng.standard_normal((d // 3, k)), 3, axis=0) / 2 + 0.3 * rng.standard_normal((n, k))
    return X, np.maximum(np.round(np.exp(Y)), 0.0) if loss == "poisson" else Y


def terms_of(name):
    terms = dict(TERMS[name])
    if terms["A"] is None:  # groups of four rows, none with rows of two outputs
        group = np.arange(2 * D - 1) // 4
        labels = np.concatenate([group + c * (group.max() + 1) for c in range(K)])
        terms = {"psi": GroupL2(0.05, labels), "A": CHAIN}
    return terms


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_it_finds_the_minimum_of_the_solvers_for_all_outputs(name, loss, kind):
    X, Y = samples(loss=loss)
    rng = np.random.default_rng(1)
    table = X if kind == "dense" else sp.csr_array(X)
    problem = Problem(
        table, Y, loss, **terms_of(name), sample_weight=rng.random(N), offset=0.2 * rng.standard_normal((N, K))
    )
    result = solve(problem, "separate-outputs", tol=1e-8)
    joint = solve(problem, "multipliers", tol=1e-8)
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(joint.objective, rel=1e-6)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-12)
    assert result.stopped_on != "gap" or result.gap <= 1e-8


def test_every_output_is_the_problem_of_its_columns():
    X, Y = samples()
    weight = np.random.default_rng(2).random(N)
    problem = Problem(X, Y, "squared", psi=L1(0.05), A=CHAIN, sample_weight=weight)
    outputs = separation.outputs_apart(problem)
    x = np.random.default_rng(3).standard_normal(K * D)
    assert sum(one.problem.objective(x[one.features]) for one in outputs) == pytest.approx(problem.objective(x))
    gradients = [one.problem.gradient(x[one.features]) for one in outputs]
    np.testing.assert_allclose(np.concatenate(gradients), problem.gradient(x), atol=1e-14)
    for c, one in enumerate(outputs):
        alone = Problem(X, Y[:, c], "squared", psi=L1(0.05), A=CHAIN, sample_weight=weight)
        assert one.problem.objective(x[one.features]) == pytest.approx(alone.objective(x[one.features]), rel=1e-14)


@pytest.mark.parametrize("seed", range(30))
def test_certificates_never_lie(seed):
    """The lower bound of a run that ended early, or met its tolerance, is below the minimum."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(5, 60)), int(rng.integers(3, 20)), int(rng.integers(2, 5))
    X, Y = rng.standard_normal((n, d)), rng.standard_normal((n, k))
    limits = [{}, {"positive": True}, {"bounds": (-0.1, 0.3)}, {"monotone": "increasing"}][seed % 4]
    loss = ["squared", "huber", "poisson"][seed % 3]
    Y = np.round(np.exp(Y)) if loss == "poisson" else Y
    alpha = float(10.0 ** rng.uniform(-3, -0.5))
    model = FusedLassoRegressor(alpha, loss=loss, **limits).fit(X, Y)
    result = model.result_
    assert result.solver.startswith("separate-outputs")
    assert result.status is Status.SOLVED
    best = 0.0
    for c in range(k):
        alone = FusedLassoRegressor(alpha, loss=loss, tol=1e-9, **limits).fit(X, Y[:, c]).result_
        assert alone.gap <= 1e-8
        best += alone.objective
    lower = result.objective - result.gap * max(abs(result.objective), 1e-300)
    assert lower <= best + 1e-8 * abs(best)
    assert result.objective >= best - 1e-7 * abs(best)


def test_outputs_are_solved_again_where_the_whole_misses_the_tolerance():
    X, Y = samples(loss="poisson")
    problem = Problem(X, Y, "poisson", psi=L1(0.01), A=CHAIN)
    rough = {"tol_share": 1e4, "stricter": 1e-5}
    once = solve(problem, "separate-outputs", tol=1e-8, options=rough | {"max_rounds": 1})
    again = solve(problem, "separate-outputs", tol=1e-8, options=rough)
    assert once.status is not Status.SOLVED
    assert again.status is Status.SOLVED
    assert again.gap <= 1e-8


def test_auto_says_what_ran():
    X, Y = samples()
    result = FusedLassoRegressor(0.05, positive=True).fit(X, Y).result_
    assert result.solver == "separate-outputs"
    assert "it ran separate-outputs (multipliers), since no term joins two outputs" in result.message


def test_rows_in_files(tmp_path):
    X, Y = samples()
    write_blocks(tmp_path / "rows", [(X, Y[:, 0])])
    problem = Problem(tmp_path / "rows", Y, "squared", psi=L1(0.05), A=CHAIN)
    here = solve(Problem(X, Y, "squared", psi=L1(0.05), A=CHAIN), "separate-outputs", tol=1e-8)
    result = solve(problem, "separate-outputs", tol=1e-8)
    assert separation.one_output(problem, 1).problem.backend.name == "files"
    np.testing.assert_allclose(result.x, here.x, atol=1e-6)


TASKS = stack(across_outputs(chain(K), D), np.eye(K * D))
REFUSED = {
    "one output": ({"psi": L1(0.1)}, 1, "has one output"),
    "a graph over outputs": ({"psi": L1(0.1), "A": TASKS}, K, "a row of A has coefficients of two outputs"),
    "rows": ({"psi": GroupL2(0.1, output_groups(D, K))}, K, "a group has coefficients of two outputs"),
    "largest of rows": ({"psi": GroupLInf(0.1, output_groups(D, K))}, K, "a group has coefficients of two outputs"),
    "nuclear": ({"psi": Nuclear(0.1, columns=K)}, K, "Nuclear may join coefficients"),
    "B": ({"psi": L1(0.1), "B": 2.0}, K, "B is not −I"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_joins_outputs_is_refused_with_its_reason(name):
    terms, k, reason = REFUSED[name]
    X, Y = samples()
    problem = Problem(X, Y[:, 0] if k == 1 else Y, "squared", **terms)
    assert reason in separation.reason_against(problem)
    with pytest.raises(ValueError, match="method='separate-outputs' cannot take this problem"):
        solve(problem, "separate-outputs", tol=1e-6)


def test_the_multinomial_loss_is_refused():
    X, Y = samples()
    problem = Problem(X, np.argmax(Y, axis=1), "multinomial", psi=L1(0.1))
    assert "joins the margins" in separation.reason_against(problem)
