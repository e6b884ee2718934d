"""Several outputs with offsets, constraints, adaptive weights and relax: the optima are those of CVXPY, and those of
one output at a time where the model separates."""

import math
import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skadmm import (
    FusedLassoClassifier,
    FusedLassoRegressor,
    GeneralizedLassoClassifier,
    GeneralizedLassoRegressor,
    GeneralizedLassoRegressorCV,
    GroupLassoRegressor,
    Problem,
    Status,
    solve,
)
from skadmm.backends.writer import write_blocks
from skadmm.kernels.compile import facts
from skadmm.operators import output_groups
from skadmm.regularizers import L1, ElasticNet, GroupL2, define_separable

N, D, K, ALPHA = 70, 5, 3, 0.05
rng = np.random.default_rng(31)
X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.8)
W = np.vstack([rng.standard_normal((3, K)), np.zeros((2, K))])
OFFSET = 0.5 * rng.standard_normal((N, K))
Y = X @ W + OFFSET + 0.5 * rng.standard_normal((N, K))
COUNTS = rng.poisson(np.exp(0.3 * X @ W + OFFSET)).astype(float)
LABELS = np.argmax(X @ W + OFFSET + rng.gumbel(size=(N, K)), axis=1)
ONE_HOT = np.eye(K)[LABELS]
TARGETS = {"squared": Y, "huber": Y, "poisson": COUNTS, "multinomial": LABELS}
CHAIN = np.diff(np.eye(D), axis=0)
STORAGE = {"dense": np.asarray, "csr": sp.csr_array}


def loss_in_cvxpy(loss, Z):
    """The mean over samples of the loss at margins Z."""
    if loss == "squared":
        return cp.sum_squares(Z - Y) / (2 * N)
    if loss == "huber":
        return cp.sum(cp.huber(Z - Y, 1.0)) / (2 * N)
    if loss == "poisson":
        return cp.sum(cp.exp(Z) - cp.multiply(COUNTS, Z)) / N
    return (cp.sum(cp.log_sum_exp(Z, axis=1)) - cp.sum(cp.multiply(ONE_HOT, Z))) / N


def minimum(objective, constraints=()):
    """The optimum by CVXPY."""
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def value(objective, V, b, model):
    """The objective of CVXPY at a fitted model."""
    V.value, b.value = model.coef_.T, np.asarray(model.intercept_)
    return objective.value


# -- offsets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORAGE)
@pytest.mark.parametrize("loss", ["huber", "poisson", "multinomial"])
def test_a_problem_with_an_offset_for_every_output(tmp_path, loss, kind):
    V = cp.Variable((D, K))
    minimum(loss_in_cvxpy(loss, X @ V + OFFSET) + ALPHA * cp.sum(cp.norm(V, axis=1)))
    psi = GroupL2(ALPHA, groups=output_groups(D, K))
    write_blocks(tmp_path / "X", [(STORAGE[kind](X[:30]), None), (STORAGE[kind](X[30:]), None)])
    for rows in (STORAGE[kind](X), tmp_path / "X"):
        problem = Problem(rows, TARGETS[loss], loss, psi=psi, offset=OFFSET)
        result, best = solve(problem, tol=1e-9), problem.objective(V.value.T.ravel())
        assert result.status.name == "SOLVED"
        assert result.gap <= 1e-9
        assert abs(result.objective - best) <= 1e-7 * abs(best)


def test_a_vector_is_the_offset_of_all_outputs():
    one = solve(Problem(X, COUNTS, "poisson", psi=L1(ALPHA), offset=OFFSET[:, 0]), tol=1e-10)
    each = solve(Problem(X, COUNTS, "poisson", psi=L1(ALPHA), offset=np.tile(OFFSET[:, :1], K)), tol=1e-10)
    np.testing.assert_allclose(one.x, each.x, atol=1e-12)


def test_offsets_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"offset has shape \(70,\): with 3 outputs it takes shape \(70, 3\), a col"):
        Problem(X, LABELS, "multinomial", psi=L1(ALPHA), offset=OFFSET[:, 0])
    with pytest.raises(ValueError, match=r"offset has shape \(70, 2\): with 3 outputs it takes shape \(70,\) or"):
        Problem(X, COUNTS, "poisson", psi=L1(ALPHA), offset=OFFSET[:, :2])
    with pytest.raises(ValueError, match="offset contains NaN"):
        Problem(X, COUNTS, "poisson", psi=L1(ALPHA), offset=np.where(OFFSET > 0, np.nan, OFFSET))


@pytest.mark.parametrize("kind", STORAGE)
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_regressors_with_an_offset_for_every_output(loss, kind):
    V, b = cp.Variable((D, K)), cp.Variable(K)
    objective = loss_in_cvxpy(loss, X @ V + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C") + OFFSET)
    objective = objective + ALPHA * cp.sum(cp.norm(V, axis=1))
    best = minimum(objective)
    model = GeneralizedLassoRegressor(ALPHA, l1_ratio=1.0, loss=loss, output_penalty="rows", tol=1e-9)
    model.fit(STORAGE[kind](X), TARGETS[loss], offset=OFFSET)
    assert abs(value(objective, V, b, model) - best) <= 1e-7 * abs(best)
    margins = X @ model.coef_.T + model.intercept_ + OFFSET
    expected = np.exp(margins) if loss == "poisson" else margins
    np.testing.assert_allclose(model.predict(X, offset=OFFSET), expected)
    alone = [
        GeneralizedLassoRegressor(0.0, loss=loss).fit(X, TARGETS[loss][:, c], offset=OFFSET[:, c]) for c in range(K)
    ]
    joint = GeneralizedLassoRegressor(0.0, loss=loss).fit(X, TARGETS[loss], offset=OFFSET)
    scores = [one.score(X, TARGETS[loss][:, c], offset=OFFSET[:, c]) for c, one in enumerate(alone)]
    assert joint.score(X, TARGETS[loss], offset=OFFSET) == pytest.approx(np.mean(scores), abs=1e-5)


@pytest.mark.parametrize("multi_class", ["multinomial", "ovr"])
def test_classifiers_with_an_offset_for_every_class(multi_class):
    model = GeneralizedLassoClassifier(ALPHA, l1_ratio=1.0, multi_class=multi_class, tol=1e-9)
    model.fit(X, LABELS, offset=OFFSET)
    margins = X @ model.coef_.T + model.intercept_ + OFFSET
    np.testing.assert_allclose(model.decision_function(X, offset=OFFSET), margins)
    np.testing.assert_array_equal(model.predict(X, offset=OFFSET), margins.argmax(axis=1))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X, OFFSET)), model.predict_proba(X, OFFSET))
    with pytest.raises(ValueError, match=r"offset has shape \(70,\)"):
        model.fit(X, LABELS, offset=OFFSET[:, 0])
    if multi_class == "ovr":
        for c in range(K):
            one = GeneralizedLassoClassifier(ALPHA, l1_ratio=1.0, tol=1e-9).fit(X, ONE_HOT[:, c], offset=OFFSET[:, c])
            np.testing.assert_allclose(model.coef_[c], one.coef_[0], atol=1e-12)
        return
    V, b = cp.Variable((D, K)), cp.Variable(K)
    objective = loss_in_cvxpy("multinomial", X @ V + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C") + OFFSET)
    objective = objective + ALPHA * cp.sum(cp.abs(V))
    best = minimum(objective)
    assert abs(value(objective, V, b, model) - best) <= 1e-7 * best


def test_cross_validation_holds_out_rows_with_their_offsets():
    """A loss of residuals takes Y − offset for its target, so both models and all held-out losses are the same."""
    alphas = [0.2, 0.05, 0.01]
    model = GeneralizedLassoRegressorCV(alphas=alphas, cv=3, loss="huber", output_penalty="rows", tol=1e-8)
    with_offset = model.fit(X, Y, offset=OFFSET).cv_losses_
    np.testing.assert_allclose(with_offset, model.fit(X, Y - OFFSET).cv_losses_, rtol=1e-6)
    counts = GeneralizedLassoRegressorCV(alphas=alphas, cv=3, loss="poisson", output_penalty="rows")
    assert np.isfinite(counts.fit(X, COUNTS, offset=OFFSET).cv_losses_).all()
    assert counts.score(X, COUNTS, offset=OFFSET) > counts.score(X, COUNTS, offset=0.0)


# -- constraints ---------------------------------------------------------------------------------------------------

ACROSS = {
    "entries": lambda V: cp.sum(cp.abs(V)),
    "rows": lambda V: cp.sum(cp.norm(V, axis=1)),
    "rows-linf": lambda V: cp.sum(cp.norm(V, "inf", axis=1)),
}
CONSTRAINTS = {
    "positive": ({"positive": True}, lambda V: [V >= 0]),
    "bounds": ({"bounds": (-0.3, 0.2)}, lambda V: [V >= -0.3, V <= 0.2]),
    "monotone": ({"monotone": "increasing"}, lambda V: [CHAIN @ V >= 0]),
}


@pytest.mark.parametrize("across", ACROSS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", ["squared", "poisson", "multinomial"])
def test_constraints_hold_in_every_output(loss, constraint, across):
    if loss == "multinomial" and across == "rows-linf":
        with pytest.raises(ValueError, match="output_penalty='rows-linf': positive, bounds and monotone"):
            FusedLassoClassifier(
                ALPHA, multi_class="multinomial", output_penalty=across, **CONSTRAINTS[constraint][0]
            ).fit(X, LABELS)
        return
    options, in_cvxpy = CONSTRAINTS[constraint]
    V, b = cp.Variable((D, K)), cp.Variable(K)
    objective = loss_in_cvxpy(loss, X @ V + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C"))
    objective = objective + 0.5 * ALPHA * (ACROSS[across](CHAIN @ V) + ACROSS[across](V))
    best = minimum(objective, in_cvxpy(V))
    options = options | {"output_penalty": across, "l1_ratio": 0.5, "tol": 1e-8 if loss != "multinomial" else 1e-6}
    if loss == "multinomial":
        model = FusedLassoClassifier(ALPHA, multi_class="multinomial", **options).fit(X, LABELS)
    else:
        model = FusedLassoRegressor(ALPHA, loss=loss, **options).fit(X, TARGETS[loss])
    coef = model.coef_
    assert abs(value(objective, V, b, model) - best) <= 1e-6 * abs(best)
    if constraint == "positive":
        assert coef.min() >= 0.0
    elif constraint == "bounds":
        assert coef.min() >= -0.3
        assert coef.max() <= 0.2
    else:
        assert np.diff(coef, axis=1).min() >= 0.0


@pytest.mark.parametrize("kind", STORAGE)
def test_non_negative_groups_across_outputs(kind):
    """Blocks with bounds at zero, which block descent takes."""
    V, b = cp.Variable((D, K)), cp.Variable(K)
    objective = loss_in_cvxpy("multinomial", X @ V + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C"))
    objective = objective + ALPHA * cp.sum(cp.norm(V, axis=1))
    best = minimum(objective, [V >= 0])
    model = GeneralizedLassoClassifier(
        ALPHA, l1_ratio=1.0, multi_class="multinomial", output_penalty="rows", positive=True, tol=1e-8
    )
    model.fit(STORAGE[kind](X), LABELS)
    assert abs(value(objective, V, b, model) - best) <= 1e-6 * best


# -- adaptive weights and relax ------------------------------------------------------------------------------------


@pytest.mark.parametrize("across", ["entries", "rows"])
def test_adaptive_weights_are_shared_by_all_outputs(across):
    model = GeneralizedLassoRegressor(ALPHA, l1_ratio=1.0, adaptive=True, output_penalty=across, tol=1e-9).fit(X, Y)
    weights = model.adaptive_weights_
    assert weights.shape == (D,)
    assert weights[:3].max() < weights[3:].min()
    V, b = cp.Variable((D, K)), cp.Variable(K)
    objective = loss_in_cvxpy("squared", X @ V + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C"))
    objective = objective + ALPHA * ACROSS[across](np.diag(weights) @ V)
    best = minimum(objective)
    assert abs(value(objective, V, b, model) - best) <= 1e-7 * best
    classifier = GeneralizedLassoClassifier(ALPHA, multi_class="multinomial", adaptive=True, output_penalty=across)
    assert classifier.fit(X, LABELS).adaptive_weights_.shape == (D,)


def test_relax_fits_every_output_again_on_its_own_structure():
    joint = FusedLassoRegressor(0.2, output_penalty="rows", relax=True, tol=1e-9).fit(X, Y)
    for c in range(K):
        coef, labels = joint.penalized_coef_[c], joint.clusters_[c]
        members = np.array([labels == g for g in range(labels.max() + 1) if np.any(coef[labels == g] != 0)], float)
        columns = np.column_stack([X @ members.T, np.ones(N)])
        best, *_ = np.linalg.lstsq(columns, Y[:, c])
        np.testing.assert_allclose(joint.coef_[c], best[:-1] @ members, atol=1e-6)
        residual = Y[:, c] - columns @ best
        inverse = np.linalg.inv(columns.T @ columns) * (residual @ residual) / (N - columns.shape[1])
        errors = np.sqrt(np.diag(inverse))[:-1]
        expected = np.where(members.any(axis=0), errors @ members, np.nan)
        np.testing.assert_allclose(joint.standard_errors_[c], expected, atol=1e-6)


def test_relax_with_offsets_and_groups():
    model = GroupLassoRegressor(0.1, groups=[[0, 1], [2], [3, 4]], loss="poisson", relax=True, tol=1e-9)
    model.fit(X, COUNTS, offset=OFFSET)
    for c in range(K):
        kept = np.flatnonzero(model.penalized_coef_[c])
        alone = GeneralizedLassoRegressor(0.0, loss="poisson", tol=1e-10)
        alone.fit(X[:, kept], COUNTS[:, c], offset=OFFSET[:, c])
        np.testing.assert_allclose(model.coef_[c, kept], alone.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relax": True, "task_graph": "complete"}, "relax=True: it fits every output by itself, and task_graph joins"),
        ({"relax": True, "output_penalty": "nuclear"}, "relax=True: .* output_penalty='nuclear' joins them"),
        ({"positive": True, "output_penalty": "nuclear"}, "output_penalty='nuclear': positive, bounds and monotone"),
        ({"adaptive": True, "output_penalty": "nuclear"}, "adaptive=True: output_penalty='nuclear' has no terms"),
        ({"penalty": "linf", "output_penalty": "rows"}, r"output_penalty='rows': with penalty=LInf\(...\) it"),
        ({"penalty": "linf", "task_graph": "complete"}, r"task_graph='complete': .* penalty='l1', .* LInf\(...\)"),
    ],
)
def test_what_joins_outputs_is_refused_with_its_reason(options, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedLassoRegressor(ALPHA, **options).fit(X, Y)


def test_relax_of_a_multinomial_model_is_refused_with_its_reason():
    with pytest.raises(ValueError, match="relax=True: it fits every output by itself, and multi_class='multinomial'"):
        FusedLassoClassifier(ALPHA, multi_class="multinomial", relax=True).fit(X, LABELS)


@facts(name="increases", separable=True, smooth=False, subdifferentiable=True)
class Increases(NamedTuple):
    """A user's penalty, whose prices differ between coordinates: Σ price_j max(v_j, 0)."""

    strength: float = 1.0
    price: tuple = ()

    def prepared(self, size, role):
        if np.size(self.price) != size:
            raise ValueError(f"{role}: {size} prices")
        return self._replace(price=np.asarray(self.price, dtype=float))

    @property
    def strong_convexity(self):
        return 0.0

    def lipschitz(self, size):
        return self.strength * float(np.linalg.norm(self.price))


define_separable(
    Increases,
    value_at=lambda reg, j, v: reg.strength * reg.price[j] * max(v, 0.0),
    prox_at=lambda reg, j, v, step: v - min(max(v, 0.0), step * reg.strength * reg.price[j]),
    subgradient_at=lambda reg, j, v: reg.strength * reg.price[j] if v > 0.0 else 0.0,
    conjugate_at=lambda reg, j, w: 0.0 if 0.0 <= w <= reg.strength * reg.price[j] else math.inf,
    dual_scale_at=lambda reg, j, w: 0.0 if w < 0.0 else min(1.0, reg.strength * reg.price[j] / max(w, 1e-300)),
)
PRICES = np.array([1.0, 2.0, 0.5, 1.0])
PENALTIES = {
    "linf": ("linf", 0.0),
    "weighted-l1": (L1(weights=PRICES), 0.0),
    "elastic-net": (ElasticNet(1.0, 0.3), 0.0),
    "groups-mixed-with-l1": (GroupL2(groups=[0, 0, 1, 1]), 0.3),
    "of-a-user": (Increases(1.0, tuple(PRICES)), 0.0),
}


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_any_penalty_is_that_of_each_output(name, positive):
    penalty, l1_ratio = PENALTIES[name]
    model = GeneralizedLassoRegressor(
        ALPHA, A=CHAIN, penalty=penalty, l1_ratio=l1_ratio, positive=positive, tol=1e-9, max_passes=5000
    ).fit(X, Y)
    assert model.result_.status is Status.SOLVED
    for c in range(K):
        alone = clone(model).fit(X, Y[:, c])
        np.testing.assert_allclose(model.coef_[c], alone.coef_, atol=1e-6)
        assert model.intercept_[c] == pytest.approx(alone.intercept_, abs=1e-6)


@pytest.mark.parametrize("name", ["linf", "of-a-user"])
def test_any_penalty_on_the_classes_of_a_multinomial_model(name):
    model = GeneralizedLassoClassifier(
        ALPHA, A=CHAIN, penalty=PENALTIES[name][0], multi_class="multinomial", tol=1e-7, max_passes=5000
    ).fit(X, LABELS)
    V, b = cp.Variable((K, D)), cp.Variable(K)
    steps = CHAIN @ V.T
    penalty = cp.sum(cp.max(cp.abs(steps), axis=0)) if name == "linf" else cp.sum(PRICES @ cp.pos(steps))
    objective = loss_in_cvxpy("multinomial", X @ V.T + np.ones((N, 1)) @ cp.reshape(b, (1, K), order="C"))
    objective += ALPHA * penalty
    best = minimum(objective)
    V.value, b.value = model.coef_, model.intercept_
    assert objective.value == pytest.approx(best, rel=1e-5)
    assert model.predict_proba(X).shape == (N, K)


def test_cross_validation_of_any_penalty_with_several_outputs():
    model = GeneralizedLassoRegressorCV(alphas=[0.5, 0.05], A=CHAIN, penalty="linf", cv=3).fit(X, Y)
    alone = GeneralizedLassoRegressor(model.alpha_, A=CHAIN, penalty="linf", tol=model.tol).fit(X, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-3)
