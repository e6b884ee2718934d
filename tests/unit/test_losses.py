"""Every loss in the registry: derivatives, bounds and conjugate, by what defines them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skadmm.kernels.compile import kernel
from skadmm.kernels.coupled_samples import row_conjugate, row_curvature, row_derivative, row_value
from skadmm.losses import (
    LOSSES,
    Huber,
    Logistic,
    SquaredHinge,
    as_loss,
    conjugate,
    curvature,
    derivative,
    value,
)
from skadmm.losses._base import is_coupled

# The registry decides which losses are tested: with their default parameters, and with those of the fact `examples`.
EXAMPLES = {"huber": ((0.1,), (3.0,))}
INSTANCES = {
    name: [cls(), *(cls(*arguments) for arguments in EXAMPLES.get(name, getattr(cls, "examples", ())))]
    for name, cls in LOSSES.items()
    if not is_coupled(cls)  # losses of several margins have tests of their own below
}
COUPLED = [name for name, cls in LOSSES.items() if is_coupled(cls)]
EXTREMES = [sign * size for sign in (-1.0, 1.0) for size in (1e-300, 700.0, 710.0, 1e3, 1e6)]
WIDTH = 1e-4


def kinks(loss, b):
    """The margins where ℓ'' jumps, where they are known."""
    if isinstance(loss, Huber):
        return [b - loss.delta, b + loss.delta]
    return [b] if isinstance(loss, SquaredHinge) else []


def near_a_kink(loss, z, b):
    """Does ℓ'' jump within two widths of z?"""
    if loss.name in ("logistic", "squared", "huber", "squared-hinge"):
        return any(abs(z - kink) <= 2 * WIDTH for kink in kinks(loss, b))
    across = abs(curvature(loss, z + 2 * WIDTH, b) - curvature(loss, z - 2 * WIDTH, b))
    return across > 100 * WIDTH * loss.curvature_bound


def label(loss):
    return "-".join([loss.name, *map(str, loss)])


@pytest.fixture(params=[loss for name in INSTANCES for loss in INSTANCES[name]], ids=label)
def loss(request):
    return request.param


@pytest.fixture
def targets(loss):
    return [-1.0, 1.0] if loss.labels else [-2.5, 0.0, 1.0, 7.0]


@pytest.fixture
def pairs(targets):
    return list(itertools.product(np.linspace(-9.0, 9.0, 41) + 0.0123, targets))


def four(loss, z, theta, b):
    return value(loss, z, b), derivative(loss, z, b), curvature(loss, z, b), conjugate(loss, theta, b)


compiled_four = kernel(four)


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_name_alone_will_do(name):
    assert LOSSES[name].name == name
    assert type(as_loss(name)) is LOSSES[name]


def test_derivative_is_the_slope_of_the_value(loss, pairs):
    for z, b in pairs:
        numeric = (value(loss, z + WIDTH, b) - value(loss, z - WIDTH, b)) / (2 * WIDTH)
        assert derivative(loss, z, b) == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_curvature_is_the_slope_of_the_derivative(loss, pairs):
    for z, b in pairs:
        if not near_a_kink(loss, z, b):
            numeric = (derivative(loss, z + WIDTH, b) - derivative(loss, z - WIDTH, b)) / (2 * WIDTH)
            assert curvature(loss, z, b) == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_curvature_at_a_kink_lies_between_its_sides(loss, targets):
    for b in targets:
        for kink in kinks(loss, b):
            sides = curvature(loss, kink - WIDTH, b), curvature(loss, kink + WIDTH, b)
            assert min(sides) <= curvature(loss, kink, b) <= max(sides)


def test_curvature_bound_is_the_largest_curvature(loss, pairs, targets):
    margins = [*pairs, *itertools.product([0.0, *EXTREMES], targets), *((b, b) for b in targets)]
    curvatures = [curvature(loss, z, b) for z, b in margins]
    assert min(curvatures) >= 0.0
    assert max(curvatures) == pytest.approx(loss.curvature_bound)
    for (z, b), (other, same) in itertools.pairwise(sorted(pairs, key=lambda pair: pair[::-1])):
        if b == same:
            rise = abs(derivative(loss, other, b) - derivative(loss, z, b))
            assert rise <= loss.curvature_bound * abs(other - z) * (1 + 1e-12)


@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(z=st.floats(-50, 50), other=st.floats(-50, 50), share=st.floats(0, 1), b=st.floats(-10, 10))
def test_convexity_and_the_quadratic_bound(z, other, share, b):
    for loss in itertools.chain.from_iterable(INSTANCES.values()):
        target = math.copysign(1.0, b) if loss.labels else b
        between = value(loss, share * z + (1 - share) * other, target)
        at_z, at_other = value(loss, z, target), value(loss, other, target)
        slack = 1e-9 * (1.0 + at_z + at_other)
        assert between <= share * at_z + (1 - share) * at_other + slack
        tangent = at_z + derivative(loss, z, target) * (other - z)
        assert tangent - slack <= at_other <= tangent + 0.5 * loss.curvature_bound * (other - z) ** 2 + slack


def test_conjugate_is_the_supremum(loss, targets):
    grid = np.linspace(-60.0, 60.0, 6001)
    for b in targets:
        values = np.array([value(loss, z, b) for z in grid])
        for theta in np.linspace(-3.0, 3.0, 60) + 0.0123:
            lines = theta * grid - values
            exact = conjugate(loss, theta, b)
            if math.isinf(exact):
                # Outside the domain the supremum is at the end of any grid.
                assert np.argmax(lines) in {0, grid.size - 1}
            else:
                # A grid misses the top by at most curvature_bound · width² / 8.
                assert -1e-12 * (1.0 + abs(exact)) <= exact - lines.max() <= 1e-4


def test_fenchel_young_is_an_equality_at_the_derivative(loss, pairs, targets):
    for z, b in [*pairs, *itertools.product([0.0, *EXTREMES], targets)]:
        theta = derivative(loss, z, b)
        total = value(loss, z, b) + conjugate(loss, theta, b)
        assert total == pytest.approx(theta * z, rel=1e-9, abs=1e-9)


def test_extreme_margins_are_finite(loss, targets):
    for z, b in itertools.product(EXTREMES, targets):
        for function in (four, compiled_four):
            results = function(loss, z, derivative(loss, z, b), b)
            assert all(math.isfinite(result) for result in results)
        assert value(loss, z, b) >= 0.0
        # Convex, so the slope points away from the minimiser on both sides.
        assert abs(derivative(loss, z, b)) <= loss.curvature_bound * abs(z - b) + 1.0


def test_python_equals_compiled(loss, pairs):
    for z, b in pairs:
        for theta in (-0.3, 0.0, 0.3):
            np.testing.assert_allclose(
                compiled_four(loss, z, theta, b), four(loss, z, theta, b), rtol=1e-13, atol=1e-15
            )


def test_things_that_are_no_loss_are_refused():
    with pytest.raises(ValueError, match=r"loss='logit' is not known; .* Did you mean 'logistic'\?"):
        as_loss("logit")
    for thing in (Logistic, 3, None):
        with pytest.raises(TypeError, match="is not a loss"):
            as_loss(thing)


# -- losses of several margins ---------------------------------------------------------------------------------------


def rows_of_margins():
    """Margins and one-hot targets of three classes, moderate and extreme."""
    rng = np.random.default_rng(5)
    for i in range(40):
        yield 10.0 ** rng.uniform(-2, 1.5) * rng.standard_normal(3), np.eye(3)[i % 3]


def slopes_and_hessian(loss, z, b):
    slopes, h = np.empty(z.size), np.empty(z.size)
    row_derivative(loss, z, b, slopes)
    row_curvature(loss, z, b, h)
    return slopes, np.diag(h) - np.outer(h, h) / h.sum()


@pytest.mark.parametrize("name", COUPLED)
def test_derivatives_of_several_margins(name):
    loss = as_loss(name)
    for z, b in rows_of_margins():
        slopes, hessian = slopes_and_hessian(loss, z, b)
        for c, unit in enumerate(np.eye(3)):
            width = 1e-5
            numeric = (row_value(loss, z + width * unit, b) - row_value(loss, z - width * unit, b)) / (2 * width)
            assert abs(numeric - slopes[c]) <= 1e-7 * (1 + np.abs(z).max())
            ahead, behind = (slopes_and_hessian(loss, z + sign * width * unit, b)[0] for sign in (1, -1))
            np.testing.assert_allclose((ahead - behind) / (2 * width), hessian[c], atol=1e-7)
        assert np.linalg.eigvalsh(hessian)[-1] <= loss.curvature_bound * (1 + 1e-12)


@pytest.mark.parametrize("name", COUPLED)
def test_the_conjugate_of_several_margins(name):
    """Fenchel and Young's inequality, with equality at the slopes; infinite off the domain."""
    loss = as_loss(name)
    margins = list(rows_of_margins())
    for z, b in margins:
        slopes, _ = slopes_and_hessian(loss, z, b)
        both = row_value(loss, z, b) + row_conjugate(loss, slopes, b)
        assert abs(both - slopes @ z) <= 1e-12 * (1 + np.abs(z).max())
        for other, _ in margins[:5]:
            assert row_value(loss, other, b) + row_conjugate(loss, 0.5 * slopes, b) >= 0.5 * slopes @ other - 1e-12
        assert row_conjugate(loss, slopes + 0.1, b) == math.inf
        assert row_conjugate(loss, np.array([2.0, -1.0, -1.0]), b) == math.inf


@pytest.mark.parametrize("name", COUPLED)
def test_values_of_large_margins_are_finite(name):
    loss = as_loss(name)
    for size in (700.0, 1e3, 1e6):
        z, b = np.array([size, 0.0, -size]), np.array([0.0, 0.0, 1.0])
        slopes, hessian = slopes_and_hessian(loss, z, b)
        assert row_value(loss, z, b) == 2 * size
        assert np.isfinite(slopes).all()
        assert np.isfinite(hessian).all()
