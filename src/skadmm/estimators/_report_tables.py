"""The tables of a report: the coefficients, and the features that share one."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from skadmm.backends.frames import dates_in_words
from skadmm.estimators._categories import feature_names
from skadmm.estimators._graphs import as_names
from skadmm.io import page as html

MOST_ROWS = 50
"""Rows of a table of the page; the file to download has all coefficients."""
MOST_NAMES = 12
"""Names of features that are listed for a cluster."""
EQUAL = 9
"""Digits in which the coefficients of a cluster are compared."""
CONDITIONAL = (
    "The values are relaxed: they were fitted again, without the penalty, on the structure that the penalised fit "
    "found. Their standard errors take this structure as given, although the same data chose it, and are too small "
    "to test it."
)
"""What a reader has to know about relaxed values."""


def is_signal(model: Any) -> bool:
    """Return whether the coefficients are the values of a signal at its positions."""
    return getattr(model, "positions_", None) is not None


def is_relaxed(model: Any) -> bool:
    """Return whether ``coef_`` was fitted again without the penalty."""
    return hasattr(model, "penalized_coef_")


def part_names(model: Any) -> list[str]:
    """What each row of ``coef_`` belongs to, "class a" or "output 0"; empty where there is one row."""
    rows = len(np.atleast_2d(model.coef_))
    if rows == 1:
        return []
    if hasattr(model, "classes_"):
        return [f"class {label}" for label in model.classes_]
    return [f"output {name}" for name in output_names(model)]


def output_names(model: Any) -> list[str]:
    """The names of the outputs; their numbers where y had no names."""
    rows = len(np.atleast_2d(model.coef_))
    names = getattr(model, "output_names_", ())
    return list(names) if len(names) == rows else [str(number) for number in range(rows)]


def coefficient_names(model: Any) -> list[str]:
    """What each coefficient belongs to: a position of a signal, or a feature by its name (x0, x1, … without names)."""
    if is_signal(model):
        return position_names(model, model.positions_)
    return as_names(feature_names(model), np.shape(model.coef_)[-1]).tolist()


def position_names(model: Any, positions: np.ndarray) -> list[str]:
    """Positions of a signal as texts: as dates where the model was fitted on dates."""
    if getattr(model, "dates_", False):
        return dates_in_words(positions)
    return [f"{position:g}" for position in positions]


def coefficients_table(model: Any) -> str:
    """A link to all coefficients as CSV, and a table: of the largest, or of a signal at its knots."""
    names, columns = coefficient_names(model), _columns(model)
    first = "position" if is_signal(model) else "feature"
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([first, *columns])
    writer.writerows([name, *row] for name, row in zip(names, np.array(list(columns.values())).T.tolist(), strict=True))
    kind = "values" if is_signal(model) else "coefficients"
    link = f"<p>{html.download(stream.getvalue(), 'coefficients.csv', f'All {kind} as CSV')}.</p>"
    order, title = _listed(model)
    if not order.size:
        return link
    rows = [{first: names[j]} | {head: _cell(column[j]) for head, column in columns.items()} for j in order]
    return f"{link}<details><summary>{html.escape(title)}</summary>{html.table(rows, title)}</details>"


def _columns(model: Any) -> dict[str, np.ndarray]:
    """The coefficients of each class or output; with `relax`, also their standard errors and the penalised ones."""
    of = [f", {part}" for part in part_names(model)] or [""]
    kind = "value" if is_signal(model) else "coefficient"
    sources = {kind: model.coef_}
    if is_relaxed(model):
        sources = {
            f"relaxed {kind}": model.coef_,
            "standard error, given the structure": model.standard_errors_,
            f"penalised {kind}": model.penalized_coef_,
        }
    rows = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in sources.items()}
    return {f"{name}{part}": values[k] for k, part in enumerate(of) for name, values in rows.items()}


def _listed(model: Any) -> tuple[np.ndarray, str]:
    """The rows of the table, and its title."""
    if is_signal(model):
        if model.changepoints_ is None:
            return np.empty(0, dtype=int), ""
        knots = model.changepoints_[: MOST_ROWS - 1]
        of = f"the first {knots.size} of its {model.changepoints_.size}" if knots.size < model.changepoints_.size else (
            f"its {knots.size}")  # fmt: skip
        more = f" and at {of} {'knot' if model.changepoints_.size == 1 else 'knots'}" if knots.size else ""
        return np.concatenate([[0], knots]).astype(int), f"The signal at its first position{more} as a table"
    size = np.abs(np.atleast_2d(model.coef_)).max(axis=0)
    used = int(np.count_nonzero(size))
    order = np.argsort(-size, kind="stable")[: min(used, MOST_ROWS)]
    title = f"The {MOST_ROWS} largest coefficients as a table" if used > MOST_ROWS else (
        "The coefficients that are not zero as a table")  # fmt: skip
    return order, title


def _cell(value: float) -> str:
    return "not estimated" if np.isnan(value) else f"{value:.6g}"


def clusters_table(model: Any) -> str:
    """The features that share a coefficient, largest clusters first."""
    if not hasattr(model, "clusters_") or is_signal(model):
        return ""
    names = np.array(coefficient_names(model), dtype=object)
    scale = getattr(model, "scale_", np.ones(names.size))
    value = "coefficient" if np.all(scale == 1.0) else "coefficient of the standardised columns"
    labels, parts = np.atleast_2d(model.clusters_), np.atleast_2d(model.coef_)
    of = part_names(model)
    kind = "class" if hasattr(model, "classes_") else "output"
    rows: list[dict[str, Any]] = []
    signed = False
    for k, (clusters, coef) in enumerate(zip(labels, parts, strict=True)):
        where = {kind: of[k].removeprefix(f"{kind} ")} if of else {}
        for label in range(int(clusters.max()) + 1):
            members = clusters == label
            heights = _heights(coef[members] * scale[members], names[members])
            signed |= len(heights) > 1
            rows.append({**where, "features": int(members.sum()), value: _in_short(list(heights)),
                         "names": _members(heights)})  # fmt: skip
    if not rows:
        return ""
    rows.sort(key=lambda row: -row["features"])
    more = f"<p>The {MOST_ROWS} largest of {len(rows)}.</p>" if len(rows) > MOST_ROWS else ""
    up_to = ", up to their signs where edges with a negative sign join them" if signed else ""
    return f"<p>Features that share one coefficient{up_to}.</p>{html.table(rows[:MOST_ROWS], 'Clusters')}{more}"


def _heights(values: np.ndarray, names: np.ndarray) -> dict[str, np.ndarray]:
    """The features of a cluster by their coefficient: one, or two of opposite signs where an edge is negative."""
    largest = float(np.abs(values).max()) or 1.0
    _, first, kind = np.unique(np.round(values / largest, EQUAL), return_index=True, return_inverse=True)
    return {f"{values[first[j]]:.6g}": names[kind.ravel() == j] for j in range(first.size - 1, -1, -1)}


def _in_short(heights: list[str]) -> str:
    if len(heights) == 2 and heights[1] == f"-{heights[0]}":
        return f"±{heights[0]}"
    return ", ".join(heights)


def _members(heights: dict[str, np.ndarray]) -> str:
    """The names of the features of a cluster, by their coefficient where there are several."""
    listed = []
    for height, names in heights.items():
        text = ", ".join(map(str, names[:MOST_NAMES])) + (", …" if names.size > MOST_NAMES else "")
        listed.append(f"{height}: {text}" if len(heights) > 1 else text)
    return "; ".join(listed)
