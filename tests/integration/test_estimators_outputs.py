"""Several outputs in one model: multinomial classifiers and regressors with several columns of y."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, MultiTaskLasso
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import skadmm
from skadmm import (
    FusedLassoClassifier,
    FusedLassoClassifierCV,
    FusedLassoRegressor,
    FusedLassoRegressorCV,
    GeneralizedLassoClassifier,
    GeneralizedLassoRegressor,
    GeneralizedLassoRegressorCV,
    GroupLassoClassifier,
    GroupLassoRegressor,
)
from skadmm.backends.writer import write_blocks
from skadmm.estimators import ESTIMATORS

N, D, K = 90, 6, 3
rng = np.random.default_rng(3)
X = rng.standard_normal((N, D)) + 2.0
W = np.zeros((D, K))
W[:3] = 1.5 * rng.standard_normal((3, K))
Y = (X - 2.0) @ W + 0.3 * rng.standard_normal((N, K)) + 5.0
LABELS = np.array(["ash", "birch", "cedar"])[np.argmax((X - 2.0) @ W + rng.gumbel(size=(N, K)), axis=1)]


ACROSS = {"Fused": "entries", "Generalized": "nuclear", "Group": "rows"}


def several_outputs(names, **options):
    """Every estimator with several outputs in one model."""
    models = []
    for name in names:
        across = next(penalty for family, penalty in ACROSS.items() if name.startswith(family))
        across = "rows-linf" if name.startswith("GroupLassoRegressor") else across
        joint = {"multi_class": "multinomial"} if "Classifier" in name else {}
        models.append(ESTIMATORS[name](output_penalty=across, **joint, **options))
    return models


SINGLE = [name for name in ESTIMATORS if name != "TrendFilter" and not name.endswith("CV")]
WITH_CV = [name for name in ESTIMATORS if name.endswith("CV") and name != "TrendFilterCV"]


@parametrize_with_checks(several_outputs(SINGLE, tol=1e-10))
def test_scikit_learn_finds_nothing(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        ESTIMATORS[name](output_penalty="rows-linf", multi_class="multinomial", tol=1e-12)
        for name in SINGLE
        if "Classifier" in name
    ]
)
def test_scikit_learn_finds_nothing_in_maximum_norms_across_classes(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(several_outputs(WITH_CV, alphas=2, cv=2, tol=1e-9))
def test_scikit_learn_finds_nothing_with_cross_validation(estimator, check):
    check(estimator)


def test_the_checks_see_every_estimator_and_several_outputs():
    assert {*SINGLE, *WITH_CV} == {name for name in ESTIMATORS if not name.startswith("TrendFilter")}
    for model in several_outputs([*SINGLE, *WITH_CV]):
        tags = get_tags(model)
        assert tags.target_tags.multi_output == ("Regressor" in type(model).__name__)


def test_the_multinomial_model_is_that_of_scikit_learn():
    alpha = 0.02
    ours = GeneralizedLassoClassifier(alpha, multi_class="multinomial", tol=1e-9).fit(X, LABELS)
    peer = LogisticRegression(
        C=1 / (alpha * N), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000, random_state=0
    ).fit(X, LABELS)
    assert ours.coef_.shape == (K, D)
    assert ours.intercept_.shape == (K,)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), softmax(ours.decision_function(X), axis=1))
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X))
    assert ours.score(X, LABELS) == peer.score(X, LABELS)
    assert ours.result_.gap <= 1e-9


def test_multi_task_regression_is_that_of_scikit_learn():
    alpha = 0.2
    for table in (X, scipy.sparse.csr_array(X)):
        ours = GeneralizedLassoRegressor(alpha, output_penalty="rows", tol=1e-10).fit(table, Y)
        peer = MultiTaskLasso(alpha, tol=1e-10, max_iter=100_000).fit(X, Y)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5)
        np.testing.assert_allclose(ours.predict(table), peer.predict(X), atol=1e-5)
        assert ours.score(table, Y) == pytest.approx(peer.score(X, Y), abs=1e-6)


def test_outputs_penalised_by_entries_are_separate_models():
    joint = FusedLassoRegressor(0.1, tol=1e-10).fit(X, Y)
    alone = [FusedLassoRegressor(0.1, tol=1e-10).fit(X, y) for y in Y.T]
    np.testing.assert_allclose(joint.coef_, [model.coef_ for model in alone], atol=1e-6)
    np.testing.assert_allclose(joint.intercept_, [model.intercept_ for model in alone], atol=1e-6)
    np.testing.assert_array_equal(joint.clusters_, [model.clusters_ for model in alone])


def test_rows_are_zero_in_all_outputs_or_in_none():
    for model in (
        GeneralizedLassoClassifier(0.05, multi_class="multinomial", output_penalty="rows"),
        GroupLassoClassifier(0.05, groups=[[0, 1], [2, 3], [4, 5]], multi_class="multinomial", output_penalty="rows"),
        GeneralizedLassoRegressor(0.5, output_penalty="rows-linf"),
        GroupLassoRegressor(0.3, groups=[[0, 1], [2, 3], [4, 5]], output_penalty="rows"),
    ):
        model.fit(X, LABELS if hasattr(model, "multi_class") else Y)
        zero = model.coef_ == 0
        assert (zero.all(axis=0) == zero.any(axis=0)).all()
        assert 0 < zero.sum() < zero.size


def nuclear_optimum(loss, penalty):
    """The optimum with intercepts, by CVXPY."""
    V, free = cp.Variable((D, K)), cp.Variable(K)
    Z = X @ V + np.ones((N, 1)) @ cp.reshape(free, (1, K), order="C")
    hot = (LABELS[:, None] == np.unique(LABELS)).astype(float)
    terms = {
        "squared": lambda: 0.5 * cp.sum_squares(Z - Y),
        "multinomial": lambda: cp.sum(cp.log_sum_exp(Z, axis=1)) - cp.sum(cp.multiply(hot, Z)),
    }[loss]()
    return cp.Problem(cp.Minimize(terms / N + penalty(V))).solve(solver="CLARABEL")


def test_the_nuclear_norm_is_that_of_cvxpy():
    chain = np.diff(np.eye(D), axis=0)
    lasso = nuclear_optimum("squared", lambda V: 0.3 * cp.normNuc(V))
    fused = nuclear_optimum("squared", lambda V: 0.15 * cp.normNuc(cp.vstack([chain @ V, V])))
    tied = nuclear_optimum(
        "squared", lambda V: 0.15 * cp.normNuc(cp.vstack([chain @ V, V])) + 0.3 * cp.sum(cp.abs(V[:, 0] - V[:, 2]))
    )
    classes = nuclear_optimum("multinomial", lambda V: 0.05 * cp.normNuc(V))
    for model, best in (
        (GeneralizedLassoRegressor(0.3, output_penalty="nuclear"), lasso),
        (FusedLassoRegressor(0.3, output_penalty="nuclear"), fused),
        (FusedLassoRegressor(0.3, output_penalty="nuclear", task_graph=[(0, 2)]), tied),
        (GeneralizedLassoClassifier(0.05, multi_class="multinomial", output_penalty="nuclear"), classes),
    ):
        model.set_params(tol=1e-9).fit(X, LABELS if hasattr(model, "multi_class") else Y)
        assert model.result_.gap <= 1e-9
        assert model.result_.objective == pytest.approx(best, rel=1e-6)
        assert model.rank_ <= K
    low = GeneralizedLassoRegressor(0.8, output_penalty="nuclear").fit(X, Y)
    assert low.rank_ == np.linalg.matrix_rank(low.coef_, tol=1e-6) < K


def test_the_nuclear_norm_in_cross_validation_and_in_files(tmp_path):
    model = GeneralizedLassoRegressorCV(output_penalty="nuclear", alphas=5, eps=0.01, cv=3).fit(X, Y)
    centred = (X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)) / N
    assert model.alphas_[0] == pytest.approx(np.linalg.norm(centred, 2))
    assert model.score(X, Y) > 0.9
    model.save(tmp_path / "model.skadmm")
    again = skadmm.load(tmp_path / "model.skadmm")
    assert again.rank_ == model.rank_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="output_penalty='nuclear': a nuclear norm takes all coefficients together"):
        GroupLassoRegressor(groups=[[0, 1], [2, 3], [4, 5]], output_penalty="nuclear").fit(X, Y)


def test_a_graph_over_tasks_makes_them_equal():
    strong = FusedLassoRegressor(5.0, l1_ratio=0.0, graph=[(0, 1)], task_graph="complete").fit(X, Y)
    np.testing.assert_allclose(strong.coef_, np.tile(strong.coef_[:1], (K, 1)), atol=1e-6)
    pair = FusedLassoRegressor(5.0, l1_ratio=0.0, graph=[(0, 1)], task_graph=[(0, 2)]).fit(X, Y)
    np.testing.assert_allclose(pair.coef_[0], pair.coef_[2], atol=1e-6)
    assert np.abs(pair.coef_[0] - pair.coef_[1]).max() > 0.1


def test_a_model_is_stored_with_its_outputs(tmp_path):
    for model, y in (
        (FusedLassoClassifier(multi_class="multinomial"), LABELS),
        (FusedLassoRegressor(output_penalty="rows"), Y),
    ):
        model.fit(X, y).save(tmp_path / "model.skadmm")
        again = skadmm.load(tmp_path / "model.skadmm")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.result_.coef.shape == (K, D + 1)


def test_rows_in_files_give_the_same_model(tmp_path):
    write_blocks(tmp_path / "X", [(X[:40], None), (X[40:], None)], ones=True)
    for model, y in ((FusedLassoClassifier(multi_class="multinomial"), LABELS), (FusedLassoRegressor(), Y)):
        model.set_params(tol=1e-9)
        here, there = (clone(model).fit(table, y) for table in (X, tmp_path / "X"))
        assert here.result_.objective == pytest.approx(there.result_.objective, rel=1e-8)
        margins = [one.predict_proba(X) if hasattr(one, "multi_class") else one.predict(X) for one in (here, there)]
        np.testing.assert_allclose(*margins, atol=1e-4)


@pytest.mark.parametrize("scoring", [None, "default"])
def test_cross_validation_over_several_outputs(scoring):
    for model, y, score in (
        (FusedLassoClassifierCV(multi_class="multinomial"), LABELS, "neg_log_loss"),
        (FusedLassoRegressorCV(output_penalty="rows"), Y, "r2"),
    ):
        model.set_params(alphas=6, eps=0.01, cv=3, scoring=scoring and score).fit(X, y)
        assert model.coefs_path_.shape == (6, K, D)
        assert model.coef_.shape == (K, D)
        assert model.predict(X).shape == y.shape
        assert model.score(X, y) > 0.7


def test_information_criteria_count_all_outputs():
    model = FusedLassoClassifierCV(multi_class="multinomial", alphas=6, eps=0.01, selection="bic").fit(X, LABELS)
    expected = [2 * N * loss + np.log(N) * dof for loss, dof in zip(model.path_.losses, model.path_.dof, strict=True)]
    np.testing.assert_allclose(model.criterion_, expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"multi_class": "both"}, "multi_class='both': it takes one of 'ovr', 'multinomial'"),
        ({"multi_class": "multinomial", "loss": "squared-hinge"}, "multi_class='multinomial' takes loss='logistic'"),
        (
            {"output_penalty": "columns"},
            "output_penalty='columns': it takes one of 'entries', 'rows', 'rows-linf', 'nuclear'",
        ),
        ({"multi_class": "multinomial", "task_graph": [(0, 7)]}, "7"),
        ({"loss": "multinomial"}, "multi_class='multinomial' joins all classes"),
    ],
)
def test_what_is_not_allowed_is_said(changes, words):
    with pytest.raises(ValueError, match=words):
        FusedLassoClassifier(**changes).fit(X, LABELS)


def test_partial_fit_takes_one_output():
    assert not hasattr(FusedLassoClassifier(multi_class="multinomial"), "partial_fit")
    with pytest.raises(ValueError, match="y has 3 columns: partial_fit takes one"):
        FusedLassoRegressor().partial_fit(X, Y)
