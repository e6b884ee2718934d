"""Several outputs in one problem: how a penalty on the columns of X becomes one on the coefficients of all outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm._names import argument_names
from skadmm.estimators._mixture import Mixture
from skadmm.estimators._penalty import Penalty
from skadmm.operators import across_outputs, incidence, output_groups
from skadmm.regularizers import L1, GroupL2, GroupLInf, Nuclear
from skadmm.regularizers._repeated import repeated

OUTPUT_PENALTIES = ("entries", "rows", "rows-linf", "nuclear")
"""How the coefficients of the outputs are penalised: one by one, by the norm across outputs, or all together by the
nuclear norm."""


class OutputOptions(NamedTuple):
    """How an estimator penalises several outputs."""

    penalty: str = "entries"
    """One of OUTPUT_PENALTIES."""
    task_graph: Any = None
    """A graph over the outputs, or None."""
    names: Sequence[Any] | None = None
    """The names of the outputs, where they have names."""


class OutputPenalty(NamedTuple):
    """alpha · ψ(Ax) over the coefficients of all outputs."""

    A: sp.csr_array
    penalty: Penalty
    """The penalty on the columns of X, for one output."""
    n_outputs: int
    across: str
    n_single: int
    """Rows of A that belong to the graph over the outputs."""

    def psi(self, alpha: float) -> Any:
        """ψ of strength `alpha`."""
        m, k, groups = self.penalty.A.shape[0], self.n_outputs, self.penalty.groups
        if self.penalty.kind is not None:
            return repeated(self.penalty.psi(alpha), m, k)
        if self.across == "entries" and groups is None:
            return L1(alpha)
        if self.across == "nuclear":
            return Nuclear(alpha, columns=k, single=self.n_single)
        if groups is None:
            labels = output_groups(m, k, self.n_single)
            return (GroupL2 if self.across == "rows" else GroupLInf)(alpha, labels)
        label = np.empty(m, np.int64)
        for g, rows in enumerate(groups):
            label[rows] = g
        count = len(groups)
        joined = [label + (c * count if self.across == "entries" else 0) for c in range(k)]
        single = count * k + np.arange(self.n_single)
        return (GroupLInf if self.across == "rows-linf" else GroupL2)(alpha, np.concatenate([*joined, single]))


def output_penalty(penalty: Penalty, columns: sp.csr_array, wide: Any, k: int, options: OutputOptions) -> OutputPenalty:
    """The penalty of one output on all of them.

    Parameters
    ----------
    penalty : Penalty
    columns : csr_array
        The coefficients that are penalised, from those of the solver for one output.
    wide : csr_array
        A of `penalty` on the coefficients of the solver for one output.
    k : int
    options : OutputOptions
    """
    if penalty.kind is not None:
        _check_kind(penalty.kind, options)
    if options.penalty == "nuclear" and penalty.groups is not None:
        raise ValueError(
            "output_penalty='nuclear': a nuclear norm takes all coefficients together, and groups are given; it takes "
            "'entries', 'rows' or 'rows-linf' with groups"
        )
    A = sp.kron(sp.eye_array(k), wide, format="csr")
    n_single = 0
    if options.task_graph is not None:
        tasks = sp.csr_array(across_outputs(task_matrix(options.task_graph, k, options.names), columns.shape[0]))
        added = tasks @ sp.kron(sp.eye_array(k), columns, format="csr")
        n_single = added.shape[0]
        A = sp.vstack([A, added], format="csr")
    return OutputPenalty(sp.csr_array(A), penalty, k, options.penalty, n_single)


def _check_kind(kind: Any, options: OutputOptions) -> None:
    """Raise where a penalty other than 'l1' would have to join outputs."""
    name = type(kind.first if isinstance(kind, Mixture) else kind).__name__
    if options.penalty != "entries":
        raise ValueError(
            f"output_penalty={options.penalty!r}: with penalty={name}(...) it takes 'entries', the penalty of each "
            "output; norms across outputs take penalty='l1'"
        )
    if options.task_graph is not None:
        raise ValueError(
            f"task_graph={options.task_graph!r}: its absolute differences are added to penalty='l1', and the penalty "
            f"is {name}(...)"
        )


def task_matrix(graph: Any, k: int, names: Sequence[Any] | None = None) -> sp.csr_array:
    """The differences over the edges of a graph whose nodes are the outputs 0 … k − 1, or their `names`."""
    if isinstance(graph, str) and graph == "complete":
        graph = [(i, j) for i in range(k) for j in range(i + 1, k)]
    labels = _nodes(graph)
    named = any(isinstance(label, str) for label in labels)
    outputs = [str(name) for name in names] if named and names is not None else list(range(k))
    odd = next((label for label in labels if label not in outputs), None)
    if odd is not None:
        takes = f"numbers of outputs in 0 … {k - 1}"
        if names is not None and any(isinstance(name, str) for name in names):
            takes = f"the outputs {', '.join(repr(str(name)) for name in names)}, or their numbers in 0 … {k - 1}"
        elif named:
            takes += "; names are those of the columns of a DataFrame y, or of classes"
        raise ValueError(f"task_graph has the node {odd!r}: it takes {takes}")
    with argument_names(graph="task_graph"):
        matrix = incidence(graph, nodes=outputs if named else None, n_features=k)
    if matrix.shape[1] != k:
        raise ValueError(f"task_graph has {matrix.shape[1]} nodes: it takes one for each of the {k} outputs")
    return matrix


def _nodes(graph: Any) -> list[Any]:
    """The nodes that a networkx graph or a list of edges names; none for other graphs."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return list(graph.nodes)
    rows = graph.tolist() if isinstance(graph, np.ndarray) and graph.ndim == 2 else graph
    if not isinstance(rows, (list, tuple)) or any(
        not isinstance(row, (list, tuple)) or len(row) not in (2, 3) for row in rows
    ):
        return []
    labels = [node for row in rows for node in row[:2]]
    square = all(len(row) == len(rows) for row in rows)  # it may be an adjacency matrix, which `incidence` checks
    return labels if not square or any(isinstance(label, str) for label in labels) else []


def checked_task_graph(given: Any) -> Any:
    """`task_graph`, which has one name only."""
    if isinstance(given, str) and given != "complete":
        raise ValueError(
            f"task_graph={given!r}: it takes None, 'complete', a networkx graph, an adjacency matrix or a list of edges"
        )
    return given


def checked_output_penalty(given: Any) -> str:
    """`output_penalty`, one of OUTPUT_PENALTIES."""
    if given not in OUTPUT_PENALTIES:
        raise ValueError(f"output_penalty={given!r}: it takes one of {', '.join(map(repr, OUTPUT_PENALTIES))}")
    return str(given)
