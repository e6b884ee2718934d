"""Table 1 from what the methods declare, Table 2 from the data, and Markdown for both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from skadmm.datasets import BUILTIN, CATALOGUE
from skadmm.paper.prepare import Source
from skadmm.paper.settings import Settings, base_name
from skadmm.solvers import ALGORITHMS

if TYPE_CHECKING:
    import pandas as pd

PAPER_ORDER = ("sa-admm", "sa-iu-admm", "stoc-admm", "opg-admm", "rda-admm", "batch-admm", "batch-iu-admm")


_SCALED = {"none": "as it is", "standard": "standardised", "minmax": "min-max", "maxabs": "max-abs",
           "unit-rows": "unit rows"}  # fmt: skip


def method_label(method: str) -> str:
    """A method of the paper under the name it has there: SA-IU-ADMM, batch-ADMM; others under their own."""
    if method not in PAPER_ORDER:
        return method
    return method.upper().replace("BATCH", "batch")


def data_label(data: str) -> str:
    """A data set as figures call it: covertype@minmax is "covertype, min-max"."""
    base = base_name(data)
    return base if base == data else f"{base}, {_SCALED[data.removeprefix(base + '@')]}"


def update_rules(methods: Iterable[str] = PAPER_ORDER) -> list[dict[str, str]]:
    """Table 1: how each method updates x, as it declares it."""
    ordered = sorted(methods, key=(PAPER_ORDER + tuple(ALGORITHMS)).index)
    return [
        {
            "method": name,
            "gradient computation": ALGORITHMS[name].gradient,
            "linearises ‖Ax + By − c‖²?": "yes" if ALGORITHMS[name].linearised else "no",
            "constant stepsize?": "yes" if ALGORITHMS[name].constant_step else "no",
        }
        for name in ordered
    ]


def data_sets(settings: Settings, sources: dict[str, Source], graphs: pd.DataFrame) -> list[dict[str, Any]]:
    """Table 2: the data as it was read, and the graphs learnt from its training halves."""
    rows = []
    for name in settings.data:
        source = sources[name]
        mine = graphs[graphs["data"] == name]
        base = base_name(name)
        status = "built in" if base in BUILTIN else "a file"
        if base in CATALOGUE:
            original = CATALOGUE[base].stands_for
            status = f"stands in for {original}" if original else "in the paper"
        row: dict[str, Any] = {
            "data set": name,
            "status": status,
            "#samples": f"{source.samples:,}",
            "dim": f"{source.features:,}",
            "density": f"{source.nonzeros / (source.samples * source.features):.2%}",
            "positive": f"{source.positive / source.samples:.1%}",
            "λ": f"{settings.strength[name]:g}",
            "scaling": _SCALED[settings.scaling_of(name)],
            "block": str(settings.batch_size[name]),
            "edges": _range(mine["edges"]),
            "graph's penalty": _range(mine["alpha"], ".3g"),
        }
        if "unbounded" in mine and mine["unbounded"].notna().any():
            row["unpenalised and unbounded (A = G)"] = _range(mine["unbounded"])
        rows.append(row)
    return rows


def _range(values: Any, form: str = ",.0f") -> str:
    if not len(values):
        return "–"
    low, high = values.min(), values.max()
    return format(low, form) if format(low, form) == format(high, form) else f"{low:{form}}–{high:{form}}"


def shown(value: Any, digits: int = 2) -> str:
    """A number for a table: ∞ and – where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        if math.isinf(value):
            return "∞"
        if value != 0 and (abs(value) < 1e-2 or abs(value) >= 1e4):
            mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
            return f"{mantissa}e{int(exponent)}"
        return f"{value:,.0f}" if abs(value) >= 10 ** (digits + 1) else f"{value:.{digits + 1}g}"
    return str(value)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    if not rows:
        return ""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join("---" for _ in heads) + "|"]
    for row in rows:
        lines.append("| " + " | ".join(str(row.get(head, "")).replace("|", "\\|") for head in heads) + " |")
    return "\n".join(lines)


def summary_rows(summary: pd.DataFrame) -> list[dict[str, str]]:
    """The summary for readers: mean ± std, ranks, passes to the targets."""
    points = [name.removeprefix("mean@") for name in summary.columns if name.startswith("mean@")]
    points.sort(key=float)
    rows = []
    for record in summary.to_dict("records"):
        name = record["method"] if record["variant"] == "paper" else f"{record['method']}, {record['variant']}"
        row = {"data": record["data"], "A": matrix_name(record["matrix"]), "problem": record["problem"], "method": name}
        for point in points:
            mean, std = record.get(f"mean@{point}", math.nan), record.get(f"std@{point}", math.nan)
            row[f"@{point}"] = "–" if math.isnan(mean) else f"{shown(mean)} ± {shown(std)}"
        row["rank"] = shown(record["rank"])
        for head, value in record.items():
            if head.startswith(("passes to", "seconds to")):
                row[head] = shown(value)
        row["ms/pass"] = shown(record["ms per pass"])
        row["test loss"] = f"{record['test_loss']:.4f}"
        row["step"] = shown(record["step"])
        row["step at an end of its grid"] = record["step at edge"]
        if record["diverged"]:
            row["method"] += f" ({record['diverged']} of {record['repeats']} diverged)"
        rows.append(row)
    return rows


def matrix_name(matrix: str) -> str:
    """A as it is written."""
    return "[G; I]" if matrix == "stacked" else "G"
