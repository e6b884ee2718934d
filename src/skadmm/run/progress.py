"""A progress bar on a terminal."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """A bar over passes (needs the extra "progress"), or nothing."""

    def __init__(self, title: str, total: float, shown: bool | None = True) -> None:
        """`shown` of None shows the bar on a terminal only, and where its package is installed."""
        self._bar: Any = None
        if shown is None and not sys.stderr.isatty():
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        except ImportError as error:
            if shown is None:
                return
            raise ImportError("progress=True needs rich: pip install 'skadmm[progress]'") from error
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.1f}/{task.total:g} passes"),
            TextColumn("{task.fields[objective]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(title, total=total, objective="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is None:
            return
        if kind is None:  # a run that has ended shows a full bar, also where it ended before its limit
            self._bar.update(self._task, total=self._bar.tasks[self._task].completed)
        self._bar.stop()

    def update(self, passes: float) -> None:
        """Show the number of passes."""
        if self._bar is not None:
            self._bar.update(self._task, completed=passes)

    def report(self, record: dict[str, float]) -> None:
        """Show the newest objective."""
        if self._bar is not None:
            self._bar.update(self._task, objective=f"objective {record['objective']:.6g}")
