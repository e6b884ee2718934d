"""Faults that were reported in the estimators and in what they read, each against an independent computation."""

import ast
import itertools
import sys
import time
from pathlib import Path

import cvxpy as cp
import dask.dataframe as dd
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from skadmm import (
    ALGORITHMS,
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GeneralizedLassoRegressor,
    GroupLassoRegressor,
    Problem,
    Status,
    TrendFilter,
    TrendFilterCV,
    load,
    solve,
)
from skadmm.backends.convert import convert
from skadmm.cli import run
from skadmm.estimators import ESTIMATORS, fused
from skadmm.operators import chain, incidence, precision_graph
from skadmm.problem.certificate import Certifier
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers.first_order import x_solve

rng = np.random.default_rng(5)
N, D = 60, 6
X = rng.standard_normal((N, D)) @ (np.eye(D) + 0.6 * np.eye(D, k=1))
Y = X @ np.array([1.0, 1, 1, 0, 0, -1]) + 0.3 * rng.standard_normal(N)


# -- what threads share --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_building_a_penalty_does_not_change_the_estimator(name):
    model = ESTIMATORS[name]()
    if hasattr(model, "design"):
        model._signal = False
    before = dict(vars(model))
    model._penalty(X, None)
    assert vars(model) == before


def test_precision_graph_is_that_of_all_rows_however_many_threads(monkeypatch):
    assemble, pauses = fused.with_l1, itertools.cycle([0.02, 0.01, 0.03])

    def slowly(*arguments):
        time.sleep(next(pauses))
        return assemble(*arguments)

    monkeypatch.setattr(fused, "with_l1", slowly)
    d = 12
    table = np.random.default_rng(0).standard_normal((N, d)) @ (np.eye(d) + 0.6 * np.eye(d, k=1))
    expected = incidence(precision_graph(table)).toarray()  # the folds learn other graphs
    for _ in range(3):
        model = FusedLassoRegressorCV(graph="precision", alphas=2, cv=10, n_jobs=3).fit(table, Y)
        np.testing.assert_array_equal(model.graph_.matrix().toarray(), expected)


def test_generator_gives_the_same_folds_however_many_threads():
    losses = [
        FusedLassoRegressorCV(
            alphas=[0.1, 0.01], cv=3, method="saga-admm", tol=0.5, n_jobs=n_jobs,
            random_state=np.random.default_rng(0),
        ).fit(X, Y).cv_losses_
        for n_jobs in (1, 3)
    ]  # fmt: skip
    np.testing.assert_array_equal(*losses)


def test_refitting_leaves_nothing_of_the_last_fit():
    model = FusedLassoRegressorCV(alphas=2, cv=2).fit(X, Y)
    model.set_params(selection="bic").fit(X, Y)
    assert not hasattr(model, "cv_losses_")
    model.set_params(selection="min").fit(X, Y)
    assert not hasattr(model, "criterion_")
    trend = TrendFilterCV(alphas=2, cv=2, graph=(N,)).fit(np.arange(float(N))[:, None], Y)
    trend.set_params(graph=None).fit(np.arange(float(N))[:, None], Y)
    assert not hasattr(trend, "graph_")


# -- the budget of passes ------------------------------------------------------------------------------------


def counted(monkeypatch):
    """The passes of every solve() that an estimator or a path starts."""
    spent = []

    def counting(*arguments, **options):
        result = solve(*arguments, **options)
        spent.append(result.passes)
        return result

    for module in ("skadmm.estimators._base", "skadmm.run.follow"):
        monkeypatch.setattr(sys.modules[module], "solve", counting)
    return spent


def test_nothing_more_is_tried_once_the_passes_are_spent(monkeypatch):
    spent = counted(monkeypatch)
    with pytest.warns(ConvergenceWarning):
        model = FusedLassoClassifier(alpha=1e-4, tol=1e-12, max_passes=2.5).fit(X, Y > 0)
    assert len(spent) == 1
    assert model.n_iter_ == np.ceil(sum(spent))


def test_a_hard_fit_keeps_to_its_passes(monkeypatch):
    spent = counted(monkeypatch)
    wide = np.random.default_rng(0).standard_normal((50, 200)) * np.geomspace(1, 1e3, 200)
    model = FusedLassoRegressor(alpha=1e-5, tol=1e-12, max_passes=40)
    with pytest.warns(ConvergenceWarning):
        model.fit(wide, wide[:, :5].sum(axis=1))
    assert len(spent) == 1
    assert sum(spent) == pytest.approx(model.result_.passes)
    assert sum(spent) <= 40 + 8  # a run ends after the step that passes its limit


# -- groups by name ------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(X, columns=list("abcdef"))
EXPECTED = [[0, 3], [1, 2, 5], [4]]
LABELS = {"a": "p", "b": "q", "c": "q", "d": "p", "e": "r", "f": "q"}


def groups_of(groups, table=FRAME):
    return [group.tolist() for group in GroupLassoRegressor(alpha=0.1, groups=groups).fit(table, Y).groups_]


@pytest.mark.parametrize(
    "groups",
    [
        pd.Series(LABELS)[list("fbdace")],
        pd.Series({name: "pqr".index(label) for name, label in LABELS.items()})[list("fbdace")],
        pd.Series(LABELS, dtype="category")[list("fbdace")],
        dict(reversed(LABELS.items())),
        {"one": ["a", "d"], "two": ["b", "c", "f"], "three": ["e"]},
        pd.Series({"one": ["a", "d"], "two": ["b", "c", "f"], "three": ["e"]}),
        pd.Series([*LABELS.values()])[[4, 2, 0, 1, 3, 5]],
        [*LABELS.values()],
        np.array([*LABELS.values()]),
        np.array([*LABELS.values()], dtype=object),
        pa.array([*LABELS.values()]),
        {5: 1, 4: 2, 3: 0, 2: 1, 1: 1, 0: 0},
    ],
    ids=[
        "series", "numbers", "categories", "dict", "dict-of-lists", "series-of-lists", "positions",
        "list", "array", "objects", "arrow", "numbered",
    ],
)  # fmt: skip
def test_groups_are_matched_by_name(groups):
    assert groups_of(groups) == EXPECTED


def test_a_feature_without_a_label_is_not_penalised():
    labels = pd.Series({**LABELS, "e": None})
    assert groups_of(labels[::-1]) == groups_of(pd.Series([0, 1, 1, 0, np.nan, 1])) == EXPECTED[:2]
    heavy = GroupLassoRegressor(alpha=1e3, groups=labels).fit(FRAME, Y)
    alone = LinearRegression().fit(FRAME[["e"]], Y)
    np.testing.assert_allclose(heavy.coef_, np.where(FRAME.columns == "e", alone.coef_, 0.0), atol=1e-7)


@pytest.mark.parametrize(
    ("groups", "table", "message"),
    [
        (pd.Series(LABELS).drop("c"), FRAME, "no label for column 'c'"),
        (pd.Series(LABELS), X, "X must be a DataFrame"),
        (pd.Series([0, 1], index=["a", "a"]), FRAME, "two labels for 'a'"),
        (pd.Series(0, index=range(1, 7)), FRAME, "no label for column number 0"),
        (list("abcdef"), FRAME, "list of lists"),
        ([0, "p", 1, 0, 0, 0], X, "mixes"),
        ([0.5] * 6, X, "label 0.5"),
        ({"a": "p", "b": ["q"]}, FRAME, "mixes"),
    ],
)
def test_unclear_groups_are_refused(groups, table, message):
    with pytest.raises(ValueError, match=message):
        groups_of(groups, table)


def test_a_model_with_groups_in_a_series_can_be_saved(tmp_path):
    model = GroupLassoRegressor(alpha=0.1, groups=pd.Series(LABELS)[::-1]).fit(FRAME, Y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))
    assert [group.tolist() for group in clone(loaded).fit(FRAME, Y).groups_] == EXPECTED


def test_weights_of_groups_by_name():
    weights = pd.Series({"q": 2.0, "p": 1.0, "r": 1.0})
    model = GroupLassoRegressor(alpha=0.1, groups=LABELS, group_weights=weights).fit(FRAME, Y)
    in_order = GroupLassoRegressor(alpha=0.1, groups=LABELS, group_weights=weights[model.group_names_].to_numpy())
    np.testing.assert_array_equal(model.coef_, in_order.fit(FRAME, Y).coef_)
    with pytest.raises(ValueError, match="in the order of groups_"):
        GroupLassoRegressor(groups=EXPECTED, group_weights=weights).fit(FRAME, Y)
    GroupLassoRegressor(alpha=0.1, groups=LABELS, group_weights=weights.reset_index(drop=True)).fit(FRAME, Y)


# -- weights and signs of edges ------------------------------------------------------------------------------

EDGES = [("a", "b", 2.0), ("b", "c", -0.5), ("d", "e", 1.0), ("a", "f", 3.0)]
NETWORK = nx.Graph()
NETWORK.add_nodes_from("fedcba")
NETWORK.add_weighted_edges_from(EDGES)
NUMBERED = [("abcdef".index(u), "abcdef".index(v), w) for u, v, w in EDGES]


def fused_by_cvxpy(table, alpha, edges, ratio):
    """The minimum of the fused lasso's objective, without an intercept."""
    x = cp.Variable(D)
    fused_part = sum(abs(w) * cp.abs(x[i] - np.sign(w) * x[j]) for i, j, w in edges)
    loss = cp.sum_squares(table @ x - Y) / (2 * N)
    problem = cp.Problem(cp.Minimize(loss + alpha * ((1 - ratio) * fused_part + ratio * cp.norm1(x))))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    "graph",
    [
        NETWORK,
        EDGES,
        NUMBERED,
        np.array(NUMBERED),
        pd.DataFrame(EDGES, columns=["from", "to", "weight"]),
        [(u, v, {"weight": w}) for u, v, w in EDGES],
        nx.to_numpy_array(NETWORK, nodelist="abcdef"),
        nx.to_scipy_sparse_array(NETWORK, nodelist="abcdef"),
        nx.to_pandas_adjacency(NETWORK),
        nx.to_numpy_array(NETWORK, nodelist="abcdef").tolist(),
    ],
    ids=["networkx", "triples", "numbered", "array", "frame", "attributes", "dense", "sparse", "named", "lists"],
)
def test_weights_and_signs_that_a_graph_carries_are_used(graph):
    options = {"alpha": 0.1, "l1_ratio": 0.2, "fit_intercept": False, "tol": 1e-10}
    model = FusedLassoRegressor(graph=graph, **options).fit(FRAME, Y)
    assert model.result_.objective == pytest.approx(fused_by_cvxpy(X, 0.1, NUMBERED, 0.2), rel=1e-7)
    plain = FusedLassoRegressor(graph=graph, edge_weights=False, edge_signs=False, **options).fit(FRAME, Y)
    ones = [(i, j, 1.0) for i, j, _ in NUMBERED]
    assert plain.result_.objective == pytest.approx(fused_by_cvxpy(X, 0.1, ones, 0.2), rel=1e-7)


def test_a_signal_over_a_table_of_edges():
    t = np.arange(6.0)
    frame = pd.DataFrame(NUMBERED, columns=["from", "to", "weight"])
    models = [TrendFilter(alpha=0.1, order=1, graph=graph).fit(t[:, None], Y[:6]) for graph in (frame, NUMBERED)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_three_triples_on_three_features_are_edges_and_a_symmetric_matrix_is_an_adjacency():
    triples = [(0, 1, 2.0), (1, 2, -1.0), (0, 2, 1.0)]
    np.testing.assert_array_equal(incidence(triples, n_features=3).toarray(), [[2, -2, 0], [0, 1, 1], [1, 0, -1]])
    np.testing.assert_array_equal(incidence(np.array(triples), n_features=3).toarray()[0], [2, -2, 0])
    matrix = [[0, 1, 2], [1, 0, 0], [2, 0, 0]]
    np.testing.assert_array_equal(incidence(matrix, n_features=3).toarray(), [[1, -1, 0], [2, 0, -2]])


def test_learnt_graph_has_the_signs_of_the_partial_correlations():
    latent = np.random.default_rng(1).standard_normal(200)
    table = np.column_stack([latent, -latent, latent]) + 0.4 * np.random.default_rng(2).standard_normal((200, 3))
    model = FusedLassoRegressor(alpha=0.1, graph="precision").fit(table, latent)
    correlation = -np.linalg.inv(np.cov(table.T))
    assert len(model.graph_.edges) > 0
    for (i, j), sign in zip(model.graph_.edges, model.graph_.signs, strict=True):
        assert sign == np.sign(correlation[i, j])


def test_trends_over_a_graph_use_its_weights():
    signal = np.repeat([0.0, 1.0], 5) + 0.1 * rng.standard_normal(10)
    weights = np.linspace(0.5, 2.0, 9)
    triples = [(j, j + 1, w) for j, w in enumerate(weights)]
    fitted = TrendFilter(alpha=0.01, order=0, graph=triples, tol=1e-10).smooth(signal)
    x = cp.Variable(10)
    cp.Problem(
        cp.Minimize(cp.sum_squares(x - signal) / 20 + 0.01 * cp.sum(cp.multiply(weights, cp.abs(cp.diff(x)))))
    ).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(fitted, x.value, atol=1e-5)


def test_third_column_of_a_file_of_edges_is_a_weight(tmp_path):
    FRAME.assign(y=Y).to_csv(tmp_path / "data.csv", index=False)
    lines = [f"{u},{v},{w}" for u, v, w in EDGES]
    (tmp_path / "edges.csv").write_text("\n".join(lines))
    arguments = ["fit", str(tmp_path / "data.csv"), "-o", str(tmp_path / "m"), "--model", "fused-regressor", "-q",
                 "--alpha", "0.1", "--graph", str(tmp_path / "edges.csv")]  # fmt: skip
    assert run(arguments) == 0
    model = load(tmp_path / "m")
    expected = FusedLassoRegressor(alpha=0.1, graph=NETWORK).fit(FRAME, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    for text in ("a,b,far", "a,b,1\nb,c", "a,b,1,2", "from,to,how", ""):
        (tmp_path / "edges.csv").write_text(text)
        assert run([*arguments, "--force"]) == 2


def test_command_line_refuses_what_a_model_does_not_use(tmp_path):
    FRAME.assign(y=Y).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "groups.json").write_text("[[0, 1]]")
    common = ["fit", str(tmp_path / "data.csv"), "-o", str(tmp_path / "m"), "-q", "--alpha", "0.1", "--model"]
    assert run([*common, "lasso-regressor", "--graph", "2x3"]) == 2
    assert run([*common, "fused-regressor", "--groups", str(tmp_path / "groups.json")]) == 2


def test_columns_of_a_penalty_matrix_are_matched_by_name():
    A = pd.DataFrame([[1.0, -1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0]], columns=list("abcdef"))
    expected = GeneralizedLassoRegressor(alpha=0.1, A=A.to_numpy()).fit(X, Y)
    model = GeneralizedLassoRegressor(alpha=0.1, A=A[list("fbdace")]).fit(FRAME, Y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="no column 'b'"):
        GeneralizedLassoRegressor(A=A.rename(columns={"b": "z"})).fit(FRAME, Y)


# -- assertions that assert ----------------------------------------------------------------------------------


def test_no_assertion_has_a_comparison_for_a_message():
    """``assert a, b == c`` asserts a alone."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assert):
                assert not isinstance(node.msg, (ast.Compare, ast.BoolOp)), f"{path.name}:{node.lineno}"


# -- tables of other libraries -------------------------------------------------------------------------------


class Stream:
    """A table known by its Arrow stream alone."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def polars_frame(frame):
    pl = pytest.importorskip("polars")  # in the extra "dev"
    return pl.DataFrame({name: column.to_numpy() for name, column in frame.items()})


def arrow_table(frame):
    return pa.table({name: column.to_numpy() for name, column in frame.items()})


KINDS = {
    "polars": polars_frame,
    "pyarrow": arrow_table,
    "batch": lambda frame: arrow_table(frame).to_batches()[0],
    "stream": lambda frame: Stream(arrow_table(frame)),
}
MIXED = FRAME.assign(whole=np.arange(N), flag=Y > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_problem_takes_tables_of_other_libraries_with_their_names(kind):
    expected = Problem(MIXED, Y, loss="squared")
    problem = Problem(KINDS[kind](MIXED), Y, loss="squared")
    assert problem.feature_names == expected.feature_names == list(MIXED.columns)
    np.testing.assert_array_equal(problem.rows.values, expected.rows.values)
    single = Problem(KINDS[kind](FRAME.astype(np.float32)), Y, loss="squared")
    assert single.rows.values.dtype == np.float32
    with pytest.raises(TypeError, match="not numbers: word"):
        Problem(KINDS[kind](FRAME.assign(word="x")), Y, loss="squared")
    with pytest.raises(ValueError, match="NaN"):
        Problem(KINDS[kind](FRAME.where(FRAME < 1)), Y, loss="squared")


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_take_tables_of_other_libraries_with_their_names(kind):
    model = FusedLassoRegressor(alpha=0.1, graph=EDGES).fit(KINDS[kind](FRAME), Y)
    expected = FusedLassoRegressor(alpha=0.1, graph=EDGES).fit(FRAME, Y)
    np.testing.assert_array_equal(model.feature_names_in_, list(FRAME.columns))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_allclose(model.predict(KINDS[kind](FRAME)), expected.predict(FRAME), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(KINDS[kind](FRAME[list("fbdace")]))


def test_lazy_frames_are_read(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path))
    lazy = polars_frame(FRAME).lazy()
    problem = Problem(lazy, Y, loss="squared")
    assert problem.feature_names == [str(name) for name in FRAME.columns]
    model = FusedLassoRegressor(tol=1e-10).fit(lazy, Y)
    np.testing.assert_allclose(model.coef_, FusedLassoRegressor(tol=1e-10).fit(FRAME, Y).coef_, atol=1e-7)


def test_held_out_columns_must_be_those_of_training():
    problem = Problem(FRAME, Y, loss="squared")
    x = np.arange(6.0)
    assert problem.test_loss(x, FRAME, Y) == pytest.approx(np.mean((X @ x - Y) ** 2) / 2)
    with pytest.raises(ValueError, match="column 0 of X is 'b'"):
        problem.test_loss(x, FRAME[list("bacdef")], Y)


def test_columns_of_a_dask_frame_are_checked_in_prediction():
    model = FusedLassoRegressor(alpha=0.1).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict(dd.from_pandas(FRAME, npartitions=2)), model.predict(FRAME))
    with pytest.raises(ValueError, match="'b' where FusedLassoRegressor was fitted on 'a'"):
        model.predict(dd.from_pandas(FRAME[list("bacdef")], npartitions=2))


# -- a ridge without the intercept ---------------------------------------------------------------------------

OFFSET = X + np.linspace(-3.0, 40.0, D)


def ridge_by_cvxpy(table, target, loss, alpha, ridge, intercept):
    """The minimum of the objective on a chain with l1_ratio=0.5, the intercept not penalised."""
    x, b = cp.Variable(table.shape[1]), cp.Variable() if intercept else 0.0
    margins = table @ x + b
    if loss == "squared":
        mean = cp.sum_squares(margins - target) / (2 * N)
    else:
        mean = cp.sum(cp.logistic(-cp.multiply(target, margins))) / N
    penalty = alpha * (cp.norm1(cp.diff(x)) + cp.norm1(x)) / 2
    problem = cp.Problem(cp.Minimize(mean + penalty + ridge / 2 * cp.sum_squares(x)))
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_ridge_leaves_the_intercept_alone(ridge, standardize, intercept, sparse, task):
    table = OFFSET / OFFSET.std(axis=0) if standardize else OFFSET
    options = {
        "alpha": 0.01, "ridge": ridge, "fit_intercept": intercept, "standardize": standardize, "tol": 1e-9,
        "max_passes": 2000,
    }  # fmt: skip
    X_given = sp.csr_array(OFFSET) if sparse else OFFSET
    if task == "regression":
        target = Y + 1e4
        model = FusedLassoRegressor(**options).fit(X_given, target)
        # The mean is a part of the intercept; CVXPY has the same problem around it.
        centred = target - target.mean() if intercept else target
        best = ridge_by_cvxpy(table, centred, "squared", 0.01, ridge, intercept)
        coef, b = model.coef_, model.intercept_ - (target.mean() if intercept else 0.0)
        scores = OFFSET @ coef + b
        loss = np.mean((scores - centred) ** 2) / 2
    else:
        target = np.where(Y > 0.7, 1.0, -1.0)
        model = FusedLassoClassifier(**options).fit(X_given, target)
        best = ridge_by_cvxpy(table, target, "logistic", 0.01, ridge, intercept)
        coef, b = model.coef_[0], model.intercept_[0]
        loss = np.mean(np.logaddexp(0.0, -target * (OFFSET @ coef + b)))
    x = coef * OFFSET.std(axis=0) if standardize else coef
    objective = loss + 0.005 * (np.abs(np.diff(x)).sum() + np.abs(x).sum()) + ridge / 2 * x @ x
    assert objective == pytest.approx(best, rel=1e-7)
    assert objective == pytest.approx(model.result_.objective, rel=1e-9)
    assert model.result_.gap <= 1e-9


def weighted_by_cvxpy(table, target, A, weights):
    """min (1/n) Σ log(1 + exp(−bᵢ aᵢ·x)) + 0.02 ‖Ax‖₁ + ½ Σ weights_j x_j²."""
    x = cp.Variable(table.shape[1])
    loss = cp.sum(cp.logistic(-cp.multiply(target, table @ x))) / len(target)
    held = np.flatnonzero(weights)
    ridge = cp.sum_squares(cp.multiply(np.sqrt(weights[held]), x[held])) / 2
    problem = cp.Problem(cp.Minimize(loss + 0.02 * cp.norm1(A @ x) + ridge))
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)


ONES = np.column_stack([X + 1.0, np.ones(N)])
CLASS = np.where(Y > 0.7, 1.0, -1.0)
CHAIN = sp.csr_array((chain(D).data, chain(D).indices, chain(D).indptr), shape=(D - 1, D + 1))
CHAIN_AND_NODES = sp.csr_array(sp.vstack([CHAIN, sp.eye_array(D, D + 1)]))
HELD = np.array([0.3, 1.0, 0.1, 2.0, 0.5, 1.0, 0.0])
PARTLY = np.array([0.3, 0.0, 0.1, 2.0, 0.0, 1.0, 0.0])
CASES = {
    "chain": (CHAIN, HELD, "omega"),
    "chain and nodes": (CHAIN_AND_NODES, HELD, "omega"),
    "nodes": (sp.eye_array(D, D + 1, format="csr"), HELD, "omega"),
    "unheld nodes": (CHAIN_AND_NODES, PARTLY, "omega"),
    "unheld chain": (CHAIN, PARTLY, "none"),
}


@pytest.mark.parametrize("case", CASES)
def test_bounds_hold_where_the_ridge_has_zeros(case):
    A, weights, kind = CASES[case]
    best = weighted_by_cvxpy(ONES, CLASS, A.toarray(), weights)
    problem = Problem(ONES, CLASS, omega=SquaredL2(2.0, weights / 2), psi=L1(0.02), A=A)
    assert Certifier(problem).kind == kind
    solved = solve(problem, tol=1e-9, passes=500)
    assert solved.status is Status.SOLVED
    assert solved.objective == pytest.approx(best, rel=1e-7)
    if kind == "none":
        assert np.isnan(solved.gap)
        return
    for method, passes in (("san-admm", 0.5), ("san-admm", 4.0), ("batch-iu-admm", 5.0), ("exact-admm", 40.0)):
        rough = solve(problem, method, passes=passes)
        assert rough.objective * (1.0 - rough.gap) <= best * (1.0 + 1e-8)


@pytest.mark.parametrize("method", ["exact-admm", "batch-admm", "batch-iu-admm", "san-admm"])
@pytest.mark.parametrize("case", ["chain", "unheld chain"])
def test_every_kind_of_step_knows_the_weights_of_a_ridge(method, case):
    A, weights, _ = CASES[case]
    best = weighted_by_cvxpy(ONES, CLASS, A.toarray(), weights)
    problem = Problem(ONES, CLASS, omega=SquaredL2(1.0, weights), psi=L1(0.02), A=A)
    step = {} if method == "san-admm" else {"step": "theory", "rho": 0.1}
    result = solve(problem, method, passes=3000, tol=1e-6, **step)
    assert result.objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("mode", ["system", "prox", "subgradient"])
def test_equal_weights_are_no_weights(mode):
    for name, algorithm in ALGORITHMS.items():
        if mode not in algorithm.omega or algorithm.certifies:
            continue
        plain, weighted = (
            solve(
                Problem(ONES, CLASS, omega=omega, psi=L1(0.02), A=CHAIN_AND_NODES), name, passes=3, step=0.1, rho=0.1,
                omega_mode=mode,
            )
            for omega in (SquaredL2(0.6), SquaredL2(0.2, np.full(D + 1, 3.0)))
        )  # fmt: skip
        np.testing.assert_allclose(weighted.x, plain.x, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", ["DenseInverse", "SparseFactor", "ConjugateGradients", "Eigenbasis", "Diagonal"])
def test_systems_with_a_diagonal_of_their_own(kind, monkeypatch):
    A = np.zeros((0, D)) if kind == "Diagonal" else chain(D).toarray()
    constraint = Constraint(None if kind == "Diagonal" else sp.csr_array(A), None, None, D)
    extra, right = np.array([0.0, 1.0, 3.0, 0.0, 0.5, 2.0]), rng.standard_normal(D)
    monkeypatch.setattr(x_solve, "DENSE_LIMIT", 0 if kind in ("SparseFactor", "ConjugateGradients") else 600)
    builder = x_solve.fixed if kind in ("DenseInverse", "SparseFactor") else x_solve.shifted
    system = builder(constraint, 0.3, *([0.7] if builder is x_solve.fixed else []), extra=extra)
    assert type(system).__name__ == kind
    out = np.zeros(D)
    x_solve.solve(system, 0.7, right, out)
    np.testing.assert_allclose(out, np.linalg.solve(0.3 * A.T @ A + np.diag(0.7 + extra), right), rtol=1e-9)


def test_alpha_max_with_a_ridge_and_an_intercept():
    model = FusedLassoClassifierCV(alphas=2, eps=0.99, ridge=1.0, l1_ratio=1.0, selection="bic").fit(OFFSET, CLASS)
    slopes = -CLASS / (1 + np.exp(CLASS * np.log(np.mean(CLASS > 0) / np.mean(CLASS < 0))))
    assert model.alphas_[0] == pytest.approx(np.abs(OFFSET.T @ slopes).max() / N, rel=1e-8)


def test_ridge_and_intercept_on_a_folder_of_blocks(tmp_path):
    FRAME.assign(y=CLASS).to_csv(tmp_path / "data.csv", index=False)
    convert(tmp_path / "data.csv", tmp_path / "blocks", target="y", ones=True, block_rows=16)
    options = {"alpha": 0.01, "ridge": 1.0, "tol": 1e-9}
    there = FusedLassoClassifier(**options).fit(tmp_path / "blocks")
    here = FusedLassoClassifier(**options).fit(FRAME, CLASS)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-6)


# -- tables of pyarrow in memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("as_given", [lambda table: table, lambda table: table.to_batches()[0]])
def test_dates_and_levels_in_a_table_of_pyarrow(as_given):
    frame = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=N, tz="UTC")})
    table = as_given(pa.Table.from_pandas(frame))
    wanted = TrendFilter(alpha=0.05).fit(frame, Y)
    found = TrendFilter(alpha=0.05).fit(table, Y)
    assert found.dates_
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    np.testing.assert_array_equal(found.predict(table), wanted.predict(frame))
    np.testing.assert_array_equal(wanted.predict(table), wanted.predict(frame))

    levels = pd.DataFrame({"region": np.array(["b", "a", "c"])[np.arange(N) % 3], "size": Y})
    levels["kind"] = pd.Categorical(levels["region"], ["c", "b", "a"], ordered=True)
    for given in (["region", "kind"], "from_dtype"):
        columns = levels if given != "from_dtype" else levels.drop(columns="region")
        model = FusedLassoRegressor(alpha=0.01, categorical_features=given)
        wanted = clone(model).fit(columns, Y)
        found = model.fit(as_given(pa.Table.from_pandas(columns)), Y)
        assert found.feature_names_out_.tolist() == wanted.feature_names_out_.tolist()
        np.testing.assert_array_equal(found.coef_, wanted.coef_)
        np.testing.assert_array_equal(found.predict(pa.Table.from_pandas(columns)), wanted.predict(columns))


# -- frames of edges, and names in messages about graphs -------------------------------------------------------

NAMED = pd.DataFrame(X, columns=list("abcdef"))
LINKS = pd.DataFrame({"u": list("abce"), "v": list("bcdf"), "conf": [1.0, 2.0, 0.5, -1.0], "note": 1})


@pytest.mark.parametrize("as_frame", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("ends", [("u", "v"), ("source", "target")])
def test_edges_in_a_frame_of_any_library(as_frame, ends):
    links = LINKS.rename(columns=dict(zip("uv", ends, strict=True)))
    pairs = list(zip(LINKS["u"], LINKS["v"], strict=True))
    for given, weights, wanted in (
        (links[list(ends)], None, pairs),
        (links[[*ends, "conf"]].rename(columns={"conf": "weight"}), None, LINKS[["u", "v", "conf"]]),
        (links, "conf", [(*pair, value) for pair, value in zip(pairs, LINKS["conf"], strict=True)]),
    ):
        model = FusedLassoRegressor(alpha=0.1, graph=as_frame(given), edge_weights=weights).fit(NAMED, Y)
        same = FusedLassoRegressor(alpha=0.1, graph=wanted).fit(NAMED, Y)
        np.testing.assert_array_equal(model.coef_, same.coef_)
        np.testing.assert_array_equal(model.graph_.signs, same.graph_.signs)
    with pytest.raises(ValueError, match=r"^edge_weights='cnf': .* no column 'cnf'; it has .*conf.* mean 'conf'\?"):
        FusedLassoRegressor(graph=as_frame(links), edge_weights="cnf").fit(NAMED, Y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda A: pd.DataFrame(A, list("abcdef"), list("abcdef"))])
def test_self_loops_of_an_adjacency_matrix_are_named(kind):
    A = np.eye(D, k=1) + np.eye(D, k=-1)
    A[3, 3] = 1.0
    with pytest.warns(UserWarning, match="graph has a self-loop at node 'd'"):
        FusedLassoRegressor(alpha=0.1, graph=kind(A)).fit(NAMED, Y)
