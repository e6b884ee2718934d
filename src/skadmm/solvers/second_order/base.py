"""What a second-order solver is: a frozen Config, a State dataclass and a step.

A solver object holds what does not change during a run: the problem, the settings and what follows from them. All that
changes is in its state, field by field, and a checkpoint is that state. :class:`SolverEngine` runs a solver for the
driver, and switches to the next one where a solver becomes slow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from skadmm import _checks
from skadmm.backends.base import Evaluation
from skadmm.io import state as stored
from skadmm.io.state import transient
from skadmm.kernels.threads import one_thread
from skadmm.oracle import LostMemory
from skadmm.problem.certificate import Assessment, Certificate, Certifier
from skadmm.problem.problem import Problem
from skadmm.regularizers import SquaredL2, with_strength
from skadmm.solvers.base import Setup
from skadmm.solvers.dual_update import Point
from skadmm.solvers.second_order.stretch import Accuracy, Stretch


@dataclass(kw_only=True)
class SolverState:
    """What every second-order solver keeps between two steps."""

    point: Point
    """x, y, the scaled dual, their running sums and the clock; the driver reads the same arrays."""
    rho: float
    """The penalty parameter: the multiplier is ρ times the scaled dual."""
    multiplier: np.ndarray
    """β, the multiplier of A x + B y = c."""
    objective: float = np.inf
    """The objective at the current point of the solver."""
    lower_bound: float = -np.inf
    """The largest lower bound of the optimum found so far."""
    steps: int = 0
    """The number of steps made."""
    finished: bool = False
    """True where the solver has met the tolerance."""
    stalled: bool = False
    """True where the solver cannot improve its point any more."""


S = TypeVar("S", bound=SolverState)


class SecondOrderSolver(ABC, Generic[S]):
    """The base class of the second-order solvers: a solver on one problem.

    What does not change during a run is in the object, what changes is in its state; a subclass adds ``applies``,
    ``init``, ``step`` and ``finish``. CONTRIBUTING has the recipe.

    Parameters
    ----------
    setup : Setup
        The problem, the tolerance and other settings of the run.
    config : Config, optional
        The settings of this solver, an instance of the class attribute ``Config``.

    See Also
    --------
    skadmm.solvers.register_solver : Make a subclass known by its name.

    Examples
    --------
    >>> from skadmm import SOLVERS
    >>> SOLVERS["newton-admm"].summary
    'Second-order models of the loss, minimised with ψ by sweeps of ADMM'
    >>> SOLVERS["coordinate-descent"].Config().first_selected
    100
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    Config: ClassVar[type[Any]]
    """A frozen dataclass with a documented field for every setting."""
    takes_kinks: ClassVar[bool] = False
    """True where the solver takes losses that are not differentiable."""

    def __init__(self, setup: Setup, config: Any = None) -> None:
        self.setup, self.problem, self.tol = setup, setup.problem, setup.tol
        self.config = self.Config() if config is None else config
        self.certifier = Certifier(setup.problem)

    @classmethod
    @abstractmethod
    def applies(cls, problem: Problem) -> str | None:
        """Why the solver cannot take a problem; None when it can."""

    @classmethod
    def reason_against(cls, problem: Problem) -> str | None:
        """Why the solver cannot take a problem, its loss included; None when it can."""
        if not (problem.loss.smooth or cls.takes_kinks):
            return f"loss={problem.loss.name} has kinks, and it takes differentiable losses"
        return cls.applies(problem)

    @classmethod
    def alone(cls, config: Any) -> Any:
        """The settings with which the solver runs when no other solver can take over from it."""
        return config

    @classmethod
    def engine(cls, setup: Setup, point: Point, config: Any = None, rho: float | None = None) -> SolverEngine[S]:
        """The solver at the start of a run from `point`; `rho` is that of the setup unless given."""
        solver = cls(setup, config)
        return SolverEngine(solver, solver.init(point, setup.rho if rho is None else rho))

    @abstractmethod
    def init(self, point: Point, rho: float) -> S:
        """The state at the start, from a point with the penalty parameter `rho`; reads no samples."""

    @abstractmethod
    def step(self, state: S) -> None:
        """One step; counts the samples it touches in ``state.point.clock[1]``."""

    @abstractmethod
    def finish(self, state: S) -> None:
        """Put the solution into ``state.point``, certified where it can be; called once, at the end of a run."""

    def slow(self, state: S) -> bool:
        """Return whether another solver would be faster, or this one has stopped before it met the tolerance."""
        return state.stalled and self.tol is not None and self.optimality(state)[1] > self.tol

    def optimality(self, state: S) -> tuple[str, float]:
        """("gap", the relative duality gap), or ("kkt", the relative KKT residual) where there is no certificate."""
        if self.certifier.kind != "none":
            return "gap", self.certifier.pair(state.objective, state.lower_bound).relative
        point, gradient = state.point, self.loss_gradient(state)
        loss = None if gradient is None else self.last_loss(state)
        return "kkt", self.problem.kkt(point.x, point.y, state.multiplier, gradient, loss).relative

    def loss_gradient(self, state: S) -> np.ndarray | None:
        """The gradient of the mean loss at ``state.point.x``, where the solver knows it."""
        return None

    def last_loss(self, state: S) -> float:
        """The mean loss at the current point of the solver."""
        return state.objective - self.problem.penalty(state.point.x)

    def certificate(self, state: S) -> Certificate | None:
        """Bounds of the optimum."""
        return self.certifier.pair(state.objective, state.lower_bound)

    def evaluated_at(self, state: S, x: np.ndarray) -> Evaluation | None:
        """The solver's own evaluation of all samples at `x`, where it keeps one."""
        return None

    def assessed(self, state: S, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The solver's own assessment of (x, y), where that is its point and the assessment is more accurate than the
        general evaluation."""
        return None

    def ran(self, state: S) -> str:
        """What ran, in a few words: the name, with those of the solvers that it has called where there are any."""
        return self.name

    def give_up(self, state: S) -> None:
        """Put the last complete point into ``state.point``; called in place of ``finish`` when time is up."""

    def close(self, state: S) -> None:
        """Release what workers keep for the run, because it has ended."""

    def warm_start(self, state: S) -> None:
        """Adapt the state to ``state.point`` and ``state.rho``, which have been set from an earlier run."""
        state.multiplier = state.rho * state.point.dual

    def stored(self, state: S) -> dict[str, Any]:
        """The state as plain values, for a checkpoint."""
        return stored.capture(state)

    def restore(self, state: S, kept: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""
        stored.restore(state, kept)

    def reweighted(self, problem: Problem) -> Self:
        """The same solver for the same problem with another strength of ψ."""
        return type(self)(replace(self.setup, problem=problem), self.config)

    def aim_at(self, tol: float) -> None:
        """Stop at another tolerance."""
        self.setup, self.tol = replace(self.setup, tol=tol), tol

    def follow(self, state: S, problem: Problem) -> S:
        """This solver's state at the start of `problem`, which differs from the last one in the strength of ψ alone:
        from the last solution, with the multiplier scaled into its new bounds.

        Called on the solver that :meth:`reweighted` made, with the state of the one before.
        """
        state.point.dual[:] *= self.dual_ratio(problem)
        return self.init(state.point, state.rho)

    def dual_ratio(self, before: Problem) -> float:
        """What brings the multiplier of a problem with another strength of ψ into the bounds of this one."""
        return self.problem.psi.strength / before.psi.strength if before.psi.strength > 0.0 else 1.0

    def follow_many(self, state: S, strengths: np.ndarray, accuracy: Accuracy) -> Stretch | None:
        """Solve for decreasing strengths of ψ at once, from the point of `state`, as far as they reach the accuracy.

        The state ends at the last strength that was solved. Most solvers take one strength at a time and return None;
        this is for solvers whose steps take less time than the work around them.
        """
        return None

    def raise_bound(
        self,
        state: S,
        slopes: np.ndarray,
        margins: np.ndarray,
        gradient: np.ndarray,
        slack: np.ndarray | None = None,
        *,
        objective: float | None = None,
        multiplier: np.ndarray | None = None,
    ) -> None:
        """Improve the lower bound by that of these slopes and their gradient; counts the samples it touches. Objective
        and multiplier are those of the state unless given."""
        if self.certifier.kind == "none":
            return
        if self.certifier.free.size:
            orthogonal = self.certifier.orthogonal_slopes(slopes, margins)
            if orthogonal is None:
                return
            slopes, gradient, touched = orthogonal
            state.point.clock[1] += touched
        objective = state.objective if objective is None else objective
        multiplier = state.multiplier if multiplier is None else multiplier
        bounds = self.certifier.certify(objective, slopes, gradient, multiplier, slack)
        state.lower_bound = max(self.certifier.consistent(state.lower_bound, objective), bounds.dual)


@dataclass(kw_only=True)
class OracleState(SolverState):
    """State of a solver that asks an oracle about the samples."""

    oracle: Any = transient()
    """Margins, slopes and curvatures of the samples, wherever they are kept; a checkpoint stores it separately."""


Q = TypeVar("Q", bound=OracleState)


class OracleSolver(SecondOrderSolver[Q]):
    """A solver that asks an oracle about the samples, which may be on workers.

    A step during which a worker has lost its memory is made again, from the point that it has come to; a checkpoint
    holds the solver's state and the oracle's.
    """

    @abstractmethod
    def _forget(self, state: Q) -> None:
        """Drop what is known of the samples, because the oracle has lost what it kept for them."""

    @abstractmethod
    def _step(self, state: Q) -> None:
        """One step, which may end early where a worker has lost its memory."""

    def step(self, state: Q) -> None:
        """One step; made again where a worker has lost its memory."""
        self._whole(state, self._step)

    def _whole(self, state: Q, step: Callable[[Q], None]) -> None:
        """Take a step; where a worker has lost its memory meanwhile, once more."""
        try:
            step(state)
        except LostMemory:
            state.oracle.restart()
            self._forget(state)
            self._whole(state, step)

    def close(self, state: Q) -> None:
        """Let the workers drop what they keep for the samples."""
        state.oracle.close()

    def stored(self, state: Q) -> dict[str, Any]:
        """The state, with the oracle's."""
        return {"solver": stored.capture(state), "oracle": state.oracle.state()}

    def restore(self, state: Q, kept: dict[str, Any]) -> None:
        """Restore the state from a checkpoint; samples whose numbers are lost are evaluated again."""
        stored.restore(state, kept["solver"])
        if not state.oracle.resume(kept["oracle"]):
            self._forget(state)


class Entry(NamedTuple):
    """A solver, and the settings with which it runs."""

    solver: type[SecondOrderSolver[Any]]
    config: Any = None
    """The solver's Config; None takes the defaults."""


class SolverEngine(Generic[S]):
    """A second-order solver during a run, as the driver uses it, and the solvers that take over when it is slow.

    ``point``, ``rho`` and ``finished`` are those of the state, brought up to date after every step.
    """

    steps_per_pass = 1
    averages = False
    reason = ""
    """Why these solvers run, in words."""

    def __init__(
        self,
        solver: SecondOrderSolver[S],
        state: S,
        then: Sequence[Entry] = (),
        rescuers: Callable[[], Sequence[Entry]] = tuple,
    ) -> None:
        """`state` is that of `solver` at the start. `then` are the solvers that take over from it, and from each
        other, in this order; `rescuers` names those that follow them, and is called only where they are needed."""
        self.entries = (Entry(type(solver), solver.config), *then)
        self._rescuers: Callable[[], Sequence[Entry]] | None = rescuers
        self.solver_name = solver.name
        self.number = 0
        """The index of the solver that is running."""
        self.solver, self.setup = solver, solver.setup
        self._stand(state)

    def _stand(self, state: S) -> None:
        """Set the point, ρ and status of the engine to those of `state`."""
        self.current, self.point, self.rho = state, state.point, state.rho
        self.finished = state.finished or state.stalled

    def _switch_to(self, number: int) -> None:
        """Start another solver from the point and ρ of the running one."""
        solver, config = self.entries[number]
        self.solver, self.number = solver(self.setup, config), number
        self.solver_name = ", then ".join(entry.solver.name for entry in self.entries[: number + 1])
        self._stand(self.solver.init(self.point, self.rho))

    @property
    def ran(self) -> str:
        """The solvers that have run, with those that the last one has called."""
        before = [entry.solver.name for entry in self.entries[: self.number]]
        return ", then ".join([*before, self.solver.ran(self.current)])

    def _has(self, number: int) -> bool:
        """Return whether there is a solver of this index, rescuers included."""
        if number >= len(self.entries) and self._rescuers is not None:
            self.entries, self._rescuers = (*self.entries, *self._rescuers()), None
        return number < len(self.entries)

    @property
    def slow(self) -> bool:
        """Return whether another solver should take over."""
        return self.solver.slow(self.current)

    @property
    def certificate(self) -> Certificate | None:
        """Bounds of the optimum."""
        return self.solver.certificate(self.current)

    def optimality(self) -> tuple[str, float]:
        """The measure of optimality of the running solver."""
        return self.solver.optimality(self.current)

    def advance(self, order: np.ndarray, until: float = np.inf) -> None:
        """Take at most as many steps as `order` has entries, and none once `until` samples have been touched. Each
        solver runs as long as it is not slow."""
        left = len(order)
        with one_thread():
            left -= self._steps(left, until)
            while self.solver.slow(self.current) and self._has(self.number + 1):
                self.give_up()
                self.close()
                self._switch_to(self.number + 1)
                left -= self._steps(left, until)

    def _steps(self, limit: int, until: float) -> int:
        """Take steps of the running solver, and return how many."""
        state = self.current
        try:
            for made in range(limit):
                point = state.point
                if state.finished or state.stalled or point.clock[1] >= until:
                    return made
                self.solver.step(state)
                state.steps += 1
                state.point.clock[0] += 1
        finally:
            self._stand(state)
        return limit

    def last_loss(self) -> float:
        """The mean loss at the current point of the solver."""
        return self.solver.last_loss(self.current)

    def evaluated_at(self, x: np.ndarray) -> Evaluation | None:
        """The evaluation that the running solver keeps."""
        return self.solver.evaluated_at(self.current, x)

    def assessed(self, x: np.ndarray, y: np.ndarray) -> Assessment | None:
        """The assessment of the running solver."""
        return self.solver.assessed(self.current, x, y)

    def finish(self) -> None:
        """The solver's solution."""
        with one_thread():
            self.solver.finish(self.current)
        self._stand(self.current)

    def give_up(self) -> None:
        """The last complete point of the solver."""
        self.solver.give_up(self.current)
        self._stand(self.current)

    def close(self) -> None:
        """Release what workers keep."""
        self.solver.close(self.current)

    def state(self) -> dict[str, Any]:
        """Which solver is running, and its state, field by field."""
        return {"number": self.number, "solver": self.solver.stored(self.current)}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        number = state["number"]
        if not isinstance(number, int) or isinstance(number, bool) or number < 0 or not self._has(number):
            raise ValueError("'number' is not the index of one of the solvers")
        if number != self.number:
            self._switch_to(number)
        self.solver.restore(self.current, state["solver"])
        self._stand(self.current)

    def tables(self) -> dict[str, np.ndarray]:
        """The point and ρ, for a warm start; models are fast to build again."""
        return self.point._asdict() | {"rho": np.array([self.rho])}

    def restore(self, tables: dict[str, np.ndarray]) -> None:
        """Start from the point of an earlier run."""
        for name, array in self.point._asdict().items():
            if name not in tables or tables[name].shape != array.shape:
                raise ValueError(f"warm_start: the earlier run has no matching table {name!r}")
            array[...] = tables[name]
        self.current.rho = float(tables["rho"][0])
        self.solver.warm_start(self.current)
        self._stand(self.current)

    def follow(self, problem: Problem, tol: float | None = None) -> None:
        """Continue with `problem`, which differs only in the strength of ψ, starting with the first solver again; `tol`
        replaces the tolerance where it is given."""
        self.setup = replace(self.setup, problem=problem, tol=self.setup.tol if tol is None else tol)
        if self.number == 0:
            self.solver, before = self.solver.reweighted(problem), self.solver.problem
            if tol is not None:
                self.solver.aim_at(tol)
            self._stand(self.solver.follow(self.current, before))
        else:
            self.close()
            self._switch_to(0)

    def follow_many(self, strengths: np.ndarray, accuracy: Accuracy) -> Stretch | None:
        """As many strengths as the first solver can take at once; None where it takes one at a time."""
        if self.number:
            return None
        stretch = self.solver.follow_many(self.current, strengths, accuracy)
        if stretch is not None and stretch.losses.size:
            psi = with_strength(self.setup.problem.psi, float(strengths[stretch.losses.size - 1]))
            self.setup = replace(self.setup, problem=self.setup.problem.replace(psi=psi))
            self.solver = self.solver.reweighted(self.setup.problem)
            self._stand(self.current)
        return stretch


def config_from(solver: type[SecondOrderSolver[Any]], given: Mapping[str, Any]) -> Any:
    """The Config of a solver from settings by name; an error that lists the names it takes."""
    known = {field.name: field.default for field in fields(solver.Config)}
    for name in given:
        if name not in known:
            raise ValueError(f"options has {name!r}: {solver.name} takes {', '.join(sorted(known)) or 'none'}")
    return solver.Config(**{name: _like(known[name], value, f"options[{name!r}]") for name, value in given.items()})


def _like(default: Any, value: Any, name: str) -> Any:
    """`value` as the type of `default`; counts are positive and other numbers not negative."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r}: it takes True or False")
        return value
    if isinstance(default, tuple):
        if not isinstance(value, (tuple, list)) or not len(value):
            raise ValueError(f"{name}={value!r}: it takes a tuple of numbers")
        return tuple(_like(default[0], entry, name) for entry in value)
    if isinstance(default, int):
        return _checks.count(value, name, least=min(default, 1))
    return _checks.number(value, name, least=0) if isinstance(default, float) else value


def ridge_of(problem: Problem) -> Any:
    """The strength of a squared ℓ2 that Ω is, a vector where it has weights; 0 where it is none."""
    omega = problem.omega
    if not isinstance(omega, SquaredL2):
        return 0.0
    return omega.strength * omega.weights if omega.weights.size else omega.strength
