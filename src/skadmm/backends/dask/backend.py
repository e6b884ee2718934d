"""Rows on the workers of a Dask cluster: dask.array, dask.dataframe, or a list of delayed blocks.

Dask computes a block that is lost with its worker again, from its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skadmm.backends import worker
from skadmm.backends.dask.blocks import current_client, in_equal_blocks, row_blocks, vector_blocks
from skadmm.backends.dask.calls import BlockCalls
from skadmm.backends.remote import RemoteSamples, check_shapes, two_classes
from skadmm.losses import Loss

if TYPE_CHECKING:
    from distributed import Client, Future


class DaskBackend(BlockCalls, RemoteSamples):
    """Samples on the workers of a Dask cluster.

    Parameters
    ----------
    X : dask.array, dask.dataframe, or list of delayed blocks
    target, weight : the same in blocks like those of X, or arrays where the lengths of the blocks are known
        `weight` may be None.
    loss : loss
    ones : bool
        Add a last column of ones, for an intercept.
    classes : array of two classes, optional
        For classification; by default those found in `target`.
    """

    name = "dask"

    def __init__(
        self, X: Any, target: Any, weight: Any, loss: Loss, ones: bool = False, classes: np.ndarray | None = None
    ) -> None:
        import dask

        super().__init__(current_client())
        self.loss = loss
        if target is None:
            raise ValueError("target=None: it takes a vector with an entry for each row of X")
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        X, vectors = in_equal_blocks(X, {"target": target, "sample_weight": weight})
        target, weight = vectors.values()
        rows = row_blocks(X, "X")
        targets = vector_blocks(target, X, len(rows), "target")
        weights = vector_blocks(weight, X, len(rows), "sample_weight")
        make_part = dask.delayed(worker.make_part, pure=False)
        facts_of = dask.delayed(worker.facts_of, pure=False)
        delayed_parts = [make_part(*three, ones) for three in zip(rows, targets, weights, strict=True)]
        delayed_facts = [facts_of(part, row, loss) for part, row in zip(delayed_parts, rows, strict=True)]
        parts = _spread(self.client, delayed_parts)
        facts: list[worker.Facts] = self._gather(self.client.compute(delayed_facts))
        if not any(fact.size for fact in facts):
            raise ValueError("X has no rows: it takes at least one")
        parts = [part for part, fact in zip(parts, facts, strict=True) if fact.size]
        facts = [fact for fact in facts if fact.size]
        check_shapes(facts)
        sizes = np.array([fact.size for fact in facts])
        self.n, self.d, self.nnz = int(sizes.sum()), int(facts[0].width), sum(fact.stored for fact in facts)
        self.feature_names = facts[0].names or names
        self.classes = two_classes([fact.classes for fact in facts], loss, classes) if loss.labels else None
        total = sum(fact.weight for fact in facts)
        if total <= 0:
            raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
        self.weighted = weight is not None
        self.hold(
            [
                self.client.submit(worker.make_samples, part, loss, self.classes, self.n / total, pure=False)
                for part in parts
            ],
            sizes,
        )


def _spread(client: Client, parts: list[Any]) -> list[Future]:
    """Compute the parts, as many on each worker, consecutive ones together."""
    workers = sorted(client.nthreads())
    if not workers:
        return client.compute(parts)
    futures = []
    for group, address in zip(np.array_split(np.arange(len(parts)), len(workers)), workers, strict=True):
        if group.size:
            chosen = [parts[k] for k in group]
            futures += client.compute(chosen, workers=[address], allow_other_workers=True)
    return futures
