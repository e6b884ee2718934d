"""Systems (shift·I + scale·L²) x = r, L the Laplacian of a graph.

On a full grid the cosine transform diagonalises L. On other graphs

    (s² + L²)⁻¹ = Im (L − i s)⁻¹ / s,

so that one factorisation of a matrix with the pattern of L serves, where L² would have many more entries.

References
----------
Strang, G. (1999). The discrete cosine transform. SIAM Review 41.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse as sp
import scipy.sparse.linalg

ROUNDING = 1e-12
"""Entries that differ by no more than this share are the same."""


class GridSystem:
    """A full grid of any number of axes, all edges along an axis of one weight.

    Parameters
    ----------
    shape : tuple of int
    weights : tuple of float
        The negative entries of L along each axis.
    """

    def __init__(self, shape: tuple[int, ...], weights: tuple[float, ...]) -> None:
        self.shape = shape
        eigenvalues = np.zeros(shape)
        for axis, (length, weight) in enumerate(zip(shape, weights, strict=True)):
            along = weight * (2.0 - 2.0 * np.cos(np.pi * np.arange(length) / length))
            eigenvalues = eigenvalues + along.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        self.squares = eigenvalues**2

    def solve(self, r: np.ndarray, shift: float, scale: float) -> np.ndarray:
        """x with (shift·I + scale·L²) x = r."""
        waves = scipy.fft.dctn(r.reshape(self.shape), norm="ortho")
        waves /= shift + scale * self.squares
        return scipy.fft.idctn(waves, norm="ortho").ravel()


class FactoredSystem:
    """Any graph, by a sparse factorisation for each ratio of shift and scale; the last one is kept."""

    def __init__(self, L: sp.csr_array) -> None:
        self.L = sp.csc_array(L)
        self._root = 0.0
        self._lu: Any = None

    def solve(self, r: np.ndarray, shift: float, scale: float) -> np.ndarray:
        """x with (shift·I + scale·L²) x = r."""
        root = sqrt(shift / scale)
        if self._lu is None or root != self._root:
            matrix = sp.csc_array(self.L - 1j * root * sp.eye_array(self.L.shape[0]))
            self._root = root
            self._lu = scipy.sparse.linalg.splu(
                matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
        return self._lu.solve(r.astype(complex)).imag / (scale * root)


def grid_of(L: sp.csr_array) -> GridSystem | None:
    """The grid that L is the Laplacian of, its nodes in the order of the axes, the last one fastest; None where there
    is none."""
    d = L.shape[0]
    start, stop = L.indptr[0], L.indptr[1]
    order = np.argsort(-L.indices[start:stop])
    strides = [int(j) for j in L.indices[start:stop][order] if j > 0]
    weights = [-float(v) for j, v in zip(L.indices[start:stop][order], L.data[start:stop][order], strict=True) if j > 0]
    if not strides or strides[-1] != 1 or min(weights) <= 0:
        return None
    shape, before = [], d
    for stride in strides:
        if before % stride:
            return None
        shape.append(before // stride)
        before = stride
    if prod(shape) != d or min(shape) < 2:
        return None
    difference = abs(sp.csr_array(L - _grid_laplacian(tuple(shape), weights)))
    if difference.nnz and difference.max() > ROUNDING * np.abs(L.data).max():
        return None
    return GridSystem(tuple(shape), tuple(weights))


def _grid_laplacian(shape: tuple[int, ...], weights: list[float]) -> sp.csr_array:
    total = sp.csr_array((prod(shape), prod(shape)))
    for axis, (length, weight) in enumerate(zip(shape, weights, strict=True)):
        step = sp.diags_array([-np.ones(length - 1), np.ones(length - 1)], offsets=[0, 1], shape=(length - 1, length))
        outer = sp.eye_array(prod(shape[:axis])), sp.eye_array(prod(shape[axis + 1 :]))
        total = total + weight * sp.kron(sp.kron(outer[0], step.T @ step), outer[1], format="csr")
    return sp.csr_array(total)
