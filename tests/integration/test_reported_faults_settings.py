"""Faults that users reported: settings that were accepted without an effect, or refused under another name."""

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GeneralizedLassoRegressor,
    GroupLassoRegressor,
    TrendFilter,
    TrendFilterCV,
    load,
)
from skadmm.cli import run
from skadmm.operators import incidence
from skadmm.regularizers import L1, ElasticNet

RNG = np.random.default_rng(0)
NAMES = ["A", "B", "C", "D"]
X = RNG.standard_normal((60, 4))
FRAME = pd.DataFrame(X, columns=NAMES)
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(60)
OUTPUTS = pd.DataFrame({"north": Y, "south": Y + X[:, 2], "west": -Y})
CLASSES = np.array(["high", "low", "mid"])[np.digitize(Y, [-0.5, 0.5])]

# -- graphs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "graph",
    [
        [("a", "b"), ("b", "c")],
        nx.path_graph(["a", "b", "c"]),
        pd.DataFrame(np.ones((2, 2)) - np.eye(2), index=["a", "b"], columns=["a", "b"]),
        [("A", "b"), ("b", "C")],  # two nodes are columns, and no edge joins them
    ],
    ids=["edges", "networkx", "adjacency", "no edge left"],
)
def test_a_graph_of_which_no_edge_is_left_is_an_error(graph):
    """Every edge was left out with a warning, and the model was fitted without a graph."""
    with pytest.raises(ValueError, match=r"graph has no edge between two columns of X: its nodes are '[aA]', 'b'"):
        FusedLassoRegressor(0.1, graph=graph, unknown="ignore").fit(FRAME, Y)


def test_the_message_on_unmatched_names_says_that_only_the_case_differs():
    with pytest.raises(ValueError, match="differ in upper and lower case only"):
        FusedLassoRegressor(0.1, graph=[("a", "b")], unknown="ignore").fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"at least one edge is left$"):
        FusedLassoRegressor(0.1, graph=[("u", "v")], unknown="ignore").fit(FRAME, Y)


def test_chain_is_a_name_of_the_chain():
    """It is the word of the command line; Python refused it."""
    chain = FusedLassoRegressor(0.1, graph="chain").fit(FRAME, Y)
    np.testing.assert_array_equal(chain.coef_, FusedLassoRegressor(0.1).fit(FRAME, Y).coef_)
    levels = FRAME.assign(D=pd.Categorical(np.where(Y > 0, "up", "down")))
    named, default = (
        FusedLassoRegressor(0.1, graph=graph, categorical_features=["D"]).fit(levels, Y) for graph in ("chain", None)
    )
    np.testing.assert_array_equal(named.coef_, default.coef_)
    with pytest.raises(ValueError, match="graph='chain': it takes None \\(a line\\)"):
        TrendFilter(0.1, graph="chain").fit(np.arange(60.0)[:, None], Y)


def test_lengths_of_weights_and_signs_of_edges_are_named_as_the_argument():
    with pytest.raises(ValueError, match=r"^edge_weights must have length 2, one per edge"):
        FusedLassoRegressor(graph=[(0, 1), (1, 2)], edge_weights=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match=r"^edge_signs must have length 2, one per edge"):
        FusedLassoRegressor(graph=[(0, 1), (1, 2)], edge_signs=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match=r"^weights must have length 2"):
        incidence([(0, 1), (1, 2)], n_features=3, weights=[1.0])


def test_a_self_loop_without_a_weight_is_dropped_as_one_with_a_weight():
    graph = nx.Graph()
    graph.add_edge("A", "B", weight=2.0)
    graph.add_nodes_from(NAMES)
    expected = FusedLassoRegressor(0.1, graph=graph.copy()).fit(FRAME, Y)
    graph.add_edge("C", "C")
    with pytest.warns(UserWarning, match="self-loop at node 'C'"):
        found = FusedLassoRegressor(0.1, graph=graph).fit(FRAME, Y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    graph.add_edge("C", "D")
    with pytest.raises(ValueError, match=r"on every edge; \('C', 'D'\) has none"):
        FusedLassoRegressor(0.1, graph=graph).fit(FRAME, Y)


# -- graphs over outputs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_graph", [list, nx.Graph, np.array], ids=["list", "networkx", "array"])
def test_task_graph_takes_the_names_of_outputs(as_graph):
    named = FusedLassoRegressor(0.3, task_graph=as_graph([("north", "west"), ("west", "south")]))
    numbered = FusedLassoRegressor(0.3, task_graph=[(0, 2), (2, 1)])
    np.testing.assert_allclose(named.fit(X, OUTPUTS).coef_, numbered.fit(X, OUTPUTS).coef_, atol=1e-12)


def test_task_graph_takes_the_names_of_classes():
    named, numbered = (
        FusedLassoClassifier(0.1, multi_class="multinomial", task_graph=graph).fit(X, CLASSES)
        for graph in ([("low", "mid")], [(1, 2)])
    )
    np.testing.assert_allclose(named.coef_, numbered.coef_, atol=1e-12)


def test_cross_validation_takes_the_names_of_outputs():
    options = {"alphas": [0.3, 0.1], "cv": 3}
    named = FusedLassoRegressorCV(**options, task_graph=[("north", "west")]).fit(X, OUTPUTS)
    numbered = FusedLassoRegressorCV(**options, task_graph=[(0, 2)]).fit(X, OUTPUTS)
    np.testing.assert_allclose(named.cv_losses_, numbered.cv_losses_, rtol=1e-9)


@pytest.mark.parametrize(
    ("graph", "y", "message"),
    [
        ([("north", "east")], OUTPUTS, "task_graph has the node 'east': it takes the outputs 'north', 'south', 'west'"),
        ([("north", "south")], OUTPUTS.to_numpy(), "task_graph has the node 'north': .* columns of a DataFrame y"),
        ([(0, 7)], OUTPUTS.to_numpy(), "task_graph has the node 7: it takes numbers of outputs in 0 … 2"),
        (np.array([[0, 7]]), OUTPUTS.to_numpy(), "task_graph has the node 7: it takes numbers of outputs in 0 … 2"),
        (np.triu(np.ones((3, 3)), 1), OUTPUTS, "^task_graph must be symmetric"),
        ("complete", Y, "task_graph='complete': it joins several outputs of one model, and here is one output"),
    ],
)
def test_messages_on_task_graph_name_it(graph, y, message):
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor(0.1, task_graph=graph).fit(X, y)


def test_task_graph_with_one_model_per_class_is_refused():
    """It had no effect."""
    with pytest.raises(ValueError, match=r"task_graph='complete': .* multi_class='multinomial'"):
        FusedLassoClassifier(0.1, task_graph="complete").fit(X, CLASSES)


# -- orders of trends ------------------------------------------------------------------------------------------------


def test_orders_above_three_are_refused_for_signals_along_a_line():
    """Rounding left nothing of fits of order 5 and more, and strengths of 1e6 were chosen."""
    for model in (TrendFilter(order=4), TrendFilterCV(order=7)):
        with pytest.raises(ValueError, match="for a signal along a line it takes 0 to 3"):
            model.fit(np.arange(60.0)[:, None], Y)
    cubic = TrendFilter(1e-3, order=3).fit(np.arange(60.0)[:, None], Y)
    assert cubic.result_.kkt.relative <= 1e-6
    assert TrendFilter(0.1, order=4).fit(RNG.standard_normal((40, 8)), Y[:40]).result_.status == "solved"


# -- levels ----------------------------------------------------------------------------------------------------------


def test_a_level_that_a_given_list_lacks_is_said_to_be_missing_there():
    sizes = FRAME.assign(D=np.array(["S", "M", "L", "XL"])[np.arange(60) % 4])
    model = FusedLassoRegressor(0.1, categorical_features={"D": ["S", "M", "L"]})
    with pytest.raises(ValueError, match="the level 'XL', which the list given in categorical_features lacks"):
        model.fit(sizes, Y)
    seen = sizes[sizes.D != "XL"]
    model.fit(seen, Y[seen.index])
    with pytest.raises(ValueError, match="the level 'XL', which the fit has not seen"):
        model.predict(sizes)
    by_number = FusedLassoRegressor(0.1, categorical_features={0: ["S", "M"]})
    with pytest.raises(ValueError, match="which the list given in categorical_features lacks"):
        by_number.fit(np.array([["S"], ["M"], ["L"]], dtype=object), [0.0, 1.0, 2.0])


def test_one_categorical_column_needs_no_list():
    plans = FRAME.assign(D=np.where(Y > 0, "big", "small"))
    one, listed = (FusedLassoRegressor(0.1, categorical_features=given).fit(plans, Y) for given in ("D", ["D"]))
    np.testing.assert_array_equal(one.coef_, listed.coef_)
    with pytest.raises(ValueError, match=r"categorical_features='E': .* such as \['plan'\]"):
        FusedLassoRegressor(0.1, categorical_features="E").fit(plans, Y)


# -- models with penalties of a user ---------------------------------------------------------------------------------


def test_a_penalty_that_a_file_cannot_name_is_refused_with_the_way_to_register_it(tmp_path):
    class Unknown(L1):
        pass

    model = GeneralizedLassoRegressor(0.1, penalty=Unknown(1.0)).fit(X, Y)
    with pytest.raises(TypeError, match=r"REGULARIZERS\.add\('l1', Unknown\) adds it, here and before"):
        model.save(tmp_path / "model")


def test_instances_of_registered_penalties_are_saved(tmp_path):
    penalty = ElasticNet(1.0, 0.3, weights=np.array([1.0, 2.0, 0.0, 1.0]))
    model = GeneralizedLassoRegressor(0.1, penalty=penalty).fit(X, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.penalty.l1_ratio == 0.3
    np.testing.assert_array_equal(again.penalty.weights, penalty.weights)
    np.testing.assert_allclose(clone(again).fit(X, Y).coef_, model.coef_, atol=1e-9)


# -- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.assign(y=Y).to_csv("rows.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "0.1", "--selection", "1se"], "--selection 1se: with --alpha there is no cross-validation"),
        (["--alpha", "0.1", "--folds", "3"], "--folds 3: with --alpha there is no cross-validation"),
        (["--alpha", "0.1", "--alphas", "9"], "--alphas 9: with --alpha"),
        (["--alpha", "0.1", "--scoring", "r2"], "--scoring r2: with --alpha"),
        (["--alpha", "0.1", "--jobs", "2"], "--jobs 2: with --alpha"),
        (["--order", "1"], "--order 1: --model fused-regressor is no trend"),
        (["--order", "7"], "Invalid value for '--order'"),
    ],
)
def test_options_that_a_model_does_not_take_are_refused(rows, capsys, options, message):
    assert run(["fit", "rows.csv", "-o", "model", "--model", "fused-regressor", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (rows / "model").exists()


def test_groups_that_are_not_given_are_named_in_a_note(rows, capsys):
    fit = ["fit", "rows.csv", "-o", "model", "--model", "group-regressor", "--alpha", "0.1", "--force"]
    assert run(fit) == 0
    assert "without --groups every column is a group of its own" in capsys.readouterr().err
    (rows / "groups.json").write_text('[["A", "B"], ["C", "D"]]')
    for more in (["--groups", "groups.json"], ["--set", 'groups=[["A", "B"], ["C", "D"]]']):
        assert run([*fit, *more]) == 0
        assert "without --groups" not in capsys.readouterr().err


def test_notes_on_the_grid_name_an_option_of_the_command_line(rows, capsys):
    assert run(["fit", "rows.csv", "-o", "model", "--model", "fused-regressor", "--alphas", "3"]) == 0
    assert "lower it by --set eps=1e-05" in capsys.readouterr().err


@pytest.mark.parametrize("spelling", ["yes", "True", "TRUE", "true"])
def test_settings_take_the_spellings_of_true(rows, spelling):
    fit = ["fit", "rows.csv", "-o", "model", "--model", "fused-regressor", "--alpha", "0.01"]
    assert run([*fit, "--set", f"positive={spelling}"]) == 0
    assert load("model").positive is True


def test_settings_take_none_and_the_name_of_one_categorical_column(rows):
    FRAME.assign(A=np.where(Y > 0, "big", "small"), y=Y).to_csv("plans.csv", index=False)
    fit = ["fit", "plans.csv", "-o", "model", "--model", "fused-regressor", "--alpha", "0.01"]
    assert run([*fit, "--set", "categorical_features=A", "--set", "bounds=None"]) == 0
    assert load("model").feature_names_out_.tolist()[:2] == ["A=big", "A=small"]


def test_info_names_texts_of_every_file_of_a_folder(rows, capsys):
    """The first file decided; its column had no values."""
    (rows / "folder").mkdir()
    FRAME.assign(rid=np.nan, y=Y).to_parquet("folder/a.parquet")
    FRAME.assign(rid="r1", y=Y).to_parquet("folder/b.parquet")
    assert run(["info", "folder"]) == 0
    assert "rid (text)" in capsys.readouterr().out


def test_predictions_are_written_to_known_formats_only(rows, capsys):
    assert run(["fit", "rows.csv", "-o", "model", "--model", "fused-regressor", "--alpha", "0.01"]) == 0
    assert run(["predict", "model", "rows.csv", "-o", "out.txt"]) == 2
    assert "-o out.txt: it takes a file whose name ends in .csv or .parquet" in capsys.readouterr().err
    assert not (rows / "out.txt").exists()


def test_compare_takes_a_target_of_numbers_and_weights(rows, capsys):
    weight = np.where(np.arange(60) < 30, 2.0, 1.0)
    FRAME.assign(w=weight, y=Y).to_csv("weighted.csv", index=False)
    pd.concat([FRAME.assign(y=Y), FRAME.assign(y=Y)[:30]]).to_csv("copies.csv", index=False)
    objectives = []
    for file, more in (("weighted.csv", ["--weight", "w"]), ("copies.csv", [])):
        options = ["--methods", "san-admm", "--repeats", "1", "--alpha", "0.1", "--json", *more]
        assert run(["compare", file, *options]) == 0
        shown = capsys.readouterr()
        assert "the target has more than two values: --loss squared" in shown.err
        objectives.append(json.loads(shown.out)["methods"][0]["objective"])
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)


def test_compare_advises_no_option_that_it_does_not_have(rows, capsys):
    FRAME.assign(A="a", y=Y).to_csv("texts.csv", index=False)
    assert run(["compare", "texts.csv"]) == 2
    message = capsys.readouterr().err
    assert "encode it, or --drop A" in message
    assert "--set" not in message


def test_compare_takes_groups_as_fit_does(rows, capsys):
    (rows / "groups.json").write_text('{"first": ["A", "B"], "second": ["C", "D"]}')
    options = ["--methods", "san-admm", "--repeats", "1", "--alpha", "0.1", "--l1-ratio", "0.2", "--json"]
    assert run(["compare", "rows.csv", "--groups", "groups.json", *options]) == 0
    found = json.loads(capsys.readouterr().out)["methods"][0]["objective"]
    model = GroupLassoRegressor(0.1, groups=[[0, 1], [2, 3]], l1_ratio=0.2, fit_intercept=False).fit(X, Y)
    assert found == pytest.approx(model.result_.objective, rel=1e-5)
    assert run(["compare", "rows.csv", "--groups", "groups.json", "--graph", "2x2"]) == 2
    assert "it takes one of them" in capsys.readouterr().err
