"""The problem: its values, constants and residuals, by what defines them."""

import numpy as np
import pytest
import reference
import scipy.sparse
from twins import CLASSES, KINDS, NUMBERS, OMEGA, PSI, WEIGHT, X0, A, C, D, M, N, X, target

from skadmm import Problem, Status, solve
from skadmm.losses import LOSSES, curvature, derivative, value
from skadmm.operators import chain, incidence
from skadmm.problem.kkt import kkt_residual
from skadmm.regularizers import L1, L2, Box, ElasticNet, LInf, SquaredL2

Y0 = np.linspace(-1.0, 1.0, M)
MIXING = -np.eye(M) + 0.2 * np.random.default_rng(5).standard_normal((M, M))


def make(loss="logistic", table=X, **changes):
    told = {"omega": SquaredL2(OMEGA), "psi": L1(PSI), "A": A, "c": C, "sample_weight": WEIGHT} | changes
    return Problem(table, target(loss), loss, **told)


def model_of(loss="logistic", **changes):
    return reference.Model(
        X, target(loss), reference.LOSSES[loss], A, reference.soft(PSI), 1.0, 1.0, c=C, weight=WEIGHT, **changes
    )


# -- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [name for name, cls in LOSSES.items() if not cls.coupled])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_weighted_means_of_the_scalar_functions(loss, kind):
    problem, b, w = make(loss, KINDS[kind](X)), target(loss), WEIGHT / WEIGHT.sum()
    values = [value(problem.loss, z, t) for z, t in zip(X @ X0, b, strict=True)]
    slopes = [derivative(problem.loss, z, t) for z, t in zip(X @ X0, b, strict=True)]
    assert problem.loss_value(X0) == pytest.approx(w @ values, rel=1e-13)
    assert np.allclose(problem.gradient(X0), X.T @ (w * slopes), rtol=0, atol=1e-14)


@pytest.mark.parametrize("loss", list(reference.LOSSES))
@pytest.mark.parametrize("table", [X, scipy.sparse.csr_array(X)], ids=["dense", "csr"])
def test_the_loss_and_its_gradient(loss, table):
    problem, model = make(loss, table), model_of(loss)
    assert problem.loss_value(X0) == pytest.approx(model.mean_loss(X0), rel=1e-13)
    assert np.allclose(problem.gradient(X0), model.gradients(X0).mean(0), rtol=0, atol=1e-14)


def test_the_objective():
    problem = make()
    ridge, fused = OMEGA / 2 * X0 @ X0, PSI * np.abs(A @ X0 - C).sum()
    assert problem.objective(X0) == pytest.approx(model_of().mean_loss(X0) + ridge + fused)
    assert problem.penalty(X0) == pytest.approx(ridge + fused)
    assert problem.objective(X0, Y0) == pytest.approx(model_of().mean_loss(X0) + ridge + PSI * np.abs(Y0).sum())


def test_without_psi_there_is_no_constraint():
    problem = Problem(X, CLASSES, omega=L1(0.1))
    assert problem.n_split == problem.n_constraints == 0
    assert problem.objective(X0) == pytest.approx(problem.loss_value(X0) + 0.1 * np.abs(X0).sum())
    assert problem.feasibility(X0, np.empty(0)) == 0


def test_A_is_the_identity_unless_given():
    assert np.array_equal(Problem(X, CLASSES, psi=L1(0.1)).constraint.A.toarray(), np.eye(D))


@pytest.mark.parametrize("B", [None, 2.0, np.linspace(1, 2, M), MIXING], ids=["none", "number", "diagonal", "matrix"])
def test_feasibility_and_y_of_x(B):
    problem = make(B=B)
    dense = -np.eye(M) if B is None else B * np.eye(M) if np.ndim(B) < 2 else B
    assert problem.feasibility(X0, Y0) == pytest.approx(np.linalg.norm(A @ X0 + dense @ Y0 - C))
    assert np.allclose(problem.y_of_x(X0), np.linalg.solve(dense, C - A @ X0))
    assert problem.feasibility(X0, problem.y_of_x(X0)) < 1e-13
    assert problem.constraint.B_inverse_norm_squared == pytest.approx(np.linalg.norm(np.linalg.inv(dense), 2) ** 2)


@pytest.mark.parametrize("B", [MIXING[:, :4], MIXING @ np.diag([1, 1, 1, 1, 1, 1, 1, 1, 0]) + 1e-300])
def test_no_y_of_x_where_B_has_no_inverse(B):
    problem = make(B=B)
    assert problem.y_of_x(X0) is None
    with pytest.raises(ValueError, match="B is not invertible"):
        problem.objective(X0)


def test_x_of_y():
    square = np.tril(np.ones((D, D)))
    problem = make(A=square, c=C[:D])
    y = Y0[:D]
    assert np.allclose(square @ problem.x_of_y(y) - y, C[:D])
    assert make().x_of_y(Y0) is None
    assert make(A=np.ones((D, D)), c=None).x_of_y(y) is None


def test_proximal_points():
    problem = make()
    assert np.allclose(problem.prox_omega(X0, 0.5), X0 / (1 + 0.5 * OMEGA))
    assert np.allclose(problem.prox_psi(Y0, 2.0), reference.soft(PSI)(Y0, 2.0))


def test_the_test_loss():
    problem = make()
    value = np.mean(reference.logistic(X[:7] @ X0, CLASSES[:7])[0])
    assert problem.test_loss(X0, X[:7], CLASSES[:7]) == pytest.approx(value)
    assert problem.test_loss(X0, scipy.sparse.csr_array(X[:7]), CLASSES[:7]) == pytest.approx(value)
    one_class = np.ones(7)  # the classes are those of training
    value = np.mean(reference.logistic(X[:7] @ X0, one_class)[0])
    assert problem.test_loss(X0, X[:7], one_class) == pytest.approx(value)


# -- folding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("omega", [SquaredL2(OMEGA), L1(OMEGA), ElasticNet(0.1, 0.2), LInf(0.3)], ids=str)
@pytest.mark.parametrize("B", [None, MIXING], ids=["none", "matrix"])
def test_folding_keeps_the_objective(omega, B):
    problem = make(omega=omega, B=B)
    folded = problem.fold()
    y, z = problem.y_of_x(X0), folded.y_of_x(X0)
    assert np.allclose(z, np.concatenate([y, X0]))
    assert folded.objective(X0) == pytest.approx(problem.objective(X0))
    assert folded.omega_value(X0) == 0
    stray = np.concatenate([Y0, X0 + 1.0])
    assert folded.feasibility(X0, stray) == pytest.approx(np.hypot(problem.feasibility(X0, Y0), np.sqrt(D)))
    assert problem.omega_value(X0) > 0  # the problem itself is left as it was


def test_folding_without_psi():
    problem = Problem(X, CLASSES, omega=L1(OMEGA))
    folded = problem.fold()
    assert folded.n_split == D
    assert folded.objective(X0) == pytest.approx(problem.objective(X0))
    assert problem.n_split == 0


# -- optimality --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved():
    """XᵀX = nI: the lasso is a soft threshold, and the multiplier is minus the gradient."""
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((N, D)))[0] * np.sqrt(N)
    problem = Problem(rows, NUMBERS, "squared", psi=L1(0.1))
    x = reference.soft(0.1)(rows.T @ NUMBERS / N, 1.0)
    return problem, x, -problem.gradient(x)


def test_kkt_vanishes_at_the_solution(solved):
    problem, x, multiplier = solved
    assert np.count_nonzero(x) > 0
    kkt = problem.kkt(x, x, multiplier)
    assert max(kkt) < 1e-13


def test_each_part_of_kkt_sees_its_own_error(solved):
    problem, x, multiplier = solved
    moved = problem.kkt(x + 0.1, x + 0.1, multiplier)
    assert moved.stationarity > 1e-3
    assert moved.feasibility == pytest.approx(0, abs=1e-14)
    parted = problem.kkt(x, x + 0.1, multiplier)
    assert parted.stationarity < 1e-13
    assert parted.feasibility == pytest.approx(0.1 * np.sqrt(D))
    beyond = problem.kkt(x, x, multiplier + 0.05)
    assert beyond.split > 1e-3
    assert beyond.feasibility < 1e-14
    assert min(moved.relative, parted.relative, beyond.relative) > 1e-3


@pytest.mark.parametrize("size", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("psi", [L1, L2, SquaredL2])
def test_relative_kkt_is_no_less_than_what_the_objective_can_fall_by(psi, size):
    """Whatever the scales of the columns, even of one that is zero: where the optimum is no farther away than zero is,
    the residual bounds the distance of the objective."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((N, D)) * 10.0 ** rng.uniform(-3, 3, D)
    rows[:, 0] *= size
    problem = Problem(rows, NUMBERS, "squared", psi=psi(1e-4), A=chain(D))
    optimum = solve(problem, tol=1e-9)
    for share in (1e-6, 1e-3, 0.4):
        x = optimum.x * (1.0 + share * rng.uniform(-1.0, 1.0, D))
        y = chain(D) @ x
        slope = {L1: np.sign, L2: lambda v: v / np.linalg.norm(v), SquaredL2: lambda v: v}[psi](y)
        loss = problem.loss_value(x)
        residual = problem.kkt(x, y, 1e-4 * slope, loss=loss).relative
        excess = problem.objective(x) - optimum.objective
        assert residual * max(problem.objective(x), 1e-3 * problem.loss_at_zero) >= excess - 1e-8 * optimum.objective


def test_a_column_that_the_rows_do_not_see_needs_its_optimum_too():
    """The gradient is small next to those of columns of another scale, and the objective is not at its minimum."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((77, 4)) * np.array([0.0, 3e-3, 3e-3, 400.0])
    target = rows @ np.array([0.0, 300.0, 350.0, 3e-3])
    problem = Problem(rows, target, "squared", psi=L2(3.6e-8), A=incidence([(0, 1), (1, 2), (0, 3)], n_features=4))
    found = solve(problem, tol=1e-6)
    assert found.status is Status.SOLVED
    x = found.x.copy()
    x[0] /= 10.0
    y = problem.constraint.A @ x
    residual = problem.kkt(x, y, 3.6e-8 * y / np.linalg.norm(y), loss=problem.loss_value(x)).relative
    assert problem.objective(x) > 1.01 * found.objective
    assert residual > 1e-3 * (problem.objective(x) - found.objective) / found.objective


def test_relative_kkt_does_not_see_the_scale_of_the_objective(solved):
    problem, x, multiplier = solved
    rows = problem.rows.values
    larger = Problem(1e3 * rows, 1e3 * NUMBERS, "squared", psi=L1(0.1e6))
    small, large = problem.kkt(x + 0.1, x, multiplier), larger.kkt(x + 0.1, x, 1e6 * multiplier)
    assert large.feasibility == pytest.approx(small.feasibility)
    assert larger.objective(x) == pytest.approx(1e6 * problem.objective(x))


@pytest.mark.parametrize("loss", list(reference.LOSSES))
def test_kkt_vanishes_where_cvxpy_ends(loss):
    cvxpy = pytest.importorskip("cvxpy")
    b, w = target(loss), WEIGHT / WEIGHT.sum()
    x, y = cvxpy.Variable(D), cvxpy.Variable(M)
    z = X @ x
    terms = {
        "logistic": lambda: cvxpy.logistic(cvxpy.multiply(-b, z)),
        "squared": lambda: cvxpy.square(z - b) / 2,
        "huber": lambda: cvxpy.huber(z - b) / 2,
        "squared-hinge": lambda: cvxpy.square(cvxpy.pos(1 - cvxpy.multiply(b, z))) / 2,
    }[loss]()
    link = A @ x - y == C
    objective = w @ terms + OMEGA / 2 * cvxpy.sum_squares(x) + PSI * cvxpy.norm1(y)
    told = cvxpy.Problem(cvxpy.Minimize(objective), [link])
    told.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    problem = make(loss)
    assert problem.objective(x.value) == pytest.approx(told.value, rel=1e-6)
    kkt = problem.kkt(x.value, y.value, link.dual_value)
    assert kkt.relative < 1e-5
    assert problem.kkt(x.value + 0.01, y.value, link.dual_value).relative > 1e-3


# -- constants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", [name for name, cls in LOSSES.items() if not cls.coupled])
def test_the_constants_bound_the_curvature(loss, weight):
    problem = make(loss, sample_weight=weight)
    w = np.ones(N) if weight is None else WEIGHT * N / WEIGHT.sum()
    known = {"logistic": 0.25, "squared": 1.0, "huber": 1.0, "squared-hinge": 1.0}
    bound = known.get(loss, problem.loss.curvature_bound)
    if not np.isfinite(bound):  # the curvature at a typical margin takes its place
        bound = problem.curvature_scale
        at_zero = [curvature(problem.loss, 0.0, b) for b in problem.target]
        at_mean = at_zero
        if problem.loss.link is not None:
            z = float(problem.loss.link(np.average(problem.target, weights=weight)))
            at_mean = [curvature(problem.loss, z, b) for b in problem.target]
        wanted = max(np.average(at_zero, weights=weight), np.average(at_mean, weights=weight))
        assert bound == pytest.approx(wanted if problem.loss.smooth else 1.0)
    assert pytest.approx(bound * np.max(w * np.sum(X**2, axis=1))) == problem.L
    assert problem.L_mean == pytest.approx(bound * np.mean(w * np.sum(X**2, axis=1)))
    top = bound * np.linalg.eigvalsh(X.T @ (w[:, None] * X) / N)[-1]
    assert top <= problem.L_full <= 1.03 * top
    assert problem.L_full <= problem.L_mean * 1.03 <= problem.L * 1.03


@pytest.mark.parametrize("shape", [(5, 5), (30, 4), (4, 30), (500, 450)])
def test_L_A_bounds_the_penalty(shape):
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.csr_array(rng.random(shape) * (rng.random(shape) < 0.3))
    problem = Problem(np.ones((2, shape[1])), [0.0, 1.0], "squared", psi=L1(0.1), A=matrix)
    top = np.linalg.norm(matrix.toarray(), 2) ** 2
    assert 0.7 * top <= problem.L_A(0.7) <= 0.7 * top * 1.003


def test_constants_of_degenerate_tables():
    assert Problem(np.zeros((3, 2)), [0.0, 1.0, 2.0], "squared").L_full == 0
    assert Problem(np.ones((3, 1)), [0.0, 1.0, 2.0], "squared").L_full == pytest.approx(1.0)


# -- samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.ascontiguousarray, np.asfortranarray, scipy.sparse.csr_array])
def test_a_subset_is_the_same_model_on_fewer_samples(convert):
    chosen = np.array([3, 4, 9, 20])
    part = make(table=convert(X)).subset(chosen)
    told = {"omega": SquaredL2(OMEGA), "psi": L1(PSI), "A": A, "c": C}
    alone = Problem(X[chosen], CLASSES[chosen], sample_weight=WEIGHT[chosen], **told)
    assert part.n_samples == 4
    assert part.objective(X0) == pytest.approx(alone.objective(X0))
    assert pytest.approx(alone.L) == part.L
    if convert is not scipy.sparse.csr_array:
        assert part.rows.values.flags.f_contiguous == (convert is np.asfortranarray)


def test_a_weight_is_a_repetition():
    times = np.arange(N) % 3
    repeated = Problem(np.repeat(X, times, axis=0), np.repeat(CLASSES, times), psi=L1(PSI), A=A)
    weighted = Problem(X, CLASSES, psi=L1(PSI), A=A, sample_weight=times)
    assert weighted.objective(X0) == pytest.approx(repeated.objective(X0))
    assert np.allclose(weighted.gradient(X0), repeated.gradient(X0))
    assert weighted.L_full == pytest.approx(repeated.L_full, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_not_copied(dtype):
    for order in "CF":
        table = np.array(X, dtype=dtype, order=order)
        assert np.shares_memory(Problem(table, CLASSES).rows.values, table)
    matrix = scipy.sparse.csr_array(X.astype(dtype))
    rows = Problem(matrix, CLASSES).rows
    assert np.shares_memory(rows.data, matrix.data)
    assert np.shares_memory(rows.indices, matrix.indices)


def test_nothing_given_is_changed():
    given = [X.copy(), CLASSES.copy(), WEIGHT.copy(), A.copy(), C.copy()]
    make().fold().objective(X0)
    assert all(np.array_equal(before, now) for before, now in zip(given, [X, CLASSES, WEIGHT, A, C], strict=True))


def test_feasibility_counts_apart_from_the_rows_that_fold_omega():
    """Where y does not follow from x, a small error of Ax + By = c does not hide behind a large x."""
    rng = np.random.default_rng(0)
    B = np.array([[1.0, -1.0], [-1.0, 1.0]])
    across = np.outer([1.0, -1.0], [1.0, -1.0, 0.0, 0.0])
    problem = Problem(
        rng.standard_normal((20, 4)),
        rng.standard_normal(20),
        "squared",
        omega=Box(-1e3, 1e3),
        psi=L1(1.0),
        A=across,
        B=B,
    )
    x, y = np.array([1.0, 1.0 - 1e-6, 900.0, -900.0]), np.zeros(2)
    for one, split in ((problem, y), (problem.fold(), np.concatenate([y, x]))):
        kkt = kkt_residual(one, x, split, np.zeros(one.n_constraints), np.zeros(4))
        assert kkt.feasibility == pytest.approx(np.sqrt(2) * 1e-6, rel=1e-6)
        assert kkt.relative > 0.1
    exact = kkt_residual(problem, np.array([1.0, 1.0, 5.0, -5.0]), y, np.zeros(2), np.zeros(4))
    assert exact.relative == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_solution_with_a_singular_split_is_feasible(seed):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.standard_normal((60, 12)))
    across = np.outer([1.0, -2.0], rng.standard_normal(12))
    problem = Problem(
        X,
        np.sign(rng.standard_normal(60)),
        omega=ElasticNet(1e-5, l1_ratio=0.5),
        psi=LInf(3.0),
        A=across,
        B=np.ones((2, 2)),
    )
    result = solve(problem, tol=1e-6)
    assert result.status is Status.SOLVED
    error = np.linalg.norm(problem.constraint.residual(result.x, result.y))
    size = max(np.linalg.norm(across @ result.x), 1e-6 * np.linalg.norm(np.abs(across) @ np.abs(result.x)))
    assert error <= 1e-5 * size


# -- what the loss alone can still fall by ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_squared_loss_falls_by_what_least_decrease_says(kind):
    problem = Problem(KINDS[kind](X), NUMBERS, "squared", sample_weight=WEIGHT)
    root = np.sqrt(WEIGHT / WEIGHT.mean())
    best = np.linalg.lstsq(root[:, None] * X, root * NUMBERS, rcond=None)[0]
    fall = problem.loss_value(X0) - problem.loss_value(best)
    assert problem.least_decrease(problem.gradient(X0)) == pytest.approx(fall, rel=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared-hinge"])
def test_no_loss_falls_by_less_than_least_decrease_says(loss):
    problem = Problem(X, target(loss), loss)
    least = problem.least_decrease(problem.gradient(X0))
    assert 0.0 < least <= problem.loss_value(X0) - solve(problem, tol=1e-8).objective


def test_least_decrease_is_zero_with_a_penalty():
    assert make().least_decrease(X0) == 0.0
    assert Problem(X, NUMBERS, "squared", omega=L1(0.1)).least_decrease(X0) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_small_gradients_along_directions_without_spread_are_no_solution(seed):
    """Rows of low rank, rounded to float32: along the other directions gradients are 1e-8 wherever x is."""
    rng = np.random.default_rng(seed)
    table = (rng.standard_normal((60, 6)) @ rng.standard_normal((6, 20))).astype(np.float32)
    b = rng.standard_normal(60)
    problem = Problem(table, b, "squared")
    best = problem.loss_value(np.linalg.lstsq(table.astype(float), b, rcond=1e-13)[0])
    result = solve(problem, tol=1e-6)
    assert result.status is not Status.SOLVED or result.objective <= best * (1.0 + 1e-5)
