"""What an algorithm is: a rule for x, without loops, clocks or printing.

One step of every first-order method is

    update_gradient   read the samples of a block, and update the rule's gradient at the current x
    x_update          the new x from that gradient and the coupling with y and the dual
    y_dual_update     y and the dual (``dual_update.py``, the same for all methods)

A method's file holds its rule (a ``NamedTuple`` of constants and tables), attaches ``update_gradient`` and
``x_update``, and registers an :class:`Algorithm`. Only ``update_gradient`` reads rows, so they may be elsewhere.
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
from skadmm.solvers.dual_update import Point, couple, y_dual_update

BY_GRADIENT = -1
"""What ``init_table`` returns where ``update_gradient`` fills the tables."""


@generic
def update_gradient(rule: Any, samples: Any, point: Any, k: int) -> int:
    """Bring the rule's gradient up to date with block k at ``point.x``; return the number of samples touched."""


@generic
def x_update(rule: Any, point: Any, k: int) -> None:
    """``point.x`` ← the new iterate."""


@generic
def init_table(rule: Any, samples: Any, point: Any, k: int) -> int:
    """Fill the rule's tables with block k at the starting point; return the number of samples touched, or BY_GRADIENT
    where ``update_gradient`` is to follow, which returns it."""


class Option(NamedTuple):
    """A setting that one method has and others do not."""

    default: Any
    check: Callable[[Any, str], Any]
    """From a value and its name to the checked value; raises where it is not allowed."""
    about: str


@dataclass(frozen=True)
class Setup:
    """What a method is started with.

    Parameters
    ----------
    problem : Problem
        The problem.
    rho : float
        The penalty parameter ρ.
    step : float
        The step size.
    batch_size : int
        Samples in one block.
    omega_mode : str
        How Ω enters: one of the modes that the algorithm lists, or "none".
    rho_given : bool
        False where ρ is a default, which the method may change.
    warm : bool
        True where the user gave the starting point.
    tol : float or None
        The tolerance to stop at.
    staleness : int
        On a cluster, by how many steps the point of a block's gradient may be older than the current one.
    checkpoint : object or None
        The checkpoint of the run, for methods that store a part of it on workers.
    options : mapping
        The settings of the method alone; those left out take their defaults.
    solver : str
        The second-order solver that the user named; empty leaves the choice to the method.

    See Also
    --------
    skadmm.solvers.Engine : What a method makes of it.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.solvers import Setup
    >>> problem = Problem(np.eye(4), np.ones(4), loss="squared")
    >>> Setup(problem, rho=0.01, step=1.0, batch_size=2, omega_mode="none").n_blocks
    2
    """

    problem: Problem
    rho: float
    step: float
    batch_size: int
    rho_given: bool = field(default=True, kw_only=True)
    warm: bool = field(default=False, kw_only=True)
    tol: float | None = field(default=None, kw_only=True)
    staleness: int = field(default=0, kw_only=True)
    checkpoint: Any = field(default=None, kw_only=True)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    solver: str = field(default="", kw_only=True)
    omega_mode: str

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
    """A first-order method, or the second-order default, as an entry of ``skadmm.ALGORITHMS``.

    Parameters
    ----------
    name : str
        The name that ``solve`` takes.
    summary : str
        One sentence without its full stop.
    reference : str
        Where the method was published.
    gradient : str
        The gradient that a step uses: "average", "one sample", "average (history)" or "all samples".
    linearised : bool
        True where ‖Ax + By − c‖² is linearised.
    constant_step : bool
        True where the step size does not change during a run.
    omega : tuple of str
        How Ω may enter, the default first: "prox", "system" (squared ℓ2 only), "fold", "subgradient".
    start : callable
        From a :class:`Setup` and a starting point to an :class:`Engine`.
    theory_step : callable
        From the problem and ρ to the step size of the method's theory.
    full : bool
        True where every step reads all samples.
    stepless : bool
        True where there is no step size.
    certifies : bool
        True where the method computes a duality gap itself, and stops on it.
    options : mapping of str to Option
        The settings of this method alone.

    See Also
    --------
    skadmm.solvers.SecondOrderSolver : The base class of the second-order solvers.

    Examples
    --------
    >>> from skadmm import ALGORITHMS
    >>> ALGORITHMS["sa-admm"].gradient, ALGORITHMS["sa-admm"].linearised
    ('average', False)
    >>> sorted(ALGORITHMS["svrg-admm"].options)
    ['epoch', 'form']
    """

    name: str
    summary: str
    reference: str
    gradient: str
    linearised: bool
    constant_step: bool
    omega: tuple[str, ...]
    start: Callable[["Setup", Point], "Engine"] = field(repr=False)
    theory_step: Callable[[Problem, float], float] = field(repr=False)
    full: bool = False
    stepless: bool = False
    certifies: bool = False
    options: Mapping[str, Option] = field(default_factory=dict, repr=False)

    def settled(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The settings of this method alone: those given, checked, and the defaults of the rest."""
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
    """A method during a run, as the loop in ``run/driver.py`` uses it; a Protocol for type checkers.

    Attributes
    ----------
    reason : str
        Why these solvers run, in words; empty where there was no choice.

    See Also
    --------
    skadmm.solvers.Setup : What an engine is made from.

    Examples
    --------
    An engine is made by the function ``start`` of an algorithm:

    >>> from skadmm import ALGORITHMS
    >>> callable(ALGORITHMS["sa-admm"].start)
    True
    """

    @property
    def point(self) -> Point:
        """x, y, the scaled dual, their running sums and the clock."""

    reason: str

    @property
    def solver_name(self) -> str:
        """The solvers that have run so far, by name; empty where the method has only itself."""

    @property
    def ran(self) -> str:
        """The same, with the solvers that the last one has called."""

    @property
    def steps_per_pass(self) -> int:
        """How many steps touch every sample once."""

    @property
    def averages(self) -> bool:
        """True where the means over all steps are of interest, as those of a stochastic method are."""

    @property
    def finished(self) -> bool:
        """True where the method has met the tolerance, or cannot improve the point any more."""

    @property
    def certificate(self) -> Certificate | None:
        """Bounds of the optimum, where the method has them."""

    @property
    def rho(self) -> float:
        """The penalty parameter now."""

    def optimality(self) -> tuple[str, float]:
        """The measure that the method stops on, "gap" or "kkt", and its value; only where ``Algorithm.certifies``."""
        ...

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """The last evaluation of all samples, where it was at `x` and is kept, so that recording reads nothing."""
        ...

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The method's own assessment of (x, y), where that is its point and the assessment is more accurate than the
        general evaluation."""
        ...

    def finish(self) -> None:
        """Put the answer into ``point``; called once, at the end."""
        ...

    def give_up(self) -> None:
        """Put the last complete iterate into ``point``; called instead of ``finish`` when there is no time for that."""
        ...

    def close(self) -> None:
        """Release what workers keep for the run, because it has ended."""
        ...

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Take one step for each block index in `order`, but none once `until` samples have been touched."""
        ...

    def tables(self) -> dict[str, np.ndarray]:
        """The arrays that a warm start continues from, changed in place as the method runs."""
        ...

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Continue from the tables of an earlier run."""
        ...

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint, from which :meth:`resume` continues as if the run had never stopped."""
        ...

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        ...


@kernel
def couple_at_start(split, point, theta):
    """The coupling before the first step."""
    couple(split, point, theta)


@kernel
def x_and_dual_update(rule, split, point, theta, k):
    """The rest of a step, once the gradient is up to date."""
    x_update(rule, point, k)
    for j in range(point.x.size):
        point.x_sum[j] += point.x[j]
    y_dual_update(split, point, theta)
    point.clock[0] += 1


ALGORITHMS: Registry[Algorithm] = Registry("method")


def chosen(setup: Setup, options: Mapping[str, Option]) -> dict[str, Any]:
    """The values of `options` in `setup`."""
    return {name: setup.options.get(name, option.default) for name, option in options.items()}


def no_tables(rule, samples, point, k):
    """The ``init_table`` of a method that keeps no table: nothing touched."""
    return 0


def inverse(L: float) -> float:
    """1/L, for a smoothness that may be zero."""
    return 1.0 / max(L, np.finfo(float).tiny ** 0.5)


def register(algorithm: Algorithm) -> Algorithm:
    """Make an algorithm known by its name."""
    return ALGORITHMS.add(algorithm.name, algorithm)
