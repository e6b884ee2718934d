"""Two commits in turns: seconds of the default solver to a relative suboptimality of 1e-6, before and after a change.

    python benchmarks/commits.py --before v0.1.0             every data set found, this checkout against a commit
    python benchmarks/commits.py --before HEAD~5 --data a9a  one data set
    python benchmarks/commits.py --before HEAD~5 --rounds 5  more turns

For each real data set: half the rows, A = [G; I] with the precision graph of that half, as in ``san.py``. chain, lasso,
lasso-logistic and groups are the simulated problems of ``generalized_lasso``. The problem is built once and written to
a temporary folder. Then processes of both commits in turn load it, solve it several times and report their best time;
the table shows the best of all turns, and the ratio (below 1: the change made it faster).

On hiv-path4932 the number of steps depends on rounding: at strengths that differ by 1e-9, relatively, one and the same
commit takes 22 to 28 passes. ``--draws 9`` solves at nine such strengths and reports medians over them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from _trees import ROOT, checkout, environment

TARGET = 1e-6
SIMULATED = {
    "chain": ("chain", "squared"),
    "lasso": ("identity", "squared"),
    "lasso-logistic": ("identity", "logistic"),
    "groups": ("groups", "squared"),
}
"""The structure and the loss of the simulated problems, 5,000 × 500."""


def real(name: str, seed: int) -> dict[str, Any]:
    """X, the target, A, λ and the loss of half of a data set."""
    from _common import graph_guided
    from san import SETS, half_of

    strength, standardise, _ = SETS[name]
    X, target = half_of(name, standardise, seed)
    A = graph_guided(X, target, strength).constraint.A
    return {"X": X, "target": target, "A": A, "strength": strength, "loss": "logistic"}


def simulated(name: str, seed: int) -> dict[str, Any]:
    """The same of a simulated problem of the public benchmark; groups of one feature where it has none."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "generalized_lasso"))
    from benchmark_utils.data import simulated as drawn

    structure, loss = SIMULATED[name]
    parts = drawn(5000, 500, loss=loss, structure=structure, seed=seed)
    return parts | {"group_size": getattr(parts["A"], "group_size", 1)}


def write_problem(folder: Path, name: str, seed: int) -> Path:
    """One problem in a file."""
    path = folder / f"{name}.npz"
    parts = simulated(name, seed) if name in SIMULATED else real(name, seed)
    for key, matrix in (("X", parts.pop("X")), ("A", parts.pop("A"))):
        if sp.issparse(matrix):
            stored = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
            parts |= {f"{key}.{field}": value for field, value in stored.items()}
        else:
            parts[key] = matrix
    np.savez(path, **parts)
    return path


def read_matrix(parts: Any, key: str) -> Any:
    """A matrix as :func:`write_problem` stored it."""
    if key in parts:
        return parts[key]
    return sp.csr_array(
        (parts[f"{key}.data"], parts[f"{key}.indices"], parts[f"{key}.indptr"]), shape=tuple(parts[f"{key}.shape"])
    )


def measure(path: Path, repeats: int, draws: int) -> dict[str, float]:
    """What one process measures: the best time to the target, passes there, and the optimum it is measured against;
    medians over strengths that hardly differ."""
    from skadmm import Problem, solve
    from skadmm.regularizers import L1, GroupL2

    with np.load(path) as parts:
        X, A, target = read_matrix(parts, "X"), read_matrix(parts, "A"), parts["target"]
        strength, loss = float(parts["strength"]), str(parts["loss"])
        group_size = int(parts["group_size"]) if "group_size" in parts else 1
    runs = []
    for draw in range(draws):
        near = strength * (1.0 + 1e-9 * draw)
        if group_size > 1:
            problem = Problem(X, target, loss, psi=GroupL2(near, np.arange(X.shape[1]) // group_size))
        else:
            problem = Problem(X, target, loss, psi=L1(near), A=A)
        optimum = solve(problem, "san-admm", tol=1e-10, passes=300, record_every=0).objective  # compiles, too
        best = {"seconds": np.inf, "passes": np.nan, "optimum": optimum}
        for _ in range(repeats):
            trace = solve(problem, "san-admm", tol=1e-8, passes=300, record_every=1e-9).trace
            hit = trace[(trace["objective"] - optimum) / optimum <= TARGET].iloc[0]
            if hit["seconds"] < best["seconds"]:
                best |= {"seconds": float(hit["seconds"]), "passes": float(hit["passes"])}
        runs.append(best)
    return {key: float(np.median([run[key] for run in runs])) for key in ("seconds", "passes", "optimum")}


def in_process(source: Path, path: Path, repeats: int, draws: int) -> dict[str, float]:
    """:func:`measure` with the package at `source`, in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(path), "--repeats", str(repeats), "--draws", str(draws)]
    process = subprocess.run(command, env=environment(source), capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def compare(before: Path, names: list[str], rounds: int, repeats: int, draws: int, seed: int) -> None:
    """The table."""
    print(f"{'data':14}{'before, s':>11}{'passes':>8}{'after, s':>11}{'passes':>8}{'ratio':>8}   optima differ by")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = write_problem(Path(folder), name, seed)
            runs: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
            for _ in range(rounds):
                runs["before"].append(in_process(before, path, repeats, draws))
                runs["after"].append(in_process(ROOT, path, repeats, draws))
            old, new = (min(turns, key=lambda run: run["seconds"]) for turns in runs.values())
            apart = abs(new["optimum"] - old["optimum"]) / old["optimum"]
            shown = f"{old['seconds']:>11.4f}{old['passes']:>8.2f}{new['seconds']:>11.4f}{new['passes']:>8.2f}"
            print(f"{name:14}{shown}{new['seconds'] / old['seconds']:>8.3f}   {apart:.1e}", flush=True)


def main() -> None:
    """Run the selected comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the commit to compare with")
    parser.add_argument("--data", help="names, separated by commas; all sets of san.py and all simulated by default")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each commit")
    parser.add_argument("--repeats", type=int, default=3, help="solves in a turn")
    parser.add_argument("--draws", type=int, default=1, help="strengths, which differ by 1e-9")
    parser.add_argument("--seed", type=int, default=0, help="which half of the rows")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.measure), options.repeats, options.draws)))
        return
    if not options.before:
        parser.error("--before takes a commit")
    from san import SETS  # not before: a process that measures has the package of another commit

    names = options.data.split(",") if options.data else [*SETS, *SIMULATED]
    with checkout(options.before) as tree:
        compare(tree, names, options.rounds, options.repeats, options.draws, options.seed)


if __name__ == "__main__":
    main()
