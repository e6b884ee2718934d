"""What ``paths.py --write`` keeps (``paths.json``), and the tables of docs/benchmarks.md and README.md made from it."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE, README = Path(__file__).with_name("paths.json"), ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
START, END = "<!-- benchmarks/paths.py: {} -->\n", "<!-- end of paths.py -->"
IN_README = {
    "group lasso 1000 x 2000, groups of 5": "group lasso, 1,000 × 2,000, gap 1e-6",
    "group lasso 1000 x 20000, groups of 10": "group lasso, 1,000 × 20,000, gap 1e-6",
    "lasso path 500 x 2000": "lasso path, 500 × 2,000, 100 alphas, gap 1e-6",
    "lasso CV 500 x 2000, 100 alphas": "lasso, 5-fold CV, 500 × 2,000, 100 alphas",
    "graph CV 150 x 1000": "graph-guided CV, 150 × 1,000",
}
"""Rows of the short table, and their names there."""
TOLERANCE, NEARLY = 1e-6, 5.0
"""The gap that packages are asked for, and how far above it a package is still compared with."""

Measured = dict[str, dict[str, Any]]
"""For each package its seconds, its largest gap (None where none is computed), and whether it met the tolerance."""


def kept() -> dict[str, Measured]:
    """What has been measured, row by row."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def keep(rows: dict[str, Measured], order: list[str]) -> None:
    """Add rows to what has been measured, and fill the tables."""
    known = kept() | rows
    known = {name: known[name] for name in order if name in known}
    KEPT.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for path, lines, what in ((PAGE, long_table(known), "all rows"), (README, short_table(known), "some rows")):
        path.write_text(filled(path.read_text(encoding="utf-8"), "\n".join(lines), what), encoding="utf-8")


def filled(text: str, table: str, what: str) -> str:
    """A page with a new table between its marks."""
    start = START.format(what)
    before, rest = text.split(start)
    return before + start + table + "\n" + END + rest.split(END, 1)[1]


def seconds(value: float) -> str:
    """Two digits."""
    if value <= 0.0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{digits}f}"


def long_table(rows: dict[str, Measured]) -> Iterator[str]:
    """A line for every row and package."""
    yield "| job | skadmm, s | other | s | ours / other |"
    yield "|---|---|---|---|---|"
    for name, packages in rows.items():
        ours = packages["skadmm"]
        job, time = name.replace(" x ", " × "), _reached(ours)
        for package, found in packages.items():
            if package == "skadmm":
                continue
            if found["seconds"] is None:
                yield f"| {job} | {time} | {package} | too long | |"
            else:
                yield f"| {job} | {time} | {package} | {_reached(found)} | {ours['seconds'] / found['seconds']:.2f} |"
            job = time = ""
        if job:
            yield f"| {job} | {time} | | | |"


def _nearly(found: dict[str, Any]) -> bool:
    return found["met"] or (found["gap"] is not None and found["gap"] <= NEARLY * TOLERANCE)


def short_table(rows: dict[str, Measured]) -> Iterator[str]:
    """The best other package of some rows: the fastest that came within NEARLY of the tolerance, or of all where none
    did; its gap is shown where it is above the tolerance."""
    yield "| job | skadmm | best other |"
    yield "|---|---|---|"
    for name, title in IN_README.items():
        others = {
            package: found
            for package, found in rows.get(name, {}).items()
            if package != "skadmm" and found["seconds"] is not None
        }
        if not others:
            continue
        met = {package: found for package, found in others.items() if _nearly(found)} or others
        best = min(met, key=lambda package: met[package]["seconds"])
        of = "GridSearchCV over the same estimator" if best == "grid search" else best
        yield f"| {title} | {_reached(rows[name]['skadmm'])} | {_reached(met[best])} ({of}) |"


def _reached(found: dict[str, Any]) -> str:
    return seconds(found["seconds"]) + ("" if found["met"] else f", gap {found['gap']:.0e}")
