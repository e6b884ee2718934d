"""Predictions do not depend on the units of the columns: offsets, scales, float32, storage."""

import numpy as np
import pytest
import scipy.sparse as sp

from skadmm import FusedLassoRegressor, Status
from skadmm.estimators import ESTIMATORS
from skadmm.estimators._design import build_design
from skadmm.operators import trend

SHAPES = {"tall": (400, 20), "wide": (40, 300)}
FACTORS = 10.0 ** np.random.default_rng(5).uniform(-6, 6, 300)
TABLES = {
    "offset": lambda X: X + 1e4,
    "scaled": lambda X: X * FACTORS[: X.shape[1]],
    "offset and scaled": lambda X: (X + 1e4) * FACTORS[: X.shape[1]],
    "offset, sparse": lambda X: sp.csr_array(X + 1e4),
    "sparse": sp.csr_array,
}
MODELS = {
    "fused": ("FusedLassoRegressor", {"alpha": 0.05}),
    "fused without an l1 term": ("FusedLassoRegressor", {"alpha": 0.05, "l1_ratio": 0.0}),
    "lasso": ("FusedLassoRegressor", {"alpha": 0.05, "l1_ratio": 1.0}),
    "fused, Huber": ("FusedLassoRegressor", {"alpha": 0.05, "loss": "huber"}),
    "fused, logistic": ("FusedLassoClassifier", {"alpha": 0.02}),
    "l1, logistic": ("FusedLassoClassifier", {"alpha": 0.02, "l1_ratio": 1.0}),
    "fused, squared hinge": ("FusedLassoClassifier", {"alpha": 0.02, "loss": "squared-hinge"}),
    "groups": ("GroupLassoRegressor", {"alpha": 0.05, "groups": None}),
    "groups, logistic": ("GroupLassoClassifier", {"alpha": 0.02, "groups": None}),
    "second differences": ("GeneralizedLassoRegressor", {"alpha": 0.05, "A": None}),
    "fused, CV": ("FusedLassoRegressorCV", {"alphas": 5, "cv": 2}),
    "fused, logistic, CV": ("FusedLassoClassifierCV", {"alphas": 5, "cv": 2}),
    "groups, CV": ("GroupLassoRegressorCV", {"alphas": 5, "cv": 2, "groups": None}),
}


def data(shape, labels):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X[:, :5].sum(axis=1) - X[:, 5:8].sum(axis=1) + 0.3 * rng.standard_normal(n)
    return X, (score > 0).astype(int) if labels else score


def fitted(name, d, X, y, **more):
    kind, options = MODELS[name]
    made = {"groups": np.arange(d) // 5, "A": trend(d, 1)}
    options = {key: made[key] if value is None else value for key, value in options.items()} | more
    model = ESTIMATORS[kind](**{"standardize": True, "tol": 1e-7} | options).fit(X, y)
    return model.decision_function(X) if "Classifier" in kind else model.predict(X)


@pytest.mark.filterwarnings("ignore:.*is the smallest of the grid")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_predictions_do_not_depend_on_units(name, shape):
    """Warnings are errors in the tests, so that every fit also reaches its tolerance."""
    X, y = data(shape, "Classifier" in MODELS[name][0])
    expected = fitted(name, X.shape[1], X, y)
    for kind, change in TABLES.items():
        found = fitted(name, X.shape[1], change(X), y)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max(), err_msg=kind)
    single = X.astype(np.float32)
    found, expected = (fitted(name, X.shape[1], table, y) for table in (single, single.astype(np.float64)))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("CV")])
def test_an_offset_changes_nothing_without_scaling_either(name, shape):
    X, y = data(shape, "Classifier" in MODELS[name][0])
    expected = fitted(name, X.shape[1], X, y, standardize=False)
    for table in (X + 1e4, sp.csr_array(X + 1e4)):
        found = fitted(name, X.shape[1], table, y, standardize=False)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_a_design_keeps_margins(weighted):
    """Centred dense and sparse tables, other rows, and the way back to the coefficients of the table given."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 5)) + np.array([1e4, 0.0, -3.0, 7.0, 0.0])
    X[:, 3] = 7.1
    X[rng.random(30) < 0.5, 4] = 0.0
    other = X[:4].copy()
    other[0, 0] = 0.0
    weight = rng.uniform(0.5, 2.0, 30) if weighted else None
    for table, rows in ((X, other), (sp.csr_array(X), sp.csr_array(other))):
        design = build_design(table, weight, fit_intercept=True, standardize=True)
        dense = design.X.toarray() if sp.issparse(design.X) else design.X
        np.testing.assert_allclose(np.average(dense[:, :3], axis=0, weights=weight), 0.0, atol=1e-10)
        spread = np.sqrt(
            np.average((X[:, :3] - np.average(X[:, :3], axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        )
        np.testing.assert_allclose(design.scale[:3], spread, rtol=1e-9)
        assert design.scale[3] == 1.0
        np.testing.assert_allclose(dense[:, 3], 0.0, atol=1e-12)
        x = rng.standard_normal(6)
        coef, intercept = design.original(x)
        np.testing.assert_allclose(dense @ x, X @ coef + intercept, atol=1e-9)
        np.testing.assert_allclose(design.on(rows).X @ x, other @ coef + intercept, atol=1e-9)
        np.testing.assert_allclose(design.scaled(coef, intercept), x, atol=1e-9)
    stored = build_design(sp.csr_array(X), weight, fit_intercept=True, standardize=True).X
    assert stored[:, [4]].nnz == np.count_nonzero(X[:, 4]), "a column with entries that are not stored stays sparse"


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_columns_of_any_scale_are_solved_without_scaling(alpha):
    """Twelve decades between the columns, fewer samples than features: clusters creep, and a dense model follows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 300)) * 10.0 ** rng.uniform(-6, 6, 300)
    y = (X / X.std(axis=0)) @ np.repeat(rng.standard_normal(30), 10) + 0.3 * rng.standard_normal(40)
    model = FusedLassoRegressor(alpha=alpha, standardize=False, tol=1e-6).fit(X, y)
    assert model.result_.status is Status.SOLVED
    assert model.result_.gap <= 1e-6
