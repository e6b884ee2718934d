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
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from skadmm._names import Registry
from skadmm.backends import Evaluation
from skadmm.kernels.compile import generic, kernel
from skadmm.problem.certificate import Assessment, Certificate
from skadmm.problem.problem import Problem
from skadmm.solvers import dual_update
from skadmm.solvers.dual_update import Point, couple, y_dual_update

PULSES = 64
"""A table is filled in so many parts; between two of them a run can be stopped."""


@generic
def update_gradient(rule: Any, samples: Any, point: Any, k: int) -> int:
    """Bring the rule's gradient up to date with block k at ``point.x``; return the number of samples touched."""


@generic
def x_update(rule: Any, point: Any, k: int) -> None:
    """``point.x`` ← the new iterate."""


@generic
def init_table(rule: Any, samples: Any, point: Any, k: int) -> int:
    """Fill the rule's tables with block k at the starting point; return the number of samples touched."""


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
    staleness: int = field(default=0, kw_only=True)
    """On a cluster: by how many steps a block's answer may be late."""
    checkpoint: Any = field(default=None, kw_only=True)
    """Where the run is kept, for those who keep something beside it."""
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """The method's own settings; what is left out takes its default."""
    solver: str = field(default="", kw_only=True)
    """The second-order solver asked for by name; empty leaves the choice to the method."""
    omega_mode: str
    """How Ω enters: one of the modes the algorithm lists, or "none"."""

    @property
    def n_blocks(self) -> int:
        """The number of fixed blocks."""
        return self.problem.n_blocks(self.batch_size)

    @cached_property
    def block_sizes(self) -> np.ndarray:
        """The number of samples in each block."""
        return self.problem.backend.block_sizes(self.batch_size)


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

    @property
    def point(self) -> Point:
        """x, y, the scaled dual, their running sums and the clock."""

    @property
    def solver_name(self) -> str:
        """The solvers that have run so far, by name; empty where the method has only itself."""

    @property
    def steps_per_pass(self) -> int:
        """How many steps touch every sample once."""

    @property
    def finished(self) -> bool:
        """Has the method itself met the tolerance, or can it do no more?"""

    @property
    def certificate(self) -> Certificate | None:
        """Bounds of the optimum, where the method has them."""

    @property
    def rho(self) -> float:
        """The penalty parameter now."""

    def optimality(self) -> tuple[str, float]:
        """What the method measures itself, "gap" or "kkt", and its value; asked only of a method that certifies."""
        ...

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """What the method saw at `x`, where that was its last look at all samples and it keeps such things: whoever
        wants to know how x stands need not look again."""
        ...

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The method's own assessment of (x, y), where that is its point and it has digits that the general evaluation
        has not."""
        ...

    def finish(self) -> None:
        """Put the answer into ``point``; called once, at the end."""
        ...

    def give_up(self) -> None:
        """Put the last sound point into ``point``; called instead of ``finish`` when there is no time for that."""
        ...

    def close(self) -> None:
        """The run is over: let go of what others keep for it."""
        ...

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Take one step for each block index in `order`, but none once `until` samples have been touched."""
        ...

    def tables(self) -> dict[str, np.ndarray]:
        """The arrays that carry the method's memory, changed in place as it runs."""
        ...

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Take up the memory of an earlier run."""
        ...

    def state(self) -> dict[str, Any]:
        """All that a checkpoint has to keep, so that :meth:`resume` goes on as if never stopped."""
        ...

    def resume(self, state: dict[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        ...


@kernel
def couple_at_start(split, point, theta):
    """The coupling before the first step."""
    couple(split, point, theta)


@kernel
def _init_table(rule, samples, point, first, stop):
    touched = 0
    for k in range(first, stop):
        touched += init_table(rule, samples, point, k)
    return touched


@kernel
def x_and_dual_update(rule, split, point, theta, k):
    """The rest of a step, once the gradient is up to date."""
    x_update(rule, point, k)
    for j in range(point.x.size):
        point.x_sum[j] += point.x[j]
    y_dual_update(split, point, theta)
    point.clock[0] += 1


@kernel
def _advance(rule, samples, split, point, theta, order, until):
    for k in order:
        if point.clock[1] >= until:
            break
        point.clock[1] += update_gradient(rule, samples, point, k)
        x_and_dual_update(rule, split, point, theta, k)


class CompiledSteps:
    """Rows within reach of compiled code: all steps in one kernel."""

    def __init__(self, rule: Any, setup: Setup, split: Any, point: Point, theta: float) -> None:
        self._arguments = (rule, setup.problem.samples(setup.batch_size))
        self._split, self._point, self._theta, self._n_blocks = split, point, theta, setup.n_blocks
        self._problem, self._batch_size = setup.problem, setup.batch_size
        _init_table(*self._arguments, point, 0, 0)  # compiles, so that no clock runs meanwhile
        self.take(np.empty(0, np.int64), 0.0)

    def init_table(self) -> int:
        """Fill the tables, some blocks at a time; the number of samples touched."""
        couple_at_start(self._split, self._point, self._theta)
        rows_per_chunk = -(-self._n_blocks // PULSES)
        touched = 0
        for first in range(0, self._n_blocks, rows_per_chunk):
            self._problem.backend.between_chunks()
            touched += _init_table(*self._arguments, self._point, first, min(first + rows_per_chunk, self._n_blocks))
        return touched

    def take(self, order: np.ndarray, until: float) -> None:
        """One step for each block in `order`."""
        self._problem.backend.between_chunks()
        self._problem.backend.prefetch(order, self._batch_size)
        _advance(*self._arguments, self._split, self._point, self._theta, order, until)


def steps_of(rule: Any, setup: Setup) -> Any:
    """How this problem's rows are read: in one kernel, or block by block where they are elsewhere, or very many."""
    problem, reads = setup.problem, getattr(rule, "reads", "")
    if problem.backend.local_rows and (reads != "all" or problem.n_samples <= problem.rows_per_chunk):
        return CompiledSteps
    from skadmm.solvers.first_order import blockwise

    return blockwise.STEPS[reads]


class FirstOrderEngine:
    """The compiled loop of sense, move and split."""

    solver_name = ""

    def __init__(self, rule: Any, setup: Setup, point: Point, *, linearised: bool, full: bool = False) -> None:
        self.rule = rule
        self.point = point
        self.steps_per_pass = 1 if full else setup.n_blocks
        split = dual_update.build(setup.problem, setup.rho)
        self._steps: Any = steps_of(rule, setup)(rule, setup, split, point, 1.0 if linearised else 0.0)
        self._fresh = True
        self.rho = setup.rho
        self.finished = False
        self.certificate: Certificate | None = None

    def optimality(self) -> tuple[str, float]:
        """Nothing is measured on the way."""
        return "kkt", np.inf

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """Nothing is kept."""
        return None

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The general evaluation is as good."""
        return None

    def finish(self) -> None:
        """The last iterate is the answer."""

    def give_up(self) -> None:
        """The last iterate is the answer."""

    def close(self) -> None:
        """Nobody keeps anything."""

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Take one step for each block index in `order`; the first call also fills the tables."""
        if self._fresh:
            self.point.clock[1] += self._steps.init_table()
            self._fresh = False
        self._steps.take(order, float(until))

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
        self._fresh = not self.point.clock.any()  # a run that never touched a sample has no memory yet

    def state(self) -> dict[str, Any]:
        """The tables."""
        return dict(self.tables())

    def resume(self, state: dict[str, Any]) -> None:
        """Take up the tables."""
        self.restore(state)


ALGORITHMS: Registry[Algorithm] = Registry("method")


def chosen(setup: Setup, options: Mapping[str, Option]) -> dict[str, Any]:
    """The values of `options` in `setup`."""
    return {name: setup.options.get(name, option.default) for name, option in options.items()}


def no_tables(rule, samples, point, k):
    """The ``fill`` of a method that keeps no table: nothing touched."""
    return 0


def inverse(L: float) -> float:
    """1/L, for a smoothness that may be zero."""
    return 1.0 / max(L, np.finfo(float).tiny ** 0.5)


def register(algorithm: Algorithm) -> Algorithm:
    """Make an algorithm known by its name."""
    return ALGORITHMS.add(algorithm.name, algorithm)
