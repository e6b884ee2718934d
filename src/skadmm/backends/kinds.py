"""Recognising the tables of other libraries without importing them."""

from skadmm._types import TableLike


def is_dask(X: TableLike) -> bool:
    """Return whether X is a Dask collection, or a list of delayed blocks.

    Dask is not imported for it.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        True for a dask.array, a dask.dataframe or a list of delayed blocks.

    See Also
    --------
    skadmm.backends.is_folder : Recognises folders of blocks.

    Examples
    --------
    >>> from skadmm.backends import is_dask
    >>> is_dask([[1.0, 2.0]])
    False
    """
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    return type(first).__module__.split(".")[0] in ("dask", "dask_expr")
