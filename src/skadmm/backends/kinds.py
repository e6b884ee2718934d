"""Recognising the tables of other libraries without importing them."""

from typing import Any


def is_dask(X: Any) -> bool:
    """Is X a Dask collection, or a list of delayed blocks?"""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    return type(first).__module__.split(".")[0] in ("dask", "dask_expr")
