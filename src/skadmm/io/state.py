"""The state of a solver as plain values, for a checkpoint, and back into it.

A state is a dataclass. Its fields hold numbers, strings, arrays, tuples of those, named tuples of arrays, or further
states; fields made by :func:`transient` are not stored.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)


def transient(**options: Any) -> Any:
    """A dataclass field that a checkpoint leaves out, because it can be computed again; it needs a default."""
    return dataclasses.field(metadata={"transient": True}, **options)


def resizable(**options: Any) -> Any:
    """A dataclass field with an array whose length may change during a run."""
    return dataclasses.field(metadata={"resizable": True}, **options)


def capture(state: Any) -> dict[str, Any]:
    """The fields of a state that a checkpoint keeps."""
    values = {field.name: getattr(state, field.name) for field in _stored_fields(state)}
    return {name: capture(value) if dataclasses.is_dataclass(value) else value for name, value in values.items()}


def restore(state: Any, kept: dict[str, Any]) -> None:
    """Put stored values back. The arrays of a named tuple are shared with others, so they are filled, not exchanged."""
    expected = capture(state)
    if kept.keys() != expected.keys():
        raise ValueError(f"{sorted(kept.keys() ^ expected.keys())[0]!r} is not part of it, or missing")
    resized = {field.name for field in _stored_fields(state) if field.metadata.get("resizable")}
    for name, value in kept.items():
        here = getattr(state, name)
        if dataclasses.is_dataclass(here):
            restore(here, value)
        elif _is_arrays(here):
            for array, stored in zip(here, value, strict=True):
                fill(array, stored)
        elif isinstance(here, tuple) and hasattr(here, "_fields") and value is not None:
            setattr(state, name, type(here)(*value))
        else:
            check_like(here, value, name, resizable=name in resized)
            setattr(state, name, value)


def check_like(here: Any, value: Any, name: str, *, resizable: bool = False) -> None:
    """Refuse a value that cannot stand where `here` stands."""
    if isinstance(here, np.ndarray):
        sound = isinstance(value, np.ndarray) and value.dtype == here.dtype and value.ndim == here.ndim
        if sound and here.shape and here.size and not resizable:
            sound = value.shape[0] == here.shape[0]
    elif isinstance(here, NUMBER):
        sound = isinstance(value, NUMBER)
    elif isinstance(here, dict):
        sound = isinstance(value, dict) and value.keys() == here.keys()
        if sound:
            for key, entry in here.items():
                check_like(entry, value[key], name)
    else:
        sound = here is None or isinstance(value, (type(here), type(None)))
    if not sound:
        raise ValueError(f"{name} has the wrong type or shape")


def fill(array: np.ndarray, stored: Any) -> None:
    """The stored numbers into an array of the same shape."""
    if not isinstance(stored, np.ndarray) or stored.shape != array.shape or stored.dtype != array.dtype:
        raise ValueError("an array has another shape or type")
    array[...] = stored


def _stored_fields(state: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(state) if not field.metadata.get("transient")]


def _is_arrays(value: Any) -> bool:
    """Is it a named tuple of arrays, such as a point?"""
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    return named and all(isinstance(entry, np.ndarray) for entry in value)
