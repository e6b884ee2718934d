"""Many features on workers: a graph-guided or grouped logistic model on sparse rows, certified, on two workers and in
memory.

    python benchmarks/cluster_features.py            # 200,000 rows, 500,000 features, 500,000 edges; about a minute
    python benchmarks/cluster_features.py --quick    # a tenth of it
    python benchmarks/cluster_features.py --groups   # groups of ten features in place of the graph
    python benchmarks/cluster_features.py --cost     # the model of cost in docs/scaling.md, from 14 sizes

Every worker makes its own rows, has one thread, and so has the solver in memory. Bytes are those of the pickled
requests and responses between the driver and all workers, and a round is a request to every worker. The seconds of a
run are divided into those of rounds and those of the driver, which does not become faster with more workers. For the
model of cost, seconds are those of the processors, which other programs on the machine hardly change.
"""

import argparse
import os
import pickle
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.optimize
import scipy.sparse as sp
import threadpoolctl

from skadmm import Problem, solve
from skadmm.operators import incidence, stack
from skadmm.regularizers import L1, GroupL2

PER_ROW = 20
"""Stored entries in a row."""
BLOCKS = 4
SPARSE_SIZES = [
    (20_000, 50_000), (40_000, 50_000), (80_000, 50_000), (20_000, 200_000), (40_000, 100_000), (80_000, 200_000),
    (160_000, 100_000),
]  # fmt: skip
DENSE_SIZES = [
    (10_000, 1000),
    (20_000, 1000),
    (40_000, 1000),
    (80_000, 1000),
    (10_000, 3000),
    (20_000, 3000),
    (40_000, 2000),
]
"""(rows, features) of the model of cost."""
STRENGTH = 0.02
"""As a share of the largest entry of the gradient at zero, where all coefficients would be zero."""
COST_RUNS = 3
"""Runs of each size; the smallest processor seconds of each part count, because other programs only add to them."""
GROUP, GROUP_STRENGTH = 10, 0.05
"""The number of features in a group, and the same share for groups."""


def rows_of(block: int, rows: int, features: int, dense: bool = False) -> Any:
    """Rows in which features with small numbers are frequent, as words are; or dense rows."""
    rng = np.random.default_rng(block)
    if dense:
        return rng.standard_normal((rows, features))
    columns = (rng.random((rows, PER_ROW)) ** 3 * features).astype(np.int32)
    X = sp.csr_array(
        (rng.standard_normal(rows * PER_ROW), columns.ravel(), np.arange(0, rows * PER_ROW + 1, PER_ROW, np.int32)),
        shape=(rows, features),
    )
    X.sum_duplicates()
    return X


def target_of(X: Any, block: int) -> np.ndarray:
    """Classes by forty runs of ten equal coefficients among the frequent features."""
    rng, noise = np.random.default_rng(0), np.random.default_rng(1000 + block)
    coefficients = np.zeros(X.shape[1])
    for _ in range(40):
        start = rng.integers(0, X.shape[1] // 10)
        coefficients[start : start + 10] = rng.standard_normal()
    return np.where(X @ coefficients + 0.5 * noise.standard_normal(X.shape[0]) > 0, 1.0, -1.0)


def edges_of(features: int) -> np.ndarray:
    """As many edges as features: to the next feature, or, for three in ten, to one of the next fifty."""
    rng = np.random.default_rng(0)
    first = np.arange(features)
    last = first + np.where(rng.random(features) < 0.3, rng.integers(2, 50, features), 1)
    return np.stack([first, last % features], axis=1)


@dataclass
class Meter:
    """Rounds of a backend: how many, how long, and how many bytes."""

    backend: Any
    rounds: int = 0
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    pids: tuple[int, ...] = ()
    """The workers, where their processor seconds are to be counted."""
    processor: dict[str, float] = field(default_factory=dict)
    """Those, by the kind of request."""
    sizes: list[int] = field(default_factory=list)
    """The number of clusters in each step."""
    per_column: np.ndarray | None = None
    """The stored entries of each column, where those that are read are to be counted."""
    merged: int = 0
    """Entries of the columns that were merged into clusters, over all steps."""

    def __enter__(self) -> "Meter":
        self._usual = self.backend.map_reduce
        self.backend.map_reduce = self._map_reduce
        return self

    def __exit__(self, *_: object) -> None:
        del self.backend.map_reduce

    def _map_reduce(self, kind: str, function: Any, arguments: list[Any], **options: Any) -> Any:
        began, used = time.perf_counter(), processor_seconds(self.pids)
        total = self._usual(kind, function, arguments, **options)
        self.seconds += time.perf_counter() - began
        self.processor[kind] = self.processor.get(kind, 0.0) + processor_seconds(self.pids) - used
        if kind == "contract_packed":
            self.sizes.append(total[0][0].shape[1])
            if self.per_column is not None:
                (_, (_, _, requests)) = arguments[0]
                self.merged += int(self.per_column[requests[-1].arguments[0].features].sum())
        places = [self.backend.place(k) for k in range(len(arguments))]
        for place in set(places):
            mine = [given for where, given in zip(places, arguments, strict=True) if where == place]
            self.sent += len(pickle.dumps((function, mine)))
        self.received += len(set(places)) * len(pickle.dumps(total))
        self.rounds += 1
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        return total


def processor_seconds(pids: tuple[int, ...]) -> float:
    """Processor seconds that processes have used so far."""
    spent = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent * 1e-9


def timed(problem: Problem, options: Any) -> tuple[Any, float]:
    """The fastest of several runs; the first compiles."""
    solve(problem, tol=options.tol, record_every=0)
    results = []
    for _ in range(options.repeats):
        began = time.perf_counter()
        result = solve(problem, tol=options.tol, record_every=0)
        results.append((time.perf_counter() - began, result))
    seconds, result = min(results, key=lambda pair: pair[0])
    return result, seconds


def line(name: str, result: Any, seconds: float, memory: float) -> None:
    print(
        f"{name:<16} {seconds:6.2f} s = {seconds / memory:4.2f} × in memory; {result.status}, relative gap "
        f"{result.gap:.1e}, solver {result.solver}, {np.count_nonzero(result.x):,} features not zero",
        flush=True,
    )


def on_workers(name: str, problem: Problem, options: Any, memory: tuple[Any, float]) -> None:
    """Measure a problem on workers against the one in memory."""
    result, seconds = timed(problem, options)
    line(name, result, seconds, memory[1])
    with Meter(problem.backend) as meter:
        began = time.perf_counter()
        measured = solve(problem, tol=options.tol, record_every=0)
        whole = time.perf_counter() - began
    steps = max(1, meter.by_kind.get("contract_packed", 0))
    print(
        f"{'':<16} {steps} steps, {meter.rounds} rounds; per step {meter.sent / steps:,.0f} bytes sent and "
        f"{meter.received / steps:,.0f} received; {meter.seconds:.2f} s in rounds, {whole - meter.seconds:.2f} s in "
        f"the driver; x differs from that in memory by {np.abs(measured.x - memory[0].x).max():.1e}",
        flush=True,
    )
    if options.kinds:
        print(f"{'':<16} {meter.by_kind}")


def model_of(X: Any, target: np.ndarray, groups: bool = False) -> dict[str, Any]:
    """The penalty, at a share of the strength where all coefficients are zero."""
    rows, features = X.shape
    gradient = X.T @ (target / 2) / rows
    if groups:
        members = np.arange(features).reshape(-1, GROUP)
        strength = GROUP_STRENGTH * float(np.linalg.norm(gradient[members], axis=1).max())
        return {"psi": GroupL2(strength, list(members)), "A": "identity"}
    strength = STRENGTH * float(np.abs(gradient).max())
    return {"psi": L1(strength), "A": stack(incidence(edges_of(features), n_features=features), "identity")}


def compare(rows: int, features: int, options: Any) -> None:
    """One size: in memory, on two Dask workers, on two processes."""
    import dask
    from distributed import Client, LocalCluster

    from skadmm.backends import Processes

    size = rows // BLOCKS
    blocks = [rows_of(k, size, features) for k in range(BLOCKS)]
    target = np.concatenate([target_of(block, k) for k, block in enumerate(blocks)])
    X = sp.csr_array(sp.vstack(blocks, format="csr"))
    model = model_of(X, target, options.groups)
    what = f"{features // GROUP:,} groups" if options.groups else f"{features:,} edges"
    print(f"\n{rows:,} × {features:,}, {X.nnz:,} entries, {what}, strength {model['psi'].strength:.3g}", flush=True)
    here, memory = timed(Problem(X, target, **model), options)
    line("in memory", here, memory, memory)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        delayed = [dask.delayed(rows_of)(k, size, features) for k in range(BLOCKS)]
        labels = [dask.delayed(target_of)(block, k) for k, block in enumerate(delayed)]
        on_workers("2 Dask workers", Problem(delayed, labels, **model), options, (here, memory))
    on_workers("2 processes", Problem(Processes(X, workers=2), target, **model), options, (here, memory))


def costs(rows: int, features: int, dense: bool, options: Any) -> dict[str, float]:
    """One size on two processes: processor seconds of the workers and of the driver, bytes, steps."""
    from skadmm.backends import Processes
    from skadmm.backends.processes.pool import workers

    X = rows_of(0, rows, features, dense)
    target = target_of(X, 0)
    problem = Problem(Processes(X, workers=2), target, **model_of(X, target))
    solve(problem, tol=options.tol, record_every=0)
    per_column = np.full(features, rows) if dense else np.bincount(X.indices, minlength=features)
    pids, runs = tuple(worker.pid for worker in workers(2)), []
    for _ in range(COST_RUNS):
        with Meter(problem.backend, pids=pids, per_column=per_column) as meter:
            began = time.process_time()
            solve(problem, tol=options.tol, record_every=0)
            driver = time.process_time() - began
        used = meter.processor
        runs.append((used["ahead"] + used["place_at"], used["contract_packed"], driver))
    gradients, hessians, driver = np.min(runs, axis=0)
    passes = meter.by_kind["ahead"] + meter.by_kind["place_at"]
    found = {
        "entries": float(rows * features if dense else X.nnz),
        "rows": float(rows),
        "features": float(features),
        "steps": float(meter.by_kind["contract_packed"]),
        "passes": float(passes),
        "merged": float(meter.merged),
        "clusters": float(max(meter.sizes)),
        "k": float(sum(meter.sizes)),
        "k²": float(sum(size**2 for size in meter.sizes)),
        "k³": float(sum(size**3 for size in meter.sizes)),
        "gradients": float(gradients),
        "Hessians": float(hessians),
        "driver": float(driver),
        "bytes": float(meter.sent + meter.received),
    }
    print(
        f"{rows:>7,} × {features:>7,} {'dense ' if dense else 'sparse'} {found['steps']:.0f} steps, {meter.rounds} "
        f"rounds, {found['clusters']:.0f} clusters: gradients {found['gradients']:.3f} s, Hessians "
        f"{found['Hessians']:.3f} s, driver {driver:.3f} s, {found['bytes'] / 1e6 / found['steps']:.1f} MB per step",
        flush=True,
    )
    return found


def rates(found: list[dict[str, float]], what: str, terms: dict[str, Any]) -> str:
    """Seconds `what` as a sum of terms with factors ≥ 0, by least squares of the relative errors; as text."""
    seconds = np.array([one[what] for one in found])
    work = np.array([[term(one) for term in terms.values()] for one in found])
    factors, _ = scipy.optimize.nnls(work / seconds[:, None], np.ones(seconds.size))
    error = np.abs(work @ factors / seconds - 1.0).max()
    parts = " + ".join(f"{factor * 1e9:.3g} ns × {name}" for name, factor in zip(terms, factors, strict=True))
    return f"  {what:<10} {parts}   (off by at most {error:.0%})"


def fit_costs(options: Any) -> None:
    """The constants of the model of cost, for sparse and for dense rows."""
    for dense in (False, True):
        found = [costs(*size, dense, options) for size in (DENSE_SIZES if dense else SPARSE_SIZES)]
        print(f"{'dense' if dense else 'sparse'} rows, processor seconds:")
        gradients = {
            "entries × passes": lambda one: one["entries"] * one["passes"],
            "workers × features × passes": lambda one: 2 * one["features"] * one["passes"],
            "workers × passes": lambda one: 2 * one["passes"],
        }
        on_worker = {
            "entries of the clusters": lambda one: one["merged"],
            "rows × steps": lambda one: one["rows"] * one["steps"],
            "workers × Σ clusters²": lambda one: 2 * one["k²"],
        }
        if dense:
            on_worker = {
                "rows × Σ clusters² / 2": lambda one: one["rows"] * one["k²"] / 2,
                "rows × Σ clusters": lambda one: one["rows"] * one["k"],
            }
        in_driver = {
            "features × steps": lambda one: one["features"] * one["steps"],
            "Σ clusters³ / 3": lambda one: one["k³"] / 3,
            "steps": lambda one: one["steps"],
        }
        print(rates(found, "gradients", gradients))
        print(rates(found, "Hessians", on_worker))
        print(rates(found, "driver", in_driver), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=500_000)
    parser.add_argument("--kinds", action="store_true", help="print how many rounds of each kind there were")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=2, help="the fastest of so many runs counts")
    parser.add_argument("--quick", action="store_true", help="20,000 rows, 50,000 features")
    parser.add_argument("--groups", action="store_true", help="groups of features in place of the graph")
    parser.add_argument("--cost", action="store_true", help="fit the model of cost")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.features = 20_000, 50_000
    os.environ["NUMBA_NUM_THREADS"] = "1"  # for the workers; Dask limits the threads of their BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    numba.config.NUMBA_NUM_THREADS = 1
    threadpoolctl.threadpool_limits(1)
    if options.cost:
        fit_costs(options)
    else:
        compare(options.rows, options.features, options)


if __name__ == "__main__":
    main()
