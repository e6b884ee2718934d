"""What :func:`skadmm.operators.precision_graph` returns."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm import _summary
from skadmm.io import codec


class PrecisionGraph(NamedTuple):
    """A graph learnt from data; ``incidence`` takes it as it is.

    Parameters
    ----------
    adjacency : csr_array of shape (d, d)
        Symmetric; the sign of the partial correlation, s_ij = −sign Θ_ij, where there is an edge.
    precision : csr_array of shape (d, d)
        Θ, of the standardised columns when they were standardised; the row of a constant column is empty.
    alpha : float
        The penalty used.
    components : ndarray of shape (d,)
        The number of the block each feature was solved in.
    cut : int
        How many pairs with |S_ij| > alpha were cut to keep blocks within ``max_component``.
    converged : bool
        False when a block stopped before its tolerance; the graph is then approximate.

    See Also
    --------
    skadmm.operators.precision_graph : Learns such a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm.operators import precision_graph
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> graph = precision_graph(X)
    >>> graph.adjacency.toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 0., 0.]])
    """

    adjacency: sp.csr_array
    precision: sp.csr_array
    alpha: float
    components: np.ndarray
    cut: int
    converged: bool

    def __repr__(self) -> str:
        facts = {
            "features": self.components.size,
            "edges": self.adjacency.nnz // 2,
            "alpha": f"{self.alpha:.4g}",
            "components": int(self.components.max(initial=-1)) + 1,
            "cut": self.cut,
            "converged": self.converged,
        }
        return _summary.line("PrecisionGraph", facts)


codec.register_fields("precision", PrecisionGraph)
