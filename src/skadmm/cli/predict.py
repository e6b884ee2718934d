"""``skadmm predict``: the predictions of a fitted model on a file of data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import typer

from skadmm._names import no_column
from skadmm.cli._errors import CommandError, naming
from skadmm.cli.large import stays_on_disk, stored_table
from skadmm.cli.offsets import check_link, take_offset
from skadmm.cli.tables import Table, as_text, column_of, numbers_only, read_table, without
from skadmm.cli.targets import check_finite, rows_with_target

ENDINGS = (".csv", ".parquet")
"""What the file of predictions may be."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(predict)


def predict(
    model: Path = typer.Argument(help="A file that `skadmm fit` wrote."),  # noqa: B008
    data: Path = typer.Argument(help="svmlight, CSV, TSV, Parquet, npy, npz; a folder of blocks or Parquet files."),  # noqa: B008
    out: Path | None = typer.Option(None, "--out", "-o", help="A .csv or .parquet file. [default: standard output]"),  # noqa: B008
    target: list[str] | None = typer.Option(  # noqa: B008
        None,
        help="The column (or npz array) of targets, for npy its number from 0; the score on the rows that have one is "
        "printed.",
    ),
    identifier: str | None = typer.Option(None, "--id", help="A column of the data to copy beside each prediction."),
    offset: str | None = typer.Option(None, help="A column that is added to the linear predictor, as in the fit."),
    exposure: str | None = typer.Option(
        None, help="A column whose logarithm is added to the linear predictor, as in the fit."
    ),
    proba: bool = typer.Option(False, "--proba", help="Also write the probability of each class."),
    force: bool = typer.Option(False, "--force", help="Replace an existing file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:  # fmt: skip
    """Predict, one line per row."""
    if out is not None:
        _check_out(out, force)
    estimator = _loaded(model, data)
    if proba and not hasattr(estimator, "predict_proba"):
        raise CommandError(f"--proba: {type(estimator).__name__} with loss={estimator.loss!r} has no probabilities", 2)
    names = getattr(estimator, "feature_names_in_", None)
    table = _table(estimator, data, target or [])
    check_link(estimator.loss, exposure)
    table, shift = take_offset(table, data, offset, exposure)
    X: Any = table.X
    columns: dict[str, np.ndarray] = {}
    if identifier is not None:
        if not len(getattr(X, "columns", ())):
            raise CommandError(f"--id {identifier}: the columns of {data} have no names", 2)
        if identifier not in X.columns:
            raise CommandError(f"--id: {no_column(identifier, list(map(str, X.columns)))}", 2)
        columns[identifier] = column_of(X, identifier)
        X = X if names is not None and identifier in names else without(X, identifier)
    if hasattr(X, "columns"):
        X = features_of(estimator, X, data)
    more: dict[str, Any] = {} if shift is None else {"offset": shift}
    if shift is None and estimator.with_offset_:
        more = {"offset": 0.0}
        print(
            f"note: {model} was fitted with an offset; without --offset or --exposure predictions are for offset 0, "
            "which is one unit of exposure",
            file=sys.stderr,
        )
    with naming(data, droppable=False):
        predicted = estimator.predict(X, **more)
    columns |= {"prediction": predicted} if predicted.ndim == 1 else _by_output(predicted)
    if proba:
        columns |= {
            f"p({label})": p for label, p in zip(estimator.classes_, estimator.predict_proba(X, **more).T, strict=True)
        }
    known = np.zeros(len(predicted), dtype=bool) if table.target is None else rows_with_target(table.target)
    score = _score(estimator, X, predicted, table.target, known, more, data) if known.any() else None
    absent = 0 if table.target is None else int((~known).sum())
    if table.target is not None and score is None:
        print(f"note: {data}: no row has a target: there is no score", file=sys.stderr)
    if as_json:
        facts = {"rows": len(predicted), "score": score} | ({"rows_without_target": absent} if absent else {})
        print(json.dumps(facts | {name: column.tolist() for name, column in columns.items()}))
        return
    if out is not None and out.suffix.lower() == ".parquet":
        import pandas as pd

        pd.DataFrame(columns).to_parquet(out, index=False)
    elif out is None:
        print(_as_csv(columns), end="")
    else:
        out.write_text(_as_csv(columns))
    if score is not None:
        name = "accuracy" if hasattr(estimator, "classes_") else "R²" if estimator.loss == "squared" else "D²"
        left_out = f" ({absent} without a target)" if absent else ""
        print(f"{name} {score:.4f} on {int(known.sum())} rows{left_out}", file=sys.stderr)


def _check_out(out: Path, force: bool) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if out.exists() and not force:
        raise CommandError(f"{out} exists already: --force replaces it", 2)
    if out.suffix.lower() not in ENDINGS:
        raise CommandError(f"-o {out}: it takes a file whose name ends in {' or '.join(ENDINGS)}", 2)
    if not out.parent.is_dir():
        raise CommandError(f"{out.parent}: there is no such folder")


def _table(estimator: Any, data: Path, targets: list[str]) -> Table:
    """The data with their targets, some of which may be missing."""
    if stays_on_disk(data, None):
        return stored_table(data, targets, complete=False)
    takes = int(estimator.n_features_in_)
    table = read_table(data, targets, labelled=bool(targets), n_features=takes, complete=False)
    if data.is_dir() or data.suffix.lower() != ".npy" or table.X.shape[1] == takes:
        return table
    width, rest = table.X.shape[1], f" without --target {targets[0]}" if targets else ""
    advice = "give a file with the columns of the features, in the order of the fit"
    if not targets and width == takes + 1:
        advice = f"--target {takes} leaves out the last one where it is the target; for another column, its number"
    raise CommandError(f"{data}: it has {width:,} columns{rest}, and the model takes {takes:,} features: {advice}", 2)


def features_of(estimator: Any, X: Any, data: Path) -> Any:
    """The columns that the model was fitted on, which it finds itself in a table on disk; texts are dates where they
    were dates. Those of a model without names are an array."""
    from skadmm.backends import is_stored
    from skadmm.backends.frames import texts_as_dates

    if not hasattr(estimator, "feature_names_in_"):
        return X if is_stored(X) else numbers_only(Table(X, None), data, []).X.to_numpy(dtype=np.float64)
    names = list(estimator.feature_names_in_)
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise CommandError(f"{data}: there is no column {missing[0]!r}, which the model was fitted on", 2)
    if is_stored(X):
        return X
    if not len(X):
        raise CommandError(f"{data}: it has names of columns and no rows", 2)
    return texts_as_dates(X[names]) if getattr(estimator, "dates_", False) else X[names]


def _loaded(model: Path, data: Path) -> Any:
    """The model of a file; where the two arguments are swapped, the message says so."""
    import skadmm

    try:
        return skadmm.load(model)
    except skadmm.ModelFileError as error:
        if data.suffix != ".npz" and is_zipfile(data):
            raise CommandError(f"{error}. The model comes first: skadmm predict {data} {model}", 2) from error
        raise


def _by_output(predicted: np.ndarray) -> dict[str, np.ndarray]:
    """A column for each output, in the order of the targets of the fit."""
    return {f"prediction[{k}]": predicted[:, k] for k in range(predicted.shape[1])}


def _as_csv(columns: dict[str, np.ndarray]) -> str:
    lines = [",".join(columns)]
    lines += [",".join(as_text(value) for value in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _score(
    estimator: Any, X: Any, predicted: np.ndarray, target: Any, known: np.ndarray, more: dict[str, Any], data: Path
) -> float:
    """The score on the rows whose target is known."""
    if hasattr(estimator, "classes_"):
        return float(np.mean(predicted[known] == target[known]))
    if not known.all():  # rows without a target get one that is valid, and the weight zero
        target = target.copy()
        target[~known] = target[known][0]
        more = more | {"sample_weight": known.astype(np.float64)}
    target = np.asarray(target, dtype=np.float64)
    check_finite(data, target)
    if estimator.loss != "squared" or predicted.ndim == 2:
        return float(estimator.score(X, target, **more))
    target, predicted = target[known], predicted[known]
    spread = float(np.sum((target - target.mean()) ** 2))
    return 1.0 - float(np.sum((target - predicted) ** 2)) / spread if spread > 0 else 0.0
