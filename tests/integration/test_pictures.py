"""Pictures of models: they draw what the model holds, into the axes given, and refuse what they cannot draw."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from skadmm import FusedLassoClassifierCV, FusedLassoRegressor, FusedLassoRegressorCV, Problem, TrendFilter, path
from skadmm.plotting import coefficient_image, coefficient_path, coefficients_on_graph, cv_curve, trend_fit
from skadmm.regularizers import L1

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 6))
Y = X @ np.array([1.0, 1, 0, 0, -1, 0]) + 0.1 * rng.standard_normal(60)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_coefficient_path():
    answer = path(Problem(X, Y, loss="squared", psi=L1(1.0)), n_alphas=5)
    ax = answer.plot(names=list("abcdef"), chosen=float(answer.alphas[2]))
    assert ax.get_xscale() == "log"
    assert "alpha = " in ax.get_legend().get_texts()[-1].get_text()
    _, mine = plt.subplots()
    assert coefficient_path(answer.alphas, answer.x, ax=mine) is mine
    with pytest.raises(ValueError, match="one row per alpha"):
        coefficient_path([1.0], answer.x)
    with pytest.raises(ValueError, match="names has length 1"):
        answer.plot(names=["a"])


def test_the_path_of_a_model():
    model = FusedLassoRegressorCV(alphas=5, l1_ratio=[0.3, 0.7], scoring="r2").fit(X, Y)
    ax = coefficient_path(model)
    assert f"alpha = {model.alpha_:.3g}" in ax.get_legend().get_texts()[-1].get_text()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.coefs_path_[::-1, 0])
    assert cv_curve(model).get_ylabel() == "held-out r2"
    classes = FusedLassoClassifierCV(alphas=3).fit(X, np.digitize(Y, np.quantile(Y, [0.3, 0.6])))
    assert coefficient_path(classes, problem=2).lines
    with pytest.raises(ValueError, match="fitted with refit=True; got FusedLassoRegressorCV"):
        coefficient_path(model.set_params(refit=False).fit(X, Y))


@pytest.mark.parametrize("width", [6.4, 10.5])
def test_legends_are_inside_the_figure(width):
    model = FusedLassoRegressorCV(alphas=8, cv=3, selection="1se").fit(X, Y)
    figure, axes = plt.subplots(1, 2, figsize=(width, 4.0), layout="constrained")
    coefficient_path(model.alphas_, model.coefs_path_, chosen=model.alpha_, ax=axes[0])
    cv_curve(model, ax=axes[1])
    figure.draw_without_rendering()
    for ax in axes:
        assert ax.get_legend().get_window_extent().x1 < figure.bbox.x1 + 1.0
    gap = axes[1].get_tightbbox().x0 - axes[0].bbox.x1
    assert gap < 0.05 * figure.bbox.width, "nothing is between the panels"


@pytest.mark.parametrize("selection", ["1se", "bic"])
def test_cv_curve(selection):
    model = FusedLassoRegressorCV(alphas=5, cv=3, selection=selection).fit(X, Y)
    ax = cv_curve(model)
    assert ax.get_ylabel() in ("held-out loss", "BIC")
    assert any("chosen" in text.get_text() for text in ax.get_legend().get_texts())
    with pytest.raises(ValueError, match="cross-validation"):
        cv_curve(FusedLassoRegressor().fit(X, Y))


def test_coefficients_on_graph_and_image():
    model = FusedLassoRegressor(alpha=0.2, graph=(2, 3)).fit(X, Y)
    ax = coefficients_on_graph(model)
    assert len(ax.texts) == 6
    assert len(ax.figure.axes) == 2, "colours need a colour bar"
    spots = {name: (k, 0) for k, name in enumerate(model.graph_.names)}
    coefficients_on_graph(model, positions=spots, labels=False)
    line = coefficients_on_graph(FusedLassoRegressor(alpha=0.2).fit(X, Y))
    assert len(line.figure.axes) == 1, "the axis of a chain has the values"
    with pytest.raises(ValueError, match="positions has no"):
        coefficients_on_graph(model, positions={})
    assert coefficient_image(model).images[0].get_array().shape == (2, 3)
    assert coefficient_image(model.coef_, (3, 2)).images[0].get_array().shape == (3, 2)
    with pytest.raises(ValueError, match="product is 6"):
        coefficient_image(model.coef_, (2, 2))
    without = (
        r"shape=None: FusedLassoRegressor has no grid; give shape=\(rows, columns\), two lengths whose product is 6"
    )
    with pytest.raises(ValueError, match=without):
        coefficient_image(FusedLassoRegressor(alpha=0.2).fit(X, Y))


def test_nodes_have_the_colours_of_their_coefficients():
    """On the scale that the penalty saw; a chain from left to right, in the order of its edges."""
    wide = X * np.array([1.0, 100.0, 1.0, 1.0, 0.01, 1.0])
    order = [3, 0, 5, 1, 4, 2]
    model = FusedLassoRegressor(alpha=0.1, graph=list(pairwise(order)), standardize=True).fit(wide, Y)
    ax = coefficients_on_graph(model)
    (nodes,) = ax.collections
    np.testing.assert_allclose(nodes.get_array(), model.result_.x[:6])
    np.testing.assert_allclose(model.scale_, wide.std(axis=0))
    places = np.asarray(nodes.get_offsets())
    assert places[order, 0].tolist() in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0])
    np.testing.assert_allclose(places[:, 1], nodes.get_array())
    assert "standardised" in ax.get_ylabel()


def test_trend_fit():
    signal = np.repeat([0.0, 1.0], 20) + 0.05 * rng.standard_normal(40)
    model = TrendFilter(alpha=0.05, order=0).fit(np.arange(40.0)[:, None], signal)
    ax = trend_fit(model, y=signal)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["observed", "fitted", "changes"]
    (changes,) = (line for line in ax.lines if line.get_label() == "changes")
    assert changes.get_xdata().tolist() == [20.0]
    with pytest.raises(ValueError, match="fitted on positions"):
        trend_fit(TrendFilter(alpha=0.1).fit(X, Y))
