"""The paper's claims, each against the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skadmm.paper.settings import Settings
from skadmm.paper.summary import at_checkpoints
from skadmm.paper.tables import matrix_name, shown

if TYPE_CHECKING:
    import pandas as pd

STOCHASTIC = ("stoc-admm", "opg-admm", "rda-admm")
BATCH = ("batch-admm", "batch-iu-admm")
TIE = 1.05
"""Up to this ratio, two mean suboptimalities count as equal."""

STATEMENTS = {
    "fastest": "SA-IU-ADMM is the fastest",
    "next": "SA-ADMM comes next",
    "then": "the other stochastic methods come after both SA methods",
    "slowest": "the batch methods are the slowest",
    "margin": "the margin of SA-IU-ADMM is larger on the strongly convex problem",
}


@dataclass(frozen=True)
class Verdict:
    """One claim on one data set."""

    claim: str
    data: str
    matrix: str
    variant: str
    """"paper": as the paper runs it; "restored": the SA methods started warm, with a scaled step."""
    verdict: str
    """"holds", "holds in part" or "does not hold"."""
    share: float
    """The share of comparisons (checkpoints, and methods where there are several) in which it is true."""
    numbers: str
    why: str = ""

    @property
    def text(self) -> str:
        """The verdict, with the share where it holds in part."""
        return f"{self.verdict} ({self.share:.0%})" if self.verdict == "holds in part" else self.verdict


class _Means:
    """Mean relative suboptimality of one problem: by method, at each checkpoint."""

    def __init__(self, points: pd.DataFrame, data: str, matrix: str, problem: str, variant: str) -> None:
        mine = points[(points["data"] == data) & (points["matrix"] == matrix) & (points["problem"] == problem)]
        restored = set(mine.loc[mine["variant"] == "restored", "method"]) if variant == "restored" else set()
        chosen = mine[(mine["variant"] == "restored") == mine["method"].isin(restored)]
        self.table = chosen.groupby(["at", "method"])["suboptimality"].mean().unstack("method").fillna(np.inf)
        self.points = list(self.table.index)

    def has(self, *methods: str) -> bool:
        return len(self.points) > 0 and all(method in self.table.columns for method in methods)

    def row(self, methods: tuple[str, ...]) -> str:
        """The numbers at every checkpoint."""
        parts = []
        for method in methods:
            values = " · ".join(shown(float(self.table.loc[point, method])) for point in self.points)
            parts.append(f"{method} {values}")
        return "; ".join(parts) + f" (at {', '.join(f'{point:g}' for point in self.points)} passes)"

    def share(self, ahead: str, behind: tuple[str, ...]) -> float:
        """The share of checkpoints at which `ahead` is no worse than all of `behind`."""
        good = [
            all(self.table.loc[point, ahead] <= TIE * self.table.loc[point, other] for other in behind)
            for point in self.points
        ]
        return float(np.mean(good))


def _verdict(share: float) -> str:
    return "holds" if share == 1 else "holds in part" if share > 0 else "does not hold"


def judge(trace: pd.DataFrame, settings: Settings, iterate: str = "last") -> list[Verdict]:
    """Every claim on every data set, at the checkpoints, by the mean over repeats."""
    points = at_checkpoints(trace, settings, iterate)
    verdicts = []
    variants = ["paper"] + (["restored"] if (trace["variant"] == "restored").any() else [])
    for data in settings.data:
        for matrix in settings.matrices:
            for variant in variants:
                verdicts += _ranking(trace, points, data, matrix, variant, settings)
                margin = _margin(points, data, matrix, variant)
                verdicts += [margin] if margin is not None else []
    return verdicts


def _ranking(
    trace: pd.DataFrame, points: pd.DataFrame, data: str, matrix: str, variant: str, settings: Settings
) -> list[Verdict]:
    means = _Means(points, data, matrix, "convex", variant)
    others = tuple(method for method in STOCHASTIC if means.has(method))
    batch = tuple(method for method in BATCH if means.has(method))
    if not means.has("sa-iu-admm", "sa-admm") or not others or not batch:
        return []
    everyone = ("sa-admm", *others, *batch)
    rest = (*others, *batch)
    why = _why(trace, data, matrix, means, others) if variant == "paper" else ""
    pairs = [means.share(sa, others) for sa in ("sa-iu-admm", "sa-admm")]
    slow = [means.share(one, batch) for one in ("sa-iu-admm", "sa-admm", *others)]
    found = {
        "fastest": (means.share("sa-iu-admm", everyone), ("sa-iu-admm", *everyone)),
        "next": (means.share("sa-admm", rest), ("sa-admm", *rest)),
        "then": (float(np.mean(pairs)), ("sa-iu-admm", "sa-admm", *others)),
        "slowest": (float(np.mean(slow)), ("sa-iu-admm", "sa-admm", *others, *batch)),
    }
    return [
        Verdict(claim, data, matrix, variant, _verdict(share), share, means.row(methods), "" if share == 1 else why)
        for claim, (share, methods) in found.items()
    ]


def _margin(points: pd.DataFrame, data: str, matrix: str, variant: str) -> Verdict | None:
    """The geometric mean, over the other methods, of their suboptimality over SA-IU-ADMM's; convex against strong."""
    ratios: dict[str, list[float]] = {}
    for problem in ("convex", "strong"):
        means = _Means(points, data, matrix, problem, variant)
        others = tuple(method for method in ("sa-admm", *STOCHASTIC, *BATCH) if means.has(method))
        if not means.has("sa-iu-admm") or not others:
            return None
        own = means.table["sa-iu-admm"]
        ratios[problem] = [_geometric([_ratio(means.table.loc[point, other], own[point]) for other in others])
                           for point in means.points]  # fmt: skip
    larger = [strong > convex for convex, strong in zip(ratios["convex"], ratios["strong"], strict=True)]
    numbers = "; ".join(
        f"{problem} " + " · ".join(f"×{shown(ratio)}" for ratio in values) for problem, values in ratios.items()
    )
    at = ", ".join(f"{point:g}" for point in means.points)
    share = float(np.mean(larger))
    verdict = _verdict(share)
    # A "larger margin" between two losing positions is no margin.
    if verdict != "does not hold" and max(ratios["strong"]) < 1:
        verdict = "does not hold"
    return Verdict("margin", data, matrix, variant, verdict, share, f"{numbers} (at {at} passes)")


def _ratio(above: float, below: float) -> float:
    """Kept within twelve decades, so that an exact zero does not decide a mean."""
    return float(min(max(above / max(below, 1e-300), 1e-12), 1e12)) if math.isfinite(below) else math.nan


def _geometric(values: list[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    return math.exp(sum(map(math.log, finite)) / len(finite)) if finite else math.nan


def _why(trace: pd.DataFrame, data: str, matrix: str, means: _Means, others: tuple[str, ...]) -> str:
    """What the trace shows of why SA-IU-ADMM is behind."""
    mine = trace[
        (trace["data"] == data) & (trace["matrix"] == matrix) & (trace["problem"] == "convex")
        & (trace["method"] == "sa-iu-admm") & (trace["variant"] == "paper")
    ]  # fmt: skip
    reasons = []
    start = mine.loc[mine["record"] == 0, "objective"].mean()
    by_record = mine.groupby("record")[["passes", "objective"]].mean()
    peak = by_record["objective"].idxmax()
    if by_record.loc[peak, "objective"] > 1.001 * start:
        reasons.append(
            f"overshoot: with its table filled at x₀ its first steps are full-gradient steps of length 1/L, and the "
            f"objective rises from {start:.3g} to {by_record.loc[peak, 'objective']:.3g} at "
            f"{by_record.loc[peak, 'passes']:.2g} passes"
        )
    last, first = means.points[-1], means.points[0]
    best = min(others, key=lambda method: float(means.table.loc[last, method]))
    if means.table.loc[last, "sa-iu-admm"] > TIE * means.table.loc[last, best]:
        reasons.append(
            f"the step chosen on 500 samples is too short for the whole half: still at "
            f"{shown(float(means.table.loc[last, 'sa-iu-admm']))} after {last:g} passes, where {best} is at "
            f"{shown(float(means.table.loc[last, best]))}"
        )
    elif means.table.loc[first, "sa-iu-admm"] > TIE * means.table.loc[first, best]:
        reasons.append(f"behind at first ({first:g} passes), ahead later")
    return "; ".join(reasons)


def claim_grid(verdicts: list[Verdict]) -> list[dict[str, str]]:
    """The verdicts for a table: a row per claim and run, a column per data set."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for verdict in verdicts:
        key = (verdict.matrix, verdict.variant, verdict.claim)
        head = {"claim": STATEMENTS[verdict.claim], "A": matrix_name(verdict.matrix), "run": verdict.variant}
        rows.setdefault(key, head)[verdict.data] = verdict.text
    return list(rows.values())


def reasons(verdicts: list[Verdict]) -> list[str]:
    """Why claims fail, and the margins, one line each."""
    lines = []
    for verdict in verdicts:
        where = f"{verdict.data}, A = {matrix_name(verdict.matrix)}"
        if verdict.claim == "fastest" and verdict.why:
            lines.append(f"{where}: {verdict.why}.")
        if verdict.claim == "margin":
            lines.append(f"{where}, {verdict.variant}: mean ratio to SA-IU-ADMM {verdict.numbers}.")
    return lines
