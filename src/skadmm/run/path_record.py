"""What a path has found so far: lists of solutions, and a checkpoint from which the next strength continues."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.run.checkpoint import Keeper, resumed
from skadmm.run.follow import Follower, Solution
from skadmm.run.result import Status


class PathRecord:
    """The solutions at the strengths of `grid`, in order, and how many there are."""

    def __init__(self, grid: np.ndarray, keeper: Keeper | None = None) -> None:
        self.grid, self.keeper = grid, keeper
        self.x: list[np.ndarray] = []
        self.losses: list[float] = []
        self.dof: list[float] = []
        self.reached: list[float] = []
        self.statuses: list[str] = []
        self.ended = False
        """Is no further strength to be solved?"""

    def __len__(self) -> int:
        return len(self.losses)

    def add(self, solution: Solution, dof: float) -> None:
        """One more strength."""
        self.x.append(solution.x)
        self.losses.append(solution.loss)
        self.dof.append(dof)
        self.reached.append(solution.reached)
        self.statuses.append(str(solution.status))

    def keep(self, follower: Follower) -> None:
        """Write the checkpoint where it is due, and at the end."""
        if self.keeper is not None and (self.ended or (follower.resumable and self.keeper.due)):
            self.keeper.write(self.state(follower))

    def state(self, follower: Follower) -> dict[str, Any]:
        """All that a checkpoint keeps. A finished path needs no solver."""
        return {
            "grid": self.grid,
            "x": np.array(self.x),
            "losses": np.array(self.losses),
            "dof": np.array(self.dof),
            "reached": np.array(self.reached),
            "statuses": list(self.statuses),
            "ended": self.ended,
            "follower": None if self.ended else follower.state(),
        }

    def resume(self, follower: Follower) -> None:
        """Take up what the checkpoint holds, if there is one."""
        kept = None if self.keeper is None else self.keeper.read()
        if self.keeper is None or kept is None:
            return
        with resumed(self.keeper):
            self._restore(kept, follower)

    def _restore(self, kept: dict[str, Any], follower: Follower) -> None:
        grid, x = kept["grid"], kept["x"]
        numbers = [kept[name] for name in ("losses", "dof", "reached")]
        count = len(kept["statuses"])
        if grid.shape != self.grid.shape or x.ndim != 2 or count > grid.size:
            raise ValueError("its strengths are not those of this path")
        if any(array.shape != (count,) for array in (*numbers, x[:, 0])):
            raise ValueError("it does not have one solution for each strength")
        self.grid, self.x = grid, list(x)
        self.losses, self.dof, self.reached = (array.tolist() for array in numbers)
        self.statuses = [str(Status(status)) for status in kept["statuses"]]
        self.ended = bool(kept["ended"])
        if not self.ended:
            follower.resume(kept["follower"])
