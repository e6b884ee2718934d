"""``skadmm data``: the data sets, and how to get them."""

from pathlib import Path

import typer

from skadmm.cli.tables import names_in

DATA_DIR = typer.Option(None, "--data-dir", help="The folder of data files. [default: SKADMM_DATA, ./data, the cache]")


def add_to(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="List, fetch and convert data sets.",
        rich_markup_mode=None,
    )
    group.callback(invoke_without_command=True)(listing)
    group.command()(fetch)
    group.command()(convert)
    app.add_typer(group, name="data")


def listing(context: typer.Context, data_dir: Path | None = DATA_DIR) -> None:
    """List the data sets with size, source and whether they are available locally."""
    if context.invoked_subcommand is not None:
        return
    from skadmm.datasets import BUILTIN, CATALOGUE, data_folders, find_file

    folders = data_folders(data_dir)
    print(f"{'name':<14}{'samples':>9}{'features':>10}  {'here':<6}{'role':<20}source, licence")
    for name, entry in CATALOGUE.items():
        here = "yes" if find_file(entry.stems, folders) else "no"
        role = f"for {entry.stands_for}" if entry.stands_for else "in the paper"
        size = f"{entry.facts.samples:>9,}{entry.facts.features:>10,}"
        get = "" if entry.url else "; by hand" if not entry.stands_for else ""
        print(f"{name:<14}{size}  {here:<6}{role:<20}{entry.source}; {entry.licence}{get}")
    for name, make in BUILTIN.items():
        X, _ = make()
        print(f"{name:<14}{X.shape[0]:>9,}{X.shape[1]:>10,}  {'yes':<6}{'built in':<20}scikit-learn")
    print(f"\nlooked in {', '.join(map(str, folders))}; `skadmm data fetch NAME` downloads a set, or explains how")


def fetch(
    name: str = typer.Argument(help="A name that `skadmm data` lists."), data_dir: Path | None = DATA_DIR
) -> None:
    """Download a data set and check it.

    Where a site asks for a form, the message says what to download and where to put it.
    """
    from skadmm.datasets import BUILTIN, fetch

    if name in BUILTIN:
        print(f"{name} is built in")
        return
    print(fetch(name, data_dir))


def convert(
    source: Path = typer.Argument(help="svmlight, CSV, TSV (also .gz, .bz2, .xz), Parquet, npy."),  # noqa: B008
    folder: Path = typer.Argument(help="The folder to write: a new one, or an unfinished one to continue."),  # noqa: B008
    target: str | None = typer.Option(
        None, help="The column of targets, for npy its number from 0. [default: the last; npy: none]"
    ),
    weight: str | None = typer.Option(None, help="The column of sample weights."),
    drop: list[str] | None = typer.Option(None, help="Columns to leave out, separated by commas; may be repeated."),  # noqa: B008
    block_rows: int | None = typer.Option(
        None, "--block-rows", min=1, help="Rows in a block. [default: 32 MB of rows]"
    ),
    dtype: str = typer.Option("float64", help="float64 or float32."),
    ones: bool = typer.Option(False, "--ones", help="Add a last column of ones, for an intercept."),
    columns: int | None = typer.Option(None, min=1, help="The number of columns of an svmlight file."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress."),
) -> None:
    """Turn a large file into a folder of blocks.

    The memory that this takes does not grow with the file. After an interruption the same command continues.
    """
    import sys

    from skadmm.backends.convert import convert
    from skadmm.backends.readers import TextColumnError
    from skadmm.cli._errors import CommandError
    from skadmm.cli.large import tell

    types = {"float64": "<f8", "float32": "<f4"}
    if dtype not in types:
        raise CommandError(f"--dtype {dtype}: it takes float64 or float32", 2)

    shown = None if quiet or not sys.stderr.isatty() else tell
    try:
        rows = convert(source, folder, target=target, weight=weight,
                       drop=tuple(names_in(drop)), block_rows=block_rows, dtype=types[dtype],
                       ones=ones, columns=columns, progress=shown)  # fmt: skip
    except TextColumnError as error:
        raise CommandError(f"{error.fault}: encode it, or --drop {error.column}") from error
    print(f"{rows:,} rows in {folder}")
