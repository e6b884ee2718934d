"""The figures in the paper's arrangement: one panel per data set, two columns, the legend below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skadmm.paper.settings import BEYOND, WITH_TABLE, Settings
from skadmm.paper.tables import PAPER_ORDER, data_label, matrix_name, method_label
from skadmm.plotting import comparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FigureSpec:
    """What one figure shows."""

    name: str
    title: str
    problem: str
    y: str
    """"best" (objective − the lowest across the methods drawn), "optimum" (objective − the true optimum) or
    "test_loss"."""
    x: str
    matrix: str
    lines: str = "paper"
    """"paper": the seven as the paper runs them; "zero+n": the seven under that protocol; "restored": the paper's and
    the restored ones; "beyond": the paper's and methods beyond it."""


_QUANTITY = {
    "best": "objective value − best",
    "optimum": "objective value − optimum",
    "test_loss": "testing loss",
}
_ACROSS = {"passes": "number of effective passes", "seconds": "processor seconds"}


def specs(settings: Settings, trace: pd.DataFrame) -> Iterator[FigureSpec]:
    """The paper's figures, then those it does not have."""
    for matrix in settings.matrices:
        tail = "" if matrix == settings.matrices[0] else f"-{matrix}"
        note = f", A = {matrix_name(matrix)}"
        yield from _numbered(settings, trace, matrix, tail, note)
        for problem in settings.problems:
            strong = ", strongly convex" if problem == "strong" else ""
            for x in ("passes", "seconds"):
                end = ("" if x == "passes" else "-seconds") + ("-strong" if strong else "") + tail
                against = f"versus {_ACROSS[x]}{strong}{note}"
                yield FigureSpec(f"optimum{end}", f"Distance to the true optimum {against}", problem, "optimum", x,
                                 matrix)  # fmt: skip
                if (trace["variant"] == "restored").any():
                    yield FigureSpec(f"restored{end}", f"The SA methods restored {against}", problem, "optimum", x,
                                     matrix, "restored")  # fmt: skip
                if trace["method"].isin(BEYOND).any():
                    yield FigureSpec(f"beyond{end}", f"Beyond the paper {against}", problem, "optimum", x, matrix,
                                     "beyond")  # fmt: skip


def _numbered(settings: Settings, trace: pd.DataFrame, matrix: str, tail: str, note: str) -> Iterator[FigureSpec]:
    """The paper's own figures; each again under the protocol zero+n, where that was run."""
    numbered = {1: ("convex", "best", "Objective value"), 2: ("convex", "test_loss", "Testing loss"),
                3: ("strong", "best", "Objective value, strongly convex")}  # fmt: skip
    for number in settings.figures:
        problem, y, title = numbered[number]
        for lines, mark, under in (("paper", "", ""), ("zero+n", "-zero-n", ", protocol zero+n")):
            if lines != "paper" and not (trace["variant"] == lines).any():
                continue
            for x in ("passes", "seconds"):
                name = f"figure{number}{mark}" + ("" if x == "passes" else "-seconds") + tail
                yield FigureSpec(name, f"Figure {number}{under}: {title} versus {_ACROSS[x]}{note}", problem, y, x,
                                 matrix, lines)  # fmt: skip


def line_label(method: str, variant: str) -> str:
    """What the legend calls a run."""
    return method_label(method) + ("" if variant == "paper" else f", {variant}")


def rank(method: str, variant: str) -> tuple[int, int]:
    """The place of a run in legends: the paper's order, then methods beyond it; other protocols after their own."""
    place = PAPER_ORDER.index(method) if method in PAPER_ORDER else len(PAPER_ORDER)
    return (place, 0) if variant in ("paper", "zero+n") else (len(PAPER_ORDER) + 1, place)


def rows_of(spec: FigureSpec, trace: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The recordings a figure draws, with the legend's label of each, in the legend's order."""
    mine = trace[(trace["problem"] == spec.problem) & (trace["matrix"] == spec.matrix)]
    of_paper = mine["method"].isin(settings.paper_methods) & (mine["variant"] == "paper")
    with_table = mine["method"].isin(WITH_TABLE)
    shown = {
        "paper": of_paper,
        "zero+n": (of_paper & ~with_table) | (mine["variant"] == "zero+n"),
        "restored": of_paper | (mine["variant"] == "restored"),
        "beyond": of_paper | mine["method"].isin(BEYOND),
    }[spec.lines]
    mine = mine[shown].copy()
    keys = list(zip(mine["method"], mine["variant"], strict=True))
    mine["place"] = [rank(*key) for key in keys]
    # Styles are known by the method's name, which a protocol follows after a comma.
    mine["method"] = [method if variant == "paper" else f"{method}, {variant}" for method, variant in keys]
    return mine.sort_values("place", kind="stable")


def floor_of(spec: FigureSpec, rows: pd.DataFrame) -> dict[int, float] | None:
    """What is subtracted from the objectives of each repeat."""
    if spec.y == "test_loss":
        return None
    by_repeat = rows.groupby("repeat")
    return dict(by_repeat["objective"].min() if spec.y == "best" else by_repeat["optimum"].first())


def draw(spec: FigureSpec, trace: pd.DataFrame, settings: Settings, iterate: str) -> Any:
    """One figure."""
    from matplotlib.figure import Figure

    rows = rows_of(spec, trace, settings)
    panels = [data for data in settings.data if (rows["data"] == data).any()]
    columns = min(2, len(panels))
    height = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(4.1 * columns, 2.75 * height + 1.15), layout="constrained")
    title = spec.title if columns > 1 else spec.title.replace(" versus ", "\nversus ")
    figure.suptitle(title, fontsize=11 if columns > 1 else 9.5)
    legend: dict[str, Any] = {}
    grid = figure.subplots(height, columns, squeeze=False)
    column = "test_loss" if spec.y == "test_loss" else "objective" if iterate == "last" else "objective_average"
    for ax, data in zip(grid.flat, panels, strict=False):
        mine = rows[rows["data"] == data]
        # comparison() draws logarithmic distances of columns called objective…
        comparison(mine, spec.x, column, best=floor_of(spec, mine), band="range", ax=ax, legend=False)
        if spec.y == "test_loss":
            _cut_overshoot(ax, mine)
        ax.set_title(f"({chr(ord('a') + panels.index(data))}) {data_label(data)}", fontsize=10)
        ax.set_xlabel(_ACROSS[spec.x], fontsize=9)
        ax.set_ylabel(_QUANTITY[spec.y], fontsize=9)
        ax.tick_params(labelsize=8)
        if spec.x == "seconds":
            ax.set_xscale("log")
        legend |= _named(ax)
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=min(4, max(2, 2 * columns)),
                  frameon=False, fontsize=8.5)  # fmt: skip
    return figure


def _named(ax: Any) -> dict[str, Any]:
    """The lines by the legend's labels; a restored run is dotted beside its method."""
    named = {}
    for line in ax.lines:
        name, runs, incomplete = str(line.get_label()).partition(" (")
        method, _, variant = name.partition(", ")
        if name.startswith("_"):
            continue
        if variant == "restored":
            line.set(linestyle=":", markerfacecolor="white")
        named[line_label(method, variant or "paper") + runs + incomplete] = line
    return named


def _cut_overshoot(ax: Any, rows: pd.DataFrame) -> None:
    """Show the testing loss up to a little above its value at the start."""
    start = rows.loc[rows["record"] == 0, "test_loss"].mean()
    low = rows["test_loss"].min()
    ax.set_ylim(low - 0.03 * (start - low), start + 0.05 * (start - low))


def save_figures(trace: pd.DataFrame, settings: Settings, folder: Path, iterate: str) -> list[FigureSpec]:
    """Every figure as PNG and SVG."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for spec in specs(settings, trace):
        with matplotlib.rc_context({"svg.hashsalt": "skadmm", "svg.fonttype": "none"}):
            figure = draw(spec, trace, settings, iterate)
            figure.savefig(folder / f"{spec.name}.png", dpi=130)
            figure.savefig(folder / f"{spec.name}.svg", metadata={"Date": None})
        drawn.append(spec)
    return drawn
