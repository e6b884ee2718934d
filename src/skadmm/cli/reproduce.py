"""``skadmm reproduce``: the paper's figures and tables."""

import math
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import typer

from skadmm.cli._errors import CommandError

FULL = {"data": "a9a,covertype,quantum,rcv1,sido,covertype@minmax", "repeats": "10", "passes": "30", "every": "0.5"}
QUICK = {"data": "breast-cancer,digits", "repeats": "3", "passes": "20", "every": "1"}
"""The defaults of options, without and with ``--quick``."""
PER_DATA = "one value, or with exceptions: VALUE,NAME=VALUE,…"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reproduce)


def reproduce(
    quick: bool = typer.Option(False, "--quick", help="Built-in data, 3 repeats and 20 passes, unless other options "
                                                      "are given; it takes one to four minutes."),
    data: str = typer.Option("", help="Data sets (or svmlight files), comma-separated; NAME@SCALING is a set "
                                      "under that scaling. [default: the paper's five, and covertype@minmax]"),
    figure: str = typer.Option("1,2,3", help="The paper's figures to make."),
    repeats: str = typer.Option("", help=f"Number of random halves; {PER_DATA}. [default: 10]"),
    passes: str = typer.Option("", help=f"Effective passes; {PER_DATA}. [default: 30]"),
    record_every: str = typer.Option("", help=f"Passes between recordings; {PER_DATA}. [default: 0.5]"),
    methods: str = typer.Option("", help="Methods, separated by commas. [default: the paper's seven, and san-admm]"),
    jobs: int = typer.Option(2, min=1, help="Number of processes, of one thread each."),
    out: Path = typer.Option(Path("results"), help="Where results go; a run that was stopped resumes there."),  # noqa: B008
    data_dir: Path | None = typer.Option(None, "--data-dir", help="Where the data files are (or SKADMM_DATA)."),  # noqa: B008
    matrix: str = typer.Option("stacked", help="A: stacked for [G; I], graph for G; or both."),
    rho: float = typer.Option(0.01, help="The penalty parameter ρ of ADMM."),
    strength: str = typer.Option("", help=f"The strength λ of the penalty; {PER_DATA}. [default: 1e-5, or "
                                          "1e-4 for the high-dimensional sets]"),
    mu: float = typer.Option(1e-2, help="μ of (μ/2)‖x‖² in figure 3; the paper does not state it."),
    batch_size: str = typer.Option("", help=f"Samples per step; {PER_DATA}. [default: 1; blocks where d is large]"),
    scaling: str = typer.Option("", help=f"none, standard, minmax, maxabs or unit-rows; {PER_DATA}. [default: "
                                         "standard for covertype, quantum and qm9mu, else none]"),
    graph_alpha: str = typer.Option("auto", help="The graphical lasso's penalty, or auto."),
    graph_degree: float = typer.Option(2.0, help="The average degree that auto aims at."),
    iterate: str = typer.Option("last", help="Which iterate's objective is shown: last or average."),
    protocols: str = typer.Option("paper,zero+n,restored", help="How the SA methods are run: paper (literally), zero+n "
                                                                "(from a table of zeros), restored (warm-started)."),
    optimum: bool = typer.Option(True, "--optimum/--no-optimum", help="Also solve every problem to high accuracy."),
    limit: int | None = typer.Option(None, min=20, help="At most this many samples of each set, for a trial."),
    seed: int = typer.Option(0, min=0, help="Seed of the splits and the sampling."),
) -> None:  # fmt: skip
    """Repeat the paper's experiments.

    Figures, tables, the numbers behind them and a report go to one folder.
    """
    from skadmm import paper
    from skadmm.paper import settings as s

    default = QUICK if quick else FULL
    chosen = s.Settings(
        data=tuple(_list(data or default["data"])),
        figures=tuple(sorted({int(_number(part, "--figure")) for part in _list(figure)})),
        methods=tuple(_list(methods)),
        matrices=tuple(_list(matrix)),
        repeats=_per_data(repeats or default["repeats"], "--repeats", _count),
        passes=_per_data(passes or default["passes"], "--passes", _positive),
        record_every=_per_data(record_every or default["every"], "--record-every", _positive),
        batch_size=_per_data(batch_size, "--batch-size", _count, s.BATCH_SIZE),
        strength=_per_data(strength, "--strength", _positive, s.STRENGTH),
        scaling=_per_data(scaling, "--scaling", lambda text, _: text, s.SCALING),
        rho=rho,
        mu=mu,
        graph_alpha="auto" if graph_alpha == "auto" else _positive(graph_alpha, "--graph-alpha"),
        graph_degree=graph_degree,
        limit=limit,
        protocols=tuple(_list(protocols)),
        optimum=optimum,
        seed=seed,
    )
    outcome = paper.reproduce(
        chosen, out, jobs=jobs, data_dir=data_dir, iterate=iterate, command=_command(),
        progress=_Lines(), say=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    _tell(outcome)
    _refuse_failures(outcome.failures)


def _refuse_failures(failures: list[Any]) -> None:
    """Raise where cells failed."""
    if failures:
        first = failures[0]
        raise CommandError(
            f"{len(failures)} cells failed, first {first.task.label}: {first.error}; the same command tries them again"
        )


def _command() -> str:
    """The command line as typed, without the folder of the program."""
    return shlex.join(["skadmm", *sys.argv[1:]])


def _tell(outcome: Any) -> None:
    from skadmm.paper.claims import STATEMENTS

    if outcome.verdicts:
        print(f"\n{'claim':<74}{'data':<18}{'A':<9}{'protocol':<10}verdict")
    for verdict in outcome.verdicts:
        print(
            f"{STATEMENTS[verdict.claim]:<74}{verdict.data:<18}{verdict.matrix:<9}{verdict.variant:<10}{verdict.text}"
        )
    print(
        f"\n{outcome.seconds:.0f} s. In {outcome.folder}: report.html, figures/, summary.md, summary.csv, trace.parquet"
    )


class _Lines:
    """A line of progress: rewritten on a terminal, repeated every 15 seconds elsewhere."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.last_shown = 0.0

    def __call__(self, task: Any, clock: Any, left: float) -> None:
        now = time.monotonic()
        last = clock.done == clock.total
        if not self.terminal and now - self.last_shown < 15 and not last:
            return
        self.last_shown = now
        line = f"{clock.done}/{clock.total} cells, {_duration(left)} left; done: {task.label}"
        print(f"\r\x1b[2K{line}" if self.terminal else line, end="" if self.terminal and not last else "\n",
              file=sys.stderr, flush=True)  # fmt: skip


def _duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandError(f"{option}: {text!r} is not a number", 2) from None


def _positive(text: str, option: str) -> float:
    value = _number(text, option)
    if not 0 < value < float("inf"):
        raise CommandError(f"{option}: {text!r}: it takes a number > 0", 2)
    return value


def _count(text: str, option: str) -> int:
    value = _number(text, option)
    if value < 1 or value != int(value):
        raise CommandError(f"{option}: {text!r}: it takes an integer ≥ 1", 2)
    return int(value)


def _per_data(text: str, option: str, convert: Any, base: Any = None) -> Any:
    """ "30,covertype=20" as a value for every data set, over `base` where that has exceptions."""
    from skadmm.paper import PerData

    default, exceptions = None, {}
    for part in _list(text):
        name, equals, value = part.rpartition("=")
        if equals:
            exceptions[name] = convert(value, option)
        elif default is None:
            default = convert(part, option)
        else:
            raise CommandError(f"{option}: two values without a data set's name in {text!r}", 2)
    if base is not None and default is None:
        return PerData(base.default, {**base.exceptions, **exceptions})
    if default is None:
        raise CommandError(f"{option}: {text!r} has no value for the other data sets", 2)
    return PerData(default, exceptions)
