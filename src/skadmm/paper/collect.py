"""All cells as one tidy table, with what each objective is measured against."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skadmm.paper.prepare import Graph, Source, graph_of, halves_of, unbounded_features
from skadmm.paper.settings import WITH_TABLE, Settings, cell_settings, cells, problem_settings
from skadmm.paper.store import Store, load_json, load_run, write_atomically

if TYPE_CHECKING:
    import pandas as pd

KEYS = ["data", "matrix", "problem"]
RUN = [*KEYS, "method", "variant", "repeat"]


class Collected(NamedTuple):
    """Everything that figures, tables and the report are made of."""

    trace: pd.DataFrame
    """One row per recording."""
    optima: pd.DataFrame
    """One row per problem and repeat."""
    graphs: pd.DataFrame
    """One row per training half."""
    digests: tuple[str, ...]
    """The states of the sources that the cells were run with; one, unless the code changed between them."""
    refusals: dict[tuple[str, str], str]
    """What a method beyond the paper said where it does not take a data set's problem."""


def collect(settings: Settings, store: Store, sources: dict[str, Source]) -> Collected:
    """Read every cell of these settings; cells that are not there (they failed) are left out."""
    import pandas as pd

    parts, optima, digests = [], {}, set()
    refusals: dict[tuple[str, str], str] = {}
    for cell in cells(settings):
        sha256 = sources[cell.data].sha256
        place = store.optimum_path(problem_settings(settings, cell, sha256))
        key = (cell.data, cell.matrix, cell.problem, cell.repeat)
        if settings.optimum and key not in optima and place.is_file():
            optima[key] = load_json(place)
        path = store.cell_path(cell, cell_settings(settings, cell, sha256))
        if not path.is_file():
            continue
        frame, meta = load_run(path)
        digests.add(meta["sources"])
        if "refused" in meta:
            refusals[cell.data, cell.method] = meta["refused"]
            continue
        for position, name in enumerate(RUN):
            frame.insert(position, name, getattr(cell, name))
        parts.append(frame)
    if not parts:
        raise ValueError("no cell was finished, so there is nothing to report")
    trace = pd.concat(parts, ignore_index=True)
    known = pd.DataFrame([dict(zip([*KEYS, "repeat"], key, strict=True)) | found for key, found in optima.items()])
    trace = _measured(trace, known, settings)
    return Collected(trace, known, _graphs(settings, store, sources), tuple(sorted(digests)), refusals)


def _measured(trace: pd.DataFrame, optima: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Add `best` (the lowest value across the paper's methods, as its figures have it), `best_zero_n` (the same under
    the protocol zero+n) and `optimum` (the true one)."""
    group = [*KEYS, "repeat"]
    compared = trace["method"].isin(settings.paper_methods or settings.methods)
    with_table, variant = trace["method"].isin(WITH_TABLE), trace["variant"]
    rows = {
        "best": compared & (variant == "paper"),
        "best_zero_n": compared & (variant == np.where(with_table, "zero+n", "paper")),
        "lowest": compared | True,
    }
    for name, mine in rows.items():
        lowest = trace[mine].groupby(group)["objective"].min().rename(name)
        trace = trace.merge(lowest.reset_index(), on=group, how="left")
    if len(optima):
        reference = optima[[*group, "objective"]].rename(columns={"objective": "reference"})
        trace = trace.merge(reference, on=group, how="left")
    else:
        trace["reference"] = np.nan
    # A run may get below the reference, by its tolerance: the lowest value known is then the better reference.
    trace["optimum"] = np.fmin(trace["reference"], trace["lowest"])
    trace["suboptimality"] = (trace["objective"] - trace["optimum"]) / trace["optimum"].abs()
    trace["suboptimality_average"] = (trace["objective_average"] - trace["optimum"]) / trace["optimum"].abs()
    return trace.drop(columns=["lowest", "reference"])


def _graphs(settings: Settings, store: Store, sources: dict[str, Source]) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for data in settings.data:
        for repeat in range(settings.repeats[data]):
            graph: Graph = graph_of(settings, store, sources[data], repeat)
            rows.append({"data": data, "repeat": repeat, "edges": graph.G.shape[0], "alpha": graph.alpha,
                         "cut": graph.cut, "converged": graph.converged})  # fmt: skip
            if "graph" in settings.matrices:
                half = halves_of(settings, store, sources[data], repeat)
                rows[-1]["unbounded"] = unbounded_features(half, graph.G)
    return pd.DataFrame(rows)


def save_trace(trace: pd.DataFrame, path: Path) -> None:
    """One tidy Parquet; the same trace gives the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(trace, preserve_index=False).replace_schema_metadata(None)
    write_atomically(path, lambda stream: pq.write_table(table, stream, compression="zstd"))
