"""Data: read from any compression, refused when wrong, made with a known answer."""

import bz2
import gzip
import hashlib
import lzma
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.datasets

from skadmm import FusedLassoRegressor, datasets
from skadmm.datasets import catalogue, fetching, loading

TEXT = b"+1 1:1 3:0.5\n-1 2:2\n+1 3:-1\n-1 1:4 2:1\n"
DENSE = np.array([[1, 0, 0.5], [0, 2, 0], [0, 0, -1], [4, 1, 0]])
LABELS = np.array([1.0, -1.0, 1.0, -1.0])


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No data of the machine's own."""
    monkeypatch.delenv("SKADMM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny(monkeypatch):
    """A data set of four rows in the catalogue."""
    facts = datasets.Facts(4, 3, 6, {1.0: 2, -1.0: 2}, {"tiny": hashlib.sha256(TEXT).hexdigest()})
    entry = datasets.DataSet(
        "tiny", facts, source="here", licence="none", stems=("tiny.svm",), url="https://nowhere.invalid/tiny.svm"
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry)
    return entry


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)]
)
def test_svmlight_reads_every_compression(tmp_path, ending, pack):
    path = tmp_path / f"some.svm{ending}"
    path.write_bytes(pack(TEXT))
    X, target = datasets.read_svmlight(path)
    np.testing.assert_array_equal(X.toarray(), DENSE)
    np.testing.assert_array_equal(target, LABELS)
    assert datasets.read_svmlight(path, n_features=5)[0].shape == (4, 5)
    loaded = datasets.load(str(path))
    assert loaded.name == "some"
    assert loaded.sha256 == hashlib.sha256(TEXT).hexdigest()


@pytest.mark.parametrize("ending", [".xz", ".bz2", ".gz"])
def test_a_cut_file_is_called_damaged(tmp_path, ending):
    pack = {".xz": lzma.compress, ".bz2": bz2.compress, ".gz": gzip.compress}[ending]
    path = tmp_path / f"cut.svm{ending}"
    path.write_bytes(pack(TEXT * 100)[:-20])
    with pytest.raises(datasets.DataError, match=r"damaged|cut short"):
        datasets.load(str(path))


def test_what_is_not_svmlight_is_refused(tmp_path):
    path = tmp_path / "letter.svm"
    path.write_bytes(b"dear reader\n")
    with pytest.raises(datasets.DataError, match="not svmlight"):
        datasets.load(str(path))


def test_more_than_two_classes_are_refused(tmp_path):
    path = tmp_path / "three.svm"
    path.write_bytes(b"1 1:1\n2 1:1\n3 1:1\n")
    with pytest.raises(datasets.DataError, match="3 classes"):
        datasets.load(str(path))


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_a_set_is_found_by_argument_variable_and_folder(tiny, tmp_path, monkeypatch, ending, pack):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / f"tiny.svm{ending}").write_bytes(pack(TEXT))
    assert datasets.load("tiny", folder).X.shape == (4, 3)
    monkeypatch.setenv("SKADMM_DATA", str(folder))
    np.testing.assert_array_equal(datasets.load("tiny").target, LABELS)
    monkeypatch.delenv("SKADMM_DATA")
    folder.rename(tmp_path / "data")
    assert datasets.load("tiny").origin == f"tiny.svm{ending}"


def test_a_missing_set_says_what_to_do(tiny, tmp_path, monkeypatch):
    with pytest.raises(datasets.DataError, match=r"no tiny\.svm .*skadmm data fetch tiny"):
        datasets.load("tiny")
    with pytest.raises(datasets.DataError, match=r"sido0_text\.zip.*sido0_train\.data and sido0_train\.targets into"):
        datasets.load("sido")
    monkeypatch.setenv("SKADMM_DATA", str(tmp_path / "gone"))
    with pytest.raises(datasets.DataError, match=r"SKADMM_DATA=.*gone: there is no such folder"):
        datasets.load("tiny")


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(ValueError, match=r"'covertipe' is not known.*Did you mean 'covertype'"):
        datasets.load("covertipe")


def test_a_wrong_checksum_is_refused_with_what_was_expected(tiny, tmp_path):
    (tmp_path / "tiny.svm").write_bytes(TEXT + b"+1 1:1\n")
    expected = tiny.facts.text_sha256["tiny"][:16]
    with pytest.raises(datasets.DataError, match=f"not tiny: the SHA-256.*expected {expected}"):
        datasets.load("tiny", tmp_path)
    assert datasets.load("tiny", tmp_path, check=False).X.shape == (5, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT + b"+1 1:1\n", "5 samples, expected 4"),
        (TEXT.replace(b"3:-1", b"7:-1"), "7 features, expected 3"),
        (TEXT.replace(b" 3:0.5", b""), "5 nonzeros, expected 6"),
        (TEXT.replace(b"-1 2:2", b"+1 2:2"), r"labels, expected \{-1: 2, 1: 2\}"),
    ],
)
def test_other_dimensions_are_refused_with_what_was_expected(tiny, tmp_path, monkeypatch, text, message):
    unsummed = replace(tiny, facts=replace(tiny.facts, text_sha256={}))
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", unsummed)
    (tmp_path / "tiny.svm").write_bytes(text)
    with pytest.raises(datasets.DataError, match=f"not tiny: .*{message}"):
        datasets.load("tiny", tmp_path)


def test_fetch_checks_what_it_downloads(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "down"
    sent = {"text": TEXT[:-10]}

    def retrieve(url, known_hash, fname, path):
        (path / fname).write_bytes(sent["text"])
        return str(path / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(datasets.DataError, match="not tiny"):
        datasets.fetch("tiny", folder)
    assert list(folder.iterdir()) == []
    sent["text"] = TEXT
    assert datasets.fetch("tiny", folder) == folder / "tiny.svm"
    monkeypatch.setattr("pooch.retrieve", None)  # already there: no second download
    assert datasets.fetch("tiny", folder) == folder / "tiny.svm"


def test_a_file_without_a_known_checksum_is_pinned_at_first_sight(tiny, tmp_path, monkeypatch):
    unknown = replace(tiny, facts=replace(tiny.facts, text_sha256={}))
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", unknown)
    path = tmp_path / "tiny.svm"
    path.write_bytes(TEXT)
    fetching.remember(path, loading.read(unknown, path))
    path.write_bytes(TEXT.replace(b"4", b"5"))
    with pytest.raises(datasets.DataError, match="changed since it was fetched"):
        datasets.load("tiny", tmp_path)


def test_a_failed_download_and_a_form_are_one_line(tiny, tmp_path, monkeypatch):
    def retrieve(*_, **__):
        raise OSError("the network\nis down")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(datasets.DataError, match=r"could not be downloaded: the network$"):
        datasets.fetch("tiny", tmp_path)
    with pytest.raises(datasets.DataError, match=r"phy_train\.dat into") as caught:
        datasets.fetch("quantum", tmp_path)
    assert "\n" not in str(caught.value)


def test_the_layouts_behind_forms_are_read(tmp_path, monkeypatch):
    small = {"quantum": datasets.Facts(2, 3), "sido": datasets.Facts(2, 3)}
    for name, facts in small.items():
        monkeypatch.setitem(catalogue.CATALOGUE, name, replace(datasets.CATALOGUE[name], facts=facts))
    (tmp_path / "phy_train.dat").write_text("7\t0\t1.5\t999\t2\n8\t1\t0\t3\t9999\n")
    quantum = datasets.load("quantum", tmp_path)
    np.testing.assert_array_equal(quantum.X, [[1.5, 0, 2], [0, 3, 0]])
    np.testing.assert_array_equal(quantum.target, [-1, 1])
    (tmp_path / "sido0_train.data").write_text("0 1 1\n1 0 0\n")
    with pytest.raises(datasets.DataError, match=r"sido0_train\.targets"):
        datasets.load("sido", tmp_path)
    (tmp_path / "sido0_train.targets").write_text("-1\n1\n")
    np.testing.assert_array_equal(datasets.load("sido", tmp_path).X.toarray(), [[0, 1, 1], [1, 0, 0]])


def test_every_substitute_keeps_its_own_name():
    for name, entry in datasets.CATALOGUE.items():
        assert entry.name == name
        assert entry.in_paper != bool(entry.stands_for)
        if entry.stands_for:
            assert datasets.CATALOGUE[entry.stands_for].in_paper
        assert entry.url or entry.by_hand


@pytest.mark.parametrize("name", list(datasets.BUILTIN))
def test_built_in_data_is_binary(name):
    X, target = datasets.load_builtin(name)
    assert X.shape[0] == target.size
    assert set(np.unique(target)) == {-1.0, 1.0}
    assert datasets.load(name).sha256 == datasets.load(name).sha256


@pytest.mark.parametrize("density", [1.0, 0.4])
def test_graph_classification_is_what_it_says(density):
    made = datasets.make_graph_classification(4000, 24, n_groups=6, n_active=2, density=density, random_state=3)
    assert scipy.sparse.issparse(made.X) == (density < 1)
    assert made.adjacency.shape == (24, 24)
    assert (made.adjacency != made.adjacency.T).nnz == 0
    i, j = made.adjacency.nonzero()
    np.testing.assert_array_equal(made.groups[i], made.groups[j])
    np.testing.assert_array_equal(made.adjacency.sum(axis=1), np.full(24, 2.0))
    levels = [np.unique(made.x[made.groups == group]) for group in range(6)]
    assert all(level.size == 1 for level in levels)
    assert sum(level[0] != 0 for level in levels) == 2
    # The sign of the true margin must predict: that is what makes x the truth.
    assert np.mean(np.sign(made.X @ made.x) == made.target) > 0.6
    again = datasets.make_graph_classification(4000, 24, n_groups=6, n_active=2, density=density, random_state=3)
    np.testing.assert_array_equal(again.target, made.target)


def test_fused_signal_is_what_it_says():
    made = datasets.make_fused_signal(400, 50, n_pieces=5, noise=0.0, random_state=1)
    np.testing.assert_array_equal(np.flatnonzero(np.diff(made.x)) + 1, made.jumps)
    np.testing.assert_allclose(np.linalg.lstsq(made.X, made.target, rcond=None)[0], made.x, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.make_graph_classification(10, 4, n_groups=5), "n_groups=5"),
        (lambda: datasets.make_graph_classification(10, 4, n_groups=2, n_active=3), "no more active"),
        (lambda: datasets.make_graph_classification(10, 4, n_groups=2, n_active=1, correlation=1.0), "correlation"),
        (lambda: datasets.make_graph_classification(10, 4, n_groups=2, n_active=1, density=0), "density"),
        (lambda: datasets.make_fused_signal(10, 4, n_pieces=5), "n_pieces=5"),
    ],
)
def test_makers_refuse_what_cannot_be_made(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- car insurance ----------------------------------------------------------------------------------------------------


def frequency_table():
    """Rows as those of freMTPL2freq on OpenML, with its errors of the record."""
    return pd.DataFrame(
        {
            "IDpol": [1.0, 3.0, 5.0, 10.0, 11.0, 13.0],
            "ClaimNb": [1.0, 0.0, 11.0, 2.0, 1.0, 0.0],
            "Exposure": [0.1, 0.77, 1.5, 0.09, 0.84, 0.52],
            "Area": pd.Categorical(["'D'", "'D'", "'B'", "'B'", "'A'", "'E'"]),
            "VehPower": [5.0, 5.0, 6.0, 7.0, 7.0, 6.0],
            "VehAge": [0.0, 0.0, 2.0, 100.0, 3.0, 2.0],
            "DrivAge": [55.0, 55.0, 52.0, 99.0, 46.0, 38.0],
            "BonusMalus": [50.0, 50.0, 50.0, 230.0, 50.0, 50.0],
            "VehBrand": pd.Categorical(["'B12'", "'B12'", "'B12'", "'B1'", "'B12'", "'B2'"]),
            "VehGas": ["'Regular'", "'Regular'", "'Diesel'", "'Diesel'", "'Diesel'", "'Regular'"],
            "Density": [1217.0, 1217.0, 54.0, 76.0, 76.0, 3003.0],
            "Region": pd.Categorical(["'R82'", "'R82'", "'R22'", "'R72'", "'R72'", "'R31'"]),
        }
    )


@pytest.fixture
def openml(monkeypatch):
    """The two tables of freMTPL2 in place of the download."""
    severity = pd.DataFrame({"IDpol": [1.0, 5.0, 5.0, 10.0], "ClaimAmount": [995.2, 800.0, 300_000.0, 1128.12]})
    tables = {41214: frequency_table(), 41215: severity}
    asked = []

    def fetch_openml(data_id, **options):
        asked.append((data_id, options["as_frame"]))
        return sklearn.utils.Bunch(frame=tables[data_id])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return tables, asked


def test_claims_are_joined_and_cleaned(openml):
    data = datasets.fetch_claims()
    assert openml[1] == [(41214, True), (41215, True)]
    np.testing.assert_array_equal(data.counts, [1.0, 0.0, 4.0, 2.0, 0.0, 0.0])  # one claim has no cost
    np.testing.assert_array_equal(data.costs, [995.2, 0.0, 200_000.0, 1128.12, 0.0, 0.0])
    np.testing.assert_array_equal(data.exposure, [0.1, 0.77, 1.0, 0.09, 0.84, 0.52])
    assert data.rate is None
    table = data.table
    assert table["DrivAge"].cat.ordered
    assert table["Area"].cat.ordered
    assert not table["Region"].cat.ordered
    assert list(table["Region"].cat.categories) == ["R22", "R31", "R72", "R82"]
    assert table["VehAge"].max() == 20
    assert table["DrivAge"].max() == 90
    model = FusedLassoRegressor(1e-3, loss="poisson", categorical_features="from_dtype")
    model.fit(table, data.counts, offset=np.log(data.exposure))
    assert "Region=R72" in model.feature_names_out_


def test_another_table_is_no_claims(openml):
    openml[0][41214] = frequency_table().drop(columns=["Region", "Area"])
    with pytest.raises(datasets.DataError, match="lacks the columns Area, Region"):
        datasets.fetch_claims()


def test_claims_without_a_network_name_the_simulation(monkeypatch):
    def fail(**options):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    with pytest.raises(datasets.DataError, match=r"no route to host; make_claims\(\) needs no network"):
        datasets.fetch_claims()


def test_simulated_claims_have_the_rates_and_costs_they_say():
    data = datasets.make_claims(60_000, random_state=2)
    again = datasets.make_claims(60_000, random_state=2)
    np.testing.assert_array_equal(data.counts, again.counts)
    assert data.counts.sum() == pytest.approx((data.rate * data.exposure).sum(), rel=0.03)
    claimed = data.counts > 0
    assert np.all((data.costs > 0) == claimed)
    assert (data.costs / (data.counts + ~claimed))[claimed].mean() == pytest.approx(
        data.mean_cost[claimed].mean(), rel=0.03
    )
    young = data.table["DrivAge"].astype(int) < 24
    assert data.rate[young].mean() > 1.5 * data.rate[~young].mean()
