"""Faults that users reported: options that were missing, that were refused without being named, or had no message."""

import numpy as np
import pytest

from skadmm import FusedLassoClassifier, FusedLassoRegressor, GroupLassoRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(60)
LABELS = (Y > 0).astype(int)

# -- partial_fit names what it refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("positive", True, "positive=False"),
        ("bounds", (0, 1), "bounds=None"),
        ("monotone", "increasing", "monotone=None"),
        ("adaptive", 2.0, "adaptive=False"),
        ("relax", True, "relax=False"),
        ("categorical_features", [0], "categorical_features=None"),
    ],
)
def test_partial_fit_names_the_option_its_value_and_what_is_allowed(option, value, allowed):
    model = FusedLassoRegressor(**{option: value})
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(X, Y)
    assert f"{option}={value!r}" in str(caught.value)
    assert allowed in str(caught.value)
    with pytest.raises(AttributeError, match=allowed):
        FusedLassoRegressor.partial_fit(model, X, Y)


def test_partial_fit_names_the_other_arguments_that_it_refuses():
    with pytest.raises(AttributeError, match=r"multi_class='multinomial'.*takes multi_class='ovr'"):
        FusedLassoClassifier(multi_class="multinomial").partial_fit(X, LABELS)
    with pytest.raises(AttributeError, match=r"GroupLassoRegressor .*positive=True"):
        GroupLassoRegressor(groups=[[0, 1], [2, 3, 4]], positive=True).partial_fit(X, Y)
    with pytest.raises(TypeError, match="got 'offset': it takes X, y and sample_weight"):
        FusedLassoRegressor().partial_fit(X, Y, offset=Y)
    with pytest.raises(ValueError, match=r"classes=None: .*such as classes=\[0, 1\]"):
        FusedLassoClassifier().partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="y holds 0, which"):
        FusedLassoClassifier().partial_fit(X, LABELS, classes=[1, 2])
    for model in (FusedLassoClassifier(), FusedLassoRegressor()):
        with pytest.raises(TypeError, match=r"X is 'rows\.parquet': partial_fit takes a table in memory"):
            model.partial_fit("rows.parquet", LABELS)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "binomial"])
def test_partial_fit_takes_losses_with_a_range(loss):
    """They were refused with "target[0]=-1", which was a number of the package's own."""
    mean = np.exp(X[:, 0] - X[:, 1])
    targets = {"poisson": RNG.poisson(mean), "gamma": RNG.gamma(2.0, mean / 2.0), "binomial": LABELS}[loss]
    model = FusedLassoRegressor(alpha=0.001, loss=loss)
    for _ in range(10):
        model.partial_fit(X, targets)
    assert model.score(X, targets) > 0.0  # better than a constant


def test_missing_probabilities_name_the_loss():
    model = FusedLassoClassifier(alpha=0.01, loss="hinge").fit(X, LABELS)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no probabilities with loss='hinge'"):
        model.predict_proba(X)
