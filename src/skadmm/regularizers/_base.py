"""What a regulariser is: a convex function of a vector with a cheap proximal step.

A regulariser is a ``NamedTuple`` of its parameters. Its file defines the class with its :func:`facts` and calls
:func:`define_separable` (a sum over coordinates: give the four functions of one coordinate) or :func:`define`
(the whole vector at once); one line in ``regularizers/__init__.py`` makes it known by name.
"""

import math
from collections.abc import Callable
from functools import singledispatch
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from skadmm.kernels.compile import attach, generic, jitable

EPSILON = float(np.finfo(np.float64).eps)
FURTHEST, BISECTIONS = 60, 60
"""The number of powers of two tried, and of halvings after that, in a search for the length at which a vector leaves a
set."""


class Regularizer(Protocol):
    """The attributes and methods that every regulariser has; a Protocol for type checkers.

    A regulariser is a named tuple of its parameters, and a convex function of a vector with a cheap proximal step.

    Attributes
    ----------
    name : str
        The name by which it is known.
    separable : bool
        Is it a sum of functions of one coordinate each?
    smooth : bool
        Is it differentiable, with a Lipschitz gradient?
    subdifferentiable : bool
        Is it finite everywhere, so that a subgradient exists at every point?

    See Also
    --------
    skadmm.regularizers.define : Attach the functions of a vector to a class.
    skadmm.regularizers.define_separable : Attach the functions of one coordinate to a class.

    Examples
    --------
    >>> from skadmm.regularizers import REGULARIZERS
    >>> sorted(name for name, kind in REGULARIZERS.items() if kind.smooth)
    ['squared-l2', 'zero']
    """

    name: ClassVar[str]
    separable: bool
    smooth: bool
    """Differentiable, with a Lipschitz gradient."""
    subdifferentiable: bool
    """Finite everywhere, so that a subgradient exists at every point."""

    def prepared(self, size: int, role: str) -> Self:
        """Parameters checked against a vector of `size` and turned into arrays. `role` names the argument in errors."""
        ...

    @property
    def strong_convexity(self) -> float:
        """The largest μ for which the function is μ-strongly convex."""
        ...

    def lipschitz(self, size: int) -> float:
        """The Lipschitz constant in the Euclidean norm on vectors of `size`; infinite where there is none."""
        ...


@generic
def value(reg: Any, v: Any) -> float:
    """reg(v); infinite outside a constraint set."""


@generic
def prox(reg: Any, v: Any, step: float, out: Any) -> None:
    """out ← argmin over u of ‖u − v‖²/(2·step) + reg(u). `out` may be `v` itself."""


@generic
def subgradient(reg: Any, v: Any, out: Any) -> None:
    """out ← an element of the subdifferential at v, the one of least norm where that is simple."""


@generic
def conjugate(reg: Any, w: Any) -> float:
    """reg*(w) = sup over v of w·v − reg(v); infinite outside its domain."""


@generic
def dual_scale(reg: Any, w: Any) -> float:
    """The largest s in [0, 1] for which s·w lies in the domain of reg*."""


@generic
def clip_dual(reg: Any, w: Any, out: Any) -> None:
    """out ← w, with the coordinates that no scaling brings into the domain of reg* moved to its boundary: the side of a
    cone such as v ≥ 0 on which reg* is infinite."""


@generic
def dual_norm(reg: Any, w: Any) -> float:
    """The smallest s ≥ 0 for which w lies in s · ∂reg(0), infinite where there is none; of a norm, its dual norm."""


@generic
def value_at(reg: Any, j: int, v: float) -> float:
    """Coordinate j of a separable regulariser."""


@generic
def prox_at(reg: Any, j: int, v: float, step: float) -> float:
    """The proximal step of coordinate j."""


@generic
def subgradient_at(reg: Any, j: int, v: float) -> float:
    """A subgradient of coordinate j."""


@generic
def conjugate_at(reg: Any, j: int, w: float) -> float:
    """The conjugate of coordinate j."""


@generic
def dual_scale_at(reg: Any, j: int, w: float) -> float:
    """The largest s in [0, 1] for which s·w lies in the domain of coordinate j's conjugate."""


@generic
def dual_norm_at(reg: Any, j: int, w: float) -> float:
    """The smallest s ≥ 0 for which w lies in s times the subdifferential of coordinate j at zero."""


def define(
    cls: type,
    *,
    value: Callable[..., Any],
    prox: Callable[..., Any],
    conjugate: Callable[..., Any],
    dual_scale: Callable[..., Any],
    subgradient: Callable[..., Any] | None = None,
    dual_norm: Callable[..., Any] | None = None,
    clip_dual: Callable[..., Any] | None = None,
) -> None:
    """Make a class a regulariser of whole vectors: attach its functions, which are compiled when they are first used.

    Every function takes the instance first and is written in Numba's subset of Python.

    Parameters
    ----------
    cls : type
        A ``NamedTuple`` with its ``facts`` (``name``, ``separable``, ``smooth``, ``subdifferentiable``), the methods
        ``prepared(size, role)`` and ``lipschitz(size)``, and the property ``strong_convexity``; see
        :class:`skadmm.regularizers.Regularizer`. With a field ``strength`` the estimators take it as `penalty`.
    value : callable
        Of (reg, v): reg(v), infinite outside a constraint set.
    prox : callable
        Of (reg, v, step, out): writes the minimiser of ‖u − v‖²/(2·step) + reg(u) to `out`, which may be `v` itself.
    conjugate : callable
        Of (reg, w): the supremum over v of w·v − reg(v).
    dual_scale : callable
        Of (reg, w): the largest s in [0, 1] for which s·w lies in the domain of the conjugate.
    subgradient : callable, optional
        Of (reg, v, out): writes a subgradient at `v` to `out`. Methods that need one refuse a regulariser without it.
    dual_norm : callable, optional
        Of (reg, w): the smallest s ≥ 0 for which w is in s times the subdifferential at zero. Without it, it is found
        by bisection: w is a subgradient at zero exactly when reg*(w) = −reg(0).
    clip_dual : callable, optional
        Of (reg, w, out): writes w to `out`, with the coordinates that no scaling brings into the domain of the
        conjugate moved to its boundary. Without it none is moved, which is right where the conjugate is finite around
        zero; only cones such as v ≥ 0 need it, for a duality gap.

    See Also
    --------
    skadmm.regularizers.define_separable : For sums of functions of one coordinate.

    Examples
    --------
    A ball of radius one:

    >>> import math
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.kernels.compile import facts
    >>> from skadmm.regularizers import define
    >>> @facts(name="unit-ball", separable=False, smooth=False, subdifferentiable=False)
    ... class UnitBall(NamedTuple):
    ...     def prepared(self, size, role):
    ...         return self
    ...
    ...     @property
    ...     def strong_convexity(self):
    ...         return 0.0
    ...
    ...     def lipschitz(self, size):
    ...         return math.inf
    >>> def prox(reg, v, step, out):
    ...     scale = max(1.0, np.linalg.norm(v))
    ...     for j in range(v.size):
    ...         out[j] = v[j] / scale
    >>> define(
    ...     UnitBall,
    ...     value=lambda reg, v: 0.0 if np.linalg.norm(v) <= 1.0 + 1e-12 else math.inf,
    ...     prox=prox,
    ...     conjugate=lambda reg, w: np.linalg.norm(w),
    ...     dual_scale=lambda reg, w: 1.0,
    ... )
    >>> Problem(np.eye(2), np.zeros(2), loss="squared", psi=UnitBall()).prox_psi(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    functions: dict[str, Callable[..., Any]] = {
        "value": value,
        "prox": prox,
        "conjugate": conjugate,
        "dual_scale": dual_scale,
        "subgradient": subgradient or _no_subgradient,
        "dual_norm": dual_norm or _dual_norm_by_conjugate,
        "clip_dual": clip_dual or _unclipped,
    }
    for name, implementation in functions.items():
        attach(globals()[name], cls, implementation)


def define_separable(
    cls: type,
    *,
    value_at: Callable[..., Any],
    prox_at: Callable[..., Any],
    conjugate_at: Callable[..., Any],
    dual_scale_at: Callable[..., Any],
    subgradient_at: Callable[..., Any] | None = None,
    dual_norm_at: Callable[..., Any] | None = None,
    clip_dual: Callable[..., Any] | None = None,
) -> None:
    """Make a class a regulariser from its functions of one coordinate, which are compiled when they are first used.

    Every function takes the instance and the number j of the coordinate first and is written in Numba's subset of
    Python.

    Parameters
    ----------
    cls : type
        A ``NamedTuple`` with its ``facts`` (``name``, ``separable``, ``smooth``, ``subdifferentiable``), the methods
        ``prepared(size, role)`` and ``lipschitz(size)``, and the property ``strong_convexity``; see
        :class:`skadmm.regularizers.Regularizer`. With a field ``strength`` the estimators take it as `penalty`.
    value_at : callable
        Of (reg, j, v): the function at v, infinite outside a constraint set.
    prox_at : callable
        Of (reg, j, v, step): the minimiser of (u − v)²/(2·step) plus the function at u.
    conjugate_at : callable
        Of (reg, j, w): the supremum over v of wv minus the function at v.
    dual_scale_at : callable
        Of (reg, j, w): the largest s in [0, 1] for which s·w lies in the domain of the conjugate.
    subgradient_at : callable, optional
        Of (reg, j, v): a subgradient at v. Methods that need one refuse a regulariser without it.
    dual_norm_at : callable, optional
        Of (reg, j, w): the smallest s ≥ 0 for which w is in s times the subdifferential at zero; by default it is found
        by bisection.
    clip_dual : callable, optional
        Of (reg, w, out), the whole vector, as in ``define``.

    See Also
    --------
    skadmm.regularizers.define : For functions of a whole vector.

    Examples
    --------
    The lower bound v_j ≥ −1:

    >>> import math
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.kernels.compile import facts
    >>> from skadmm.regularizers import define_separable
    >>> @facts(name="above-minus-one", separable=True, smooth=False, subdifferentiable=False)
    ... class AboveMinusOne(NamedTuple):
    ...     def prepared(self, size, role):
    ...         return self
    ...
    ...     @property
    ...     def strong_convexity(self):
    ...         return 0.0
    ...
    ...     def lipschitz(self, size):
    ...         return math.inf
    >>> define_separable(
    ...     AboveMinusOne,
    ...     value_at=lambda reg, j, v: 0.0 if v >= -1.0 else math.inf,
    ...     prox_at=lambda reg, j, v, step: max(v, -1.0),
    ...     conjugate_at=lambda reg, j, w: -w if w <= 0.0 else math.inf,
    ...     dual_scale_at=lambda reg, j, w: 1.0 if w <= 0.0 else 0.0,
    ... )
    >>> Problem(np.eye(2), np.zeros(2), loss="squared", psi=AboveMinusOne()).prox_psi(np.array([-3.0, 2.0]))
    array([-1.,  2.])
    """
    functions: dict[str, Callable[..., Any]] = {
        "value_at": value_at,
        "prox_at": prox_at,
        "conjugate_at": conjugate_at,
        "dual_scale_at": dual_scale_at,
        "subgradient_at": subgradient_at or _no_subgradient_at,
        "dual_norm_at": dual_norm_at or _dual_norm_at_by_conjugate,
    }
    for name, implementation in functions.items():
        attach(globals()[name], cls, implementation)
    define(
        cls, value=_sum_value, prox=_each_prox, conjugate=_sum_conjugate, dual_scale=_least_scale,
        subgradient=_each_subgradient, dual_norm=_largest_dual_norm, clip_dual=clip_dual,
    )  # fmt: skip


def _unclipped(reg, w, out):
    for j in range(w.size):  # `out[:] = w` would make Numba compile an error message
        out[j] = w[j]


def _no_subgradient(reg, v, out):
    raise ValueError("a constraint has no subgradient outside its set")


def _no_subgradient_at(reg, j, v):
    if j < 0:
        return 0.0  # never: it tells compiled callers the type
    raise ValueError("a constraint has no subgradient outside its set")


def _sum_value(reg, v):
    total = 0.0
    for j in range(v.size):
        total += value_at(reg, j, v[j])
    return total


def _each_prox(reg, v, step, out):
    for j in range(v.size):
        out[j] = prox_at(reg, j, v[j], step)


def _each_subgradient(reg, v, out):
    for j in range(v.size):
        out[j] = subgradient_at(reg, j, v[j])


def _sum_conjugate(reg, w):
    total = 0.0
    for j in range(w.size):
        total += conjugate_at(reg, j, w[j])
    return total


def _least_scale(reg, w):
    scale = 1.0
    for j in range(w.size):
        scale = min(scale, dual_scale_at(reg, j, w[j]))
    return scale


def _largest_dual_norm(reg, w):
    largest = 0.0
    for j in range(w.size):
        largest = max(largest, dual_norm_at(reg, j, w[j]))
    return largest


def _dual_norm_at_by_conjugate(reg, j, w):
    if w == 0.0:
        return 0.0
    level = -value_at(reg, j, 0.0)
    outside = 1.0 / abs(w)
    for _ in range(FURTHEST):
        if not conjugate_at(reg, j, outside * w) <= level:
            break
        outside *= 2.0
    inside = outside
    for _ in range(2 * FURTHEST):
        if conjugate_at(reg, j, inside * w) <= level:
            break
        inside *= 0.5
    if inside == outside:
        return 0.0
    if not conjugate_at(reg, j, inside * w) <= level:
        return math.inf
    outside = 2.0 * inside
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        if conjugate_at(reg, j, middle * w) <= level:
            inside = middle
        else:
            outside = middle
    return 1.0 / inside


def _dual_norm_by_conjugate(reg, w):
    size = 0.0
    for j in range(w.size):
        size = max(size, abs(w[j]))
    if size == 0.0:
        return 0.0
    level = -value(reg, np.zeros_like(w))
    outside = 1.0 / size
    for _ in range(FURTHEST):
        if not conjugate(reg, outside * w) <= level:
            break
        outside *= 2.0
    inside = outside
    for _ in range(2 * FURTHEST):
        if conjugate(reg, inside * w) <= level:
            break
        inside *= 0.5
    if inside == outside:
        return 0.0
    if not conjugate(reg, inside * w) <= level:
        return math.inf
    outside = 2.0 * inside
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        if conjugate(reg, middle * w) <= level:
            inside = middle
        else:
            outside = middle
    return 1.0 / inside


def clips_dual(reg: Any) -> bool:
    """Return whether :func:`clip_dual` may change a vector; where it only copies, no kernel is needed to find out."""
    return clip_dual.dispatch(type(reg)) is not _unclipped


@singledispatch
def with_strength(reg: tuple[object, ...], strength: float, role: str = "psi") -> Regularizer:
    """Replace the strength of a regulariser.

    Parameters
    ----------
    reg : regulariser
        One with a field named ``strength`` that multiplies the whole function, or such a one stacked on a constraint.
    strength : float
        The new strength.
    role : str
        The name of the argument in messages.

    Returns
    -------
    regulariser
        The same function with the new strength.

    Raises
    ------
    TypeError
        Where the regulariser has no strength.

    See Also
    --------
    skadmm.path : Solves a problem for many strengths.

    Examples
    --------
    >>> from skadmm.regularizers import L1, with_strength
    >>> with_strength(L1(1.0), 0.5)
    L1(strength=0.5, weights=None)
    """
    if "strength" not in getattr(reg, "_fields", ()):
        raise TypeError(
            f"{role}={type(reg).__name__} has no strength: it takes a regulariser with a field of that name"
        )
    named: Any = reg
    return named._replace(strength=float(strength))


@jitable
def shrunk(scale, terms):
    """`scale` less the rounding of a sum of `terms`, so that scale·w is inside the domain in floating point too."""
    return scale * (1.0 - (terms + 4) * EPSILON)


def checked_strength(reg: Any, role: str, field: str = "strength") -> float:
    """The field as a float; an error where it is negative or not finite."""
    strength = getattr(reg, field)
    number = isinstance(strength, Real) and not isinstance(strength, bool)
    if not number or not math.isfinite(strength) or strength < 0:
        raise ValueError(f"{role}={type(reg).__name__}(...): {field} must be a finite number ≥ 0, got {strength!r}")
    return float(strength)


def checked_weights(reg: Any, role: str, size: int, field: str = "weights") -> np.ndarray:
    """The field as a float64 vector of `size`; empty for None, so that kernels see one type either way."""
    weights = getattr(reg, field)
    if weights is None or (isinstance(weights, np.ndarray) and weights.size == 0):
        return np.empty(0)
    where = f"{role}={type(reg).__name__}(...): {field}"
    try:
        # A copy: a read-only array (a worker's memory map) would be another type to the kernels.
        weights = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{where} must be a vector of numbers, got {weights!r}") from None
    if weights.shape != (size,):
        raise ValueError(f"{where} must have length {size}, got shape {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"{where} must be finite and ≥ 0")
    return weights
