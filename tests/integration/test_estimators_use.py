"""In the company of scikit-learn, with names and graphs, batch by batch; and bad input at every door."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    GeneralizedLassoRegressor,
    GroupLassoRegressor,
    TrendFilter,
    TrendFilterCV,
)

rng = np.random.default_rng(2)
N, D = 90, 6
X = rng.standard_normal((N, D))
Y = X @ np.array([1.0, 1, 1, 0, 0, -1]) + 0.3 * rng.standard_normal(N)
LABELS = np.where(Y > 0, "up", "down")
FRAME = pd.DataFrame(X, columns=list("abcdef"))


# -- company -------------------------------------------------------------------------------------------------


def test_pipeline_grid_search_clone_and_calibration():
    pipeline = make_pipeline(StandardScaler(), FusedLassoClassifier(tol=1e-5))
    search = GridSearchCV(pipeline, {"fusedlassoclassifier__alpha": [0.01, 0.1]}, cv=2).fit(X, LABELS)
    assert search.best_score_ > 0.8
    assert clone(search.best_estimator_).get_params()["fusedlassoclassifier__alpha"] in (0.01, 0.1)
    held_out = cross_val_predict(
        FusedLassoClassifier(alpha=0.01), sp.csr_array(X), LABELS, cv=2, method="predict_proba"
    )
    assert held_out.shape == (N, 2)
    calibrated = CalibratedClassifierCV(FusedLassoClassifier(alpha=0.01), cv=2).fit(FRAME, LABELS)
    assert calibrated.score(FRAME, LABELS) > 0.8


def test_metadata_routing_of_weights():
    weight = np.where(np.arange(N) % 2, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = FusedLassoClassifier(alpha=0.01)
        model = model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"alpha": [0.01]}, cv=2).fit(X, LABELS, sample_weight=weight)
        scores = cross_validate(model, X, LABELS, params={"sample_weight": weight}, cv=2)
    direct = FusedLassoClassifier(alpha=0.01).fit(X, LABELS, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_, direct.coef_)
    assert len(scores["test_score"]) == 2


def test_probabilities_only_for_the_logistic_loss():
    assert hasattr(FusedLassoClassifier(), "predict_proba")
    assert not hasattr(FusedLassoClassifier(loss="squared-hinge"), "predict_proba")
    model = FusedLassoClassifier(alpha=0.01, loss="squared-hinge").fit(X, LABELS)
    assert model.score(X, LABELS) > 0.85
    robust = FusedLassoRegressor(alpha=0.01, loss="huber").fit(X, Y)
    assert robust.score(X, Y) > 0.8


def test_several_classes_share_the_graph():
    three = np.digitize(Y, [-0.7, 0.7])
    model = FusedLassoClassifier(alpha=0.01, graph="precision").fit(X, three)
    assert model.coef_.shape == (3, D)
    assert model.clusters_.shape == (3, D)
    assert len(model.result_) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, three) > 0.6


def test_callbacks_hear_of_the_fit():
    callback = pytest.importorskip("sklearn.callback")
    assert issubclass(FusedLassoClassifier, callback.CallbackSupportMixin)
    heard = []

    class Listener:
        def setup(self, estimator, context):
            heard.append("setup")

        def teardown(self, estimator, context):
            heard.append("teardown")

        def on_fit_task_begin(self, estimator, context, **_):
            heard.append(context.task_name)

        def on_fit_task_end(self, estimator, context, **_):
            heard.append("end")

    FusedLassoClassifierCV(alphas=2, cv=2).set_callbacks(Listener()).fit(X, LABELS)
    assert heard == ["setup", "fit", "fold", "end", "fold", "end", "end", "teardown"]


# -- structure -----------------------------------------------------------------------------------------------


def test_clusters_and_names():
    graph = nx.Graph([("a", "b"), ("b", "c"), ("d", "e")])
    graph.add_node("f")  # by itself: disconnected is fine
    model = FusedLassoRegressor(alpha=0.3, graph=graph, l1_ratio=0.3).fit(FRAME, Y)
    assert model.clusters_[0] == model.clusters_[1] == model.clusters_[2] >= 0
    assert model.coef_[0] == model.coef_[1] == model.coef_[2]
    assert model.n_clusters_ == len(set(model.clusters_) - {-1}) == model.dof_
    assert sorted(model.graph_.to_networkx().edges) == [("a", "b"), ("b", "c"), ("d", "e")]
    assert np.all(model.coef_[model.clusters_ < 0] == 0)


@pytest.mark.parametrize(
    "graph",
    [
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
        np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        sp.diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1], format="csr"),
        nx.path_graph(6),
        (6,),
        (1, 6),
    ],
    ids=["list", "array", "adjacency", "networkx", "line", "grid"],
)
def test_every_way_to_say_chain(graph):
    chain = FusedLassoRegressor(alpha=0.1, tol=1e-9).fit(X, Y)
    model = FusedLassoRegressor(alpha=0.1, graph=graph, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, chain.coef_, atol=1e-8)


def test_weights_and_signs_of_edges():
    adjacency = sp.csr_array(np.array([[0, 2.0, 0], [2.0, 0, -1.0], [0, -1.0, 0]]))
    model = FusedLassoRegressor(alpha=0.01, graph=adjacency, edge_weights=True, edge_signs="adjacency").fit(X[:, :3], Y)
    np.testing.assert_array_equal(model.graph_.weights, [2.0, 1.0])
    np.testing.assert_array_equal(model.graph_.signs, [1.0, -1.0])


def test_groups_by_name_and_label():
    by_name = GroupLassoRegressor(alpha=0.2, groups=[["a", "b", "c"], ["d", "e"], ["f"]]).fit(FRAME, Y)
    by_label = GroupLassoRegressor(alpha=0.2, groups=[0, 0, 0, 1, 1, 2]).fit(X, Y)
    np.testing.assert_array_equal(by_name.coef_, by_label.coef_)
    assert by_name.active_groups_.tolist() == [True, False, True]
    assert by_name.dof_ == 4


def test_trends():
    steps = np.repeat([0.0, 2.0, 1.0], 30) + 0.1 * rng.standard_normal(90)
    model = TrendFilter(alpha=0.05, order=0).fit(np.arange(90.0)[:, None], steps)
    assert model.n_clusters_ == 3
    assert model.predict([[10.2], [45.0]]) == pytest.approx([model.coef_[10], model.coef_[45]])
    positions = np.sort(rng.uniform(0, 10, 90))
    line = TrendFilter(alpha=10.0).fit(positions[:, None], 3 * positions - 1)
    assert line.predict([[-1.0], [4.4], [12.0]]) == pytest.approx([-4.0, 12.2, 35.0], abs=1e-4)
    chosen = TrendFilterCV(alphas=8, order=0).fit(np.arange(90.0)[:, None], steps)
    assert np.sqrt(np.mean((chosen.coef_ - np.repeat([0.0, 2.0, 1.0], 30)) ** 2)) < 0.1
    grid = TrendFilter(alpha=0.01, order=0, graph=(9, 10))
    assert np.abs(grid.smooth(steps) - steps).max() < 1.5


# -- batch by batch ------------------------------------------------------------------------------------------


def test_partial_fit_learns():
    model = FusedLassoClassifier(alpha=1e-3)
    for start in range(0, N, 30):
        model.partial_fit(X[start : start + 30], LABELS[start : start + 30], classes=["down", "up"])
    for _ in range(20):
        model.partial_fit(sp.csr_array(X), LABELS)
    assert model.score(X, LABELS) > 0.85
    assert model.n_iter_ == 23
    one_class = LABELS == "up"
    model.partial_fit(X[one_class], LABELS[one_class])
    fitted = FusedLassoRegressor(alpha=1e-2).fit(X, Y)
    before = fitted.score(X, Y)
    fitted.partial_fit(X, Y)
    assert fitted.score(X, Y) > before - 0.05
    with pytest.raises(ValueError, match="classes must be given"):
        FusedLassoClassifier().partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="not among classes"):
        model.partial_fit(X, np.where(Y > 0, "up", "sideways"))
    with pytest.raises(ValueError, match="class_weight='balanced' needs all the data"):
        FusedLassoClassifier(class_weight="balanced").partial_fit(X, LABELS, classes=["down", "up"])


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha=-1.0: it takes a finite number ≥ 0"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"alpha": "strong"}, "alpha='strong'"),
        ({"l1_ratio": 1.5}, r"l1_ratio=1.5: it takes a number in \[0, 1\]"),
        ({"l1_ratio": -0.1}, "l1_ratio=-0.1"),
        ({"ridge": -1}, "ridge=-1"),
        ({"tol": 0}, "tol=0"),
        ({"max_passes": 0}, "max_passes=0"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes'"),
        ({"method": "sa-adm"}, "Did you mean 'sa-admm'"),
        ({"loss": "logistic"}, "loss='logistic': it takes one of 'squared', 'huber'"),
        ({"graph": "star"}, "graph='star': it takes None"),
        ({"graph": (2, 2)}, "a grid of 4 nodes: X has 6 features"),
        ({"graph": [(0, 6)]}, "0 … 5"),
        ({"graph": [("a", "b")]}, "X must be a DataFrame"),
        ({"graph": sp.csr_array((5, 5))}, "6 × 6"),
        ({"graph": nx.path_graph(7)}, "0 … 5"),
        ({"graph": [(0, 1)], "edge_weights": [-1.0]}, "weights must be finite and ≥ 0"),
        ({"edge_weights": [1.0]}, "edge_weights=.*: it takes None"),
        ({"edge_signs": [1.0]}, "edge_signs=.*: it takes None"),
        ({"graph": (2, 3), "edge_signs": "adjacency"}, "edge_signs=.*: it takes None"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        FusedLassoRegressor(**parameters).fit(X, Y)


def test_bad_graphs_groups_and_matrices():
    with pytest.raises(ValueError, match="not among the columns of X: 'z'"):
        FusedLassoRegressor(graph=nx.Graph([("a", "z")])).fit(FRAME, Y)
    with pytest.raises(ValueError, match="A must have one column per feature, 6"):
        GeneralizedLassoRegressor(A=np.ones((2, 5))).fit(X, Y)
    with pytest.raises(ValueError, match="not among the columns of X: 'z'"):
        GroupLassoRegressor(groups=[["a", "z"]]).fit(FRAME, Y)
    for groups in ([[0, 9]], [[]], "ab", [0, 1], []):
        with pytest.raises(ValueError, match="group"):
            GroupLassoRegressor(groups=groups).fit(X, Y)
    with pytest.raises(ValueError, match="group_weights="):
        GroupLassoRegressor(group_weights="square").fit(X, Y)
    with pytest.raises(ValueError, match="order=9"):
        TrendFilter(order=9).fit(X, Y)
    with pytest.raises(ValueError, match="design="):
        TrendFilter(design="grid").fit(X, Y)
    with pytest.raises(ValueError, match="one column"):
        TrendFilter(design="positions").fit(X, Y)


def test_bad_tables():
    for model in (FusedLassoRegressor(), FusedLassoClassifier()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(np.where(X > 2, np.nan, X), LABELS if "Class" in type(model).__name__ else Y)
        with pytest.raises(ValueError, match="inconsistent"):
            model.fit(X, LABELS[:-1])
        with pytest.raises(ValueError, match="Negative values"):
            model.fit(X, LABELS if "Class" in type(model).__name__ else Y, sample_weight=-np.ones(N))
    with pytest.raises(ValueError, match="only one class"):
        FusedLassoClassifier().fit(X, np.ones(N))
    with pytest.raises(ValueError, match="at least one"):
        FusedLassoRegressor().fit(X, Y, sample_weight=np.zeros(N))


def test_a_constant_target_is_its_intercept():
    model = FusedLassoRegressor(alpha=0.1).fit(X, np.full(N, 7.0))
    assert model.intercept_ == 7.0
    assert not model.coef_.any()
    assert model.n_clusters_ == 0


def test_short_of_the_tolerance_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"did not reach tol=1e-12.*relative (duality gap|KKT residual) of \d"):
        FusedLassoClassifier(alpha=1e-4, max_passes=1, tol=1e-12, method="sa-iu-admm").fit(X, LABELS)


def test_nothing_is_said_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FusedLassoClassifier(alpha=0.01, random_state=0).fit(X, LABELS)
