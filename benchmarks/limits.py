"""Large problems, one by one, each in a process of its own: does the default arrive, in what time and memory?

    python benchmarks/limits.py [--cases grid3d trend2] [--tol 1e-4] [--limit 120] [--write]

Every problem is random but for the text, which is 20ng-ltc (see SKADMM_DATA). Seconds are those of ``solve``, or of
``alpha_max``, without reading data and compiling; memory is the largest of the process. ``--write`` keeps the rows
measured in limits.json and writes all that are there into docs/benchmarks.md.
"""

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from _common import ROOT, data_folder, table
from skadmm import Problem, alpha_max, solve
from skadmm.operators import chain, grid, incidence, stack, trend, wavelet
from skadmm.regularizers import L1, GroupL2


class Case(NamedTuple):
    """A problem to build, and what is said about it."""

    about: str
    build: Callable[[int], Problem]
    """At a size: 1 for the whole, less for a small one of the same kind, which compiles the kernels."""


def design(n: int, x: np.ndarray, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and targets Xx with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, x.size))
    margin = X @ x
    return X, margin + noise * margin.std() * rng.standard_normal(n)


def pieces(d: int, count: int, seed: int = 1) -> np.ndarray:
    """Piecewise constant coefficients, half of them zero."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, d), count, replace=False))
    levels = rng.standard_normal(count + 1) * (rng.random(count + 1) < 0.5)
    return np.repeat(levels, np.diff(np.concatenate([[0], cuts, [d]])))


def penalised(X: Any, target: np.ndarray, A: Any, share: float, loss: str = "squared") -> Problem:
    """λ is a share of the largest entry of the gradient at zero; along a line, of its largest multiplier."""
    unit = Problem(X, target, loss=loss, psi=L1(1.0), A=A)
    gradient, line = unit.gradient(np.zeros(unit.n_features)), unit.constraint.line
    strength = share * float(np.abs(gradient if line is None else line.multiplier(gradient)).max())
    return Problem(X, target, loss=loss, psi=L1(strength), A=A)


def grid3d(size: float, below: bool, share: float = 0.1) -> Problem:
    side = max(4, round(20 * size))
    x = np.zeros((side, side, side))
    x[: side // 2, side // 3 :, side // 4 : side // 2] = 1.0
    X, target = design(max(30, round(1000 * size)), x.ravel())
    A = grid((side, side, side))
    return penalised(X, target, stack(A, "identity") if below else A, share)


def random_graph(size: float, d: int, n: int, loss: str = "squared", below: bool = False) -> Problem:
    d, n = max(60, round(size * d)), max(30, round(size * n))
    rng = np.random.default_rng(2)
    edges = rng.integers(d, size=(3 * d, 2))
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    X, target = design(n, pieces(d, 12))
    if loss == "logistic":
        target = np.sign(target)
    A = incidence(edges, n_features=d)
    return penalised(X, target, stack(A, "identity") if below else A, 0.05, loss)


def along_line(size: float, d: int, n: int, order: int, loss: str = "squared", below: bool = False) -> Problem:
    d, n = max(60, round(size * d)), max(30, round(size * n))
    x = np.cumsum(pieces(d, 6)) / d
    X, target = design(n, x)
    if loss == "logistic":
        target = np.sign(target)
    A = chain(d) if order == 0 else trend(d, order)
    return penalised(X, target, stack(A, "identity") if below else A, 0.1 if below else 0.01, loss)


def wavelets(size: float, d: int, n: int, name: str = "db2") -> Problem:
    d, n = max(64, round(size * d)), max(30, round(size * n))
    X, target = design(n, pieces(d, 10))
    return penalised(X, target, wavelet(d, name), 0.1)


def dense(size: float, d: int, m: int, n: int) -> Problem:
    d, m, n = max(50, round(size * d)), max(40, round(size * m)), max(30, round(size * n))
    rng = np.random.default_rng(3)
    A = rng.standard_normal((m, d)) / np.sqrt(d)
    X, target = design(n, pieces(d, 10))
    return penalised(X, target, np.vstack([A, np.eye(d)]) if m < d else A, 0.1)


def triples(size: float, d: int, n: int) -> Problem:
    """Rows of three entries and an ℓ1 term on every feature."""
    d, n = max(60, round(size * d)), max(30, round(size * n))
    rng = np.random.default_rng(4)
    columns = rng.integers(d, size=(d, 3))
    A = sp.csr_array((np.tile([1.0, -2.0, 1.0], d), (np.repeat(np.arange(d), 3), columns.ravel())), shape=(d, d))
    X, target = design(n, pieces(d, 10))
    return penalised(X, target, stack(A, "identity"), 0.1)


def groups(size: float, d: int, n: int) -> Problem:
    d, n = 10 * max(6, round(size * d / 10)), max(30, round(size * n))
    X, target = design(n, pieces(d, 10))
    gradient = X.T @ target / n
    strength = 0.3 * float(np.linalg.norm(gradient.reshape(-1, 10), axis=1).max())
    return Problem(X, target, loss="squared", psi=GroupL2(strength, np.arange(d) // 10))


def text(size: float, strength: float, graph: bool) -> Problem:
    import lzma

    from sklearn.datasets import load_svmlight_file

    with lzma.open(data_folder() / "20ng-ltc.svm.xz") as file:
        X, target = load_svmlight_file(file)
    keep = np.arange(0, X.shape[0], max(1, round(1 / size)))
    X, target = sp.csr_array(X[keep]), target[keep]
    target = np.where(target == target.max(), 1.0, -1.0) if np.unique(target).size > 2 else target
    A: Any = None
    if graph:
        d = X.shape[1]
        edges = np.column_stack([np.arange(d - 1), np.arange(1, d)])
        A = stack(incidence(edges, n_features=d), "identity")
    return Problem(X, target, psi=L1(strength), A=A)


CASES = {
    "grid3d": Case("20³ grid", lambda size: grid3d(size, False)),
    "grid3d-weak": Case("20³ grid, small λ", lambda size: grid3d(size, False, 0.01)),
    "grid3d-l1": Case("20³ grid and ℓ1", lambda size: grid3d(size, True)),
    "graph4000": Case("graph", lambda size: random_graph(size, 4000, 500)),
    "graph10000": Case("graph", lambda size: random_graph(size, 10000, 500)),
    "graph10000-logistic": Case("graph, logistic", lambda size: random_graph(size, 10000, 500, "logistic")),
    "graph10000-l1": Case("graph and ℓ1", lambda size: random_graph(size, 10000, 500, below=True)),
    "graph-tall": Case("graph, more rows than features", lambda size: random_graph(size, 4000, 8000)),
    "chain20000": Case("chain", lambda size: along_line(size, 20000, 500, 0)),
    "trend1": Case("trend of order 1", lambda size: along_line(size, 20000, 500, 1)),
    "trend2": Case("trend of order 2", lambda size: along_line(size, 20000, 500, 2)),
    "trend1-logistic": Case("trend of order 1, logistic", lambda size: along_line(size, 20000, 500, 1, "logistic")),
    "trend1-l1": Case("trend of order 1 and ℓ1", lambda size: along_line(size, 20000, 500, 1, below=True)),
    "wavelet": Case("wavelet db2", lambda size: wavelets(size, 8192, 500)),
    "dense": Case("dense A and ℓ1", lambda size: dense(size, 6000, 500, 500)),
    "dense-tall": Case("dense A", lambda size: dense(size, 5500, 6000, 500)),
    "triples": Case("rows of three entries and ℓ1", lambda size: triples(size, 20000, 500)),
    "groups": Case("groups of 10", lambda size: groups(size, 20000, 1000)),
    "text": Case("text, ℓ1, λ = 1e-5", lambda size: text(size, 1e-5, False)),
    "text-weak": Case("text, ℓ1, λ = 1e-6", lambda size: text(size, 1e-6, False)),
    "text-chain": Case("text, chain and ℓ1, λ = 1e-5", lambda size: text(size, 1e-5, True)),
}


ALPHA_MAX = ("grid3d", "graph4000", "graph10000", "graph10000-logistic", "chain20000", "trend1", "groups")
"""Cases whose largest strength is measured too."""
ROWS, PAGE = ROOT / "benchmarks" / "limits.json", ROOT / "docs" / "benchmarks.md"
MARKS = "<!-- limits.py -->", "<!-- end of limits.py -->"
COLUMNS = ["A", "n × d, m", "status", "reached", "seconds", "of the processor", "GB", "solver"]


def measure_alpha_max(name: str) -> list[Any]:
    """The largest strength of one case: a line of the table."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    alpha_max(case.build(0.03))
    problem = case.build(1.0)
    began, cpu = time.perf_counter(), time.process_time()
    top = alpha_max(problem)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = f"{problem.n_samples} × {problem.n_features}, {problem.n_constraints}"
    return [f"{case.about}: alpha_max", size, "found", f"{top:.3g}", seconds, cpu, f"{memory:.2f}", ""]


def write(rows: dict[str, list[Any]]) -> None:
    """Keep the rows, and put all that are kept into the page."""
    kept = (json.loads(ROWS.read_text()) if ROWS.exists() else {}) | rows
    order = [*CASES, *(f"alpha_max {name}" for name in ALPHA_MAX)]
    kept = {name: kept[name] for name in order if name in kept}
    ROWS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(f"{v:.1f}" if isinstance(v, float) else v for v in row) + " |" for row in kept.values()]
    page = PAGE.read_text()
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(before + "\n".join([MARKS[0], *lines, MARKS[1]]) + after)


def measure(name: str, tol: float, limit: float, options: dict[str, Any]) -> list[Any]:
    """One case: a line of the table."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    solve(case.build(0.03), tol=tol, time_limit=min(limit, 60.0), **options)
    problem = case.build(1.0)
    began, cpu = time.perf_counter(), time.process_time()
    result = solve(problem, tol=tol, time_limit=limit, record_every=0, **options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    measured, reached = ("gap", result.gap) if np.isfinite(result.gap) else ("kkt", result.kkt.relative)
    size = f"{problem.n_samples} × {problem.n_features}, {problem.n_constraints}"
    solver = result.solver or result.method
    return [case.about, size, str(result.status), f"{measured} {reached:.1e}", seconds, cpu, f"{memory:.2f}", solver]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each")
    parser.add_argument("--method", help="the package's default if left out")
    parser.add_argument("--alpha-max", nargs="*", choices=ALPHA_MAX, help="cases whose largest strength is measured")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    given = parser.parse_args()
    options = {} if given.method is None else {"method": given.method}
    strengths = ALPHA_MAX if given.alpha_max is None else given.alpha_max
    jobs: dict[str, tuple[Callable[..., list[Any]], tuple[Any, ...]]] = {
        name: (measure, (name, given.tol, given.limit, options)) for name in given.cases
    }
    jobs |= {f"alpha_max {name}": (measure_alpha_max, (name,)) for name in strengths}
    rows: dict[str, list[Any]] = {}
    for name, (function, arguments) in jobs.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            try:
                rows[name] = pool.apply(function, arguments)
            except Exception as error:
                rows[name] = [name, "", f"{type(error).__name__}: {error}", "", 0.0, 0.0, "", ""]
        print(name, *rows[name], sep=" | ", flush=True)
    print(table(f"tol {given.tol:g}, limit {given.limit:g} s", COLUMNS, list(rows.values())))
    if given.write:
        write(rows)


if __name__ == "__main__":
    main()
