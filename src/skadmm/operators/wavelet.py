"""The analysis matrix of a discrete wavelet transform."""

import functools
import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from skadmm.operators.canonical import canonical, checked_count
from skadmm.operators.trend import checked_shape


def wavelet(
    shape: int | Sequence[int], name: str = "db2", *, level: int | None = None, mode: str = "periodization"
) -> sp.csr_array:
    """Build the analysis matrix W of a discrete wavelet transform: W x are the wavelet coefficients of x.

    Needs PyWavelets (the extra ``wavelet``).

    Parameters
    ----------
    shape : int or tuple of int
        Length of the signal, or shape of the array whose flattening in C order is x.
    name : str
        A discrete wavelet known to PyWavelets.
    level : int, optional
        Number of levels, by default the most that PyWavelets advises.
    mode : str
        How a signal continues beyond its ends, one of ``pywt.Modes.modes``.

    Returns
    -------
    csr_array of shape (m, d)
        Rows from coarse to fine, in the order of ``pywt.ravel_coeffs(pywt.wavedecn(...))``.

    See Also
    --------
    skadmm.operators.stack : Puts it below other matrices.

    Notes
    -----
    Any length works. With ``mode="periodization"`` a level turns N values into ⌈N/2⌉ approximations and as many
    details; an odd N is first made even by repeating its last value. So m = d and, for an orthogonal wavelet,
    WᵀW = I whenever 2^level divides every length; otherwise m exceeds d by a few rows and W keeps full column
    rank. The other modes give a few more rows, about one filter length per level.

    References
    ----------
    Mallat. A Wavelet Tour of Signal Processing. 3rd edition, 2008.

    Examples
    --------
    >>> from skadmm.operators import wavelet
    >>> wavelet(4, "haar", level=1).toarray().round(3)
    array([[ 0.707,  0.707,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.707,  0.707],
           [ 0.707, -0.707,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.707, -0.707]])
    """
    pywt = _pywavelets()
    axes = checked_shape(shape)
    if name not in pywt.wavelist(kind="discrete"):
        raise ValueError(f"name must be one of pywt.wavelist(kind='discrete'), got {name!r}")
    if mode not in pywt.Modes.modes:
        raise ValueError(f"mode must be one of {', '.join(pywt.Modes.modes)}; got {mode!r}")
    most = pywt.dwtn_max_level(axes, name)
    levels = most if level is None else checked_count(level, "level", least=0)
    if levels > most:
        raise ValueError(f"level must be at most {most} for lengths {axes} and {name!r}, got {levels}")

    approximation = sp.eye_array(int(np.prod(axes)), format="csr")
    details: list[sp.csr_array] = []
    for _ in range(levels):
        pairs = [_one_level(length, name, mode) for length in axes]
        bands = [functools.reduce(sp.kron, choice) for choice in itertools.product(*pairs)]
        low, *high = [sp.csr_array(band) @ approximation for band in bands]
        approximation, details = low, [*high, *details]
        axes = tuple(low_pass.shape[0] for low_pass, _ in pairs)
    return canonical(sp.vstack([approximation, *details], format="csr"))


def _one_level(length: int, name: str, mode: str) -> tuple[sp.csr_array, sp.csr_array]:
    """The matrices of the approximation and the detail of one level, read off PyWavelets' own transform.

    A column near an end may affect rows at both ends, so it is probed alone. A column p in between affects only rows
    near p/2, so columns four filter lengths apart are probed together and distinguished by position.
    """
    pywt = _pywavelets()
    reach = pywt.Wavelet(name).dec_len
    spacing = 4 * reach
    if length <= 2 * spacing:
        probes = [np.array([p]) for p in range(length)]
    else:
        ends = [*range(reach), *range(length - reach, length)]
        probes = [np.array([p]) for p in ends]
        probes += [np.arange(start, length - reach, spacing) for start in range(reach, reach + spacing)]
    bands: list[list[Any]] = [[], []]
    for probe in probes:
        signal = np.zeros(length)
        signal[probe] = 1.0
        for band, response in zip(bands, pywt.dwt(signal, name, mode=mode), strict=True):
            rows = np.flatnonzero(response)
            # The rows cover the signal and its extension alike at both ends, so the middles coincide.
            position = 2 * rows - (2 * response.size - length) / 2
            nearest = np.rint((position - probe[0]) / spacing).astype(np.int64).clip(0, probe.size - 1)
            band.append(sp.coo_array((response[rows], (rows, probe[nearest])), shape=(response.size, length)))
    low, high = (sp.csr_array(sum(band[1:], start=band[0].tocsr())) for band in bands)
    return low, high


def _pywavelets() -> ModuleType:
    try:
        import pywt
    except ImportError as error:
        raise ImportError("operators.wavelet needs PyWavelets: pip install 'skadmm[wavelet]'") from error
    return pywt
