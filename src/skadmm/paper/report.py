"""The report: one HTML file that needs nothing else, with every figure live and its numbers inside."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.io import page as html
from skadmm.io.atomic import write_atomically
from skadmm.paper.claims import STATEMENTS, Verdict, leads, selection_sizes
from skadmm.paper.collect import KEYS, Collected
from skadmm.paper.figures import FigureSpec, line_label, rank
from skadmm.paper.runner import Failure
from skadmm.paper.settings import BEYOND, PROTOCOLS, WITH_TABLE, Settings
from skadmm.paper.tables import PAPER_ORDER, data_label, matrix_name, method_label, summary_rows
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
        "STYLE": html.style("skadmm.paper"),
        "SCRIPT": html.asset("skadmm.paper", "report.js"),
        "CONTENT": html.embedded(content),
        "LEAD": _lead(settings, collected),
        "TERMS": _terms(settings, collected),
        "CLAIMS": _claims(settings, verdicts),
        "LEADS": html.table(leads(collected.trace, settings, about["iterate"]), "Leads of SA-IU-ADMM"),
        "SUMMARY": _summaries(settings, summary),
        "SUMMARY_LINK": html.download(summary.to_csv(index=False), "summary.csv", "all of it (CSV)"),
        "TABLE1": html.table(table1, "Table 1"),
        "TABLE1_LINK": html.download(_csv(table1), "table1.csv", "Table 1 (CSV)"),
        "TABLE2": html.table(table2, "Table 2"),
        "TABLE2_LINK": html.download(_csv(table2), "table2.csv", "Table 2 (CSV)"),
        "OPTIMA": _optima(collected),
        "ABOUT": _about(about),
        "FAILURES": _failures(failures),
    }
    page = html.asset("skadmm.paper", "report.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    write_atomically(path, lambda stream: stream.write(page.encode()))


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
            "color": style.color, "dark": on_dark(style.color),
            "dash": "2 3" if variant == "restored" else DASHES.get(style.line, "4 3"),
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
        "best": "“Best” is the minimum over the methods drawn, separately in each repeat.",
        "optimum": "The optimum comes from a solver run to high accuracy, or is the minimum of all runs.",
        "test_loss": "The mean logistic loss of the last iterate on the half of the data not used for training.",
    }
    for spec in drawn:
        key = (spec.y, spec.problem, spec.lines)
        if key in found:
            continue
        title = spec.title.split(" versus ")[0]
        if spec.problem == "strong" and "strongly" not in title:
            title += ", strongly convex"
        extra = {"restored": " Dotted: protocol “restored”.",
                 "zero+n": " The SA methods run under the protocol “zero+n”, the other methods as above.",
                 "beyond": " With methods beyond the paper, at their own default settings.", "paper": ""}  # fmt: skip
        y = "best_zero_n" if (spec.y, spec.lines) == ("best", "zero+n") else spec.y
        found[key] = {
            "id": spec.name, "title": title, "y": y, "problem": spec.problem,
            "kinds": _KINDS[spec.lines], "note": notes[spec.y] + extra[spec.lines],
        }  # fmt: skip
    return list(found.values())


def _text(text: str) -> str:
    """Escaped text in which the name of a method is not divided at its hyphens."""
    return re.sub(r"\b[A-Za-z]+(-[A-Za-z]+)*-(ADMM|admm)\b", r'<span class="name">\g<0></span>', html.escape(text))


def _lead(settings: Settings, collected: Collected) -> str:
    runs = collected.trace.groupby([*KEYS, "method", "variant", "repeat"]).ngroups
    repeats = ", ".join(
        f"{data_label(name)} ({settings.repeats[name]} {'repeats' if settings.repeats[name] > 1 else 'repeat'})"
        for name in settings.data
    )
    text = f"{runs:,} runs, {len(collected.trace):,} recorded points: {repeats}."
    for (data, method), why in collected.refusals.items():
        text += f" {method} does not take {data}: {why}."
    return html.escape(text)


def _terms(settings: Settings, collected: Collected) -> str:
    """What the words of the report mean, before they are used."""
    methods = [name for name in PAPER_ORDER if name in settings.paper_methods]
    rules = "; ".join(f"{method_label(name)} uses {_RULES[name]}" for name in methods)
    matrices = " and A = ".join(map(matrix_name, settings.matrices))
    terms = {
        "Objective f": "The mean logistic loss on the training half plus λ times the ℓ1 norm of Ax. G has a row for "
        "each edge of a graph on the features, learnt from the training half; A is G, or [G; I], which also penalises "
        f"the coefficients themselves. Here A = {matrices}. Each repeat draws its own random half of the samples for "
        "training; the other half is for testing.",
        "Strongly convex problem": f"The same objective plus (μ/2)‖x‖², with μ = {settings.mu:g}.",
        "Relative suboptimality": "(f − f*)/f*, where f* is the optimal value of the same problem. Smaller is better.",
        "Pass": "As many evaluations of a sample's gradient as there are training samples.",
        "Methods": f"They differ in the gradient of the loss that a step uses. {rules}. Table 1 lists which of them "
        "linearise the quadratic term of ADMM, so that a step solves no linear system.",
        "Step selection": _selection(collected),
        "Ahead": "The mean relative suboptimality is smaller by more than 5 %.",
    }
    for name in settings.protocols:
        if (collected.trace["variant"] == name).any():
            terms[f"Protocol “{name}”"] = f"{PROTOCOLS[name]}."
    return "<dl>" + "".join(f"<dt>{html.escape(k)}</dt><dd>{_text(v)}</dd>" for k, v in terms.items()) + "</dl>"


_RULES = {
    "sa-admm": "the mean over a table with the newest gradient of every sample (SA: stochastic average)",
    "sa-iu-admm": "the same mean",
    "stoc-admm": "the gradient of the newest samples alone",
    "opg-admm": "the same",
    "rda-admm": "the mean of all gradients of the past",
    "batch-admm": "the gradient over all samples",
    "batch-iu-admm": "the same",
}
"""The gradient that each method of the paper uses, in words."""


def _selection(collected: Collected) -> str:
    sizes = selection_sizes(collected.trace)
    listed = ", ".join(f"{data_label(name)} {size:,}" for name, size in sizes.items())
    return "Every method tries several steps on a random subset of the training half and keeps the best" + (
        f". Samples in the subset: {listed}." if listed else "."
    )


def on_dark(color: str) -> str:
    """Return `color`, made lighter until it has a contrast of 4.5 with the dark background."""
    channels = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)], dtype=float)
    while _contrast(channels) < 4.5:
        channels += 0.1 * (255 - channels)
    return "#" + "".join(f"{round(value):02x}" for value in channels)


def _contrast(channels: np.ndarray) -> float:
    """The contrast with the dark background of the page, as WCAG defines it."""

    def luminance(values: np.ndarray) -> float:
        shares = values / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    return (luminance(channels) + 0.05) / (luminance(np.array([0x15, 0x19, 0x1D])) + 0.05)


def _claims(settings: Settings, verdicts: list[Verdict]) -> str:
    """A grid of verdicts, then the numbers behind each."""
    if not verdicts:
        return "<p>The methods run here are too few to judge the paper's claims.</p>"
    places = list(dict.fromkeys((verdict.data, verdict.matrix) for verdict in verdicts))
    variants = list(dict.fromkeys(verdict.variant for verdict in verdicts))
    by_key = {(v.claim, v.data, v.matrix, v.variant): v for v in verdicts}
    heads = "".join(
        f'<th scope="col">{html.escape(data_label(data))}'
        f"{'' if len(settings.matrices) == 1 else '<br>A = ' + matrix_name(matrix)}</th>"
        for data, matrix in places
    )
    rows = []
    for variant in variants:
        if len(variants) > 1:
            text = f"Protocol “{html.escape(variant)}”" + ("" if variant == "paper" else ", which is not the paper's")
            rows.append(f'<tr class="part"><th scope="rowgroup" colspan="{len(places) + 1}">{text}</th></tr>')
        for claim, statement in STATEMENTS.items():
            cells = "".join(_badge(by_key.get((claim, data, matrix, variant))) for data, matrix in places)
            rows.append(f'<tr><th scope="row">{_text(statement)}</th>{cells}</tr>')
    details = []
    for verdict in verdicts:
        where = data_label(verdict.data) + (
            "" if len(settings.matrices) == 1 else f", A = {matrix_name(verdict.matrix)}"
        )
        run = "" if verdict.variant == "paper" else f" ({verdict.variant})"
        why = f"<p class='why'>Why: {html.escape(verdict.why)}.</p>" if verdict.why else ""
        details.append(
            f"<li><b>{html.escape(where)}{run}: {html.escape(STATEMENTS[verdict.claim])}</b> — {verdict.text}."
            f"<p>{html.escape(verdict.numbers)}</p>{why}</li>"
        )
    grid = html.scrolling(
        f'<table class="claims"><thead><tr><th scope="col">claim</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>",
        "Claims",
    )
    return (
        f"{grid}<details><summary>The numbers behind each verdict</summary>"
        f"<ul class='numbers'>{''.join(details)}</ul></details>"
    )


def _badge(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td>–</td>"
    css = {"holds": "yes", "holds in part": "part", "does not hold": "no"}[verdict.verdict]
    short, _, fails = verdict.text.partition("; ")
    where = f'<br><small class="fails">{html.escape(fails)}</small>' if fails else ""
    return f'<td><span class="badge {css}" title="{html.escape(verdict.numbers)}">{short}</span>{where}</td>'


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
        parts.append(f"<details{opened}><summary>{html.escape(title)}</summary>{html.table(rows, title)}</details>")
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
    return html.table(rows, "Optima")


def _about(about: dict[str, Any]) -> str:
    command = f'<pre tabindex="0">{html.escape(about["command"])}</pre>' if about["command"] else ""
    settings = {name: _setting(value) for name, value in about["settings"].items()}
    settings["iterate shown"] = about["iterate"]
    versions = dict(about["versions"])
    versions["state of the sources"] = ", ".join(digest[:12] for digest in about["sources"])
    mixed = (
        "<p>Some runs were kept from an earlier state of the sources; delete the folder <code>cells</code> to repeat "
        "all of them.</p>"
        if len(about["sources"]) > 1 else ""
    )  # fmt: skip
    return (
        f"{command}<div class='two'>{html.facts(settings, 'Settings')}{html.facts(versions, 'Versions')}</div>{mixed}"
    )


def _setting(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {entry}" if name else f"{entry}" for name, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    items = "".join(f"<li>{html.escape(failure.task.label)}: {html.escape(failure.error)}</li>" for failure in failures)
    return f'<section class="failed"><h2>Failed</h2><ul>{items}</ul></section>'


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    import pandas as pd

    return pd.DataFrame(list(rows)).to_csv(index=False)
