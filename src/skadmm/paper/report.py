"""The report: one HTML file that needs nothing else, with every figure live and its numbers inside."""

from __future__ import annotations

import base64
import html
import importlib.resources
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.io.atomic import write_atomically
from skadmm.paper.claims import STATEMENTS, Verdict, leads
from skadmm.paper.collect import KEYS, Collected
from skadmm.paper.figures import FigureSpec, line_label, rank
from skadmm.paper.runner import Failure
from skadmm.paper.settings import BEYOND, PROTOCOLS, WITH_TABLE, Settings
from skadmm.paper.tables import data_label, matrix_name, summary_rows
from skadmm.plotting import style_of
from skadmm.solvers import ALGORITHMS

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 5
DASHES = {"-": "", "--": "6 4", ":": "2 3"}


def write_report(
    path: Path, settings: Settings, collected: Collected, drawn: list[FigureSpec], summary: pd.DataFrame,
    verdicts: list[Verdict], table1: list[dict[str, str]], table2: list[dict[str, Any]], about: dict[str, Any],
    failures: list[Failure],
) -> None:  # fmt: skip
    """Write the report to `path`."""
    lines = series(collected.trace, settings, about["iterate"])
    content = {
        "lines": lines,
        "figures": _figures(drawn),
        "data": {name: data_label(name) for name in settings.data},
        "matrices": {matrix: f"A = {matrix_name(matrix)}" for matrix in settings.matrices},
    }
    parts = {
        "STYLE": _asset("report.css"),
        "SCRIPT": _asset("report.js"),
        # "</" would end the script element that holds the numbers.
        "CONTENT": json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/"),
        "LEAD": _lead(settings, collected),
        "CLAIMS": _claims(settings, verdicts),
        "LEADS": _table(leads(collected.trace, settings, about["iterate"])),
        "SUMMARY": _summaries(settings, summary),
        "SUMMARY_LINK": _download(summary.to_csv(index=False), "summary.csv", "all of it as CSV"),
        "TABLE1": _table(table1),
        "TABLE1_LINK": _download(_csv(table1), "table1.csv", "CSV"),
        "TABLE2": _table(table2),
        "TABLE2_LINK": _download(_csv(table2), "table2.csv", "CSV"),
        "OPTIMA": _optima(collected),
        "ABOUT": _about(about),
        "FAILURES": _failures(failures),
    }
    page = _asset("report.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    write_atomically(path, lambda stream: stream.write(page.encode()))


def _asset(name: str) -> str:
    return importlib.resources.files("skadmm.paper").joinpath("assets", name).read_text(encoding="utf-8")


def series(trace: pd.DataFrame, settings: Settings, iterate: str) -> list[dict[str, Any]]:
    """Every line: mean, minimum and maximum over repeats at each recording."""
    lines = []
    column = "objective" if iterate == "last" else "objective_average"
    for key, frame in trace.groupby([*KEYS, "method", "variant"], sort=False):
        data, matrix, problem, method, variant = key
        diverged = frame.loc[frame["status"] == "diverged", "repeat"].unique()
        if len(diverged) < frame["repeat"].nunique():
            frame = frame[~frame["repeat"].isin(diverged)]
        style = style_of(method)
        line: dict[str, Any] = {
            "data": data, "matrix": matrix, "problem": problem, "method": method, "variant": variant,
            "label": line_label(method, variant), "kind": _kind(method, variant, settings),
            "color": style.color, "dash": "2 3" if variant == "restored" else DASHES.get(style.line, "4 3"),
            # Twins that differ only in this coincide for long stretches: one is drawn wide, the other on top of it.
            "wide": not ALGORITHMS[method].linearised,
            "repeats": int(frame["repeat"].nunique()), "diverged": len(diverged),
        }  # fmt: skip
        for name in ("passes", "seconds"):
            line[name] = _rounded(frame.groupby("record")[name].mean())
        measures = {
            "best": frame[column] - frame["best"],
            "best_zero_n": frame[column] - frame["best_zero_n"],
            "optimum": frame[column] - frame["optimum"],
            "test_loss": frame["test_loss"],
        }
        for name, values in measures.items():
            grouped = values.groupby(frame["record"])
            line[name] = [_rounded(grouped.mean()), _rounded(grouped.min()), _rounded(grouped.max())]
        lines.append(line)
    return sorted(lines, key=lambda line: rank(line["method"], line["variant"]))


def _kind(method: str, variant: str, settings: Settings) -> str:
    """Which figures have a line: see ``_KINDS``."""
    if variant != "paper":
        return variant
    if method in settings.paper_methods:
        return "literal" if method in WITH_TABLE else "paper"
    return "beyond" if method in BEYOND else "other"


_KINDS = {
    "paper": ["paper", "literal"],
    "zero+n": ["paper", "zero+n"],
    "restored": ["paper", "literal", "restored"],
    "beyond": ["paper", "literal", "beyond"],
}
"""The kinds of lines in a figure, by what it shows; the literal ones are the paper's methods with a table."""


def _rounded(values: Any) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def _figures(drawn: Sequence[FigureSpec]) -> list[dict[str, Any]]:
    """The figures by what they show; passes or seconds, and A, are a switch."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    notes = {
        "best": "“Best” is the lowest value obtained across the methods drawn, repeat by repeat.",
        "optimum": "The optimum is that of a solver run to high accuracy, or the lowest value known.",
        "test_loss": "The mean logistic loss of the last iterate on the other half of the data.",
    }
    for spec in drawn:
        key = (spec.y, spec.problem, spec.lines)
        if key in found:
            continue
        title = spec.title.split(" versus ")[0]
        if spec.problem == "strong" and "strongly" not in title:
            title += ", strongly convex"
        extra = {"restored": f" Dotted: {_lower(PROTOCOLS['restored'])}.",
                 "zero+n": f" {PROTOCOLS['zero+n']}; the other methods as above.",
                 "beyond": " With methods beyond the paper, at their own default settings.", "paper": ""}  # fmt: skip
        y = "best_zero_n" if (spec.y, spec.lines) == ("best", "zero+n") else spec.y
        found[key] = {
            "id": spec.name, "title": title, "y": y, "problem": spec.problem,
            "kinds": _KINDS[spec.lines], "note": notes[spec.y] + extra[spec.lines],
        }  # fmt: skip
    return list(found.values())


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _lead(settings: Settings, collected: Collected) -> str:
    runs = collected.trace.groupby([*KEYS, "method", "variant", "repeat"]).ngroups
    repeats = ", ".join(
        f"{data_label(name)} ({settings.repeats[name]} {'repeats' if settings.repeats[name] > 1 else 'repeat'})"
        for name in settings.data
    )
    text = f"{runs:,} runs, {len(collected.trace):,} recorded points: {repeats}."
    for (data, method), why in collected.refusals.items():
        text += f" {method} does not take {data}: {why}."
    return _escape(text)


def _claims(settings: Settings, verdicts: list[Verdict]) -> str:
    """A grid of verdicts, then the numbers behind each."""
    if not verdicts:
        return "<p>The methods run here are too few to judge the paper's claims.</p>"
    places = list(dict.fromkeys((verdict.data, verdict.matrix) for verdict in verdicts))
    variants = list(dict.fromkeys(verdict.variant for verdict in verdicts))
    by_key = {(v.claim, v.data, v.matrix, v.variant): v for v in verdicts}
    heads = "".join(
        f"<th>{_escape(data_label(data))}{'' if len(settings.matrices) == 1 else '<br>A = ' + matrix_name(matrix)}</th>"
        for data, matrix in places
    )
    rows = []
    for variant in variants:
        if len(variants) > 1:
            text = _escape(PROTOCOLS[variant])
            rows.append(f'<tr class="part"><th colspan="{len(places) + 1}"><span>{text}</span></th></tr>')
        for claim, statement in STATEMENTS.items():
            cells = "".join(_badge(by_key.get((claim, data, matrix, variant))) for data, matrix in places)
            rows.append(f"<tr><th>{_escape(statement)}</th>{cells}</tr>")
    details = []
    for verdict in verdicts:
        where = data_label(verdict.data) + (
            "" if len(settings.matrices) == 1 else f", A = {matrix_name(verdict.matrix)}"
        )
        run = "" if verdict.variant == "paper" else f" ({verdict.variant})"
        why = f"<p class='why'>Why: {_escape(verdict.why)}.</p>" if verdict.why else ""
        details.append(
            f"<li><b>{_escape(where)}{run}: {_escape(STATEMENTS[verdict.claim])}</b> — {verdict.text}."
            f"<p>{_escape(verdict.numbers)}</p>{why}</li>"
        )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Claims">'
        f'<table class="claims"><thead><tr><th>claim</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<details><summary>The numbers behind each verdict</summary>"
        f"<ul class='numbers'>{''.join(details)}</ul></details>"
    )


def _badge(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td>–</td>"
    css = {"holds": "yes", "holds in part": "part", "does not hold": "no"}[verdict.verdict]
    short, _, fails = verdict.text.partition("; ")
    where = f'<br><small class="fails">{_escape(fails)}</small>' if fails else ""
    return f'<td><span class="badge {css}" title="{_escape(verdict.numbers)}">{short}</span>{where}</td>'


def _summaries(settings: Settings, summary: pd.DataFrame) -> str:
    """One foldable table per problem."""
    parts: list[str] = []
    for key, frame in summary.groupby(KEYS, sort=False):
        data, matrix, problem = key
        rows = [
            {head: text for head, text in row.items() if head not in ("data", "A", "problem")}
            for row in summary_rows(frame.dropna(axis=1, how="all"))
        ]
        title = f"{data_label(data)}, {'strongly convex' if problem == 'strong' else 'convex'}"
        title += "" if len(settings.matrices) == 1 else f", A = {matrix_name(matrix)}"
        opened = " open" if not parts else ""
        parts.append(f"<details{opened}><summary>{_escape(title)}</summary>{_table(rows)}</details>")
    return "".join(parts)


def _optima(collected: Collected) -> str:
    if not len(collected.optima):
        return "<p>None was computed.</p>"
    rows = []
    for key, frame in collected.optima.groupby(KEYS, sort=False):
        rows.append({
            "data": key[0], "A": matrix_name(key[1]), "problem": key[2], "by": ", ".join(frame["method"].unique()),
            "status": ", ".join(frame["status"].unique()), "objective, repeat 1": f"{frame['objective'].iloc[0]:.8g}",
            "largest KKT residual": f"{frame['kkt'].max():.1e}",
            "largest gap": f"{frame['gap'].astype(float).max():.1e}" if frame["gap"].notna().any() else "–",
            "non-zeros": f"{frame['nonzeros'].min()}–{frame['nonzeros'].max()}",
        })  # fmt: skip
    return _table(rows)


def _about(about: dict[str, Any]) -> str:
    command = f"<pre>{_escape(about['command'])}</pre>" if about["command"] else ""
    settings = [{"setting": name, "value": _setting(value)} for name, value in about["settings"].items()]
    settings.append({"setting": "iterate shown", "value": about["iterate"]})
    versions = [{"what": name, "version": version} for name, version in about["versions"].items()]
    versions.append({"what": "state of the sources", "version": ", ".join(about["sources"])})
    mixed = (
        "<p>The cells were run with more than one state of the sources; delete the folder of cells to run all anew.</p>"
        if len(about["sources"]) > 1 else ""
    )  # fmt: skip
    return f"{command}<div class='two'>{_table(settings)}{_table(versions)}</div>{mixed}"


def _setting(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {entry}" if name else f"{entry}" for name, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    items = "".join(f"<li>{_escape(failure.task.label)}: {_escape(failure.error)}</li>" for failure in failures)
    return f'<section class="failed"><h2>Failed</h2><ul>{items}</ul></section>'


def _table(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    head = "".join(f"<th>{_escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_escape(str(row.get(name, '')))}</td>" for name in heads) + "</tr>" for row in rows
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    import pandas as pd

    return pd.DataFrame(list(rows)).to_csv(index=False)


def _download(text: str, name: str, label: str) -> str:
    coded = base64.b64encode(text.encode()).decode()
    return f'<a class="download" download="{name}" href="data:text/csv;base64,{coded}">{label}</a>'


def _escape(text: str) -> str:
    return html.escape(text, quote=True)
