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
def naming(path: Path, *, droppable: bool = True) -> Iterator[None]:
    """Name the file in the message about NaN or infinity in its table, with the option that leaves columns out, where
    the command has it (`droppable`)."""
    from skadmm.backends.not_finite import NotFiniteError

    try:
        yield
    except NotFiniteError as error:
        advice = "impute the values, or leave out these rows"
        if droppable:
            advice = f"impute the values, leave out these rows, or --drop {','.join(map(str, error.columns))}"
        raise CommandError(f"{path}: {error.fault}: {advice}", 2) from error
