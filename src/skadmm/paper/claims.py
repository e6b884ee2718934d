"""The paper's claims, each against the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.paper.settings import WITH_TABLE, Settings
from skadmm.paper.summary import at_checkpoints
from skadmm.paper.tables import matrix_name, method_label, shown

if TYPE_CHECKING:
    import pandas as pd

STOCHASTIC = ("stoc-admm", "opg-admm", "rda-admm")
BATCH = ("batch-admm", "batch-iu-admm")
TIE = 1.05
"""Up to this ratio, two mean suboptimalities are level: neither is ahead."""

RESOLVED = 1e-10
"""Relative suboptimalities below this are the rounding of objectives, or of the optimum they are measured from: they
count as this number."""

STATEMENTS = {
    "ahead": "the SA methods are ahead of the other stochastic methods",
    "order": "SA-IU-ADMM is ahead of SA-ADMM",
    "slowest": "the batch methods are the slowest",
    "ahead-strong": "strongly convex: the SA methods are ahead of the other stochastic methods",
    "order-strong": "strongly convex: SA-IU-ADMM is ahead of SA-ADMM",
    "margin": "the margin of SA-IU-ADMM is larger on the strongly convex problem",
}


@dataclass(frozen=True)
class Verdict:
    """One claim on one data set."""

    claim: str
    data: str
    matrix: str
    variant: str
    """The protocol, one of ``settings.PROTOCOLS``."""
    verdict: str
    """"holds", "holds in part" or "does not hold"."""
    share: float
    """The share of comparisons (checkpoints, and methods where there are several) in which it is true."""
    numbers: str
    fails: str = ""
    """The checkpoints at which it is not true."""
    why: str = ""

    @property
    def text(self) -> str:
        """The verdict, with the share where it holds in part, and where it fails."""
        share = f" ({self.share:.0%})" if self.verdict == "holds in part" else ""
        return f"{self.verdict}{share}" + (f"; {self.fails}" if self.fails else "")


class _Means:
    """Mean relative suboptimality of one problem under one protocol: by method, at each checkpoint."""

    def __init__(self, points: pd.DataFrame, data: str, matrix: str, problem: str, variant: str) -> None:
        mine = points[(points["data"] == data) & (points["matrix"] == matrix) & (points["problem"] == problem)]
        own = mine["method"].isin(WITH_TABLE)
        chosen = mine[mine["variant"] == own.map({True: variant, False: "paper"})]
        means = chosen.groupby(["at", "method"])["suboptimality"].mean().unstack("method").fillna(np.inf)
        self.table = means.clip(lower=RESOLVED)
        self.points = list(self.table.index)

    def has(self, *methods: str) -> bool:
        return len(self.points) > 0 and all(method in self.table.columns for method in methods)

    def ratios(self, behind: Sequence[str], ahead: str) -> list[float]:
        """The smallest of `behind` over `ahead`, at every checkpoint: above 1, `ahead` leads."""
        smallest = self.table[list(behind)].min(axis=1)
        return [_ratio(float(smallest[point]), float(self.table.loc[point, ahead])) for point in self.points]

    @property
    def passes(self) -> str:
        return ", ".join(f"{point:g}" for point in self.points)

    def row(self, methods: Sequence[str]) -> str:
        """The numbers at every checkpoint."""
        parts = []
        for method in methods:
            values = " · ".join(shown(float(self.table.loc[point, method])) for point in self.points)
            parts.append(f"{method_label(method)} {values}")
        return "; ".join(parts) + f" (at {self.passes} passes)"

    def judged(self, claim: str, pairs: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, float, str, str]:
        """The verdict on "each first is ahead of all of its seconds": the verdict, the share of comparisons in which it
        is true, the ratios, and where it fails."""
        ratios = {ahead: self.ratios(behind, ahead) for ahead, behind in pairs}
        share = float(np.mean([ratio > TIE for values in ratios.values() for ratio in values]))
        worst = [min(values[k] for values in ratios.values()) for k in range(len(self.points))]
        places: dict[str, list[str]] = {"level": [], "behind": []}
        for point, ratio in zip(self.points, worst, strict=True):
            if not ratio > TIE:
                places["level" if ratio >= 1 / TIE else "behind"].append(f"{point:g}")
        fails = [f"{name} at {', '.join(where)}" for name, where in places.items() if where]
        head = {"slowest": "batch", "order": "SA-ADMM"}.get(claim.removesuffix("-strong"), "best other stochastic")
        numbers = "; ".join(
            f"{head} ÷ {method_label(ahead)} " + " · ".join(map(shown, values)) for ahead, values in ratios.items()
        )
        return _verdict(share), share, numbers, ", ".join(fails)


def _verdict(share: float) -> str:
    return "holds" if share == 1 else "holds in part" if share > 0 else "does not hold"


def judge(trace: pd.DataFrame, settings: Settings, iterate: str = "last") -> list[Verdict]:
    """Every claim on every data set under every protocol, at the checkpoints, by the mean over repeats."""
    points = at_checkpoints(trace, settings, iterate)
    verdicts = []
    for data in settings.data:
        for matrix in settings.matrices:
            for variant in protocols_in(trace, settings):
                found = _ranking(trace, points, data, matrix, variant)
                margin = _margin(points, data, matrix, variant)
                found += [margin] if margin is not None else []
                verdicts += sorted(found, key=lambda verdict: list(STATEMENTS).index(verdict.claim))
    return verdicts


def protocols_in(trace: pd.DataFrame, settings: Settings) -> list[str]:
    """The protocols that were run, the paper's first."""
    return [protocol for protocol in settings.protocols if (trace["variant"] == protocol).any()]


def _ranking(trace: pd.DataFrame, points: pd.DataFrame, data: str, matrix: str, variant: str) -> list[Verdict]:
    """The claims on the order of methods, on both problems."""
    verdicts = []
    for problem, tail in (("convex", ""), ("strong", "-strong")):
        means = _Means(points, data, matrix, problem, variant)
        others = tuple(method for method in STOCHASTIC if means.has(method))
        batch = tuple(method for method in BATCH if means.has(method))
        if not means.has(*WITH_TABLE) or not others or not batch:
            continue
        claims: dict[str, list[tuple[str, Sequence[str]]]] = {
            "ahead": [(method, others) for method in WITH_TABLE],
            "order": [("sa-iu-admm", ("sa-admm",))],
        }
        if problem == "convex":
            claims["slowest"] = [(method, batch) for method in (*WITH_TABLE, *others)]
        for claim, pairs in claims.items():
            verdict, share, ratios, fails = means.judged(claim, pairs)
            methods = {"ahead": (*WITH_TABLE, *others), "order": WITH_TABLE}.get(claim, (*WITH_TABLE, *others, *batch))
            why = _why(trace, data, matrix, means, others) if share < 1 and not tail and variant == "paper" else ""
            numbers = f"{ratios}; mean relative suboptimality: {means.row(methods)}"
            verdicts.append(Verdict(claim + tail, data, matrix, variant, verdict, share, numbers, fails,
                                    why if claim == "ahead" else ""))  # fmt: skip
    return verdicts


def leads(trace: pd.DataFrame, settings: Settings, iterate: str = "last") -> list[dict[str, Any]]:
    """By how much SA-IU-ADMM leads the best of the other stochastic methods, and SA-ADMM, at every checkpoint."""
    points = at_checkpoints(trace, settings, iterate)
    rows = []
    for data in settings.data:
        for matrix in settings.matrices:
            for problem in settings.problems:
                for variant in protocols_in(trace, settings):
                    means = _Means(points, data, matrix, problem, variant)
                    others = [method for method in STOCHASTIC if means.has(method)]
                    if not means.has(*WITH_TABLE) or not others:
                        continue
                    row = {"data": data, "A": matrix_name(matrix), "problem": problem, "protocol": variant}
                    for name, behind in (("best other ÷ SA-IU", others), ("SA ÷ SA-IU", ["sa-admm"])):
                        values = zip(means.points, means.ratios(behind, "sa-iu-admm"), strict=True)
                        row |= {f"{name} @{point:g}": shown(value) for point, value in values}
                    rows.append(row)
    return rows


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
    not_larger = ", ".join(f"{point:g}" for point, good in zip(means.points, larger, strict=True) if not good)
    fails = f"not larger at {not_larger}" if not_larger else ""
    return Verdict("margin", data, matrix, variant, verdict, share, f"{numbers} (at {at} passes)", fails)


def _ratio(above: float, below: float) -> float:
    """Kept within twelve decades, so that a run that diverged does not decide a mean."""
    return float(min(max(above / below, 1e-12), 1e12)) if math.isfinite(below) else math.nan


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
            f"{selected_step(mine)} is too short: still at "
            f"{shown(float(means.table.loc[last, 'sa-iu-admm']))} after {last:g} passes, where {best} is at "
            f"{shown(float(means.table.loc[last, best]))}"
        )
    elif means.table.loc[first, "sa-iu-admm"] > TIE * means.table.loc[first, best]:
        reasons.append(f"behind at first ({first:g} passes), ahead later")
    return "; ".join(reasons)


def selected_step(runs: pd.DataFrame) -> str:
    """The step, with the number of samples it was selected on, as far as the trace has it."""
    if "selection_samples" not in runs or not runs["selection_samples"].max() > 0:
        return "the selected step"
    few, n = int(runs["selection_samples"].max()), int(runs["train_samples"].max())
    return f"the step selected on all {n:,} samples" if few == n else f"the step selected on {few:,} of {n:,} samples"


def selection_sizes(trace: pd.DataFrame) -> dict[str, int]:
    """The number of samples on which steps were selected, for every data set whose trace has it."""
    if "selection_samples" not in trace:
        return {}
    largest = trace.groupby("data", sort=False)["selection_samples"].max()
    return {str(data): int(size) for data, size in largest.items() if size > 0}


def claim_grid(verdicts: list[Verdict]) -> list[dict[str, str]]:
    """The verdicts for a table: a row per claim and protocol, a column per data set."""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for verdict in sorted(verdicts, key=lambda one: one.matrix != verdicts[0].matrix):
        key = (verdict.matrix, verdict.variant, verdict.claim)
        head = {"claim": STATEMENTS[verdict.claim], "A": matrix_name(verdict.matrix), "protocol": verdict.variant}
        rows.setdefault(key, head)[verdict.data] = verdict.text
    return list(rows.values())


def reasons(verdicts: list[Verdict]) -> list[str]:
    """Why claims fail, and the margins, one line each."""
    lines = []
    for verdict in verdicts:
        where = f"{verdict.data}, A = {matrix_name(verdict.matrix)}"
        if verdict.why:
            lines.append(f"{where}: {verdict.why}.")
        if verdict.claim == "margin":
            lines.append(f"{where}, {verdict.variant}: mean ratio to SA-IU-ADMM {verdict.numbers}.")
    return lines
