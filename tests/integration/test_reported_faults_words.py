"""Messages, warnings and names in outputs that a user reported as missing or misleading."""

import json

import numpy as np
import pandas as pd
import pytest

from skadmm import FusedLassoRegressor, GeneralizedLassoRegressor, GroupLassoRegressor, ModelFileError, load
from skadmm.cli import run
from skadmm.losses import LOSSES, Huber, Tweedie
from skadmm.regularizers import REGULARIZERS, ElasticNet

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((60, 6)), columns=[f"f{j}" for j in range(6)])
Y = X["f0"] + X["f1"] + 0.1 * RNG.standard_normal(60)


def test_tables_without_rows(tmp_path, capsys):
    import polars as pl

    frame = X.assign(y=Y)
    (tmp_path / "oe").mkdir()
    frame[:0].to_parquet(tmp_path / "oe" / "a.parquet")
    for table in (tmp_path / "oe", pl.from_pandas(frame[:0]).lazy()):
        with pytest.raises(ValueError, match=r"^(.*oe|X): the table has no rows$"):
            FusedLassoRegressor().fit(table, "y", drop=["f5"])
    FusedLassoRegressor(0.1).fit(X, Y).save(tmp_path / "m.skadmm")
    X[:0].to_csv(tmp_path / "empty.csv", index=False)
    assert run(["predict", str(tmp_path / "m.skadmm"), str(tmp_path / "empty.csv")]) == 2
    assert "empty.csv: it has names of columns and no rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "groups", [[["f0", "f1"], ["f2"]], [0, 0, 1, 1, 1, 1], {"first": ["f0", "f1"]}, dict.fromkeys(X, "a")], ids=str
)
def test_the_help_of_groups_names_the_forms_that_work(tmp_path, capsys, groups):
    X.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "g.json").write_text(json.dumps(groups))
    fit = ["fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "m"), "--model", "group-regressor", "--alpha", "0.1"]
    assert run(["fit", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for form in ("[[columns], …]", "[a label per column]", "{name: [columns]}", "{column: label}"):
        assert form in shown
    assert run([*fit, "--groups", str(tmp_path / "g.json"), "-q"]) == 0


@pytest.mark.parametrize("power", [1.0, 3.0, True, "a", np.nan])
def test_a_wrong_power_of_tweedie_has_one_message(power):
    with pytest.raises(ValueError, match="it takes a number between 1 and 2, both excluded"):
        Tweedie(power).prepared()


def test_one_pass_is_singular():
    model = FusedLassoRegressor(0.0, fit_intercept=False).fit(X, Y)
    result = model.result_
    for passes, words in ((1.0, "1 pass"), (2.0, "2 passes"), (1.5, "1.5 passes")):
        result.passes, result.selection_passes = passes, 0.0
        assert result.cost == words


@pytest.mark.parametrize("unknown", ["raise", "ignore"])
def test_an_adjacency_table_over_some_columns_is_the_networkx_graph(unknown):
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_weighted_edges_from([("f3", "f0", 1.0), ("f0", "f1", 2.0)])  # f2, f4 and f5 are isolated
    boolean = nx.to_pandas_adjacency(graph, weight=None).astype(bool)
    assert FusedLassoRegressor(0.1, graph=boolean, unknown=unknown).fit(X, Y).graph_.weights.tolist() == [1.0, 1.0]
    fitted = [
        FusedLassoRegressor(0.1, graph=given, unknown=unknown).fit(X, Y)
        for given in (graph, nx.to_pandas_adjacency(graph))
    ]
    assert sorted(map(sorted, fitted[0].graph_.edges.tolist())) == fitted[1].graph_.edges.tolist() == [[0, 1], [0, 3]]
    np.testing.assert_allclose(fitted[1].coef_, fitted[0].coef_, atol=1e-6)


def test_an_adjacency_table_with_unknown_or_repeated_names():
    names = ["f0", "f1", "zz"]
    adjacency = pd.DataFrame(1.0 - np.eye(3), index=names, columns=names)
    with pytest.raises(ValueError, match="graph has a name that is not among the columns of X: 'zz'"):
        FusedLassoRegressor(0.1, graph=adjacency).fit(X, Y)
    with pytest.warns(UserWarning, match="graph: 1 of 3 names are not among the columns of X and are left out"):
        model = FusedLassoRegressor(0.1, graph=adjacency, unknown="ignore").fit(X, Y)
    assert model.graph_.edges.tolist() == [[0, 1]]
    twice = adjacency.set_axis(["f0", "f1", "f1"]).set_axis(["f0", "f1", "f1"], axis=1)
    with pytest.raises(ValueError, match="graph has the name 'f1' twice"):
        FusedLassoRegressor(0.1, graph=twice).fit(X, Y)


OUTPUTS = pd.DataFrame({"o1": Y, "o2": X["f0"] - X["f3"], "o3": -Y})


@pytest.mark.parametrize("cls", [FusedLassoRegressor, GroupLassoRegressor])
def test_the_names_of_outputs_are_kept_and_shown(tmp_path, cls):
    model = cls(0.05, output_penalty="rows").fit(X, OUTPUTS)
    model.save(tmp_path / "m.skadmm")
    for shown in (model, load(tmp_path / "m.skadmm")):
        assert shown.output_names_ == ["o1", "o2", "o3"]
        shown.report(tmp_path / "r.html", X, OUTPUTS)
        page = (tmp_path / "r.html").read_text()
        assert "output o1" in page
        assert "output o3" in page
        assert "output 0" not in page
    assert not hasattr(model.fit(X, OUTPUTS.to_numpy()), "output_names_")
    model.report(tmp_path / "r.html")
    assert "output 0" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("where", ["--in-memory", "--on-disk"])
def test_the_names_of_targets_are_those_of_the_outputs(tmp_path, capsys, where):
    X.join(OUTPUTS).to_parquet(tmp_path / "t.parquet")
    targets = ["--target", "o1", "--target", "o3", "--target", "o2"]
    fit = ["fit", str(tmp_path / "t.parquet"), *targets, where, "--cache-dir", str(tmp_path / "cache")]
    model, report = str(tmp_path / "m.skadmm"), tmp_path / "r.html"
    assert run([*fit, "-o", model, "--model", "fused-regressor", "--alpha", "0.05", "--report", str(report), "-q"]) == 0
    assert load(model).output_names_ == ["o1", "o3", "o2"]
    assert "output o3" in report.read_text()
    capsys.readouterr()
    assert run(["coef", model, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("feature,coef[o1],coef[o3],coef[o2],")


def test_names_of_outputs_that_do_not_belong_to_a_model_are_refused(tmp_path):
    model = FusedLassoRegressor(0.05).fit(X, OUTPUTS)
    for names in (["o1"], [1, 2, 3], "abc"):
        model.output_names_ = names
        model.save(tmp_path / "m.skadmm")
        with pytest.raises(ModelFileError, match="output_names_ and coef_ do not belong together"):
            load(tmp_path / "m.skadmm")


@pytest.mark.parametrize("kind", ["loss", "penalty"])
def test_a_model_with_an_own_loss_or_penalty_says_to_import_its_module(tmp_path, capsys, monkeypatch, kind):
    """A registered class is taken out of the registry, as where its module is not imported."""
    own = {"loss": Huber(2.0)} if kind == "loss" else {"penalty": ElasticNet(0.1)}
    path = tmp_path / "m.skadmm"
    GeneralizedLassoRegressor(0.1, A=np.eye(6), **own).fit(X, Y).save(path)
    registry = LOSSES if kind == "loss" else REGULARIZERS
    name = next(iter(own.values())).name
    monkeypatch.delitem(registry, name)
    with pytest.raises(
        ModelFileError, match=f"its {kind} '{name}' is not one of skadmm's: first import the module"
    ) as got:
        load(path)
    assert "not a valid" not in str(got.value)
    assert "Did you mean" not in str(got.value)
    assert run(["coef", str(path)]) != 0
    assert "cannot use this model" in capsys.readouterr().err


def test_a_report_without_the_offset_of_the_fit_says_so(tmp_path, capsys):
    exposure = RNG.uniform(0.5, 2.0, 60)
    counts = RNG.poisson(exposure)
    model = FusedLassoRegressor(0.1, loss="poisson").fit(X, counts, offset=np.log(exposure))
    with pytest.warns(UserWarning, match="offset=None: .* and report takes 0 for every row") as caught:
        model.report(tmp_path / "r.html", X, counts)
    assert caught[0].filename == __file__, "the warning shows the line of the user"
    model.report(tmp_path / "r.html", X, counts, offset=np.log(exposure))
    model.report(tmp_path / "r.html")
    model.save(tmp_path / "m.skadmm")
    X.assign(exposure=exposure, counts=counts).to_csv(tmp_path / "t.csv", index=False)
    report = ["report", str(tmp_path / "m.skadmm"), str(tmp_path / "t.csv"), "--target", "counts", "--force"]
    report += ["-o", str(tmp_path / "r.html")]
    capsys.readouterr()
    assert run(report) == 0
    shown = capsys.readouterr().err
    assert "without --offset or --exposure the score is for offset 0" in shown
    assert "UserWarning" not in shown
    assert run([*report, "--exposure", "exposure"]) == 0
    assert "note:" not in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma", Huber(1.0)], ids=str)
def test_weights_are_copies_of_rows_in_standard_errors(loss):
    """As the documentation says: the fit does not depend on the scale of the weights, the standard errors do."""
    counts = RNG.integers(1, 4, 60)
    y = np.exp(0.3 * Y).to_numpy()
    model = FusedLassoRegressor(0.01, loss=loss, relax=True, tol=1e-9)
    table = X.to_numpy()
    weighted = model.fit(table, y, sample_weight=counts)
    coef, errors = weighted.coef_, weighted.standard_errors_
    copies = model.fit(np.repeat(table, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(copies.standard_errors_, errors, rtol=1e-4)
    twice = model.fit(table, y, sample_weight=2 * counts)
    np.testing.assert_allclose(twice.coef_, coef, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(twice.standard_errors_, errors / np.sqrt(2), rtol=0.05)
    assert "copies of rows" in FusedLassoRegressor.__doc__
