"""A bar over folds × path, on a terminal."""

from __future__ import annotations

import sys
from typing import Any


class Counter:
    """Counts steps; with verbose, on a terminal, as a bar (needs the extra "progress")."""

    def __init__(self, title: str, total: int, verbose: Any) -> None:
        self._bar: Any = None
        if not verbose or not sys.stderr.isatty():
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            return
        self._bar = Progress(
            TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Counter:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self) -> None:
        """Count one step."""
        if self._bar is not None:
            self._bar.advance(self._task)
