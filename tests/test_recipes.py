"""The recipes of CONTRIBUTING.md, followed to the letter."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import reference_prox
import test_losses
import test_optimality_prox
from skadmm import ALGORITHMS, Problem, compare, solve
from skadmm.losses import LOSSES
from skadmm.operators import OPERATORS, chain
from skadmm.regularizers import L1, REGULARIZERS

ROOT = Path(__file__).resolve().parents[1]


def recipe(title: str) -> list[str]:
    """The code blocks under one heading of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture
def follow(tmp_path, monkeypatch):
    """Write a recipe's file as a module of its own, with the registries put back afterwards."""
    for registry in (LOSSES, REGULARIZERS, OPERATORS, ALGORITHMS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str):
        path = Path(re.match(r"# (src/skadmm/\w+/\w+\.py)\n", source)[1])
        assert (ROOT / path.parent).is_dir()
        assert not (ROOT / path).exists()
        (tmp_path / path.name).write_text(source, encoding="utf-8")
        return importlib.import_module(path.stem)

    return write


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    return X, X @ [1.0, 1.0, 0.0, 0.0, -1.0]


def test_the_recipe_for_a_loss(follow, data):
    source, line, instances = recipe("Add a loss")
    names = vars(follow(source))
    exec(line, {"LOSSES": LOSSES} | names)
    (loss,) = eval(instances, names)["log-cosh"]
    targets = [-2.5, 0.0, 1.0, 7.0]
    pairs = [(z, b) for z in np.linspace(-4, 4, 9) + 0.01 for b in targets]
    test_losses.test_derivative_is_the_slope_of_the_value(loss, pairs)
    test_losses.test_curvature_is_the_slope_of_the_derivative(loss, pairs)
    test_losses.test_fenchel_young_is_an_equality_at_the_derivative(loss, pairs, targets)
    test_losses.test_extreme_margins_are_finite(loss, targets)
    problem = Problem(*data, loss="log-cosh", psi=L1(1e-3), A=chain(5))
    result = solve(problem, "sa-iu-admm", rho=0.1, passes=60, step=1.0)
    assert result.objective < 0.1 * problem.objective(np.zeros(5))


def test_the_recipe_for_a_regulariser(follow, data):
    source, line, instances, twin = recipe("Add a regulariser")
    names = vars(follow(source))
    exec(line, {"REGULARIZERS": REGULARIZERS} | names)
    regs = eval(instances, names)["positive-part"]
    slow = eval(twin, vars(reference_prox))["positive-part"]
    for raw in regs:
        reg = raw.prepared(7, "omega")
        for v in test_optimality_prox.POINTS:
            for step in test_optimality_prox.STEPS:
                fast = test_optimality_prox.prox_of(reg, v, step)
                np.testing.assert_allclose(fast, slow(raw, v, step), rtol=1e-9, atol=1e-12)
    X, target = data
    problem = Problem(X, target, loss="squared", psi=names["PositivePart"](100.0))
    result = solve(problem, "sa-iu-admm", rho=1.0, passes=200, step=0.1)
    assert result.y.max() <= 1e-6  # so dear that no coordinate stays positive
    assert result.y.min() < -0.5


def test_the_recipe_for_an_operator(follow, data):
    source, line = recipe("Add an operator")
    ring = follow(source).ring
    exec(line, {"OPERATORS": OPERATORS, "ring": ring})
    x = np.arange(5.0) ** 2
    np.testing.assert_array_equal(OPERATORS["ring"](5) @ x, np.roll(x, -1) - x)
    with pytest.raises(ValueError, match="d must be an integer ≥ 3"):
        ring(2)
    problem = Problem(*data, loss="squared", psi=L1(1e-3), A=ring(5))
    assert solve(problem, "sa-iu-admm", rho=0.1, passes=20, step=0.1).objective < problem.objective(np.zeros(5))


def test_the_recipe_for_an_algorithm(follow, data):
    source, line = recipe("Add an algorithm")
    assert "sg-iu-admm" not in ALGORITHMS
    module = follow(source)
    assert line.strip() == f"from skadmm.solvers import {module.__name__}"
    problem = Problem(*data, loss="squared", psi=L1(1e-3), A=chain(5))
    frame = compare(problem, ["sg-iu-admm"], repeats=2, rho=0.1, passes=20)
    assert (frame.groupby("repeat")["objective"].last() < 0.05 * problem.objective(np.zeros(5))).all()
