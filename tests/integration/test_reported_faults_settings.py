"""Faults that users reported: settings that were accepted without an effect, or refused under another name."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    TrendFilter,
)
from skadmm.operators import incidence

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
    with pytest.raises(ValueError, match="at least one edge is left$"):
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
    with pytest.raises(ValueError, match="^edge_weights must have length 2, one per edge"):
        FusedLassoRegressor(graph=[(0, 1), (1, 2)], edge_weights=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="^edge_signs must have length 2, one per edge"):
        FusedLassoRegressor(graph=[(0, 1), (1, 2)], edge_signs=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="^weights must have length 2"):
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
    with pytest.raises(ValueError, match="task_graph='complete': .* multi_class='multinomial'"):
        FusedLassoClassifier(0.1, task_graph="complete").fit(X, CLASSES)
