"""Graphs and groups by name, as people have them: names that X lacks, integer names, Series, DataFrames, JSON."""

import json
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from skadmm import FusedLassoClassifier, FusedLassoRegressor, FusedLassoRegressorCV, GroupLassoRegressor, load
from skadmm.cli import run

NAMES = list("abcdef")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 6)), columns=NAMES)
    return X, X["a"] + X["b"] + 0.1 * rng.standard_normal(60)


def edges_of(model):
    names = model.graph_.names
    pairs = zip(model.graph_.edges, model.graph_.weights, model.graph_.signs, strict=True)
    return sorted((*sorted((names[i], names[j])), weight * sign) for (i, j), weight, sign in pairs)


TRIPLES = [("a", "b", 2.0), ("b", "zz", 1.0), ("c", "d", -1.0), ("q", "zz", 3.0)]
KEPT = [("a", "b", 2.0), ("c", "d", -1.0)]


def as_networkx(kind=nx.Graph):
    graph = kind()
    graph.add_weighted_edges_from(TRIPLES)
    return graph


def as_adjacency():
    return nx.to_pandas_adjacency(as_networkx())


FORMS = {
    "networkx": as_networkx,
    "directed": lambda: as_networkx(nx.DiGraph),
    "triples": lambda: TRIPLES,
    "frame": lambda: pd.DataFrame(TRIPLES, columns=["source", "target", "weight"]),
    "frame in another order": lambda: pd.DataFrame(
        [(weight, "x", v, u) for u, v, weight in TRIPLES], columns=["weight", "about", "target", "source"]
    ),
    "adjacency": as_adjacency,
}


@pytest.mark.parametrize("form", FORMS)
def test_unknown_nodes_are_left_out_when_asked(data, form):
    model = FusedLassoRegressor(alpha=0.01, graph=FORMS[form](), unknown="ignore")
    with pytest.warns(UserWarning, match="2 of 6 names are not among the columns of X") as caught:
        model.fit(*data)
    assert caught[0].filename == __file__, "the warning shows the line of the user"
    assert edges_of(model) == KEPT


@pytest.mark.parametrize("form", FORMS)
def test_unknown_nodes_are_refused_with_all_their_names(data, form):
    with pytest.raises(ValueError, match=r"2 names of 6 that are not .*'q'.*unknown='ignore'") as caught:
        FusedLassoRegressor(graph=FORMS[form]()).fit(*data)
    assert "'zz'" in str(caught.value)


def test_the_values_of_an_array_stay_with_their_edges(data):
    pairs = [edge[:2] for edge in TRIPLES]
    model = FusedLassoRegressor(graph=pairs, unknown="ignore", edge_weights=[2, 5, 1, 3], edge_signs=[1, 1, -1, 1])
    with pytest.warns(UserWarning, match="with 2 of 4 edges"):
        model.fit(*data)
    assert edges_of(model) == KEPT


def test_no_unknown_name_no_warning(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FusedLassoRegressor(alpha=0.01, graph=KEPT, unknown="ignore").fit(*data)
    assert edges_of(model) == KEPT


def test_cross_validation_takes_it_too(data):
    model = FusedLassoRegressorCV(alphas=3, cv=2, eps=0.01, graph=TRIPLES, unknown="ignore")
    with pytest.warns(UserWarning, match="are left out") as caught:
        model.fit(*data)
    assert caught[0].filename == __file__, "the warning shows the line of the user"
    assert edges_of(model) == KEPT


@pytest.mark.parametrize("model", [FusedLassoRegressor, GroupLassoRegressor])
def test_the_mode_is_checked(data, model):
    with pytest.raises(ValueError, match="unknown='drop': it takes 'raise' or 'ignore'"):
        model(unknown="drop").fit(*data)


SETS = {"first": ["a", "b", "zz"], "second": ["yy"], "third": ["c", "d"]}


@pytest.mark.parametrize("form", [SETS, list(SETS.values()), pd.Series(SETS)], ids=["dict", "list", "Series"])
def test_unknown_members_of_groups(data, form):
    with pytest.raises(ValueError, match=r"groups has 2 names of 6 .* 'zz', 'yy'"):
        GroupLassoRegressor(groups=form).fit(*data)
    model = GroupLassoRegressor(alpha=0.1, groups=form, unknown="ignore")
    with (
        pytest.warns(UserWarning, match="2 of 6 columns are in no group"),
        pytest.warns(UserWarning, match="2 of 6 names .* which empties 1 of 3 groups") as caught,
    ):
        model.fit(*data)
    assert caught[0].filename == __file__, "the warning shows the line of the user"
    assert [group.tolist() for group in model.groups_] == [[0, 1], [], [2, 3]]
    with pytest.warns(UserWarning, match="2 of 8 names are not among the columns of X and are left out$"):
        GroupLassoRegressor(groups=[["a", "zz"], ["b", "yy"], ["c", "d", "e", "f"]], unknown="ignore").fit(*data)
    assert model.active_groups_.tolist() == [True, False, False]
    with pytest.warns(UserWarning, match="2 of 6 columns are in no group"):
        known = GroupLassoRegressor(alpha=0.1, groups=[["a", "b"], ["c", "d"]]).fit(*data)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-6)


def test_groups_none_of_whose_members_is_a_column(data):
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match="none of its members is among the columns of X"),
    ):
        GroupLassoRegressor(groups=[["x"], ["y"]], unknown="ignore").fit(*data)


LABELS = dict(zip(NAMES, "uuvvww", strict=True))


@pytest.mark.parametrize(
    "labels",
    [pd.Series(LABELS).sample(frac=1, random_state=1), LABELS, np.array(list(LABELS.values())), list(LABELS.values())],
    ids=["Series", "dict", "array", "list"],
)
def test_labels(data, labels):
    model = GroupLassoRegressor(alpha=0.1, groups=labels).fit(*data)
    assert [group.tolist() for group in model.groups_] == [[0, 1], [2, 3], [4, 5]]


def test_integer_names_are_names(data):
    X, y = data
    years = [2015, 2014, 2013, 2012, 2011, 2010]
    X = X.set_axis(years, axis=1)
    for graph in ([(2015, 2014, 2.0)], nx.Graph([(2015, 2014, {"weight": 2.0})])):
        assert FusedLassoRegressor(alpha=0.01, graph=graph).fit(X, y).graph_.edges.tolist() == [[0, 1]]
    with pytest.warns(UserWarning, match=r"3 of 6 columns are in no group .*\(2013, 2012, 2011\)"):
        model = GroupLassoRegressor(alpha=0.1, groups=[[2015, 2014], [2010]]).fit(X, y)
    assert [group.tolist() for group in model.groups_] == [[0, 1], [5]]
    labels = pd.Series(list("wwvvuu"), index=sorted(years))
    assert GroupLassoRegressor(alpha=0.1, groups=labels).fit(X, y).groups_[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="a name that is not among the columns of X: 7"):
        FusedLassoRegressor(graph=[(2015, 7)]).fit(X, y)


def test_integer_names_in_another_order_than_their_positions(data):
    X, y = data
    X = X.set_axis([5, 4, 3, 2, 1, 0], axis=1)
    assert FusedLassoRegressor(alpha=0.01, graph=[(5, 4)]).fit(X, y).graph_.edges.tolist() == [[0, 1]]
    with pytest.warns(UserWarning, match=r"3 of 6 columns are in no group .*\(3, 2, 1\)"):
        model = GroupLassoRegressor(alpha=0.1, groups=[[5, 4], [0]]).fit(X, y)
    assert model.groups_[1].tolist() == [5]
    adjacency = nx.to_pandas_adjacency(nx.Graph([(5, 4)])).reindex(range(6), axis=0, fill_value=0)
    adjacency = adjacency.reindex(range(6), axis=1, fill_value=0)
    assert FusedLassoRegressor(alpha=0.01, graph=adjacency).fit(X, y).graph_.edges.tolist() == [[0, 1]]


@pytest.fixture
def files(data, tmp_path):
    X, y = data
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame(TRIPLES, columns=["source", "target", "weight"]).to_csv(tmp_path / "edges.csv", index=False)
    (tmp_path / "groups.json").write_text(json.dumps(SETS))
    return tmp_path


@pytest.mark.parametrize(
    ("model", "option", "file"),
    [("fused-regressor", "--graph", "edges.csv"), ("group-regressor", "--groups", "groups.json")],
)
def test_the_command_line(files, capsys, model, option, file):
    common = ["fit", str(files / "table.csv"), "-o", str(files / "m.skadmm"), "--model", model, "--alpha", "0.1"]
    common += [option, str(files / file), "--quiet"]
    assert run(common) == 2
    assert "'zz'" in capsys.readouterr().err
    assert run([*common, "--unknown", "perhaps"]) == 2
    assert run([*common, "--unknown", "ignore"]) == 0
    assert "are left out" in capsys.readouterr().err
    assert load(files / "m.skadmm").unknown == "ignore"


def test_names_of_digits_on_the_command_line(data, tmp_path):
    X, y = data
    X.set_axis(["5", "4", "3", "2", "1", "0"], axis=1).assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "edges.csv").write_text("5,4\n")
    (tmp_path / "groups.json").write_text("[[5, 4], [0]]")
    for model, option, file in (
        ("fused-regressor", "--graph", "edges.csv"),
        ("group-regressor", "--groups", "groups.json"),
    ):
        out = tmp_path / f"{model}.skadmm"
        arguments = [
            "fit",
            tmp_path / "table.csv",
            "-o",
            out,
            "--model",
            model,
            "--alpha",
            "0.1",
            option,
            tmp_path / file,
        ]
        assert run(list(map(str, arguments))) == 0
    assert load(tmp_path / "fused-regressor.skadmm").graph_.edges.tolist() == [[0, 1]]
    assert load(tmp_path / "group-regressor.skadmm").groups_[0].tolist() == [0, 1]


# -- ordinary tables with something that is not accepted, and targets of unusual types --------------------------------

NUMBERS = np.random.default_rng(5).standard_normal((40, 3))
TABLE = pd.DataFrame(NUMBERS, columns=list("abc"))
OUTCOME = NUMBERS @ np.array([1.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2026-01-01", periods=40), "'d' (datetime64"),
        (pd.to_timedelta(np.arange(40), "D"), "'d' (timedelta64"),
        (["x", "y"] * 20, "'d' ("),
        (pd.Categorical(["x", "y"] * 20), "'d' (category)"),
    ],
)
def test_columns_that_are_not_numbers_are_named(column, message):
    with pytest.raises(ValueError, match=r"X has columns that are not numbers: ") as caught:
        FusedLassoRegressor(alpha=0.1).fit(TABLE.assign(d=column), OUTCOME)
    assert message in str(caught.value)
    model = FusedLassoRegressor(alpha=0.1).fit(TABLE, OUTCOME)
    with pytest.raises(ValueError, match=r"X has columns that are not numbers: 'c'"):
        model.predict(TABLE.assign(c=column))


@pytest.mark.parametrize("column", [np.arange(40) % 2 == 0, pd.array([1, 2] * 20, dtype="Int64"), [1, 2.5] * 20])
def test_columns_that_convert_to_numbers_are_taken(column):
    mixed = TABLE.assign(a=column)
    model = FusedLassoRegressor(alpha=0.1).fit(mixed, OUTCOME)
    np.testing.assert_array_equal(model.coef_, FusedLassoRegressor(alpha=0.1).fit(mixed.astype(float), OUTCOME).coef_)
    as_objects = FusedLassoRegressor(alpha=0.1).fit(mixed.astype(object), OUTCOME)
    np.testing.assert_array_equal(model.coef_, as_objects.coef_)


def test_a_column_name_that_occurs_twice():
    with pytest.raises(ValueError, match=r"X has two columns named 'a': each name must occur once"):
        FusedLassoRegressor(alpha=0.1).fit(TABLE.set_axis(["a", "a", "b"], axis=1), OUTCOME)


def test_classes_for_a_regressor():
    with pytest.raises(ValueError, match=r"y holds 'no', which is not a number: FusedLassoRegressor takes numbers"):
        FusedLassoRegressor(alpha=0.1).fit(TABLE, np.where(np.arange(40) % 2, "yes", "no"))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("convert", [pd.Series, lambda y: np.array(y, dtype=object)])
def test_missing_classes_are_counted(missing, convert):
    classes = ["no", "yes"] * 20
    classes[3] = classes[7] = missing
    with pytest.raises(ValueError, match=r"y has 2 missing classes, the first in row 3: leave out these rows"):
        FusedLassoClassifier(alpha=0.1).fit(TABLE, convert(classes))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "bool"])
def test_targets_of_small_types(dtype):
    y = (OUTCOME > 0).astype(dtype)
    expected = FusedLassoRegressor(alpha=0.01).fit(TABLE, y.astype(float))
    np.testing.assert_array_equal(FusedLassoRegressor(alpha=0.01).fit(TABLE, y).coef_, expected.coef_)
    assert FusedLassoClassifier(alpha=0.01).fit(TABLE, y).classes_.dtype == np.dtype(dtype)


def test_the_index_of_a_target_does_not_matter():
    turned = pd.Series(OUTCOME, index=np.arange(40)[::-1])
    expected = FusedLassoRegressor(alpha=0.01).fit(TABLE, OUTCOME)
    np.testing.assert_array_equal(FusedLassoRegressor(alpha=0.01).fit(TABLE, turned).coef_, expected.coef_)


def test_a_self_loop_is_named_by_its_column():
    with pytest.warns(UserWarning, match=r"graph has a self-loop at node 'c'"):
        FusedLassoRegressor(alpha=0.1, graph=[("a", "b"), ("c", "c")]).fit(TABLE, OUTCOME)
    with pytest.raises(ValueError, match=r"each edge once, got \('b', 'a'\) twice"):
        FusedLassoRegressor(alpha=0.1, graph=[("a", "b"), ("b", "a")]).fit(TABLE, OUTCOME)


# -- labels, frames and repeated members of groups -------------------------------------------------------------

LABELLED = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), columns=["a", "b", "c"])
RESPONSE = LABELLED["a"] + 0.1 * np.arange(30) % 2


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_a_label_of_a_name_that_is_no_column_is_refused_or_counted(kind):
    labels = kind({"a": "one", "zz": "two", "b": "one", "c": "two"})
    with pytest.raises(ValueError, match="groups has a name that is not among the columns of X: 'zz'"):
        GroupLassoRegressor(groups=labels).fit(LABELLED, RESPONSE)
    with pytest.warns(UserWarning, match="groups: 1 of 4 names are not among the columns of X"):
        model = GroupLassoRegressor(groups=labels, unknown="ignore").fit(LABELLED, RESPONSE)
    assert [group.tolist() for group in model.groups_] == [[0, 1], [2]]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_frame_is_no_groups(kind):
    with pytest.raises(ValueError, match=r"groups: it takes a list or a dict .* got a DataFrame"):
        GroupLassoRegressor(groups=kind({"a": [1], "b": [2]})).fit(LABELLED, RESPONSE)


def test_a_member_that_occurs_twice_is_named_as_given():
    with pytest.raises(ValueError, match=r"^groups\['A'\] holds the feature 'a' twice"):
        GroupLassoRegressor(groups={"A": ["a", "a"], "B": ["b", "c"]}).fit(LABELLED, RESPONSE)
    with pytest.raises(ValueError, match=r"^groups\[1\] holds the feature 'c' twice"):
        GroupLassoRegressor(groups=[["a", "b"], ["c", "c"]]).fit(LABELLED, RESPONSE)


@pytest.mark.parametrize("overlap", ["shared", "latent"])
def test_groups_of_levels_have_the_names_of_their_columns(overlap):
    table = LABELLED.assign(town=np.array(["x", "y", "z"])[np.arange(30) % 3])[["a", "town", "b"]]
    model = GroupLassoRegressor(alpha=0.01, categorical_features=["town"], overlap=overlap).fit(table, RESPONSE)
    assert model.group_names_ == ["a", "town", "b"]
    assert [group.tolist() for group in model.groups_] == [[0], [1, 2, 3], [4]]
    model = GroupLassoRegressor(alpha=0.01, categorical_features=[1]).fit(table.to_numpy(), RESPONSE)
    assert model.group_names_ == ["x0", "x1", "x2"]
