"""Which block a step reads: seeded streams of block indices that can be read from any position."""

import numpy as np
from numpy.typing import ArrayLike

from skadmm._names import Registry


class Sampler:
    """An endless stream of block indices, drawn one pass of `n_blocks` at a time.

    Pass p of seed s depends on (s, p) alone, so a run can be stopped anywhere and resumed.
    """

    def __init__(self, n_blocks: int, seed: int) -> None:
        self.n_blocks = n_blocks
        self.seed = seed
        self._last_pass = (-1, np.empty(0, np.int64))
        """The number of the pass that was drawn last, and its indices."""

    def take(self, position: int, count: int) -> np.ndarray:
        """Indices `position` … `position + count − 1` of the stream."""
        parts = []
        while count > 0:
            number, offset = divmod(position, self.n_blocks)
            part = self._pass(number)[offset : offset + count]
            parts.append(part)
            position += part.size
            count -= part.size
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _pass(self, number: int) -> np.ndarray:
        if self._last_pass[0] != number:
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
            self._last_pass = (number, self.draw(rng))
        return self._last_pass[1]

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """One pass of indices."""
        raise NotImplementedError


class Uniform(Sampler):
    """Independent draws with replacement, as in the paper."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """One pass of independent indices."""
        return rng.integers(self.n_blocks, size=self.n_blocks)


class Permutation(Sampler):
    """Every block once per pass, in a new random order."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """One random order of all blocks."""
        return rng.permutation(self.n_blocks)


class Cyclic(Sampler):
    """0, 1, …, n_blocks − 1, repeated."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """All blocks in order."""
        return np.arange(self.n_blocks)


class Replay(Sampler):
    """A given array of indices, repeated when it ends."""

    def __init__(self, n_blocks: int, indices: ArrayLike) -> None:
        array = np.asarray(indices)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(f"sampler has shape {array.shape} and dtype {array.dtype}: it takes a vector of indices")
        if array.min() < 0 or array.max() >= n_blocks:
            raise ValueError(
                f"sampler holds indices from {array.min()} to {array.max()}: it takes block indices 0 … {n_blocks - 1}"
            )
        super().__init__(array.size, 0)
        self._indices = array.astype(np.int64)

    def _pass(self, number: int) -> np.ndarray:
        return self._indices  # the same in every pass: no generator is needed

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """The given indices."""
        return self._indices


SAMPLERS: Registry[type[Sampler]] = Registry("sampler")
SAMPLERS.add("uniform", Uniform)
SAMPLERS.add("permutation", Permutation)
SAMPLERS.add("cyclic", Cyclic)


def as_sampler(sampler: str | ArrayLike, n_blocks: int, seed: int) -> Sampler:
    """A sampler from its name, or from an array of indices to replay."""
    return SAMPLERS[sampler](n_blocks, seed) if isinstance(sampler, str) else Replay(n_blocks, sampler)
