"""Registries: a name, one spelling everywhere, and a helpful message when it is unknown."""

import difflib
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary from names to things of one `kind`; unknown names raise with the nearest known one."""

    def __init__(self, kind: str, entries: dict[str, T] | None = None) -> None:
        self.kind = kind
        self._entries: dict[str, T] = dict(entries or {})

    def add(self, name: str, entry: T) -> T:
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        known = ", ".join(repr(entry) for entry in self._entries)
        near = difflib.get_close_matches(str(name), self._entries, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{self.kind}={name!r} is not known; it takes one of {known}.{hint}")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def items(self) -> Iterator[tuple[str, T]]:
        return iter(self._entries.items())
