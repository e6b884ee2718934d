"""Parameters and fitted attributes as JSON with arrays beside it, and back. Only kinds listed here are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

SPLITTERS = ("KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "TimeSeriesSplit",
             "StratifiedShuffleSplit", "LeaveOneOut")  # fmt: skip


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
        known = self._known(value, where)
        if known is not None:
            return known
        if hasattr(value, "index") and hasattr(value, "to_dict"):  # a pandas Series, of labels by name
            return self.encode(value.to_dict(), where)
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"kind": kind, "items": [self.encode(entry, where) for entry in value]}
        raise TypeError(f"{where}={type(value).__name__} cannot be saved: give it as numbers, strings or arrays")

    def _array(self, array: np.ndarray, where: str) -> Any:
        if array.dtype.kind == "O":
            entries = [self.encode(entry, where) for entry in array.ravel().tolist()]
            return {"kind": "objects", "shape": list(array.shape), "items": entries}
        if array.dtype.kind not in "fiubU" or (array.dtype.itemsize > 8 and array.dtype.kind == "f"):
            raise TypeError(f"{where} has dtype {array.dtype}, which cannot be saved")
        self.arrays.append(array)
        return {"kind": "array", "index": len(self.arrays) - 1}

    def _sparse(self, matrix: Any, where: str) -> Any:
        csr = sp.csr_array(matrix)
        parts = [self._array(part, where) for part in (csr.data, csr.indices, csr.indptr)]
        return {"kind": "sparse", "shape": list(csr.shape), "parts": parts}

    def _known(self, value: Any, where: str) -> Any:
        """The kinds of this package, a few of others; None for what is none of them."""
        from skadmm.estimators import FeatureGraph
        from skadmm.losses import LOSSES
        from skadmm.operators.precision_result import PrecisionGraph
        from skadmm.run.result import Result

        if isinstance(value, FeatureGraph):
            return {"kind": "graph", "fields": [self.encode(field, where) for field in value]}
        if isinstance(value, PrecisionGraph):
            return {"kind": "precision", "fields": [self.encode(field, where) for field in value]}
        if isinstance(value, Result):
            return self._result(value, where)
        name: Any = getattr(value, "name", None)
        if isinstance(name, str) and name in LOSSES and type(value) is LOSSES[name] and isinstance(value, tuple):
            return {"kind": "loss", "name": name, "fields": [self.encode(field, where) for field in value]}
        if hasattr(value, "number_of_nodes") and hasattr(value, "edges"):
            nodes = [self.encode(node, where) for node in value.nodes]
            edges = [[self.encode(u, where), self.encode(v, where), self.encode(dict(data), where)]
                     for u, v, data in value.edges(data=True)]  # fmt: skip
            return {"kind": "networkx", "nodes": nodes, "edges": edges}
        if type(value).__module__.startswith("sklearn.model_selection") and type(value).__name__ in SPLITTERS:
            held = {key: entry for key, entry in vars(value).items() if not key.startswith("_")}
            return {"kind": "splitter", "class": type(value).__name__, "held": self.encode(held, where)}
        return None

    def _result(self, result: Any, where: str) -> Any:
        """All of a result but its tables: a loaded model starts afresh, from its coefficients."""
        held = {name: getattr(result, name) for name in RESULT_FIELDS}
        held["status"], held["kkt"] = result.status.name, tuple(result.kkt)
        return {"kind": "result", "held": self.encode(held, where)}


RESULT_FIELDS = ("x", "y", "dual", "x_average", "y_average", "message", "method", "settings", "objective",
                 "feasibility", "gap", "stopped_on", "passes", "seconds", "records", "solver")  # fmt: skip


class Reader:
    """Decodes what :class:`Writer` encoded; anything else is a ValueError."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays

    def decode(self, value: Any) -> Any:
        """The value."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not an encoded value")
        decoder = getattr(self, f"_decode_{value.get('kind')}", None)
        if decoder is None:
            raise ValueError(f"the kind {value.get('kind')!r} is not known")
        return decoder(value)

    def _decode_int(self, value: Any) -> int:
        return int(value["value"])

    def _decode_float(self, value: Any) -> float:
        text = value["value"]
        return float.fromhex(text) if "x" in text else float(text)

    def _decode_array(self, value: Any) -> np.ndarray:
        index = value["index"]
        if not isinstance(index, int) or not 0 <= index < len(self._arrays):
            raise ValueError(f"there is no array {index!r}")
        return self._arrays[index]

    def _decode_objects(self, value: Any) -> np.ndarray:
        array = np.empty(len(value["items"]), dtype=object)
        array[:] = [self.decode(entry) for entry in value["items"]]
        return array.reshape([int(length) for length in value["shape"]])

    def _decode_sparse(self, value: Any) -> Any:
        data, indices, indptr = (self.decode(part) for part in value["parts"])
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(k) for k in value["shape"]))
        matrix.check_format()
        return matrix

    def _decode_list(self, value: Any) -> list[Any]:
        return [self.decode(entry) for entry in value["items"]]

    def _decode_tuple(self, value: Any) -> tuple[Any, ...]:
        return tuple(self._decode_list(value))

    def _decode_dict(self, value: Any) -> dict[Any, Any]:
        return {self.decode(key): self.decode(entry) for key, entry in value["pairs"]}

    def _decode_graph(self, value: Any) -> Any:
        from skadmm.estimators import FeatureGraph

        return FeatureGraph(*(self.decode(field) for field in value["fields"]))

    def _decode_precision(self, value: Any) -> Any:
        from skadmm.operators.precision_result import PrecisionGraph

        return PrecisionGraph(*(self.decode(field) for field in value["fields"]))

    def _decode_loss(self, value: Any) -> Any:
        from skadmm.losses import LOSSES

        return LOSSES[value["name"]](*(self.decode(field) for field in value["fields"]))

    def _decode_networkx(self, value: Any) -> Any:
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.decode(node) for node in value["nodes"])
        graph.add_edges_from((self.decode(u), self.decode(v), self.decode(data)) for u, v, data in value["edges"])
        return graph

    def _decode_splitter(self, value: Any) -> Any:
        import sklearn.model_selection

        if value["class"] not in SPLITTERS:
            raise ValueError(f"the splitter {value['class']!r} is not known")
        splitter = object.__new__(getattr(sklearn.model_selection, value["class"]))
        for key, entry in self.decode(value["held"]).items():
            setattr(splitter, key, entry)
        return splitter

    def _decode_result(self, value: Any) -> Any:
        from skadmm.problem.kkt import KKT
        from skadmm.run.result import Result, Status

        held = self.decode(value["held"])
        held.setdefault("solver", "")  # files of 0.1.0 have none
        if set(held) != {*RESULT_FIELDS, "status", "kkt"}:
            raise ValueError("a result lacks some of its fields")
        return Result(**(held | {"status": Status[held["status"]], "kkt": KKT(*held["kkt"])}))


def readable(value: Any, arrays: list[np.ndarray]) -> Any:
    """An encoded value for people: numbers as numbers, arrays by their shape."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    if kind is None:
        return {key: readable(entry, arrays) for key, entry in value.items()}
    if kind == "int":
        return int(value["value"])
    if kind == "float":
        return Reader(arrays).decode(value)
    if kind == "array":
        array = Reader(arrays).decode(value)
        return array.tolist() if array.size <= 10 else f"array of shape {array.shape}"
    if kind in ("list", "tuple"):
        return [readable(entry, arrays) for entry in value["items"]]
    if kind == "objects":
        return [readable(entry, arrays) for entry in value["items"]] if len(value["items"]) <= 10 else "array"
    if kind == "sparse":
        return f"sparse matrix of shape {tuple(value['shape'])}"
    return kind
