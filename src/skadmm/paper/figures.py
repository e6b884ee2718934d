"""The figures in the paper's arrangement: one panel a data set, two columns, the legend below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skadmm.paper.settings import BEYOND, Settings
from skadmm.paper.tables import matrix_name
from skadmm.plotting import comparison, style_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FigureSpec:
    """What one figure shows."""

    name: str
    title: str
    problem: str
    y: str
    """"best" (objective − the lowest across methods), "optimum" (objective − the true optimum) or "test_loss"."""
    x: str
    matrix: str
    lines: str = "paper"
    """"paper": the seven; "restored": also the restored variants; "beyond": also methods beyond the paper."""


_QUANTITY = {
    "best": "objective − best",
    "optimum": "objective − optimum",
    "test_loss": "testing loss",
}


def specs(settings: Settings, trace: pd.DataFrame) -> Iterator[FigureSpec]:
    """The paper's figures, then those it does not have."""
    has_beyond = trace["method"].isin(BEYOND).any()
    has_restored = (trace["variant"] == "restored").any()
    numbered = {1: ("convex", "best", "Objective value"), 2: ("convex", "test_loss", "Testing loss"),
                3: ("strong", "best", "Objective value, strongly convex")}  # fmt: skip
    for matrix in settings.matrices:
        tail = "" if matrix == settings.matrices[0] else f"-{matrix}"
        note = f", A = {matrix_name(matrix)}"
        for number in settings.figures:
            problem, y, title = numbered[number]
            for x in ("passes", "seconds"):
                name = f"figure{number}" + ("" if x == "passes" else "-seconds") + tail
                yield FigureSpec(name, f"Figure {number}: {title} versus {_of(x)}{note}", problem, y, x, matrix)
        for problem in settings.problems:
            strong = ", strongly convex" if problem == "strong" else ""
            for x in ("passes", "seconds"):
                end = ("" if x == "passes" else "-seconds") + ("-strong" if strong else "") + tail
                yield FigureSpec(f"optimum{end}", f"Distance to the true optimum versus {_of(x)}{strong}{note}",
                                 problem, "optimum", x, matrix)  # fmt: skip
                if has_restored:
                    yield FigureSpec(f"restored{end}", f"The SA methods restored versus {_of(x)}{strong}{note}",
                                     problem, "optimum", x, matrix, "restored")  # fmt: skip
                if has_beyond:
                    yield FigureSpec(f"beyond{end}", f"Beyond the paper versus {_of(x)}{strong}{note}",
                                     problem, "optimum", x, matrix, "beyond")  # fmt: skip


def _of(x: str) -> str:
    return "number of effective passes" if x == "passes" else "processor seconds"


def rows_of(spec: FigureSpec, trace: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The recordings a figure draws, under the names its legend has."""
    mine = trace[(trace["problem"] == spec.problem) & (trace["matrix"] == spec.matrix)]
    of_paper = mine["method"].isin(settings.paper_methods) & (mine["variant"] == "paper")
    extra = {
        "paper": mine["method"].isin(()),
        "restored": mine["variant"] == "restored",
        "beyond": mine["method"].isin(BEYOND),
    }[spec.lines]
    mine = mine[of_paper | extra].copy()
    restored = mine["variant"] == "restored"
    mine.loc[restored, "method"] = mine.loc[restored, "method"] + ", restored"
    return mine


def draw(spec: FigureSpec, trace: pd.DataFrame, settings: Settings, iterate: str) -> Any:
    """One figure."""
    from matplotlib.figure import Figure

    rows = rows_of(spec, trace, settings)
    panels = [data for data in settings.data if (rows["data"] == data).any()]
    columns = min(2, len(panels))
    height = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(4.1 * columns, 2.75 * height + 1.15), layout="constrained")
    figure.suptitle(spec.title, fontsize=11)
    legend: dict[str, Any] = {}
    grid = figure.subplots(height, columns, squeeze=False)
    column = "test_loss" if spec.y == "test_loss" else "objective" if iterate == "last" else "objective_average"
    for ax, data in zip(grid.flat, panels, strict=False):
        mine = rows[rows["data"] == data]
        floor = None if spec.y == "test_loss" else mine.groupby("repeat")[spec.y].first().to_dict()
        # comparison() draws logarithmic distances of columns called objective…
        comparison(mine, spec.x, column, best=floor, band="range", ax=ax, legend=False)
        _restyle(ax, mine)
        if spec.y == "test_loss":
            _cut_overshoot(ax, mine)
        ax.set_title(f"({chr(ord('a') + panels.index(data))}) {data}", fontsize=10)
        ax.set_xlabel("effective passes" if spec.x == "passes" else "processor seconds", fontsize=9)
        ax.set_ylabel(_QUANTITY[spec.y], fontsize=9)
        ax.tick_params(labelsize=8)
        if spec.x == "seconds":
            ax.set_xscale("log")
        legend |= {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=min(4, max(2, 2 * columns)),
                  frameon=False, fontsize=8.5)  # fmt: skip
    return figure


def _restyle(ax: Any, rows: pd.DataFrame) -> None:
    """A restored variant has its method's colour and marker, dotted."""
    for line in ax.lines:
        base, _, variant = str(line.get_label()).partition(", ")
        if variant.startswith("restored"):
            style = style_of(base)
            line.set(color=style.color, marker=style.marker, linestyle=":", markerfacecolor="white")
    for band, method in zip(ax.collections, _with_bands(rows), strict=False):
        if method.endswith(", restored"):
            band.set(color=style_of(method.partition(", ")[0]).color)


def _with_bands(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows["method"])) if rows["repeat"].nunique() > 1 else []


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
