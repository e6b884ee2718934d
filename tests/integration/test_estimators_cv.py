"""scikit-learn's own checks, over every estimator with cross-validation."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from skadmm.estimators import ESTIMATORS


@parametrize_with_checks([cls(alphas=2, cv=2, tol=1e-9) for name, cls in ESTIMATORS.items() if name.endswith("CV")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
