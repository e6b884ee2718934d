"""The types of what users hand over, for the signatures of public functions.

They are wide on purpose: an argument is checked where it is read, with a message that names it. Losses and penalties
are named tuples to which decorators attach their facts, which type checkers do not see, so instances count as tuples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike


class SparseMatrix(Protocol):
    """A matrix of scipy.sparse."""

    def tocsr(self) -> object:
        """The same matrix by rows."""


class ArrowTable(Protocol):
    """A data frame that other libraries can read as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with the stream."""


class LazyTable(Protocol):
    """A query whose table is not in memory, such as a LazyFrame of polars."""

    def collect_schema(self) -> object:
        """The names and types of its columns."""


class Delayed(Protocol):
    """A collection of Dask, or a block of one."""

    def compute(self) -> object:
        """The values in memory."""


class PlacedTable(Protocol):
    """A table on workers, or a data set of a folder, of which this process knows the sizes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


class NetworkGraph(Protocol):
    """A graph of networkx."""

    @property
    def nodes(self) -> Any:
        """The nodes."""

    @property
    def edges(self) -> Any:
        """The edges."""


class Splitter(Protocol):
    """A cross-validator of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Pairs of indices, for training and for testing."""


FilePath: TypeAlias = str | os.PathLike[str]
Matrix: TypeAlias = ArrayLike | SparseMatrix
TableLike: TypeAlias = (
    ArrayLike | SparseMatrix | ArrowTable | LazyTable | Delayed | Sequence[Delayed] | PlacedTable | FilePath
)
"""X: an array, a sparse matrix, a data frame, a path, a LazyFrame, a Dask collection, or a table on processes."""
Values: TypeAlias = ArrayLike | Delayed | ArrowTable
"""One number or label per row, or the name of a column."""
ByName: TypeAlias = ArrayLike | Mapping[Any, Any]
"""One value per item in order, or values by name."""
LossLike: TypeAlias = str | tuple[object, ...]
"""The name of a loss, or an instance of one."""
PenaltyLike: TypeAlias = str | tuple[object, ...]
"""The name of a penalty, or an instance of one."""
Graph: TypeAlias = str | ArrayLike | SparseMatrix | NetworkGraph | Sequence[Sequence[Hashable]]
"""A name, an adjacency matrix, edges, or a graph of networkx."""
Groups: TypeAlias = ArrayLike | Mapping[Any, Any] | Iterable[Iterable[Hashable]]
"""A label per feature, or lists of features, with names or without."""
PenaltyFactor: TypeAlias = ByName | tuple[ByName | None, ByName | None]
"""Factors of features, or of edges by pairs of names, or a pair of both."""
Bounds: TypeAlias = Sequence[ByName | None] | Mapping[Any, Any]
"""A lower and an upper bound, or such pairs by name."""
Categories: TypeAlias = ArrayLike | Mapping[Any, object]
"""Columns of levels by names, numbers or a mask, or a dict of what their levels are."""
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"]
Overlap: TypeAlias = Literal["shared", "latent"]
OutputPenalty: TypeAlias = Literal["entries", "rows", "rows-linf", "nuclear"]
CrossValidator: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
"""The number of folds, a splitter, or pairs of indices."""
Scoring: TypeAlias = str | Callable[..., float]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
