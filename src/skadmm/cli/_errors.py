"""The error that a command raises to end with a message and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CommandError(Exception):
    """One line for stderr, and the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in the message about NaN or infinity in its table, with the options that leave columns out."""
    from skadmm.backends.not_finite import NotFiniteError

    try:
        yield
    except NotFiniteError as error:
        names = ",".join(map(str, error.columns))
        advice = f"impute the values, leave out these rows, or --drop {names}"
        raise CommandError(f"{path}: {error.fault}: {advice}", 2) from error
