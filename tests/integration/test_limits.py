"""Limits, interrupts and determinism: a run ends when it must, and always with the same numbers."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from twins import D, pair

from skadmm import ALGORITHMS, SOLVERS, Problem, Status, _cancel, solve
from skadmm.backends import FileBlocks
from skadmm.backends.convert import write_blocks
from skadmm.kernels import threads
from skadmm.operators import chain, incidence, output_groups, stack, trend
from skadmm.regularizers import L1, GroupL2
from skadmm.run import memory, step_size
from skadmm.solvers import Setup
from skadmm.solvers.second_order import l1_rows
from skadmm.solvers.second_order.newton_admm import NewtonADMM


@pytest.fixture(scope="module")
def problem():
    return pair().problem


@pytest.fixture(scope="module")
def larger():
    return made(20_000, 40)


def made(n, d, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, d))
    target = np.where(table[:, 0] - table[:, 1] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return Problem(table, target, psi=L1(1e-3), A=stack(chain(d), "identity"))


# -- interrupts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm"])
def test_ctrl_c_between_any_two_blocks_gives_a_usable_result(method, larger):
    """The signal comes at the k-th moment at which a run can be stopped, for every k."""
    usual = _cancel.RunControl.check
    start = larger.objective(np.zeros(40))
    for stop in (1, 2, 3, 5, 8, 13, 21, 34):
        seen = []

        def check(control, stop=stop, seen=seen):
            seen.append(1)
            if len(seen) == stop:
                signal.raise_signal(signal.SIGINT)
            usual(control)

        _cancel.RunControl.check = check
        try:
            result = solve(larger, method, step=0.1, passes=20, tol=1e-12)
        finally:
            _cancel.RunControl.check = usual
        assert len(seen) >= stop
        assert result.status is Status.INTERRUPTED
        assert np.isfinite(result.x).all()
        assert result.objective == pytest.approx(larger.objective(result.x), rel=1e-12)
        assert result.objective <= start * (1 + 1e-12)
        assert np.isnan(result.gap) or result.gap >= 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_step_returns_the_start(problem, monkeypatch):
    from skadmm.run import step_size

    usual = step_size.resolve
    monkeypatch.setattr(step_size, "resolve", lambda *a, **k: signal.raise_signal(signal.SIGINT) or usual(*a, **k))
    result = solve(problem, "opg-admm", passes=5)
    assert result.status is Status.INTERRUPTED
    assert np.array_equal(result.x, np.zeros(D))


def test_a_handler_of_the_users_own_stays(problem):
    called = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(1))
    try:
        result = solve(problem, "opg-admm", passes=2, step="theory", callback=lambda s: signal.raise_signal(2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert called
    assert result.status is Status.PASS_LIMIT


def test_a_second_ctrl_c_interrupts_at_once(problem):
    def twice(snapshot):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    assert solve(problem, "opg-admm", passes=9, step="theory", callback=twice).status is Status.INTERRUPTED


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm", "batch-iu-admm"])
def test_only_a_run_on_files_releases_their_pages(method, larger, tmp_path, monkeypatch):
    """A run on rows in memory leaves the mappings of an open folder alone; each folder releases its own pages."""
    for name in ("blocks", "others"):
        write_blocks(tmp_path / name, iter([(larger.rows.values, larger.target)]))
    folder, other = FileBlocks(tmp_path / "blocks"), FileBlocks(tmp_path / "others")
    released = []
    release = FileBlocks.release
    monkeypatch.setattr(FileBlocks, "release", lambda self: released.append(self) or release(self))
    settings = {"method": method, "step": 0.1, "passes": 3}
    in_memory = solve(larger, **settings)
    assert released == []
    on_files = solve(Problem(folder, psi=larger.psi, A=larger.constraint.A), **settings)
    assert released
    assert all(one is folder for one in released)
    assert other not in released
    np.testing.assert_allclose(on_files.x, in_memory.x, rtol=1e-9, atol=1e-12)


def test_a_control_ends_its_own_run_only():
    """Runs in other threads and code outside of a run do not see it."""
    with _cancel.run_control() as control:
        control.listens = True
        control.deadline = -np.inf
        assert _cancel.seconds_left() == -np.inf
        with pytest.raises(_cancel.OutOfTime):
            _cancel.check_cancelled()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_cancel.check_cancelled).result()
        with _cancel.run_control():
            _cancel.check_cancelled()  # an inner run has limits of its own
    _cancel.check_cancelled()
    assert _cancel.seconds_left() == np.inf


def test_an_interrupted_second_order_run_can_go_on(larger):
    def stop(snapshot):
        if snapshot.passes >= 2:
            signal.raise_signal(signal.SIGINT)

    first = solve(larger, "san-admm", passes=20, tol=1e-9, callback=stop)
    assert first.status is Status.INTERRUPTED
    assert solve(larger, "san-admm", passes=20, tol=1e-9, warm_start=first).status is Status.SOLVED


# -- the time limit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["san-admm", "sa-iu-admm"])
def test_the_time_limit_holds_inside_a_step(method, larger, monkeypatch):
    """Every part of a step takes a while here; the run ends after the part during which the time ran out."""
    solve(larger, method, step=0.1, passes=1)  # compiled
    check = _cancel.RunControl.check
    monkeypatch.setattr(_cancel.RunControl, "check", lambda control: time.sleep(0.02) or check(control))
    result = solve(larger, method, step=0.1, passes=1000, time_limit=0.15, record_every=0)
    assert result.status is Status.TIME_LIMIT
    assert 0.15 <= result.seconds < 0.4
    assert np.isfinite(result.x).all()


def steps_timed(monkeypatch):
    """The longest step of any second-order solver, or its last one, which finishes the solution, in processor seconds,
    updated while they run."""
    longest = [0.0]

    def timed(part):
        def run(self, state):
            began = time.process_time()
            try:
                part(self, state)
            finally:
                longest[0] = max(longest[0], time.process_time() - began)

        return run

    for _, solver in SOLVERS.items():
        monkeypatch.setattr(solver, "step", timed(solver.step))
        monkeypatch.setattr(solver, "finish", timed(solver.finish))
    return longest


@pytest.mark.parametrize("kind", ["graph", "trend", "dense", "wide chain", "tall"])
def test_the_time_limit_is_kept_within_a_tenth_and_one_step(kind, monkeypatch):
    """The whole call, with its preparations and the certificate of the answer, in processor seconds."""
    rng = np.random.default_rng(0)
    n, d = (3000, 600) if kind == "tall" else (150, 3000)
    X = rng.standard_normal((n, d))
    edges = np.unique(np.sort(rng.integers(d, size=(2 * d, 2)), axis=1), axis=0)
    A = {
        "graph": lambda: incidence(edges[edges[:, 0] != edges[:, 1]], n_features=d),
        "trend": lambda: trend(d, 2),
        "dense": lambda: stack(rng.standard_normal((60, d)), "identity"),
        "wide chain": lambda: stack(chain(d), "identity"),
        "tall": lambda: chain(d),
    }[kind]()
    made = Problem(X, X @ np.repeat([0.0, 1.0, -1.0], d // 3) + rng.standard_normal(n), "squared", psi=L1(1e-3), A=A)
    longest, limit, excess = steps_timed(monkeypatch), 1.0, np.inf
    for _ in range(3):  # the first may compile
        longest[0] = 0.0
        with _cancel.processor_time():
            began = time.process_time()
            result = solve(made, tol=1e-15, passes=1e6, time_limit=limit, record_every=0)
            excess = min(excess, time.process_time() - began - longest[0] - limit)
        assert result.status in (Status.TIME_LIMIT, Status.STALLED, Status.SOLVED)
        if excess <= 0.1 * limit:
            return
    pytest.fail(f"{excess:.2f} s beyond a limit of {limit} s and one step")


@pytest.mark.parametrize("method", ["sa-admm", "asvrg-admm"])
def test_the_time_limit_ends_the_selection_of_a_step(method):
    """Each step solves a system that has no cheap factorisation; 65 trials of 500 steps would take a minute."""
    rng = np.random.default_rng(0)
    d = 1200
    edges = np.unique(np.sort(rng.integers(d, size=(3 * d, 2)), axis=1), axis=0)
    A = incidence(edges[edges[:, 0] != edges[:, 1]], n_features=d)
    X = rng.standard_normal((800, d))
    made = Problem(X, X[:, 0] + rng.standard_normal(800), "squared", psi=L1(0.01), A=A)
    with _cancel.processor_time():
        result = solve(made, method, passes=1e6, time_limit=0.5, record_every=0)
    assert result.status is Status.TIME_LIMIT
    assert result.tuning.cut_short
    assert "ended the selection of the step early" in result.message
    assert np.isfinite(result.x).all()
    assert result.seconds <= 2.0


def test_a_selection_that_ends_early_never_chooses_a_step_that_diverged():
    """The first candidates, around the usual step, diverge here; where no other was tried the step of the theory is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 60))
    made = Problem(X, X[:, 0] + rng.standard_normal(100), "squared", psi=L1(0.01), A=chain(60))
    method, at_zero, worse = ALGORITHMS["svrg-iu-admm"], made.objective(np.zeros(60)), 0
    for limit in range(20, 200, 20):
        calls = iter(range(limit))
        chosen = step_size.select(
            made, method, rho=0.1, batch_size=1, omega_mode="none", seed=0, seconds=1e6,
            interrupted=lambda calls=calls: next(calls, None) is None,
        )  # fmt: skip
        assert chosen.cut_short
        if chosen.objectives.min() <= at_zero:
            assert chosen.step == chosen.candidates[chosen.objectives.argmin()]
        else:
            worse += bool(np.isfinite(chosen.objectives).any())
            assert chosen.step == step_size.theory(method, made, 0.1)
    assert worse > 0


def test_a_selection_without_a_time_limit_does_not_depend_on_its_order(larger):
    """Candidates are tried from the middle of the grid, five runs each; the mean of each is that of its own runs."""
    small = larger.subset(np.arange(300))
    chosen = step_size.select(small, ALGORITHMS["sa-admm"], rho=0.1, batch_size=1, omega_mode="none", seed=3)
    assert not chosen.cut_short
    assert chosen.samples_touched >= 5 * 5 * 300
    assert chosen.step == chosen.candidates[np.argmin(chosen.objectives)]


@pytest.mark.parametrize("cause", ["time", "Ctrl-C"])
def test_nothing_is_read_after_the_end(cause, larger, monkeypatch):
    """Time may run out, or the user press Ctrl-C, while no rows are read: no last evaluation follows, only the last
    sound point, and its record."""
    monkeypatch.setattr(NewtonADMM, "_last_evaluation", lambda *_: pytest.fail("it evaluates all samples"))
    usual = NewtonADMM._minimise
    calls = []

    def slow(self, state, *arguments, **options):
        calls.append(state.anchor)
        usual(self, state, *arguments, **options)
        if len(calls) == 5:
            if cause == "time":
                time.sleep(0.5)
            else:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(NewtonADMM, "_minimise", slow)
    monkeypatch.setattr(l1_rows, "has_short_rows", lambda problem: False)
    limit = 0.5 if cause == "time" else None
    result = solve(larger, "san-admm", passes=1000, time_limit=limit, record_every=1e-9)  # a step at a time
    assert result.status is (Status.TIME_LIMIT if cause == "time" else Status.INTERRUPTED)
    assert len(calls) == 5
    np.testing.assert_array_equal(result.x, calls[-1])
    assert result.trace["objective"].iloc[-1] == result.objective == pytest.approx(larger.objective(result.x))


# -- memory ------------------------------------------------------------------------------------------------------


def peak(run):
    """The most memory that was allocated at a time; other threads of the process may add to it."""
    tracemalloc.start()
    run()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return taken


@pytest.mark.parametrize(
    ("method", "n", "d"),
    [
        ("sa-iu-admm", 3000, 50),
        ("sa-admm", 1000, 200),
        ("san-admm", 50_000, 20),
        ("san-admm", 1000, 400),
        ("san-admm", 300, 1000),
    ],
)
def test_the_estimate_is_close_to_what_is_taken(method, n, d):
    problem = made(n, d)
    algorithm = ALGORITHMS[method]
    run = {"method": method, "passes": 3, "step": 1e-2, "rho": 0.01}
    solve(problem, **run)  # compiled
    taken = min(peak(lambda: solve(problem, **run)) for _ in range(3))
    estimate = sum(memory.estimate(Setup(problem, 0.01, 1.0, 1, "none"), algorithm).values())
    assert 0.9 * taken <= estimate <= 8 * taken + 1e6


def test_what_cannot_fit_is_refused_with_the_numbers(problem, monkeypatch):
    with pytest.raises(
        MemoryError, match=r"method='sa-iu-admm' would take about .* kB .*100 B are allowed by memory_limit"
    ):
        solve(problem, "sa-iu-admm", memory_limit=100)
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    large = made(20_000, 60)
    with pytest.raises(MemoryError, match=r"9\.6 MB for the table of points.*1 MB are free: a larger batch_size"):
        solve(large, "sa-iu-admm")
    assert solve(large, "sa-iu-admm", step=0.1, passes=1, memory_limit=float("inf")).passes == 1
    assert solve(large, "sa-iu-admm", step=0.1, passes=1, batch_size=1000, memory_limit=2e6).passes == 1
    with pytest.raises(ValueError, match="memory_limit=-1"):
        solve(problem, "sa-iu-admm", memory_limit=-1)


def test_limits_on_the_process_are_seen():
    code = (
        "import resource; from skadmm.run import memory; free = memory.available(); "
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)); now = memory.available(); "
        "assert 0 < now <= min(free * 1.5, 8 << 30), now"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- determinism -------------------------------------------------------------------------------------------------

CHILD = """
import sys, hashlib; sys.path.insert(0, sys.argv[1])
import numpy as np
import pytest
import test_limits
from skadmm import solve
for n, d in ((30_000, 60), (400, 900)):
    result = solve(test_limits.made(n, d), "san-admm", tol=1e-8, passes=20)
    sys.stdout.write(hashlib.sha256(b"".join(a.tobytes() for a in (result.x, result.y, result.dual))).hexdigest())
"""


def test_the_number_of_threads_does_not_show():
    answers = set()
    for count in ("1", "2"):
        environment = os.environ | {f"{name}_NUM_THREADS": count for name in ("NUMBA", "OPENBLAS", "OMP", "MKL")}
        arguments = [sys.executable, "-c", CHILD, os.path.dirname(__file__)]
        answers.add(subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(answers) == 1


def two_at_once():
    """Four solves in the main thread, and again two at a time in threads of their own: the same bits."""
    tasks = [(made(30_000, 60, seed), method) for seed in (1, 2) for method in ("san-admm", "sa-iu-admm")]

    def run(task):
        return solve(task[0], task[1], step=0.1, passes=4, batch_size=10)

    in_sequence = [run(task) for task in tasks]
    with ThreadPoolExecutor(2) as pool:
        rows_per_chunk = list(pool.map(run, tasks))
    for first, second in zip(in_sequence, rows_per_chunk, strict=True):
        for name in ("x", "y", "dual"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("blas_threads", ["1", "2"])
@pytest.mark.parametrize("what", ["two_at_once", "last_to_leave"])
def test_runs_in_several_threads(what, blas_threads):
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import test_limits; test_limits.{what}()"
    arguments = [sys.executable, "-c", code, os.path.dirname(__file__)]
    subprocess.run(arguments, env=os.environ | {"OPENBLAS_NUM_THREADS": blas_threads}, check=True)


def last_to_leave():
    """The limit on BLAS's threads holds until the last run leaves, whichever thread that is, and is then lifted."""

    def count():
        return {info["num_threads"] for info in threads._controller().info() if info["user_api"] == "blas"}

    before = count()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with threads.one_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with threads.one_thread():
        thread.start()
        inside.wait()
    assert count() == {1}
    leave.set()
    thread.join()
    assert count() == before


def test_many_outputs_need_no_dense_model_of_all_pairs():
    """Blocks across outputs are solved on working sets: 400,000 coefficients do not need a matrix of their squares."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((400, 20_000), density=1e-3, format="csr", rng=rng)
    problem = Problem(X, rng.integers(0, 20, 400), "multinomial", psi=GroupL2(0.01, output_groups(20_000, 20)))
    setup = Setup(problem, 0.01, 1.0, 1, "none", rho_given=False)
    assert sum(memory.estimate(setup, ALGORITHMS["san-admm"]).values()) < 5e8
