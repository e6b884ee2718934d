"""Registries of things by name, and messages for unknown names that suggest the nearest known one."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

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


class Registry(Generic[T]):
    """A dictionary from names to entries of one `kind`. Unknown names raise ValueError, with the nearest known one."""

    def __init__(self, kind: str, entries: dict[str, T] | None = None) -> None:
        self.kind = kind
        self._entries: dict[str, T] = dict(entries or {})

    def add(self, name: str, entry: T) -> T:
        """Add an entry under a name that is not taken; returns the entry."""
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        known = ", ".join(repr(entry) for entry in self._entries)
        raise ValueError(f"{self.kind}={name!r} is not known; it takes one of {known}.{nearest(name, self._entries)}")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __repr__(self) -> str:
        return f"{self.kind}s: {', '.join(self._entries)}"

    def _repr_html_(self) -> str:
        about = {name: getattr(entry, "summary", None) or _first_line(entry) for name, entry in self._entries.items()}
        return _summary.table(f"{self.kind}s", about)

    def items(self) -> Iterator[tuple[str, T]]:
        """Names and entries, in the order in which they were added."""
        return iter(self._entries.items())


def _first_line(entry: object) -> str:
    """The first line of an entry's docstring."""
    return (getattr(entry, "__doc__", None) or "").strip().split("\n")[0]
