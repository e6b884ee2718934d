"""Every regulariser in the registry: its proximal step, conjugate, subgradient and constants, by what defines them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_prox import REFERENCES, by_subgradient, lowest

from skadmm.kernels.compile import kernel
from skadmm.regularizers import (
    L1,
    L2,
    REGULARIZERS,
    Box,
    ElasticNet,
    GroupL2,
    GroupLInf,
    LInf,
    NonNegative,
    SquaredL2,
    Stacked,
    Zero,
    as_regularizer,
)
from skadmm.regularizers._base import (
    conjugate,
    conjugate_at,
    dual_norm,
    dual_norm_at,
    dual_scale,
    dual_scale_at,
    prox,
    prox_at,
    subgradient,
    subgradient_at,
    value,
    value_at,
)

SIZE = 7
STEPS = (0.05, 1.0, 20.0)
WEIGHTS = [0.5, 1.0, 2.0, 0.0, 1.5, 3.0, 0.25]
GROUPS = [[5, 1, 2], np.array([6]), (0, 4)]  # 3 is free
LABELS = [4, 0, 0, -1, 4, 9, 0]

# The registry decides which regularisers are tested. Where they are not listed here, they are so with their default
# parameters, and with those of the fact `examples`.
LISTED = {
    "zero": [Zero()],
    "l1": [L1(0.7), L1(0.3, WEIGHTS), L1(0.0)],
    "l2": [L2(0.7), L2(0.0)],
    "squared-l2": [SquaredL2(0.7), SquaredL2(0.7, WEIGHTS), SquaredL2(0.0)],
    "linf": [LInf(0.7), LInf(3.0), LInf(0.0)],
    "elastic-net": [ElasticNet(0.7), ElasticNet(0.7, 0.2, WEIGHTS), ElasticNet(0.7, 1.0), ElasticNet(0.7, 0.0)],
    "group-l2": [GroupL2(0.7, GROUPS, [1.0, 0.0, 2.0]), GroupL2(0.3, LABELS), GroupL2(0.7), GroupL2(0.7, [])],
    "group-linf": [GroupLInf(0.7, GROUPS, [1.0, 0.0, 2.0]), GroupLInf(0.3, LABELS), GroupLInf(0.7)],
    "non-negative": [NonNegative()],
    "box": [
        Box(),
        Box(-math.inf, 0.5),
        Box([-1, 0, 1, -math.inf, -math.inf, 0.3, -2], [1, math.inf, 1, 0.1, math.inf, 0.4, -1]),
    ],
}
INSTANCES = {
    name: LISTED.get(name) or [cls(), *(cls(*arguments) for arguments in getattr(cls, "examples", ()))]
    for name, cls in REGULARIZERS.items()
}


def points() -> list[np.ndarray]:
    """Zeros, ties, a spike, and random vectors over six decades."""
    rng = np.random.default_rng(0)
    fixed = [np.zeros(SIZE), np.ones(SIZE), -np.ones(SIZE), 5.0 * np.eye(SIZE)[2], np.array([2, -2, 1, -1, 0, 2, 1.0])]
    return fixed + [10.0**decade * rng.standard_normal(SIZE) for decade in (-3, -1, 0, 0, 0, 1, 3)]


POINTS = points()


def everything(reg, v, w, step, out):
    """The proximal step, and behind it the subgradient where `out` has room for it."""
    prox(reg, v, step, out[: v.size])
    if out.size > v.size:
        subgradient(reg, v, out[v.size :])
    return value(reg, v), conjugate(reg, w), dual_scale(reg, w)


def each(reg, v, w, step, out):
    """As `everything`, through the functions of one coordinate."""
    total, total_conjugate, scale = 0.0, 0.0, 1.0
    for j in range(v.size):
        out[j] = prox_at(reg, j, v[j], step)
        if out.size > v.size:
            out[v.size + j] = subgradient_at(reg, j, v[j])
        total += value_at(reg, j, v[j])
        total_conjugate += conjugate_at(reg, j, w[j])
        scale = min(scale, dual_scale_at(reg, j, w[j]))
    return total, total_conjugate, scale


compiled_everything = kernel(everything)
compiled_each = kernel(each)


def evaluated(function, reg, v, w, step):
    """The scalars, the proximal step and the subgradient if there is one; the vectors are slices of longer arrays."""
    out = np.full(3 * v.size, np.nan)[2:][: (1 + reg.subdifferentiable) * v.size]
    scalars = function(reg, np.pad(v, 3)[3:-3], np.pad(w, 3)[3:-3], step, out)
    return np.array(scalars), out.reshape(-1, v.size)


def prox_of(reg, v, step):
    out = np.full(v.size, np.nan)
    prox(reg, v, step, out)
    return out


def label(reg):
    return f"{reg.name}-{'-'.join(str(i) for i, other in enumerate(INSTANCES[reg.name]) if other is reg)}"


@pytest.fixture(params=[reg for name in INSTANCES for reg in INSTANCES[name]], ids=label)
def raw(request):
    return request.param


@pytest.fixture
def reg(raw):
    return raw.prepared(SIZE, "psi")


@pytest.fixture
def inside(reg):
    """Points where the regulariser is finite."""
    return POINTS if reg.subdifferentiable else [prox_of(reg, v, 1.0) for v in POINTS]


def close(actual, expected, tolerance=1e-9, scale=1.0):
    return abs(actual - expected) <= tolerance * (scale + abs(actual) + abs(expected))


@pytest.mark.parametrize("name", list(REGULARIZERS))
def test_the_name_alone_will_do(name):
    assert REGULARIZERS[name].name == name
    assert type(as_regularizer(name, SIZE, "psi")) is REGULARIZERS[name]


def test_prepared_twice_is_prepared_once(reg):
    again = reg.prepared(SIZE, "psi")
    assert type(again) is type(reg)
    for v, step in itertools.product(POINTS, STEPS):
        np.testing.assert_array_equal(prox_of(again, v, step), prox_of(reg, v, step))


def test_the_package_keeps_its_slow_twins():
    assert set(REFERENCES) >= {
        "zero", "l1", "l2", "squared-l2", "linf", "elastic-net", "group-l2", "group-linf", "non-negative", "box",
    }  # fmt: skip


def test_prox_equals_its_slow_twin(raw, reg):
    """A twin of its own; else bisection on a subgradient, or a search that must find no lower objective."""
    for v, step in itertools.product(POINTS, STEPS):
        fast = prox_of(reg, v, step)
        if raw.name in REFERENCES:
            slow = REFERENCES[raw.name](raw, v, step)
        elif reg.separable and reg.subdifferentiable:
            slow = by_subgradient(lambda j, u: subgradient_at(reg, j, u), v, step)
        else:
            objective = (fast - v) @ (fast - v) / (2.0 * step) + value(reg, fast)
            found = lowest(lambda u: value(reg, u), v, step, fast)
            assert objective <= found + 1e-9 * (1.0 + abs(found))
            continue
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reg", [L2(0.7), LInf(0.7), Box(-0.5, 0.5)], ids=str)
def test_the_search_of_the_slow_twin_finds_what_a_wrong_step_misses(reg):
    reg = reg.prepared(SIZE, "psi")
    for v in POINTS[5:8]:
        right = prox_of(reg, v, 1.0)
        inside = prox_of(reg, 0.5 * right, 0.01)
        found = lowest(lambda u: value(reg, u), v, 1.0, inside)
        best = (right - v) @ (right - v) / 2.0 + value(reg, right)
        at = (inside - v) @ (inside - v) / 2.0 + value(reg, inside)
        assert best - 1e-9 <= found
        assert found < at - 0.5 * (at - best) or at - best < 1e-9


def check_prox(reg, v, step, others):
    p = prox_of(reg, v, step)
    u = (v - p) / step
    at_p, mu = value(reg, p), reg.strong_convexity
    assert np.all(np.isfinite(p))
    assert math.isfinite(at_p)
    # Three points: u is a subgradient at p.
    for other in others:
        below = at_p + u @ (other - p) + 0.5 * mu * (other - p) @ (other - p)
        assert value(reg, other) >= below - 1e-9 * (1.0 + abs(below) + np.abs(u) @ np.abs(other - p))
    # Moreau: u is the dual part, which is Fenchel–Young with equality. Rounding may leave it a hair outside.
    scale = dual_scale(reg, u)
    assert scale >= 1.0 - 1e-9 or np.abs(u).max() <= 1e-9 * np.abs(v).max() / step
    assert close(at_p + conjugate(reg, scale * u), p @ u, scale=np.abs(p) @ np.abs(u) + 1.0)


@kernel
def compiled_dual_norm(reg, w):
    return dual_norm(reg, w)


def test_the_dual_norm_is_where_a_vector_leaves_the_subdifferential_at_zero(reg):
    """w is in s ∂reg(0) exactly when reg*(w / s) = −reg(0)."""
    zero = np.zeros(SIZE)
    if not value(reg, zero) < np.inf:
        return  # zero is outside the constraint

    def belongs(w):
        return bool(conjugate(reg, w) <= -value(reg, zero))

    for w in (*POINTS, *np.eye(SIZE), *-np.eye(SIZE)):
        norm = dual_norm(reg, w)
        assert compiled_dual_norm(reg, w) == pytest.approx(norm, rel=1e-12)
        if reg.separable:
            assert max(dual_norm_at(reg, j, w[j]) for j in range(SIZE)) == norm
        if norm == 0.0:
            assert belongs(1e9 * w)
        elif norm < np.inf:
            assert belongs(w / (norm * (1 + 1e-9)))
            assert not belongs(w / (norm * (1 - 1e-9)))
        else:
            assert not belongs(1e-9 * w)


def test_prox_satisfies_the_variational_inequality_and_moreau(reg, inside):
    for v, step in itertools.product(POINTS, STEPS):
        check_prox(reg, v, step, inside)


# Halves make ties and zeros; floats make the rest.
coordinates = st.one_of(st.integers(-8, 8).map(lambda k: k / 2), st.floats(-100, 100, allow_subnormal=False))


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(v=st.lists(coordinates, min_size=SIZE, max_size=SIZE), step=st.floats(1e-3, 1e3))
def test_prox_satisfies_them_anywhere(v, step):
    v = np.array(v)
    for raw in itertools.chain.from_iterable(INSTANCES.values()):
        reg = raw.prepared(SIZE, "psi")
        check_prox(reg, v, step, [prox_of(reg, np.ones(SIZE), 1.0), prox_of(reg, -v, step)])


def test_prox_in_place(reg):
    for v, step in itertools.product(POINTS, STEPS):
        expected, v = prox_of(reg, v, step), v.copy()
        prox(reg, v, step, v)
        np.testing.assert_array_equal(v, expected)


def test_prox_lets_nan_through(reg):
    """A run that diverges must show."""
    v = np.ones(SIZE)
    v[2] = np.nan
    assert np.isnan(prox_of(reg, v, 0.1)[2])


def test_fenchel_young_inequality(reg, inside):
    for v, w in itertools.product(inside, POINTS):
        bound = conjugate(reg, dual_scale(reg, w) * w)
        inner = dual_scale(reg, w) * w @ v
        assert value(reg, v) + bound >= inner - 1e-9 * (1.0 + abs(inner))


def test_dual_scale_is_the_largest_inside_the_domain(reg):
    rng = np.random.default_rng(1)
    for w in [*POINTS, *rng.standard_normal((200, SIZE))]:
        scale = dual_scale(reg, w)
        assert 0.0 <= scale <= 1.0
        assert conjugate(reg, scale * w) < math.inf
        if scale < 1.0:
            assert conjugate(reg, (scale * (1.0 + 1e-9) + 1e-100) * w) == math.inf


def test_subgradient_inequality(reg):
    slope = np.full(SIZE, np.nan)
    if not reg.subdifferentiable:
        with pytest.raises(ValueError, match="no subgradient"):
            subgradient(reg, np.zeros(SIZE), slope)
        return
    for v in POINTS:
        subgradient(reg, v, slope)
        for other in POINTS:
            below = value(reg, v) + slope @ (other - v)
            assert value(reg, other) >= below - 1e-9 * (1.0 + abs(below) + np.abs(slope) @ np.abs(other - v))
        if reg.smooth:
            ahead, behind = v + 1e-4 * np.eye(SIZE), v - 1e-4 * np.eye(SIZE)
            numeric = [(value(reg, a) - value(reg, b)) / 2e-4 for a, b in zip(ahead, behind, strict=True)]
            np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5)


def test_lipschitz_constant(reg):
    constant = reg.lipschitz(SIZE)
    if not reg.subdifferentiable:
        assert constant == math.inf
        return
    slope = np.empty(SIZE)
    steepest = 0.0
    for a in POINTS:
        subgradient(reg, a, slope)
        steepest = max(steepest, np.linalg.norm(slope))
        for b in POINTS:
            if not np.array_equal(a, b):
                assert abs(value(reg, a) - value(reg, b)) <= constant * np.linalg.norm(a - b) * (1.0 + 1e-9)
    # Attained where there is one, so it is the constant and not just a bound.
    assert constant == math.inf or close(steepest, constant)


def test_strong_convexity(reg, inside):
    mu = reg.strong_convexity
    for a, b in itertools.combinations(inside, 2):
        chord = 0.5 * value(reg, a) + 0.5 * value(reg, b) - mu / 8.0 * (a - b) @ (a - b)
        assert value(reg, 0.5 * a + 0.5 * b) <= chord + 1e-9 * (1.0 + abs(chord))


def test_constraints_are_exact():
    outside = np.array([0.0, -np.finfo(float).smallest_subnormal])
    assert value(NonNegative(), outside) == math.inf
    assert value(NonNegative(), abs(outside)) == 0.0
    box = Box(0.1, 0.3).prepared(2, "psi")
    assert value(box, np.array([0.1, 0.3])) == 0.0
    assert value(box, np.array([0.1, np.nextafter(0.3, 1)])) == math.inf
    assert value(box, np.array([np.nextafter(0.1, 0), 0.3])) == math.inf


def test_python_equals_compiled(reg):
    functions = [(everything, compiled_everything)] + [(each, compiled_each)] * reg.separable
    for pair, v, w in itertools.product(functions, POINTS[2:8], POINTS[2:8]):
        for expected, actual in zip(*(evaluated(function, reg, v, w, 0.3) for function in pair), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)


# One of each kind.
KINDS = [instances[-1] for instances in INSTANCES.values()]


def check_stacked(functions, first, second):
    stacked = Stacked(first, second, SIZE).prepared(2 * SIZE, "psi")
    parts = stacked.first, stacked.second
    vs, ws = POINTS[4:6], POINTS[6:8]
    scalars, vectors = zip(
        *(evaluated(everything, *part, 0.3) for part in zip(parts, vs, ws, strict=True)), strict=True
    )
    for function in functions:
        actual, out = evaluated(function, stacked, np.concatenate(vs), np.concatenate(ws), 0.3)
        np.testing.assert_allclose(actual[:2], scalars[0][:2] + scalars[1][:2], rtol=1e-13)
        np.testing.assert_allclose(actual[2], min(scalars[0][2], scalars[1][2]), rtol=1e-13)
        rows = len(out)
        np.testing.assert_allclose(out, np.hstack([vectors[0][:rows], vectors[1][:rows]]), rtol=1e-13, atol=1e-13)
    assert stacked.strong_convexity == min(part.strong_convexity for part in parts)
    assert stacked.lipschitz(2 * SIZE) == math.hypot(*(part.lipschitz(SIZE) for part in parts))


@pytest.mark.parametrize("first", KINDS, ids=label)
def test_stacked_is_the_two_apart(first):
    for second in KINDS:
        check_stacked([everything, each] if first.separable and second.separable else [everything], first, second)


@pytest.mark.parametrize(("first", "second"), [(L1(0.7), GroupL2(0.3, LABELS)), (LInf(0.7), Box())], ids=str)
def test_stacked_compiled(first, second):
    check_stacked([compiled_everything], first, second)


def test_stacked_compiled_by_coordinate():
    check_stacked([compiled_everything, compiled_each], L1(0.7), SquaredL2(0.3))


def test_linf_prox_on_a_long_vector():
    """Newton's iteration has to end well on vectors with many levels and with many ties."""
    rng = np.random.default_rng(2)
    for v in (rng.standard_cauchy(5000), np.repeat([3.0, 3.0 + 1e-15, -3.0], 1000), 2.0 ** -np.arange(900.0)):
        for bound in (1e-12, 1.0, 0.999 * np.abs(v).sum()):
            reg = LInf(bound)
            np.testing.assert_allclose(
                prox_of(reg, v, 1.0), REFERENCES["linf"](reg, v, 1.0), rtol=1e-9, atol=1e-12 * np.abs(v).max()
            )


def test_groups_of_every_spelling():
    spellings = [
        [[0, 2], [1, 3]],
        np.array([[0, 2], [1, 3]]),
        ([2, 0], np.array([3, 1], dtype=np.int32)),
        [7, 9, 7, 9, -1],
        np.array([0, 1, 0, 1, -5], dtype=np.int8),
    ]
    v, out = np.array([3.0, 0.6, 4.0, 0.8, -2.0]), np.empty(5)
    for groups in spellings:
        prox(GroupL2(2.0, groups, [1.0, 0.25]).prepared(5, "psi"), v, 1.0, out)
        np.testing.assert_allclose(out, [1.8, 0.3, 2.4, 0.4, -2.0])


def test_arrays_of_the_caller_are_not_kept():
    """A read-only array is another type to a kernel, and a later change must not reach a prepared problem."""
    given = np.ones(SIZE)
    given.flags.writeable = False
    for reg in (L1(1.0, given), ElasticNet(1.0, 0.5, given), Box(given, 2.0), GroupL2(1.0, np.arange(SIZE), given)):
        arrays = [field for field in reg.prepared(SIZE, "psi") if isinstance(field, np.ndarray)]
        assert arrays
        assert all(array.flags.writeable and array.dtype == np.float64 for array in arrays)


BAD = [
    *((cls(bad), "strength must be a finite number ≥ 0")
      for cls in (L1, L2, SquaredL2, LInf, ElasticNet, GroupL2, GroupLInf)
      for bad in (-1.0, math.nan, math.inf, True, "1", None, [1.0])),
    *((cls(1.0, weights=[1.0, 2.0]), r"weights must have length 7, got shape \(2,\)") for cls in (L1, ElasticNet)),
    *((cls(1.0, weights=[-1.0] * SIZE), "weights must be finite and ≥ 0") for cls in (L1, ElasticNet)),
    *((cls(1.0, weights=["a"] * SIZE), "weights must be a vector of numbers") for cls in (L1, ElasticNet)),
    (ElasticNet(1.0, 1.5), "l1_ratio must lie between 0 and 1, got 1.5"),
    (ElasticNet(1.0, -0.5), "l1_ratio must be a finite number ≥ 0, got -0.5"),
    *((cls(1.0, groups), message) for cls in (GroupL2, GroupLInf) for groups, message in [
        ([[0, 1], [1, 2]], r"disjoint, but coordinate 1 occurs more than once.*operators\.overlapping_groups"),
        ([[0, 0]], "coordinate 0 occurs more than once"),
        ([[0], [1, 7]], r"groups\[1\] has the index 7, out of range for length 7"),
        ([[-1]], r"groups\[0\] has the index -1, out of range"),
        ([[0], []], r"groups\[1\] is empty"),
        ([[0.5]], r"groups\[0\] must be a one-dimensional array of integer indices"),
        ([[True] * SIZE], r"groups\[0\] must be a one-dimensional array of integer indices"),
        ([[0, [1]]], r"groups\[0\] must be a one-dimensional array of integer indices"),
        ([[0], 1], r"groups\[1\] must be a one-dimensional array of integer indices"),
        ([0, 0, 1], "one label per coordinate must have length 7, got 3"),
        ([0.5] * SIZE, "one label per coordinate must all be integers"),
        ([0, [1]], "one label per coordinate must all be integers"),
        (3, "groups must be a list of index arrays or an integer label per coordinate, got 3"),
        ("columns", "groups must be a list of index arrays"),
        (GroupL2(1.0).prepared(3, "psi").groups, "groups were prepared for length 3, not 7"),
    ]),
    *((cls(1.0, [[0], [1]], weights), message) for cls in (GroupL2, GroupLInf) for weights, message in [
        ([1.0, -1.0], "weights must be finite and ≥ 0"),
        ([1.0], "weights must have length 2"),
    ]),
    (Box(1.0, 0.0), "no number lies between lower and upper at coordinate 0, got lower 1.0 and upper 0.0"),
    (Box([0.0] * 6 + [2.0], 1.0), "between lower and upper at coordinate 6"),
    (Box(math.nan, 1.0), "between lower and upper at coordinate 0"),
    (Box(math.inf, math.inf), "between lower and upper at coordinate 0"),
    (Box([0.0, 1.0], 1.0), r"lower must be a number or a vector of length 7, got shape \(2,\)"),
    (Box(0.0, "high"), "upper must be a number or a vector of numbers, got 'high'"),
    (Stacked(L1(), L2(), 8), "split must lie between 0 and 7, got 8"),
    (Stacked(L1(), L2(-1.0), 3), "strength must be a finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("reg", "message"), BAD, ids=lambda entry: type(entry).__name__)
def test_bad_parameters_are_refused_at_the_door(reg, message):
    cls = type(reg.second if "strength" in message and isinstance(reg, Stacked) else reg).__name__
    with pytest.raises((TypeError, ValueError), match=rf"^omega={cls}\(\.\.\.\): .*{message}"):
        as_regularizer(reg, SIZE, "omega")


def test_things_that_are_no_regulariser_are_refused():
    with pytest.raises(TypeError, match=r"psi=.* is not a regulariser"):
        as_regularizer(L1, SIZE, "psi")
    with pytest.raises(TypeError, match=r"psi=0.5 is not a regulariser"):
        as_regularizer(0.5, SIZE, "psi")
    with pytest.raises(ValueError, match=r"Did you mean 'linf'\?"):
        as_regularizer("l-inf", SIZE, "psi")
    assert as_regularizer(None, SIZE, "psi") == Zero()
