"""The whole reproduction: run what is missing, then figures, tables, claims and the report."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skadmm.paper import claims, figures, summary, tables
from skadmm.paper.collect import Collected, collect, save_trace
from skadmm.paper.prepare import Source, register_source
from skadmm.paper.report import write_report
from skadmm.paper.runner import Failure, Progress, run_missing
from skadmm.paper.settings import PROTOCOLS, Settings
from skadmm.paper.store import Store, sweep, write_atomically
from skadmm.paper.versions import versions

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Outcome:
    """What a reproduction has computed and written.

    Parameters
    ----------
    folder : Path
        Where figures, tables, the trace and the report are.
    trace : DataFrame
        Every recording of every run.
    summary : DataFrame
        One row per data set and method.
    verdicts : list of Verdict
        Whether each claim of the paper holds.
    failures : list of Failure
        Runs that could not be made.
    seconds : float
        The time taken.

    See Also
    --------
    skadmm.paper.reproduce : Returns it.

    Examples
    --------
    >>> from dataclasses import fields
    >>> from skadmm.paper import Outcome
    >>> [field.name for field in fields(Outcome)]
    ['folder', 'trace', 'summary', 'verdicts', 'failures', 'seconds']
    """

    folder: Path
    trace: pd.DataFrame
    summary: pd.DataFrame
    verdicts: list[claims.Verdict]
    failures: list[Failure]
    seconds: float


def reproduce(
    settings: Settings,
    out: str | os.PathLike[str] = "results",
    *,
    jobs: int = 1,
    data_dir: str | os.PathLike[str] | None = None,
    iterate: str = "last",
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    command: str = "",
) -> Outcome:
    """Run the paper's experiments and write figures, tables, the trace and the report into `out`.

    Parameters
    ----------
    settings : Settings
        What to run.
    out : path
        Finished cells are kept under ``out/cells`` by a fingerprint of their settings: a run that was stopped resumes
        where it was, and other settings never mix with them.
    jobs : int
        Processes, of one thread each; 1 runs in this one.
    data_dir : path, optional
        Where the data files are; see :func:`skadmm.datasets.load`.
    iterate : "last" or "average"
        Which iterate's objective the figures and tables show. The testing loss is that of the last.
    progress, say : functions, optional
        Called with every finished cell, and at every phase.
    command : str
        The command line, for the report.

    Returns
    -------
    Outcome
        The trace, the summary and the claims, which are also written to `out`.

    See Also
    --------
    skadmm.paper.Settings : What can be set.
    skadmm.paper.quick : A run of one to four minutes.

    Examples
    --------
    The report of the short form is written to ``results/report.html`` by

    ``skadmm reproduce --quick``

    and likewise from Python, here with one data set and few samples:

    >>> import pathlib, tempfile
    >>> from skadmm.paper import PerData, Settings, reproduce
    >>> settings = Settings(
    ...     data=("breast-cancer",), figures=(1,), methods=("sa-admm", "batch-admm"), protocols=("paper",),
    ...     repeats=PerData(1), passes=PerData(2.0), limit=100,
    ... )
    >>> outcome = reproduce(settings, tempfile.mkdtemp())
    >>> (pathlib.Path(outcome.folder) / "report.html").exists()
    True
    """
    if iterate not in ("last", "average"):
        raise ValueError(f"iterate={iterate!r}: it takes 'last' or 'average'")
    say = say or (lambda _: None)
    began = time.perf_counter()
    folder = Path(out)
    store = Store(folder / "cells")
    sources: dict[str, Source] = {}
    for name in settings.data:
        say(f"reading {name}")
        sources[name] = register_source(store, name, data_dir, settings.limit)
    settings, sources = _by_reported_name(settings, sources)
    failures = run_missing(settings, store, sources, jobs=jobs, progress=progress)
    sweep(folder)
    say("writing figures, tables and the report")
    collected = collect(settings, store, sources)
    outcome = _write(folder, settings, sources, collected, iterate, command, failures)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _by_reported_name(settings: Settings, sources: dict[str, Source]) -> tuple[Settings, dict[str, Source]]:
    """A data set given as a path is called by its file's name from here on."""
    from dataclasses import replace

    names = tuple(source.name for source in sources.values())
    if len(set(names)) != len(names):
        raise ValueError(f"data={', '.join(settings.data)}: two of them have the same name")
    return replace(settings, data=names), {source.name: source for source in sources.values()}


def _write(
    folder: Path, settings: Settings, sources: dict[str, Source], collected: Collected, iterate: str, command: str,
    failures: list[Failure],
) -> Outcome:  # fmt: skip
    trace = collected.trace
    save_trace(trace, folder / "trace.parquet")
    summarised = summary.summarise(trace, settings, iterate)
    verdicts = claims.judge(trace, settings, iterate)
    table1 = tables.update_rules(settings.methods)
    table2 = tables.data_sets(settings, sources, collected.graphs)
    _text(folder / "summary.csv", summarised.to_csv(index=False))
    _text(folder / "optima.csv", collected.optima.to_csv(index=False))
    about = {"command": command, "iterate": iterate, "settings": settings.as_dict(), "versions": versions(),
             "sources": list(collected.digests)}  # fmt: skip
    _text(folder / "settings.json", json.dumps(about, indent=1, ensure_ascii=False))
    leads = claims.leads(trace, settings, iterate)
    _text(folder / "summary.md", _markdown(settings, table1, table2, summarised, verdicts, leads, command, failures))
    drawn = figures.save_figures(trace, settings, folder / "figures", iterate)
    write_report(
        folder / "report.html", settings, collected, drawn, summarised, verdicts, table1, table2, about, failures
    )
    return Outcome(folder, trace, summarised, verdicts, failures, 0.0)


def _text(path: Path, text: str) -> None:
    write_atomically(path, lambda stream: stream.write(text.encode()))


def _markdown(
    settings: Settings, table1: list[dict[str, str]], table2: list[dict[str, Any]], summarised: pd.DataFrame,
    verdicts: list[claims.Verdict], leads: list[dict[str, Any]], command: str, failures: list[Failure],
) -> str:  # fmt: skip
    parts = [
        "# The paper's experiments again",
        f"Made by `{command}`." if command else "",
        "## The paper's claims",
        "On the mean relative suboptimality over repeats at the numbers of passes that the summary has. A claim holds "
        "in part where it is true at some of them, in the share given. Values within 5 % are level: neither is ahead. "
        "Values below 1e-10 count as 1e-10.",
        "\n".join(f"- {name}: {text}." for name, text in PROTOCOLS.items() if name in settings.protocols),
        tables.markdown(claims.claim_grid(verdicts)),
        "## By how much SA-IU-ADMM leads",
        "The mean relative suboptimality of the best of STOC-, OPG- and RDA-ADMM, and that of SA-ADMM, over that of "
        "SA-IU-ADMM, after this many passes (@). Above 1, SA-IU-ADMM leads.",
        tables.markdown(leads),
        "\n".join(f"- {line}" for line in claims.reasons(verdicts)),
        "## Summary",
        "Relative suboptimality (f − f*)/f*, mean ± standard deviation over repeats, at fixed numbers of passes; mean "
        "rank among the paper's methods over repeats and checkpoints; median passes and seconds after which it stays "
        "at or below a target.",
        tables.markdown(tables.summary_rows(summarised)),
        "## Table 1: update rules on x", tables.markdown(table1),
        "## Table 2: data", tables.markdown(table2),
    ]  # fmt: skip
    if failures:
        parts += ["## Failed", *(f"- {failure.task.label}: {failure.error}" for failure in failures)]
    return "\n\n".join(part for part in parts if part) + "\n"
