"""The oracle of the reduced Newton solver over rows on a cluster: every block has one on its worker.

A step is two requests: the contraction, which returns the change of the Hessian on the clusters, and the step of the
clusters, which returns Σ of the losses and the gradient over all features as if it were taken whole. What is sent are
the features that are not zero.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from skadmm.backends.worker import SparseVector, packed, unpacked
from skadmm.oracle.channel import Channel, Cluster, KeptBeside, KeptOnWorkers, RemoteFreeColumns
from skadmm.oracle.reduced import Contraction, LocalReducedOracle, PackedContraction
from skadmm.oracle.reduced_hessian import HessianChange, HessianConfig, HessianState


class RemoteReducedOracle:
    """Asks the oracles of all blocks, and adds up."""

    def __init__(self, backend: Cluster, checkpoint: KeptBeside | None = None) -> None:
        self._channel = Channel(backend, LocalReducedOracle)
        self._keeping = KeptOnWorkers(self._channel, checkpoint)
        self.free_columns = RemoteFreeColumns(self._channel)
        self._hessian = HessianState(curvature=np.empty(0))
        """H, the sum over all blocks, which keep their parts."""
        self._gradient: np.ndarray | None = None
        """Σ slope a after a step of `_length`."""
        self._length = 0.0
        """The length of that step; zero where the samples have just been evaluated."""

    # -- storage -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """H, and the name under which the workers keep their state next to the checkpoint."""
        return self._keeping.state() | {"keys": self._hessian.keys, "matrix": self._hessian.matrix}

    def resume(self, state: dict[str, Any]) -> bool:
        """Let the workers read what they have kept; could they?"""
        keys, matrix = state["keys"], state["matrix"]
        if not (isinstance(keys, np.ndarray) and isinstance(matrix, np.ndarray) and matrix.shape == (keys.size,) * 2):
            raise ValueError("the Hessian has the wrong type or shape")
        found = self._keeping.resume(state)
        if found:
            self._hessian.keys, self._hessian.matrix = keys, matrix
        return found

    def restart(self) -> None:
        """A fresh oracle for every block."""
        self._hessian, self._gradient = HessianState(curvature=np.empty(0)), None
        self._channel.restart()

    def close(self) -> None:
        """The workers may forget the run."""
        self._channel.close()

    # -- a step --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Each worker arranges its rows by columns when they are first needed."""

    @cached_property
    def squares(self) -> np.ndarray:
        """Σ a²."""
        return np.array(self._channel.ask(LocalReducedOracle.sum_squares))

    def place(self, x: np.ndarray) -> float:
        """Σ of the losses at x; with it comes the gradient there."""
        loss, gradient = self._channel.ask(place_at, packed(x))
        self._gradient, self._length = np.array(gradient), 0.0
        return float(loss)

    def contract(self, contraction: Contraction, improvement: float, config: HessianConfig) -> np.ndarray:
        """H on the clusters: the last one, and what the blocks add to it."""
        known, keys = self._hessian, contraction.keys
        fresh = np.flatnonzero(~np.isin(keys, known.keys))
        packed = PackedContraction.of(contraction)
        settings = HessianConfig(config.idle_factor, config.min_idle, config.max_idle)
        change = HessianChange(*self._channel.ask(LocalReducedOracle.contract_packed, packed, improvement, settings))
        known.matrix, known.keys = change.added_to(known.known_part(keys), fresh), keys
        return known.matrix.copy()

    def curved(self, v: np.ndarray) -> np.ndarray:
        """Σ h a (a·v) over all features."""
        return np.array(self._channel.ask(curved_at, packed(v)))

    def along(self, step: np.ndarray, t: float) -> float:
        """Σ of the losses at t times a step. With the whole step comes the gradient at its end."""
        if t != 1.0:
            self._gradient = None
            return float(self._channel.ask(LocalReducedOracle.along, step, t))
        loss, gradient = self._channel.ask(LocalReducedOracle.ahead, step)
        self._gradient, self._length = np.array(gradient), 1.0
        return float(loss)

    def losses(self, t: float) -> float:
        """The same at another t."""
        self._gradient = None
        return float(self._channel.ask(LocalReducedOracle.losses, t))

    def settle(self, length: float) -> np.ndarray:
        """Take the step; Σ slope a, which is known where the step is the whole one."""
        gradient, self._gradient = self._gradient, None
        if gradient is None or length != self._length:
            return np.array(self._channel.ask(LocalReducedOracle.settle, length))
        self._channel.tell(LocalReducedOracle.go, length)
        return gradient

    def conjugate(self, scale: float) -> float:
        """Σ w ℓ*(scale θ / w)."""
        return float(self._channel.ask(LocalReducedOracle.conjugate, scale))


def place_at(oracle: LocalReducedOracle, x: np.ndarray | SparseVector) -> Any:
    """Place the samples of a block at the x that was sent: Σ of the losses, and Σ slope a."""
    return oracle.place_ahead(unpacked(x))


def curved_at(oracle: LocalReducedOracle, v: np.ndarray | SparseVector) -> np.ndarray:
    """Σ h a (a·v) of a block, for the v that was sent."""
    return oracle.curved(unpacked(v))
