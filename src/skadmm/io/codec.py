"""Values as JSON with arrays beside it, and back.

Plain values (numbers, strings, arrays, sparse matrices, lists, tuples, dictionaries) are known here. Every other class
registers how it is stored, in the module that defines it::

    codec.register("graph", FeatureGraph, encode, decode)

A file names kinds, never classes or functions, and only registered kinds are read. Nothing is ever unpickled.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Encode = Callable[[Any], Any]
"""From a value to JSON; given to the functions that encode a class, for its parts."""
Decode = Callable[[Any], Any]
"""From JSON to the value."""


class Form(NamedTuple):
    """How the values of one kind are stored."""

    matches: type | tuple[type, ...] | Callable[[Any], bool]
    """Their class, or a test for them."""
    encode: Callable[[Any, Encode], dict[str, Any]]
    """From a value to the entries of a JSON object, without "kind"."""
    decode: Callable[[dict[str, Any], Decode], Any]
    """From that object to the value; raises ValueError, TypeError or KeyError where it holds something else."""

    def takes(self, value: Any) -> bool:
        """Is the value of this kind?"""
        if isinstance(self.matches, (type, tuple)):
            return isinstance(value, self.matches)
        return self.matches(value)


_forms: dict[str, Form] = {}


def register(
    kind: str,
    matches: type | tuple[type, ...] | Callable[[Any], bool],
    encode: Callable[[Any, Encode], dict[str, Any]],
    decode: Callable[[dict[str, Any], Decode], Any],
) -> None:
    """Make a kind of value known. Files hold its name, so a kind that was released keeps its name and its form."""
    if kind in _forms or kind in _PLAIN:
        raise ValueError(f"kind={kind!r} is registered already")
    _forms[kind] = Form(matches, encode, decode)


def register_fields(kind: str, cls: type[tuple[Any, ...]]) -> None:
    """Store a NamedTuple as the list of its fields."""
    register(
        kind,
        cls,
        lambda value, encode: {"fields": [encode(field) for field in value]},
        lambda stored, decode: cls(*(decode(field) for field in stored["fields"])),
    )


class Writer:
    """Encodes values; the arrays it met are in ``arrays``."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def encode(self, value: Any, where: str) -> Any:
        """`value` as JSON; `where` names it in messages."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, (int, np.integer)):
            return {"kind": "int", "value": str(int(value))}
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return {"kind": "float", "value": number.hex() if math.isfinite(number) else repr(number)}
        if sp.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, dict):
            pairs = [[self.encode(key, where), self.encode(entry, where)] for key, entry in value.items()]
            return {"kind": "dict", "pairs": pairs}
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> Any:
        """A value of a registered kind, a table of pandas, a list or a tuple."""
        for kind, form in _forms.items():
            if form.takes(value):
                return {"kind": kind} | form.encode(value, lambda part: self.encode(part, where))
        pandas = sys.modules.get("pandas")  # a caller with a Series has imported it
        if pandas is not None and isinstance(value, (pandas.Series, pandas.DataFrame)):
            return self.encode(value.to_dict(), where)
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"kind": kind, "items": [self.encode(entry, where) for entry in value]}
        raise TypeError(f"{where}={type(value).__name__} cannot be saved: give it as numbers, strings or arrays")

    def _array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            entries = [self.encode(entry, where) for entry in array.ravel().tolist()]
            return {"kind": "objects", "shape": list(array.shape), "items": entries}
        if array.dtype.kind not in "fiubU" or (array.dtype.itemsize > 8 and array.dtype.kind == "f"):
            raise TypeError(f"{where} has dtype {array.dtype}, which cannot be saved")
        self.arrays.append(array)
        return {"kind": "array", "index": len(self.arrays) - 1}

    def _sparse(self, matrix: Any, where: str) -> dict[str, Any]:
        csr = sp.csr_array(matrix)
        parts = [self._array(part, where) for part in (csr.data, csr.indices, csr.indptr)]
        return {"kind": "sparse", "shape": list(csr.shape), "parts": parts}


class Reader:
    """Decodes what :class:`Writer` encoded; anything else is an error."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays

    def decode(self, value: Any) -> Any:
        """The value."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not an encoded value")
        kind = value.get("kind")
        if isinstance(kind, str) and kind in _PLAIN:
            return _PLAIN[kind](self, value)
        if isinstance(kind, str) and kind in _forms:
            return _forms[kind].decode(value, self.decode)
        raise ValueError(f"the kind {kind!r} is not known")


def _int(reader: Reader, value: dict[str, Any]) -> int:
    return int(value["value"])


def _float(reader: Reader, value: dict[str, Any]) -> float:
    text = value["value"]
    return float.fromhex(text) if "x" in text else float(text)


def _array(reader: Reader, value: dict[str, Any]) -> np.ndarray:
    index = value["index"]
    if not isinstance(index, int) or not 0 <= index < len(reader.arrays):
        raise ValueError(f"there is no array {index!r}")
    return reader.arrays[index]


def _objects(reader: Reader, value: dict[str, Any]) -> np.ndarray:
    array = np.empty(len(value["items"]), dtype=object)
    array[:] = [reader.decode(entry) for entry in value["items"]]
    return array.reshape([int(length) for length in value["shape"]])


def _sparse(reader: Reader, value: dict[str, Any]) -> sp.csr_array:
    data, indices, indptr = (reader.decode(part) for part in value["parts"])
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(k) for k in value["shape"]))
    matrix.check_format()
    return matrix


def _list(reader: Reader, value: dict[str, Any]) -> list[Any]:
    return [reader.decode(entry) for entry in value["items"]]


def _tuple(reader: Reader, value: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(_list(reader, value))


def _dict(reader: Reader, value: dict[str, Any]) -> dict[Any, Any]:
    return {reader.decode(key): reader.decode(entry) for key, entry in value["pairs"]}


_PLAIN: dict[str, Callable[[Reader, dict[str, Any]], Any]] = {
    "int": _int, "float": _float, "array": _array, "objects": _objects, "sparse": _sparse, "list": _list,
    "tuple": _tuple, "dict": _dict,
}  # fmt: skip


def readable(value: Any, arrays: list[np.ndarray]) -> Any:
    """An encoded value for people: numbers as numbers, arrays by their shape."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    if kind is None:
        return {key: readable(entry, arrays) for key, entry in value.items()}
    if kind in ("int", "float"):
        return Reader(arrays).decode(value)
    if kind == "array":
        array = Reader(arrays).decode(value)
        return array.tolist() if array.size <= 10 else f"array of shape {array.shape}"
    if kind in ("list", "tuple"):
        return [readable(entry, arrays) for entry in value["items"]]
    if kind == "objects":
        return [readable(entry, arrays) for entry in value["items"]] if len(value["items"]) <= 10 else "array"
    if kind == "dict":
        return {str(readable(key, arrays)): readable(entry, arrays) for key, entry in value["pairs"]}
    if kind == "sparse":
        return f"sparse matrix of shape {tuple(value['shape'])}"
    if "name" in value and "fields" in value:
        return f"{value['name']}({', '.join(str(readable(entry, arrays)) for entry in value['fields'])})"
    return kind
