"""The general paths equal the special ones: every kind of B and ψ in the split, every linear system in the x-step."""

import dataclasses

import numpy as np
import pytest
import reference
import scipy.sparse
from twins import PSI, RHO, X0, A, C, D, M, assert_twins, compiled_iterates, engine_of, order_of, pair

from skadmm.kernels.rows import from_sparse
from skadmm.operators import chain, stack
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import GroupL2, LInf
from skadmm.solvers import dual_update
from skadmm.solvers.first_order import x_solve

METHOD = "sa-iu-admm"
MINUS = from_sparse(scipy.sparse.csr_array(-np.eye(M)))


# -- the split ---------------------------------------------------------------------------------------------------


def uniform(problem, rho):
    return dual_update.UniformSplit(problem.constraint.A_rows, MINUS, C, problem.psi, rho, 1.0, np.empty(M))


def diagonal(problem, rho):
    return dual_update.DiagonalSplit(problem.constraint.A_rows, MINUS, C, problem.psi, rho, np.ones(M), np.empty(M))


def general(problem, rho):
    scratch = [np.empty(M) for _ in range(4)]
    return dual_update.GeneralSplit(problem.constraint.A_rows, MINUS, C, problem.psi, rho, 1.0, *scratch, 1e-13, 10_000)


@pytest.fixture(scope="module")
def separable():
    engine = engine_of(pair(), METHOD, 7)
    assert isinstance(engine._steps._split, dual_update.SeparableSplit)
    return compiled_iterates(engine, order_of(7))


@pytest.mark.parametrize("build", [uniform, diagonal, general])
def test_the_general_paths_at_minus_identity_equal_the_fast_path(build, separable, monkeypatch):
    monkeypatch.setattr(dual_update, "build", build)
    assert np.abs(compiled_iterates(engine_of(pair(), METHOD, 7), order_of(7)) - separable).max() <= 1e-10


@pytest.mark.parametrize(
    "B", [-1, -np.ones(M), -np.eye(M), -scipy.sparse.eye_array(M)], ids=["number", "vector", "matrix", "sparse"]
)
def test_minus_identity_in_any_form_equals_none(B, separable):
    both = pair()
    both = dataclasses.replace(both, problem=both.problem.replace(constraint=Constraint(A, B, C, D)))
    assert np.abs(compiled_iterates(engine_of(both, METHOD, 7), order_of(7)) - separable).max() <= 1e-10


def test_a_number_for_B():
    both = pair(B=2.5 * np.eye(M))
    both = dataclasses.replace(both, problem=both.problem.replace(constraint=Constraint(A, 2.5, C, D)))
    assert isinstance(engine_of(both, METHOD, 7)._steps._split, dual_update.UniformSplit)
    assert_twins(both, METHOD, 7)


def test_a_diagonal_B():
    B = np.diag(np.linspace(-2.0, -0.5, M) * (-1.0) ** np.arange(M))
    both = pair(B=B)
    assert isinstance(engine_of(both, METHOD, 7)._steps._split, dual_update.DiagonalSplit)
    assert_twins(both, METHOD, 7)


def test_a_tall_B_with_orthogonal_columns():
    both = pair(B=-np.kron(np.eye(3), np.array([[1.0], [2.0], [-1.0]])))
    assert both.problem.n_split == 3
    assert both.problem.y_of_x(X0) is None
    assert_twins(both, METHOD, 7)


@pytest.mark.parametrize("width", [M, 6], ids=["square", "tall"])
def test_a_mixing_B(width):
    B = -np.eye(M)[:, :width] + 0.3 * np.random.default_rng(1).standard_normal((M, width))
    both = pair(B=B)
    both.model.y_step = reference.lasso_y_step(B, RHO, PSI)
    assert isinstance(engine_of(both, METHOD, 7)._steps._split, dual_update.GeneralSplit)
    assert_twins(both, METHOD, 7)


GROUPS = [np.array([0, 3, 4]), np.array([1, 7]), np.array([2, 5, 6, 8])]


@pytest.mark.parametrize(
    ("psi", "prox"),
    [(GroupL2(0.1, GROUPS), reference.group_shrink(0.1, GROUPS)), (LInf(0.2), reference.clip_largest(0.2))],
    ids=["group-l2", "linf"],
)
def test_a_psi_that_sees_the_whole_vector(psi, prox):
    both = pair(psi=psi)
    both.model.psi_prox = prox
    assert isinstance(engine_of(both, METHOD, 7)._steps._split, dual_update.VectorSplit)
    assert_twins(both, METHOD, 7)


def test_a_whole_vector_psi_under_a_scaled_B():
    both = pair(psi=LInf(0.2), B=2.0 * np.eye(M))
    both.model.psi_prox = reference.clip_largest(0.2)
    assert isinstance(engine_of(both, METHOD, 7)._steps._split, dual_update.UniformSplit)
    assert_twins(both, METHOD, 7)


# -- the systems of the x-step -----------------------------------------------------------------------------------

WIDE = 40
CONSTRAINT = Constraint(stack(chain(WIDE), "identity"), None, None, WIDE)
DENSE = CONSTRAINT.A.toarray()


def matrix(shift):
    return RHO * DENSE.T @ DENSE + shift * np.eye(WIDE)


def check(system, kind, shift, tolerance=1e-12):
    assert type(system) is kind
    right = np.random.default_rng(3).standard_normal(WIDE)
    out = np.random.default_rng(4).standard_normal(WIDE)
    x_solve.solve(system, shift, right, out)
    assert np.abs(out - np.linalg.solve(matrix(shift), right)).max() <= tolerance


@pytest.mark.parametrize("shift", [1e-3, 1.0, 1e4])
def test_fixed_systems_invert_the_matrix(shift, monkeypatch):
    check(x_solve.fixed(CONSTRAINT, RHO, shift), x_solve.DenseInverse, shift)
    monkeypatch.setattr(x_solve, "DENSE_LIMIT", 0)
    check(x_solve.fixed(CONSTRAINT, RHO, shift), x_solve.SparseFactor, shift)
    monkeypatch.setattr(x_solve, "FILL_LIMIT", 0.0)
    check(x_solve.fixed(CONSTRAINT, RHO, shift), x_solve.ConjugateGradients, shift, 1e-10)


@pytest.mark.parametrize("shift", [1e-3, 1.0, 1e4])
def test_shifted_systems_invert_the_matrix(shift, monkeypatch):
    check(x_solve.shifted(CONSTRAINT, RHO), x_solve.Eigenbasis, shift)
    monkeypatch.setattr(x_solve, "DENSE_LIMIT", 0)
    check(x_solve.shifted(CONSTRAINT, RHO), x_solve.ConjugateGradients, shift, 1e-10)


def test_no_constraint_leaves_a_scaled_identity():
    for build in (lambda c: x_solve.fixed(c, RHO, 2.0), lambda c: x_solve.shifted(c, RHO)):
        system = build(Constraint(None, None, None, 3))
        out = np.empty(3)
        x_solve.solve(system, 2.0, np.array([2.0, 4.0, 6.0]), out)
        assert type(system) is x_solve.ScaledIdentity
        assert np.array_equal(out, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("method", "fill_limit", "kind"),
    [
        ("batch-admm", 1e9, x_solve.SparseFactor),
        ("batch-admm", 0.0, x_solve.ConjugateGradients),
        ("stoc-admm", 0.0, x_solve.ConjugateGradients),
    ],
)
def test_methods_run_the_same_on_sparse_systems(method, fill_limit, kind, monkeypatch):
    monkeypatch.setattr(x_solve, "DENSE_LIMIT", 0)
    monkeypatch.setattr(x_solve, "FILL_LIMIT", fill_limit)
    both = pair()
    assert type(engine_of(both, method, 7).rule.system) is kind
    assert_twins(both, method, 7)


def test_a_new_rho_means_a_new_system():
    assert x_solve.fixed(CONSTRAINT, 1.0, 1.0).inverse is not x_solve.fixed(CONSTRAINT, 2.0, 1.0).inverse
    check(x_solve.fixed(CONSTRAINT, RHO, 1.0), x_solve.DenseInverse, 1.0)
    check(x_solve.fixed(CONSTRAINT, RHO, 2.0), x_solve.DenseInverse, 2.0)
