"""scikit-learn's own checks, over every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from skadmm.estimators import ESTIMATORS

CHECKED = [
    cls(alphas=2, cv=2, tol=1e-9) if name.endswith("CV") else cls(tol=1e-10) for name, cls in ESTIMATORS.items()
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
