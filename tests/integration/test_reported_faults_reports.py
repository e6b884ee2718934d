"""Faults reported by a user of reports and of models of structure: each test is one of them."""

import base64
import io
import itertools
import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import skadmm
import skadmm.datasets
import skadmm.paper
from skadmm.cli import run

mpl.use("Agg")
LINE = np.arange(100.0)[:, None]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_constant_trend_is_constant_to_the_last_bit(offset):
    constant = 0
    for seed in range(30):
        noise = offset + np.random.default_rng(seed).standard_normal(100)
        model = skadmm.TrendFilterCV(order=0, alphas=15, selection="1se").fit(LINE, noise)
        pieces = 1 + np.count_nonzero(np.diff(model.coef_))
        assert model.dof_ == model.n_clusters_ == model.knots_.size + 1 == pieces
        constant += model.dof_ == 1
    assert constant > 20


def test_small_steps_around_a_large_constant_are_steps():
    signal = 1e8 + 1e-3 * np.repeat([0.0, 1.0, -1.0, 2.0], 25)
    model = skadmm.TrendFilter(alpha=1e-6, order=0).fit(LINE, signal)
    assert model.dof_ == model.knots_.size + 1 == np.unique(model.coef_).size == 4


def test_denoised_values_at_the_strength_that_fuses_them_are_equal_to_the_last_bit():
    for seed in range(30):
        values = np.random.default_rng(seed).standard_normal(60)
        fused = np.abs(np.cumsum(values - values.mean())[:-1]).max()
        assert np.unique(skadmm.denoise_line(values, fused)).size == 1
        np.testing.assert_allclose(skadmm.denoise_line(values, fused), values.mean(), rtol=0, atol=1e-14)
        assert np.unique(skadmm.denoise_line(values, fused * (1 - 1e-9))).size == 2


# -- reports ----------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
NAMES = list("abcdef")
X = pd.DataFrame(rng.standard_normal((60, 6)), columns=NAMES)
Y = (X.a - X.b + 0.8 * X.c + 0.3 * X.d + 0.3 * rng.standard_normal(60)).to_numpy()
EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]


def _page(model, folder, *data):
    model.report(folder / "fit.html", *data)
    return (folder / "fit.html").read_text(encoding="utf-8")


def _stored(page):
    text = base64.b64decode(re.search(r"data:text/csv;base64,([^\"]+)", page)[1]).decode()
    return pd.read_csv(io.StringIO(text), index_col=0)


@pytest.mark.parametrize("kind", [skadmm.FusedLassoRegressor, skadmm.FusedLassoRegressorCV])
def test_the_certificate_of_a_relaxed_model_is_that_of_the_penalised_fit(kind, tmp_path):
    strength = {"alpha": 0.1} if kind is skadmm.FusedLassoRegressor else {"alphas": 5, "selection": "1se"}
    model = kind(**strength, graph=EDGES, relax=True).fit(X, Y)
    page = _page(model, tmp_path, X, Y)
    assert f"The relative duality gap of the penalised fit is {model.result_.gap:.1e}" in page
    assert "The certificate is that of the penalised fit, not of these values." in page
    assert "lower than this model" not in page
    table = _stored(page)
    np.testing.assert_array_equal(table["relaxed coefficient"], model.coef_)
    np.testing.assert_array_equal(table["penalised coefficient"], model.penalized_coef_)
    np.testing.assert_array_equal(table["standard error, given the structure"], model.standard_errors_)
    assert '<th scope="col">standard error, given the structure</th>' in page
    plain = _page(kind(**strength, graph=EDGES).fit(X, Y), tmp_path, X, Y)
    assert "relaxed" not in plain.split("<script>")[0]
    assert "lower than this model&#x27;s" in plain or "lower than this model's" in plain


def test_the_path_of_a_relaxed_model_has_penalised_and_relaxed_values(tmp_path):
    model = skadmm.FusedLassoRegressorCV(alphas=5, graph=EDGES, relax=True, selection="1se").fit(X, Y)
    page = _page(model, tmp_path)
    content = json.loads(re.search(r'id="path">(.*?)</script>', page)[1])
    np.testing.assert_allclose(content["coefs"][0][content["chosen"]], model.penalized_coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(content["relaxed"][0], model.coef_, rtol=1e-4)
    assert "The penalised coefficients along the path" in page
    assert "Rings: the relaxed values" in page
    assert skadmm.plotting.coefficient_path(model).get_ylabel() == "penalised coefficient"


def _drawn(page):
    return json.loads(re.search(r'id="path">(.*?)</script>', page)[1])


@pytest.mark.parametrize("order", [0, 1])
def test_a_signal_is_drawn_at_its_positions(order, tmp_path):
    uneven = np.concatenate([np.linspace(0.0, 10.0, 60), np.linspace(90.0, 100.0, 20)])
    noisy = np.sin(uneven / 8.0) + 0.1 * np.random.default_rng(0).standard_normal(80)
    model = skadmm.TrendFilterCV(order=order, alphas=4, cv=3).fit(uneven[:, None], noisy)
    content = _drawn(_page(model, tmp_path))
    assert content["at"] == model.positions_.tolist()
    assert content["line"] == ("steps" if order == 0 else "straight")
    assert (content["label"], content["horizontal"]["range"]) == ("position", [0.0, 100.0])
    assert content["horizontal"]["ticks"] == [[20.0 * k, str(20 * k)] for k in range(6)]
    dates = pd.DataFrame({"date": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(uneven * 20.0), unit="D")})
    content = _drawn(_page(skadmm.TrendFilterCV(order=order, alphas=4, cv=3).fit(dates, noisy), tmp_path))
    assert content["label"] == "date"
    low, high = content["horizontal"]["range"]
    texts = [text for _, text in content["horizontal"]["ticks"]]
    assert texts == ["2020", "2021", "2022", "2023", "2024", "2025"]
    share = (content["horizontal"]["ticks"][1][0] - low) / (high - low)
    assert share == pytest.approx(366.0 / 2000.0, rel=1e-6)


def test_the_path_counts_every_feature_and_places_them_by_number(tmp_path, monkeypatch):
    monkeypatch.setattr("skadmm.estimators._report_path.MOST_FEATURES", 4)
    model = skadmm.GeneralizedLassoRegressorCV(alphas=5, eps=0.01).fit(X, Y)
    page = _page(model, tmp_path)
    content = _drawn(page)
    assert content["counts"] == [np.count_nonzero(model.coefs_path_, axis=1).tolist()]
    assert max(content["counts"][0]) > len(content["at"]) == 4
    assert content["at"] == np.sort(np.argsort(-np.abs(model.coefs_path_).max(axis=0))[:4]).tolist()
    assert content["horizontal"]["range"] == [0, 5]
    assert "The 4 of 6 features with the largest coefficients along the path." in page
    page = _page(skadmm.GeneralizedLassoRegressorCV(alphas=[1e3, 0.5], cv=3).fit(X, Y), tmp_path)
    used = len(_drawn(page)["at"])
    assert 0 < used < 4
    assert f"The {used} of 6 features that are not zero everywhere along the path." in page


def test_ticks_of_the_path_are_round_and_names_do_not_overlap(tmp_path):
    table = X.set_axis([f"a rather long name of feature {name}" for name in NAMES], axis=1)
    content = _drawn(_page(skadmm.FusedLassoRegressorCV(alphas=5).fit(table, Y), tmp_path))
    assert [text for _, text in content["vertical"]["ticks"]] == ["-1", "-0.5", "0", "0.5", "1"]
    low, high = content["vertical"]["range"]
    assert -low == high == pytest.approx(np.abs(content["coefs"]).max(), rel=1e-4)
    ticks = content["horizontal"]["ticks"]
    assert len(ticks) >= 2
    for place, text, full in ticks:
        assert text == f"a rather l…feature {NAMES[place]}"
        assert full == table.columns[place]
    assert max(len(text) for _, text, _ in ticks) * 7.0 < 680.0 / (len(ticks) - 1)


@pytest.mark.parametrize("relax", [False, True])
def test_features_joined_by_a_negative_edge_have_coefficients_up_to_sign(relax, tmp_path):
    model = skadmm.FusedLassoRegressor(0.3, graph=[("a", "b", -1.0), ("c", "d", 1.0)], relax=relax).fit(X, Y)
    a, b = model.coef_[:2]
    assert a == -b > 0
    page = _page(model, tmp_path)
    assert f"<td>±{a:.6g}</td><td>{a:.6g}: a; {b:.6g}: b</td>" in page
    assert "up to their signs" in page
    if relax:
        assert model.standard_errors_[0] == pytest.approx(model.standard_errors_[1], rel=1e-12)
        folded = np.column_stack([X.a - X.b, X.c, X.d])
        design = np.column_stack([folded, np.ones(60)])
        residual = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
        covariance = np.linalg.inv(design.T @ design) * (residual @ residual) / (60 - design.shape[1])
        assert model.clusters_.tolist() == [0, 0, 1, 2, -1, -1]
        assert model.standard_errors_[0] == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-6)


def test_a_signal_is_drawn_over_its_observations_and_listed_at_its_knots(tmp_path):
    dates = pd.DataFrame({"date": pd.date_range("2021-01-01", periods=80, freq="7D")})
    signal = np.repeat([1.0, 3.0], 40) + 0.1 * rng.standard_normal(80)
    model = skadmm.TrendFilterCV(order=0, alphas=5, selection="1se").fit(dates, signal)
    page = _page(model, tmp_path, dates, signal)
    assert "over the observations" in page
    assert "over the observations" not in _page(model, tmp_path)
    assert "largest" not in page
    assert f"<td>{pd.to_datetime(model.knots_[0]):%Y-%m-%d}</td>" in page
    content = json.loads(re.search(r'id="path">(.*?)</script>', page)[1])
    assert content["pieces"][content["chosen"]] == model.n_clusters_
    axes = skadmm.plotting.trend_fit(model, dates, signal)
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
    assert len(boxes) > 2
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_names_cover_neither_nodes_nor_names_and_nodes_apart_have_theirs():
    names = [f"gene_{k}" for k in range(12)]
    table = pd.DataFrame(rng.standard_normal((40, 12)), columns=names)
    edges = [*itertools.pairwise(names[:10]), (names[0], names[5])]
    model = skadmm.FusedLassoRegressor(0.05, graph=edges).fit(table, table.gene_0 - table.gene_11)
    axes = skadmm.plotting.coefficients_on_graph(model)
    axes.figure.draw_without_rendering()
    assert {"gene_10", "gene_11"} <= {text.get_text() for text in axes.texts}
    assert len(axes.texts) == 12
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    nodes = axes.transData.transform(axes.collections[0].get_offsets())
    assert not any(box.contains(*node) for box in boxes for node in nodes)


def test_a_chain_has_the_names_of_its_features():
    axes = skadmm.plotting.coefficients_on_graph(skadmm.FusedLassoRegressor(0.1).fit(X, Y))
    assert [text.get_text() for text in axes.get_xticklabels()] == NAMES
    axes = skadmm.plotting.coefficients_on_graph(skadmm.FusedLassoRegressor(0.1).fit(X.to_numpy(), Y))
    assert axes.get_xlabel() == "position along the chain"


def test_long_names_leave_room_for_the_chain():
    table = X.set_axis([f"a rather long name of feature {name}" for name in NAMES], axis=1)
    axes = skadmm.plotting.coefficients_on_graph(skadmm.FusedLassoRegressor(0.1).fit(table, Y))
    axes.figure.draw_without_rendering()
    assert [text.get_text() for text in axes.get_xticklabels()] == [f"a rather l…feature {name}" for name in NAMES]
    assert axes.get_position().height > 0.6


def test_a_model_without_coefficients_has_no_report_and_no_picture(tmp_path):
    searched = skadmm.FusedLassoRegressorCV(alphas=3, refit=False).fit(X, Y)
    plotting = skadmm.plotting
    for use in (
        lambda model: model.report(tmp_path / "fit.html"),
        plotting.coefficients_on_graph,
        lambda model: plotting.coefficient_image(model, shape=(2, 3)),
        plotting.trend_fit,
        lambda model: model.predict(X),
    ):
        with pytest.raises(NotFittedError, match="fitted with refit=False: it has scores and the best parameters, but"):
            use(searched)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(skadmm.FusedLassoRegressor())
    assert not (tmp_path / "fit.html").exists()


def test_a_report_creates_no_folder(tmp_path):
    model = skadmm.FusedLassoRegressor(0.1).fit(X, Y)
    for write in (model.report, model.save):
        with pytest.raises(FileNotFoundError, match="there is no such folder"):
            write(tmp_path / "none" / "file")
        with pytest.raises(IsADirectoryError, match="it takes the name of a file"):
            write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_degrees_of_freedom_of_a_path_count_the_intercept():
    model = skadmm.FusedLassoRegressorCV(alphas=10, selection="bic").fit(X, Y)
    chosen = int(np.argmin(np.abs(model.path_.alphas - model.alpha_)))
    assert model.path_.dof[chosen] == model.dof_ + 1
    assert model.path_.dof[0] == 1
    assert "coefficients=7" in repr(model.path_)
    free = skadmm.FusedLassoRegressorCV(alphas=10, selection="bic", fit_intercept=False).fit(X, Y)
    chosen = int(np.argmin(np.abs(free.path_.alphas - free.alpha_)))
    assert free.path_.dof[chosen] == free.dof_


def test_a_report_of_a_stored_model_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = skadmm.FusedLassoRegressorCV(alphas=4, cv=3, relax=True).fit(X, Y)
    model.save("model.skadmm")
    X.assign(extra=1.0, y=Y).to_csv("data.csv", index=False)
    assert run(["report", "model.skadmm", "-o", "alone.html"]) == 0
    model.report("same.html")
    assert Path("alone.html").read_text() == Path("same.html").read_text()
    assert run(["report", "model.skadmm", "data.csv", "--target", "y", "-o", "fit.html"]) == 0
    assert f"{model.score(X, Y):.4f}" in Path("fit.html").read_text()
    capsys.readouterr()
    for arguments, code, message in (
        (["-o", "fit.html"], 2, "fit.html exists already: --force replaces it"),
        (["-o", "none/fit.html"], 1, "there is no such folder"),
        (["-o", "other.html", "--target", "y"], 2, "--target: it names a column of DATA, which is not given"),
    ):
        assert run(["report", "model.skadmm", *arguments]) == code
        assert message in capsys.readouterr().err
    assert not Path("none").exists()


def test_a_report_names_the_package_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model = skadmm.FusedLassoRegressor(0.1).fit(np.eye(12), np.arange(12.0))
    with pytest.raises(ImportError, match="a report needs matplotlib: pip install"):
        model.report(tmp_path / "fit.html")


# -- what is said of pictures and runs --------------------------------------------------------------------------------

DOCS = Path(skadmm.__file__).parents[2] / "docs"


def test_the_time_of_a_short_reproduction_is_the_same_everywhere(capsys):
    run(["reproduce", "--help"])
    assert "it takes one to four minutes" in " ".join(capsys.readouterr().out.split())
    assert "one to four minutes" in " ".join((DOCS / "reproduction.md").read_text(encoding="utf-8").split())
    assert "one to four minutes" in skadmm.paper.quick.__doc__


def test_the_text_of_a_figure_names_what_its_axis_shows(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import figures
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    figures.updates(axes)
    assert axes.get_ylabel() == "objective − optimum"
    page = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"!\[([^]]+)\]\(_figures/updates\.png\)", page)
    assert "minus the optimum" in text


def test_records_with_arrays_have_short_texts():
    datasets = skadmm.datasets
    choice = skadmm.solve(skadmm.Problem(X.to_numpy(), Y > 0), "sa-admm", passes=2).tuning
    assert re.fullmatch(r"StepChoice\(step=\S+, candidates=13 from \S+ to \S+, subset=60, seconds=\S+\)", repr(choice))
    graph = skadmm.operators.precision_graph(X.assign(b=X.a + X.b).to_numpy())
    said = f"PrecisionGraph(features=6, edges=1, alpha={graph.alpha:.4g}, components=5, cut=0, converged=True)"
    assert repr(graph) == said
    signal = datasets.make_fused_signal(50, 20)
    assert repr(signal) == (
        "FusedSignal(X=ndarray of shape (50, 20), target=ndarray of shape (50,), x=ndarray of shape (20,), "
        "jumps=ndarray of shape (4,))"
    )
    assert repr(datasets.make_claims(100)).startswith("Claims(table=DataFrame of shape (100, 4), counts=ndarray of")
    assert "mean_cost" not in repr(datasets.make_claims(100)._replace(mean_cost=None))
    assert "adjacency=csr_array of shape (100, 100)" in repr(datasets.make_graph_classification(50))
    assert repr(datasets.load("breast-cancer")).startswith("Loaded(name='breast-cancer', X=ndarray of shape (569, 30)")
