"""What ``skadmm info`` shows of a table: a folder of blocks, Parquet, npy, npz, CSV or svmlight, without reading its
rows where the format allows it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from skadmm.cli._errors import CommandError
from skadmm.cli.words import in_words, size_in_words

SHOWN = 20
"""Names of columns that are shown."""


def is_table(path: Path) -> bool:
    """Is it a folder, or a file whose ending is that of a table?"""
    from skadmm.backends import BlocksError
    from skadmm.backends.readers import kind_of

    if path.is_dir() or path.suffix.lower() == ".npz":
        return True
    try:
        kind_of(path)
    except BlocksError:
        return False
    return True


def table_facts(path: Path) -> dict[str, Any]:
    """Shape, kind, names, classes and sizes, as far as they are known without a reading of the rows."""
    from skadmm.backends import BlocksError
    from skadmm.backends.sources import is_block_folder

    if not path.exists():
        raise CommandError(f"{path}: there is no such file or folder")
    try:
        if is_block_folder(path):
            return _blocks(path)
        return _arrays(path) if path.suffix.lower() == ".npz" else _source(path)
    except (BlocksError, ValueError) as error:
        raise CommandError(str(error)) from error


def _blocks(path: Path) -> dict[str, Any]:
    from skadmm.backends.files import read_manifest

    manifest = read_manifest(path)
    names, ones = manifest["names"], manifest["ones"]
    width = manifest["columns"] - ones
    return {
        "table": str(path),
        "kind": f"folder of blocks, {'dense' if manifest['kind'] == 'dense' else 'sparse'} rows",
        "rows": manifest["rows"],
        "features": width,
        "entries": sum(block["entries"] for block in manifest["blocks"]),
        "target": "stored with the rows" if manifest["target"] else None,
        "classes": manifest.get("labels"),
        "weights": "stored with the rows" if manifest["weight"] else None,
        "column of ones": "yes, for an intercept" if ones else None,
        "blocks": len(manifest["blocks"]),
        "bytes on disk": _size(path),
        "names": None if names is None else _first(names[:width]),
    }


def _source(path: Path) -> dict[str, Any]:
    from skadmm.backends.readers import Columns, kind_of, open_source

    kind, source = kind_of(path), open_source(path, Columns(labelled=False))
    single = source.names is not None and len(source.names) == 1
    source = source if single else open_source(path, Columns())  # a single column is no target
    names, kinds = source.names, _parquet_kinds(path) if kind == "parquet" else _kinds(path)
    target = getattr(source, "target", None)
    texts = tuple(name for name in names or [] if kinds[name] != "number")
    numbers = math.nan
    if names is None or len(texts) < len(names):
        wanted = Columns(target, labelled=target is not None, dropped=texts)
        numbers = (open_source(path, wanted) if texts else source).estimate()
    return {
        "table": str(path),
        "kind": {",": "CSV", "\t": "TSV"}.get(kind, kind) + (", a folder of files" if path.is_dir() else ""),
        "rows": getattr(source, "rows", None),
        "columns" if kind == "npy" else "features": getattr(source, "width", None) if names is None else len(names),
        "target": target,
        "bytes on disk": _size(path),
        "bytes as blocks": None if math.isnan(numbers) else int(numbers),
        "names": None if names is None else _first(names),
        "not numbers": _first([f"{name} ({kinds[name]})" for name in kinds if kinds[name] != "number"]),
    }


def _kinds(path: Path) -> dict[str, str]:
    """What each column holds, by its first rows: numbers, texts, levels or dates; empty for rows without names."""
    from skadmm.backends.readers import Columns, open_source

    source: Any = open_source(path, Columns(labelled=False))
    frame = next(source.frames(source.names, []), None) if source.names is not None else None
    if frame is None:
        return dict.fromkeys(source.names or [], "number")
    return {str(name): _kind(dtype) for name, dtype in frame.dtypes.items()}


def _parquet_kinds(path: Path) -> dict[str, str]:
    """What each column holds, by the schemas of all files: a column without values in one may hold texts in another."""
    from pyarrow.parquet import read_schema
    from pyarrow.types import is_decimal

    from skadmm.backends.readers import parquet_files

    found: dict[str, str] = {}
    for file in parquet_files(path):
        schema = read_schema(file)
        frame = schema.empty_table().to_pandas(ignore_metadata=True)
        found |= {
            str(name): "number" if is_decimal(schema.field(name).type) else _kind(dtype)
            for name, dtype in frame.dtypes.items()
            if found.get(str(name), "number") == "number"
        }
    return found


def _kind(dtype: Any) -> str:
    """A type of pandas, in a word."""
    if str(dtype) == "category":
        return "levels"
    return {"M": "date", "m": "duration"}.get(dtype.kind, "number" if dtype.kind in "fiub" else "text")


def _arrays(path: Path) -> dict[str, Any]:
    from skadmm.backends.sources import read_npz

    X, y, _ = read_npz(path)
    return {
        "table": str(path),
        "kind": "npz, read into memory",
        "rows": X.shape[0],
        "features": X.shape[1],
        "target": None if y is None else "y",
        "bytes on disk": _size(path),
    }


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def table_lines(facts: dict[str, Any]) -> list[str]:
    """The facts as text, one line per fact, with sizes in units that suit them."""
    lines = []
    for key, value in facts.items():
        if value in (None, []):
            continue
        if key.startswith("bytes "):
            lines.append(f"{key.removeprefix('bytes '):<20}{size_in_words(value)}")
        else:
            lines.append(f"{key:<20}{in_words(value)}")
    return lines


def _first(names: list[str]) -> list[str]:
    return names if len(names) <= SHOWN else [*names[:SHOWN], f"… ({len(names)} in all)"]
