"""The numbers behind the figures: at fixed passes, ranks, and passes to an accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.paper.collect import KEYS, RUN
from skadmm.paper.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

CHECKPOINTS = (2.0, 5.0, 10.0, 20.0, 30.0)
"""Passes at which methods are compared, as far as the run goes."""
TARGETS = (1e-2, 1e-3)
"""Relative suboptimalities that passes are counted to."""
LINE = [*KEYS, "method", "variant"]


def checkpoints(passes: float) -> list[float]:
    """The checkpoints that a run of this many passes has; its end among them."""
    inside = [point for point in CHECKPOINTS if point < passes]
    return [*inside, passes]


def measure_of(iterate: str) -> str:
    """The column of relative suboptimality of the selected iterate."""
    return "suboptimality" if iterate == "last" else "suboptimality_average"


def value_at(passes: np.ndarray, values: np.ndarray, point: float) -> float:
    """The newest value recorded by `point` passes; NaN for a run that ended long before."""
    if passes[-1] < 0.9 * point:
        return float("nan")
    # A step or two past the mark is still the recording meant for it.
    index = int(np.searchsorted(passes, point * (1 + 1e-3) + 1e-3, side="right")) - 1
    return float(values[max(index, 0)])


def passes_to(passes: np.ndarray, values: np.ndarray, target: float) -> float:
    """The passes after which the suboptimality stays at or below `target`; infinite where it never does."""
    above = np.flatnonzero(~(values <= target))
    first = 0 if above.size == 0 else above[-1] + 1
    return float(passes[first]) if first < len(values) else float("inf")


def at_checkpoints(trace: pd.DataFrame, settings: Settings, iterate: str) -> pd.DataFrame:
    """Relative suboptimality and test loss of every run at the checkpoints, with its rank among the seven."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for key, frame in trace.groupby(RUN, sort=False):
        passes = frame["passes"].to_numpy()
        for point in checkpoints(settings.passes[key[0]]):
            rows.append(
                dict(zip(RUN, key, strict=True))
                | {
                    "at": point,
                    "suboptimality": value_at(passes, frame[measure_of(iterate)].to_numpy(), point),
                    "test_loss": value_at(passes, frame["test_loss"].to_numpy(), point),
                }
            )
    table = pd.DataFrame(rows)
    ranked = table["method"].isin(settings.paper_methods) & (table["variant"] == "paper")
    filled = table["suboptimality"].fillna(np.inf)
    table["rank"] = filled[ranked].groupby([table[name] for name in [*KEYS, "repeat", "at"]]).rank()
    return table


def summarise(trace: pd.DataFrame, settings: Settings, iterate: str = "last") -> pd.DataFrame:
    """One row per method: mean ± std at the checkpoints, mean rank, median passes (and seconds) to each target."""
    import pandas as pd

    points = at_checkpoints(trace, settings, iterate)
    rows: list[dict[str, Any]] = []
    for key, frame in trace.groupby(LINE, sort=False):
        row: dict[str, Any] = dict(zip(LINE, key, strict=True))
        mine = points[(points[LINE] == list(key)).all(axis=1)]
        row["repeats"] = frame["repeat"].nunique()
        row["diverged"] = frame.loc[frame["status"] == "diverged", "repeat"].nunique()
        for point, here in mine.groupby("at"):
            row[f"mean@{point:g}"] = here["suboptimality"].mean()
            row[f"std@{point:g}"] = here["suboptimality"].std(ddof=1) if len(here) > 1 else 0.0
        row["test_loss"] = mine.loc[mine["at"] == mine["at"].max(), "test_loss"].mean()
        row["rank"] = mine["rank"].mean()
        for target in TARGETS:
            runs = [
                (passes_to(run["passes"].to_numpy(), run[measure_of(iterate)].to_numpy(), target),
                 passes_to(run["seconds"].to_numpy(), run[measure_of(iterate)].to_numpy(), target))
                for _, run in frame.groupby("repeat")
            ]  # fmt: skip
            row[f"passes to {target:g}"] = float(np.median([passes for passes, _ in runs]))
            row[f"seconds to {target:g}"] = float(np.median([seconds for _, seconds in runs]))
        per_run = frame.groupby("repeat").agg(passes=("passes", "max"), seconds=("seconds", "max"))
        row["ms per pass"] = float(1e3 * (per_run["seconds"] / per_run["passes"].clip(lower=1e-9)).median())
        row["step"] = float(frame.groupby("repeat")["step"].first().median())
        row["step at edge"] = _edges(frame.groupby("repeat")["step_at_edge"].first())
        rows.append(row)
    return pd.DataFrame(rows)


def _edges(found: pd.Series) -> str:
    """In how many repeats the selected step was at an end of its grid: "2 of 10 largest"; empty for none."""
    counts = found[found != ""].value_counts()
    return ", ".join(f"{count} of {len(found)} {edge}" for edge, count in counts.items())
