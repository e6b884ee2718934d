"""What an algorithm is: a rule for x, and nothing of loops, clocks or printing.

One step of every first-order method is

    sense   touch the samples of a block: bring the rule's gradient up to date at the current x
    move    the new x from that gradient and the coupling with y and the dual
    split   y and dual (``_split.py``, the same for all)

A method's file holds its rule (a ``NamedTuple`` of constants and tables), attaches ``sense`` and ``move``, and
registers an :class:`Algorithm`. ``sense`` is the only part that sees rows, so rows may live elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm._compile import generic, kernel
from skadmm._names import Registry
from skadmm.algorithms import _split
from skadmm.algorithms._split import Point, couple, split_step
from skadmm.certificate import Certificate
from skadmm.problem import Problem


@generic
def sense(rule: Any, samples: Any, point: Any, k: int) -> int:
    """Bring the rule's gradient up to date with block k at ``point.x``; return the number of samples touched."""


@generic
def move(rule: Any, point: Any, k: int) -> None:
    """``point.x`` ← the new iterate."""


@generic
def fill(rule: Any, samples: Any, point: Any) -> int:
    """Fill the rule's tables at the starting point; return the number of samples touched."""


class Option(NamedTuple):
    """A setting of one method alone."""

    default: Any
    check: Callable[[Any, str], Any]
    """From a value and its name to the value, sound; raises where it is not."""
    about: str


@dataclass(frozen=True)
class Setup:
    """All that a rule is built from."""

    problem: Problem
    rho: float
    step: float
    batch_size: int
    rho_given: bool = field(default=True, kw_only=True)
    """False: ρ is a suggestion, and the method may choose and change its own."""
    warm: bool = field(default=False, kw_only=True)
    """Did the user say where to start?"""
    tol: float | None = field(default=None, kw_only=True)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """The method's own settings; what is left out takes its default."""
    omega_mode: str
    """How Ω enters: one of the modes the algorithm lists, or "none"."""

    @property
    def n_blocks(self) -> int:
        """The number of fixed blocks."""
        return -(-self.problem.n_samples // self.batch_size)


@dataclass(frozen=True)
class Algorithm:
    """A method: how it is described (Table 1 of the paper), what it needs, and how its rule is built."""

    name: str
    summary: str
    reference: str
    gradient: str
    """"average", "one sample", "average (history)" or "all samples"."""
    linearised: bool
    """Is ‖Ax + By − c‖² linearised?"""
    constant_step: bool
    omega: tuple[str, ...]
    """How Ω may enter, the default first: "prox", "system" (squared ℓ2 only), "fold", "subgradient"."""
    start: Callable[["Setup", Point], "Engine"] = field(repr=False)
    theory_step: Callable[[Problem, float], float] = field(repr=False)
    """The step that the method's theory asks for, from the problem and ρ."""
    full: bool = False
    """Does every step touch all samples?"""
    stepless: bool = False
    """Has it no step to choose?"""
    certifies: bool = False
    """Does it compute its own duality gap, and stop on it?"""
    options: Mapping[str, Option] = field(default_factory=dict, repr=False)
    """Settings of this method alone, by name."""

    def settled(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """All of the method's own settings: those given, checked, and the defaults of the rest."""
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"options={given!r}: it takes a dictionary of the method's own settings, or None")
        for name in given or {}:
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise ValueError(f"options has {name!r}: {self.name} takes {known}")
        return {
            name: option.check(given[name], f"options[{name!r}]") if given and name in given else option.default
            for name, option in self.options.items()
        }


class Engine(Protocol):
    """A method in motion: what the loop in ``run.py`` drives."""

    point: Point
    steps_per_pass: int
    finished: bool
    """Has the method itself met the tolerance, or can it do no more?"""
    certificate: Certificate | None
    """Bounds of the optimum, where the method has them."""

    @property
    def rho(self) -> float:
        """The penalty parameter now."""

    def optimality(self) -> tuple[str, float]:
        """What the method measures itself, "gap" or "kkt", and its value; asked only of a method that certifies."""
        ...

    def finish(self) -> None:
        """Put the answer into ``point``; called once, at the end."""
        ...

    def advance(self, order: np.ndarray) -> None:
        """Take one step for each block index in `order`."""
        ...

    def tables(self) -> dict[str, np.ndarray]:
        """The arrays that carry the method's memory, changed in place as it runs."""
        ...

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Take up the memory of an earlier run."""
        ...


@kernel
def _advance(rule, samples, split, point, theta, order, fresh):
    if fresh:
        couple(split, point, theta)
        point.clock[1] += fill(rule, samples, point)
    for k in order:
        point.clock[1] += sense(rule, samples, point, k)
        move(rule, point, k)
        for j in range(point.x.size):
            point.x_sum[j] += point.x[j]
        split_step(split, point, theta)
        point.clock[0] += 1


class FirstOrderEngine:
    """The compiled loop of sense, move and split."""

    def __init__(self, rule: Any, setup: Setup, point: Point, *, linearised: bool, full: bool = False) -> None:
        self.rule = rule
        self.point = point
        self.steps_per_pass = 1 if full else setup.n_blocks
        self._theta = 1.0 if linearised else 0.0
        self._samples = setup.problem.samples(setup.batch_size)
        self._split = _split.build(setup.problem, setup.rho)
        self._fresh = True
        self.rho = setup.rho
        self.finished = False
        self.certificate: Certificate | None = None
        self._step(np.empty(0, np.int64), False)  # compiles, so that no clock runs meanwhile

    def _step(self, order: np.ndarray, fresh: bool) -> None:
        _advance(self.rule, self._samples, self._split, self.point, self._theta, order, fresh)

    def optimality(self) -> tuple[str, float]:
        """Nothing is measured on the way."""
        return "kkt", np.inf

    def finish(self) -> None:
        """The last iterate is the answer."""

    def advance(self, order: np.ndarray) -> None:
        """Take one step for each block index in `order`; the first call also fills the tables."""
        self._step(order, self._fresh)
        self._fresh = False

    def tables(self) -> dict[str, np.ndarray]:
        """The rule's arrays and the running sums, by name."""
        arrays = {f"rule.{name}": getattr(self.rule, name) for name in getattr(self.rule, "memory", ())}
        return arrays | {name: getattr(self.point, name) for name in self.point._fields}

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Take up the memory of an earlier run."""
        for name, array in self.tables().items():
            if name not in tables or tables[name].shape != array.shape:
                raise ValueError(f"warm_start: the earlier run has no matching table {name!r}")
            array[...] = tables[name]
        self._fresh = bool(self.point.clock[0] == 0)  # a run that never took a step has no memory yet


ALGORITHMS: Registry[Algorithm] = Registry("method")


def chosen(setup: Setup, options: Mapping[str, Option]) -> dict[str, Any]:
    """The values of `options` in `setup`."""
    return {name: setup.options.get(name, option.default) for name, option in options.items()}


def no_tables(rule, samples, point):
    """The ``fill`` of a method that keeps no table: nothing touched."""
    return 0


def inverse(L: float) -> float:
    """1/L, for a smoothness that may be zero."""
    return 1.0 / max(L, np.finfo(float).tiny ** 0.5)


def register(algorithm: Algorithm) -> Algorithm:
    """Make an algorithm known by its name."""
    return ALGORITHMS.add(algorithm.name, algorithm)
