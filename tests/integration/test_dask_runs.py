"""Several steps in one request give the bits of one step at a time, whatever happens to the responses."""

import time
from typing import Any, NamedTuple

import numpy as np
import pytest

from skadmm import Problem, Status, solve
from skadmm.backends import tasks, worker
from skadmm.backends.dask import transport
from skadmm.operators import chain, stack
from skadmm.regularizers import L1, SquaredL2
from skadmm.run import driver
from skadmm.solvers import ALGORITHMS, dual_update
from skadmm.solvers.base import Setup
from skadmm.solvers.first_order import blockwise
from skadmm.solvers.first_order import runs as _runs

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

METHODS = ("sa-iu-admm", "sa-admm", "saga-admm", "saga-iu-admm")
N, D, BLOCK = 1200, 5, 300

rng = np.random.default_rng(7)
X = rng.standard_normal((N, D)) * [1, 1, 8, 1, 1]
CLASSES = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(N) > 0, 1.0, -1.0)
MODEL: dict[str, Any] = {"psi": L1(0.01), "A": stack(chain(D), "identity")}
RUN: dict[str, Any] = {"step": 0.02, "batch_size": 100, "rho": 0.1, "passes": 8}

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and loops


@pytest.fixture(scope="module", params=["one worker", "two"])
def there(request, client):
    """On the shared cluster, with blocks on one of its workers, or on both."""
    table, target = da.from_array(X, chunks=(BLOCK, D)), da.from_array(CLASSES, chunks=BLOCK)
    workers = sorted(client.nthreads())
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "one worker":
            patch.setattr(client, "nthreads", lambda: {workers[0]: 1})
        yield Problem(table, target, omega=SquaredL2(0.01), **MODEL)


@pytest.fixture
def runs(monkeypatch):
    """The lengths of the runs that are asked for."""
    lengths = []
    usual = blockwise.BlocksInRuns._run
    monkeypatch.setattr(
        blockwise.BlocksInRuns, "_run", lambda self, order: lengths.append(len(order)) or usual(self, order)
    )
    return lengths


def by_steps(problem, method, monkeypatch, **options):
    """The run without runs."""
    with monkeypatch.context() as patch:
        patch.setitem(blockwise.STEPS, "average", blockwise.AveragedBlocks)
        patch.setitem(blockwise.STEPS, "corrected", blockwise.AveragedBlocks)
        return solve(problem, method, **(RUN | options))


def assert_same_bits(first, second):
    assert first.passes == second.passes
    assert first.tables.keys() == second.tables.keys()
    for name in first.tables:
        np.testing.assert_array_equal(first.tables[name], second.tables[name], err_msg=name)
    for name in ("x", "y", "dual", "x_average", "y_average", "objective"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_the_bits_are_those_of_single_steps(method, there, runs, monkeypatch):
    alone = by_steps(there, method, monkeypatch)
    assert not runs
    several = solve(there, method, **RUN)
    assert max(runs) >= 3
    assert sum(runs) >= 30  # of 84 steps, on two workers; the others were alone
    assert_same_bits(several, alone)


@pytest.mark.parametrize("method", METHODS)
def test_responses_that_are_lost(method, there, runs, monkeypatch):
    """The worker has run ahead and keeps slopes of points that never were; its numbers say so."""
    alone = by_steps(there, method, monkeypatch)
    backend, lost = type(there.backend), []
    usual = backend.call_on_one

    def call_on_one(self, *arguments):
        answer = usual(self, *arguments)
        lost.append(len(lost) % 3 == 2)
        if lost[-1]:
            raise blockwise.WorkerGone
        return answer

    monkeypatch.setattr(backend, "call_on_one", call_on_one)
    assert_same_bits(solve(there, method, **RUN), alone)
    assert sum(lost) > 2


def test_fixed_parts_that_a_worker_has_forgotten_are_sent_again(there, runs, monkeypatch):
    alone = by_steps(there, "sa-admm", monkeypatch)
    backend, sent = type(there.backend), []
    usual = backend.call_on_one

    def call_on_one(self, blocks, task, run, parts):
        sent.append(parts is not None)
        if len(sent) == 5:
            self.each_stateful(forget, [()] * self.sizes.size)
        return usual(self, blocks, task, run, parts)

    monkeypatch.setattr(backend, "call_on_one", call_on_one)
    assert_same_bits(solve(there, "sa-admm", **RUN), alone)
    workers = len({there.backend.place(k) for k in range(there.backend.sizes.size)})
    assert workers < sum(sent) <= 2 * workers


def forget(samples, memory):
    memory.clear()
    return 0.0


def test_a_worker_minds_the_time_limit(there, runs, monkeypatch):
    """However long the run that it was asked for, it stops between two steps, and these count."""
    monkeypatch.setattr(driver, "SLICE_SECONDS", 1e9)
    monkeypatch.setattr(blockwise, "RUN_SECONDS", 1e9)
    solve(there, "sa-iu-admm", **RUN)  # compiled
    short = solve(there, "sa-iu-admm", **(RUN | {"passes": 1e6, "record_every": 0, "time_limit": 1.0}))
    assert short.status is Status.TIME_LIMIT
    assert short.seconds < 1.5
    assert short.passes > 8
    monkeypatch.undo()
    assert_same_bits(short, solve(there, "sa-iu-admm", **(RUN | {"passes": short.passes, "record_every": 0})))


def prefixes(dask_scheduler):
    """What the progress bars show."""
    return dask_scheduler.get_task_prefix_states()


def test_short_requests_show_in_the_dashboard(there, runs, monkeypatch):
    """As progress bars at any moment and in the task stream now and then; most are still sent directly."""
    backend = there.backend
    monkeypatch.setattr(transport, "SHOWN_EVERY", 0.2)
    direct, bars = [], []
    usual = transport.DirectTransport.send
    monkeypatch.setattr(
        transport.DirectTransport, "send", lambda self, requests: direct.append(1) or usual(self, requests)
    )
    backend.client.get_task_stream()  # from here on it is kept
    began, usual_names, seen = time.time(), {"skadmm_take_steps", "skadmm_evaluate"}, set()

    def evaluate(snapshot):
        bars.append([name for name in backend.client.run_on_scheduler(prefixes) if name.startswith("skadmm_")])
        seen.update(bars[-1])
        # Which request is due when the time has come is chance: a slow machine gets more than two seconds.
        return time.time() - began > (2.0 if seen & usual_names else 60.0)

    solve(there, "sa-iu-admm", **(RUN | {"passes": 1e6}), callback=evaluate)
    assert all(bars[1:])
    assert seen & usual_names
    shown = [one for one in backend.client.get_task_stream(start=began) if one["key"].startswith("skadmm_")]
    moments = sorted(one["startstops"][0]["start"] for one in shown)
    assert len({int(5 * (moment - began)) for moment in moments}) >= 5  # in most of ten fifths of a second
    assert len(direct) > 2 * len(shown)


@pytest.mark.parametrize("method", METHODS)
def test_a_checkpoint_resumes_to_the_same_bits(method, there, runs, tmp_path):
    whole = solve(there, method, **RUN)
    kept = RUN | {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    for passes in (1.5, 4, 8):
        resumed = solve(there, method, **(kept | {"passes": passes}))
    assert max(runs) >= 3
    assert_same_bits(resumed, whole)


def blocks_here():
    """A block in memory, the fixed parts, and a run of four steps."""
    problem = Problem(X, CLASSES, **MODEL)
    held = worker.make_samples(worker.make_part(X, CLASSES, None, False), problem.loss, None, 1.0)
    setup = Setup(problem, 0.1, 0.02, BLOCK, "none")
    point = dual_update.start(problem, np.zeros(D), None, None)
    rule = ALGORITHMS["sa-iu-admm"].start(setup, point).rule
    rule.grad_bar[:] = np.linspace(-0.1, 0.2, D)
    parts = _runs.fixed_parts_of(rule, dual_update.build(problem, 0.1), 1.0, N)
    run = _runs.StepsRequest(
        parts_number=3, point=point, sums=[getattr(rule, name) for name in _runs.sums_of(rule)],
        tables=[getattr(rule, name) for name in rule.by_block], pieces=[(0, k, k + BLOCK) for k in range(0, N, BLOCK)],
        seen=[0] * 4, order=[2, 0, 2, 1], numbers=[11, 12, 13, 14], seconds=np.inf,
    )  # fmt: skip
    return [held], parts, run


def test_a_worker_keeps_the_fixed_parts_and_nothing_that_was_sent():
    held, parts, run = blocks_here()
    for array in (*run.point, *run.sums, *run.tables):
        array.flags.writeable = False  # as it comes by some ways
    assert isinstance(_runs.take_steps(held, run, None), tasks.Lost)
    first = _runs.take_steps(held, run, parts)
    again = _runs.take_steps(held, run, None)  # its slopes are kept under other numbers
    assert first.steps == again.steps == 4
    np.testing.assert_array_equal(first.point.clock, [4, 4 * BLOCK])
    assert np.abs(first.point.x).max() > 0
    for one, other in zip(
        (*first.point, *first.sums, first.points), (*again.point, *again.sums, again.points), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert isinstance(_runs.take_steps(held, run._replace(parts_number=4), None), tasks.Lost)


def test_out_of_time_a_worker_takes_one_step():
    held, parts, run = blocks_here()
    taken = _runs.take_steps(held, run._replace(seconds=0.0), parts)
    assert taken.steps == 1
    np.testing.assert_array_equal(taken.point.clock, [1, BLOCK])


class Own(NamedTuple):
    """A penalty of this file, which no worker knows."""

    strength: float = 1.0


def test_what_is_known_here_only_does_not_travel():
    A = np.eye(2)
    ours, own = (dual_update.SeparableSplit(A, np.zeros(2), psi, 0.1) for psi in (L1(0.1), Own()))
    assert _runs.is_known_everywhere(ours)
    assert not _runs.is_known_everywhere(own)
