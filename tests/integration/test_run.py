"""The loop: how a run ends, what it counts, and what it leaves alone."""

import dataclasses
import signal
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from twins import CLASSES, NUMBERS, RHO, X0, A, D, N, X, pair

import skadmm
from skadmm import ALGORITHMS, CallbackError, Problem, Result, Status, path, plotting, solve
from skadmm._plots import PLOTS, plot
from skadmm.backends import LocalBackend, tasks
from skadmm.operators import chain
from skadmm.regularizers import L1, NonNegative, SquaredL2
from skadmm.run import recording
from skadmm.run.recording import Evaluator
from skadmm.run.result import TRACE_COLUMNS

FOREVER = 1e9
FIRST_ORDER = [name for name in ALGORITHMS if name != "san-admm"]


@pytest.fixture(scope="module")
def problem():
    return pair().problem


def go(problem, method="opg-admm", **options):
    return solve(problem, method, **({"rho": RHO, "step": "theory", "passes": 4} | options))


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("x", "y", "dual", "x_average", "y_average")
    )


# -- how a run ends ----------------------------------------------------------------------------------------------


def test_the_pass_limit(problem):
    result = go(problem)
    assert result.status is Status.PASS_LIMIT
    assert result.passes == 4
    assert "4 passes" in result.message
    assert result.stopped_on is None
    assert str(result.status) == "pass limit"


def test_passes_beyond_the_limit_are_explained():
    """A second-order method completes its step and evaluates its solution after the limit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 4))
    problem = Problem(X, X[:, 0] + 0.1 * rng.standard_normal(8), "squared", psi=L1(0.1), A=chain(4))
    result = solve(problem, passes=3)
    beyond = result.run_passes - 3
    assert beyond in (1, 2)  # whether the polished solution is another point than the last one depends on rounding
    assert "the limit of 3 passes was reached" in result.message
    assert f"evaluating the solution took {beyond:.0f} more" in result.message


def test_the_solution_and_the_last_row_of_the_trace_have_the_residuals_of_the_gap_that_is_proved():
    """The y and the multiplier of the sweeps may be far from those of the solution when its gap is proved."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((400, 24))
    truth = np.zeros((24, 3))
    truth[:6, 0], truth[8:14, 1], truth[16:22, 2] = 1.5, 1.5, -1.5
    classes = (X @ truth + rng.gumbel(size=(400, 3))).argmax(axis=1)
    model = skadmm.FusedLassoClassifierCV(multi_class="multinomial", alphas=[0.1, 0.025], l1_ratio=0.3, cv=3)
    result = model.fit(X, classes).result_
    last = result.trace.iloc[-1]
    assert result.status is Status.SOLVED
    assert result.kkt.relative <= 1e-5
    assert result.feasibility <= 1e-5
    assert last["gap"] == result.gap
    assert last["kkt"] == result.kkt.relative


def test_without_a_tolerance_a_run_ends_where_nothing_improves_and_says_how_accurate_that_is():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    problem = Problem(X, X[:, 0] + rng.standard_normal(50), "squared", psi=L1(0.1), omega=NonNegative())
    result = solve(problem, passes=500)
    assert result.status is Status.STALLED
    assert result.gap <= 1e-12
    assert "at a relative duality gap of" in result.message
    assert "no tol was given" in result.message
    assert "ill-posed" not in result.message


def test_the_time_limit(problem):
    began = time.perf_counter()
    result = go(problem, passes=FOREVER, time_limit=0.2, record_every=0)
    assert result.status is Status.TIME_LIMIT
    assert 0.2 <= result.seconds < 2
    assert time.perf_counter() - began < 10


def test_the_tolerance(problem):
    result = go(problem, "batch-admm", passes=10_000, tol=1e-6)
    assert result.status is Status.SOLVED
    assert result.stopped_on in ("gap", "kkt")
    met = result.gap if result.stopped_on == "gap" else result.kkt.relative
    assert met <= 1e-6
    assert result.stopped_on in result.message.lower()
    tighter = go(problem, "batch-admm", passes=10_000, tol=1e-9)
    assert tighter.passes > result.passes
    assert tighter.objective == pytest.approx(result.objective, rel=1e-5)


def test_a_callback_stops_the_run(problem):
    seen = []
    result = go(problem, callback=lambda snapshot: seen.append(snapshot.passes) or snapshot.passes >= 2)
    assert result.status is Status.STOPPED
    assert seen == [0, 1, 2]
    assert result.passes == 2


def test_several_callbacks_are_all_called(problem):
    seen = []
    go(problem, passes=1, callback=[lambda s: seen.append("a"), lambda s: seen.append("b")])
    assert seen == ["a", "b", "a", "b"]


def raise_at(passes, error):
    def callback(snapshot):
        if snapshot.passes >= passes:
            raise error

    return callback


def test_a_keyboard_interrupt_in_a_callback_returns_what_there_is(problem):
    result = go(problem, callback=raise_at(2, KeyboardInterrupt()))
    assert result.status is Status.INTERRUPTED
    assert np.array_equal(result.x, go(problem, passes=2).x)


def test_a_signal_in_a_callback_returns_what_there_is(problem):
    result = go(problem, callback=lambda s: s.passes >= 2 and signal.raise_signal(signal.SIGINT))
    assert result.status is Status.INTERRUPTED
    assert np.array_equal(result.x, go(problem, passes=2).x)


def test_a_signal_during_compiled_work_returns_what_there_is(problem):
    go(problem, passes=1)  # compiled before the timer starts
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    result = go(problem, passes=FOREVER, record_every=0)
    timer.join()
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.x).all()
    assert not np.array_equal(result.x, np.zeros(D))
    assert result.seconds < 10


def test_the_time_limit_in_other_coordinates():
    """The last whole step is taken up in the coordinates of the method, and returned in those of the user."""
    problem = Problem(X * np.logspace(0, 2, D), NUMBERS, "squared", psi=L1(0.03), A=A)
    options = {"precondition": "diagonal", "record_every": 1}
    result = go(problem, "batch-iu-admm", passes=FOREVER, time_limit=0.2, **options)
    assert result.status is Status.TIME_LIMIT
    assert result.objective == pytest.approx(result.records[-1]["objective"], rel=1e-9)
    longer = go(problem, "batch-iu-admm", passes=result.passes, **options)
    np.testing.assert_allclose(result.x, longer.x, rtol=1e-9)


@pytest.mark.parametrize("record_every", [0, 1, 1e-9])
def test_divergence_returns_the_last_sound_point(record_every):
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.03), A=A)
    result = go(problem, "batch-iu-admm", rho=1e-6, step=1e6, passes=500, record_every=record_every)
    assert result.status is Status.DIVERGED
    assert "smaller step" in result.message
    for array in (result.x, result.y, result.dual, result.x_average):
        assert np.isfinite(array).all()
    assert result.objective <= recording.BLOW_UP * problem.objective(np.zeros(D))
    assert result.objective == pytest.approx(result.records[-1]["objective"])
    assert np.isfinite(result.trace["objective"]).all()
    with pytest.raises(ValueError, match=r"^warm_start: the earlier run diverged"):
        go(problem, "batch-iu-admm", rho=1e-6, step=1e-3, warm_start=result)


@pytest.mark.parametrize("ridge", [0.0, 0.01], ids=["plain", "ridge"])
@pytest.mark.parametrize(
    ("loss", "k"),
    [("logistic", 1), ("hinge", 1), ("squared", 1), ("squared", 3), ("poisson", 1), ("poisson", 3), ("multinomial", 3)],
)
def test_online_admm_selects_a_step_where_others_diverge(loss, k, ridge):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 5))
    score = rows[:, 0] + rng.normal(size=100)
    target = {
        "logistic": np.where(score > 0.0, 1.0, -1.0), "hinge": np.where(score > 0.0, 1.0, -1.0), "squared": score,
        "poisson": rng.poisson(np.exp(score / 2)).astype(float), "multinomial": np.digitize(score, [-0.7, 0.7]),
    }[loss]  # fmt: skip
    if k > 1 and loss != "multinomial":
        target = np.column_stack([target] * k)
    problem = Problem(
        rows, target, loss, psi=L1(0.01), A=np.kron(np.eye(k), chain(5).toarray()),
        omega=SquaredL2(ridge) if ridge else None,
    )  # fmt: skip
    result = solve(problem, "online-admm", step="auto", passes=2)
    assert result.status is Status.PASS_LIMIT
    assert result.objective < problem.objective(np.zeros(5 * k))


@pytest.mark.parametrize("step", [1e16, 1e30])
def test_online_admm_with_a_step_that_is_too_long_diverges(step):
    """With equal rows in a block the Newton system becomes singular."""
    rng = np.random.default_rng(0)
    rows, counts = np.repeat(rng.normal(size=(50, 5)), 2, axis=0), rng.poisson(2.0, size=100).astype(float)
    problem = Problem(rows, counts, "poisson", psi=L1(0.01), A=chain(5))
    result = solve(problem, "online-admm", step=step, passes=2, batch_size=4)
    assert result.status is Status.DIVERGED
    assert np.isfinite(result.x).all()


def test_a_failing_callback_keeps_the_result(problem):
    with pytest.raises(CallbackError, match="ZeroDivisionError") as caught:
        go(problem, callback=raise_at(2, ZeroDivisionError("oh")))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert isinstance(caught.value.result, Result)
    assert np.array_equal(caught.value.result.x, go(problem, passes=2).x)


# -- what a callback sees ----------------------------------------------------------------------------------------


def test_a_snapshot_cannot_be_changed(problem):
    kept = []
    result = go(problem, callback=kept.append)
    for snapshot in kept:
        with pytest.raises(dataclasses.FrozenInstanceError):
            snapshot.passes = 0
        for array in (snapshot.x, snapshot.y, snapshot.dual):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        with pytest.raises(TypeError):
            snapshot.record["objective"] = 0.0
    assert np.array_equal(kept[0].x, np.zeros(D))  # a copy: the run did not change it
    assert np.array_equal(kept[-1].x, result.x)
    assert [snapshot.step_number for snapshot in kept] == [0, N, 2 * N, 3 * N, 4 * N]


def test_a_snapshot_has_the_shape_of_the_users_problem():
    problem = Problem(X, CLASSES, omega=L1(0.01), psi=L1(0.03), A=A)
    shapes = set()
    result = go(problem, omega_mode="fold", callback=lambda s: shapes.add((s.y.size, s.dual.size)))
    assert shapes == {(A.shape[0], A.shape[0])} == {(result.y.size, result.dual.size)}
    assert result.y_average.size == result.y.size
    assert result.objective == pytest.approx(problem.objective(result.x))


# -- the trace ---------------------------------------------------------------------------------------------------


def test_the_trace(problem):
    trace = go(problem, test=(X, CLASSES)).trace
    assert isinstance(trace, pd.DataFrame)
    assert tuple(trace.columns) == TRACE_COLUMNS
    assert trace["passes"].tolist() == [0, 1, 2, 3, 4]
    assert (trace["seconds"].diff().dropna() > 0).all()
    assert trace["test_loss"].notna().all()
    assert go(problem).trace["test_loss"].isna().all()


def test_the_trace_says_what_the_problem_says(problem):
    kept = []
    result = go(problem, test=(X, CLASSES), callback=kept.append)
    for snapshot, row in zip(kept, result.trace.to_dict("records"), strict=True):
        assert row["objective"] == pytest.approx(problem.objective(snapshot.x), rel=1e-12)
        assert row["feasibility"] == pytest.approx(problem.feasibility(snapshot.x, snapshot.y), rel=1e-12, abs=1e-15)
        assert row["kkt"] == pytest.approx(problem.kkt(snapshot.x, snapshot.y, RHO * snapshot.dual).relative)
        assert row["test_loss"] == pytest.approx(problem.test_loss(snapshot.x, X, CLASSES))
    assert result.trace["objective_average"].iloc[-1] == pytest.approx(problem.objective(result.x_average))


def test_record_every(problem):
    assert go(problem, record_every=0).trace["passes"].tolist() == [0, 4]
    assert go(problem, record_every=0.5).trace["passes"].tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]
    assert go(problem, record_every=3).trace["passes"].tolist() == [0, 3, 4]
    assert go(problem, passes=1, record_every=1e-9).trace.shape[0] == N + 1
    assert same(go(problem, record_every=0), go(problem, record_every=0.1))


# -- what is counted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "steps"), [("opg-admm", 3 * N), ("sa-iu-admm", 2 * N), ("batch-iu-admm", 3)])
def test_filling_a_table_is_a_pass(method, steps, problem):
    kept = []
    result = go(problem, method, passes=3, callback=kept.append)
    assert kept[-1].step_number == steps
    assert result.passes == 3


def test_a_short_last_block_counts_what_it_holds(problem):
    order = np.arange(6)
    kept = []
    go(problem, batch_size=7, sampler=order, passes=1, record_every=1e-9, callback=kept.append)
    assert np.allclose(np.diff([snapshot.passes for snapshot in kept]) * N, [7, 7, 7, 7, 7, 3])


def test_the_stopping_test_is_counted_and_on_the_clock(problem):
    kept = []
    result = go(problem, passes=6, tol=1e-14, callback=kept.append)
    assert result.passes == pytest.approx(kept[-1].step_number / N + len(kept))
    assert result.passes >= 6
    assert kept[-1].step_number < 6 * N


def test_the_inner_passes_of_the_nonlinear_step_are_counted(problem):
    kept = []
    result = go(problem, "exact-admm", passes=60, record_every=1e-9, callback=kept.append)
    costs = np.diff([snapshot.passes for snapshot in kept]) / np.diff([snapshot.step_number for snapshot in kept])
    assert (costs >= 3).all()  # a gradient before, a curvature product, a gradient after
    assert result.passes < 60 + costs.max()  # the limit is passed by one step at most
    assert go(problem, "exact-admm", passes=60, record_every=0).passes < 60 + 3 * costs.max()


class Reads(LocalBackend):
    """Counts the times that all samples are read."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.evaluated, self.averages = 0, 0

    def evaluate(self, x):
        self.evaluated += 1
        return super().evaluate(x)

    def mean(self, task, *arguments):
        self.averages += task is tasks.loss
        return super().mean(task, *arguments)


def counting(problem):
    local = problem.backend
    return problem.replace(backend=Reads(local.rows, local.target, local.weight, local.loss, classes=local.classes))


@pytest.mark.parametrize("x0", [None, X0])
@pytest.mark.parametrize("record_every", [0, 1])
@pytest.mark.parametrize("method", ["opg-admm", "sa-iu-admm", "batch-iu-admm"])
def test_nothing_is_read_twice_for_the_record(method, record_every, x0, problem):
    """Beyond what is counted, all samples are read once for the scale at zero, once per recording, which is the same
    reading where the run starts at zero, and once per recording for the average."""
    counted = counting(problem)
    result = go(counted, method, record_every=record_every, x0=x0)
    records = len(result.records)
    assert counted.backend.evaluated <= records + (x0 is not None)
    assert counted.backend.averages < records  # at the start the average is x itself


def test_a_second_order_run_reads_nothing_beyond_its_passes(problem):
    """Its recordings take what the method has evaluated, and averages over its steps are not evaluated."""
    counted = counting(problem)
    result = solve(counted, "san-admm", tol=1e-8, record_every=0)
    assert result.settings["step"] is None  # it has none, so that none is computed
    assert "largest_norm" not in vars(counted.backend)
    assert counted.backend.evaluated <= 2
    assert counted.backend.averages == 0


@pytest.mark.parametrize("method", ["san-admm", "proximal-gradient", "newton-admm", "batch-admm"])
def test_a_second_solve_counts_the_same_passes(method):
    problem = Problem(X, NUMBERS, "squared", psi=L1(0.03), A=chain(D))
    first, second = (solve(problem, method, tol=1e-6) for _ in range(2))
    assert first.passes == second.passes
    assert same(first, second)


def test_recording_is_off_the_clock(problem, monkeypatch):
    go(problem)  # compiled
    result = go(problem, callback=lambda snapshot: time.sleep(0.2))
    assert result.seconds < 0.5
    evaluate = Evaluator.at
    monkeypatch.setattr(Evaluator, "at", lambda *a: time.sleep(0.2) or evaluate(*a))
    assert go(problem).seconds < 0.5
    assert go(problem, tol=1e-14).seconds > 0.5  # the method's own test is not recording


def test_compiling_is_off_the_clock():
    """Read-only rows are a type of their own, so this problem compiles afresh unless the disk remembers."""
    table = np.asfortranarray(X.astype(np.float32))
    table.flags.writeable = False
    assert go(Problem(table, NUMBERS, "squared", psi=L1(0.03), A=A)).seconds < 0.5


# -- going on ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIRST_ORDER)
def test_a_warm_start_goes_on_as_if_never_stopped(method, problem):
    options = {"batch_size": 7, "x0": X0, "random_state": 5, "sampler": "permutation", "record_every": 1e-9}
    half, all_ = (lambda snapshot, steps=steps: snapshot.step_number >= steps for steps in (9, 20))
    first = go(problem, method, passes=FOREVER, callback=half, **options)
    second = go(problem, method, passes=FOREVER, callback=all_, warm_start=first, **options)
    whole = go(problem, method, passes=FOREVER, callback=all_, **options)
    assert same(second, whole)
    assert second.passes == pytest.approx(whole.passes)
    assert not same(first, whole)


def test_a_warm_start_keeps_the_selected_step(problem):
    first = go(problem, step="auto", passes=1)
    second = go(problem, step="auto", passes=1, warm_start=first)
    assert second.settings["step"] == first.settings["step"]
    assert second.tuning is None


def test_a_warm_start_from_a_run_that_never_moved(problem):
    never = go(problem, "sa-iu-admm", x0=X0, callback=lambda snapshot: True)
    assert never.passes == 0
    assert np.array_equal(never.x, X0)
    assert same(go(problem, "sa-iu-admm", warm_start=never), go(problem, "sa-iu-admm", x0=X0))


def test_a_warm_start_leaves_the_earlier_result_alone(problem):
    first = go(problem, "sa-iu-admm")
    before = {name: array.copy() for name, array in first.tables.items()}
    go(problem, "sa-iu-admm", warm_start=first)
    assert all(np.array_equal(before[name], first.tables[name]) for name in before)


# -- averages, seeds, starts -------------------------------------------------------------------------------------


def test_averages_are_means_over_all_steps(problem):
    kept = []
    result = go(problem, passes=2, x0=X0, record_every=1e-9, callback=kept.append)
    steps = kept[1:]  # from t = 1 on, as in Algorithm 1
    assert [snapshot.step_number for snapshot in steps] == list(range(1, 2 * N + 1))
    assert np.allclose(result.x_average, np.mean([s.x for s in steps], axis=0), rtol=0, atol=1e-14)
    assert np.allclose(result.y_average, np.mean([s.y for s in steps], axis=0), rtol=0, atol=1e-14)


def test_a_seed_is_a_run(problem):
    assert same(go(problem, random_state=3), go(problem, random_state=np.int32(3)))
    assert not same(go(problem, random_state=3), go(problem, random_state=4))
    drawn = [go(problem, random_state=np.random.default_rng(7)) for _ in range(2)]
    assert same(*drawn)
    legacy = [go(problem, random_state=np.random.RandomState(7)) for _ in range(2)]
    assert same(*legacy)
    assert not same(go(problem, random_state=None), go(problem, random_state=None))


def test_a_generator_moves_on(problem):
    generator = np.random.default_rng(7)
    assert not same(go(problem, random_state=generator), go(problem, random_state=generator))


@pytest.mark.parametrize("sampler", ["uniform", "permutation", "cyclic"])
def test_samplers_by_name(sampler, problem):
    assert same(go(problem, sampler=sampler), go(problem, sampler=sampler))


def test_starting_points(problem):
    y0, dual0 = np.linspace(-1, 1, problem.n_split), np.linspace(0, 1, problem.n_constraints)
    kept = []
    go(problem, x0=X0, y0=y0, dual0=dual0, callback=kept.append)
    assert np.array_equal(kept[0].x, X0)
    assert np.array_equal(kept[0].y, y0)
    assert np.array_equal(kept[0].dual, dual0)
    go(problem, x0=X0, callback=kept.append)
    assert np.allclose(kept[5].y, problem.y_of_x(X0))


def test_a_batch_larger_than_the_data_is_all_of_it(problem):
    assert same(go(problem, batch_size=10 * N), go(problem, batch_size=N))


# -- what is left alone ------------------------------------------------------------------------------------------


def test_nothing_global_changes(problem):
    state, settings = np.random.get_state(), np.geterr()  # noqa: NPY002
    handler = signal.getsignal(signal.SIGINT)
    x0 = X0.copy()
    go(problem, random_state=None, step="auto", x0=x0)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))
    assert np.geterr() == settings
    assert signal.getsignal(signal.SIGINT) is handler
    assert np.array_equal(x0, X0)


# -- the bar -----------------------------------------------------------------------------------------------------


def test_the_bar(problem, capsys):
    assert same(go(problem, progress=True), go(problem))
    assert "opg-admm" in capsys.readouterr().err


@pytest.mark.parametrize("options", [{}, {"verbose": 1}, {"verbose": 1, "progress": False}])
def test_no_bar_without_a_terminal(options, problem, capsys):
    go(problem, **options)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bar_without_rich_says_what_to_install(problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match="progress=True needs rich"):
        go(problem, progress=True)


def test_a_result_in_words(problem):
    assert str(go(problem)).startswith("opg-admm: pass limit after 4 passes and")
    selected = go(problem, step="auto")
    assert selected.selection_passes == selected.tuning.samples_touched / problem.n_samples > 0
    assert f"after 4 passes (+{selected.selection_passes:.6g} to select the step)" in str(selected)
    assert selected.run_passes == pytest.approx(selected.passes - selected.selection_passes)


def test_objects_are_described_in_a_line():
    """No wall of arrays, no address."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    problem = Problem(X, X[:, 0], loss="squared", psi=L1(0.1), A="identity", omega=SquaredL2(0.5))
    result = solve(problem, tol=1e-6)
    solutions = path(problem, n_alphas=3)
    graph = skadmm.FusedLassoRegressor(alpha=0.1).fit(X, X[:, 0]).graph_
    assert repr(problem) == "Problem(X=40 × 6 (dense), loss=squared, omega=SquaredL2(0.5), psi=L1(0.1), A=6 × 6)"
    assert repr(graph) == "FeatureGraph(features=6, edges=5)"
    for thing, words in (
        (problem, "40 × 6"), (result, "solved"), (solutions, "3 of 3"), (graph, "FeatureGraph"),
        (skadmm.ALGORITHMS, "sa-iu-admm"), (skadmm.SOLVERS, "newton-admm"),
    ):  # fmt: skip
        text, page = repr(thing), thing._repr_html_()
        assert words in text
        assert words in page
        assert page.startswith("<table>")
        assert "\n" not in text
        assert "array(" not in text
        assert " at 0x" not in text


# -- plots by name -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PLOTS))
def test_plots_are_found_by_name(name):
    assert plot(name) is getattr(plotting, name)
