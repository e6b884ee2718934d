"""Models read back from files; what is in them is checked before a model is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skadmm._types import FilePath
from skadmm.estimators import ESTIMATORS
from skadmm.estimators.persistence import KIND, ModelFileError, NotRegisteredError
from skadmm.io import archive, codec

ADDED = (
    "penalty", "scoring", "refit", "penalty_factor", "positive", "bounds", "monotone", "adaptive", "relax",
    "categorical_features", "handle_unknown", "unknown", "multi_class", "output_penalty", "task_graph",
    "checkpoint",
)  # fmt: skip
"""Parameters that older files do not have; for those files they take their defaults."""


def load(path: FilePath) -> Any:
    """Load an estimator from a file that its ``save`` method has written.

    Nothing in the file is executed: it holds numbers, text and the name of a class of this package.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    ModelFileError
        Where the file is not a model of this package, is damaged or incomplete, or was written by a newer version.

    See Also
    --------
    skadmm.FusedLassoRegressor : One of the estimators that can be saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressor, load
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + 0.1 * rng.standard_normal(50)
    >>> model = FusedLassoRegressor(alpha=0.1).fit(X, y)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.skadmm"
    >>> model.save(file)
    >>> (load(file).predict(X) == model.predict(X)).all()
    np.True_
    """
    path = Path(path)
    manifest, arrays = archive.read(path, KIND)
    try:
        cls = ESTIMATORS[manifest["class"]]
        reader = codec.Reader(arrays)
        parameters = {key: reader.decode(value) for key, value in manifest["parameters"].items()}
        # Older files do not have these.
        known = cls().get_params(deep=False)
        parameters = {name: known[name] for name in ADDED if name in known} | parameters
        state = {key: reader.decode(value) for key, value in manifest["state"].items()}
        if manifest["class"].startswith("TrendFilter") and "positions_" not in state:
            state["positions_"] = state.pop("knots_", None)  # their name in version 0.1
    except NotRegisteredError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a valid skadmm model: {error}") from error
    if set(parameters) != set(known):
        odd = sorted(set(parameters) ^ set(known))[0]
        raise ModelFileError(f"{path}: the parameter {odd!r} does not belong to {cls.__name__} of this version")
    model = cls(**parameters)
    for key, value in state.items():
        if not (key.isidentifier() and key.endswith("_") and not key.startswith("_")):
            raise ModelFileError(f"{path}: {key!r} is not the name of a fitted attribute")
        setattr(model, key, value)
    _check_shapes(path, model)
    return model


def _check_shapes(path: Path, model: Any) -> None:
    width = getattr(model, "n_features_in_", None)
    coef = getattr(model, "coef_", None)
    positions = getattr(model, "positions_", None)
    names = getattr(model, "feature_names_out_", None)
    wanted = width if positions is None else np.size(positions)
    wanted = wanted if names is None else np.size(names)
    if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or not isinstance(width, int):
        raise ModelFileError(f"{path}: the model has no coefficients")
    if coef.ndim not in (1, 2) or coef.shape[-1] != wanted or not np.all(np.isfinite(coef)):
        raise ModelFileError(f"{path}: coef_ has shape {coef.shape}: it takes {wanted} finite numbers per row")
    classes = getattr(model, "classes_", None)
    if classes is not None and coef.ndim == 1:
        raise ModelFileError(f"{path}: classes_ and coef_ do not belong together")
    if classes is not None and (len(coef) != (1 if len(classes) == 2 else len(classes)) or len(classes) < 2):
        raise ModelFileError(f"{path}: {len(classes)} classes do not belong to {len(coef)} rows of coef_")
    outputs = getattr(model, "output_names_", None)
    if outputs is not None and not (
        isinstance(outputs, list) and all(isinstance(name, str) for name in outputs) and coef.shape[0] == len(outputs)
    ):
        raise ModelFileError(f"{path}: output_names_ and coef_ do not belong together")
    intercept = np.asarray(getattr(model, "intercept_", None))
    if intercept.dtype.kind != "f" or intercept.shape != coef.shape[:-1]:
        raise ModelFileError(f"{path}: intercept_ and coef_ do not belong together")
