"""Looks that read every row once in a step: they answer what plain looks do, and files are read no more often."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from skadmm import Problem, Status, solve
from skadmm.algorithms import _one_reading, _stages, newton
from skadmm.algorithms._ahead import Ahead
from skadmm.algorithms._looks import HARD_MOVE, HARD_SHARE, Looks
from skadmm.algorithms._one_reading import EagerLooks, FileLooks
from skadmm.algorithms._stages import Stage
from skadmm.blocks import FileBlocks
from skadmm.blocks.convert import write_blocks
from skadmm.blocks.cuts import stack_rows, take_rows
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

N, D = 900, 6
A = stack(chain(D), "identity")
HOMES = {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "sparse": scipy.sparse.csr_array}


@pytest.fixture
def runs(monkeypatch):
    """As if these tables were large, and a run of rows short."""
    monkeypatch.setattr(_stages, "LARGE", 1)
    monkeypatch.setattr(_stages, "RUN", 7 * D)


def table(n=N, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.8)
    target = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, target, rng.uniform(0.5, 2.0, n)


def problem_of(kind="rows", **options):
    X, target, weight = table()
    return Problem(HOMES[kind](X), target, sample_weight=weight, psi=L1(1e-3), A=A, **options)


# -- stages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 64, 100, 1000, 12345])
def test_stages_of_runs_cover_every_row_once_and_double(n, runs):
    stages = _stages.plan(n, D, n * D)
    plan = [stage.rows(n) for stage in stages]
    assert stages[0].width == 7
    assert np.array_equal(np.sort(np.concatenate(plan)), np.arange(n))
    assert [rows.size for rows in plan] == [stage.size(n) for stage in stages]
    sizes = np.cumsum([rows.size for rows in plan])
    assert all(later <= 2 * earlier + 7 for earlier, later in itertools.pairwise(sizes))


@pytest.mark.parametrize("width", [1, 7, 50])
def test_a_block_knows_its_own_rows_of_a_stage(width):
    n, bounds = 400, [0, 3, 120, 121, 260, 400]
    for stage in (Stage(0, 8, width), Stage(4, 8, width), Stage(1, 2, width)):
        found = [
            first + _stages.rows_of(stage.slices(first, last - first)) for first, last in itertools.pairwise(bounds)
        ]
        assert np.array_equal(np.concatenate(found), stage.rows(n))
        assert np.array_equal(stage.rows(n), np.flatnonzero(np.arange(n) // width % stage.stride == stage.start))


def test_only_large_tables_have_runs():
    assert _stages.plan(10_000, 100, 1_000_000)[0].width == 1
    large = _stages.plan(2_000_000, 100, 200_000_000)
    assert large[0].width == _stages.RUN // 100
    assert large[0].size(2_000_000) >= 20 * large[0].width  # spread over the data
    assert _stages.plan(20_000_000, 2_000, 200_000_000)[0].width == _stages.RUN // 10  # of few entries a row


# -- the same answers --------------------------------------------------------------------------------------------


def walk(looks, plan, lengths):
    """All questions of a run, the steps taken by these lengths; all answers."""
    rng = np.random.default_rng(0)
    x, answers = np.zeros(D), []
    for stage, length in zip([*plan, None, None, None], lengths, strict=True):
        placed = stage is None and looks.z.any() and answers[-1][0] == "look"
        step = rng.standard_normal(D)
        if stage is None:
            looks.begin(None, None if placed else x, 0.01)
            found = looks.along(step, 1.0) if placed else looks.ends(step)[1]
            found = looks.losses(length) if length != 1.0 else found
            answers += [("look", found), *looks.settle(length), looks.renew(0.01, False)[0]]
            threshold = looks.hard_threshold()
            if threshold < np.inf:
                answers += [looks.hard_begin(threshold), *looks.hard_along(0.1 * step), *looks.hard_go(1.0)]
            looks.hard_end()
        else:
            looks.begin(stage, x, True)
            found = looks.ends(step)[1]
            found = looks.losses(length) if length != 1.0 else found
            answers += [("stage", found), *looks.join(length, True)]
        x = x + length * step
        answers += [("known", looks.z), looks.slope, looks.held, looks.moved]
    return answers


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("kind", HOMES)
@pytest.mark.parametrize("shortened", [(), (1, 3, 5), (0, 2, 4)])
def test_all_at_once_is_one_after_the_other(kind, width, shortened, monkeypatch):
    monkeypatch.setattr(_one_reading, "PIECE", 60)
    problem = problem_of(kind)
    plan = [Stage(0, 4, width), Stage(2, 4, width), Stage(1, 2, width)]
    lengths = [0.25 if k in shortened else 1.0 for k in range(6)]
    plain = walk(Looks(problem.samples()), plan, lengths)
    eager = walk(Ahead(EagerLooks(problem.samples(), 0, 300), N), plan, lengths)
    assert len(plain) == len(eager)
    for one, other in zip(plain, eager, strict=True):
        one, other = (found[1] if isinstance(found, tuple) else found for found in (one, other))
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-11)


def test_a_home_without_rows_of_a_stage():
    """A short block may lie between two runs; on a cluster, its sums are added to those of others."""
    problem = problem_of()
    for length in (1.0, 0.5):
        looks = Ahead(EagerLooks(problem.samples(), 3 * N, 300), 100 * N)
        looks.begin(Stage(0, 8, N), np.zeros(D), new=True)
        assert looks.ends(np.ones(D)) == (0.0, 0.0)
        if length < 1.0:
            assert looks.losses(length) == 0.0
        for part in looks.join(length, True):
            np.testing.assert_array_equal(part, 0.0)


def test_no_hessian_is_formed_where_none_is_wanted():
    looks = EagerLooks(problem_of().samples())
    for stale, formed in ((None, False), (np.inf, False), (0.0, True)):
        looks.begin(None, np.zeros(D))
        assert isinstance(looks.look_ahead(np.ones(D), True, stale)[-2], np.ndarray) == formed


@pytest.mark.parametrize("stride", [1, 4, 32])
def test_pieces_share_out_the_work_and_stay_small(stride):
    """Four parts at least where rows are many; no more of a file between two of them than may be in memory."""
    n, at_once = 90_000, 8_000
    problem = Problem(np.ones((n, 1)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    looks = EagerLooks(problem.samples(), 0, at_once)
    looks.begin(Stage(0, stride), np.zeros(1))
    slices = looks._slices()
    few = max(len(range(at.start, at.stop, at.step)) for at in slices)
    groups = list(looks._groups(slices, few))
    spans = [slices[group[-1]].stop - slices[group[0]].start for group in groups]
    assert max(spans) <= max(at_once, 256 * stride)
    assert len(groups[0]) >= (4 if stride < 8 else 1)
    assert np.array_equal(_stages.rows_of(slices), np.arange(0, n, stride))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_copies_of_columns_stay_columns(count):
    """Or the kernels for rows would be compiled in the middle of a run."""
    looks = Looks(problem_of("columns").samples())
    copies = looks._copied(np.arange(count)).values
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


# -- files -------------------------------------------------------------------------------------------------------


def folder_of(path, kind="rows"):
    X, target, weight = table()
    make = HOMES[kind]
    cuts = [0, 100, 450, N]
    write_blocks(path, [(make(X[a:b]), target[a:b], weight[a:b]) for a, b in itertools.pairwise(cuts)])
    return path


def file_looks(folder, at_once=300):
    problem = Problem(folder, psi=L1(1e-3), A=A)
    return FileLooks(problem.samples(), problem.files, at_once)


@pytest.mark.parametrize("kind", ["rows", "sparse"])
def test_files_are_as_memory_in_runs(kind, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(_one_reading, "PIECE", 60)
    monkeypatch.setattr(newton._contracted, "applies", lambda problem: False)
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
    monkeypatch.setattr(newton._contracted, "applies", lambda problem: False)
    problem = Problem(folder_of(tmp_path / "f"), psi=L1(1e-3), A=A)
    read = []
    usual = EagerLooks._summed
    monkeypatch.setattr(EagerLooks, "_summed", lambda self, look: read.append(self._stage) or usual(self, look))
    for name in ("_margins", "_rows", "_outer", "join", "settle", "renew"):
        monkeypatch.setattr(FileLooks, name, lambda *_, name=name: pytest.fail(f"{name}: rows are read again"))
    result = solve(problem, "san-admm", passes=4.5, record_every=0)
    assert result.passes == pytest.approx(sum(N if stage is None else stage.size(N) for stage in read) / N, abs=0.2)
    assert read.count(None) >= 3


def test_rows_that_moved_far_are_copied_on_the_way(tmp_path):
    looks = file_looks(folder_of(tmp_path / "f"))
    plain = Looks(problem_of().samples())
    far = np.flatnonzero(np.abs(table()[0][:, 0]) > 2.4)
    assert 0 < far.size <= HARD_SHARE * N
    step = np.zeros(D)
    step[0] = HARD_MOVE / 2.4
    for one in (looks, plain):
        one.begin(None, np.zeros(D))
        one.along(np.zeros(D), 0.0)
        one.settle(0.0)
        one.begin(None, None)
    assert looks.look_ahead(step, False, None)[-1] == far.size
    looks.look_taken()
    plain.along(step, 1.0)
    plain.settle(1.0)
    assert np.array_equal(looks._copies[0], far)
    assert looks.hard_begin(HARD_MOVE) == plain.hard_begin(HARD_MOVE) == far.size
    assert looks._hard["samples"].rows is looks._copies[1]
    np.testing.assert_array_equal(looks._hard["samples"].rows.values, table()[0][far])
    np.testing.assert_allclose(looks.hard_along(step), plain.hard_along(step))
    # More of them than are kept: they are read once again.
    looks.begin(None, None)
    assert looks.look_ahead(10 * step, False, None)[-1] > HARD_SHARE * N
    looks.look_taken()
    assert looks._copies is None
    count = looks.hard_begin(looks.hard_threshold())
    assert 0 < count <= HARD_SHARE * N
    np.testing.assert_array_equal(looks._hard["samples"].rows.values, table()[0][looks._hard["index"]])


def test_many_copies_are_made_a_few_rows_at_a_time(tmp_path, monkeypatch):
    looks = file_looks(folder_of(tmp_path / "f"), at_once=256)
    pulses = []
    monkeypatch.setattr(_one_reading._watch, "pulse", lambda: pulses.append(1))
    every = np.arange(N)
    np.testing.assert_array_equal(looks._copied(every).values, table()[0])
    assert len(pulses) == -(-N // 256)
    assert looks._copied(every[:0]).shape[1] == D


def test_checkpoints_of_files_with_hard_rows(tmp_path, monkeypatch):
    """At every step of a run that copies rows: to go on from there is to have gone on."""
    monkeypatch.setattr(newton._contracted, "applies", lambda problem: False)
    X, target, weight = table()
    X[::113] *= 30.0
    write_blocks(tmp_path / "f", [(X, target, weight)])
    problem = Problem(tmp_path / "f", psi=L1(1e-3), A=A)
    run = {"method": "san-admm", "record_every": 0, "checkpoint_every": 0}
    copied = []
    usual = FileLooks._summed
    monkeypatch.setattr(FileLooks, "_summed", lambda self, look: [usual(self, look), copied.append(self._copies)][0])
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
    again = problem._on(problem.rows, problem.target, problem.sample_weight)
    assert again.files is problem.files is not None
    assert problem.subset(np.arange(10)).files is None


def test_rows_are_fetched_where_the_next_ones_are_elsewhere(tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(FileBlocks, "fetch", lambda self, start, stop: fetched.append((start, stop)) or 0)
    looks = file_looks(folder_of(tmp_path / "f"))
    stage = Stage(1, 4, 20)
    looks.begin(stage, np.zeros(D))
    looks.stage_ahead(np.ones(D), True)
    assert [slice(*some, 1) for some in fetched] == stage.slices(0, N)
    looks.begin(None, np.zeros(D))
    looks.look_ahead(np.ones(D), True, None)
    assert len(fetched) == len(stage.slices(0, N))
