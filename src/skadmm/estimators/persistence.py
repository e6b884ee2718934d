"""Models in files (see ``skadmm.io.archive``). Nothing is ever unpickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from skadmm._names import Registry
from skadmm.io import archive, codec
from skadmm.losses import LOSSES
from skadmm.regularizers import REGULARIZERS


class ModelFileError(ValueError):
    """The error of :func:`skadmm.load` for a file that is not a complete, undamaged model of this package.

    See Also
    --------
    skadmm.load : Reads models.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skadmm import ModelFileError, load
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.skadmm"
    >>> file.write_bytes(b"something else")
    14
    >>> try:
    ...     load(file)
    ... except ModelFileError:
    ...     print("refused")
    refused
    """


KIND = archive.Kind("skadmm-model", 1, "model", ModelFileError, {"class": str, "parameters": dict, "state": dict})

OF_THE_MACHINE = ("checkpoint",)
"""Parameters that mean something only where the model was fitted; they are stored as None."""


class NotRegisteredError(ValueError):
    """A file names a loss or a regulariser that no imported module has registered."""


def _registered(registry: Registry[Any], name: Any) -> Any:
    """The class of a name in a file."""
    if isinstance(name, str) and name not in registry:
        kind = "penalty" if registry is REGULARIZERS else registry.kind
        raise NotRegisteredError(
            f"its {kind} {name!r} is not one of skadmm's: first import the module that defines and registers it "
            "(docs/guides/own.md). The skadmm command imports no such module and cannot use this model"
        )
    return registry[name]


def _is_loss(value: Any) -> bool:
    """Return whether a value is an instance of a registered loss."""
    return isinstance(value, tuple) and any(type(value) is loss for _, loss in LOSSES.items())


codec.register(
    "loss",
    _is_loss,
    lambda loss, encode: {"name": loss.name, "fields": [encode(field) for field in loss]},
    lambda stored, decode: _registered(LOSSES, stored["name"])(*(decode(field) for field in stored["fields"])),
)


def _is_regularizer(value: Any) -> bool:
    """Return whether a value is an instance of a registered regulariser."""
    return isinstance(value, tuple) and any(type(value) is cls for _, cls in REGULARIZERS.items())


codec.register(
    "regularizer",
    _is_regularizer,
    lambda reg, encode: {"name": reg.name, "fields": [encode(field) for field in reg]},
    lambda stored, decode: _registered(REGULARIZERS, stored["name"])(*(decode(field) for field in stored["fields"])),
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`."""
    from sklearn.utils.validation import check_is_fitted

    name, module = type(model).__name__, type(model).__module__
    if not module.startswith("skadmm.estimators."):
        raise TypeError(f"model={name}: save takes an estimator of skadmm")
    check_is_fitted(model)
    writer = codec.Writer()
    given = model.get_params(deep=False)
    given |= {name: None for name in OF_THE_MACHINE if name in given}
    parameters = {key: writer.encode(value, key) for key, value in given.items()}
    state = {key: writer.encode(getattr(model, key), key) for key in _fitted_names(model)}
    archive.write(Path(path), KIND, {"class": name, "parameters": parameters, "state": state}, writer.arrays)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file holds, without building the model: class, versions, parameters, and the shapes of arrays."""
    manifest, arrays = archive.read(Path(path), KIND)
    return {
        "class": manifest["class"], "version": manifest["version"], "skadmm": manifest["skadmm"],
        "parameters": codec.readable(manifest["parameters"], arrays),
        "state": codec.readable(manifest["state"], arrays),
    }  # fmt: skip


def _fitted_names(model: Any) -> list[str]:
    return sorted(key for key in vars(model) if key.endswith("_") and not key.startswith("_"))
