"""Models in files (see ``_archive.py``). Nothing is ever unpickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from skadmm.io import archive, codec


class ModelFileError(ValueError):
    """A file that is not a whole, sound model of this package."""


KIND = archive.Kind("skadmm-model", 1, "model", ModelFileError, {"class": str, "parameters": dict, "state": dict})


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`."""
    from sklearn.utils.validation import check_is_fitted

    from skadmm.estimators import ESTIMATORS

    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise TypeError(f"model={name}: save takes an estimator of skadmm")
    check_is_fitted(model)
    writer = codec.Writer()
    parameters = {key: writer.encode(value, key) for key, value in model.get_params(deep=False).items()}
    state = {key: writer.encode(getattr(model, key), key) for key in _fitted_names(model)}
    archive.write(Path(path), KIND, {"class": name, "parameters": parameters, "state": state}, writer.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator in the file at `path`.

    Raises
    ------
    ModelFileError
        Where the file is none of ours, damaged, cut short, or written by a newer version.
    """
    path = Path(path)
    manifest, arrays = archive.read(path, KIND)
    from skadmm.estimators import ESTIMATORS

    try:
        cls = ESTIMATORS[manifest["class"]]
        reader = codec.Reader(arrays)
        parameters = {key: reader.decode(value) for key, value in manifest["parameters"].items()}
        if manifest["class"].startswith("GeneralizedLasso"):
            parameters = {"penalty": "l1"} | parameters  # files written before there was a choice
        state = {key: reader.decode(value) for key, value in manifest["state"].items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a sound skadmm model: {error}") from error
    known = set(cls().get_params(deep=False))
    if set(parameters) != known:
        odd = sorted(set(parameters) ^ known)[0]
        raise ModelFileError(f"{path}: the parameter {odd!r} does not belong to {cls.__name__} of this version")
    model = cls(**parameters)
    for key, value in state.items():
        if not (key.isidentifier() and key.endswith("_") and not key.startswith("_")):
            raise ModelFileError(f"{path}: {key!r} is not the name of a fitted attribute")
        setattr(model, key, value)
    _check_shapes(path, model)
    return model


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


def _check_shapes(path: Path, model: Any) -> None:
    width = getattr(model, "n_features_in_", None)
    coef = getattr(model, "coef_", None)
    knots = getattr(model, "knots_", None)
    wanted = width if knots is None else np.size(knots)
    if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or not isinstance(width, int):
        raise ModelFileError(f"{path}: the model has no coefficients")
    if coef.ndim not in (1, 2) or coef.shape[-1] != wanted or not np.all(np.isfinite(coef)):
        raise ModelFileError(f"{path}: coef_ has shape {coef.shape}: it takes {wanted} finite numbers a row")
    classes = getattr(model, "classes_", None)
    if (classes is None) != (coef.ndim == 1):
        raise ModelFileError(f"{path}: classes_ and coef_ do not belong together")
    if classes is not None and (len(coef) != (1 if len(classes) == 2 else len(classes)) or len(classes) < 2):
        raise ModelFileError(f"{path}: {len(classes)} classes do not belong to {len(coef)} rows of coef_")
    intercept = np.asarray(getattr(model, "intercept_", None))
    if intercept.dtype.kind != "f" or intercept.shape != coef.shape[:-1]:
        raise ModelFileError(f"{path}: intercept_ and coef_ do not belong together")
