"""What the benchmarks share: data, timing, and incremental NumPy twins of the compiled methods."""

import lzma
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm import ALGORITHMS, Problem
from skadmm.operators import incidence, precision_graph, stack
from skadmm.regularizers import L1
from skadmm.solvers import Setup, dual_update

ROOT = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """Where the data files are: SKADMM_DATA, or the folder shared/data beside the project."""
    return Path(os.environ.get("SKADMM_DATA", ROOT.parent / "shared" / "data"))


def a9a_half(seed: int = 0) -> tuple[sp.csr_array, np.ndarray, str]:
    """Half the rows of a9a, its labels, and a name; a synthetic set of the same shape where the file is absent."""
    path = data_folder() / "a9a.svm.xz"
    rng = np.random.default_rng(seed)
    if path.exists():
        from sklearn.datasets import load_svmlight_file

        with lzma.open(path) as file:
            X, target = load_svmlight_file(file, n_features=123)
        half = np.sort(rng.permutation(X.shape[0])[: X.shape[0] // 2])
        return sp.csr_array(X[half]), target[half], "a9a"
    print("a9a.svm.xz is not there (set SKADMM_DATA): using a synthetic set of its shape", file=sys.stderr)
    n, sizes = 16280, np.array([5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41])
    starts = np.cumsum(sizes) - sizes
    columns = np.concatenate(
        [start + rng.choice(size, n, p=rng.dirichlet(np.ones(size))) for start, size in zip(starts, sizes, strict=True)]
    )
    X = sp.csr_array((np.ones(columns.size), (np.tile(np.arange(n), sizes.size), columns)), shape=(n, 123))
    odds = X @ rng.standard_normal(123) - 1.0
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0), "synthetic"


def graph_guided(X: Any, target: np.ndarray, strength: float = 1e-5) -> Problem:
    """Logistic loss and λ‖[G; I]x‖₁, G the incidence matrix of the features' precision graph."""
    return Problem(X, target, psi=L1(strength), A=stack(incidence(precision_graph(X), signs=False), "identity"))


def best_of(function: Callable[[], Any], times: int = 5) -> float:
    """The minimum of several wall times, in seconds."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        spent.append(time.perf_counter() - began)
    return min(spent)


def sum_of_best(function: Callable[[Any], Any], stretches: list[Any], times: int = 5) -> float:
    """Run the parts in order, several times; return the sum of the minimum wall times of the parts."""
    spent = [[best_of(lambda: function(stretch), 1) for stretch in stretches] for _ in range(times)]  # noqa: B023
    return float(np.min(spent, axis=0).sum())


def engine_of(problem: Problem, method: str, *, rho: float, batch_size: int = 1, step: float | None = None) -> Any:
    """A method ready to run from zero, without the driver's clock, recording and stopping tests."""
    algorithm = ALGORITHMS[method]
    step = algorithm.theory_step(problem, rho) if step is None else step
    setup = Setup(problem, rho, step, batch_size, "none")
    return algorithm.start(setup, dual_update.start(problem, np.zeros(problem.n_features), None, None))


class StochasticAverageTwin:
    """sa-admm and sa-iu-admm at b = 1 in NumPy and SciPy: O(nnz(aᵢ) + d + m) work per step,
    arrays reused, averages kept, for the logistic loss, ψ = λ‖·‖₁, B = −I and c = 0."""

    def __init__(self, problem: Problem, *, rho: float, step: float, uzawa: bool) -> None:
        rows = problem.rows
        self.data, self.indices, self.indptr = rows.data, rows.indices, rows.indptr.tolist()
        self.target = problem.target.tolist()
        self.A = problem.constraint.A
        self.At = sp.csr_array(self.A.T)
        self.n, d = problem.n_samples, problem.n_features
        self.rho, self.L, self.bound = rho, 1.0 / step, problem.psi.strength / rho
        self.L_A = problem.L_A(rho) if uzawa else 0.0
        self.inverse = None if uzawa else np.linalg.inv(rho * (self.A.T @ self.A).toarray() + self.L * np.eye(d))
        self.x, self.x_bar, self.coupling = np.zeros(d), np.zeros(d), np.zeros(d)
        self.x_sum = np.zeros(d)
        self.y, self.y_sum, self.dual = (np.zeros(self.A.shape[0]) for _ in range(3))
        self.points = np.zeros((self.n, d))
        slopes = np.array([-0.5 * b for b in self.target])
        X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        self.grad_bar = X.T @ slopes / self.n
        self.slopes = slopes.tolist()

    def step(self, i: int) -> None:
        """One step on sample i."""
        start, stop = self.indptr[i], self.indptr[i + 1]
        columns, values, b = self.indices[start:stop], self.data[start:stop], self.target[i]
        slope = -b / (1.0 + math.exp(b * float(values @ self.x[columns])))
        self.grad_bar[columns] += values * ((slope - self.slopes[i]) / self.n)
        self.slopes[i] = slope
        point = self.points[i]
        self.x_bar += (self.x - point) / self.n
        point[:] = self.x
        right = self.L * self.x_bar
        right -= self.grad_bar
        right -= self.rho * self.coupling
        if self.inverse is None:
            right += self.L_A * self.x
            right /= self.L_A + self.L
            self.x = right
        else:
            self.x = self.inverse @ right
        Ax = self.A @ self.x
        v = Ax + self.dual
        self.dual = np.minimum(np.maximum(v, -self.bound), self.bound)
        self.y = v - self.dual
        inner = self.dual - self.y
        if self.inverse is None:
            inner += Ax
        self.coupling = self.At @ inner
        self.x_sum += self.x
        self.y_sum += self.y


def table(title: str, header: list[str], rows: list[list[Any]]) -> str:
    """A plain text table with numbers aligned to the right."""

    def text(entry: Any) -> str:
        if isinstance(entry, str):
            return entry
        return f"{entry:,.0f}" if abs(entry) >= 1000 else f"{entry:.3g}"

    cells = [[text(entry) for entry in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *cells]) for column in range(len(header))]

    def line(row: list[str]) -> str:
        first = row[0].ljust(widths[0])
        return "  ".join([first, *(entry.rjust(width) for entry, width in zip(row[1:], widths[1:], strict=True))])

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([title, line(header), rule, *map(line, cells), ""])
