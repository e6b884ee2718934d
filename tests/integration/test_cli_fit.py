"""fit, predict, compare and info MODEL on the command line."""

import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.datasets import dump_svmlight_file

import skadmm
from skadmm.cli import run
from skadmm.losses import LOSSES, Huber, SmoothedQuantile, Tweedie


def read_exactly(file):
    """A table whose numbers are read to the last digit, whatever the parser of pandas does."""
    frame = pd.read_csv(file, dtype=str)
    numbers = [name for name in frame if pd.to_numeric(frame[name], errors="coerce").notna().all()]
    return frame.assign(**{name: frame[name].map(float) for name in numbers})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6)).round(3)
    y = np.where(X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(120) > 0, "yes", "no")
    return pd.DataFrame(X, columns=list("abcdef")), y


@pytest.fixture
def csv(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = table
    X.assign(label=y).to_csv("data.csv", index=False)
    return tmp_path / "data.csv"


def test_fit_predict_info(csv, table, capsys):
    X, _ = table
    assert run(["fit", str(csv), "-o", "model.skadmm", "--alpha", "0.01", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["classes"] == ["no", "yes"]
    assert facts["gap"] <= 1e-6
    model = skadmm.load("model.skadmm")
    np.testing.assert_array_equal(model.feature_names_in_, list("abcdef"))
    assert run(["predict", "model.skadmm", str(csv), "--proba", "--target", "label", "-o", "out.csv"]) == 0
    assert "accuracy" in capsys.readouterr().err
    answer = read_exactly("out.csv")
    np.testing.assert_array_equal(answer["prediction"], model.predict(X))
    np.testing.assert_array_equal(answer["p(yes)"], model.predict_proba(X)[:, 1])
    assert run(["predict", "model.skadmm", str(csv), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"] == model.predict(X).tolist()
    assert run(["info", "model.skadmm"]) == 0
    assert "FusedLassoClassifier" in capsys.readouterr().out
    assert run(["info", "model.skadmm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["alpha"] == 0.01


def test_every_format_gives_the_same_model(csv, table, tmp_path):
    X, y = table
    codes = (y == "yes").astype(int)
    X.assign(label=codes).to_parquet("data.parquet")
    with gzip.open("data.csv.gz", "wt") as file:
        X.assign(label=codes).to_csv(file, index=False)
    with gzip.open("data.svm.gz", "wb") as file:
        dump_svmlight_file(X.to_numpy(), codes, file, zero_based=False)
    np.savez("data.npz", X=X.to_numpy(), y=codes)
    matrix = sp.csr_array(X.to_numpy())
    np.savez("sparse.npz", data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=matrix.shape, y=codes)
    coefs = []
    for name in ("data.parquet", "data.csv.gz", "data.svm.gz", "data.npz", "sparse.npz"):
        assert run(["fit", name, "-o", f"{name}.model", "--alpha", "0.01", "-q", "--tol", "1e-10"]) == 0
        coefs.append(skadmm.load(f"{name}.model").coef_)
    for coef in coefs[1:]:
        np.testing.assert_allclose(coef, coefs[0], rtol=1e-9, atol=1e-10)


def test_cross_validation_graphs_and_groups(csv, capsys, tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\n# the rest alone\nd,e\n")
    arguments = ["fit", str(csv), "-o", "cv.model", "--graph", "edges.csv", "--alphas", "4", "--folds", "3", "-q"]
    assert run([*arguments, "--selection", "1se", "--alphas", "8"]) == 0
    shown = capsys.readouterr().out
    model = skadmm.load("cv.model")
    chosen = model.cv_mean_[model.alphas_.tolist().index(model.alpha_)]
    assert chosen > model.cv_mean_.min()
    assert f"cv_loss             {chosen:.6g}" in shown
    assert run(["info", "cv.model"]) == 0
    assert f"cv_loss             {chosen:.6g}" in capsys.readouterr().out
    assert len(model.alphas_) == 8
    assert model.graph_.edges.tolist() == [[0, 1], [1, 2], [3, 4]]
    arguments = ["fit", str(csv), "-o", "score.model", "--alphas", "4", "--folds", "3", "-q"]
    assert run([*arguments, "--scoring", "roc_auc", "--l1-ratio", "0.3,0.8"]) == 0
    model = skadmm.load("score.model")
    assert model.alphas_.shape == (2, 4)
    assert f"cv_score            {model.cv_mean_.max():.6g}" in capsys.readouterr().out
    (tmp_path / "groups.json").write_text('[["a", "b", "c"], [3, 4, 5]]')
    arguments = ["fit", str(csv), "-o", "group.model", "--model", "group-classifier", "--alpha", "0.01", "-q"]
    assert run([*arguments, "--groups", "groups.json"]) == 0
    assert len(skadmm.load("group.model").groups_) == 2


def test_a_loss_with_parameters(csv, table, capsys):
    X, _ = table
    X.assign(cost=np.maximum(X["a"] + 1.0, 0.0)).to_csv("costs.csv", index=False)
    fit = ["fit", "costs.csv", "-o", "m", "--model", "fused-regressor", "--alpha", "0.01", "--force", "-q"]
    losses = {
        "tweedie(1.3)": Tweedie(1.3), "tweedie(power=1.3)": Tweedie(1.3), "smoothed-quantile(0.9, width=2e-1)":
        SmoothedQuantile(0.9, 0.2), "huber()": Huber(1.0),
    }  # fmt: skip
    for text, loss in losses.items():
        assert run([*fit, "--loss", text]) == 0
        assert skadmm.load("m").loss == loss
        assert run([*fit, "--set", f"loss={text}"]) == 0
        assert skadmm.load("m").loss == loss
    assert run([*fit, "--loss", "tweedie(1.3)"]) == 0
    assert run(["info", "m"]) == 0
    assert re.search(r"loss= +tweedie\(1\.3\)\n", capsys.readouterr().out)
    compare = ["compare", "costs.csv", "--methods", "opg-admm", "--passes", "1", "--repeats", "1", "--json"]
    objectives = []
    for loss in ("huber(0.01)", "huber(1)"):
        assert run([*compare, "--loss", loss]) == 0
        objectives.append(json.loads(capsys.readouterr().out)["methods"][0]["objective"])
    assert objectives[0] < objectives[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twedie(1.3)", "Did you mean 'tweedie'?"),
        ("tweedie(powr=1.3)", "there is no 'powr'; tweedie takes power=1.5. Did you mean 'power'?"),
        ("smoothed-quantile(0.5, 0.1, 3)", "3 numbers without a name; smoothed-quantile takes q=0.5, width=0.1"),
        ("quantile(0.5, q=0.5)", "q is given twice; quantile takes q=0.5"),
        ("squared(1)", "squared has no parameters, got 1 number"),
        ("huber(delta=True)", "parameters are numbers; huber takes delta=1.0"),
        ("huber(**{})", "parameters are numbers"),
        ("huber(__import__('os').getcwd())", "parameters are numbers"),
        ("huber(1)(2)", "parameters are numbers"),
        ("huber(1", "it takes a name, or a name and numbers such as tweedie(power=1.3)"),
        ("tweedie(3)", "power=3"),
    ],
)
def test_a_loss_with_wrong_parameters(csv, capsys, text, message):
    for command in (["fit", "data.csv", "-o", "m", "--model", "fused-regressor"], ["compare", "data.csv"]):
        assert run([*command, "--loss", text]) == 2
        assert message in capsys.readouterr().err


def test_every_loss_and_penalty_by_name(csv, table, capsys):
    X, _ = table
    X.to_csv("numbers.csv", index=False)
    np.exp(X).to_csv("positive.csv", index=False)
    expit(X).to_csv("shares.csv", index=False)
    for name, loss in LOSSES.items():
        if loss.coupled:
            continue
        kind, data = ("classifier", "data.csv") if loss.labels else ("regressor", "numbers.csv")
        data = "positive.csv" if loss.target_minimum == 0.0 else data
        data = "shares.csv" if loss.target_maximum == 1.0 else data
        arguments = ["fit", data, "-o", f"{name}.model", "--model", f"fused-{kind}", "--loss", name, "--alpha", "0.1"]
        assert run([*arguments, "-q"]) == 0
        assert skadmm.load(f"{name}.model").loss == name
    arguments = ["fit", "numbers.csv", "-o", "l2.model", "--model", "lasso-regressor", "--penalty", "l2", "-q"]
    assert run([*arguments, "--alpha", "0.1"]) == 0
    assert skadmm.load("l2.model").penalty == "l2"
    capsys.readouterr()
    assert run(["fit", "numbers.csv", "-o", "m", "--model", "fused-regressor", "--penalty", "l2"]) == 2
    assert "--penalty l2: --model fused-regressor has its own penalty" in capsys.readouterr().err
    assert run(["fit", "numbers.csv", "-o", "m", "--model", "lasso-regressor", "--penalty", "box", "--alpha", "1"]) == 2
    assert "penalty='box' has no strength" in capsys.readouterr().err
    assert run(["fit", "data.csv", "-o", "m", "--loss", "squared", "--alpha", "1"]) == 2
    assert "loss='squared': it takes one of 'logistic', 'squared-hinge'" in capsys.readouterr().err


def test_exposure_and_offset(csv, capsys):
    """Counts with an exposure, from a file to predictions; an offset is its logarithm."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(0.5 * rng.standard_normal((80, 3)), columns=["a", "b", "c"])
    table["years"] = rng.uniform(0.1, 2.0, 80)
    table["log"] = np.log(table["years"])
    table["claims"] = rng.poisson(table["years"] * np.exp(table["a"])).astype(float)
    table.to_csv("claims.csv", index=False)
    told = ["--model", "fused-regressor", "--loss", "poisson", "--alpha", "0.01", "-q"]
    assert run(["fit", "claims.csv", "-o", "one.model", *told, "--exposure", "years", "--drop", "log", "--json",
                "--report", "one.html"]) == 0  # fmt: skip
    score = json.loads(capsys.readouterr().out)["training_d2"]
    assert re.search(rf"D² on these data</t[hd]><td[^>]*>{score:.4f}", Path("one.html").read_text(encoding="utf-8"))
    assert run(["fit", "claims.csv", "-o", "two.model", *told, "--offset", "log", "--drop", "years"]) == 0
    one, two = skadmm.load("one.model"), skadmm.load("two.model")
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-8)
    capsys.readouterr()
    assert run(["predict", "one.model", "claims.csv", "--target", "claims", "--exposure", "years", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(told["prediction"], one.predict(table[["a", "b", "c"]], offset=table["log"]))
    assert told["score"] == pytest.approx(one.score(table[["a", "b", "c"]], table["claims"], offset=table["log"]))
    assert run(["fit", "claims.csv", "-o", "m", "--model", "fused-regressor", "--exposure", "a"]) == 2
    assert "--exposure a: row" in capsys.readouterr().err
    assert run(["fit", "claims.csv", "-o", "m", "--model", "fused-regressor", "--offset", "lg"]) == 2
    assert "--offset: " in capsys.readouterr().err


def test_a_multinomial_model_of_three_classes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=list("abc"))
    frame["kind"] = np.array(["oak", "elm", "fir"])[frame[["a", "b", "c"]].to_numpy().argmax(axis=1)]
    frame.to_csv("three.csv", index=False)
    arguments = ["fit", "three.csv", "-o", "three.model", "--alpha", "0.01", "-q", "--multi-class"]
    assert run([*arguments, "multinomial"]) == 0
    model = skadmm.load("three.model")
    assert model.multi_class == "multinomial"
    assert model.coef_.shape == (3, 3)
    capsys.readouterr()
    assert run([*arguments, "both", "--force"]) == 2
    assert "multi_class='both'" in capsys.readouterr().err
    assert run([*arguments, "ovr", "--model", "fused-regressor", "--force"]) == 2
    assert "--multi-class ovr: --model fused-regressor has no classes" in capsys.readouterr().err


def test_compare(csv, capsys, tmp_path):
    arguments = ["compare", str(csv), "--methods", "san-admm,sa-iu-admm", "--passes", "5", "--repeats", "1"]
    assert run([*arguments, "--json", "--out", "runs.csv"]) == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert methods[0]["method"] == "san-admm"
    assert set(pd.read_csv("runs.csv")["method"]) == {"san-admm", "sa-iu-admm"}


def test_compare_with_three_classes(csv, table, capsys):
    X, _ = table
    X.assign(label=np.array(["a", "b", "c"])[np.arange(len(X)) % 3]).to_csv("three.csv", index=False)
    arguments = ["compare", "three.csv", "--methods", "san-admm", "--passes", "3", "--repeats", "1", "--json"]
    assert run(arguments) == 0
    default = capsys.readouterr()
    assert "the target has more than two values: --loss multinomial" in default.err
    assert run([*arguments, "--loss", "multinomial"]) == 0
    objective = [json.loads(said)["methods"][0]["objective"] for said in (default.out, capsys.readouterr().out)]
    assert objective[0] == objective[1]
    assert run([*arguments, "--loss", "logistic"]) == 2
    said = capsys.readouterr().err
    assert "target has 3 classes ('a', 'b', 'c'): the logistic loss takes exactly two; loss='multinomial'" in said


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "nowhere.csv", "-o", "m"], 1, "no such file"),
        (["fit", "data.csv"], 2, "--out"),
        (["fit", "data.csv", "-o", "m", "--model", "tree"], 2, "--model tree"),
        (["fit", "data.csv", "-o", "m", "--model", "fused-regresor"], 2, "Did you mean 'fused-regressor'?"),
        (["fit", "data.csv", "-o", "m", "--target", "z"], 2, "no column 'z'"),
        (["fit", "data.csv", "-o", "m", "--alpha", "-1"], 2, "alpha=-1"),
        (["fit", "data.csv", "-o", "m", "--alpha", "1", "--l1-ratio", "2"], 2, "l1_ratio=2"),
        (["fit", "data.csv", "-o", "m", "--alpha", "1", "--l1-ratio", "0.1,0.5"], 2, "takes one number"),
        (["fit", "data.csv", "-o", "m", "--l1-ratio", "much"], 2, "--l1-ratio much"),
        (["fit", "data.csv", "-o", "m", "--scoring", "nice"], 2, "nice"),
        (["fit", "data.csv", "-o", "m", "--alpha", "1", "--graph", "4x4"], 2, "16 nodes"),
        (["fit", "data.csv", "-o", "m", "--graph", "nothing.csv"], 1, "no such file"),
        (["fit", "data.csv", "-o", "m", "--graph", "tree"], 2, "--graph tree: it takes chain"),
        (["fit", "data.csv", "-o", "m", "--graph", "one.csv"], 2, "line 1 has one column"),
        (["fit", "data.csv", "-o", "m", "--graph", "heavy.csv"], 2, "line 2 has the weight 'much'"),
        (
            ["fit", "data.csv", "-o", "m", "--model", "group-classifier", "--groups", "list.json"],
            2,
            "it takes [[columns], …], [a label per column], {name: [columns]} or {column: label}",
        ),
        (["fit", "gaps.csv", "-o", "m", "--alpha", "1"], 2, "NaN"),
        (["fit", "text.csv", "-o", "m", "--alpha", "1"], 2, "column 'a' holds 'much', which is not a number"),
        (["compare", "data.csv", "--unknown", "drop"], 2, "--unknown drop: it takes raise or ignore"),
        (["fit", "data.csv", "-o", "no/where/m", "--alpha", "1"], 1, "no such folder"),
        (["fit", "data.csv", "-o", "taken", "--alpha", "1"], 2, "exists already"),
        (["fit", "taken", "-o", "m", "--alpha", "1"], 2, "file extension is not known"),
        (["fit", "broken.parquet", "-o", "m"], 1, "cannot be read as parquet"),
        (["predict", "taken", "data.csv"], 2, "not a skadmm model"),
        (["predict", "data.csv", "archive"], 2, "The model comes first: skadmm predict archive data.csv"),
        (["predict", "nowhere", "data.csv"], 1, "no such file"),
        (["info", "taken"], 2, "not a skadmm model"),
        (["compare", "data.csv", "--methods", "sa-adm"], 2, "Did you mean"),
    ],
)
def test_errors_are_one_line_and_write_nothing(arguments, code, message, csv, capsys, tmp_path):
    (tmp_path / "taken").write_text("something else")
    (tmp_path / "broken.parquet").write_text("something else")
    zipfile.ZipFile(tmp_path / "archive", "w").close()
    (tmp_path / "one.csv").write_text("a\n")
    (tmp_path / "heavy.csv").write_text("a,b,1\nb,c,much\n")
    (tmp_path / "list.json").write_text("3\n")
    (tmp_path / "gaps.csv").write_text("a,b\n1,0\n,1\n2,0\n3,1\n")
    (tmp_path / "text.csv").write_text("a,b\n1,0\nmuch,1\n2,0\n3,1\n")
    assert run(arguments) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert (tmp_path / "taken").read_text() == "something else"
    assert not (tmp_path / "m").exists()


def test_columns_that_are_no_features(csv, table, capsys):
    X, y = table
    X.assign(id="p0", label=y).to_csv("text.csv", index=False)
    assert run(["fit", "text.csv", "-o", "m.skadmm", "--alpha", "0.01"]) == 2
    assert "column 'id' holds 'p0', which is not a number: encode it, or --drop id" in capsys.readouterr().err
    assert run(["fit", "text.csv", "-o", "m.skadmm", "--alpha", "0.01", "--drop", "id,b"]) == 0
    assert list(skadmm.load("m.skadmm").feature_names_in_) == list("acdef")
    capsys.readouterr()
    assert run(["fit", "text.csv", "-o", "m2.skadmm", "--drop", "di"]) == 2
    assert "no column 'di'" in capsys.readouterr().err
    assert run(["fit", "text.csv", "-o", "m2.skadmm", "--target", "lable"]) == 2
    assert "Did you mean 'label'?" in capsys.readouterr().err


def test_numbers_for_a_classifier(csv, table, capsys):
    X, _ = table
    X.to_csv("numbers.csv", index=False)
    assert run(["fit", "numbers.csv", "-o", "m.skadmm", "--alpha", "0.01"]) == 2
    assert "try --model fused-regressor" in capsys.readouterr().err


def test_texts_for_a_regressor(csv, capsys):
    assert run(["fit", str(csv), "-o", "m.skadmm", "--alpha", "0.01", "--model", "fused-regressor"]) == 2
    said = capsys.readouterr().err
    assert "--model fused-regressor takes numbers: for classes, --model fused-classifier" in said
    assert "the target holds '" in said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("where", ["--on-disk", "--in-memory"])
def test_a_column_of_texts_and_its_remedies(csv, table, capsys, ending, where):
    X, y = table
    frame = X.assign(town=np.where(X["a"] > 0, "Bern", "Graz"), label=y)
    frame.to_csv("towns.csv", index=False)
    frame.to_parquet("towns.parquet")
    fit = ["fit", f"towns.{ending}", "--alpha", "0.01", "-q", where, "--cache-dir", "cache", "-o"]
    assert run(["info", f"towns.{ending}", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["not numbers"] == ["town (text)", "label (text)"]
    assert facts["names"] == [*"abcdef", "town"]
    assert facts["bytes as blocks"] == pytest.approx(8 * len(frame) * 7, rel=0.2)  # six columns of numbers and a target
    assert facts["bytes on disk"] == Path(f"towns.{ending}").stat().st_size
    assert run(["info", f"towns.{ending}"]) == 0
    assert f"on disk             {facts['bytes on disk'] / 1000:.3g} kB" in capsys.readouterr().out
    assert run([*fit, "m.skadmm"]) == 2
    said = capsys.readouterr().err
    assert f"column 'town' holds {frame['town'][0]!r}, which is not a number" in said
    assert "after row" not in said
    assert run(["data", "convert", f"towns.{ending}", "blocks"]) == 1
    assert "--drop town" in capsys.readouterr().err
    for remedy in ("--drop town", """--set 'categorical_features=["town"]'""",
                   """--set 'categorical_features={"town":"ordered"}'"""):  # fmt: skip
        assert remedy in said
        name = f"m{len(remedy)}.skadmm"
        assert run([*fit, name, *remedy.replace("'", "").split()]) == 0
        assert ("town" in skadmm.load(name).feature_names_in_) == ("categorical" in remedy)


def test_coefficients_with_their_clusters_and_groups(csv, table, capsys):
    assert run(["fit", str(csv), "-o", "model.skadmm", "--alpha", "0.05", "-q"]) == 0
    told = capsys.readouterr().out
    model = skadmm.load("model.skadmm")
    X, y = table
    assert f"{model.score(X, y):.6g}" in next(row for row in told.splitlines() if row.startswith("training_accuracy"))
    assert "status              solved" in told
    assert run(["coef", "model.skadmm", "--csv"]) == 0
    frame = read_exactly(io.StringIO(capsys.readouterr().out))
    assert frame["feature"].tolist() == list("abcdef")
    np.testing.assert_array_equal(frame["coef"], np.ravel(model.coef_))
    np.testing.assert_array_equal(frame["cluster"], model.clusters_)
    assert run(["coef", "model.skadmm"]) == 0
    shown = capsys.readouterr().out
    assert f"{np.count_nonzero(model.coef_)} of 6 features" in shown
    assert run(["coef", "model.skadmm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coef"] == np.ravel(model.coef_).tolist()
    Path("groups.json").write_text('[["a", "b"], ["b", "c", "d"], ["e", "f"]]')
    fit = ["fit", str(csv), "-o", "groups.skadmm", "--model", "group-classifier", "--groups", "groups.json", "-q"]
    assert run([*fit, "--alpha", "0.02"]) == 0
    capsys.readouterr()
    assert run(["coef", "groups.skadmm", "--csv"]) == 0
    assert pd.read_csv(io.StringIO(capsys.readouterr().out))["groups"].tolist() == ["0", "0;1", "1", "1", "2", "2"]


def test_groups_keep_their_names(csv, table, capsys):
    X, y = table
    named = {"signal": ["a", "b", "c"], "noise": ["d", "e", "f"]}
    Path("groups.json").write_text(json.dumps(named))
    fit = ["fit", str(csv), "-o", "groups.skadmm", "--model", "group-classifier", "--groups", "groups.json", "-q"]
    assert run([*fit, "--alpha", "0.1", "--report", "fit.html"]) == 0
    model = skadmm.load("groups.skadmm")
    assert model.group_names_ == ["signal", "noise"]
    assert model.active_groups_.tolist() == [True, False]
    capsys.readouterr()
    assert run(["coef", "groups.skadmm"]) == 0
    assert "active groups: signal" in capsys.readouterr().out.splitlines()
    assert run(["coef", "groups.skadmm", "--csv"]) == 0
    assert pd.read_csv(io.StringIO(capsys.readouterr().out))["groups"].tolist() == ["signal"] * 3 + ["noise"] * 3
    assert '<th scope="row">active groups</th><td>signal</td>' in Path("fit.html").read_text(encoding="utf-8")
    labels = {column: name for name, columns in named.items() for column in columns}
    weights = {"signal": 5.0, "noise": 0.5}
    one = skadmm.GroupLassoClassifierCV(groups=labels, group_weights=weights, alphas=3, cv=3).fit(X, y)
    assert one.group_names_ == ["noise", "signal"]
    two = skadmm.GroupLassoClassifier(one.alpha_, groups=named, group_weights=[5.0, 0.5]).fit(X, y)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)
    assert not hasattr(two.set_params(groups=list(named.values())).fit(X, y), "group_names_")
    for wrong, said in (({"signal": 1.0, "other": 2.0}, "'other'"), ({"signal": 1.0}, "1 of 2 names")):
        with pytest.raises(ValueError, match=said):
            skadmm.GroupLassoClassifier(groups=named, group_weights=wrong).fit(X, y)


def test_the_class_that_positive_coefficients_favour(csv, table, capsys):
    line = "positive coefficients favour class: yes"
    fit = ["fit", str(csv), "--alpha", "0.05", "-q", "-o"]
    assert run([*fit, "model.skadmm", "--report", "fit.html"]) == 0
    assert line in capsys.readouterr().out.splitlines()
    model = skadmm.load("model.skadmm")
    assert model.predict(pd.DataFrame(100 * np.sign(model.coef_), columns=list("abcdef"))) == ["yes"]
    assert run(["coef", "model.skadmm"]) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert line[1:] in Path("fit.html").read_text(encoding="utf-8")
    assert run(["info", "model.skadmm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["positive_class"] == "yes"
    X, y = table
    X.assign(label=np.where(X["f"] > 1.0, "perhaps", y)).to_csv("three.csv", index=False)
    assert run(["fit", "three.csv", "--alpha", "0.05", "-q", "-o", "three.skadmm", "--report", "three.html"]) == 0
    assert run(["coef", "three.skadmm"]) == 0
    assert "favour" not in capsys.readouterr().out + Path("three.html").read_text(encoding="utf-8")


def test_an_identifier_beside_each_prediction(csv, table, capsys):
    X, y = table
    X.assign(who=[f"row {i}, {i}" for i in range(len(X))], label=y).to_csv("named.csv", index=False)
    assert run(["fit", str(csv), "-o", "model.skadmm", "--alpha", "0.05", "-q"]) == 0
    assert run(["predict", "model.skadmm", "named.csv", "--id", "who", "-o", "out.csv"]) == 0
    out = pd.read_csv("out.csv")
    assert out.columns.tolist() == ["who", "prediction"]
    assert out["who"].iloc[3] == "row 3, 3"
    np.testing.assert_array_equal(out["prediction"], skadmm.load("model.skadmm").predict(X))
    capsys.readouterr()
    assert run(["predict", "model.skadmm", "named.csv", "--id", "whom"]) == 2
    assert "there is no column 'whom'" in capsys.readouterr().err


def test_columns_dropped_from_a_comparison(csv, table, capsys):
    X, y = table
    X.assign(who="somebody", label=y).to_csv("named.csv", index=False)
    options = ["--methods", "sa-iu-admm", "--passes", "2", "--repeats", "1", "--json"]
    assert run(["compare", "named.csv", *options]) == 2
    assert "--drop who" in capsys.readouterr().err
    assert run(["compare", "named.csv", "--drop", "who", *options]) == 0
    ended = json.loads(capsys.readouterr().out)["methods"][0]
    assert ended["run_passes"] == pytest.approx(2.0)
    assert ended["selection_passes"] > 0.0


def test_a_comparison_on_a_network_with_other_names(csv, capsys):
    Path("edges.csv").write_text("a,b\nb,c\nc,elsewhere\n")
    options = ["--graph", "edges.csv", "--methods", "sa-iu-admm", "--passes", "2", "--repeats", "1", "--json"]
    assert run(["compare", str(csv), *options]) == 2
    assert "--unknown ignore" in capsys.readouterr().err
    assert run(["compare", str(csv), *options, "--unknown", "ignore"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["methods"]
    assert captured.err.startswith("skadmm: graph: 1 of 4 names")


def test_passes_of_the_run_and_of_the_selection_are_on_one_line(csv, capsys):
    options = ["--alpha", "0.05", "--method", "sa-iu-admm", "--max-passes", "9", "--tol", "1", "-q"]
    assert run(["fit", str(csv), "-o", "model.skadmm", *options]) == 0
    first = capsys.readouterr().out
    assert re.search(r"^passes +\d+(\.\d+)? \(\+\d+(\.\d+)? to select the step\)$", first, re.MULTILINE)
    assert "selection_passes" not in first
    assert run(["info", "model.skadmm"]) == 0
    assert re.search(r"^passes .* to select the step\)$", capsys.readouterr().out, re.MULTILINE)


def test_a_file_of_edges_may_have_any_header_above_weights(csv):
    Path("edges.csv").write_text("gene_1,gene_2,confidence\na,b,2\nb,c,1\n")
    assert run(["fit", str(csv), "-o", "model.skadmm", "--alpha", "0.05", "--graph", "edges.csv", "-q"]) == 0
    np.testing.assert_array_equal(skadmm.load("model.skadmm").graph_.edges, [[0, 1], [1, 2]])


def test_a_file_of_edges_may_have_a_header(csv, capsys):
    Path("edges.csv").write_text("source,target,weight\na,b,2\nb,c,1\n")
    assert run(["fit", str(csv), "-o", "model.skadmm", "--alpha", "0.05", "--graph", "edges.csv", "-q"]) == 0
    graph = skadmm.load("model.skadmm").graph_
    np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2]])
    np.testing.assert_array_equal(graph.weights, [2.0, 1.0])


def test_a_folder_of_blocks_is_fitted_where_it_is(csv, table, capsys):
    X, y = table
    X.assign(label=np.where(y == "yes", 1.0, -1.0)).to_csv("numbers.csv", index=False)
    assert run(["data", "convert", "numbers.csv", "blocks", "--ones", "--block-rows", "50", "-q"]) == 0
    capsys.readouterr()
    options = ["--alpha", "0.05", "--json"]
    assert run(["fit", "blocks", "-o", "folder.skadmm", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run(["fit", "numbers.csv", "-o", "file.skadmm", *options]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert told["training_accuracy"] == expected["training_accuracy"]
    one, other = skadmm.load("folder.skadmm"), skadmm.load("file.skadmm")
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert run(["predict", "folder.skadmm", "blocks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"] == one.predict(X).tolist()
    assert run(["fit", "blocks", "-o", "other.skadmm", "--target", "label"]) == 2
    assert "a target of its own" in capsys.readouterr().err
    Path("empty").mkdir()
    assert run(["fit", "empty", "-o", "other.skadmm"]) == 1


def test_other_parameters_are_set_by_name(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((120, 3)), columns=list("abc")).assign(
        region=rng.choice(list("nsew"), 120)
    )
    frame["y"] = frame["a"] - frame["b"] + 2.0 * (frame["region"] == "n") + 0.1 * rng.standard_normal(120)
    frame.to_csv(tmp_path / "t.csv", index=False)
    common = ["fit", str(tmp_path / "t.csv"), "--model", "fused-regressor", "--alpha", "0.01", "-q", "-o"]
    assert run([*common, str(tmp_path / "p"), "--drop", "region", "--set", "positive=true"]) == 0
    model = skadmm.load(tmp_path / "p")
    assert model.positive is True
    assert model.coef_.min() == 0.0
    for given in ('["region"]', "from_dtype"):
        assert run([*common, str(tmp_path / given[2:5]), "--set", f"categorical_features={given}"]) == 0
    assert run(["coef", str(tmp_path / given[2:5])]) == 0
    assert "region=n" in capsys.readouterr().out
    assert run([*common, str(tmp_path / "q"), "--set", "positiv=true"]) == 2
    assert "Did you mean 'positive'" in capsys.readouterr().err
    assert run([*common, str(tmp_path / "q"), "--set", "positive"]) == 2


def test_several_targets_are_several_outputs(csv, table, capsys):
    X, _ = table
    X.assign(u=X["a"] - X["b"], v=X["c"]).to_csv("two.csv", index=False)
    options = ["--model", "fused-regressor", "--alpha", "0.001", "-q"]
    assert run(["fit", "two.csv", "-o", "two.model", "--target", "u", "--target", "v", *options]) == 0
    model = skadmm.load("two.model")
    assert model.coef_.shape == (2, X.shape[1])
    capsys.readouterr()
    assert run(["predict", "two.model", "two.csv", "--target", "u", "--target", "v", "-o", "out.csv"]) == 0
    assert "R² 1.0000 on 120 rows" in capsys.readouterr().err
    written = pd.read_csv("out.csv")
    assert list(written) == ["prediction[0]", "prediction[1]"]
    assert np.allclose(written.to_numpy(), model.predict(X))
    assert run(["coef", "two.model", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("feature,coef[u],coef[v]")
    assert run(["fit", "two.csv", "-o", "disk.model", "--target", "u", "--target", "v", "--on-disk", *options]) == 0
    assert np.allclose(skadmm.load("disk.model").coef_, model.coef_, atol=1e-3)
    assert run(["fit", "two.csv", "-o", "m", "--target", "u", "--target", "w", *options]) == 2
    assert "there is no column 'w'" in capsys.readouterr().err


def test_a_nuclear_norm_over_several_targets(csv, table, capsys):
    X, _ = table
    X.assign(u=X["a"], v=2.0 * X["a"]).to_csv("two.csv", index=False)
    options = ["--model", "lasso-regressor", "--alpha", "0.01", "--set", "output_penalty=nuclear"]
    assert run(["fit", "two.csv", "-o", "two.model", "--target", "u", "--target", "v", *options]) == 0
    assert skadmm.load("two.model").rank_ == 1
    capsys.readouterr()


def test_npy_files_have_columns_without_names(csv, table, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))
    X, y = table
    codes = (y == "yes").astype(float)
    np.save("last.npy", np.column_stack([X, codes]))
    np.save("heavy.npy", np.column_stack([X, np.ones(len(X)), codes]))
    np.save("third.npy", np.insert(X.to_numpy(), 2, codes, axis=1))
    wanted = skadmm.FusedLassoClassifier(alpha=0.01).fit(X.to_numpy(), codes)
    assert run(["data", "convert", "third.npy", "blocks", "--target", "2", "--ones"]) == 0
    third = ["third.npy", "--target", "2"]
    for k, source in enumerate([["last.npy"], third, ["last.npy", "--on-disk"], [*third, "--on-disk"], ["blocks"]]):
        assert run(["fit", *source, "-o", f"m{k}", "--alpha", "0.01", "-q"]) == 0
        np.testing.assert_allclose(skadmm.load(f"m{k}").coef_, wanted.coef_, atol=1e-5)
    capsys.readouterr()
    assert run(["predict", "m0", *third, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"] == wanted.predict(X.to_numpy()).tolist()
    for where in ("--on-disk", "--in-memory"):
        assert (
            run(["fit", "heavy.npy", "-o", f"m{where}", "--alpha", "0.01", "--drop", "0", "--weight", "6", where]) == 0
        )
        assert skadmm.load(f"m{where}").n_features_in_ == 5
        capsys.readouterr()
        assert run(["fit", "last.npy", "-o", "n", "--target", "lab", where]) == 2
        assert "there is no column 'lab': an npy file has no named columns" in capsys.readouterr().err
        assert run(["fit", "last.npy", "-o", "n", "--target", "1", "--target", "2", where]) == 2
        assert "--target 2: several targets are columns of a CSV" in capsys.readouterr().err


@pytest.fixture
def gaps(table, tmp_path, monkeypatch):
    """A table whose targets (numbers, classes 0 and 1, texts), weights and feature g each miss values."""
    monkeypatch.chdir(tmp_path)
    X, y = table
    frame = X.assign(number=X["a"] + X["b"], whole=(y == "yes").astype(float), weight=1.0, g=0.5, label=y)
    frame.loc[3, ["number", "whole", "label"]] = None
    frame.loc[7, ["number", "label"]] = None
    frame.loc[1, "weight"] = None
    frame.loc[2, "g"] = None
    frame.to_csv("gaps.csv", index=False)
    frame.to_parquet("gaps.parquet", index=False)
    Path("folder").mkdir()
    frame.to_parquet("folder/gaps.parquet", index=False)
    return frame


OTHERS = {"number": "whole,weight,g,label", "whole": "number,weight,g,label", "label": "number,whole,weight,g"}


@pytest.mark.parametrize("data", ["gaps.csv", "gaps.parquet", "folder"])
@pytest.mark.parametrize(("target", "kind"), [("number", "regressor"), ("label", "classifier")])
def test_rows_without_a_target_do_not_count_in_the_score(gaps, capsys, data, target, kind):
    gaps.dropna(subset=[target]).to_csv("known.csv", index=False)
    options = ["--target", target, "--drop", OTHERS[target], "--model", f"fused-{kind}", "--alpha", "0.05", "-q"]
    assert run(["fit", "known.csv", "-o", "m.skadmm", *options]) == 0
    model, known = skadmm.load("m.skadmm"), gaps.dropna(subset=[target])
    score = model.score(known[list("abcdef")], known[target])
    capsys.readouterr()
    assert run(["predict", "m.skadmm", data, "--target", target]) == 0
    assert f" {score:.4f} on 118 rows (2 without a target)" in capsys.readouterr().err
    assert run(["predict", "m.skadmm", data, "--target", target, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["score"] == pytest.approx(score, abs=1e-12)
    assert facts["rows_without_target"] == 2
    gaps.iloc[[3, 7]].to_csv("none.csv", index=False)
    assert run(["predict", "m.skadmm", "none.csv", "--target", target]) == 0
    assert capsys.readouterr().err == "note: none.csv: no row has a target: there is no score\n"


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_the_score_under_another_loss_leaves_out_rows_without_a_target(gaps, capsys):
    known = gaps.dropna(subset=["number"])
    model = skadmm.FusedLassoRegressor(0.05, loss="huber").fit(known[list("abcdef")], known["number"])
    model.save("m.skadmm")
    for data in ("gaps.csv", "folder"):
        assert run(["predict", "m.skadmm", data, "--target", "number", "--json"]) == 0
        score = json.loads(capsys.readouterr().out)["score"]
        assert score == pytest.approx(model.score(known[list("abcdef")], known["number"]), abs=1e-9)


@pytest.mark.parametrize("data", ["gaps.csv", "gaps.parquet"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("label", "the column 'label' has missing values, the first in row 3"),
        ("whole", "row 3: the target holds NaN or infinity"),
        ("number", "row 3: the target holds NaN or infinity"),
    ],
)
def test_a_missing_target_is_named_with_its_row(gaps, capsys, data, target, said):
    options = [data, "--target", target, "--drop", OTHERS[target]]
    kind = "regressor" if target == "number" else "classifier"
    for command in (
        ["fit", *options, "-o", "m.skadmm", "--model", f"fused-{kind}"],
        ["fit", *options, "-o", "m.skadmm", "--model", f"fused-{kind}", "--on-disk", "-q"],
        ["compare", *options],
    ):
        assert run(command) == 2
        assert capsys.readouterr().err == f"skadmm: {data}: {said}\n"


@pytest.mark.parametrize("data", ["gaps.csv", "folder"])
def test_a_report_names_a_missing_target(gaps, capsys, data):
    skadmm.FusedLassoRegressor(0.05).fit(gaps[list("abcdef")], gaps["a"]).save("m.skadmm")
    assert run(["report", "m.skadmm", data, "-o", "m.html", "--target", "number"]) == 2
    assert capsys.readouterr().err == f"skadmm: {data}: row 3: the target holds NaN or infinity\n"


def test_a_missing_weight_is_named_with_its_row(gaps, capsys):
    options = ["gaps.csv", "-o", "m.skadmm", "--target", "a", "--drop", "number,whole,g,label"]
    assert run(["fit", *options, "--model", "fused-regressor", "--weight", "weight"]) == 2
    assert capsys.readouterr().err == "skadmm: --weight weight: row 1 has nan; it takes finite numbers ≥ 0\n"


def test_predict_does_not_advise_to_drop_a_feature(gaps, capsys):
    skadmm.FusedLassoRegressor(0.05).fit(gaps[["a", "g"]].fillna(0.0), gaps["a"]).save("m.skadmm")
    assert run(["predict", "m.skadmm", "gaps.csv"]) == 2
    said = capsys.readouterr().err
    assert "'g' (1 of 120 rows, the first is row 2): impute the values, or leave out these rows\n" in said


def test_predict_says_how_the_target_of_an_npy_file_is_left_out(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", table[0].to_numpy())
    assert run(["fit", "a.npy", "-o", "m.skadmm", "--model", "fused-regressor", "--alpha", "0.1", "-q"]) == 0
    capsys.readouterr()
    assert run(["predict", "m.skadmm", "a.npy"]) == 2
    said = "skadmm: a.npy: it has 6 columns, and the model takes 5 features: --target 5 leaves out the last one"
    assert capsys.readouterr().err.startswith(said)
    assert run(["predict", "m.skadmm", "a.npy", "--target", "5"]) == 0
    np.save("b.npy", table[0].to_numpy()[:, :3])
    assert run(["predict", "m.skadmm", "b.npy"]) == 2
    assert "it has 3 columns, and the model takes 5 features: give a file" in capsys.readouterr().err
    assert run(["info", "a.npy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["columns"] == 6
    assert "features" not in facts
