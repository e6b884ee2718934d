"""The methods with a variance-reduced gradient equal their NumPy twins, and become older methods in special cases."""

import numpy as np
import pytest
import reference
import reference_successors
from twins import CLASSES, RHO, TOLERANCE, X0, D, N, X, order_of, pair, with_omega

from skadmm import ALGORITHMS, Problem, Status, solve
from skadmm.operators import chain
from skadmm.regularizers import L1, SquaredL2
from skadmm.solvers import Setup, dual_update

METHODS = list(reference_successors.METHODS)
CHAIN = np.eye(D)[1:] - np.eye(D)[:-1]  # of full row rank, unlike the A of the twins
# What touches samples is the same code for all six, so three of them show it for the other losses and sparse rows.
CELLS = [(method, "logistic", "dense") for method in METHODS] + [
    ("saga-iu-admm", "huber", "csr"),
    ("svrg-admm", "squared-hinge", "csr"),
    ("asvrg-iu-admm", "squared", "csr"),
]
RESTARTED = ["svrg-admm", "asvrg-iu-admm"]


def run(both, method, batch_size, order, **options):
    """(x, y, dual) after every step, one row a step, and the clock."""
    algorithm = ALGORITHMS[method]
    both.model.step = both.model.step or 10 * algorithm.theory_step(both.problem, RHO)
    setup = Setup(both.problem, RHO, both.model.step, batch_size, both.mode, options=algorithm.settled(options))
    engine = algorithm.start(setup, dual_update.start(both.problem, X0, both.model.start(X0)[1], None))
    rows = []
    for k in order:
        engine.advance(np.array([k]))
        rows.append(np.concatenate([engine.point.x, engine.point.y, engine.point.dual]))
    return np.array(rows), engine.point.clock


def assert_twins(both, method, batch_size, **options):
    order = order_of(batch_size)
    mine, _ = run(both, method, batch_size, order, **options)
    blocks = reference.cut(N, batch_size)
    steps = reference_successors.iterates(method, both.model, [blocks[k] for k in order], X0, **options)
    theirs = np.array([np.concatenate(triple) for triple in steps])
    assert np.isfinite(theirs).all()
    assert np.abs(mine - theirs).max() <= TOLERANCE


def strongly_convex(loss, kind, omega=None):
    return pair(loss, kind, A=CHAIN, c=np.zeros(D - 1), omega=omega)


@pytest.mark.parametrize(("method", "loss", "kind"), CELLS)
def test_iterates_are_the_twins(method, loss, kind):
    for batch_size in (1, 7):
        assert_twins(pair(loss, kind), method, batch_size)


@pytest.mark.parametrize("method", RESTARTED)
def test_iterates_of_the_strongly_convex_form_are_the_twins(method):
    options = {"form": "strongly-convex", "epoch": 0.7} | ({"theta": 0.3} if method.startswith("a") else {})
    for batch_size in (1, 7):
        assert_twins(strongly_convex("logistic", "dense"), method, batch_size, **options)


@pytest.mark.parametrize(
    ("method", "mode", "omega"),
    [
        ("saga-admm", "subgradient", "l1"),
        ("saga-admm", "system", "squared-l2"),
        ("svrg-admm", "system", "squared-l2"),
        ("svrg-iu-admm", "fold", "l1"),
        ("asvrg-admm", "system", "squared-l2"),
        ("asvrg-iu-admm", "prox", "l1"),
    ],
)
def test_iterates_with_omega_are_the_twins(method, mode, omega):
    assert mode in ALGORITHMS[method].omega
    assert_twins(with_omega("logistic", "dense", mode, omega), method, 7)


def test_the_strongly_convex_form_counts_a_ridge_in_its_dual():
    both = strongly_convex("logistic", "dense", SquaredL2(0.05))
    both.model.ridge, both.mode = 0.05, "system"
    assert_twins(both, "svrg-admm", 7, form="strongly-convex")


# -- special cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["admm", "iu-admm"])
def test_a_snapshot_every_step_is_the_batch_method(kind):
    order = order_of(7)
    snapshots, clock = run(pair(step=0.7), f"svrg-{kind}", 7, order, epoch=1e-9)
    batch, _ = run(pair(step=0.7), f"batch-{kind}", 7, order)
    assert np.abs(snapshots - batch).max() <= 1e-10
    assert clock[1] >= order.size * N  # every snapshot is a pass


@pytest.mark.parametrize("kind", ["admm", "iu-admm"])
def test_one_block_makes_saga_the_batch_method(kind):
    order = np.zeros(100, np.int64)
    one, _ = run(pair(step=0.7), f"saga-{kind}", N, order)
    batch, _ = run(pair(step=0.7), f"batch-{kind}", N, order)
    assert np.abs(one - batch).max() <= 1e-10


@pytest.mark.parametrize(("kind", "form"), [("admm", "general"), ("iu-admm", "general"), ("admm", "strongly-convex")])
def test_without_momentum_acceleration_is_plain(kind, form):
    order = order_of(7)
    both = [strongly_convex("logistic", "dense") for _ in range(2)]
    for one in both:
        one.model.step = 0.7
    plain, _ = run(both[0], f"svrg-{kind}", 7, order, form=form)
    theta_one, _ = run(both[1], f"asvrg-{kind}", 7, order, form=form, theta=1.0)
    assert np.abs(plain - theta_one).max() <= 1e-10


# -- what is counted ---------------------------------------------------------------------------------------------


def test_every_sample_touched_is_counted():
    order = order_of(1)[:100]
    _, saga = run(pair(), "saga-iu-admm", 1, order)
    assert saga[1] == N + 100  # the table's pass, and one sample a step
    _, svrg = run(pair(), "svrg-iu-admm", 1, order, epoch=1.0)
    assert svrg[1] == (1 + 99 // N) * N + 100  # a pass for x₀'s snapshot and for each later one


# -- optimality --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_tolerance_is_met(method):
    problem = pair(c=None).problem
    step = 5 * ALGORITHMS[method].theory_step(problem, RHO)
    result = solve(problem, method, rho=RHO, step=step, passes=4000, tol=1e-6, record_every=50)
    assert result.status is Status.SOLVED, result.message
    assert result.stopped_on == "gap"
    assert problem.kkt(result.x, result.y, RHO * result.dual).relative <= 1e-2


@pytest.mark.parametrize("method", RESTARTED)
def test_the_strongly_convex_form_reaches_the_optimum(method):
    problem = Problem(X, CLASSES, psi=L1(0.03), A=chain(D))
    best = solve(problem, "san-admm", tol=1e-10).objective
    options = {"form": "strongly-convex", "epoch": 5}
    result = solve(problem, method, rho=RHO, step="theory", passes=3000, record_every=0, options=options)
    assert result.objective == pytest.approx(best, rel=1e-6)


# -- at the door -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("svrg-admm", {"theta": 1}, r"^options has 'theta': svrg-admm takes epoch, form$"),
        ("sa-admm", {"epoch": 1}, r"^options has 'epoch': sa-admm takes table$"),
        ("opg-admm", {"table": "x0"}, r"^options has 'table': opg-admm takes none$"),
        ("saga-admm", {"table": "x1"}, r"^options\['table'\]='x1': it takes one of 'x0', 'zero'$"),
        ("svrg-admm", {"epoch": 0}, r"^options\['epoch'\]=0: it takes a finite number > 0$"),
        ("svrg-admm", {"form": "weak"}, r"^options\['form'\]='weak': it takes one of 'general', 'strongly-convex'$"),
        ("asvrg-admm", {"theta": 1.5}, r"^options\['theta'\]=1.5: it takes a number > 0 and ≤ 1$"),
        ("svrg-admm", {"form": "strongly-convex"}, r"^form='strongly-convex' needs an A of full row rank"),
    ],
)
def test_options_are_checked(method, options, said):
    with pytest.raises(ValueError, match=said):
        solve(pair().problem, method, step="theory", passes=1, options=options)


def test_options_are_a_dictionary():
    with pytest.raises(TypeError, match=r"^options='epoch': it takes a dictionary"):
        solve(pair().problem, "svrg-admm", step="theory", passes=1, options="epoch")


def test_the_strongly_convex_form_needs_a_smooth_omega():
    problem = Problem(X, CLASSES, psi=L1(0.03), A=chain(D), omega=L1(0.1))
    with pytest.raises(ValueError, match=r"^form='strongly-convex' needs a smooth omega, got L1"):
        solve(problem, "svrg-iu-admm", step="theory", passes=1, options={"form": "strongly-convex"})


def test_a_warm_start_keeps_the_options():
    problem = pair().problem
    first = solve(problem, "svrg-admm", step="theory", passes=2, options={"epoch": 3})
    assert first.settings["epoch"] == 3
    with pytest.raises(ValueError, match=r"^warm_start: the earlier run had epoch=3.0, this one has 2.0"):
        solve(problem, "svrg-admm", step="theory", passes=2, warm_start=first)
