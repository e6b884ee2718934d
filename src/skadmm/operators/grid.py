"""Differences between neighbours on a grid: images, volumes, and beyond."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from skadmm.operators.canonical import canonical, checked_weights
from skadmm.operators.trend import checked_shape


def grid(shape: int | Sequence[int], *, weights: ArrayLike | None = None) -> sp.csr_array:
    """Build the differences along every axis of an image or volume: anisotropic total variation.

    A = [w₁ D₁; w₂ D₂; …] with D_k = I ⊗ D ⊗ I, D the first differences.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array whose flattening in C order is x.
    weights : array-like, optional
        One weight per axis; a weight of 0 leaves the rows of its axis empty.

    Returns
    -------
    csr_array of shape (m, prod(shape))
        The rows of the first axis, then of the second, and so on; within an axis in C order.

    See Also
    --------
    skadmm.operators.chain : One axis.
    skadmm.operators.incidence : Any graph.

    Examples
    --------
    >>> from skadmm.operators import grid
    >>> grid((2, 2)).toarray()
    array([[-1.,  0.,  1.,  0.],
           [ 0., -1.,  0.,  1.],
           [-1.,  1.,  0.,  0.],
           [ 0.,  0., -1.,  1.]])
    """
    axes = checked_shape(shape)
    scales = checked_weights(weights, len(axes), "weights", "axis")
    index = np.arange(np.prod(axes, dtype=np.int64)).reshape(axes)
    near = [np.delete(index, -1, axis=k).ravel() for k in range(len(axes))]
    far = [np.delete(index, 0, axis=k).ravel() for k in range(len(axes))]
    values = np.repeat(scales, [ends.size for ends in near])
    tail, head = np.concatenate(near), np.concatenate(far)
    rows = np.arange(values.size)
    entries = np.concatenate([-values, values])
    positions = (np.concatenate([rows, rows]), np.concatenate([tail, head]))
    return canonical(sp.coo_array((entries, positions), shape=(rows.size, index.size)))
