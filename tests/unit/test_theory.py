"""The theorems: bounds as formulas, and measured left sides below them.

Every measured number is the mean over 20 seeds. There are 64 samples, so that every pass count is exact in binary and T
is what it says.
"""

import functools

import cvxpy as cp
import numpy as np
import pytest

from skadmm import ALGORITHMS, Problem, solve
from skadmm.operators import chain
from skadmm.paper import theory
from skadmm.regularizers import L1, GroupL2, SquaredL2

N, D = 64, 6
SEEDS = range(20)
STEPS = N * np.array([1, 4, 16, 64])
RHOS = (0.01, 0.1, 1.0)
OMEGAS = {"none": None, "l1": L1(0.02), "squared-l2": SquaredL2(0.02)}
# (method, Ω): Theorem 2, with and without a squared ℓ2 in its system; Theorem 1, with and without a proximal step.
CASES = [("sa-admm", "none"), ("sa-admm", "squared-l2"), ("sa-iu-admm", "none"), ("sa-iu-admm", "l1")]


@functools.cache
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, np.where(X @ np.repeat([1.0, -1.0], D // 2) + rng.standard_normal(N) > 0, 1.0, -1.0)


@functools.cache
def problem(omega="none"):
    return Problem(*data(), loss="logistic", psi=L1(0.05), A=chain(D), omega=OMEGAS[omega])


@functools.cache
def optimum(omega="none"):
    """x*, y*, Φ* and ‖β*‖, from ADMM run to rounding."""
    run = solve(problem(omega), "exact-admm", rho=0.1, step="theory", passes=20_000, record_every=0)
    assert run.kkt.relative <= 1e-10, run
    y = problem(omega).y_of_x(run.x)
    return run.x, y, problem(omega).objective(run.x, y), 0.1 * float(np.linalg.norm(run.dual))


@functools.cache
def averages(method, omega="none", rho=0.1, multiple=1.0, steps=tuple(STEPS), **options):
    """(x̄_T, ȳ_T) for every seed and T; the step is `multiple` times the theory's."""
    model = problem(omega)
    step = multiple * ALGORITHMS[method].theory_step(model, rho)
    batch_size = options.get("batch_size", 1)
    table = 1 if method.startswith("sa-") else 0  # the pass that fills it
    start = {name: np.array(options[name]) for name in ("x0", "y0", "dual0") if name in options}
    runs = []
    for seed in SEEDS:
        run, path = None, []
        for before, T in zip((0, *steps[:-1]), steps, strict=True):
            passes = (T - before) * batch_size / N + (table if run is None else 0)
            run = solve(
                model, method, rho=rho, step=step, batch_size=batch_size, passes=passes, record_every=0,
                random_state=seed, warm_start=run, **start,
            )  # fmt: skip
            assert run.tables["clock"][0] == T
            path.append((run.x_average, run.y_average))
        runs.append(path)
    return runs


def measured(runs, omega="none", gamma=None):
    """The mean left side at every T; the corollary's where γ is None."""
    model, best = problem(omega), optimum(omega)[2]
    return np.mean(
        [
            [
                theory.left_side(model, x, optimum=best)
                if gamma is None
                else theory.left_side(model, x, y, optimum=best, gamma=gamma)
                for x, y in path
            ]
            for path in runs
        ],
        axis=0,
    )


# -- the optimum the errors are measured from ------------------------------------------------------------------


@pytest.mark.parametrize("omega", OMEGAS)
def test_the_optimum_is_that_of_an_independent_solver(omega):
    X, labels = data()
    x = cp.Variable(D)
    objective = cp.sum(cp.logistic(cp.multiply(-labels, X @ x))) / N + 0.05 * cp.norm1(cp.diff(x))
    if omega == "l1":
        objective += 0.02 * cp.norm1(x)
    if omega == "squared-l2":
        objective += 0.01 * cp.sum_squares(x)
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert optimum(omega)[2] == pytest.approx(value, rel=1e-7)


# -- measured left sides stay below the bounds -----------------------------------------------------------------


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("method", "omega"), CASES)
def test_the_theorems_hold(method, omega, rho):
    x, y, _, multiplier = optimum(omega)
    runs = averages(method, omega, rho)
    for gamma in (0.0, multiplier / 2, 2 * multiplier, 1.0):
        left = measured(runs, omega, gamma)
        right = theory.bound(problem(omega), (x, y), method=method, T=STEPS, rho=rho, gamma=gamma)
        assert np.all(left <= right), f"γ = {gamma:.3g}: measured {left}, bound {right}"
        if gamma >= multiplier:  # then γ‖Ax + By − c‖ outweighs what leaving the constraint can gain
            assert np.all(left > 0), f"γ = {gamma:.3g}: measured {left}"


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("method", "omega"), CASES)
def test_the_corollary_holds(method, omega, rho):
    x, y, _, _ = optimum(omega)
    left = measured(averages(method, omega, rho), omega)
    right = theory.corollary(problem(omega), (x, y), method=method, T=STEPS, rho=rho)
    assert np.all(left > 0)
    assert np.all(left <= right), f"measured {left}, bound {right}"


@pytest.mark.parametrize("method", ["sa-admm", "sa-iu-admm"])
def test_the_bounds_hold_from_any_start(method):
    rng = np.random.default_rng(1)
    start = {"x0": tuple(rng.standard_normal(D)), "y0": tuple(rng.standard_normal(D - 1))}
    start["dual0"] = tuple(3 * rng.standard_normal(D - 1))
    x, y, _, multiplier = optimum()
    runs = averages(method, **start)
    for gamma in (2 * multiplier, None):
        left = measured(runs, gamma=gamma)
        right = theory.bound(problem(), (x, y), method=method, T=STEPS, rho=0.1, gamma=gamma, **start)
        assert np.all(left <= right), f"γ = {gamma}: measured {left}, bound {right}"


def test_with_blocks_their_number_takes_the_place_of_n():
    x, y, _, multiplier = optimum()
    steps = np.array([8, 32, 128, 512])
    left = measured(averages("sa-iu-admm", steps=tuple(steps), batch_size=8), gamma=2 * multiplier)
    right = theory.theorem1(problem(), (x, y), T=steps, rho=0.1, gamma=2 * multiplier, batch_size=8)
    assert np.all(left <= right), f"measured {left}, bound {right}"
    terms = [theory.constants(problem(), (x, y), rho=0.1, gamma=1.0, batch_size=b) for b in (1, 8, 60, N)]
    assert [t.table / terms[-1].table for t in terms] == pytest.approx([N, 8, 2, 1])


# -- and the bounds are not large for a wrong reason ------------------------------------------------------------


@pytest.mark.parametrize("method", ["sa-admm", "sa-iu-admm"])
def test_without_its_factor_n_the_bound_fails(method):
    x, y, _, multiplier = optimum()
    left = measured(averages(method), gamma=2 * multiplier)
    terms = theory.constants(problem(), (x, y), method=method, rho=0.1, gamma=2 * multiplier)
    short = terms._replace(table=terms.table / N).total / (2 * STEPS)
    assert np.all(left[1:] > short[1:]), f"measured {left}, bound with L in place of nL {short}"


@pytest.mark.parametrize("method", ["sa-admm", "sa-iu-admm"])
def test_beyond_the_theory_step_there_is_no_bound(method):
    x, y, _, multiplier = optimum()
    step = 300 / problem().L
    left = measured(averages(method, multiple=300.0), gamma=2 * multiplier)
    options = {"method": method, "rho": 0.1, "gamma": 2 * multiplier, "step": step}
    formula = theory.constants(problem(), (x, y), **options).total / (2 * STEPS)
    assert np.all(left > formula), f"measured {left}, formula {formula}"
    with pytest.raises(ValueError, match=r"step=.*the theorem takes steps up to"):
        theory.bound(problem(), (x, y), T=STEPS, **options)


# -- the rate --------------------------------------------------------------------------------------------------


def test_sa_admm_is_faster_than_the_square_root_rate_of_stoc_admm():
    """Same problem, same T.

    STOC-ADMM takes 10 times the theory's step, better early, and 3 times, better late. At smaller steps it is still
    leaving its start at these T, which says nothing of its rate; it flattens to −½ later.
    """
    steps = tuple(N * np.array([16, 64, 256, 1024]))
    gamma = 2 * optimum()[3]
    runs = [("sa-admm", 1.0), ("sa-admm", 10.0), ("stoc-admm", 3.0), ("stoc-admm", 10.0)]
    errors = {key: measured(averages(key[0], multiple=key[1], steps=steps), gamma=gamma) for key in runs}
    slopes = {key: theory.slope(steps, error) for key, error in errors.items()}
    table = "\n".join(
        f"{method} at {multiple:g} × the theory's step: slope {slopes[method, multiple]:.2f}, errors "
        + ", ".join(f"{error:.2e}" for error in errors[method, multiple])
        for method, multiple in runs
    )
    fast = [value for (method, _), value in slopes.items() if method == "sa-admm"]
    slow = [value for (method, _), value in slopes.items() if method == "stoc-admm"]
    assert max(fast) <= -0.9, table
    assert min(slow) >= -0.8, table
    assert min(slow) >= max(fast) + 0.4, table
    assert errors["sa-admm", 10.0][-1] < 0.1 * min(errors[key][-1] for key in runs if key[0] == "stoc-admm"), table


def test_slope_of_powers():
    T = np.array([10, 100, 1000])
    assert theory.slope(T, 3 / T) == pytest.approx(-1)
    assert theory.slope(T, 5 / np.sqrt(T)) == pytest.approx(-0.5)


# -- the formulas ----------------------------------------------------------------------------------------------


@pytest.fixture
def general():
    """A problem with its own B and c, a pair taken for its solution, and a start; all dense."""
    rng = np.random.default_rng(2)
    X, labels = data()
    A, diagonal, c = rng.standard_normal((4, D)), np.array([-1.0, 2.0, 0.5, -3.0]), rng.standard_normal(4)
    model = Problem(X, labels, loss="logistic", psi=L1(0.3), A=A, B=diagonal, c=c, omega=SquaredL2(0.1))
    pair = rng.standard_normal(D), rng.standard_normal(4)
    start = {"x0": rng.standard_normal(D), "y0": rng.standard_normal(4), "dual0": rng.standard_normal(4)}
    return model, A, np.diag(diagonal), pair, start


def test_every_term_against_its_matrix(general):
    model, A, B, (x, y), start = general
    rho, gamma, T = 0.7, 1.3, 50
    L = max(np.sum(data()[0] ** 2, axis=1)) / 4
    to_x, to_y, dual = x - start["x0"], y - start["y0"], np.linalg.norm(start["dual0"])
    L_A = rho * np.linalg.norm(A, 2) ** 2
    linearised = to_x @ (L_A * np.eye(D) - rho * A.T @ A) @ to_x
    shared = N * L * to_x @ to_x + to_y @ (rho * B.T @ B) @ to_y
    both = 2 * rho * (gamma**2 / rho**2 + dual**2)
    options = {"T": T, "rho": rho, **start}
    first = theory.theorem1(model, (x, y), gamma=gamma, **options)
    second = theory.theorem2(model, (x, y), gamma=gamma, **options)
    assert first == pytest.approx((linearised + shared + both) / (2 * T))
    assert second == pytest.approx((shared + both) / (2 * T))
    # The corollary: L̃ = 0.3√4 and L_B = 1/0.5², so γ = 1.2.
    assert theory.corollary_gamma(model) == pytest.approx(1.2)
    last = rho * (1.2 / rho + dual) ** 2
    assert theory.corollary(model, (x, y), **options) == pytest.approx((linearised + shared + last) / (2 * T))
    assert theory.corollary(model, (x, y), method="sa-admm", **options) == pytest.approx((shared + last) / (2 * T))


@pytest.mark.parametrize("method", ["sa-admm", "sa-iu-admm"])
def test_the_corollary_is_never_weaker_than_the_theorem_at_its_gamma(general, method):
    model, _, _, pair, start = general
    gamma = theory.corollary_gamma(model)
    options = {"method": method, "T": 10, "rho": 0.7, **start}
    assert theory.bound(model, pair, **options) <= theory.bound(model, pair, gamma=gamma, **options)
    # Without a dual to start from it is the printed form, without the theorem's factor 2.
    terms = theory.constants(model, pair, method=method, rho=0.7)
    assert terms.multiplier == pytest.approx(gamma**2 / 0.7)


def test_bounds_fall_as_one_over_t(general):
    model, _, _, pair, start = general
    values = theory.theorem1(model, pair, T=[1, 2, 10, 1000], rho=0.1, gamma=1.0, **start)
    assert values * [1, 2, 10, 1000] == pytest.approx(values[0])
    assert theory.theorem1(model, pair, T=10, rho=0.1, gamma=1.0, **start) == values[2]


def test_a_batch_method_is_bounded_as_one_block():
    x, y, best, multiplier = optimum()
    run = solve(problem(), "batch-admm", rho=0.1, step="theory", passes=50, record_every=0)
    left = theory.left_side(problem(), run.x_average, run.y_average, optimum=best, gamma=2 * multiplier)
    options = {"method": "batch-admm", "rho": 0.1, "gamma": 2 * multiplier}
    assert 0 < left <= theory.bound(problem(), (x, y), T=50, **options)
    terms = theory.constants(problem(), (x, y), **options)
    assert terms.table == pytest.approx(problem().L_full * np.sum(x**2))


def test_the_least_l_of_blocks():
    model = problem()
    X, _ = data()
    sizes = [np.mean(np.sum(X[start : start + 7] ** 2, axis=1)) / 4 for start in range(0, N, 7)]
    assert theory.block_smoothness(model) == pytest.approx(model.L)
    assert theory.block_smoothness(model, 7) == pytest.approx(max(sizes))
    assert theory.block_smoothness(model, N) <= model.L_mean


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"T": 0}, "T=0: it takes an integer ≥ 1"),
        ({"T": 1.5}, r"T=1\.5: it takes an integer ≥ 1"),
        ({"rho": -1.0}, r"rho=-1\.0: it takes a finite number > 0"),
        ({"gamma": -1.0}, r"gamma=-1\.0: it takes a finite number ≥ 0"),
        ({"batch_size": 0}, "batch_size=0: it takes an integer ≥ 1"),
        ({"step": 0.0}, r"step=0\.0: it takes a finite number > 0"),
        ({"method": "stoc-admm"}, "method='stoc-admm': the theorems are about sa-admm"),
        ({"x0": np.zeros(D + 1)}, "x0 has shape"),
        ({"dual0": np.zeros(D)}, "dual0 has shape"),
        ({"solution": (np.zeros(D), np.zeros(D))}, r"solution\[1\] has shape"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"solution": (np.zeros(D), np.zeros(D - 1)), "T": 10, "rho": 0.1, "gamma": 1.0} | change
    with pytest.raises(ValueError, match=message):
        theory.bound(problem(), **arguments)


def test_what_the_theorems_do_not_cover_is_refused():
    pair = np.zeros(D), np.zeros(D - 1)
    with pytest.raises(TypeError, match=r"it takes the pair \(x\*, y\*\)"):
        theory.bound(problem(), np.zeros(D), T=1, rho=0.1)
    with pytest.raises(TypeError, match=r"it takes a skadmm\.Problem"):
        theory.constants(None, pair, rho=0.1)
    with pytest.raises(ValueError, match="gamma=None"):
        theory.theorem1(problem(), pair, T=1, rho=0.1, gamma=None)
    with pytest.raises(ValueError, match=r"folds omega=L1 into psi: give problem\.fold\(\)"):
        theory.theorem2(problem("l1"), pair, T=1, rho=0.1, gamma=1.0)
    X, labels = data()
    with pytest.raises(ValueError, match="psi=SquaredL2 is not Lipschitz"):
        theory.corollary(Problem(X, labels, psi=SquaredL2(1.0), A=chain(D)), pair, T=1, rho=0.1)
    wide = Problem(X, labels, psi=GroupL2(1.0), A=chain(D), B=np.ones((D - 1, 1)))
    with pytest.raises(ValueError, match="B is not invertible"):
        theory.corollary(wide, (np.zeros(D), np.zeros(1)), T=1, rho=0.1)
    with pytest.raises(ValueError, match="a logarithm takes numbers > 0"):
        theory.slope([1, 2], [1.0, -1.0])
    with pytest.raises(ValueError, match="two different values"):
        theory.slope([2, 2], [1.0, 1.0])


def test_a_folded_problem_is_bounded_on_its_stacked_constraint():
    x, y, best, _ = optimum("l1")
    folded = problem("l1").fold()
    assert folded.objective(x) == pytest.approx(best)
    pair = x, np.concatenate([y, x])
    plain = theory.theorem1(problem("l1"), (x, y), T=10, rho=0.1, gamma=1.0)
    assert theory.theorem1(folded, pair, T=10, rho=0.1, gamma=1.0) > plain
