"""What the methods become in special cases, and what must not matter to them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from twins import CLASSES, RHO, WEIGHT, X0, A, C, D, N, X, compiled_iterates, engine_of, order_of, pair

from skadmm import ALGORITHMS, Problem, solve
from skadmm.regularizers import L1
from skadmm.run import step_size
from skadmm.run.sampling import Cyclic, Permutation, Replay, Uniform, as_sampler
from skadmm.solvers import Setup, dual_update

STEP, STEPS = 0.7, 200


def slope(x):
    """∇ℓᵢ(x) of the logistic loss, one row a sample."""
    return (-CLASSES / (1 + np.exp(CLASSES * (X @ x))))[:, None] * X


def without_psi(method, batch_size=1, order=None):
    problem = Problem(X, CLASSES)
    engine = ALGORITHMS[method].start(
        Setup(problem, RHO, STEP, batch_size, "none"), dual_update.start(problem, X0, None, None)
    )
    return compiled_iterates(engine, order_of(batch_size) if order is None else order)


# -- without ψ ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sa-admm", "sa-iu-admm"])
def test_stochastic_average_is_miso(method):
    points, gradients, x, path = np.tile(X0, (N, 1)), slope(X0), X0, []
    for i in order_of(1):
        points[i], gradients[i] = x, slope(x)[i]
        x = points.mean(0) - STEP * gradients.mean(0)
        path.append(x)
    assert np.abs(without_psi(method) - path).max() <= 1e-10


@pytest.mark.parametrize("method", ["stoc-admm", "opg-admm"])
def test_stochastic_gradient_descent(method):
    x, path = X0, []
    for t, i in enumerate(order_of(1), start=1):
        x = x - STEP / np.sqrt(t) * slope(x)[i]
        path.append(x)
    assert np.abs(without_psi(method) - path).max() <= 1e-10


def test_regularised_dual_averaging():
    x, total, path = X0, np.zeros(D), []
    for t, i in enumerate(order_of(1), start=1):
        total = total + slope(x)[i]
        x = -STEP * np.sqrt(t) * total / t
        path.append(x)
    assert np.abs(without_psi("rda-admm") - path).max() <= 1e-10


@pytest.mark.parametrize("method", ["batch-admm", "batch-iu-admm"])
def test_gradient_descent(method):
    x, path = X0, []
    for _ in range(STEPS):
        x = x - STEP * slope(x).mean(0)
        path.append(x)
    assert np.abs(without_psi(method) - path).max() <= 1e-10


# -- one block ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "all_"), [("sa-admm", "batch-admm"), ("sa-iu-admm", "batch-iu-admm")])
def test_one_block_of_all_samples_makes_stochastic_average_batch(one, all_):
    order = np.zeros(STEPS, np.int64)
    first, second = (compiled_iterates(engine_of(pair(step=STEP), name, N), order) for name in (one, all_))
    assert np.abs(first - second).max() <= 1e-10


# -- what must not matter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sa-iu-admm", "rda-admm", "stoc-admm"])
def test_cutting_a_run_into_calls_changes_nothing(method):
    order = order_of(7)
    one_by_one = compiled_iterates(engine_of(pair(), method, 7), order)
    for cuts in ([], [1], [3, 50, 199]):
        engine = engine_of(pair(), method, 7)
        for part in np.split(order, cuts):
            engine.advance(part)
        point = engine.point
        assert np.array_equal(np.concatenate([point.x, point.y, point.dual]), one_by_one[-1])
        assert point.clock[0] == order.size


def int64_csr(array):
    matrix = scipy.sparse.csr_array(array)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


STORED = {
    "F-ordered": (np.asfortranarray, 1e-12),
    "strided": (lambda a: np.repeat(a, 2, axis=1)[:, ::2], 1e-12),
    "read-only": (lambda a: np.frombuffer(a.tobytes()).reshape(a.shape), 1e-12),
    "float32": (lambda a: a.astype(np.float32), 1e-4),
    "csc": (scipy.sparse.csc_array, 1e-12),
    "coo": (scipy.sparse.coo_array, 1e-12),
    "csr matrix": (scipy.sparse.csr_matrix, 1e-12),
    "64-bit indices": (int64_csr, 1e-12),
    "frame": (lambda a: pd.DataFrame(a, columns=list("abcde")), 1e-12),
    "list": (lambda a: a.tolist(), 1e-12),
}


@pytest.fixture(scope="module")
def dense_end():
    return end_of(X)


def end_of(table):
    problem = Problem(table, CLASSES, psi=L1(0.03), A=A, c=C, sample_weight=WEIGHT)
    engine = ALGORITHMS["opg-admm"].start(
        Setup(problem, RHO, 0.3, 7, "none"), dual_update.start(problem, X0, None, None)
    )
    engine.advance(order_of(7))
    return np.concatenate([engine.point.x, engine.point.y, engine.point.dual])


@pytest.mark.parametrize("stored", STORED)
def test_how_rows_are_stored_does_not_matter(stored, dense_end):
    convert, tolerance = STORED[stored]
    assert np.abs(end_of(convert(X)) - dense_end).max() <= tolerance


# -- the order of blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Permutation, Cyclic])
def test_each_block_once_a_pass(kind):
    passes = kind(13, 5).take(0, 13 * 4).reshape(4, 13)
    assert all(np.array_equal(np.sort(one), np.arange(13)) for one in passes)


def test_permutations_differ_from_pass_to_pass_and_seed_to_seed():
    first, second = Permutation(50, 5).take(0, 100).reshape(2, 50)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, Permutation(50, 6).take(0, 50))
    assert np.array_equal(Cyclic(5, 0).take(3, 4), [3, 4, 0, 1])


@pytest.mark.parametrize("kind", [Uniform, Permutation, Cyclic])
def test_a_stream_can_be_taken_up_anywhere(kind):
    whole = kind(13, 5).take(0, 100)
    assert np.array_equal(kind(13, 5).take(37, 63), whole[37:])
    assert np.array_equal(np.concatenate([kind(13, 5).take(0, 37), kind(13, 5).take(37, 63)]), whole)
    assert kind(13, 5).take(7, 0).size == 0


def test_uniform_draws_every_block_about_equally():
    counts = np.bincount(Uniform(10, 0).take(0, 20_000), minlength=10)
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


def test_a_given_order_is_replayed_and_repeats():
    assert np.array_equal(as_sampler([3, 1, 2], 4, 0).take(2, 5), [2, 3, 1, 2, 3])
    assert isinstance(as_sampler(np.array([0], np.uint8), 4, 0), Replay)


def test_nothing_is_drawn_for_steps_that_read_all(monkeypatch):
    """A generator for each step would cost more than a step on few samples; a number for each sample, memory."""
    problem = Problem(np.eye(3), np.ones(3), loss="squared", psi=L1(0.1))
    with pytest.raises(ValueError, match="sampler"):
        solve(problem, "batch-admm", step=1.0, sampler="no such")
    monkeypatch.setattr(Uniform, "draw", lambda sampler, rng: pytest.fail("indices were drawn"))
    assert solve(problem, "batch-admm", step=1.0, passes=5).passes >= 5


# -- the choice of a step ----------------------------------------------------------------------------------------


def test_the_selection_is_seeded_and_its_cost_is_counted():
    problem = Problem(X, CLASSES, psi=L1(0.03), A=A, c=C, sample_weight=WEIGHT)
    first, again, other = (solve(problem, "opg-admm", passes=2, random_state=seed) for seed in (3, 3, 4))
    assert first.tuning.step == again.tuning.step == first.settings["step"]
    assert np.array_equal(first.tuning.objectives, again.tuning.objectives)
    assert not np.array_equal(first.tuning.objectives, other.tuning.objectives)
    grid, objectives = first.tuning.candidates, first.tuning.objectives
    assert first.tuning.step == grid[np.argmin(objectives)]
    assert np.log10(grid[-1] / grid[0]) >= 4  # the theory's L may be a thousand times too large
    # Five runs of five passes and one evaluation, for every candidate that stayed finite.
    assert np.isfinite(objectives).all()
    assert first.tuning.samples_touched == grid.size * step_size.RUNS * (step_size.PASSES + 1) * N
    assert first.passes == pytest.approx(2 + first.tuning.samples_touched / N)
    assert first.records[0]["passes"] == pytest.approx(first.tuning.samples_touched / N)
    assert first.seconds >= first.tuning.seconds > 0


def test_the_selection_uses_a_subset_of_samples_that_count():
    weight = np.zeros(3 * step_size.SUBSET)
    weight[:7] = 1.0
    table = np.random.default_rng(0).standard_normal((weight.size, D))
    problem = Problem(table, table[:, 0] > 0, psi=L1(0.03), A=A, sample_weight=weight)
    choice = solve(problem, "opg-admm", passes=1).tuning
    assert np.isfinite(choice.objectives).any()
    assert choice.samples_touched <= choice.candidates.size * step_size.RUNS * (step_size.PASSES + 1) * 7


def test_the_theorys_step():
    problem = Problem(X, CLASSES, psi=L1(0.03), A=A)
    assert solve(problem, "sa-iu-admm", step="theory", passes=1).settings["step"] == pytest.approx(1 / problem.L)
