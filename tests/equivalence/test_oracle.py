"""An oracle that reads every row once in a step: it answers what a plain one does, and files are read no more often."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse

from skadmm import Problem, Status, solve
from skadmm.backends import FileBlocks
from skadmm.backends.convert import write_blocks
from skadmm.backends.slicing import stack_rows, take_rows
from skadmm.kernels.rows import as_matrix, stacked
from skadmm.operators import chain, stack
from skadmm.oracle import LARGE_SHIFT, LARGE_SHIFT_SHARE, batches, oracle_for
from skadmm.oracle.batches import GrowingBatch
from skadmm.oracle.local import LocalOracle, RowReader
from skadmm.oracle.single_pass import FileOracle, SinglePassOracle
from skadmm.oracle.speculative import SpeculativeOracle
from skadmm.regularizers import L1
from skadmm.solvers.second_order import l1_rows, newton_admm
from skadmm.solvers.second_order.newton_admm import NewtonADMM, NewtonADMMConfig

N, D = 900, 6
A = stack(chain(D), "identity")
STORAGES = {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "sparse": scipy.sparse.csr_array}


RUNS = {"large_table": 1, "run_entries": 7 * D}
"""As if these tables were large, and a run of rows short."""


@pytest.fixture
def runs(monkeypatch):
    """The same for solvers that selection starts."""
    monkeypatch.setattr(NewtonADMM, "Config", functools.partial(NewtonADMMConfig, **RUNS))


def table(n=N, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.8)
    target = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, target, rng.uniform(0.5, 2.0, n)


def problem_of(kind="rows", **options):
    X, target, weight = table()
    return Problem(STORAGES[kind](X), target, sample_weight=weight, psi=L1(1e-3), A=A, **options)


# -- batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 64, 100, 1000, 12345])
def test_batches_of_runs_cover_every_row_once_and_double(n):
    planned = batches.plan(n, D, n * D, batches.BatchConfig(**RUNS))
    plan = [batch.rows(n) for batch in planned]
    assert planned[0].width == 7
    assert np.array_equal(np.sort(np.concatenate(plan)), np.arange(n))
    assert [rows.size for rows in plan] == [batch.size(n) for batch in planned]
    sizes = np.cumsum([rows.size for rows in plan])
    assert all(later <= 2 * earlier + 7 for earlier, later in itertools.pairwise(sizes))


@pytest.mark.parametrize("width", [1, 7, 50])
def test_a_block_knows_its_own_rows_of_a_batch(width):
    n, bounds = 400, [0, 3, 120, 121, 260, 400]
    for batch in (GrowingBatch(0, 8, width), GrowingBatch(4, 8, width), GrowingBatch(1, 2, width)):
        found = [
            first + batches.rows_of(batch.slices(first, last - first)) for first, last in itertools.pairwise(bounds)
        ]
        assert np.array_equal(np.concatenate(found), batch.rows(n))
        assert np.array_equal(batch.rows(n), np.flatnonzero(np.arange(n) // width % batch.stride == batch.start))


def test_only_large_tables_have_runs():
    run_entries = batches.BatchConfig().run_entries
    assert batches.plan(10_000, 100, 1_000_000)[0].width == 1
    large = batches.plan(2_000_000, 100, 200_000_000)
    assert large[0].width == run_entries // 100
    assert large[0].size(2_000_000) >= 20 * large[0].width  # spread over the data
    assert batches.plan(20_000_000, 2_000, 200_000_000)[0].width == run_entries // 10  # of few entries a row


# -- the same answers --------------------------------------------------------------------------------------------


def walk(oracle, kept, plan, lengths):
    """All requests of a run, the steps taken by these lengths; all results, with the numbers kept of each sample."""
    rng = np.random.default_rng(0)
    x, answers = np.zeros(D), []
    for batch, length in zip([*plan, None, None, None], lengths, strict=True):
        placed = batch is None and kept.z.any() and answers[-1][0] == "evaluate"
        step = rng.standard_normal(D)
        if batch is None:
            oracle.begin(None, None if placed else x, 0.01)
            found = oracle.along(step, 1.0) if placed else oracle.ends(step)[1]
            found = oracle.losses(length) if length != 1.0 else found
            answers += [("evaluate", found), *oracle.settle(length), oracle.renew(0.01, False)[0]]
            shifts = oracle.large_shifts
            threshold = shifts.threshold()
            if threshold < np.inf:
                answers += [shifts.begin(threshold), *shifts.along(0.1 * step), *shifts.move(1.0)]
            shifts.end()
        else:
            oracle.begin(batch, x, True)
            found = oracle.ends(step)[1]
            found = oracle.losses(length) if length != 1.0 else found
            answers += [("batch", found), *oracle.join(length, True)]
        x = x + length * step
        answers += [("known", kept.z), kept.slope, kept.used_curvatures, kept.shift]
    return answers


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("shortened", [(), (1, 3, 5), (0, 2, 4)])
def test_all_at_once_is_one_after_the_other(kind, width, shortened):
    problem = problem_of(kind)
    plan = [GrowingBatch(0, 4, width), GrowingBatch(2, 4, width), GrowingBatch(1, 2, width)]
    lengths = [0.25 if k in shortened else 1.0 for k in range(6)]
    plain = LocalOracle(problem.samples())
    slow = SinglePassOracle(problem.samples(), 0, 300, entries_per_chunk=60)
    plain = walk(plain, plain.scalars, plan, lengths)
    eager = walk(SpeculativeOracle(slow, N), slow.scalars, plan, lengths)
    assert len(plain) == len(eager)
    for one, other in zip(plain, eager, strict=True):
        one, other = (found[1] if isinstance(found, tuple) else found for found in (one, other))
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-11)


def test_a_block_without_rows_of_a_batch():
    """A short block may lie between two runs; on a cluster, its sums are added to those of others."""
    problem = problem_of()
    for length in (1.0, 0.5):
        oracle = SpeculativeOracle(SinglePassOracle(problem.samples(), 3 * N, 300), 100 * N)
        oracle.begin(GrowingBatch(0, 8, N), np.zeros(D), new=True)
        assert oracle.ends(np.ones(D)) == (0.0, 0.0)
        if length < 1.0:
            assert oracle.losses(length) == 0.0
        for part in oracle.join(length, True):
            np.testing.assert_array_equal(part, 0.0)


def test_no_hessian_is_formed_where_none_is_wanted():
    oracle = SinglePassOracle(problem_of().samples())
    for stale, formed in ((None, False), (np.inf, False), (0.0, True)):
        oracle.begin(None, np.zeros(D))
        assert isinstance(oracle.evaluate_ahead(np.ones(D), True, stale).H, np.ndarray) == formed


@pytest.mark.parametrize("stride", [1, 4, 32])
def test_chunks_share_out_the_work_and_stay_small(stride):
    """Four parts at least where rows are many; no more of a file between two of them than may be in memory."""
    n, rows_per_chunk = 90_000, 8_000
    problem = Problem(np.ones((n, 1)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    oracle = SinglePassOracle(problem.samples(), 0, rows_per_chunk)
    oracle.begin(GrowingBatch(0, stride), np.zeros(1))
    slices = oracle.chunk_slices()
    few = max(len(range(at.start, at.stop, at.step)) for at in slices)
    groups = list(oracle.groups(slices, few))
    spans = [slices[group[-1]].stop - slices[group[0]].start for group in groups]
    assert max(spans) <= max(rows_per_chunk, 256 * stride)
    assert len(groups[0]) >= (4 if stride < 8 else 1)
    assert np.array_equal(batches.rows_of(slices), np.arange(0, n, stride))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_copies_of_columns_stay_columns(count):
    """Or the kernels for rows would be compiled in the middle of a run."""
    oracle = LocalOracle(problem_of("columns").samples())
    copies = oracle.reader.copied(np.arange(count)).values
    assert copies.flags.f_contiguous
    assert not copies.flags.c_contiguous
    np.testing.assert_array_equal(copies[:count], table()[0][:count])


@pytest.mark.parametrize("kind", ["rows", "sparse"])
def test_rows_are_copied_and_stacked(kind):
    rows = problem_of(kind).rows
    few = np.array([3, 4, 4, 800])
    taken = take_rows(rows, few)
    both = stack_rows([taken, take_rows(rows, np.array([1]))])
    dense = table()[0]
    for some, expected in ((taken, dense[few]), (both, dense[[*few, 1]])):
        if kind == "sparse":
            assert some.indptr.dtype == rows.indptr.dtype
            assert some.indices.dtype == rows.indices.dtype
            some = scipy.sparse.csr_array((some.data, some.indices, some.indptr), shape=some.shape).toarray()
        else:
            some = some.values
        np.testing.assert_array_equal(some, expected)


@pytest.mark.parametrize("second", [[4, 5, 8, 9], [3, 8]], ids=["whole samples", "parts of samples"])
@pytest.mark.parametrize("first", [[0, 1, 6, 7], [1, 2]], ids=["whole samples", "parts of samples"])
@pytest.mark.parametrize("kind", ["rows", "sparse"])
def test_rows_of_several_outputs_are_copied_and_stacked(kind, first, second):
    rows = stacked(problem_of(kind).rows, 2)
    both = stack_rows([take_rows(rows, np.array(first)), take_rows(rows, np.array(second))])
    expected = as_matrix(rows, 0, 10)[[*first, *second]].toarray()
    np.testing.assert_array_equal(scipy.sparse.csr_array(as_matrix(both)).toarray(), expected)


# -- files -------------------------------------------------------------------------------------------------------


def folder_of(path, kind="rows"):
    X, target, weight = table()
    make = STORAGES[kind]
    cuts = [0, 100, 450, N]
    write_blocks(path, [(make(X[a:b]), target[a:b], weight[a:b]) for a, b in itertools.pairwise(cuts)])
    return path


def file_oracle(folder, rows_per_chunk=300, **options):
    return FileOracle(Problem(folder, psi=L1(1e-3), A=A).backend, rows_per_chunk, **options)


def chunks_of_sixty(backend, checkpoint):
    """Files are read in very small chunks."""
    if not backend.slow_reads:
        return oracle_for(backend, checkpoint)
    return SpeculativeOracle(FileOracle(backend, entries_per_chunk=60), backend.n)


@pytest.mark.parametrize("kind", ["rows", "sparse"])
def test_files_are_as_memory_in_runs(kind, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(newton_admm, "oracle_for", chunks_of_sixty)
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)
    seen = []
    for problem in (problem_of(kind), Problem(folder_of(tmp_path / "f", kind), psi=L1(1e-3), A=A)):
        points = []
        result = solve(
            problem, "san-admm", tol=1e-9, passes=30, record_every=1e-9,
            callback=lambda s, points=points: points.append(np.concatenate([s.x, s.y, s.dual])),
        )  # fmt: skip
        assert result.status is Status.SOLVED
        seen.append(np.array(points))
    np.testing.assert_allclose(seen[0], seen[1], rtol=0, atol=1e-11)


def test_a_step_reads_a_file_once(tmp_path, monkeypatch):
    """Where steps are taken whole, nothing is asked one after the other; nor are rows that moved far read again."""
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)
    problem = Problem(folder_of(tmp_path / "f"), psi=L1(1e-3), A=A)
    read = []
    usual = SinglePassOracle._summed
    monkeypatch.setattr(
        SinglePassOracle, "_summed", lambda self, evaluation: read.append(self._batch) or usual(self, evaluation)
    )
    for name in ("join", "settle", "renew"):
        monkeypatch.setattr(FileOracle, name, lambda *_, name=name: pytest.fail(f"{name}: rows are read again"))
    for name in ("read", "sum_rows", "sum_outer", "sum_expansions"):
        monkeypatch.setattr(RowReader, name, lambda *_, name=name: pytest.fail(f"{name}: rows are read again"))
    # Samples with curvature that take steps of their own are read again, and are left out here.
    result = solve(problem, "newton-admm", passes=4.5, record_every=0, options={"curved_share": 0.0})
    assert result.passes == pytest.approx(sum(N if batch is None else batch.size(N) for batch in read) / N, abs=0.2)
    assert read.count(None) >= 3


def test_rows_that_moved_far_are_copied_on_the_way(tmp_path):
    oracle = file_oracle(folder_of(tmp_path / "f"))
    plain = LocalOracle(problem_of().samples())
    far = np.flatnonzero(np.abs(table()[0][:, 0]) > 2.4)
    assert 0 < far.size <= LARGE_SHIFT_SHARE * N
    step = np.zeros(D)
    step[0] = LARGE_SHIFT / 2.4
    for one in (oracle, plain):
        one.begin(None, np.zeros(D))
        one.along(np.zeros(D), 0.0)
        one.settle(0.0)
        one.begin(None, None)
    assert oracle.evaluate_ahead(step, False, None).large_shifts == far.size
    oracle.evaluation_taken()
    plain.along(step, 1.0)
    plain.settle(1.0)
    assert np.array_equal(oracle.reader.kept.numbers, far)
    assert oracle.large_shifts.begin(LARGE_SHIFT) == plain.large_shifts.begin(LARGE_SHIFT) == far.size
    copied = oracle.large_shifts.copies.samples.rows
    assert copied is oracle.reader.kept.rows
    np.testing.assert_array_equal(copied.values, table()[0][far])
    np.testing.assert_allclose(oracle.large_shifts.along(step), plain.large_shifts.along(step))
    # More of them than are kept: they are read once again.
    oracle.begin(None, None)
    assert oracle.evaluate_ahead(10 * step, False, None).large_shifts > LARGE_SHIFT_SHARE * N
    oracle.evaluation_taken()
    assert oracle.reader.kept is None
    count = oracle.large_shifts.begin(oracle.large_shifts.threshold())
    assert 0 < count <= LARGE_SHIFT_SHARE * N
    copies = oracle.large_shifts.copies
    np.testing.assert_array_equal(copies.samples.rows.values, table()[0][copies.numbers])


def test_many_copies_are_made_a_few_rows_at_a_time(tmp_path):
    calls = []
    oracle = file_oracle(folder_of(tmp_path / "f"), rows_per_chunk=256, between=lambda: calls.append(1))
    every = np.arange(N)
    np.testing.assert_array_equal(oracle.reader.copied(every).values, table()[0])
    assert len(calls) == -(-N // 256)
    assert oracle.reader.copied(every[:0]).shape[1] == D


def test_a_file_releases_its_own_pages_between_chunks(tmp_path, monkeypatch):
    released = []
    monkeypatch.setattr(FileBlocks, "release", lambda self: released.append(self.folder))
    oracle = file_oracle(folder_of(tmp_path / "f"), rows_per_chunk=256)
    FileBlocks(folder_of(tmp_path / "other"))
    released.clear()
    oracle.begin(None, np.zeros(D))
    oracle.evaluate_ahead(np.ones(D), True, 0.0)
    assert len(released) >= N // 512
    assert set(released) == {tmp_path / "f"}


def test_checkpoints_of_files_with_large_shifts(tmp_path, monkeypatch):
    """At every step of a run that copies rows: to go on from there is to have gone on."""
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)
    X, target, weight = table()
    X[::113] *= 30.0
    write_blocks(tmp_path / "f", [(X, target, weight)])
    problem = Problem(tmp_path / "f", psi=L1(1e-3), A=A)
    run = {"method": "san-admm", "record_every": 0, "checkpoint_every": 0}
    copied = []
    usual = FileOracle._summed
    monkeypatch.setattr(
        FileOracle, "_summed", lambda self, evaluation: [usual(self, evaluation), copied.append(self.reader.kept)][0]
    )
    whole = solve(problem, passes=7, checkpoint=tmp_path / "whole", **run)
    assert any(copies is not None for copies in copied)
    for passes in np.arange(0.5, 7, 0.5):
        there = {"checkpoint": tmp_path / f"c{passes}"} | run
        solve(problem, passes=passes, **there)
        resumed = solve(problem, passes=7, **there)
        np.testing.assert_array_equal(resumed.x, whole.x)
        assert resumed.passes == whole.passes


def test_a_path_over_files_reads_once_too(tmp_path):
    problem = Problem(folder_of(tmp_path / "f"), psi=L1(1e-3), A=A)
    again = problem.replace(psi=L1(1e-4))
    assert isinstance(oracle_for(again.backend), SpeculativeOracle)
    assert isinstance(oracle_for(problem.subset(np.arange(10)).backend), LocalOracle)


def test_rows_are_fetched_where_the_next_ones_are_elsewhere(tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(FileBlocks, "fetch", lambda self, start, stop: fetched.append((start, stop)) or 0)
    oracle = file_oracle(folder_of(tmp_path / "f"))
    batch = GrowingBatch(1, 4, 20)
    oracle.begin(batch, np.zeros(D))
    oracle.batch_ahead(np.ones(D), True)
    assert [slice(*some, 1) for some in fetched] == batch.slices(0, N)
    oracle.begin(None, np.zeros(D))
    oracle.evaluate_ahead(np.ones(D), True, None)
    assert len(fetched) == len(batch.slices(0, N))
