"""What a status advises works when it is followed."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from skadmm import Problem, Status, solve
from skadmm.estimators import FusedLassoClassifier, FusedLassoRegressor
from skadmm.operators import chain, stack
from skadmm.regularizers import L1, SquaredL2

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 10))
TARGET = X @ np.repeat([1.0, 0.0], 5) + 0.3 * RNG.standard_normal(300)
LABELS = np.where(TARGET > 0, 1.0, -1.0)
BOTH = stack(chain(10), "identity")


@pytest.fixture
def problem():
    return Problem(X, LABELS, psi=L1(0.01), A=BOTH)


def test_pass_limit_raise_passes(problem):
    short = solve(problem, tol=1e-8, passes=1)
    assert short.status is Status.PASS_LIMIT
    assert solve(problem, tol=1e-8).status is Status.SOLVED


def test_pass_limit_of_a_first_order_method_precondition():
    scales = 10.0 ** np.linspace(-2, 2, 10)
    uneven = Problem(X * scales, TARGET, loss="squared", psi=L1(0.01), A=BOTH)
    optimum = solve(uneven, tol=1e-10).objective
    excess = []
    for precondition in (None, "diagonal"):
        short = solve(uneven, "sa-iu-admm", passes=30, precondition=precondition, random_state=0)
        assert short.status is Status.PASS_LIMIT
        excess.append(short.objective - optimum)
    assert excess[1] < 0.1 * excess[0]


def test_time_limit_continue(problem):
    short = solve(problem, tol=1e-8, time_limit=1e-9)
    assert short.status is Status.TIME_LIMIT
    assert solve(problem, tol=1e-8, warm_start=short).status is Status.SOLVED
    assert solve(problem, tol=1e-8, time_limit=600.0).status is Status.SOLVED


def test_stalled_raise_tol():
    without_gap = Problem(X, TARGET, loss="squared", psi=L1(0.01), A=chain(10))
    stuck = solve(without_gap, tol=1e-22)
    assert stuck.status is Status.STALLED
    assert solve(without_gap, tol=2 * stuck.kkt.relative).status is Status.SOLVED


def test_no_minimiser_penalise():
    endless = solve(Problem(X, np.where(X.sum(axis=1) > 0, 1.0, -1.0), psi=L1(0.01), A=chain(10)), passes=5)
    assert endless.status is Status.NO_MINIMISER
    held = Problem(X, np.where(X.sum(axis=1) > 0, 1.0, -1.0), psi=L1(0.01), A=BOTH)
    assert solve(held, tol=1e-8).status is Status.SOLVED


def test_no_minimiser_ridge_or_drop():
    """A ridge holds what no penalty reaches; without the features that the message names there is a minimiser."""
    rows, labels = np.column_stack([X, LABELS > 0]), LABELS.copy()
    labels[:150] = np.where(rows[:150, -1] > 0, labels[:150], -labels[:150])  # only the last column separates
    rows[:150, -1], labels[:150] = 0.0, RNG.choice([-1.0, 1.0], 150)
    A = stack(chain(10), "identity")
    wide = scipy.sparse.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], 11))
    endless = solve(Problem(rows, labels, psi=L1(0.01), A=wide))
    assert endless.status is Status.NO_MINIMISER
    assert "1 feature that occurs with one label only" in endless.message
    assert "(10)" in endless.message
    assert "l1_ratio > 0 or ridge > 0, or with Problem the identity added to A" in endless.message
    held = Problem(rows, labels, psi=L1(0.01), A=wide, omega=SquaredL2(1e-3))
    assert solve(held, tol=1e-8).status is Status.SOLVED
    assert solve(Problem(rows[:, :10], labels, psi=L1(0.01), A=A), tol=1e-8).status is Status.SOLVED


@pytest.mark.parametrize("change", [{"alpha": 1.0, "l1_ratio": 0.5}, {"l1_ratio": 0.5}, {"ridge": 1e-3}])
def test_no_minimiser_of_an_estimator(change):
    rows = X[:30, :4]
    model = FusedLassoClassifier(alpha=0.01, l1_ratio=0.0, fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="raise alpha, l1_ratio or ridge"):
        model.fit(rows, rows.sum(axis=1) > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(**change).fit(rows, rows.sum(axis=1) > 0)
    assert model.result_.status is Status.SOLVED


def test_stalled_scale_the_columns():
    uneven = Problem(X * 10.0 ** np.linspace(-6, 6, 10), TARGET, loss="squared", psi=L1(1e-3), A=BOTH)
    assert solve(uneven, tol=3e-14).status is Status.STALLED
    assert solve(Problem(X, TARGET, loss="squared", psi=L1(1e-3), A=BOTH), tol=3e-14).status is Status.SOLVED


def interrupt(state):
    if state.passes > 0:
        raise KeyboardInterrupt


def test_stopped_and_interrupted_continue(problem):
    broken = solve(problem, tol=1e-8, callback=interrupt, record_every=1e-9)
    assert broken.status is Status.INTERRUPTED
    assert solve(problem, tol=1e-8, warm_start=broken).status is Status.SOLVED
    ended = solve(problem, tol=1e-8, callback=lambda state: state.passes > 0, record_every=1e-9)
    assert ended.status is Status.STOPPED
    assert solve(problem, tol=1e-8, warm_start=ended).status is Status.SOLVED


@pytest.mark.parametrize(
    ("stop", "status"),
    [({"callback": interrupt}, Status.INTERRUPTED), ({"time_limit": 1e-9}, Status.TIME_LIMIT)],
)
def test_a_checkpoint_continues(problem, tmp_path, stop, status):
    kept = {"tol": 1e-8, "checkpoint": tmp_path / "run", "checkpoint_every": 0.0, "record_every": 1e-9}
    assert solve(problem, **kept, **stop).status is status
    assert solve(problem, **kept).status is Status.SOLVED


def test_diverged_scale_the_columns():
    wide = Problem(100.0 * X, TARGET, loss="squared", psi=L1(0.01))
    assert solve(wide, "sa-iu-admm", step=0.1, passes=50).status is Status.DIVERGED
    calm = solve(Problem(X, TARGET, loss="squared", psi=L1(0.01)), "sa-iu-admm", step=0.1, passes=50, random_state=0)
    assert calm.status is Status.PASS_LIMIT
    assert calm.objective < calm.trace["objective"].iloc[0]


def test_the_guide_has_every_status():
    """The table of docs/trouble.md, whose advice the tests here follow."""
    guide = Path(__file__).parents[2] / "docs" / "trouble.md"
    rows = re.findall(r"^\| `([A-Z_]+)` \|", guide.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert rows == [status.name for status in Status]


@pytest.mark.parametrize("step", ["auto", "theory"])
def test_diverged_smaller_step(step):
    squared = Problem(X, TARGET, loss="squared", psi=L1(0.01))
    assert solve(squared, "sa-iu-admm", step=1e3, passes=50).status is Status.DIVERGED
    calm = solve(squared, "sa-iu-admm", step=step, passes=50, random_state=0)
    assert calm.status is Status.PASS_LIMIT
    assert calm.objective < squared.loss_at_zero


def test_warnings_of_estimators():
    model = FusedLassoRegressor(alpha=0.05, max_passes=1, tol=1e-10)
    with pytest.warns(ConvergenceWarning, match="Raise max_passes"):
        model.fit(X, TARGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(max_passes=500).fit(X, TARGET)
    with pytest.warns(ConvergenceWarning, match="accepts this fit") as caught:
        model.set_params(tol=1e-22, l1_ratio=0.0).fit(X, TARGET)
    accepted = float(re.search(r"tol=(\S+) accepts", str(caught[0].message)).group(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(tol=accepted).fit(X, TARGET)
