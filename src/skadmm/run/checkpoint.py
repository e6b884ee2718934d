"""A run in a file, so that it can be resumed as if it had never stopped (see ``skadmm.io.archive`` for the format).

A checkpoint belongs to one problem and one set of settings, which its fingerprint identifies: any other is refused.
Limits (passes, time) are not part of it, so a run can be continued beyond its old end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from skadmm._version import __version__
from skadmm.io import archive, codec
from skadmm.problem.problem import Problem
from skadmm.run.step_size import StepChoice


class CheckpointError(ValueError):
    """The error of :func:`skadmm.solve` for a file that is not a complete checkpoint of this run.

    See Also
    --------
    skadmm.solve : Writes and reads checkpoints.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from skadmm import Problem, CheckpointError, solve
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> problem = Problem(X, y, loss="squared", psi=L1(0.1))
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "run.skadmm"
    >>> file.write_bytes(b"something else")
    14
    >>> try:
    ...     solve(problem, tol=1e-6, checkpoint=file)
    ... except CheckpointError as error:
    ...     print("refused")
    refused
    """


KIND = archive.Kind("skadmm-checkpoint", 1, "checkpoint", CheckpointError, {"fingerprint": dict, "run": dict})


class Resumable(Protocol):
    """A run that can continue from a stored state."""

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`; raises where it is not one of this run."""


class Keeper(Protocol):
    """Where the state of a computation is kept: a file of its own, or a part of one."""

    path: Path
    """The file."""

    @property
    def due(self) -> bool:
        """Is it time to write?"""

    def read(self) -> dict[str, Any] | None:
        """The state, or None where there is none yet."""

    def write(self, state: dict[str, Any]) -> None:
        """Replace the state."""


@contextlib.contextmanager
def resumed(keeper: Keeper) -> Iterator[None]:
    """Report a state that cannot be taken up as a fault of the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise CheckpointError(f"checkpoint={str(keeper.path)!r}: not a valid checkpoint: {error}") from error


class Checkpoint:
    """The file of one run: read once at the start, written every few seconds."""

    def __init__(self, path: str | os.PathLike[str], every: float, fingerprint: dict[str, str]) -> None:
        self.path = Path(path)
        self.every = every
        self.fingerprint = fingerprint
        self._last = time.monotonic()
        self._warned = False
        self.written = 0
        """How many times the file was written."""

    @property
    def beside(self) -> Path:
        """A folder for the parts of the run that workers store themselves."""
        return self.path.absolute().with_name(f"{self.path.name}.blocks")

    def read(self) -> dict[str, Any] | None:
        """The state in the file, or None where there is none yet."""
        if not self.path.exists():
            return None
        try:
            manifest, arrays = archive.read(self.path, KIND)
        except OSError as error:
            raise CheckpointError(f"checkpoint={str(self.path)!r}: it cannot be read ({error})") from error
        for name, now in self.fingerprint.items():
            then = manifest["fingerprint"].get(name)
            if then != now:
                raise CheckpointError(
                    f"checkpoint={str(self.path)!r}: it belongs to another run: its {name} is {_short(then)}, this "
                    f"one has {_short(now)}. Give another name, or delete the file"
                )
        with resumed(self):
            return dict(codec.Reader(arrays).decode(manifest["run"]))

    def beginning(self, kept: dict[str, Any]) -> tuple[int, float | None, StepChoice | None]:
        """The seed and the step that the run began with, and the selection behind the step."""
        with resumed(self):
            tuning = None if kept["tuning"] is None else StepChoice(**kept["tuning"])
            step = kept["settings"]["step"]
            return int(kept["settings"]["seed"]), None if step is None else float(step), tuning

    def resume_from(self, run: Resumable, kept: dict[str, Any]) -> None:
        """Let the run continue from the state in the file."""
        with resumed(self):
            run.resume(kept)

    @property
    def due(self) -> bool:
        """Is it time to write?"""
        return time.monotonic() - self._last >= self.every

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file. Where that fails the old one stays as it is, and the run continues with a warning."""
        self._last = time.monotonic()
        writer = codec.Writer()
        content = {"fingerprint": self.fingerprint, "run": writer.encode(state, "the run")}
        try:
            archive.write(self.path, KIND, content, writer.arrays)
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"checkpoint={str(self.path)!r} could not be written ({error}); the run continues, and the last "
                    "checkpoint, if there was one, is still there",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True
        else:
            self._warned = False
            self.written += 1


def _short(value: Any) -> str:
    return f"{value[:12]}…" if isinstance(value, str) and len(value) > 40 else repr(value)


def fingerprint(problem: Problem, **settings: Any) -> dict[str, str]:
    """What identifies a run, as short strings by name: the version, the data, the model, and each setting."""
    model = (problem.loss, problem.omega, problem.psi, problem.constraint.A, problem.constraint.B, problem.constraint.c)
    known = {"version of skadmm": __version__, "data": digest(problem.backend.fingerprint), "model": digest(model)}
    return known | {name: value if isinstance(value, str) else digest(value) for name, value in settings.items()}


def digest(value: Any) -> str:
    """A short number as it is; the SHA-256 of anything larger."""
    if value is None or isinstance(value, (bool, int, float, str, np.number)):
        return repr(value.item() if isinstance(value, np.generic) else value)
    summary = hashlib.sha256()
    _add(summary, value)
    return summary.hexdigest()


def _add(summary: Any, value: Any) -> None:
    if scipy.sparse.issparse(value):
        value = (value.shape, value.data, value.indices, value.indptr)
    if isinstance(value, np.ndarray):
        summary.update(f"{value.dtype.str}{value.shape}{value.flags.c_contiguous}".encode())
        summary.update(value.data if value.flags.c_contiguous else np.ascontiguousarray(value.T).data)
    elif isinstance(value, (tuple, list)):
        summary.update(f"{type(value).__name__}{len(value)}".encode())
        for entry in value:
            _add(summary, entry)
    elif isinstance(value, dict):
        _add(summary, sorted(value.items()))
    else:
        summary.update(f"{type(value).__name__}:{value!r};".encode())
