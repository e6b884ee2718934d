"""model.report: one file that needs nothing else, for every kind of model."""

import base64
import dataclasses
import html
import json
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import skadmm
from skadmm.cli import run

mpl.use("Agg")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 12))
Y = X @ np.repeat([0.0, 1.0, 0.0], 4) + 0.1 * rng.standard_normal(60)
CLASSES = np.digitize(Y + rng.standard_normal(60), [-1.0, 1.0])
BOTH = np.column_stack([Y, X[:, 0] + rng.standard_normal(60)])
LINE = np.arange(60.0)[:, None]

MODELS = {
    "chain": (skadmm.FusedLassoRegressor(alpha=0.1), X, Y),
    "grid": (skadmm.FusedLassoRegressor(alpha=0.1, graph=(3, 4)), X, Y),
    "classes": (skadmm.FusedLassoClassifier(alpha=0.05), X, CLASSES),
    "multinomial": (skadmm.FusedLassoClassifier(alpha=0.05, graph=(3, 4), multi_class="multinomial"), X, CLASSES),
    "outputs": (skadmm.FusedLassoRegressor(alpha=0.1), X, BOTH),
    "cv": (skadmm.FusedLassoRegressorCV(alphas=4, cv=3), X, Y),
    "classes cv": (skadmm.FusedLassoClassifierCV(alphas=4, cv=3, eps=0.01), X, CLASSES),
    "outputs cv": (skadmm.FusedLassoRegressorCV(alphas=4, cv=3, l1_ratio=[0.3, 0.6], eps=0.01), X, BOTH),
    "groups": (skadmm.GroupLassoRegressor(alpha=0.1, groups=[range(4), range(4, 8), range(8, 12)]), X, Y),
    "lasso": (skadmm.GeneralizedLassoRegressor(alpha=0.1), X, Y),
    "trend": (skadmm.TrendFilter(alpha=0.1, order=1), LINE, Y),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_report_holds_the_model_and_needs_nothing_else(kind, tmp_path):
    model, table, target = MODELS[kind]
    model.fit(table, target).report(tmp_path / "fit.html", table, target)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert type(model).__name__ in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    stored = base64.b64decode(re.search(r"data:text/csv;base64,([^\"]+)", page)[1]).decode().splitlines()
    found = np.array([[float(value) for value in line.split(",")[1:]] for line in stored[1:]]).T
    np.testing.assert_array_equal(found, np.atleast_2d(model.coef_))
    assert f"{model.score(table, target):.4f}" in page
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    assert f"{max(result.gap for result in results):.1e}" in page
    for picture in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page):
        assert base64.b64decode(picture).startswith(b"<svg")
    held = re.search(r'id="path">(.*?)</script>', page)
    if hasattr(model, "coefs_path_"):
        content = json.loads(held[1])
        along = model.coefs_path_ if model.coefs_path_.ndim == 3 else model.coefs_path_[:, None]
        np.testing.assert_allclose(content["coefs"], along.transpose(1, 0, 2), rtol=1e-4)
        assert content["alphas"][content["chosen"]] == pytest.approx(model.alpha_, rel=1e-4)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["classes", "multinomial", "outputs", "classes cv", "outputs cv"])
def test_every_class_and_every_output_is_drawn(kind, tmp_path):
    model, table, target = MODELS[kind]
    model.fit(table, target).report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    parts = [f"class {k}" for k in range(3)] if hasattr(model, "classes_") else ["output 0", "output 1"]
    drawn = re.findall(r"<figcaption>The coefficients on their (?:graph|grid), (\w+ \d)", page)
    assert drawn == parts
    assert [f"coefficient, {part}" for part in parts] == re.findall(r">(coefficient, \w+ \d)</th>", page)
    offered = re.findall(r"<option value=\"\d\">([^<]+)</option>", page)
    assert offered == (parts if kind.endswith("cv") else [])


def test_pictures_side_by_side_share_their_colours():
    model = skadmm.FusedLassoClassifier(alpha=0.05).fit(X, CLASSES)
    for k in range(3):
        axes = skadmm.plotting.coefficients_on_graph(model, problem=k, limit=2.0)
        assert axes.collections[0].get_clim() == (-2.0, 2.0)


@pytest.mark.parametrize(("size", "kind"), [(600, "chain"), (600, "ring"), (2100, "chain")])
def test_a_chain_of_any_length_is_drawn(size, kind, tmp_path):
    table = np.random.default_rng(1).standard_normal((20, size))
    ring = [(j, (j + 1) % size) for j in range(size)]
    model = skadmm.FusedLassoRegressor(alpha=1.0, graph=None if kind == "chain" else ring).fit(table, table[:, 0])
    model.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert ("The coefficients on their graph" in page) == (kind == "chain")
    assert len(page) < 1e6, "the nodes of a long chain are an image"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_report_says_what_colours_and_edges_mean(sign, tmp_path):
    model = skadmm.FusedLassoRegressor(alpha=0.3, graph=[(j, j + 1, sign) for j in range(11)]).fit(X, Y)
    model.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    signs = "" if sign > 0 else ", or opposite ones where it is dashed"
    assert f"Colour is the value; a dark edge joins two features with equal coefficients{signs}." in page
    explained = " ".join(skadmm.plotting.coefficients_on_graph.__doc__.split())
    assert "Colour is the value; a dark edge joins two features with equal coefficients." in explained


def test_fused_features_are_called_clusters_everywhere(tmp_path):
    model = skadmm.FusedLassoRegressor(alpha=0.3).fit(X, Y)
    model.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert f'<th scope="row">clusters</th><td>{model.n_clusters_}</td>' in page
    assert "fused groups" not in page


def test_a_report_lists_the_clusters(tmp_path):
    model = skadmm.FusedLassoRegressor(alpha=0.3).fit(X, Y)
    model.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    names = ", ".join(f"x{j}" for j in np.flatnonzero(model.clusters_ == 0))
    assert "<h2>Clusters</h2>" in page
    assert f"<td>{names}</td>" in page


def test_rounding_is_not_drawn_as_convergence(tmp_path):
    model = skadmm.FusedLassoRegressor(alpha=0.1, warm_start=True, tol=1e-10).fit(X, Y)
    model.report(tmp_path / "first.html")
    said = "The run started at the optimum"
    assert said not in (tmp_path / "first.html").read_text(encoding="utf-8")
    again = model.fit(X, Y)
    assert len(again.result_.records) > 1
    again.report(tmp_path / "second.html")
    page = (tmp_path / "second.html").read_text(encoding="utf-8")
    assert said in page
    assert "The run: objective" not in page
    result = skadmm.FusedLassoRegressor(alpha=0.1).fit(X, Y).result_
    same = {"objective_average": np.nan}
    near = [record | same | {"objective": 0.4899 + 1e-8 * k} for k, record in enumerate(result.records)]
    assert len(near) > 1
    axes = skadmm.plotting.convergence(dataclasses.replace(result, records=near))
    axes[0, 0].figure.canvas.draw()
    assert axes[0, 0].yaxis.get_offset_text().get_text() == ""


@pytest.mark.parametrize("feasible", [True, False])
def test_the_convergence_names_what_is_drawn(feasible, tmp_path):
    if feasible:
        model = skadmm.TrendFilter(alpha=0.1, order=1).fit(LINE, Y)
    else:
        model = skadmm.FusedLassoClassifier(0.01, method="sa-admm", tol=1e-5).fit(X, CLASSES > 0)
    assert bool((model.result_.trace["feasibility"] > 0.0).any()) is not feasible
    model.report(tmp_path / "fit.html")
    shown = " and relative duality gap" if feasible else ", relative duality gap and ‖Ax + By − c‖"
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert f"<figcaption>The run: objective − lowest{shown} against passes and seconds.<" in page


def test_a_name_cannot_end_the_page(tmp_path):
    import pandas as pd

    names = ["</script><script>alert(1)</script>", *map(str, range(11))]
    model = skadmm.FusedLassoRegressorCV(alphas=3, cv=3).fit(pd.DataFrame(X, columns=names), Y)
    model.report(tmp_path / "fit.html")
    assert "<script>alert" not in (tmp_path / "fit.html").read_text(encoding="utf-8")


def test_a_report_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", X=X, y=Y)
    fit = ["fit", "data.npz", "-o", "model.skadmm", "--model", "fused-regressor", "--alpha", "0.1", "-q"]
    assert run([*fit, "--report", "fit.html"]) == 0
    assert "FusedLassoRegressor" in (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert run([*fit, "--report", "fit.html"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_coefficients_of_a_signal_go_by_their_positions(tmp_path, monkeypatch, capsys):
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    model = skadmm.TrendFilter(alpha=0.1).fit(pd.DataFrame({"time": LINE[:, 0]}), Y)
    model.report("fit.html")
    model.save("model.skadmm")
    assert run(["coef", "model.skadmm", "--csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    np.testing.assert_array_equal([float(row[0]) for row in rows], LINE[:, 0])
    np.testing.assert_array_equal([float(row[1]) for row in rows], model.coef_)
    assert run(["coef", "model.skadmm"]) == 0
    listed = ", ".join(f"{knot:g}" for knot in model.knots_)
    assert model.knots_.size > 0
    assert f"{model.knots_.size} knots, at {listed}" in capsys.readouterr().out.splitlines()
    assert run(["coef", "model.skadmm", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["knots"], facts["changepoints"]) == (model.knots_.tolist(), model.changepoints_.tolist())
    skadmm.TrendFilter(alpha=100.0).fit(LINE, Y).save("flat.skadmm")
    assert run(["coef", "flat.skadmm"]) == 0
    assert "no knots: one piece" in capsys.readouterr().out.splitlines()


def code_on(page):
    return html.unescape(re.search(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)[1])


def test_a_report_takes_the_offset_and_names_the_score(tmp_path):
    offset = rng.uniform(0.0, 3.0, 60)
    counts = rng.poisson(np.exp(offset + 0.3 * X[:, 0])).astype(float)
    model = skadmm.FusedLassoRegressor(alpha=0.01, loss="poisson").fit(X, counts, offset=offset)
    model.report(tmp_path / "fit.html", X, counts, offset=offset)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    right, wrong = model.score(X, counts, offset=offset), model.score(X, counts, offset=0.0)
    assert f"{right:.4f}" != f"{wrong:.4f}"
    assert re.search(rf"D² on these data</t[hd]><td[^>]*>{right:.4f}", page)
    assert "R²" not in page
    assert "model.fit(X, y, offset=offset)" in code_on(page)
    labels = counts > np.median(counts)
    classifier = skadmm.FusedLassoClassifier(alpha=0.01).fit(X, labels, offset=3.0 * offset - 4.0)
    classifier.report(tmp_path / "classes.html", X, labels, offset=3.0 * offset - 4.0)
    accuracy = np.mean(classifier.predict(X, offset=3.0 * offset - 4.0) == labels)
    assert f"{accuracy:.4f}" != f"{classifier.score(X, labels, offset=0.0):.4f}"
    assert f"{accuracy:.4f}" in (tmp_path / "classes.html").read_text(encoding="utf-8")


def test_the_code_of_a_report_fits_the_same_model(tmp_path):
    edges = [(j, j + 1, 1.5) for j in range(11)]
    for model in (
        skadmm.FusedLassoRegressor(alpha=0.1, graph=edges, loss=skadmm.losses.Huber(0.5), max_passes=np.float64(500)),
        skadmm.GroupLassoRegressor(alpha=0.1, groups=[range(4), range(4, 8), range(8, 12)]),
        skadmm.FusedLassoRegressorCV(alphas=4, cv=3, checkpoint=tmp_path / "search"),
    ):
        model.fit(X, Y).report(tmp_path / "fit.html")
        code = code_on((tmp_path / "fit.html").read_text(encoding="utf-8"))
        assert ("graph=edges,  # 11 edges" in code) == (getattr(model, "graph", None) is not None)
        values = {"X": X, "y": Y, "edges": edges, "groups": getattr(model, "groups", None)}
        exec(code, values)
        np.testing.assert_allclose(values["model"].coef_, model.coef_, atol=1e-9)


GROUPS = {"first": range(4), "second": range(4, 8), "third": range(8, 12)}


def test_the_groups_are_a_table_and_a_picture(tmp_path):
    model = skadmm.GroupLassoRegressor(0.1, groups=GROUPS, standardize=True).fit(X, Y)
    model.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "<h2>Groups</h2>" in page
    for name, group, active in zip(GROUPS, model.groups_, model.active_groups_, strict=True):
        norm = np.linalg.norm((model.coef_ * model.scale_)[group])
        assert f"<td>{name}</td><td>4</td><td>{norm:.6g}</td><td>{'yes' if active else 'no'}</td>" in page
    assert "norm of the coefficients of the standardised columns" in page
    assert "<figcaption>The coefficients by group.</figcaption>" in page
    classes = skadmm.GroupLassoClassifier(0.05, groups=GROUPS).fit(X, CLASSES)
    classes.report(tmp_path / "classes.html")
    page = (tmp_path / "classes.html").read_text(encoding="utf-8")
    assert re.findall(r"The coefficients by group, (class \d)\.<", page) == ["class 0", "class 1", "class 2"]
    assert len(re.findall(r"<td>second</td><td>4</td>", page)) == 3


def test_the_picture_of_groups_draws_the_coefficients_of_each(monkeypatch):
    from skadmm.estimators import _report_groups

    both = {"first": range(7), "second": range(5, 12)}
    model = skadmm.GroupLassoRegressor(0.02, groups=both, overlap="latent").fit(X, Y)
    axes, which = _report_groups.group_picture(model, 0)
    drawn = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == "o"])
    np.testing.assert_allclose(drawn, np.concatenate(model.latent_coef_))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["first", "second"]
    assert which == ""
    monkeypatch.setattr(_report_groups, "MOST_DRAWN", 8)
    model = skadmm.GroupLassoRegressor(1e-4, groups=GROUPS).fit(X, Y)
    axes, which = _report_groups.group_picture(model, 0)
    norms = [np.linalg.norm(model.coef_[group]) for group in model.groups_]
    kept = [name for k, name in enumerate(GROUPS) if k != np.argmin(norms)]
    assert [text.get_text() for text in axes.get_xticklabels()] == kept
    assert which == "; the 2 of 3 groups with the largest norms"


def facts_on(page):
    return dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', page))


def test_a_model_knows_how_many_samples_it_was_fitted_on(tmp_path):
    model = skadmm.FusedLassoRegressor(0.1).fit(X, Y)
    model.save(tmp_path / "model.skadmm")
    again = skadmm.load(tmp_path / "model.skadmm")
    assert again.n_samples_fit_ == 60
    again.report(tmp_path / "fit.html")
    facts = facts_on((tmp_path / "fit.html").read_text(encoding="utf-8"))
    assert (facts["samples"], facts["features"]) == ("60", "12")
    again.report(tmp_path / "fit.html", X[:20], Y[:20])
    facts = facts_on((tmp_path / "fit.html").read_text(encoding="utf-8"))
    assert (facts["samples"], facts["samples of these data"]) == ("60", "20")
    twice = np.concatenate([LINE, LINE])
    skadmm.TrendFilterCV(alphas=3, cv=3).fit(twice, np.concatenate([Y, Y])).report(tmp_path / "fit.html")
    facts = facts_on((tmp_path / "fit.html").read_text(encoding="utf-8"))
    assert (facts["samples"], facts["positions"]) == ("120", "60")
    assert "features" not in facts
    model.partial_fit(X[:20], Y[:20])
    assert not hasattr(model, "n_samples_fit_")
    old = skadmm.load(next(Path(__file__).parents[1].glob("data/huber*.skadmm")))
    old.report(tmp_path / "old.html")
    assert "samples" not in facts_on((tmp_path / "old.html").read_text(encoding="utf-8"))
