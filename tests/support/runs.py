"""Runs that are interrupted, and results that must agree."""

import contextlib
import json

import numpy as np

from skadmm import solve
from skadmm.run import driver

SAME = ("x", "y", "dual", "x_average", "y_average")


def records(result):
    rows = [{name: value for name, value in row.items() if name != "seconds"} for row in result.records]
    return json.dumps(rows)


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def assert_same(first, second):
    for name in SAME:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert records(first) == records(second)
    assert first.passes == second.passes
    assert (first.status, first.message) == (second.status, second.message)
    assert first.settings == second.settings


def killed_after(monkeypatch, checkpoint, writes, **run):
    """Run until `writes` checkpoints have been written, then die at the next look at the clock."""
    written = []
    usual = driver.Run._slice

    def fragile(self, goal, pace):
        if len(written) >= writes:
            raise Killed
        written.append(1)
        return usual(self, goal, min(pace, 2.0))

    monkeypatch.setattr(driver.Run, "_slice", fragile)
    with contextlib.suppress(Killed):  # it may also reach its end first
        solve(checkpoint=checkpoint, checkpoint_every=0, **run)
    monkeypatch.undo()
