"""Methods with a table of gradients equal their NumPy twins however the table starts, in memory and in files; runs that
are continued know which samples have been seen; step selection knows how the table starts."""

import numpy as np
import pytest
import reference
from runs import assert_same, killed_after
from table_twins import METHODS, assert_twins, iterates_of, started, twin_of
from twins import CLASSES, KINDS, RHO, TOLERANCE, WEIGHT, X0, A, C, D, N, X, order_of, pair, target, with_omega

from skadmm import ALGORITHMS, Problem, solve
from skadmm.backends.convert import write_blocks
from skadmm.regularizers import L1
from skadmm.run import step_size

ZERO = {"options": {"table": "zero"}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_iterates_from_a_table_of_zeros_are_the_twins(method, loss, kind):
    for batch_size in (1, 7):
        assert_twins(pair(loss, kind), method, batch_size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", reference.LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_iterates_on_files_are_the_twins(method, loss, kind, tmp_path):
    make = KINDS[kind]
    parts = ((make(X[k : k + 15]), target(loss)[k : k + 15], WEIGHT[k : k + 15]) for k in range(0, N, 15))
    write_blocks(tmp_path / "rows", parts)
    both = pair(loss, kind)
    there = Problem(tmp_path / "rows", loss=loss, psi=both.problem.psi, A=A, c=C)
    for batch_size in (1, 7):
        assert_twins(both, method, batch_size, problem=there)


@pytest.mark.parametrize(
    ("method", "mode", "omega"),
    [("sa-admm", "system", "squared-l2"), ("sa-iu-admm", "prox", "l1"), ("saga-iu-admm", "prox", "l1")],
)
def test_iterates_with_omega_are_the_twins(method, mode, omega):
    assert_twins(with_omega("logistic", "dense", mode, omega), method, 7)


# -- continued runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_state_carries_which_samples_have_been_seen(method):
    """Another engine goes on from the state of the first, before all samples have been seen."""
    both, order = pair(), order_of(1)
    first = started(both, method, 1, "zero")
    before = iterates_of(first, order[:20])
    assert not first.rule.visited.all()
    second = started(both, method, 1, "zero")
    second.resume({name: array.copy() for name, array in first.state().items()})
    np.testing.assert_array_equal(second.rule.visited, first.rule.visited)
    theirs = twin_of(method, both.model, 1, order, "zero")
    assert np.abs(np.vstack([before, iterates_of(second, order[20:])]) - theirs).max() <= TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_checkpoints_and_warm_starts_go_on_from_a_half_filled_table(method, tmp_path, monkeypatch):
    problem = pair().problem
    run = {"problem": problem, "method": method, "rho": RHO, "step": 0.5, "x0": X0, "record_every": 0.1, **ZERO}
    whole = solve(passes=3, **run)
    assert whole.records[-1]["passes"] == pytest.approx(3)
    killed_after(monkeypatch, tmp_path / "c", 1, passes=3, **run)
    assert_same(solve(passes=3, checkpoint=tmp_path / "c", **run), whole)
    order = order_of(1, 40)
    run |= {"sampler": order, "record_every": 0}
    del run["x0"]
    first = solve(passes=0.5, **run)
    seen = int(first.tables["rule.visited"].sum())
    assert 0 < seen < N
    warm = solve(passes=0.5, warm_start=first, **run)
    np.testing.assert_array_equal(warm.x, solve(passes=1, **run).x)
    with pytest.raises(ValueError, match=r"^warm_start: the earlier run had table='zero', this one has 'x0'"):
        solve(passes=1, warm_start=first, **(run | {"options": {"table": "x0"}}))


# -- the choice of a step ----------------------------------------------------------------------------------------


def many(n=1500):
    table = np.random.default_rng(0).standard_normal((n, D))
    return Problem(table, table[:, 0] > 0.3 * table[:, 1], psi=L1(0.03), A=A)


@pytest.mark.parametrize("method", METHODS)
def test_the_step_grows_with_the_samples_for_an_average_from_zero_only(method):
    problem = many()
    choices = {table: solve(problem, method, passes=1e-9, options={"table": table}).tuning for table in ("x0", "zero")}
    scaled = 1500 / step_size.SUBSET if method.startswith("sa-") else 1.0
    for table, scale in (("x0", 1.0), ("zero", scaled)):
        choice = choices[table]
        assert (choice.subset, choice.scale) == (step_size.SUBSET, scale)
        best = int(np.argmin(choice.objectives))
        assert choice.step == choice.candidates[best] * scale
    few = solve(many(80), method, passes=1e-9, **ZERO).tuning
    assert (few.subset, few.scale) == (80, 1.0)


@pytest.mark.parametrize(("shift", "edge"), [(0.0, ""), (3.0, "smallest"), (-7.0, "largest")])
def test_a_choice_at_an_end_of_its_grid_is_reported(shift, edge, monkeypatch):
    usual = step_size.candidates
    monkeypatch.setattr(step_size, "candidates", lambda *given: usual(*given) * 10**shift)
    result = solve(many(80), "opg-admm", passes=1)
    assert result.tuning.at_edge == edge
    assert ("the selected step is the" in result.message) == bool(edge)
    assert edge in result.message


def test_the_selection_starts_where_the_run_starts():
    problem = many(80)
    best = solve(problem, "san-admm", tol=1e-9)
    cold, warm = (solve(problem, "opg-admm", passes=1e-9, x0=x0).tuning for x0 in (None, best.x))
    assert warm.objectives[0] < cold.objectives[0]  # the shortest step hardly leaves the start


def test_a_table_of_zeros_needs_no_pass():
    problem = Problem(X, CLASSES, psi=L1(0.03), A=A, c=C, sample_weight=WEIGHT)
    for method in METHODS:
        assert "table" in ALGORITHMS[method].options
        result = solve(problem, method, step=0.5, passes=1, record_every=0, **ZERO)
        assert result.passes == 1
        assert result.settings["table"] == "zero"
        assert not np.array_equal(result.x, np.zeros(D))
