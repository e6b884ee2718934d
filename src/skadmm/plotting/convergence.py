"""Pictures of convergence."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from skadmm.run.result import Result


class Style(NamedTuple):
    """How a method is drawn, in every figure.

    Parameters
    ----------
    color : str
        A colour of matplotlib.
    marker : str
        A marker of matplotlib.
    line : str
        A line style of matplotlib.

    See Also
    --------
    skadmm.plotting.style_of : The style of a method.

    Examples
    --------
    >>> from skadmm.plotting import STYLES
    >>> STYLES["sa-admm"]
    Style(color='#0072B2', marker='o', line='-')
    """

    color: str
    marker: str
    line: str = "-"


# Colours tell methods apart for colour-blind readers too; markers and dashes tell them apart in grey. The paper's own
# are blue, the online methods warm, the batch methods grey, what goes beyond the paper green and purple.
STYLES: dict[str, Style] = {
    "sa-admm": Style("#0072B2", "o"),
    "sa-iu-admm": Style("#56B4E9", "s"),
    "stoc-admm": Style("#D55E00", "^"),
    "opg-admm": Style("#E69F00", "v"),
    "rda-admm": Style("#6A3D00", "D"),
    "online-admm": Style("#CC6677", "p"),
    "batch-admm": Style("#444444", "X", "--"),
    "batch-iu-admm": Style("#999999", "P", "--"),
    "exact-admm": Style("#000000", "*", ":"),
    "san-admm": Style("#CC79A7", "h"),
    "saga-admm": Style("#117733", ">", "-."),
    "saga-iu-admm": Style("#66A61E", "8", ":"),
    "svrg-admm": Style("#009E73", "<", "-."),
    "svrg-iu-admm": Style("#1B9E9E", "H", ":"),
    "asvrg-admm": Style("#88CCAA", "d", "-."),
    "asvrg-iu-admm": Style("#7FBF3F", "x", ":"),
}

_STRANGERS = tuple(
    itertools.product(("#332288", "#882255", "#AA4499", "#44AA99", "#999933"), "oshd^v<>", ("-", "--", "-."))
)

LABELS = {
    "passes": "passes over the data, step selection included",
    "run_passes": "passes over the data",
    "seconds": "seconds, step selection included",
    "run_seconds": "seconds",
    "objective": "objective",
    "objective_average": "objective of the average",
    "feasibility": "‖Ax + By − c‖",
    "kkt": "relative KKT residual",
    "gap": "relative duality gap",
    "test_loss": "test loss",
}

RESOLVED = 1e-13
"""Relative distances below this are rounding errors: a logarithmic axis shows them at this height."""

_LOGARITHMIC = ("feasibility", "kkt", "gap")
_INCOMPLETE = ("diverged", "interrupted", "failed")


def style_of(method: str) -> Style:
    """Find the style of a method.

    A method that is not in ``STYLES`` gets a style that depends on its name alone, so that it is the same in every
    figure.

    Parameters
    ----------
    method : str
        The name of a method, or of a run such as "sa-admm, from zero", which has the style of its method.

    Returns
    -------
    Style
        Colour, marker and line.

    See Also
    --------
    skadmm.plotting.Style : What it consists of.

    Examples
    --------
    >>> from skadmm.plotting import style_of
    >>> style_of("sa-admm").color == style_of("sa-admm, from zero").color
    True
    """
    known = STYLES.get(method.partition(", ")[0])
    if known is not None:
        return known
    return Style(*_STRANGERS[zlib.crc32(method.encode()) % len(_STRANGERS)])


def convergence(
    result: Result,
    *,
    optimum: float | Literal["lowest"] | None = None,
    axes: np.ndarray | None = None,
    label: str | None = None,
) -> np.ndarray:
    """Draw one run: objective, gap (where there is one) and feasibility against passes and seconds of the run itself.

    The legend says what the selection of the step cost.

    Parameters
    ----------
    result : Result
        The run.
    optimum : float, "lowest" or None
        The smallest objective, if known: the distance to it is then drawn, on a logarithmic scale. "lowest" takes the
        lowest one of this run, where the curve leaves the picture at the bottom.
    axes : array of Axes or None
        What an earlier call returned, to draw another run into it; None makes a new figure.
    label : str or None
        The run's name in the legend; the method's by default.

    Returns
    -------
    ndarray of Axes
        One row per quantity; the columns are passes and seconds.

    See Also
    --------
    skadmm.plotting.comparison : Several runs.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.plotting import convergence
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> result = solve(Problem(X, y, loss="squared", psi=L1(0.1)), "sa-admm", step=0.1, passes=5)
    >>> convergence(result).shape
    (3, 2)
    """
    trace = _above(result.trace, optimum)
    # A second-order solver keeps y = y(x), and then there is nothing to draw.
    quantities = ["objective", *(name for name in ("gap", "feasibility") if (trace[name] > 0.0).any())]
    if axes is None:
        size = (9.0, 2.9 * len(quantities))
        _, axes = pyplot().subplots(
            len(quantities), 2, figsize=size, sharex="col", sharey="row", squeeze=False, layout="constrained"
        )
    axes = np.asarray(axes, dtype=object)
    if axes.shape[1:] != (2,) or axes.shape[0] < len(quantities):
        raise ValueError(f"axes has shape {axes.shape}: it takes ({len(quantities)}, 2), for {', '.join(quantities)}")
    style = style_of(result.method)
    name = (label or result.method) + _selection(result.selection_passes)
    spent = 0.0 if result.tuning is None else result.tuning.seconds
    across = {"run_passes": trace["passes"] - result.selection_passes, "run_seconds": trace["seconds"] - spent}
    drawn_before = bool(axes[0, 0].lines)
    for (row, quantity), (column, x) in itertools.product(enumerate(quantities), enumerate(across)):
        ax = axes[row, column]
        _draw(ax, across[x], trace[quantity].to_numpy(), style, name)
        # A second-order solver has no average of its own: its curve would coincide with the other.
        average = trace["objective_average"]
        if row == 0 and average.notna().any() and not average.equals(trace[quantity]):
            text = f"{label or result.method}, average iterate"
            ax.plot(across[x], average, color=style.color, linestyle=":", linewidth=1.2, label=text)
        _finish(ax, quantity, distance=row == 0 and optimum is not None)
        ax.set_xlabel(LABELS[x] if row == len(quantities) - 1 else "")
        word = "lowest" if isinstance(optimum, str) else "optimum"
        ax.set_ylabel(_y_label(quantity, row == 0 and optimum is not None, word) if column == 0 else "")
    if isinstance(optimum, str):
        _end_below(axes[0, 0], trace["objective"])
    axes[0, 0].legend(frameon=False, fontsize="small", loc="upper right")
    if not drawn_before:
        axes[0, 0].figure.suptitle(f"{result.method}: {result.status}", fontsize="medium")
    else:
        axes[0, 0].figure.suptitle("")
    return axes


def comparison(
    frame: pd.DataFrame,
    x: str = "run_passes",
    y: str = "objective",
    *,
    best: float | str | Mapping[int, float] | None = "lowest",
    band: str | None = "range",
    methods: Iterable[str] | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw several methods: the mean over repeats as a line, their spread as a band.

    Parameters
    ----------
    frame : DataFrame
        What :func:`skadmm.compare` returned, or rows of it.
    x : "run_passes", "run_seconds", "passes" or "seconds"
        Of the run itself, with the cost of selecting the step in the legend; or with that cost in every point.
    y : str
        A column of the frame.
    best : "lowest", a number, {repeat: number} or None
        What is subtracted from an objective, which is then drawn on a logarithmic scale: the lowest value in the frame
        (of each repeat, where repeats have different training sets), a known optimum, or nothing. Other columns are
        drawn as they are.
    band : "range", "std" or None
        From smallest to largest, one standard deviation either way, or no band.
    methods : names or None
        Which methods, and in which order; None takes all in the frame's order.
    ax : Axes or None
        The axes to draw into; None makes a new figure.
    legend : bool
        False leaves the legend out.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.compare : Computes the frame.
    skadmm.plotting.convergence : One run.

    Notes
    -----
    The k-th recordings of all repeats make the k-th point. A run that stopped early counts with its last value.
    Runs that diverged, failed or were interrupted are left out, and the legend says how many. Distances below 1e-13 of
    the lowest objective are drawn at that height, because they are rounding errors. With ``best="lowest"`` the axis
    ends just below the other points: the curve of the run that found the lowest value leaves the picture at the bottom.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import Problem, compare
    >>> from skadmm.plotting import comparison
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> frame = compare(problem, ["sa-admm", "batch-admm"], repeats=2, passes=3, step=0.1)
    >>> comparison(frame).get_yscale()
    'log'
    """
    for name in ("method", "repeat", x, y):
        if name not in frame.columns:
            raise ValueError(f"frame has no column {name!r}: it takes what skadmm.compare returned")
    if band not in ("range", "std", None):
        raise ValueError(f"band={band!r}: it takes 'range', 'std' or None")
    present = list(dict.fromkeys(frame["method"]))
    names = present if methods is None else list(methods)
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(f"methods has {missing[0]!r}, which is not in frame: it has {', '.join(present)}")
    distance = y.startswith("objective") and best is not None
    below = _best_of_repeats(frame, y, best) if distance else {}
    if ax is None:
        _, ax = pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")

    resolved = [math.inf]
    for order, name in enumerate(names):
        mine = frame[frame["method"] == name]
        runs = mine["repeat"].nunique()
        complete = mine[~mine["status"].isin(_INCOMPLETE)]
        text = name if len(complete) else f"{name} (none complete)"
        if 0 < complete["repeat"].nunique() < runs:
            text = f"{name} ({complete['repeat'].nunique()} of {runs} runs)"
        if x.startswith("run_") and "selection_passes" in mine.columns:
            text += _selection(float(mine["selection_passes"].mean()))
        shown = complete if len(complete) else mine[mine["status"] != "failed"]
        across = _by_record(shown, x).mean(axis=1).cummax().to_numpy()
        values = _by_record(shown, y).ffill()
        if distance:
            lowest = np.array([below[repeat] for repeat in values.columns])
            floor = RESOLVED * np.abs(lowest).max(initial=0.0)
            values = (values - lowest).clip(lower=floor)
            middle = values.mean(axis=1)
            resolved.append(middle[middle > 2.0 * floor].min())
        _draw_band(
            ax, across, values.to_numpy(), band, style_of(name), text, log=distance or y in _LOGARITHMIC, z=order
        )
    _finish(ax, y, distance=distance)
    low = np.nanmin(resolved) / 3.0
    if distance and isinstance(best, str) and ax.get_ylim()[0] < low < math.inf:
        ax.set_ylim(bottom=low)
    ax.set_xlabel(LABELS.get(x, x))
    ax.set_ylabel(_y_label(y, distance, "lowest" if isinstance(best, str) else "optimum"))
    if legend:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _selection(passes: float) -> str:
    """What the selection of the step cost, for a legend."""
    return f" (+{passes:.0f} passes to select the step)" if passes > 0.0 else ""


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'skadmm[plot]'") from error
    return plt


def _by_record(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per recording, one column per repeat."""
    record = rows.groupby("repeat").cumcount()
    return rows.assign(record=record).pivot(index="record", columns="repeat", values=column)


def _best_of_repeats(frame: pd.DataFrame, y: str, best: Any) -> dict[int, float]:
    repeats = frame["repeat"].unique()
    if isinstance(best, Mapping):
        return {repeat: float(best[repeat]) for repeat in repeats}
    if not isinstance(best, str):
        return {repeat: float(best) for repeat in repeats}
    if best != "lowest":
        raise ValueError(f"best={best!r}: it takes 'lowest', a number, a mapping from repeats to numbers, or None")
    lowest = frame.groupby("repeat")[y].min()
    # Only when every repeat is known to have the same training set may one repeat's lowest serve the others.
    if "test_size" in frame.attrs and frame.attrs["test_size"] is None:
        lowest[:] = lowest.min()
    return lowest.to_dict()


def _above(trace: pd.DataFrame, optimum: float | str | None) -> pd.DataFrame:
    """The trace, with its objectives minus the optimum, or minus the lowest of them."""
    if isinstance(optimum, str) and optimum != "lowest":
        raise ValueError(f"optimum={optimum!r}: it takes a number, 'lowest' or None")
    if optimum is None:
        return trace
    objectives = trace[["objective", "objective_average"]]
    if isinstance(optimum, str):
        lowest = float(objectives.min().min())
        return trace.assign(**(objectives - lowest).clip(lower=RESOLVED * abs(lowest)))
    return trace.assign(**(objectives - optimum))


def _end_below(ax: Any, distances: pd.Series) -> None:
    """End a logarithmic axis just below the points that are above the lowest one."""
    low = distances[distances > 2.0 * distances.min()].min() / 3.0
    if ax.get_ylim()[0] < low < math.inf:
        ax.set_ylim(bottom=low)


def _draw(ax: Any, x: Any, y: np.ndarray, style: Style, label: str) -> None:
    ax.plot(
        x, y, color=style.color, marker=style.marker, linestyle=style.line, markevery=_every(len(y)), markersize=5,
        linewidth=1.6, label=label,
    )  # fmt: skip


def _draw_band(
    ax: Any, x: np.ndarray, values: np.ndarray, band: str | None, style: Style, label: str, *, log: bool, z: int
) -> None:
    if values.size == 0:
        ax.plot([], [], color=style.color, marker=style.marker, linestyle=style.line, label=label)
        return
    middle = values.mean(axis=1)
    if log:  # the best value itself has no logarithm
        middle = np.where(middle > 0, middle, np.nan)
    ax.plot(
        x, middle, color=style.color, marker=style.marker, linestyle=style.line, markersize=5, linewidth=1.6,
        markevery=_every(len(x), z), label=label, zorder=3 + 0.01 * z,
    )  # fmt: skip
    if band is None or values.shape[1] < 2:
        return
    if band == "range":
        low, high = values.min(axis=1), values.max(axis=1)
    else:
        spread = values.std(axis=1, ddof=1)
        low, high = middle - spread, middle + spread
    if log:
        # Down to nothing, where the band crosses zero, would stretch the axis without end.
        low = np.where(low > 0, low, middle / 10)
    ax.fill_between(x, low, high, color=style.color, alpha=0.15, linewidth=0)


def _every(points: int, offset: int = 0) -> tuple[int, int]:
    """About ten markers per line, shifted from line to line so that they do not hide each other."""
    gap = max(2, points // 10)
    return offset % gap, gap


def _finish(ax: Any, quantity: str, *, distance: bool) -> None:
    if distance or quantity in _LOGARITHMIC:
        ax.set_yscale("log", nonpositive="mask")
    ax.grid(True, which="major", linewidth=0.5, alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", useOffset=False)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=6)


def _y_label(quantity: str, distance: bool, what: str) -> str:
    return f"{LABELS.get(quantity, quantity)} − {what}" if distance else LABELS.get(quantity, quantity)


__all__ = ["STYLES", "Style", "comparison", "convergence", "style_of"]
