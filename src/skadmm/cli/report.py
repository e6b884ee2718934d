"""``skadmm report``: a page about a fitted model, as ``model.report`` writes it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import typer

from skadmm.cli._errors import CommandError
from skadmm.cli.large import stays_on_disk, stored_table
from skadmm.cli.offsets import check_link, take_offset
from skadmm.cli.predict import features_of
from skadmm.cli.tables import read_table


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    model: Path = typer.Argument(help="A file that `skadmm fit` wrote."),  # noqa: B008
    data: Path | None = typer.Argument(None, help="Data to score: svmlight, CSV, TSV, Parquet, npy, npz; a folder."),  # noqa: B008
    out: Path = typer.Option(..., "--out", "-o", help="The HTML file to write."),  # noqa: B008
    target: list[str] | None = typer.Option(None, help="The column (or npz array) of targets of DATA."),  # noqa: B008
    offset: str | None = typer.Option(None, help="A column that is added to the linear predictor, as in the fit."),
    exposure: str | None = typer.Option(
        None, help="A column whose logarithm is added to the linear predictor, as in the fit."
    ),
    force: bool = typer.Option(False, "--force", help="Replace an existing file."),
) -> None:  # fmt: skip
    """Write a page about a fitted model.

    It is one HTML file that needs no network. With DATA it has the score on them.
    """
    if out.exists() and not force:
        raise CommandError(f"{out} exists already: --force replaces it", 2)
    for option, given in (("--target", target), ("--offset", offset), ("--exposure", exposure)):
        if given and data is None:
            raise CommandError(f"{option}: it names a column of DATA, which is not given", 2)
    import skadmm

    os.environ.setdefault("MPLBACKEND", "Agg")
    estimator = skadmm.load(model)
    columns: tuple[Any, ...] = () if data is None else _read(estimator, data, target, offset, exposure)
    if columns and estimator.with_offset_ and columns[1] is not None and columns[2] is None:
        print(
            f"note: {model} was fitted with an offset; without --offset or --exposure the score is for offset 0, which "
            "is one unit of exposure",
            file=sys.stderr,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "offset=None: this ")  # the note says so
        estimator.report(out, *columns)
    print(f"wrote {out}", file=sys.stderr)


def _read(
    estimator: Any, data: Path, target: list[str] | None, offset: str | None, exposure: str | None
) -> tuple[Any, Any, Any]:
    """The columns that the model takes, the targets, and the offset."""
    if stays_on_disk(data, None):
        table = stored_table(data, target or [])
    else:
        table = read_table(data, target, labelled=True, n_features=estimator.n_features_in_)
    check_link(estimator.loss, exposure)
    table, shift = take_offset(table, data, offset, exposure)
    X = table.X
    if hasattr(X, "columns") and hasattr(estimator, "feature_names_in_"):
        X = features_of(estimator, X, data)
    return X, table.target, shift
