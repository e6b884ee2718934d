"""A search that can be killed: what folds and paths have found so far, in one file.

A fold that is done is an array of scores, and a path that is under way is its solutions with the state of its solver,
so a search continues with the next strength of the fold that was interrupted.
"""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skadmm.run.checkpoint import Checkpoint, CheckpointError, Keeper, digest, fingerprint, resumed

SECONDS = 5.0
"""The minimum number of seconds between two writes of one path."""
WRITINGS = 50.0
"""The minimum time between two writes of one path, as a multiple of the time that the last one took."""
NOT_IDENTIFYING = ("checkpoint", "verbose", "n_jobs", "cv", "refit", "categorical_features")
"""Parameters that may change when a search continues. The folds themselves stand for `cv`."""


class NoCheckpoint:
    """A search that is not stored."""

    def path(self, *key: int | str) -> Keeper | None:
        """Nothing keeps a path."""
        return None

    def scores(self, candidate: int, fold: int, find: Callable[[], np.ndarray]) -> np.ndarray:
        """The scores of a fold."""
        return find()

    def grids(self, grids: list[np.ndarray]) -> list[np.ndarray]:
        """The strengths, as they are."""
        return grids

    def close(self) -> None:
        """There is nothing to write."""


class SearchCheckpoint(NoCheckpoint):
    """The file of one search; threads may share it."""

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, str], *, shared: bool) -> None:
        self.file = Checkpoint(path, 0.0, identity)
        self.shared = shared
        """Do folds run in threads? Then a state is copied, since another thread may write while its solver runs."""
        self.closed = False
        """Is the search over? A thread that still runs, after an error in another one, then writes no more."""
        self._lock = threading.RLock()
        self._seconds = 0.0
        self._written_at = time.monotonic()
        kept = self.file.read()
        self.known: dict[str, Any] = {"grids": None, "scores": {}, "paths": {}}
        if kept is not None:
            with resumed(self.file):
                self.known = {name: kept[name] for name in self.known}
                if not all(isinstance(self.known[name], dict) for name in ("scores", "paths")):
                    raise ValueError("its parts have the wrong type")

    def grids(self, grids: list[np.ndarray]) -> list[np.ndarray]:
        """Those of the file, where it has some: on a cluster they may differ in rounding from one run to the next."""
        if self.known["grids"] is None:
            self.known["grids"] = [np.array(grid) for grid in grids]
        stored = self.known["grids"]
        with resumed(self.file):
            if [grid.shape for grid in stored] != [grid.shape for grid in grids]:
                raise ValueError("its strengths are not those of this search")
        return list(stored)

    def scores(self, candidate: int, fold: int, find: Callable[[], np.ndarray]) -> np.ndarray:
        """The scores of a fold, from the file where it has them."""
        key = f"{candidate}/{fold}"
        if key not in self.known["scores"]:
            scores = find()
            with self._lock:
                self.known["scores"][key] = scores
                for part in [name for name in self.known["paths"] if name.startswith(f"{key}/")]:
                    del self.known["paths"][part]
                self.write_if_due()
        found: np.ndarray = self.known["scores"][key]
        return found

    def path(self, *key: int | str) -> Part:
        """Where a path is kept."""
        return Part(self, "/".join(map(str, key)))

    def put(self, key: str, state: dict[str, Any]) -> None:
        """The state of a path."""
        with self._lock:
            self.known["paths"][key] = copy.deepcopy(state) if self.shared else state
            self.write_if_due()

    @property
    def interval(self) -> float:
        """Seconds between two writings."""
        return max(SECONDS, WRITINGS * self._seconds) if SECONDS > 0.0 else 0.0

    def write_if_due(self) -> None:
        """Write the file where the last writing is long ago."""
        if time.monotonic() - self._written_at >= self.interval:
            self._write()

    def __reduce__(self) -> Any:
        """In another process there is no file: this one stores what comes back from there."""
        return NoCheckpoint, ()

    def close(self) -> None:
        """Write what there is."""
        with self._lock:
            self._write()
            self.closed = True

    def _write(self) -> None:
        if self.closed:
            return
        began = time.monotonic()
        self.file.write(self.known)
        self._written_at = time.monotonic()
        self._seconds = self._written_at - began


class Part:
    """One path of a search."""

    def __init__(self, search: SearchCheckpoint, key: str) -> None:
        self.search, self.key, self.path = search, key, search.file.path
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Is it time to take the state?"""
        return time.monotonic() - self._last >= self.search.interval

    def read(self) -> dict[str, Any] | None:
        """The state in the file, or None."""
        state = self.search.known["paths"].get(self.key)
        if state is not None and not isinstance(state, dict):
            raise CheckpointError(f"checkpoint={str(self.path)!r}: not a valid checkpoint: a path has no state")
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Replace it."""
        self._last = time.monotonic()
        self.search.put(self.key, state)


@contextlib.contextmanager
def search_checkpoint(
    model: Any, problem: Callable[[], Any], targets: list[Any], folds: list[Any]
) -> Iterator[NoCheckpoint]:
    """The checkpoint of a search by `model` over these folds, written once more where the search ends or fails;
    `problem` makes the one that stands for the data and the penalty."""
    if model.checkpoint is None:
        yield NoCheckpoint()
        return
    settings = {
        name: value if isinstance(value, str) else digest(_identity(value))
        for name, value in sorted(model.get_params(deep=False).items())
        if name not in NOT_IDENTIFYING and _identifies(value)
    }
    rows = [(np.asarray(split.train), np.asarray(split.test)) for split in folds]
    identity = fingerprint(problem(), estimator=type(model).__name__, folds=digest(rows), **settings)
    if len(targets) > 1 and all(isinstance(target, np.ndarray) for target in targets):
        identity["targets"] = digest(list(targets))
    search = SearchCheckpoint(model.checkpoint, identity, shared=model.n_jobs not in (None, 1))
    try:
        yield search
    finally:
        search.close()


def _identifies(value: Any) -> bool:
    """Is it a plain value? What others stand for is in the penalty and in the folds."""
    return value is None or callable(value) or isinstance(value, (bool, int, float, str, tuple, list, np.ndarray))


def _identity(value: Any) -> Any:
    """A function by its name: its address changes."""
    return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else value


__all__ = ["NoCheckpoint", "SearchCheckpoint", "search_checkpoint"]
