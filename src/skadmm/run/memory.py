"""The memory that a run will take, compared with what is available before the first array is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skadmm.kernels.expansion import PARTS, gathered_rows
from skadmm.oracle import LARGE_SHIFT_SHARE
from skadmm.problem import separation
from skadmm.solvers.base import Algorithm, Setup
from skadmm.solvers.first_order.x_solve import DENSE_LIMIT
from skadmm.solvers.second_order.newton_admm import MAX_FEATURES, NewtonADMMConfig
from skadmm.solvers.situation import (
    few_at_once,
    few_on_workers,
    prefers_conjugate_gradients,
    prefers_interior_point,
    prefers_row_interior_point,
    works_along_chains,
    works_by_output,
    works_on_blocks,
    works_on_outputs,
)

FLOAT = 8
"""Bytes of a number."""
SAN_VECTORS, SAN_MATRICES = 13, 7
"""Vectors of one number per sample, and d × d matrices, that second-order steps hold at their peak."""
RECORDS = 2e5
"""Bytes that every run takes, even on the smallest problem."""
SPARSE_ENTRY = 12
"""Bytes of a stored entry: a value and a column index."""
WORKING_SET = 2000
"""Features that a working set is assumed to reach."""
CHAIN_VECTORS = 20.0
"""Numbers that solvers along lines and layers of chains keep for each entry of A."""
SPARSE_FILL = 40.0
"""Entries of the factors of an interior point step for each entry of A."""
SMALL, SMALL_ROWS = 300, 5000
"""With at most SMALL samples and features and SMALL_ROWS entries of A, every method takes less than ALWAYS_FREE bytes,
and nothing is checked."""
ALWAYS_FREE = 1e7
"""Bytes; see SMALL."""


def estimate(setup: Setup, algorithm: Algorithm) -> dict[str, float]:
    """Bytes by purpose. The data are in memory already and not counted."""
    problem = setup.problem
    n, d = (0 if not problem.backend.local_rows else problem.n_samples), problem.n_features
    needs: dict[str, float] = {"evaluation and records": RECORDS + FLOAT * (4.0 * n + 8.0 * d)}
    if algorithm.certifies and not setup.solver and works_by_output(problem, setup.rho_given):
        alone = separation.one_output(problem, 0).problem
        needs |= estimate(replace(setup, problem=alone), algorithm)
        needs["evaluation and records"] += RECORDS + FLOAT * (4.0 * n + 8.0 * d)
    elif algorithm.certifies and d > MAX_FEATURES and works_on_outputs(problem, setup.rho_given):
        needs["columns of X"] = SPARSE_ENTRY * float(problem.nnz) / problem.n_outputs
        needs["a working set of coefficients"] = FLOAT * (SAN_VECTORS * float(n) + 3.0 * float(WORKING_SET) ** 2)
    elif algorithm.certifies and works_along_chains(problem):
        needs["vectors along chains"] = FLOAT * CHAIN_VECTORS * float(problem.constraint.A.nnz + d)
    elif algorithm.certifies and prefers_interior_point(problem):
        needs["sparse systems"] = SPARSE_FILL * SPARSE_ENTRY * float(problem.constraint.A.nnz + d)
    elif algorithm.certifies and works_on_blocks(problem, setup.rho_given):
        working = float(min(d, WORKING_SET))
        needs["columns of X"] = 0.0 if not problem.is_sparse else SPARSE_ENTRY * float(problem.nnz)
        needs["a working set of features"] = FLOAT * (working * n + 3.0 * working**2)
    elif algorithm.certifies and prefers_row_interior_point(problem, setup.rho_given):
        needs["samples in other coordinates"] = FLOAT * (3.0 * n * d + 4.0 * n * n)
        needs["sparse systems"] = SPARSE_FILL * SPARSE_ENTRY * float(problem.constraint.A.nnz + d)
    elif algorithm.certifies and prefers_conjugate_gradients(problem, setup.rho_given):
        needs["sparse systems"] = SPARSE_FILL * SPARSE_ENTRY * float(problem.constraint.A.nnz + d)
    elif algorithm.certifies and few_on_workers(problem, setup.rho_given):
        needs["second-order steps on few features"] = FLOAT * SAN_MATRICES * float(min(d, WORKING_SET)) ** 2
    elif algorithm.certifies and few_at_once(problem, setup.rho_given):
        needs["columns of X"] = 2.0 * SPARSE_ENTRY * problem.nnz
        needs["second-order steps on a set of features"] = FLOAT * (SAN_VECTORS * n + SAN_MATRICES * min(d, 2000) ** 2)
    elif algorithm.certifies:
        # Where B is not −I the method of multipliers may solve for x and y together.
        variables = float(d) if problem.constraint.B is None else float(d + problem.n_split)
        needs["second-order steps"] = FLOAT * (SAN_VECTORS * float(n) + SAN_MATRICES * variables**2)
        if problem.backend.slow_reads:
            entry = SPARSE_ENTRY if problem.is_sparse else FLOAT
            needs["copies of rows that are read again"] = (
                2.0 * entry * max(LARGE_SHIFT_SHARE * problem.nnz, min(problem.nnz, NewtonADMMConfig.curved_entries))
            )
        if problem.backend.local_rows and not problem.is_sparse:
            needs["rows and products on several threads"] = FLOAT * (min(PARTS * gathered_rows(d), n) + PARTS * d) * d
    elif algorithm.gradient == "average":
        needs["the table of points"] = FLOAT * float(setup.n_blocks) * d
        needs["the table of slopes"] = FLOAT * float(n)
    if not algorithm.certifies and not algorithm.linearised and problem.n_constraints:
        dense = FLOAT * 3.0 * float(d) ** 2
        needs["the linear system"] = dense if d <= DENSE_LIMIT else 20.0 * SPARSE_ENTRY * problem.constraint.A.nnz
    return needs


def available() -> float:
    """Bytes available now, within the limits of this process; infinite where the system does not say."""
    return min(_free(), _group_limit(), _process_limit())


def _free() -> float:
    try:
        import psutil

        return float(psutil.virtual_memory().available)
    except (ImportError, OSError, RuntimeError):  # not installed, or not supported on this system
        pass
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return math.inf


def _group_limit() -> float:
    """What is left of the limit of a control group (a container)."""
    folder = Path("/sys/fs/cgroup")
    try:
        return max(0.0, float((folder / "memory.max").read_text()) - float((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        return math.inf


def _process_limit() -> float:
    """What is left of ``ulimit -v``."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return math.inf
        return max(0.0, limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        return math.inf


def check(
    setup: Setup,
    algorithm: Algorithm,
    limit: float | None,
    more: Mapping[str, float] | None = None,
    what: str | None = None,
) -> None:
    """Refuse a run that does not fit into memory, with the numbers. A `limit` of None means what is available now;
    `more` has bytes by purpose in addition to those of the algorithm, and `what` names the run in the message."""
    needs = estimate(setup, algorithm) | dict(more or {})
    total = sum(needs.values())
    if limit is None and total < ALWAYS_FREE:
        return
    allowed = available() if limit is None else limit
    if total <= allowed:
        return
    largest = sorted(needs.items(), key=lambda pair: -pair[1])[:2]
    parts = ", ".join(f"{bytes_of(size)} for {name}" for name, size in largest if size >= 0.01 * total)
    advice = "a larger batch_size makes the table smaller; " if "the table of points" in needs else ""
    raise MemoryError(
        f"{what or f'method={algorithm.name!r}'} would take about {bytes_of(total)} of memory besides the data "
        f"({parts}) and {bytes_of(allowed)} are {'free' if limit is None else 'allowed by memory_limit'}: {advice}"
        "memory_limit=float('inf') runs it anyway"
    )


def bytes_of(size: float) -> str:
    """A size in readable units."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
