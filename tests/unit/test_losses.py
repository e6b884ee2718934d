"""Every loss in the registry: derivatives, bounds and conjugate, by what defines them."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skadmm.kernels.compile import facts, kernel
from skadmm.kernels.coupled_samples import row_conjugate, row_curvature, row_derivative, row_evaluate, row_value
from skadmm.kernels.loss_functions import envelope_curvature, envelope_slope, model_curvature, prox
from skadmm.losses import (
    LOSSES,
    Binomial,
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedQuantile,
    SquaredHinge,
    Tweedie,
    as_loss,
    check_loss,
    conjugate,
    curvature,
    define,
    derivative,
    deviance,
    value,
)
from skadmm.losses.envelope import Envelope
from skadmm.losses.offset import TARGET, Offset, offset_loss, split_offset, with_offset

# The registry decides which losses are tested: with their default parameters, and with those of the fact `examples`.
EXAMPLES = {"huber": ((0.1,), (3.0,))}
INSTANCES = {
    name: [cls(), *(cls(*arguments) for arguments in EXAMPLES.get(name, getattr(cls, "examples", ())))]
    for name, cls in LOSSES.items()
    if not cls.coupled  # losses of several margins have tests of their own below
}
COUPLED = [name for name, cls in LOSSES.items() if cls.coupled]
EXTREMES = [sign * size for sign in (-1.0, 1.0) for size in (1e-300, 700.0, 710.0, 1e3, 1e6)]
WIDTH = 1e-4


def kinks(loss, b):
    """The margins where ℓ'' jumps, where they are known."""
    if isinstance(loss, Huber):
        return [b - loss.delta, b + loss.delta]
    if isinstance(loss, SmoothedQuantile):
        return [b - loss.q * loss.width, b + (1.0 - loss.q) * loss.width]
    return [b] if isinstance(loss, SquaredHinge) or not loss.smooth else []


def near_a_kink(loss, z, b):
    """Does ℓ'' jump within two widths of z?"""
    if not math.isfinite(loss.curvature_bound) or kinks(loss, b) or loss.name in ("logistic", "binomial", "squared"):
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
    if loss.labels:
        return [-1.0, 1.0]
    return [b for b in (-2.5, 0.0, 0.3, 1.0, 7.0) if allowed(loss, b)]


def allowed(loss, b):
    """Is b a target of the loss?"""
    above = b > loss.target_minimum or (b == loss.target_minimum and not loss.target_open)
    return above and b <= loss.target_maximum


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
        if loss.smooth or not near_a_kink(loss, z, b):
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
    if not math.isfinite(loss.curvature_bound):
        assert not loss.smooth or max(curvatures) > 1e100 or isinstance(loss, NegativeBinomial)  # grows with b
        return
    assert max(curvatures) == pytest.approx(loss.curvature_bound)
    for (z, b), (other, same) in itertools.pairwise(sorted(pairs, key=lambda pair: pair[::-1])):
        if b == same:
            rise = abs(derivative(loss, other, b) - derivative(loss, z, b))
            assert rise <= loss.curvature_bound * abs(other - z) * (1 + 1e-12)


@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(z=st.floats(-50, 50), other=st.floats(-50, 50), share=st.floats(0, 1), b=st.floats(-10, 10))
def test_convexity_and_the_quadratic_bound(z, other, share, b):
    for loss in itertools.chain.from_iterable(INSTANCES.values()):
        target = math.copysign(1.0, b) if loss.labels else b if allowed(loss, b) else abs(b) + 0.01
        target = min(target, loss.target_maximum)
        between = value(loss, share * z + (1 - share) * other, target)
        at_z, at_other = value(loss, z, target), value(loss, other, target)
        slack = 1e-9 * (1.0 + at_z + at_other)
        assert between <= share * at_z + (1 - share) * at_other + slack
        tangent = at_z + derivative(loss, z, target) * (other - z)
        assert tangent - slack <= at_other
        if math.isfinite(loss.curvature_bound):
            assert at_other <= tangent + 0.5 * loss.curvature_bound * (other - z) ** 2 + slack


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
                # A grid of width h misses the top by at most curvature · h² / 8, and at a kink by slope · h / 2.
                top = int(np.argmax(lines))
                near = [curvature(loss, z, b) for z in grid[max(top - 1, 0) : top + 2]]
                missed = 1e-4 * max(1.0, *near) if loss.smooth else 0.02
                ends = 1e-4 * (top in {0, grid.size - 1})  # its supremum may lie at infinity
                assert -1e-12 * (1.0 + abs(exact)) <= exact - lines.max() <= missed + ends


def test_fenchel_young_is_an_equality_at_the_derivative(loss, pairs, targets):
    for z, b in [*pairs, *itertools.product([0.0, *EXTREMES], targets)]:
        theta = derivative(loss, z, b)
        if not math.isfinite(theta):  # beyond exp(709)
            assert value(loss, z, b) == math.inf
            continue
        total = value(loss, z, b) + conjugate(loss, theta, b)
        # The sum of terms that are much larger than it has their rounding errors.
        size = 1e-12 * (abs(value(loss, z, b)) + abs(theta * z))
        assert total == pytest.approx(theta * z, rel=1e-9, abs=1e-9 + size)


def test_extreme_margins_are_finite(loss, targets):
    for z, b in itertools.product(EXTREMES, targets):
        for function in (four, compiled_four):
            results = function(loss, z, derivative(loss, z, b), b)
            assert not any(math.isnan(result) for result in results[:3])
            bounded = math.isfinite(loss.curvature_bound) or not loss.smooth
            assert not bounded or all(math.isfinite(result) for result in results)
        assert value(loss, z, b) >= -1e-14
        # Convex, so the slope points away from the minimiser on both sides.
        assert abs(derivative(loss, z, b)) <= loss.curvature_bound * abs(z - b) + 1.0


def test_python_equals_compiled(loss, pairs):
    for z, b in pairs:
        for theta in (-0.3, 0.0, 0.3):
            np.testing.assert_allclose(
                compiled_four(loss, z, theta, b), four(loss, z, theta, b), rtol=1e-13, atol=2e-14
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
def test_several_margins_evaluated_in_one_are_those_evaluated_one_by_one(name):
    plain = as_loss(name)
    for z, b in rows_of_margins():
        records = np.empty(z.size, TARGET)
        records["value"], records["offset"] = b, 0.3 * np.arange(z.size)
        for loss, target in ((plain, b), (offset_loss(plain), records)):
            slopes, curvatures = np.empty(z.size), np.empty(z.size)
            assert row_evaluate(loss, z, target, slopes, curvatures) == row_value(loss, z, target)
            alone = np.empty(z.size)
            row_derivative(loss, z, target, alone)
            np.testing.assert_array_equal(slopes, alone)
            row_curvature(loss, z, target, alone)
            np.testing.assert_array_equal(curvatures, alone)


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


# -- what predictions, scores and models ask of a loss --------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, cls in LOSSES.items() if cls.link is not None])
def test_the_link_is_the_inverse_of_the_mean(name):
    loss = LOSSES[name]()
    margins = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(loss.link(loss.mean(margins)), margins, atol=1e-12)
    if not loss.labels:
        # The loss is smallest where the mean is the target.
        b = min(2.5, 0.7 * loss.target_maximum)
        assert derivative(loss, float(loss.link(np.array(b))), b) == pytest.approx(0.0, abs=1e-12)
        assert value(loss, float(loss.link(np.array(b))), b) == pytest.approx(0.0, abs=1e-12)


def test_a_model_curvature_is_at_least_the_curvature(loss, pairs, targets):
    """So a model lies above the loss on the way to its minimiser, and the two agree near it."""
    for z, b in [*pairs, *itertools.product(np.linspace(-60.0, 60.0, 49), targets)]:
        exact, model = curvature(loss, z, b), model_curvature(loss, z, b)
        assert model >= exact * (1.0 - 1e-9)
        if abs(derivative(loss, z, b)) < 0.5:
            assert model == pytest.approx(exact) or model <= 1.0


def test_deviances_are_those_of_scikit_learn():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    b, z = rng.gamma(2.0, 1.5, 50), rng.standard_normal(50)
    for loss, power in ((Poisson(), 1.0), (Gamma(), 2.0), (Tweedie(1.5), 1.5), (Tweedie(1.1), 1.1)):
        ours = 2.0 * np.mean([value(loss, *pair) for pair in zip(z, b, strict=True)])
        assert ours == pytest.approx(metrics.mean_tweedie_deviance(b, np.exp(z), power=power), rel=1e-10)
    pinball = np.mean([value(Quantile(0.8), *pair) for pair in zip(z, b, strict=True)])
    assert pinball == pytest.approx(metrics.mean_pinball_loss(b, z, alpha=0.8))


def test_the_criteria_are_those_of_the_likelihood():
    """Differences of −2 log likelihood between two models, at the scale that maximises each likelihood."""
    from scipy import optimize, stats

    rng = np.random.default_rng(0)
    b, fits = rng.gamma(3.0, 0.7, 80), (np.zeros(80), np.full(80, 0.8))

    def difference(loss, b):
        means = [np.mean([value(loss, *pair) for pair in zip(z, b, strict=True)]) for z in fits]
        return deviance(loss, means[0], 80) - deviance(loss, means[1], 80)

    def profile(log_density):
        def smallest(z):
            return optimize.minimize_scalar(lambda s: -2 * log_density(z, np.exp(s)).sum(), bounds=(-3, 3)).fun

        return smallest(fits[0]) - smallest(fits[1])

    gamma = profile(lambda z, k: stats.gamma.logpdf(b, k, scale=np.exp(z) / k))
    assert difference(Gamma(), b) == pytest.approx(gamma, rel=1e-6)
    laplace = profile(lambda z, s: stats.laplace.logpdf(b, z, s))
    assert difference(LOSSES["absolute"](), b) == pytest.approx(laplace, rel=1e-6)
    counts = rng.poisson(2.0, 80).astype(float)
    poisson = -2 * (stats.poisson.logpmf(counts, 1.0).sum() - stats.poisson.logpmf(counts, np.exp(0.8)).sum())
    assert difference(Poisson(), counts) == pytest.approx(poisson, rel=1e-9)

    def binomial(mean):
        return stats.nbinom.logpmf(counts, 1 / 0.4, 1 / (1 + 0.4 * mean)).sum()

    expected = -2 * (binomial(1.0) - binomial(np.exp(0.8)))
    assert difference(NegativeBinomial(0.4), counts) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Tweedie(2.5), r"power=2.5: it takes a number between 1 and 2, both excluded; loss='poisson'"),
        (Tweedie(1.0), r"power=1.0"),
        (Quantile(1.0), r"Quantile\(...\): q=1.0: it takes a number between 0 and 1"),
        (SmoothedQuantile(0.5, 0.0), r"width=0.0"),
        (NegativeBinomial(-1.0), r"dispersion=-1.0"),
    ],
)
def test_parameters_are_checked(loss, message):
    with pytest.raises(ValueError, match=message):
        as_loss(loss)


# -- losses with kinks, and offsets ------------------------------------------------------------------------------


KINKED = [loss for name in INSTANCES for loss in INSTANCES[name] if not loss.smooth]


@pytest.mark.parametrize("loss", KINKED, ids=label)
def test_the_proximal_map_is_the_minimiser_and_the_envelope_its_value(loss):
    from scipy.optimize import minimize_scalar

    for b, v, step in itertools.product([-1.0, 1.0], np.linspace(-4.0, 4.0, 23), [0.1, 1.7]):

        def merit(z, b=b, v=v, step=step):
            return value(loss, z, b) + (z - v) ** 2 / (2 * step)

        best = minimize_scalar(merit, bracket=(-6.0, 6.0), tol=1e-12)
        found = prox(loss, v, b, step)
        assert merit(found) <= best.fun + 1e-12
        assert found == pytest.approx(best.x, abs=1e-5)
        slope = envelope_slope(loss, v, b, step)
        assert slope == pytest.approx((v - found) / step, abs=1e-12)
        assert math.isfinite(conjugate(loss, slope, b))
        smooth = Envelope(loss, step)
        assert value(smooth, v, b) == pytest.approx(best.fun, abs=1e-9)
        assert derivative(smooth, v, b) == slope
        assert curvature(smooth, v, b) == envelope_curvature(loss, v, b, step) in (0.0, 1.0 / step)
        assert value(smooth, v, b) + conjugate(smooth, slope, b) == pytest.approx(slope * v, abs=1e-12)
        numeric = (value(smooth, v + WIDTH, b) - value(smooth, v - WIDTH, b)) / (2 * WIDTH)
        assert slope == pytest.approx(numeric, abs=2 * WIDTH / step)


def test_an_offset_shifts_the_margin():
    target, offset = np.array([0.0, 2.0]), np.array([0.3, -0.4])
    loss, records = with_offset(Poisson(), target, offset)
    assert isinstance(loss, Offset)
    for i in range(2):
        for function in (value, derivative, curvature, model_curvature):
            assert function(loss, 0.7, records[i]) == function(Poisson(), 0.7 + offset[i], target[i])
        theta = derivative(loss, 0.7, records[i])
        total = value(loss, 0.7, records[i]) + conjugate(loss, theta, records[i])
        assert total == pytest.approx(theta * 0.7, abs=1e-12)
    again, twice = with_offset(loss, records, offset)
    assert again == loss
    np.testing.assert_allclose(twice["offset"], 2 * offset)
    plain, values, offsets = split_offset(loss, records)
    assert plain == Poisson()
    np.testing.assert_array_equal(values, target)
    np.testing.assert_array_equal(offsets, offset)
    # A function of z − b takes b − offset.
    same, shifted = with_offset(Huber(), target, offset)
    assert same == Huber()
    np.testing.assert_array_equal(shifted, target - offset)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in COUPLED])
def test_check_loss_accepts_every_loss(name):
    check_loss(as_loss(name))


PARTS = {
    "value": lambda loss, z, b: 0.5 * (z - b) ** 2,
    "derivative": lambda loss, z, b: z - b,
    "curvature": lambda loss, z, b: 1.0,
    "conjugate": lambda loss, theta, b: 0.5 * theta**2 + theta * b,
}


@pytest.mark.parametrize(
    ("part", "wrong", "message"),
    [
        (
            "value",
            lambda loss, z, b: -0.5 * (z - b) ** 2,
            "value of the loss 'given' is wrong at z=-3, b=2: .* not convex",
        ),
        (
            "derivative",
            lambda loss, z, b: b - z,
            "derivative of the loss 'given' is wrong at .* the slope of value is -5",
        ),
        (
            "curvature",
            lambda loss, z, b: 0.5,
            "curvature of the loss 'given' is wrong at .* the slope of derivative is 1",
        ),
        (
            "conjugate",
            lambda loss, theta, b: 0.4 * theta**2 + theta * b,
            "conjugate of the loss 'given' is wrong at theta=-5",
        ),
        ("conjugate", lambda loss, theta, b: 0.5 * theta**2 + theta * b if theta > -5.1 else 0.0, "wrong at theta=-6"),
        (
            "conjugate",
            lambda loss, theta, b: math.nan,
            "conjugate of the loss 'given' is wrong at theta=-5, b=2: it is nan",
        ),
        ("bound", 0.9, "curvature_bound of the loss 'given' is wrong at .* it is 0.9, and the curvature is 1"),
    ],
)
def test_check_loss_names_the_function_that_is_wrong(part, wrong, message):
    @facts(name="given", labels=False)
    class Given(NamedTuple):
        @property
        def curvature_bound(self):
            return wrong if part == "bound" else 1.0

    define(Given, **(PARTS | ({} if part == "bound" else {part: wrong})))
    with pytest.raises(ValueError, match=message):
        check_loss(Given(), targets=[2.0])


def test_check_loss_takes_losses_of_one_margin():
    with pytest.raises(ValueError, match="is a function of several margins"):
        check_loss(as_loss("multinomial"))


@pytest.mark.parametrize(
    ("loss", "target", "ends"),
    [
        (Huber(1.3), 0.5, (-700.0, 700.0)),
        (SmoothedQuantile(0.7, 0.1), 0.5, (-700.0, 700.0)),
        (Binomial(), 1.0, (-700.0,)),
        (Binomial(), 0.0, (700.0,)),
        (Poisson(), 3.0, (-700.0,)),
    ],
)
def test_conjugates_allow_for_the_rounding_of_slopes_with_weights(loss, target, ends):
    """w·ℓ'/w may be farther from zero than ℓ' by a last digit, and then no bound would ever be finite."""
    for margin in ends:
        slope = derivative(loss, margin, target)
        away = math.copysign(math.inf, slope)
        beyond = math.nextafter(math.nextafter(slope, away), away)
        assert conjugate(loss, beyond, target) == pytest.approx(conjugate(loss, slope, target), abs=1e-12)
        assert conjugate(loss, slope + math.copysign(1e-9, slope), target) == math.inf
