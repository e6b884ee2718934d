"""overlap="latent" in every use of the group estimators: supports, paths, storages, files, commands, and refusals."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import skadmm
from skadmm import (
    GroupLassoClassifier,
    GroupLassoClassifierCV,
    GroupLassoRegressor,
    GroupLassoRegressorCV,
)
from skadmm.backends import BlocksError, FileBlocks, Processes, raw, repeated
from skadmm.backends.writer import write_blocks
from skadmm.cli import run as command
from skadmm.estimators import _design

N, D = 100, 12
GROUPS = [[0, 1, 2, 3], [2, 3, 4, 5], [5, 6, 7, 0], [8, 9, 0], [9, 10, 11]]
NAMES = list("abcdefghijkl")
LATENT = {"groups": GROUPS, "overlap": "latent"}
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, D)) * np.linspace(0.5, 3.0, D)
X[RNG.random(X.shape) < 0.2] = 0.0
COEF = np.zeros(D)
COEF[[2, 3, 4, 5]] = [2.0, -2.0, 1.0, 1.0]
Y = X @ COEF + 0.5 * RNG.standard_normal(N)
CLASSES = np.digitize(Y, [-3.0, 3.0])
WEIGHT = RNG.uniform(0.5, 2.0, N)


@parametrize_with_checks(
    [
        GroupLassoRegressor(overlap="latent", tol=1e-10),
        GroupLassoClassifier(overlap="latent", tol=1e-10),
        GroupLassoRegressorCV(overlap="latent", alphas=2, cv=2, tol=1e-9),
    ]
)
@pytest.mark.filterwarnings("ignore:.*of the grid")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def check_parts(model):
    """The coefficients are the sums of those of the groups, and are not zero on a union of groups only."""
    rows = np.atleast_2d(model.coef_)
    total = np.zeros(rows.shape)
    for group, part in zip(model.groups_, model.latent_coef_, strict=True):
        assert np.shape(part) == (*np.shape(model.coef_)[:-1], len(group))
        total[:, group] += np.atleast_2d(part)
    np.testing.assert_allclose(total, rows, atol=1e-12 * np.abs(rows).max())
    for row, active in zip(rows, np.atleast_2d(model.active_groups_), strict=True):
        union = np.unique(np.concatenate([[], *(model.groups_[g] for g in np.flatnonzero(active))]))
        np.testing.assert_array_equal(np.flatnonzero(row), union)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_what_is_selected_is_a_union_of_groups(alpha, storage):
    latent = GroupLassoRegressor(alpha, **LATENT, tol=1e-9).fit(storage(X), Y)
    check_parts(latent)
    assert latent.active_groups_[1]
    assert not latent.active_groups_.all()
    assert latent.dof_ == np.count_nonzero(latent.coef_)


def test_one_group_is_found_where_shared_coefficients_need_its_neighbours():
    latent = GroupLassoRegressor(0.8, **LATENT).fit(X, Y)
    assert latent.active_groups_.tolist() == [False, True, False, False, False]
    np.testing.assert_array_equal(np.flatnonzero(latent.coef_), GROUPS[1])
    shared = GroupLassoRegressor(0.3, groups=GROUPS).fit(X, Y)
    assert shared.coef_[GROUPS[1]].all()
    assert shared.active_groups_[:3].all()


@pytest.mark.parametrize("options", [{}, {"multi_class": "multinomial"}], ids=["ovr", "multinomial"])
def test_classes(options):
    model = GroupLassoClassifier(0.05, **LATENT, **options, tol=1e-8).fit(X, CLASSES)
    check_parts(model)
    assert model.score(X, CLASSES) > 0.7


def test_several_targets():
    model = GroupLassoRegressor(0.5, **LATENT, output_penalty="rows").fit(X, np.column_stack([Y, -Y]))
    check_parts(model)
    assert (model.active_groups_[0] == model.active_groups_[1]).all()


@pytest.mark.parametrize("tol", [1e-6, 1e-11])
def test_zeros_are_exact_without_blocks(tol):
    """Columns are equal where two active groups share a feature, so the polish on the pattern is not determined."""
    y = X @ np.where(np.arange(D) < 6, 2.0, 0.0)
    dense, blocks = (GroupLassoRegressor(0.3, **LATENT, method=name, tol=tol) for name in ("newton-admm", "auto"))
    check_parts(dense.fit(X, y))
    assert dense.active_groups_[:2].all()
    assert dense.active_groups_.tolist() == blocks.fit(X, y).active_groups_.tolist()
    assert not dense.active_groups_.all()


def test_empty_groups_and_features_without_a_penalty():
    frame = pd.DataFrame(X, columns=NAMES)
    groups = {"signal": ["c", "d", "e", "f"], "gone": ["y", "z"], "rest": ["a", "b", "c", "g", "h", "i", "k", "l"]}
    model = GroupLassoRegressor(0.5, groups=groups, overlap="latent", unknown="ignore", penalty_factor={"c": 0.0})
    with pytest.warns(UserWarning, match="in no group"), pytest.warns(UserWarning, match="left out"):
        model.fit(frame, Y)
    assert model.group_names_ == ["signal", "gone", "rest"]
    assert model.active_groups_.tolist() == [True, False, False]
    assert [part.size for part in model.latent_coef_] == [4, 0, 8]
    assert model.latent_coef_[0][0] == 0.0  # "c" is not penalised, so it belongs to no group
    assert model.coef_[2] != 0.0
    assert model.coef_[9] != 0.0  # "j" is in no group


def test_relax_fits_every_selected_feature_once():
    penalised = GroupLassoRegressor(0.8, **LATENT).fit(X, Y)
    relaxed = GroupLassoRegressor(0.8, **LATENT, relax=True).fit(X, Y)
    kept = np.flatnonzero(penalised.coef_)
    design = np.column_stack([X[:, kept], np.ones(N)])
    found, residual, *_ = np.linalg.lstsq(design, Y, rcond=None)
    np.testing.assert_allclose(relaxed.coef_[kept], found[:-1], atol=1e-6)
    np.testing.assert_array_equal(relaxed.penalized_coef_, penalised.coef_)
    variance = residual[0] / (N - kept.size - 1)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))[:-1]
    np.testing.assert_allclose(relaxed.standard_errors_[kept], errors, rtol=1e-6)
    assert np.isnan(np.delete(relaxed.standard_errors_, kept)).all()


def test_relax_where_groups_share_selected_features():
    """Two active groups have the same feature; its column is there once in the second fit."""
    y = X @ np.where(np.arange(D) < 6, 2.0, 0.0)
    model = GroupLassoRegressor(0.3, **LATENT, relax=True, bounds=(-1.0, 1.5)).fit(X, y)
    assert model.active_groups_[:2].all()
    assert model.penalized_coef_.max() <= 1.5
    np.testing.assert_allclose(model.coef_[:6], 1.5, atol=1e-6)


def test_adaptive_weights_come_from_whole_coefficients():
    """A feature of two groups counts with its coefficient in both, however the first fit divides it."""
    model = GroupLassoRegressor(0.3, **LATENT, adaptive=True).fit(X, Y)
    ridge = np.linalg.lstsq(np.column_stack([X, np.ones(N)]), Y, rcond=None)[0][:-1]  # the first fit has a weak one
    size = [np.sqrt(np.mean(ridge[group] ** 2)) for group in GROUPS]
    per_group = model.adaptive_weights_[np.cumsum([0, *map(len, GROUPS[:-1])])]
    np.testing.assert_array_equal(np.argsort(per_group), np.argsort(size)[::-1])
    ratios = per_group * size
    np.testing.assert_allclose(ratios[1:] / ratios[0], 1.0, rtol=0.1)


@pytest.mark.parametrize("option", [{"positive": True}, {"bounds": (-0.2, 0.5)}, {"bounds": {"e": (0.1, None)}}])
def test_limits_hold_for_the_sums(option):
    model = GroupLassoRegressor(0.05, **LATENT, **option).fit(pd.DataFrame(X, columns=NAMES), Y)
    low, high = {"positive": (0.0, np.inf)}.get(next(iter(option)), (-0.2, 0.5))
    if isinstance(option.get("bounds"), dict):
        assert model.coef_[4] >= 0.1
    else:
        assert np.all((model.coef_ >= low) & (model.coef_ <= high))


# -- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["min", "bic"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_cross_validation(storage, selection):
    options = {"alphas": 10, "cv": 3, "selection": selection, "eps": 0.01, "tol": 1e-9}
    model = GroupLassoRegressorCV(**LATENT, **options).fit(storage(X), Y)
    alone = GroupLassoRegressor(model.alpha_, **LATENT, tol=1e-9).fit(storage(X), Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-6)
    np.testing.assert_array_equal(model.active_groups_, alone.active_groups_)
    assert model.coefs_path_.shape == (10, D)
    assert not model.coefs_path_[0].any()  # the first alpha is the smallest without groups
    slope = X.T @ (Y - Y.mean()) / N
    if storage is np.asarray:
        slope = (X - X.mean(axis=0)).T @ (Y - Y.mean()) / N
    dual_norm = max(np.linalg.norm(slope[group]) / np.sqrt(len(group)) for group in GROUPS)
    assert model.alphas_[0] == pytest.approx(dual_norm)
    if selection == "bic":
        nonzero = np.count_nonzero(model.coefs_path_, axis=1)
        assert np.isin(model.path_.dof - nonzero, (0, 1)).all()  # the intercept counts


def test_cross_validation_with_ratios_scores_and_classes():
    options = {"alphas": 4, "cv": 3, "eps": 0.05}
    model = GroupLassoClassifierCV(**LATENT, **options, l1_ratio=[0.0, 0.5, 1.0], scoring="accuracy")
    model.fit(X, CLASSES)
    assert model.cv_scores_.shape == (3, 4, 3)
    assert model.cv_mean_.max() > 0.8
    total = np.zeros((3, D))
    for group, part in zip(GROUPS, model.latent_coef_, strict=True):
        total[:, group] += part
    np.testing.assert_allclose(total, model.coef_, atol=1e-10)
    model.set_params(overlap="shared").fit(X, CLASSES)
    assert not hasattr(model, "latent_coef_")


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_fold_is_scored_as_a_model_of_its_rows(adaptive):
    from sklearn.model_selection import KFold

    options = {"adaptive": adaptive, "standardize": True, "tol": 1e-10}
    search = GroupLassoRegressorCV(**LATENT, **options, alphas=[0.5, 0.05], cv=KFold(2), eps=0.1).fit(X, Y, WEIGHT)
    train, test = next(KFold(2).split(X))
    for alpha, found in zip(search.alphas_, search.cv_losses_[:, 0], strict=True):
        model = GroupLassoRegressor(alpha, **LATENT, **options).fit(X[train], Y[train], WEIGHT[train])
        wanted = np.average(0.5 * (model.predict(X[test]) - Y[test]) ** 2, weights=WEIGHT[test])
        assert found == pytest.approx(wanted, rel=1e-3)


def test_batches_and_warm_starts():
    model = GroupLassoRegressor(0.1, **LATENT, tol=1e-8).fit(X, Y)
    online = clone(model)
    for _ in range(60):
        online.partial_fit(X, Y)
    np.testing.assert_allclose(online.coef_, model.coef_, atol=0.1)
    before = model.coef_.copy()
    np.testing.assert_allclose(model.partial_fit(X, Y).coef_, before, atol=0.1)
    warm = GroupLassoClassifier(0.05, **LATENT, loss="logistic", warm_start=True).fit(X, Y > 0)
    cold = warm.coef_.copy()
    np.testing.assert_allclose(warm.fit(X, Y > 0).coef_, cold, atol=1e-4)


def test_counts_start_at_the_best_constant():
    counts = np.random.default_rng(0).poisson(np.exp(1.0 + 0.2 * X[:, 2] - 0.2 * X[:, 3]))
    model = GroupLassoRegressor(0.1, **LATENT, loss="poisson").fit(X, counts)
    check_parts(model)
    assert model.score(X, counts) > 0.1


# -- storages ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "blocks"


def stored(storage, folder, rows=X):
    """The table, and its targets and weights, in some storage."""
    if storage == "dask":
        import dask.array as da

        return da.from_array(rows, chunks=(40, D)), *(da.from_array(part, chunks=40) for part in (Y, WEIGHT))
    if storage == "processes":
        return Processes(rows, workers=2), Y, WEIGHT
    kind = sp.csr_array if "sparse" in storage else np.asarray
    on_workers = storage == "processes of files"
    write_blocks(folder / "blocks", [(kind(rows[:30]), None), (kind(rows[30:]), None)], ones=not on_workers)
    return Processes(folder / "blocks", workers=2) if on_workers else folder / "blocks", Y, WEIGHT


STORAGES = ["blocks", "sparse blocks", "processes", "processes of files", "dask"]


OPTIONS = [{}, {"standardize": True}, {"relax": True}, {"adaptive": True}, {"bounds": (-1.0, 1.0)}]
IN_USE = [(storage, options) for storage in STORAGES for options in OPTIONS]
# Processes hold their files without a column of ones, and relax and bounds need one where the rows are read.
IN_USE = [(s, o) for s, o in IN_USE if s != "processes of files" or not {"relax", "bounds"} & set(o)]


@pytest.mark.parametrize(("storage", "options"), IN_USE, ids=str)
def test_storages(storage, options, tmp_path, cache, request):
    if storage == "dask":
        request.getfixturevalue("client")
    table, target, weight = stored(storage, tmp_path)
    make = GroupLassoRegressor(0.1, **LATENT, **options, tol=1e-11)
    found, wanted = clone(make).fit(table, target, weight), clone(make).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)
    np.testing.assert_allclose(found.scale_, wanted.scale_)
    np.testing.assert_array_equal(found.active_groups_, wanted.active_groups_)
    for part, same in zip(found.latent_coef_, wanted.latent_coef_, strict=True):
        np.testing.assert_allclose(part, same, atol=1e-6)
    np.testing.assert_allclose(found.predict(table), wanted.predict(X), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"scoring": "r2", "standardize": True}], ids=["losses", "scores"])
@pytest.mark.parametrize("storage", STORAGES)
def test_cross_validation_of_storages(storage, options, tmp_path, cache, request):
    if storage == "dask":
        request.getfixturevalue("client")
    table, target, weight = stored(storage, tmp_path)
    make = GroupLassoRegressorCV(**LATENT, **options, alphas=3, cv=2, eps=0.1, tol=1e-11)
    found, wanted = clone(make).fit(table, target, weight), clone(make).fit(X, Y, WEIGHT)
    assert found.alpha_ == pytest.approx(wanted.alpha_)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)
    np.testing.assert_allclose(found.cv_mean_, wanted.cv_mean_, rtol=2e-2)


def test_columns_far_from_zero_on_disk(tmp_path, cache):
    """The table is centred in a copy first; then columns are repeated."""
    far = X + 1e4
    table, target, weight = stored("blocks", tmp_path, far)
    found = GroupLassoRegressor(0.1, **LATENT, tol=1e-9).fit(table, target, weight)
    wanted = GroupLassoRegressor(0.1, **LATENT, tol=1e-9).fit(far, Y, WEIGHT)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)
    np.testing.assert_allclose(found.predict(table), wanted.predict(far), atol=1e-5)


def test_the_copy_on_disk_goes_with_its_object(tmp_path, cache):
    table, *_ = stored("blocks", tmp_path)
    folder = repeated.repeated(FileBlocks(table), np.array([3, 0, 3]))
    assert folder.shape == (N, 4)
    assert len(list(cache.iterdir())) == 1
    np.testing.assert_array_equal(folder.rows.values, np.column_stack([X[:, [3, 0, 3]], np.ones(N)]))
    del folder
    assert not list(cache.iterdir())


@pytest.mark.parametrize("storage", ["blocks", "sparse blocks"])
def test_a_copy_that_does_not_fit_on_the_disk_is_refused(storage, tmp_path, cache, monkeypatch):
    table, target, _ = stored(storage, tmp_path)
    monkeypatch.setattr(raw.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100})())
    with pytest.raises(BlocksError, match="on the disk of this process"):
        GroupLassoRegressor(0.1, **LATENT).fit(table, target)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: Processes(X, workers=2)])
def test_a_table_that_does_not_fit_into_memory_is_refused(kind, monkeypatch):
    monkeypatch.setattr(_design, "ALWAYS_FREE", 0.0)
    monkeypatch.setattr(_design, "available", lambda: 1e3)
    with pytest.raises(MemoryError, match=r"the 12 features have 18 columns, .* take .* kB of memory, and 1 kB are"):
        GroupLassoRegressor(0.1, **LATENT).fit(kind(X), Y)


# -- files, reports and commands -----------------------------------------------------------------------------------


def test_files_and_reports(tmp_path):
    model = GroupLassoClassifier(0.05, **LATENT).fit(X, CLASSES)
    model.save(tmp_path / "m.skadmm")
    loaded = skadmm.load(tmp_path / "m.skadmm")
    assert loaded.overlap == "latent"
    for found, wanted in zip(loaded.latent_coef_, model.latent_coef_, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.report(tmp_path / "m.html", X, CLASSES)
    assert "overlap" in (tmp_path / "m.html").read_text()


def test_the_command_line(tmp_path, capsys):
    pd.DataFrame(X, columns=NAMES).assign(target=Y).to_csv(tmp_path / "t.csv", index=False)
    named = {f"set{g}": [NAMES[j] for j in group] for g, group in enumerate(GROUPS)}
    (tmp_path / "groups.json").write_text(json.dumps(named))
    out = tmp_path / "m.skadmm"
    fit = ["fit", str(tmp_path / "t.csv"), "-o", str(out), "--model", "group-regressor", "--alpha", "0.8"]
    assert (
        command([*fit, "--target", "target", "--groups", str(tmp_path / "groups.json"), "--set", "overlap=latent"]) == 0
    )
    assert "1 of 5" in capsys.readouterr().out
    assert command(["coef", str(out)]) == 0
    assert "active groups: set1" in capsys.readouterr().out
    wanted = GroupLassoRegressor(0.8, **LATENT).fit(X, Y)
    np.testing.assert_allclose(skadmm.load(out).coef_, wanted.coef_, atol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match="overlap='union': it takes one of 'shared', 'latent'"):
        GroupLassoRegressor(groups=GROUPS, overlap="union").fit(X, Y)
    weights = [1.0, 1.0, 0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="the weight of group 2 is 0, and overlap='latent' takes weights > 0"):
        GroupLassoRegressor(**LATENT, group_weights=weights).fit(X, Y)
    named = {f"set{g}": group for g, group in enumerate(GROUPS)}
    with pytest.raises(ValueError, match="the weight of group 'set2' is 0"):
        GroupLassoRegressor(groups=named, overlap="latent", group_weights=weights).fit(X, Y)
    with pytest.raises(ValueError, match="output_penalty='nuclear'"):
        GroupLassoRegressor(**LATENT, output_penalty="nuclear").fit(X, np.column_stack([Y, Y]))
