"""Many features on workers: a graph-guided logistic model on sparse rows, certified, on two workers and in memory.

    python benchmarks/cluster_features.py            # 200,000 rows, 500,000 features, 500,000 edges; about a minute
    python benchmarks/cluster_features.py --quick    # a tenth of it
    python benchmarks/cluster_features.py --rows 50000 100000 200000 --features 125000 250000 500000   # each pair

Every worker makes its own rows, has one thread, and so has the solver in memory. Bytes are those of the pickled
requests and responses between the driver and all workers, and a round is a request to every worker. The seconds of a
run are divided into those of rounds and those of the driver, which does not become faster with more workers. The last
lines fit the model of cost that docs/scaling.md uses.
"""

import argparse
import os
import pickle
import time
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
import threadpoolctl

from skadmm import Problem, solve
from skadmm.operators import incidence, stack
from skadmm.regularizers import L1

PER_ROW = 20
"""Stored entries in a row."""
BLOCKS = 4
STRENGTH = 0.02
"""As a share of the largest entry of the gradient at zero, where all coefficients would be zero."""


def rows_of(block: int, rows: int, features: int) -> sp.csr_array:
    """Rows in which features with small numbers are frequent, as words are."""
    rng = np.random.default_rng(block)
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

    def __enter__(self) -> "Meter":
        self._usual = self.backend.map_reduce
        self.backend.map_reduce = self._map_reduce
        return self

    def __exit__(self, *_: object) -> None:
        del self.backend.map_reduce

    def _map_reduce(self, kind: str, function: Any, arguments: list[Any], **options: Any) -> Any:
        began = time.perf_counter()
        total = self._usual(kind, function, arguments, **options)
        self.seconds += time.perf_counter() - began
        places = [self.backend.place(k) for k in range(len(arguments))]
        for place in set(places):
            mine = [given for where, given in zip(places, arguments, strict=True) if where == place]
            self.sent += len(pickle.dumps((function, mine)))
        self.received += len(set(places)) * len(pickle.dumps(total))
        self.rounds += 1
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        return total


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


def on_workers(name: str, problem: Problem, options: Any, memory: tuple[Any, float]) -> dict[str, float]:
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
    return {
        "steps": steps, "rounds": meter.rounds, "bytes": meter.sent + meter.received, "in rounds": meter.seconds,
        "driver": whole - meter.seconds,
    }  # fmt: skip


def compare(rows: int, features: int, options: Any) -> dict[str, dict[str, float]]:
    """One size: in memory, on two Dask workers, on two processes."""
    import dask
    from distributed import Client, LocalCluster

    from skadmm.backends import Processes

    size = rows // BLOCKS
    blocks = [rows_of(k, size, features) for k in range(BLOCKS)]
    target = np.concatenate([target_of(block, k) for k, block in enumerate(blocks)])
    X = sp.csr_array(sp.vstack(blocks, format="csr"))
    edges = edges_of(features)
    strength = STRENGTH * float(np.abs(X.T @ (target / 2)).max()) / rows
    model = {"psi": L1(strength), "A": stack(incidence(edges, n_features=features), "identity")}
    print(f"\n{rows:,} × {features:,}, {X.nnz:,} entries, {len(edges):,} edges, λ = {strength:.2e}", flush=True)
    here, memory = timed(Problem(X, target, **model), options)
    line("in memory", here, memory, memory)
    found = {}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        delayed = [dask.delayed(rows_of)(k, size, features) for k in range(BLOCKS)]
        labels = [dask.delayed(target_of)(block, k) for k, block in enumerate(delayed)]
        found["dask"] = on_workers("2 Dask workers", Problem(delayed, labels, **model), options, (here, memory))
    problem = Problem(Processes(X, workers=2), target, **model)
    found["processes"] = on_workers("2 processes", problem, options, (here, memory))
    return found


def fit(measured: list[tuple[int, int, dict[str, float]]]) -> None:
    """Seconds of rounds and of the driver, as multiples of the entries read and of the features, by least squares."""
    entries = np.array([rows * PER_ROW * found["steps"] for rows, _, found in measured], float)
    features = np.array([features * found["steps"] for _, features, found in measured], float)
    in_rounds = np.array([found["in rounds"] for *_, found in measured])
    driver = np.array([found["driver"] for *_, found in measured])
    moved = np.array([found["bytes"] for *_, found in measured], float)
    design = np.stack([entries, moved], axis=1)
    (per_entry, per_byte), *_ = np.linalg.lstsq(design, in_rounds, rcond=None)
    print(
        f"\nmodel: rounds take {per_entry * 1e9:.1f} ns per stored entry and step (two workers) and "
        f"{per_byte * 1e9:.2f} ns per byte; the driver {features @ driver / (features @ features) * 1e9:.0f} ns per "
        f"feature and step; largest error of rounds "
        f"{np.abs(design @ [per_entry, per_byte] / in_rounds - 1).max():.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000])
    parser.add_argument("--features", type=int, nargs="+", default=[500_000])
    parser.add_argument("--kinds", action="store_true", help="print how many rounds of each kind there were")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=2, help="the fastest of so many runs counts")
    parser.add_argument("--quick", action="store_true", help="20,000 rows, 50,000 features")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.features = [20_000], [50_000]
    os.environ["NUMBA_NUM_THREADS"] = "1"  # for the workers; Dask limits the threads of their BLAS
    numba.config.NUMBA_NUM_THREADS = 1
    threadpoolctl.threadpool_limits(1)
    found = []
    for rows in options.rows:
        for features in options.features:
            found.append((rows, features, compare(rows, features, options)["processes"]))
    if len(found) > 2:
        fit(found)


if __name__ == "__main__":
    main()
