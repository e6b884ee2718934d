"""scikit-learn's own checks, over every estimator; those with cross-validation are in test_estimators_cv.py."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from skadmm.estimators import ESTIMATORS


@parametrize_with_checks([cls(tol=1e-10) for name, cls in ESTIMATORS.items() if not name.endswith("CV")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
