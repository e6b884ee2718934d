"""Several operators at once, one above the other."""

import scipy.sparse as sp
from numpy.typing import ArrayLike

from skadmm._types import Matrix
from skadmm.operators.canonical import canonical, checked_matrix, checked_weights, identity


def stack(*parts: Matrix, weights: ArrayLike | None = None) -> sp.csr_array:
    """Stack matrices, A = [w₁ A₁; w₂ A₂; …], so that ψ penalises every A_k x.

    Parameters
    ----------
    *parts : sparse matrix, ndarray, DataFrame or "identity"
        All of one width; "identity" takes the width of the others.
    weights : array-like, optional
        One weight per part.

    Returns
    -------
    csr_array of shape (sum of the rows, width)
        The parts from top to bottom.

    See Also
    --------
    skadmm.regularizers.Stacked : Another penalty for each of two parts.

    Examples
    --------
    >>> from skadmm.operators import chain, stack
    >>> stack(chain(3), "identity").toarray()
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.],
           [ 1.,  0.,  0.],
           [ 0.,  1.,  0.],
           [ 0.,  0.,  1.]])
    """
    if not parts:
        raise ValueError("parts must hold at least one matrix, got none")
    scales = checked_weights(weights, len(parts), "weights", "part")
    named = [isinstance(part, str) and part == "identity" for part in parts]
    matrices = [
        None if is_identity else canonical(checked_matrix(part, f"parts[{k}]"))
        for k, (part, is_identity) in enumerate(zip(parts, named, strict=True))
    ]
    widths = {k: matrix.shape[1] for k, matrix in enumerate(matrices) if matrix is not None}
    if not widths:
        raise ValueError("parts must hold a matrix that gives the width; 'identity' alone has none, use identity(d)")
    first, width = next(iter(widths.items()))
    for k, other in widths.items():
        if other != width:
            raise ValueError(f"parts[{k}] must have {width} columns, as parts[{first}] has; got {other}")
    blocks = [identity(width) if matrix is None else matrix for matrix in matrices]
    return canonical(sp.vstack([scale * block for scale, block in zip(scales, blocks, strict=True)], format="csr"))
