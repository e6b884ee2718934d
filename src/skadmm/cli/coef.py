"""``skadmm coef``: the coefficients of a fitted model, with the clusters or groups it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import typer

from skadmm.cli._errors import CommandError
from skadmm.cli.tables import as_text

SHOWN = 40
"""Rows printed without ``--all``."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(coef)


def coef(
    model: Path = typer.Argument(help="A file that `skadmm fit` wrote."),  # noqa: B008
    as_csv: bool = typer.Option(False, "--csv", help="Print all coefficients as CSV."),
    every: bool = typer.Option(False, "--all", help="Print zero coefficients, too."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the coefficients that are not zero.

    The features that were fused, or selected together as groups, are shown too. Features without names, as those of an
    npy file, are x0, x1, …: the columns of the fit in their order, without targets, weights and dropped columns.
    """
    if as_csv and as_json:
        raise CommandError("--csv and --json: it takes only one of them", 2)
    import skadmm

    estimator = skadmm.load(model)
    columns = coefficient_columns(estimator)
    intercepts = np.atleast_1d(np.asarray(estimator.intercept_, dtype=float))
    if as_json:
        listed = {name: np.asarray(column).tolist() for name, column in columns.items()}
        facts = {"model": type(estimator).__name__, "intercept": intercepts.tolist()}
        if _has_knots(estimator):
            facts |= {"knots": estimator.knots_.tolist(), "changepoints": estimator.changepoints_.tolist()}
        print(json.dumps(facts | listed))
        return
    if as_csv:
        print(",".join(map(as_text, columns)))
        for row in zip(*columns.values(), strict=True):
            print(",".join(as_text(value) for value in row))
        return
    _tell(estimator, columns, intercepts, every)


def coefficient_columns(estimator: Any) -> dict[str, Any]:
    """A column of names, one of coefficients for each problem, and the clusters or groups of the features."""
    from skadmm.estimators._report_groups import group_labels
    from skadmm.estimators._report_tables import coefficient_names, output_names

    rows = np.atleast_2d(np.asarray(estimator.coef_, dtype=float))
    d = rows.shape[1]
    columns: dict[str, Any] = {"feature": coefficient_names(estimator)}
    labels_of_rows = getattr(estimator, "classes_", output_names(estimator))
    titles = [f"coef[{label}]" for label in labels_of_rows] if len(rows) > 1 else ["coef"]
    columns |= dict(zip(titles, rows, strict=True))
    if hasattr(estimator, "clusters_"):
        labels = np.atleast_2d(estimator.clusters_)
        columns |= dict(zip([title.replace("coef", "cluster") for title in titles], labels, strict=True))
    if getattr(estimator, "groups_", None) is not None:
        member: list[list[str]] = [[] for _ in range(d)]
        for name, group in zip(group_labels(estimator), estimator.groups_, strict=True):
            for feature in group:
                member[int(feature)].append(name)
        columns["groups"] = [";".join(numbers) for numbers in member]
    return columns


def _tell(estimator: Any, columns: dict[str, Any], intercepts: np.ndarray, every: bool) -> None:
    from skadmm.estimators._report_groups import active_groups
    from skadmm.estimators.report import favoured_class, in_favour

    rows = np.column_stack([column for name, column in columns.items() if name.startswith("coef")])
    used = np.any(rows != 0.0, axis=1)
    order = np.arange(used.size) if every else np.flatnonzero(used)
    shown = order if every else order[:SHOWN]
    print(f"{type(estimator).__name__}: {int(used.sum())} of {used.size} features have a coefficient that is not zero")
    print(f"intercept {', '.join(f'{value:.6g}' for value in intercepts)}")
    favoured = favoured_class(estimator)
    if favoured is not None:
        print(in_favour(favoured))
    if hasattr(estimator, "group_names_"):
        print(f"active groups: {active_groups(estimator)}")
    if _has_knots(estimator):
        print(_knots(estimator, every))
    if not shown.size:
        return
    cells = [[name, *(_cell(column[k]) for k in shown)] for name, column in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    for first, *rest in zip(*cells, strict=True):
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *numbers]))
    if shown.size < order.size:
        print(f"… and {order.size - shown.size} more: --all or --csv shows them")


def _has_knots(estimator: Any) -> bool:
    return getattr(estimator, "knots_", None) is not None


def _knots(estimator: Any, every: bool) -> str:
    """A line with the positions at which pieces of a trend meet."""
    from skadmm.estimators._report_tables import position_names

    knots = estimator.knots_
    if not knots.size:
        return "no knots: one piece"
    shown = knots if every else knots[:SHOWN]
    more = f", … and {knots.size - shown.size} more: --all shows them" if shown.size < knots.size else ""
    return (
        f"{knots.size} {'knot' if knots.size == 1 else 'knots'}, at {', '.join(position_names(estimator, shown))}{more}"
    )


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
