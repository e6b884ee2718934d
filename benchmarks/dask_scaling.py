"""One and two Dask workers against the solver in memory: time, speed-up, and bytes moved per round.

    python benchmarks/dask_scaling.py

A worker has one thread, and so has the solver in memory. The time of an empty round is printed too: what Dask itself
takes to bring a request to a worker and the response back.
"""

import argparse
import os
import pickle
from typing import Any

import numba
import numpy as np
import threadpoolctl

from _common import best_of
from skadmm import Problem, solve
from skadmm.operators import chain, stack
from skadmm.regularizers import L1

LATE = 7


def rows_of(seed: int, rows: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width)) / np.sqrt(width)


def target_of(X: np.ndarray) -> np.ndarray:
    noise = 0.3 * np.random.default_rng(X.shape[0]).standard_normal(X.shape[0])
    return np.where(X[:, :10].sum(axis=1) - X[:, 20:25].sum(axis=1) + noise > 0, 1.0, -1.0)


def nothing(held: Any) -> float:
    """An empty request."""
    return 0.0


def empty_round(backend: Any, short: float) -> float:
    """Seconds of an empty round; requests that take less than `short` use the direct transport."""
    from skadmm.backends.dask import transport

    kept, transport.SHORT = transport.SHORT, short
    try:
        return best_of(lambda: backend.map_reduce("nothing", nothing, [()] * backend.sizes.size), 10)
    finally:
        transport.SHORT = kept


def settings(method: str, rows: int, passes: float = 2) -> dict[str, Any]:
    chosen = {"tol": 1e-8} if method == "san-admm" else {"step": 1.0, "batch_size": rows}
    return {"method": method, "passes": passes, "record_every": 0, **chosen}


def fastest(*runs: tuple[Problem, dict[str, Any]], repeats: int) -> list[Any]:
    """The fastest result of each run, measured in turns."""
    for problem, options in runs:
        solve(problem, **(options | {"passes": 2}))  # compiled
    results = [[solve(problem, **options) for problem, options in runs] for _ in range(repeats)]
    return [min(column, key=lambda result: result.seconds) for column in zip(*results, strict=True)]


def main() -> None:
    import dask
    from distributed import Client, LocalCluster

    from skadmm.backends.dask.backend import DaskBackend
    from skadmm.backends.dask.transport import DirectTransport

    numba.config.NUMBA_NUM_THREADS = 1
    threadpoolctl.threadpool_limits(1)
    os.environ["NUMBA_NUM_THREADS"] = "1"  # for the workers; Dask limits the threads of their BLAS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000, help="in a block")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--passes", type=float, default=8)
    parser.add_argument("--repeats", type=int, default=5, help="the fastest of so many runs counts")
    parser.add_argument("--methods", nargs="+", default=["san-admm", "batch-iu-admm", "sa-iu-admm"])
    options = parser.parse_args()
    model = {"psi": L1(1e-4), "A": stack(chain(options.width), "identity")}
    table = np.concatenate([rows_of(k, options.rows, options.width) for k in range(options.blocks)])
    target = np.concatenate([target_of(rows_of(k, options.rows, options.width)) for k in range(options.blocks)])
    here = Problem(table, target, **model)
    print(f"{options.blocks} blocks of {options.rows:,} × {options.width}")

    moved: list[int] = []
    rounds: list[int] = []
    usual = {
        (DirectTransport, "send"): DirectTransport.send,
        (DaskBackend, "_submit"): DaskBackend._submit,
        (DaskBackend, "_wait"): DaskBackend._wait,
    }

    def send(self, requests):
        moved.append(sum(len(pickle.dumps(request.arguments)) for request, _, _ in requests))
        return usual[DirectTransport, "send"](self, requests)

    def submit(self, name, function, *arguments, **where):
        sent = [one for one in arguments if not isinstance(one, list) or not hasattr(one[0], "key")]  # not the blocks
        moved.append(len(pickle.dumps(sent)))
        return usual[DaskBackend, "_submit"](self, name, function, *arguments, **where)

    def wait(self, coming):
        responses = usual[DaskBackend, "_wait"](self, coming)
        moved.append(len(pickle.dumps(responses)))
        rounds.append(1)
        return responses

    weighed = dict(zip(usual, (send, submit, wait), strict=True))

    def use(functions):
        for (owner, name), function in functions.items():
            setattr(owner, name, function)

    alone: dict[str, float] = {}
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster):
            X = [dask.delayed(rows_of)(k, options.rows, options.width) for k in range(options.blocks)]
            problem = Problem(X, [dask.delayed(target_of)(block) for block in X], **model)
            for way, short in (("as tasks", 0.0), ("directly", np.inf)):
                empty = empty_round(problem.backend, short)
                print(f"an empty round with {workers} worker(s), {way}: {empty * 1e3:.1f} ms")
            for method in options.methods:
                run = settings(method, options.rows, options.passes)
                memory, there = fastest((here, run), (problem, run), repeats=options.repeats)
                alone.setdefault(method, there.seconds)
                moved.clear()
                rounds.clear()
                use(weighed)
                solve(problem, **settings(method, options.rows))
                use(usual)
                print(
                    f"{method:<14} {workers} worker(s): {there.seconds:.2f} s, {there.passes:.2f} passes, "
                    f"{there.seconds / memory.seconds:.2f} × in memory ({memory.seconds:.2f} s), "
                    f"speed-up {alone[method] / there.seconds:.2f}; {sum(moved) / max(1, len(rounds)):,.0f} bytes per "
                    f"round; x off by {np.abs(there.x - memory.x).max():.1e}"
                )
                if method.startswith("sa-"):
                    (late,) = fastest((problem, run | {"staleness": LATE}), repeats=options.repeats)
                    print(f"  staleness={LATE}: {late.seconds:.2f} s, {late.seconds / memory.seconds:.2f} × in memory")


if __name__ == "__main__":
    main()
