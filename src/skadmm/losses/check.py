"""A numerical check of a loss: do its functions belong together?"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skadmm.kernels.loss_functions import conjugate, curvature, derivative, value
from skadmm.losses._base import Loss

WIDTH = 1e-4
"""The step of differences."""
SLOPE_TOLERANCE, CURVATURE_TOLERANCE, CONJUGATE_TOLERANCE = 1e-6, 1e-3, 1e-6
FAR = 30.0
"""The margin at which a conjugate that is finite outside its domain shows."""


def check_loss(loss: Loss, targets: Iterable[float] | None = None, margins: Iterable[float] | None = None) -> None:
    """Check that the functions of a loss belong together; raise ValueError where they do not.

    At every margin z and target b the derivative must lie between the slopes of the value to both sides, the curvature
    between those of the derivative and below ``curvature_bound``, and the conjugate must satisfy
    ℓ*(θ, b) ≥ θz − ℓ(z, b), with equality where θ is the derivative. A wrong conjugate would certify wrong solutions.

    Parameters
    ----------
    loss : loss
        An instance of a class that was given to :func:`skadmm.losses.define`.
    targets : sequence of float, optional
        Targets b to check at; by default −1 and 1 for classes, and otherwise a few numbers in the range of its targets.
    margins : sequence of float, optional
        Margins z to check at; by default 24 numbers between −3 and 3.

    Raises
    ------
    ValueError
        With the name of the function that is wrong, and where.

    See Also
    --------
    skadmm.losses.define : Defines a new loss.

    Examples
    --------
    >>> from skadmm.losses import Huber, check_loss
    >>> check_loss(Huber(0.5))
    """
    if not hasattr(loss, "coupled"):
        raise TypeError(f"loss={loss!r} is not defined: skadmm.losses.define gives its class the functions of a loss")
    if loss.coupled:
        raise ValueError(f"loss={loss!r} is a function of several margins: check_loss takes losses of one")
    grid = np.linspace(-3.0, 3.0, 24) if margins is None else np.asarray(list(margins), dtype=float)
    for b in _targets(loss) if targets is None else [float(b) for b in targets]:
        for z in grid.tolist():
            _check_slopes(loss, z, b)
        _check_conjugate(loss, grid.tolist(), b)


def _targets(loss: Any) -> list[float]:
    if loss.labels:
        return [-1.0, 1.0]
    inside = [b for b in (-1.5, 0.0, 0.4, 1.0, 2.0) if loss.target_minimum <= b <= loss.target_maximum]
    return [b for b in inside if b > loss.target_minimum or not loss.target_open]


def _check_slopes(loss: Any, z: float, b: float) -> None:
    """Compare the derivative with the value, and the curvature with the derivative."""
    at, slope, bend = value(loss, z, b), derivative(loss, z, b), curvature(loss, z, b)
    left = (at - value(loss, z - WIDTH, b)) / WIDTH
    right = (value(loss, z + WIDTH, b) - at) / WIDTH
    slack = SLOPE_TOLERANCE * (1.0 + abs(at))
    if not left <= right + slack:
        _refuse(loss, "value", f"z={z:g}, b={b:g}", at, f"it is not convex: its slope falls from {left:g} to {right:g}")
    if not left - slack <= slope <= right + slack:
        _refuse(loss, "derivative", f"z={z:g}, b={b:g}", slope, f"the slope of value is {0.5 * (left + right):g}")
    below = (slope - derivative(loss, z - WIDTH, b)) / WIDTH
    above = (derivative(loss, z + WIDTH, b) - slope) / WIDTH
    slack = CURVATURE_TOLERANCE * (1.0 + abs(bend))
    if not min(below, above) - slack <= bend <= max(below, above) + slack:
        _refuse(loss, "curvature", f"z={z:g}, b={b:g}", bend, f"the slope of derivative is {0.5 * (below + above):g}")
    if not bend <= loss.curvature_bound * (1.0 + 1e-9):
        _refuse(loss, "curvature_bound", f"z={z:g}, b={b:g}", loss.curvature_bound, f"the curvature is {bend:g}")


def _check_conjugate(loss: Any, margins: list[float], b: float) -> None:
    """Compare the conjugate with the supremum that defines it."""
    slopes = [derivative(loss, z, b) for z in margins]
    for z, theta in zip(margins, slopes, strict=True):
        found, expected = conjugate(loss, theta, b), theta * z - value(loss, z, b)
        if not abs(found - expected) <= CONJUGATE_TOLERANCE * (1.0 + abs(expected)):
            _refuse(
                loss, "conjugate", f"theta={theta:g}, b={b:g}", found, f"theta·z − value is {expected:g} at z={z:g}"
            )
    for theta in (min(slopes) - 1.0, max(slopes) + 1.0):
        found = conjugate(loss, theta, b)
        for z in (-FAR, *margins, FAR):
            bound = theta * z - value(loss, z, b)
            if not found >= bound - CONJUGATE_TOLERANCE * (1.0 + abs(bound)):
                _refuse(
                    loss, "conjugate", f"theta={theta:g}, b={b:g}", found, f"theta·z − value is {bound:g} at z={z:g}"
                )


def _refuse(loss: Any, function: str, where: str, found: float, reason: str) -> None:
    raise ValueError(f"{function} of the loss {loss.name!r} is wrong at {where}: it is {found:g}, and {reason}")
