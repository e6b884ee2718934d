"""Several outputs: multi-task regression and the multinomial loss equal CVXPY, scikit-learn and the NumPy twins."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import random_outputs
import reference
import reference_successors
import scipy.sparse
from sklearn.linear_model import LogisticRegression, MultiTaskLasso

from skadmm import ALGORITHMS, Problem, alpha_max, path, solve
from skadmm.backends.writer import write_blocks
from skadmm.losses import Huber
from skadmm.operators import across_outputs, chain, output_groups, stack
from skadmm.regularizers import L1, GroupL2, GroupLInf, Nuclear, SquaredL2
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
    "nuclear norm": ({"psi": Nuclear(3 * ALPHA, columns=K)}, lambda V: 3 * ALPHA * cp.normNuc(V)),
    "nuclear norm of the chain": (
        {"psi": Nuclear(3 * ALPHA, columns=K), "A": chain(D), "omega": SquaredL2(0.05)},
        lambda V: 3 * ALPHA * cp.normNuc(CHAIN @ V) + 0.025 * cp.sum_squares(V),
    ),
    "nuclear norm and a chain over outputs": (
        {"psi": Nuclear(ALPHA, columns=K, single=D * (K - 1)), "A": stack(np.eye(D * K), across_outputs(chain(K), D))},
        lambda V: ALPHA * (cp.normNuc(V) + cp.sum(cp.abs(V[:, 1:] - V[:, :-1]))),
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of semidefinite programmes it reaches 1e-8 at times
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


def singular_values_shrunk(strength, columns):
    """The prox of strength · ‖V‖ₙ; `step` is one number."""

    def prox(v, step):
        left, sizes, right = np.linalg.svd(v.reshape(columns, -1).T, full_matrices=False)
        return ((left * np.maximum(sizes - strength * np.max(step), 0)) @ right).T.ravel()

    return prox


@pytest.mark.parametrize(
    "method", ["sa-iu-admm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sa-admm", "svrg-admm"))]
)
def test_first_order_methods_with_a_nuclear_norm_are_their_twins(method):
    problem = Problem(X, Y, "squared", psi=Nuclear(ALPHA, columns=K), A=np.vstack([CHAIN, np.eye(D)]))
    step = ALGORITHMS[method].theory_step(problem, RHO)
    loss = models("squared")[1].loss
    model = reference.Model(STACKED, Y.ravel(), loss, A, singular_values_shrunk(ALPHA, K), RHO, step)
    setup = Setup(problem, RHO, step, 7, "none", options=ALGORITHMS[method].settled({}))
    engine = ALGORITHMS[method].start(setup, dual_update.start(problem, X0, model.start(X0)[1], None))
    blocks = reference.cut(N * K, K * 7)
    order = np.random.default_rng(0).integers(len(blocks), size=STEPS)
    visited = [blocks[k] for k in order]
    twins = reference.METHODS if method in reference.METHODS else {}
    steps = twins[method](model, visited, X0) if twins else reference_successors.iterates(method, model, visited, X0)
    for k, triple in zip(order, steps, strict=True):
        engine.advance(np.array([k]))
        mine = np.concatenate([engine.point.x, engine.point.y, engine.point.dual])
        np.testing.assert_allclose(mine, np.concatenate(triple), atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_the_path_of_the_nuclear_norm_begins_at_the_spectral_norm(loss):
    problem = Problem(X, target(loss), loss, psi=Nuclear(1.0, columns=K))
    top = alpha_max(problem)
    gradient = problem.gradient(np.zeros(D * K)).reshape(K, D)
    assert top == pytest.approx(np.linalg.norm(gradient, 2), rel=1e-12)
    assert not solve(problem.replace(psi=Nuclear(1.0001 * top, K)), tol=1e-9).x.any()
    assert solve(problem.replace(psi=Nuclear(0.99 * top, K)), tol=1e-9).x.any()
    answer = path(problem, n_alphas=5, eps=0.05, tol=1e-8)
    for alpha, x in zip(answer.alphas, answer.x, strict=True):
        one = problem.replace(psi=Nuclear(alpha, K))
        assert one.objective(x) == pytest.approx(solve(one, tol=1e-9).objective, rel=1e-6)
    rank = np.linalg.matrix_rank(answer.x[-1].reshape(K, D), tol=1e-6)
    assert answer.dof[0] == 0
    assert answer.dof[-1] == rank * (D + K - rank)


# -- certificates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 63, 21))
def test_certificates_never_lie(first):
    """The gap of a run that was cut short bounds its distance from the best optimum known; CVXPY's is the same."""
    verdicts = {seed: random_outputs.judge(seed) for seed in range(first, first + 21)}
    bad = {seed: verdict for seed, verdict in verdicts.items() if verdict.kind not in ("solved", "no minimiser")}
    assert not [verdict for verdict in bad.values() if verdict.kind != "not solved"], bad
    assert len(bad) <= 1, bad
