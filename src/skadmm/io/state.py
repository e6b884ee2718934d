"""The numbers and arrays of an object, for a checkpoint, and back into it."""

from typing import Any

import numpy as np

PLAIN = (bool, int, float, str, np.bool_, np.integer, np.floating, type(None))


def capture(thing: Any) -> dict[str, Any]:
    """Its attributes that are numbers, arrays, tuples of them or a point, and not among its ``FIXED`` ones."""
    fixed = getattr(thing, "FIXED", ())
    return {name: value for name, value in vars(thing).items() if name not in fixed and _kept(value)}


def restore(thing: Any, kept: dict[str, Any]) -> None:
    """Put the attributes back. A point is shared with others, so its arrays are filled, not exchanged."""
    expected = capture(thing)
    if kept.keys() != expected.keys():
        raise ValueError(f"{sorted(kept.keys() ^ expected.keys())[0]!r} is not part of it, or missing")
    for name, value in kept.items():
        here = expected[name]
        if _is_arrays(here):
            for array, stored in zip(here, value, strict=True):
                fill(array, stored)
        elif isinstance(here, tuple) and hasattr(here, "_fields") and value is not None:
            setattr(thing, name, type(here)(*value))
        else:
            check_like(here, value, name)
            setattr(thing, name, value)


def check_like(here: Any, value: Any, name: str) -> None:
    """Refuse a value that cannot stand where `here` stands."""
    number = (bool, int, float, np.bool_, np.integer, np.floating)
    if isinstance(here, np.ndarray):
        sound = isinstance(value, np.ndarray) and value.dtype == here.dtype and value.ndim == here.ndim
        if sound and here.shape and here.size:
            sound = value.shape[0] == here.shape[0] or name in ("features", "_old")
    elif isinstance(here, number):
        sound = isinstance(value, number)
    elif isinstance(here, dict):
        sound = isinstance(value, dict) and value.keys() == here.keys()
        if sound:
            for key, entry in here.items():
                check_like(entry, value[key], name)
    else:
        sound = here is None or isinstance(value, (type(here), type(None)))
    if not sound:
        raise ValueError(f"{name} is not what it should be")


def fill(array: np.ndarray, stored: Any) -> None:
    """The stored numbers into an array of the same shape."""
    if not isinstance(stored, np.ndarray) or stored.shape != array.shape or stored.dtype != array.dtype:
        raise ValueError("an array has another shape or type")
    array[...] = stored


def _kept(value: Any) -> bool:
    if _is_arrays(value):
        return True
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return all(isinstance(entry, (*PLAIN, np.ndarray)) for entry in value)
    if isinstance(value, tuple):
        return all(isinstance(entry, PLAIN) for entry in value)
    return isinstance(value, (*PLAIN, np.ndarray))


def _is_arrays(value: Any) -> bool:
    """Is it a named tuple of arrays, such as a point?"""
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    return named and all(isinstance(entry, np.ndarray) for entry in value)
