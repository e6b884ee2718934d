"""The benchopt benchmark: its own objective, baselines and page. benchopt itself is needed by the last test only."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skadmm import ALGORITHMS

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "generalized_lasso"
SOLVERS, DATASETS = sorted((FOLDER / "solvers").glob("*.py")), sorted((FOLDER / "datasets").glob("*.py"))
STRUCTURES = ("graph", "chain", "identity", "groups")


@pytest.fixture(scope="module", autouse=True)
def utils():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


def small(loss="logistic", structure="graph"):
    from benchmark_utils.data import simulated

    return simulated(120, 12, loss=loss, structure=structure)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_objective_is_that_of_the_problem(loss, structure):
    from benchmark_utils.problem import gradient, objective, structure_of
    from benchmark_utils.reference import as_problem

    data = small(loss, structure)
    problem = as_problem(**data)
    x = np.random.default_rng(1).standard_normal(12)
    assert objective(**data, x=x) == pytest.approx(problem.objective(x), rel=1e-12)
    assert np.allclose(gradient(data["X"], data["target"], loss, x), problem.gradient(x), rtol=1e-12, atol=1e-14)
    assert structure_of(data["A"]) == {"graph": "general"}.get(structure, structure)


@pytest.mark.parametrize("structure", ["graph", "identity", "groups"])
def test_the_optimum_comes_with_a_bound_close_below(structure):
    from benchmark_utils.problem import objective
    from benchmark_utils.reference import optimum

    best = optimum(**small(structure=structure))
    assert best.bound <= best.value <= best.bound * (1 + 1e-9)
    assert best.value < objective(**small(structure=structure), x=np.zeros(12))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_condat_vu_reaches_the_optimum(loss, sparse):
    import scipy.sparse
    from benchmark_utils.baselines import CondatVu
    from benchmark_utils.problem import objective
    from benchmark_utils.reference import optimum

    data = small(loss)
    table = scipy.sparse.csr_array(data["X"]) if sparse else data["X"]
    method = CondatVu(**(data | {"X": table}), balance=0.1)
    for _ in range(4000):
        method.step()
    assert objective(**data, x=method.x) == pytest.approx(optimum(**data).value, rel=1e-8)


def test_smoothing_is_close_from_below_and_its_gradient_right():
    from benchmark_utils.baselines import smoothed, smoothed_objective

    data, width = small(), 0.3
    A, strength = data["A"], data["strength"]
    x = np.random.default_rng(2).standard_normal(12)
    value, slope = smoothed(A, strength, width, x)
    full = strength * np.abs(A @ x).sum()
    assert full - strength * A.shape[0] * width / 2 <= value <= full
    shifts = 1e-6 * np.eye(12)
    numeric = [(smoothed(A, strength, width, x + h)[0] - smoothed(A, strength, width, x - h)[0]) / 2e-6 for h in shifts]
    assert np.allclose(slope, numeric, atol=1e-8)
    whole = [(smoothed_objective(**data, width=width, x=x + h)[0] - smoothed_objective(**data, width=width, x=x - h)[0])
             / 2e-6 for h in shifts]  # fmt: skip
    assert np.allclose(smoothed_objective(**data, width=width, x=x)[1], whole, atol=1e-8)


def test_fista_on_the_smoothed_penalty_ends_within_its_width():
    from benchmark_utils.baselines import SmoothedFista
    from benchmark_utils.problem import objective
    from benchmark_utils.reference import optimum

    data, width = small(), 1e-3
    method = SmoothedFista(**data, width=width)
    for _ in range(5000):
        method.step()
    slack = data["strength"] * data["A"].shape[0] * width / 2
    assert 0 <= objective(**data, x=method.x) - optimum(**data).value <= slack * 1.01


def test_a_missing_file_gives_simulated_data(tmp_path, monkeypatch, capsys):
    from benchmark_utils import data

    monkeypatch.setenv("SKADMM_DATA", str(tmp_path))
    real = data.real.__wrapped__("a9a", standardise=False, strength=1e-5, penalty="l1")
    assert "simulated data stand in for a9a" in capsys.readouterr().out
    assert set(real) == {"X", "target", "loss", "A", "strength"}


# -- files -------------------------------------------------------------------------------------------------------


def solver_class(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    names = {target.id: node.value for node in found.body if isinstance(node, ast.Assign) for target in node.targets}
    return found, names, {node.name: node for node in found.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)
def test_a_solver_takes_what_the_objective_gives(path):
    found, names, methods = solver_class(path)
    assert found.name == "Solver"
    shared = {base.id for base in found.bases} & {"FirstOrder", "Estimator"}
    assert {"name"} | (set() if shared else {"requirements", "sampling_strategy"}) <= set(names)
    asked = ["self", "X", "target", "loss", "A", "strength"]
    for method in ("set_objective", "skip"):
        if method in methods:
            assert [argument.arg for argument in methods[method].args.args] == asked
    assert shared or {"set_objective", "run", "get_result"} <= set(methods)
    assert not shared & {"FirstOrder"} or ast.literal_eval(names["method"]) in ALGORITHMS


def test_names_are_unique():
    for files in (SOLVERS, DATASETS):
        names = [ast.literal_eval(solver_class(path)[1]["name"]) for path in files]
        assert len(set(names)) == len(names) > 7


# -- the page ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("benchmark_page", FOLDER / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(**changes):
    rows = [("skadmm-auto", 0.1, 1e-2), ("skadmm-auto", 0.5, 1e-7), ("peer", 1.0, 1e-4), ("peer", 2.0, 1e-3),
            ("peer", 5.0, 1e-6), ("stuck", 9.0, 0.5)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["solver_name", "time", "objective_suboptimality"])
    about = {"dataset_name": "a9a[penalty=graph,strength=1e-05]", "objective_gap": 1e-3, "p_dataset_n": 10}
    return frame.assign(**about, objective_gradient_seconds=0.01).assign(**changes)


def test_the_page_tells_ratios(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "OUTPUTS", tmp_path)
    results().to_parquet(tmp_path / "graph.parquet")
    table = page.reached(page.curves(["graph", "special"])).set_index("solver")
    assert table.loc["peer", "seconds 1e-03"] == 1.0  # the quickest run that got there, not the first in the table
    assert table.loc["skadmm-auto", "gpe 1e-06"] == pytest.approx(50)
    assert np.isnan(table.loc["stuck", "seconds 1e-03"])
    lines = page.summary(table.reset_index())
    assert lines[2] == "| a9a | 1e-03 | `skadmm-auto` | 0.5 | 50 | `peer` | 1 | 100 | 2× |"
    assert lines[3].endswith("| `peer` | 5 | 500 | 10× |")
    assert page.title("a9a[penalty=l1,strength=1e-05]") == "a9a (penalty=l1)"


def test_the_curves_show_ours_and_the_five_best_in_colour(page, tmp_path, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [("skadmm-auto", 0.1, 1e-2), ("skadmm-auto", 0.5, 1e-7), ("stuck", 9.0, 0.5)]
    rows += [(f"peer{k}", float(k + 1), 1e-7) for k in range(8)]
    frame = pd.DataFrame(rows, columns=["solver_name", "time", "suboptimality"])
    frame = frame.assign(dataset_name="a9a", gpe=100 * frame["time"])
    assert page.best_others(frame) == [f"peer{k}" for k in range(5)]
    monkeypatch.setattr(page, "IMAGES", tmp_path)
    drawn = []
    monkeypatch.setattr(plt, "close", drawn.append)
    page.draw(frame, "a9a")
    legend = [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()]
    assert legend == ["4 other solvers", *(f"peer{k}" for k in range(5)), "skadmm-auto"]
    grey = [line for line in drawn[0].axes[0].lines if line.get_color() == "#C4C9CE"]
    assert len(grey) == 4
    monkeypatch.undo()
    plt.close(drawn[0])
    assert (tmp_path / "benchmarks-a9a.png").exists()


def test_a_run_in_another_environment_has_its_own_unit(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "OUTPUTS", tmp_path)
    results().to_parquet(tmp_path / "special.parquet")
    assert page.pinned() is None
    apart = results(objective_gradient_seconds=0.04)
    apart[apart["solver_name"] == "peer"].assign(solver_name="apart").to_parquet(tmp_path / "special-pinned.parquet")
    (tmp_path / "special-pinned.json").write_text('{"python": "3", "packages": "some 1.0", "timeout": 12.0}')
    frame = page.curves(["special", page.PINNED])
    table = page.reached(frame).set_index("solver")
    assert table.loc["apart", "gpe 1e-06"] == pytest.approx(table.loc["peer", "gpe 1e-06"] / 4)
    assert page.summary(table.reset_index())[3].endswith("| `apart` | 5 | 125 | 2.5× |")
    assert page.one_gradient(frame) == "10 ms, 40 ms (lightning and prox_tv)"
    assert "12 s per data set" in page.APART.format(**page.pinned())


def test_a_value_below_the_certified_bound_is_refused(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "OUTPUTS", tmp_path)
    with pytest.raises(SystemExit, match="no results of graph"):
        page.curves(["graph"])
    results(objective_gap=-1e-3).to_parquet(tmp_path / "graph.parquet")
    with pytest.raises(SystemExit, match="below the certified bound"):
        page.curves(["graph"])


def test_benchopt_runs_it(tmp_path):
    pytest.importorskip("benchopt")
    command = [sys.executable, "-m", "benchopt", "run", str(FOLDER), "-d", "simulated", "-s", "skadmm-auto",
               "-n", "12", "-r", "1", "--timeout", "60", "--no-plot", "--no-html", "--no-display", "--no-cache",
               "--output", str(tmp_path / "short.parquet")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    frame = pd.read_parquet(next(tmp_path.rglob("*.parquet")))
    assert frame["objective_suboptimality"].min() <= 1e-8
    assert frame["objective_gap"].min() >= 0
