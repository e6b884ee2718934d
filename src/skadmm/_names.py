"""Registries of things by name, and messages for unknown names that suggest the nearest known one."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from skadmm import _summary

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the known name nearest to an unknown one, or nothing."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def no_column(name: str, columns: Sequence[str], shown: int = 8) -> str:
    """The message for a column that a table does not have."""
    more = f", … ({len(columns)} in all)" if len(columns) > shown else ""
    return f"there is no column {name!r}; it has {', '.join(columns[:shown])}{more}.{nearest(name, columns)}"


def no_columns(names: Sequence[str], columns: Sequence[str]) -> str:
    """The message for all the columns that a table does not have, each in quotes."""
    message = no_column(names[0], columns)
    if len(names) == 1:
        return message
    return message.replace(f"there is no column {names[0]!r}", f"there are no columns {', '.join(map(repr, names))}")


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name of a `kind` that is not among the known ones."""
    names = list(known)
    return f"{kind}={name!r} is not known; it takes one of {', '.join(map(repr, names))}.{nearest(name, names)}"


def unexpected(method: str, name: str, names: Sequence[str], more: str = "") -> str:
    """The message for an argument `name` that a method does not have; `more` says what else it could take."""
    takes = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    if name == "exposure" and "offset" in names:
        return f"{method}() got 'exposure': it takes {takes}{more}; for an exposure give offset=np.log(exposure)"
    guess = nearest(name, names)
    return f"{method}() got {name!r}: it takes {takes}{more}" + (f".{guess}" if guess else "")


@contextmanager
def argument_names(**names: str) -> Iterator[None]:
    """Give the arguments in messages of a called function the names that the user knows: a ValueError whose message
    begins with a name on the left is raised with the one on the right."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        first = re.match(r"\w*", message)[0]  # type: ignore[index]
        if first not in names:
            raise
        raise ValueError(names[first] + message[len(first) :]) from error


class Registry(dict[str, T]):
    """A dictionary from names to entries of one `kind`. Unknown names raise ValueError, with the nearest known one."""

    def __init__(self, kind: str, plural: str | None = None) -> None:
        super().__init__()
        self.kind, self.plural = kind, plural or f"{kind}s"

    def add(self, name: str, entry: T) -> T:
        """Add an entry under a name that is not taken; returns the entry."""
        if name in self:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self[name] = entry
        return entry

    def __missing__(self, name: str) -> T:
        raise ValueError(unknown(self.kind, name, self))

    def __repr__(self) -> str:
        return f"{self.plural}: {', '.join(self)}"

    def _repr_html_(self) -> str:
        about = {name: getattr(entry, "summary", None) or _first_line(entry) for name, entry in self.items()}
        return _summary.table(self.plural, about)


def _first_line(entry: object) -> str:
    """The first line of an entry's docstring."""
    return (getattr(entry, "__doc__", None) or "").strip().split("\n")[0]
