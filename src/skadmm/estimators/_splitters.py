"""How the splitters of scikit-learn, given as ``cv``, are stored in a model file: by their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import sklearn.model_selection

from skadmm.io import codec

SPLITTERS = {
    name: getattr(sklearn.model_selection, name)
    for name in (
        "KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "TimeSeriesSplit",
        "StratifiedShuffleSplit", "LeaveOneOut", "GroupKFold", "GroupShuffleSplit", "LeaveOneGroupOut",
        "StratifiedGroupKFold",
    )
}  # fmt: skip
"""The splitters of scikit-learn that can be stored as the parameter ``cv``."""


def _parameters_of(splitter: type) -> list[str]:
    """The names of a splitter's parameters; those without parameters inherit ``object.__init__``."""
    if splitter.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return list(inspect.signature(splitter).parameters)


def _is_splitter(value: Any) -> bool:
    return SPLITTERS.get(type(value).__name__) is type(value)


def _encode_splitter(splitter: Any, encode: codec.Encode) -> dict[str, Any]:
    """A splitter by its parameters. Repeated splitters keep those of the splitter they repeat in ``cvargs``."""
    held = vars(splitter) | vars(splitter).get("cvargs", {})
    parameters = {name: held[name] for name in _parameters_of(type(splitter))}
    return {"class": type(splitter).__name__, "held": encode(parameters)}


def _decode_splitter(stored: dict[str, Any], decode: codec.Decode) -> Any:
    """A splitter, built from its parameters. Files of 0.1 hold all of its public attributes."""
    if stored["class"] not in SPLITTERS:
        raise ValueError(f"the splitter {stored['class']!r} is not known")
    cls, held = SPLITTERS[stored["class"]], decode(stored["held"])
    splitter = cls(**{name: held[name] for name in _parameters_of(cls) if name in held})
    odd = sorted(held.keys() - vars(splitter).keys() - set(_parameters_of(cls)))
    if odd:
        raise ValueError(f"{stored['class']} has no parameter {odd[0]!r}")
    return splitter


codec.register("splitter", _is_splitter, _encode_splitter, _decode_splitter)
