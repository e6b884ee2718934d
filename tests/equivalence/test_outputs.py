"""Several outputs: multi-task regression and the multinomial loss equal CVXPY, scikit-learn and the NumPy twins."""

import cvxpy as cp
import numpy as np
import pytest
import reference
import reference_successors
import scipy.sparse
from sklearn.linear_model import LogisticRegression, MultiTaskLasso

from skadmm import ALGORITHMS, Problem, solve
from skadmm.backends.writer import write_blocks
from skadmm.losses import Huber
from skadmm.operators import across_outputs, chain, output_groups, stack
from skadmm.regularizers import L1, GroupL2, GroupLInf, SquaredL2
from skadmm.solvers import Setup, dual_update

N, D, K, ALPHA = 60, 6, 3, 0.03
rng = np.random.default_rng(22)
X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.8)
W = np.zeros((D, K))
W[:3] = 1.5 * rng.standard_normal((3, K))
Y = X @ W + 0.5 * rng.standard_normal((N, K))
LABELS = np.array(["ash", "birch", "cedar"])[np.argmax(X @ W + rng.gumbel(size=(N, K)), axis=1)]
ONE_HOT = (LABELS[:, None] == np.unique(LABELS)).astype(float)
WEIGHT = rng.uniform(0.5, 2.0, N)
CHAIN = chain(D).toarray()

STORAGE = {"dense": np.asarray, "csr": scipy.sparse.csr_array}

PENALTIES = {
    "entries": ({"psi": L1(ALPHA)}, lambda V: ALPHA * cp.sum(cp.abs(V))),
    "elastic net": (
        {"psi": L1(ALPHA), "omega": SquaredL2(0.1)},
        lambda V: ALPHA * cp.sum(cp.abs(V)) + 0.05 * cp.sum_squares(V),
    ),
    "rows": ({"psi": GroupL2(ALPHA, groups=output_groups(D, K))}, lambda V: ALPHA * cp.sum(cp.norm(V, axis=1))),
    "largest of rows": (
        {"psi": GroupLInf(ALPHA, groups=output_groups(D, K))},
        lambda V: ALPHA * cp.sum(cp.norm(V, "inf", axis=1)),
    ),
    "chain over features": (
        {"psi": L1(ALPHA), "A": stack(chain(D), np.eye(D))},
        lambda V: ALPHA * (cp.sum(cp.abs(CHAIN @ V)) + cp.sum(cp.abs(V))),
    ),
    "rows of the chain": (
        {"psi": GroupL2(ALPHA, groups=output_groups(D - 1, K)), "A": chain(D), "omega": SquaredL2(0.05)},
        lambda V: ALPHA * cp.sum(cp.norm(CHAIN @ V, axis=1)) + 0.025 * cp.sum_squares(V),
    ),
    "chain over outputs": (
        {"psi": L1(ALPHA), "A": stack(across_outputs(chain(K), D), np.eye(D * K))},
        lambda V: ALPHA * (cp.sum(cp.abs(V[:, 1:] - V[:, :-1])) + cp.sum(cp.abs(V))),
    ),
}


def oracle(loss, penalty, weight=None):
    """The optimum by CVXPY, from the definition of the model."""
    V = cp.Variable((D, K))
    Z = X @ V
    weight = np.ones(N) if weight is None else weight * N / weight.sum()
    terms = {
        "squared": lambda: 0.5 * cp.sum(cp.square(Z - Y), axis=1),
        "huber": lambda: 0.5 * cp.sum(cp.huber(Z - Y, 0.7), axis=1),
        "multinomial": lambda: cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(ONE_HOT, Z), axis=1),
    }[loss]()
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(weight, terms)) / N + penalty(V)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


def target(loss):
    return LABELS if loss == "multinomial" else Y


def as_loss(loss):
    return Huber(0.7) if loss == "huber" else loss


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "huber", "multinomial"])
def test_the_optimum_is_that_of_cvxpy(loss, penalty):
    parts, in_cvxpy = PENALTIES[penalty]
    best = oracle(loss, in_cvxpy, WEIGHT)
    for kind in STORAGE.values():
        problem = Problem(kind(X), target(loss), as_loss(loss), sample_weight=WEIGHT, **parts)
        result = solve(problem, tol=1e-9)
        assert result.status.name == "SOLVED"
        assert result.gap <= 1e-9
        assert abs(result.objective - best) <= 1e-7 * abs(best)
        assert result.coef.shape == (K, D)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("kind", STORAGE)
def test_rows_in_files_give_the_same(tmp_path, kind, loss):
    write_blocks(tmp_path / "X", [(STORAGE[kind](X[:25]), None), (STORAGE[kind](X[25:]), None)])
    for penalty in ("rows", "chain over features"):
        parts = PENALTIES[penalty][0]
        here = solve(Problem(STORAGE[kind](X), target(loss), loss, **parts), tol=1e-9)
        there = solve(Problem(tmp_path / "X", target(loss), loss, **parts), tol=1e-9)
        assert there.status.name == "SOLVED"
        assert abs(here.objective - there.objective) <= 1e-8 * here.objective


def test_multi_task_lasso_is_that_of_scikit_learn():
    alpha = 0.1
    result = solve(Problem(X, Y, "squared", psi=GroupL2(alpha, groups=output_groups(D, K))), tol=1e-10)
    peer = MultiTaskLasso(alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, Y)
    assert result.solver == "output-descent"
    np.testing.assert_allclose(result.coef, peer.coef_, atol=1e-6)


def test_l1_multinomial_is_that_of_scikit_learn():
    """Its objective is C times the sum of losses, and its intercepts are not penalised."""
    ones = np.column_stack([X, np.ones(N)])
    problem = Problem(ones, LABELS, "multinomial", psi=L1(ALPHA), A=np.eye(D + 1)[:D])
    peer = LogisticRegression(
        C=1 / (ALPHA * N), l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=100_000, random_state=0
    ).fit(X, LABELS)
    at_peer = problem.objective(np.column_stack([peer.coef_, peer.intercept_]).ravel())
    for method in ("auto", "newton-admm", "output-descent"):
        result = solve(problem, method, tol=1e-9)
        assert result.gap <= 1e-9
        assert abs(result.objective - at_peer) <= 1e-6 * at_peer


def test_two_classes_are_the_logistic_loss():
    """With ℓ2 alone the two rows are opposite; w₁ − w₀ is the coefficient of the logistic loss at half the strength."""
    binary = np.where(LABELS == "ash", "a", "b")
    both = solve(Problem(X, binary, "multinomial", psi=L1(0.0), omega=SquaredL2(0.2)), tol=1e-11)
    one = solve(Problem(X, binary, "logistic", psi=L1(0.0), omega=SquaredL2(0.1)), tol=1e-11)
    np.testing.assert_allclose(both.coef[1] - both.coef[0], one.x, atol=1e-5)


def test_margins_of_the_models_of_sparse_and_dense_rows_agree():
    """Free features, sparse columns and joined outputs in one working set."""
    ones = np.column_stack([X, np.ones(N)])
    results = [
        solve(Problem(kind(ones), LABELS, "multinomial", psi=GroupL2(ALPHA, groups=output_groups(D, K)),
                      A=np.eye(D + 1)[:D], sample_weight=WEIGHT), tol=1e-10)
        for kind in STORAGE.values()
    ]  # fmt: skip
    np.testing.assert_allclose(results[0].x, results[1].x, atol=1e-7)


# -- first-order methods -----------------------------------------------------------------------------------------

STACKED = np.zeros((N * K, D * K))
for c in range(K):
    STACKED[c::K, c * D : (c + 1) * D] = X
A = np.kron(np.eye(K), np.vstack([CHAIN, np.eye(D)]))
X0 = 0.5 * rng.standard_normal(D * K)
RHO, STEPS = 0.3, 40


def models(loss, kind="dense"):
    parts = {"A": np.vstack([CHAIN, np.eye(D)]), "psi": L1(ALPHA), "sample_weight": WEIGHT}
    problem = Problem(STORAGE[kind](X), target(loss), loss, **parts)
    in_numpy, numbers, hessian = {
        "multinomial": (reference.multinomial(K), ONE_HOT.ravel(), reference.multinomial_hessian(K)),
        "squared": (lambda z, b: tuple(K * part for part in reference.squared(z, b)), Y.ravel(), None),
    }[loss]
    model = reference.Model(
        STACKED, numbers, in_numpy, A, reference.soft(ALPHA), RHO, 0.0, weight=np.repeat(WEIGHT, K), hessian=hessian
    )
    return problem, model


CELLS = [("multinomial", "dense", method) for method in (*reference.METHODS, *reference_successors.METHODS)]
CELLS += [("multinomial", "csr", "sa-iu-admm"), ("multinomial", "csr", "svrg-admm"), ("squared", "dense", "sa-admm"),
          ("squared", "csr", "online-admm")]  # fmt: skip


@pytest.mark.parametrize(("loss", "kind", "method"), CELLS)
def test_first_order_methods_are_their_twins(loss, kind, method):
    """A block is `batch_size` samples, with the margins of all their outputs."""
    problem, model = models(loss, kind)
    algorithm = ALGORITHMS[method]
    model.step = algorithm.theory_step(problem, RHO)
    for batch_size in (1, 7):
        setup = Setup(problem, RHO, model.step, batch_size, "none", options=algorithm.settled({}))
        engine = algorithm.start(setup, dual_update.start(problem, X0, model.start(X0)[1], None))
        blocks = reference.cut(N * K, K * batch_size)
        order = np.random.default_rng(batch_size).integers(len(blocks), size=STEPS)
        visited = [blocks[k] for k in order]
        if method in reference.METHODS:
            steps = reference.METHODS[method](model, visited, X0)
        else:
            steps = reference_successors.iterates(method, model, visited, X0)
        for k, triple in zip(order, steps, strict=False):
            engine.advance(np.array([k]))
            mine = np.concatenate([engine.point.x, engine.point.y, engine.point.dual])
            np.testing.assert_allclose(mine, np.concatenate(triple), atol=1e-10)


# -- certificates ------------------------------------------------------------------------------------------------


def random_case(seed):
    """A problem with several outputs, of a random size, loss and penalty; some with intercepts and weights."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(5, 40)), int(rng.integers(1, 8)), int(rng.integers(2, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=n)])[:n] if n >= k else np.arange(n)
    k = np.unique(labels).size
    loss = ["multinomial", "multinomial", "squared"][seed % 3]
    Y = labels if loss == "multinomial" else rng.standard_normal((n, k))
    strength = 10.0 ** rng.uniform(-3, -0.5)
    penalty = seed % 4
    psi = [
        L1(strength), GroupL2(strength, groups=output_groups(d, k)), GroupLInf(strength, groups=output_groups(d, k)),
        L1(strength),
    ][penalty]  # fmt: skip
    A = np.eye(d) if penalty < 3 else stack(chain(d), np.eye(d)) if d > 1 else np.eye(d)
    if rng.random() < 0.5:
        X = np.column_stack([X, np.ones(n)])
        A = scipy.sparse.hstack([scipy.sparse.csr_array(A), scipy.sparse.csr_array((A.shape[0], 1))])
    weight = rng.integers(0, 3, n) + (np.arange(n) < k) if rng.random() < 0.3 else None
    return Problem(STORAGE[["dense", "csr"][seed % 2]](X), Y, loss, psi=psi, A=A, sample_weight=weight)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_certificates_never_lie(first):
    """The gap of a run that was cut short bounds its distance from the optimum that a long run finds."""
    solved = 0
    for seed in range(first, first + 15):
        problem = random_case(seed)
        best = solve(problem, tol=1e-9, passes=2000)
        solved += best.status.name == "SOLVED"
        for method, passes in (("auto", 3), ("auto", 8), ("newton-admm", 4)):
            early = solve(problem, method, tol=1e-9, passes=passes)
            if np.isnan(early.gap):
                continue
            scale = max(abs(early.objective), 1e-5 * problem.loss_at_zero)
            lower = early.objective - early.gap * scale
            assert lower <= best.objective + 1e-12 * scale, (seed, method, passes)
    assert solved >= 14
