"""Estimators take every loss and penalty that ``solve`` takes: registered ones, and those of a user's own."""

import itertools
import math
from typing import NamedTuple, Self

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from skadmm import Problem, solve
from skadmm.estimators import ESTIMATORS, GeneralizedLassoRegressor, GeneralizedLassoRegressorCV
from skadmm.kernels.compile import facts
from skadmm.losses import LOSSES, Huber, Logistic, as_loss, define
from skadmm.operators import chain, overlapping_groups, stack
from skadmm.problem.alpha_max import alpha_max
from skadmm.regularizers import L1, L2, REGULARIZERS, Box, GroupL2, NonNegative, Stacked, define_separable
from skadmm.regularizers._base import checked_strength, shrunk


@facts(name="fraction", labels=False, attained=False)
class Fraction(NamedTuple):
    """ℓ(z, b) = log(1 + exp z) − bz for a proportion b in [0, 1]; not a function of z − b, and with a mean."""

    @property
    def curvature_bound(self) -> float:
        return 0.25

    def mean(self, margins: np.ndarray) -> np.ndarray:
        return expit(margins)


def _fraction(loss, z, b):
    return math.log1p(math.exp(-abs(z))) + max(z, 0.0) - b * z


def _fraction_derivative(loss, z, b):
    e = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else e) / (1.0 + e) - b


def _fraction_curvature(loss, z, b):
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


def _fraction_conjugate(loss, theta, b):
    p = theta + b
    if p < 0.0 or p > 1.0:
        return math.inf
    total = 0.0
    if p > 0.0:
        total += p * math.log(p)
    if p < 1.0:
        total += (1.0 - p) * math.log1p(-p)
    return total


define(
    Fraction, value=_fraction, derivative=_fraction_derivative, curvature=_fraction_curvature,
    conjugate=_fraction_conjugate,
)  # fmt: skip


@facts(name="smooth-hinge", labels=True, attained=True)
class SmoothHinge(NamedTuple):
    """ℓ(z, b) = 0 for bz ≥ 1, ½(1 − bz)² for 0 < bz < 1, and ½ − bz beyond."""

    @property
    def curvature_bound(self) -> float:
        return 1.0


def _hinge(loss, z, b):
    slack = min(max(1.0 - b * z, 0.0), 1.0)
    return 0.5 * slack * slack + max(-b * z, 0.0)


def _hinge_conjugate(loss, theta, b):
    u = b * theta
    return u + 0.5 * u * u if -1.0 <= u <= 0.0 else math.inf


define(
    SmoothHinge, value=_hinge, derivative=lambda loss, z, b: -b * min(max(1.0 - b * z, 0.0), 1.0),
    curvature=lambda loss, z, b: 1.0 if 0.0 < b * z < 1.0 else 0.0, conjugate=_hinge_conjugate,
)  # fmt: skip


@facts(name="asymmetric", separable=True, smooth=False, subdifferentiable=True)
class Asymmetric(NamedTuple):
    """reg(v) = strength · Σ (2 max(v_j, 0) + max(−v_j, 0))."""

    strength: float = 1.0

    def prepared(self, size: int, role: str) -> Self:
        return self._replace(strength=checked_strength(self, role))

    @property
    def strong_convexity(self) -> float:
        return 0.0

    def lipschitz(self, size: int) -> float:
        return 2.0 * self.strength * math.sqrt(size)


def _asymmetric_scale(reg, j, w):
    size = max(0.5 * w, -w)
    return 1.0 if size <= reg.strength else shrunk(reg.strength / size, 1)


define_separable(
    Asymmetric,
    value_at=lambda reg, j, v: reg.strength * max(2.0 * v, -v),
    prox_at=lambda reg, j, v, step: v - min(max(v, -step * reg.strength), 2.0 * step * reg.strength),
    subgradient_at=lambda reg, j, v: 0.0 if v == 0.0 else (2.0 * reg.strength if v > 0.0 else -reg.strength),
    conjugate_at=lambda reg, j, w: 0.0 if -reg.strength <= w <= 2.0 * reg.strength else math.inf,
    dual_scale_at=_asymmetric_scale,
)

RNG = np.random.default_rng(0)
N, D = 90, 6
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
MARGIN = X @ [1.0, 1.0, 1.0, 0.0, 0.0, -1.0] + 0.5 + 0.5 * RNG.standard_normal(N)
GROUPS = [[0, 1, 2], [3, 4, 5]]
TABLES = {"dense": np.ascontiguousarray, "sparse": sp.csr_array}
ALPHA = 0.02
FAMILIES = ("Fused", "Generalized", "Group")
ALL_LOSSES = [*(name for name, cls in LOSSES.items() if not cls.coupled), Fraction(), SmoothHinge(), Huber(0.5)]
ONCE = ("gamma", "binomial", "tweedie", "negative-binomial", "smoothed-quantile", "absolute", "hinge")
"""Losses that are compiled for one kind of table here."""
CELLS = [
    (family, loss, kind)
    for family, loss, kind in itertools.product(FAMILIES, ALL_LOSSES, TABLES)
    if kind == "dense" or loss not in ONCE
]


def labels_of(loss):
    return (LOSSES[loss] if isinstance(loss, str) else loss).labels


def target_of(loss):
    if labels_of(loss):
        return np.where(MARGIN > 0, "yes", "no")
    if isinstance(loss, Fraction):
        return expit(MARGIN)
    if loss == "binomial":
        return expit(MARGIN)
    positive = isinstance(loss, str) and LOSSES[loss].target_minimum == 0.0
    return np.exp(MARGIN) if positive else MARGIN


def mean_of(loss):
    """What is predicted at a margin."""
    if isinstance(loss, Fraction) or loss == "binomial":
        return expit
    logarithmic = isinstance(loss, str) and LOSSES[loss].link is not None
    return np.exp if logarithmic else np.asarray


def model_of(family, loss, kind="", **parameters):
    own = {"Fused": {}, "Generalized": {"A": chain(D)}, "Group": {"groups": GROUPS, "group_weights": None}}[family]
    name = f"{family}Lasso{'Classifier' if labels_of(loss) else 'Regressor'}{kind}"
    return ESTIMATORS[name](loss=loss, **own, **parameters)


def problem_of(family, loss, alpha, table):
    """The same problem for ``solve``: a column of ones for the intercept, which no penalty reaches."""
    ones = np.column_stack([X, np.ones(N)])
    if family == "Group":
        A, rows = overlapping_groups(GROUPS, D)
        psi = GroupL2(alpha, rows)
    else:
        weights = [0.5, 0.5] if family == "Fused" else [1.0]
        A = stack(chain(D), "identity", weights=weights) if family == "Fused" else chain(D)
        psi = L1(alpha)
    A = sp.hstack([A, sp.csr_array((A.shape[0], 1))], format="csr")
    return Problem(table(ones), target_of(loss), loss, psi=psi, A=A)


@pytest.mark.parametrize(("family", "loss", "kind"), CELLS, ids=str)
def test_every_loss_with_every_model(family, loss, kind):
    table, target = TABLES[kind], target_of(loss)
    tol = 1e-10 if as_loss(loss).smooth else 1e-7  # without curvature rounding allows no more
    model = model_of(family, loss, alpha=ALPHA, tol=tol).fit(table(X), target)
    expected = solve(problem_of(family, loss, ALPHA, table), tol=tol)
    np.testing.assert_allclose(model.coef_.ravel(), expected.x[:D], atol=1e-5)
    np.testing.assert_allclose(model.intercept_, expected.x[D], atol=1e-5)
    margins = X @ model.coef_.ravel() + model.intercept_
    if labels_of(loss):
        np.testing.assert_allclose(model.decision_function(table(X)), margins, atol=1e-12)
        np.testing.assert_array_equal(model.predict(table(X)), np.where(margins > 0, "yes", "no"))
        assert hasattr(model, "predict_proba") == (loss == "logistic")
        assert model.score(table(X), target) == np.mean(model.predict(X) == target) > 0.7
    else:
        np.testing.assert_allclose(model.predict(table(X)), mean_of(loss)(margins), rtol=1e-12, atol=1e-12)
        assert model.score(table(X), target) > 0.4


@pytest.mark.parametrize(("family", "loss", "kind"), CELLS, ids=str)
def test_every_loss_with_a_path(family, loss, kind):
    table, target = TABLES[kind], target_of(loss)
    model = model_of(family, loss, "CV", alphas=3, cv=2, tol=1e-8).fit(table(X), target)
    problem = problem_of(family, loss, 1.0, table)
    assert model.alphas_.shape == (3,)
    assert model.alphas_[0] == pytest.approx(alpha_max(problem), rel=1e-6)
    assert np.isfinite(model.cv_mean_).all()
    assert model.alpha_ in model.alphas_
    expected = solve(problem_of(family, loss, model.alpha_, table), tol=1e-8)
    np.testing.assert_allclose(model.coef_.ravel(), expected.x[:D], atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", Logistic()], ids=str)
def test_probabilities_are_those_of_the_loss(loss):
    model = model_of("Fused", loss, alpha=ALPHA).fit(X, target_of(loss))
    margins = model.decision_function(X)
    np.testing.assert_array_equal(model.predict_proba(X), np.column_stack([expit(-margins), expit(margins)]))


def test_losses_of_the_wrong_kind_are_refused():
    numbers = "it takes one of 'squared', 'huber', 'poisson', .*, or an instance of a loss for numbers"
    classes = "it takes one of 'logistic', 'squared-hinge', 'hinge', or an instance of a loss for two classes"
    with pytest.raises(ValueError, match=rf"loss='logistic': {numbers}"):
        ESTIMATORS["FusedLassoRegressor"](loss="logistic").fit(X, MARGIN)
    with pytest.raises(ValueError, match=rf"loss=SmoothHinge\(\): {numbers}"):
        ESTIMATORS["FusedLassoRegressor"](loss=SmoothHinge()).fit(X, MARGIN)
    with pytest.raises(ValueError, match=rf"loss=Fraction\(\): {classes}"):
        ESTIMATORS["GroupLassoClassifier"](loss=Fraction()).fit(X, MARGIN > 0)
    with pytest.raises(ValueError, match=rf"loss='logistc': {classes}. Did you mean 'logistic'\?"):
        ESTIMATORS["GroupLassoClassifier"](loss="logistc").fit(X, MARGIN > 0)
    for thing in (3, None, Huber):
        with pytest.raises(TypeError, match=rf"^loss=.*: {numbers}"):
            ESTIMATORS["FusedLassoRegressor"](loss=thing).fit(X, MARGIN)


def test_a_loss_without_a_name_in_the_registry_is_not_saved(tmp_path):
    model = model_of("Fused", Fraction(), alpha=ALPHA).fit(X, target_of(Fraction()))
    with pytest.raises(TypeError, match=r"loss=Fraction\(\) cannot be saved"):
        model.save(tmp_path / "model")
    model = GeneralizedLassoRegressor(ALPHA, penalty=Asymmetric()).fit(X, MARGIN)
    with pytest.raises(TypeError, match=r"penalty=Asymmetric\(strength=1.0\) cannot be saved"):
        model.save(tmp_path / "model")


def penalty_problem(reg, ratio, alpha, A):
    """The generalised lasso's problem with the penalty `reg`, for ``solve``."""
    m = A.shape[0]
    whole = sp.vstack([A, sp.eye_array(D)]) if ratio else A
    padded = sp.hstack([whole, sp.csr_array((whole.shape[0], 1))], format="csr")
    first = reg._replace(strength=alpha * (1 - ratio))
    psi = Stacked(first, L1(alpha * ratio), m) if ratio else first
    return Problem(np.column_stack([X, np.ones(N)]), MARGIN, "squared", psi=psi, A=padded)


WITH_STRENGTH = [name for name, cls in REGULARIZERS.items() if "strength" in cls._fields]
PENALTIES = [*WITH_STRENGTH, L1(3.0, np.arange(1.0, D)), GroupL2(1.0, [[0, 1], [2, 3, 4]]), Asymmetric(7.0)]


MIXED = ["squared-l2", PENALTIES[-2], PENALTIES[-1]]  # each pair is compiled anew, as Mixture and as Stacked
CASES = [(penalty, 0.0) for penalty in PENALTIES] + [(penalty, 0.3) for penalty in MIXED]


@pytest.mark.parametrize(("penalty", "ratio"), CASES, ids=lambda part: getattr(part, "name", str(part)))
def test_every_penalty_with_a_strength(penalty, ratio):
    reg = REGULARIZERS[penalty]() if isinstance(penalty, str) else penalty
    model = GeneralizedLassoRegressor(ALPHA, A=chain(D), penalty=penalty, l1_ratio=ratio, tol=1e-9).fit(X, MARGIN)
    problem = penalty_problem(reg, ratio, ALPHA, chain(D))
    expected = solve(problem, tol=1e-9)
    assert problem.objective(np.append(model.coef_, model.intercept_)) <= expected.objective * (1 + 1e-8)
    np.testing.assert_allclose(model.coef_, expected.x[:D], atol=1e-4)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
@pytest.mark.parametrize("penalty", ["l2", Asymmetric()], ids=str)
def test_cross_validation_with_a_penalty(penalty, ratio):
    model = GeneralizedLassoRegressorCV(A=chain(D), penalty=penalty, l1_ratio=ratio, alphas=3, cv=2).fit(X, MARGIN)
    reg = REGULARIZERS[penalty]() if isinstance(penalty, str) else penalty
    at_top = solve(penalty_problem(reg, ratio, model.alphas_[0] * (1 + 1e-6), chain(D)), tol=1e-10)
    just_below = solve(penalty_problem(reg, ratio, 0.5 * model.alphas_[0], chain(D)), tol=1e-10)
    A = sp.vstack([chain(D), sp.eye_array(D)]) if ratio else chain(D)
    assert np.abs(A @ at_top.x[:D]).max() <= 1e-6
    assert np.abs(A @ just_below.x[:D]).max() > 1e-3
    assert model.alpha_ in model.alphas_
    expected = solve(penalty_problem(reg, ratio, model.alpha_, chain(D)), tol=1e-9)
    np.testing.assert_allclose(model.coef_, expected.x[:D], atol=1e-3)


def test_penalties_that_alpha_cannot_scale_are_refused():
    allowed = "it takes one of 'l1', 'l2', .* or an instance of a regulariser with a field 'strength'"
    for penalty in ("zero", "non-negative", "box", Box(), NonNegative(), Stacked(L1(), L2(), 2)):
        with pytest.raises(ValueError, match=rf"^penalty=.* has no strength, which alpha would scale: {allowed}"):
            GeneralizedLassoRegressor(penalty=penalty).fit(X, MARGIN)
    with pytest.raises(ValueError, match=rf"^penalty='l3': {allowed}. Did you mean 'l\d'\?"):
        GeneralizedLassoRegressor(penalty="l3").fit(X, MARGIN)
    for penalty in (0.5, L1):
        with pytest.raises(TypeError, match=r"^penalty=.* is not a regulariser"):
            GeneralizedLassoRegressor(penalty=penalty).fit(X, MARGIN)
    with pytest.raises(TypeError, match=r"^penalty=None: it takes one of"):
        GeneralizedLassoRegressor(penalty=None).fit(X, MARGIN)
    with pytest.raises(ValueError, match=r"never becomes exactly zero.*give the alphas"):
        GeneralizedLassoRegressorCV(penalty="squared-l2").fit(X, MARGIN)
    model = GeneralizedLassoRegressorCV(penalty="squared-l2", alphas=[1.0, 0.1], cv=2).fit(X, MARGIN)
    assert model.alpha_ == 0.1
