"""The sweeps of output-sweeps: the diagonal bound, the step of a block, and solutions that need no Gram matrix."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from skadmm import Problem, solve
from skadmm.kernels.rows import CSRRows, DenseRows
from skadmm.operators import output_groups
from skadmm.regularizers import L1, Box, GroupL2, GroupLInf, NonNegative, Stacked
from skadmm.solvers.second_order.column_sweeps import SweepModel, SweepPenalty, column_sweeps, diagonal_bounds

N, D, K = 40, 7, 3
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
LABELS = RNG.integers(0, K, N)
Y = X @ RNG.standard_normal((D, K)) + RNG.standard_normal((N, K))


def columns_of(X, sparse):
    matrix = sp.csc_array(X)
    return CSRRows(matrix.data, matrix.indices, matrix.indptr, N) if sparse else DenseRows(np.ascontiguousarray(X.T))


def as_model(h, coupled, sparse, members):
    """A model over blocks of features, each with all its outputs."""
    feature = np.concatenate(members)
    first = np.arange(feature.size + 1) * K
    runs = np.concatenate([[0], np.cumsum([len(block) for block in members])])
    output = np.tile(np.arange(K), feature.size)
    inverse = 1.0 / h.sum(axis=1) if coupled else np.empty(0)
    return SweepModel(columns_of(X, sparse), first, feature, output, runs, h, inverse, 1.0 / (N * K))


def hessian(h, coupled, feature):
    """That of the model over pairs, feature by feature."""
    out = np.zeros((len(feature) * K, len(feature) * K))
    for a, weights in zip(X[:, feature], h, strict=True):
        part = np.diag(weights) - (np.outer(weights, weights) / weights.sum() if coupled else 0.0)
        out += np.kron(np.outer(a, a), part)
    return out / (N * K)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_diagonal_is_above_the_hessian_of_every_block(coupled, sparse):
    for concentration in (0.1, 1.0, 20.0):
        h = RNG.dirichlet(np.full(K, concentration), N)
        members = [[0], [1, 2], [3, 4, 5]]
        model, out = as_model(h, coupled, sparse, members), np.empty(18)
        diagonal_bounds(model, np.zeros(18), 0.0, out)
        for b, features in enumerate(members):
            part = out[model.first[model.runs[b]] : model.first[model.runs[b + 1]]]
            exact = hessian(h, coupled, features)
            assert np.linalg.eigvalsh(np.diag(part) - exact).min() >= -1e-12
            assert part.max() <= 2.0 * len(features) * np.diag(hessian(h, False, features)).max() + 1e-12


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_sweeps_minimise_the_model_with_the_penalty(coupled, sparse):
    """Against a general minimiser, where no coefficient is zero, and by the conditions of optimality where one is."""
    h = RNG.dirichlet(np.full(K, 1.0), N)
    members = [[j] for j in range(D)]
    model, feature = as_model(h, coupled, sparse, members), list(range(D))
    start, slopes = RNG.standard_normal(D * K), RNG.standard_normal((N, K))
    ridge = np.full(D * K, 0.03)
    G = hessian(h, coupled, feature) + np.diag(ridge)
    q = np.concatenate([X[:, j] @ slopes for j in feature]) / (N * K) + ridge * start

    def objective(x, strength):
        move = x - start
        return q @ move + 0.5 * move @ G @ move + strength * np.linalg.norm(x.reshape(D, K), axis=1).sum()

    for strength in (1e-3, 3e-2):
        none = np.zeros(D * K)
        penalty = SweepPenalty(
            np.arange(D + 1) * K, none, ridge, none - np.inf, none + np.inf, np.ones(D, np.int64), np.full(D, strength)
        )
        bounds, x, kept = np.empty(D * K), start.copy(), slopes.copy()
        diagonal_bounds(model, ridge, 0.0, bounds)
        column_sweeps(model, penalty, bounds, x, kept, 1e-13, 20000, 5, np.empty((3, D * K)))
        at = scipy.optimize.minimize(objective, x + 1e-3, args=(strength,), method="Powell",
                                     options={"xtol": 1e-9, "ftol": 1e-15, "maxiter": 20000})  # fmt: skip
        assert objective(x, strength) <= at.fun + 1e-9
        moved = (X @ (x - start).reshape(D, K)) * h
        shared = moved.sum(axis=1, keepdims=True) * h / h.sum(axis=1, keepdims=True) if coupled else 0.0
        np.testing.assert_allclose(kept, slopes + moved - shared, atol=1e-10)


def penalties():
    rows, whole = output_groups(D, K), np.tile(np.repeat([0, 1], [3, D - 3]), K)
    return {
        "l1": {"psi": L1(0.01)},
        "rows": {"psi": GroupL2(0.02, groups=rows)},
        "largest of rows": {"psi": GroupLInf(0.02, groups=rows)},
        "groups of rows": {"psi": GroupL2(0.02, groups=whole)},
        "rows and l1": {"psi": GroupL2(0.02, groups=rows), "omega": L1(0.005)},
        "rows, not negative": {"psi": GroupL2(0.02, groups=rows), "omega": NonNegative()},
        "bounds": {
            "psi": Stacked(L1(0.01), Box(-0.2, 0.3), D * K),
            "A": sp.csr_array(sp.vstack([sp.eye_array(D), sp.eye_array(D)])),
        },
    }


@pytest.mark.parametrize("penalty", penalties())
@pytest.mark.parametrize("loss", ["squared", "multinomial", "huber"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_solutions_are_those_of_block_descent_with_a_gram_matrix(penalty, loss, kind):
    target = LABELS if loss == "multinomial" else Y
    problem = Problem(kind(X), target, loss, **penalties()[penalty])
    ours, peer = (solve(problem, name, tol=1e-9) for name in ("output-sweeps", "output-descent"))
    assert ours.status.name == peer.status.name == "SOLVED"
    assert ours.gap <= 1e-9
    assert abs(ours.objective - peer.objective) <= 2e-9 * abs(peer.objective)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_features_without_a_penalty_take_part_in_the_sweeps(kind):
    ones = np.column_stack([X, np.ones(N)])
    psi = GroupL2(0.02, groups=output_groups(D, K))
    problem = Problem(kind(ones), LABELS, "multinomial", psi=psi, A=np.eye(D + 1)[:D])
    ours, peer = (solve(problem, name, tol=1e-9) for name in ("output-sweeps", "output-descent"))
    assert ours.gap <= 1e-9
    assert abs(ours.objective - peer.objective) <= 2e-9 * abs(peer.objective)


def test_many_coefficients_in_groups_of_sparse_rows_take_sweeps_and_other_problems_a_gram_matrix():
    d = 2000
    wide = sp.random_array((60, d), density=0.05, format="csr", rng=np.random.default_rng(0))
    labels = np.arange(60) % K
    rows = GroupL2(0.004, groups=output_groups(d, K))
    solved = solve(Problem(wide, labels, "multinomial", psi=rows), tol=1e-7)
    assert solved.solver == "output-sweeps"
    assert solved.gap <= 1e-7
    dense = solve(Problem(wide.toarray(), labels, "multinomial", psi=rows), tol=1e-7)
    assert dense.solver == "output-descent"
    assert abs(solved.objective - dense.objective) <= 2e-7 * dense.objective
    assert solve(Problem(wide, labels, "multinomial", psi=L1(0.004))).solver == "output-descent"
    narrow = GroupL2(0.02, groups=output_groups(D, K))
    assert solve(Problem(sp.csr_array(X), LABELS, "multinomial", psi=narrow)).solver == "output-descent"
