"""What is run: the paper's settings, and a stated choice wherever the paper leaves one open."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

from skadmm._version import __version__
from skadmm.solvers import ALGORITHMS

T = TypeVar("T")

CELL_FORMAT = 2
"""Raised when the content of a saved cell changes its meaning."""

PAPER_METHODS = ("sa-iu-admm", "sa-admm", "stoc-admm", "opg-admm", "rda-admm", "batch-admm", "batch-iu-admm")
"""The seven of the paper, in the order it ranks them."""
BEYOND = ("san-admm",)
"""Methods beyond the paper, drawn in a figure of their own."""
WITH_TABLE = ("sa-iu-admm", "sa-admm")
"""The methods that are also run under other protocols; the others are the same under all of them."""

PROTOCOLS = {
    "paper": "As the paper runs it: the table of gradients is filled at the start x₀, which costs one pass",
    "zero+n": "Not the paper's: the table starts at zero, and the selected step is multiplied by the number of "
    "training samples over the number of samples it was selected on",
    "restored": "Not the paper's: the run starts with one pass of opg-admm, and the selected step is multiplied by the "
    "number of training samples over the number of samples it was selected on",
}
"""How the methods with a table are run, and what that is called in reports."""

MATRICES = ("stacked", "graph")
"""A = [G; I] and A = G."""
PROBLEMS = ("convex", "strong")
"""Figures 1 and 2; figure 3, with an extra squared ℓ2."""
SCALINGS = ("none", "standard", "minmax", "maxabs", "unit-rows")


def base_name(data: str) -> str:
    """A data set's own name: "covertype@minmax" is covertype under a scaling of its own."""
    name, at, scaling = data.rpartition("@")
    return name if at and scaling in SCALINGS else data


@dataclass(frozen=True)
class PerData(Generic[T]):
    """A value for every data set, with exceptions by name.

    Parameters
    ----------
    default : object
        The value of a data set that is not listed.
    exceptions : mapping
        Values by the name of the data set.

    See Also
    --------
    skadmm.paper.Settings : Has such values.

    Examples
    --------
    >>> from skadmm.paper import PerData
    >>> passes = PerData(30.0, {"rcv1": 10.0})
    >>> passes["a9a"], passes["rcv1"]
    (30.0, 10.0)
    """

    default: T
    exceptions: Mapping[str, T] = field(default_factory=dict)

    def __getitem__(self, data: str) -> T:
        return self.exceptions.get(data, self.exceptions.get(base_name(data), self.default))

    def over(self, base: PerData[T] | None) -> PerData[T]:
        """This one, with `base` where nothing was said."""
        return self if base is None else PerData(self.default, {**base.exceptions, **self.exceptions})


_HIGH_DIMENSIONAL = ("rcv1", "sido", "20ng-ltc", "hiv-path4932", "hiva")

STRENGTH = PerData(1e-5, dict.fromkeys(_HIGH_DIMENSIONAL, 1e-4) | dict.fromkeys(("breast-cancer", "digits"), 1e-3))
"""λ, as in the paper; a substitute takes that of what it stands in for, the small built-in sets a larger one."""
BATCH_SIZE = PerData(1, {"rcv1": 20, "20ng-ltc": 20, "sido": 4, "hiv-path4932": 4})
"""One sample per step as in the paper; blocks where the table of points would be gigabytes."""
SCALING = PerData("none", dict.fromkeys(("covertype", "quantum", "qm9mu", "breast-cancer"), "standard"))
"""Columns of very different scale are brought to mean 0 and variance 1, by the training half."""


@dataclass(frozen=True)
class Settings:
    """The settings of one reproduction.

    Every field but `data`, `figures`, `methods` and `matrices` reaches every run that it concerns.

    Parameters
    ----------
    data : tuple of str
        Names of data sets; "covertype@minmax" is covertype under a scaling of its own.
    figures : tuple of int
        Which of the figures 1, 2 and 3.
    methods : tuple of str
        Names in ``skadmm.ALGORITHMS``; empty takes the paper's seven and those beyond it that exist.
    matrices : tuple of str
        "stacked" for A = [G; I], "graph" for A = G.
    repeats : PerData of int
        Runs of each method.
    passes : PerData of float
        Passes over the data in each run.
    record_every : PerData of float
        Passes between two recordings.
    batch_size : PerData of int
        Samples in one block.
    strength : PerData of float
        The strength λ of the penalty.
    scaling : PerData of str
        How columns are scaled: "none", "standard", "minmax", "maxabs" or "unit-rows".
    rho : float
        The penalty parameter ρ.
    mu : float
        The strength of the squared ℓ2 of figure 3.
    graph_alpha : float or "auto"
        The penalty of the graphical lasso that learns the graph.
    graph_degree : float
        The average degree of the graph that "auto" aims at.
    limit : int or None
        Use at most this many samples of a set, for a trial.
    protocols : tuple of str
        How the methods with a table are run, one after the other.
    optimum : bool
        Also solve every problem to high accuracy for the true optimum; otherwise the lowest value found takes its
        place.
    seed : int
        Splits and runs follow from it.

    See Also
    --------
    skadmm.paper.quick : The short form.
    skadmm.paper.reproduce : Runs them.

    Examples
    --------
    >>> from skadmm.paper import Settings
    >>> settings = Settings(data=("a9a",), figures=(1,))
    >>> settings.repeats["a9a"], settings.problems
    (10, ('convex',))
    """

    data: tuple[str, ...]
    figures: tuple[int, ...] = (1, 2, 3)
    methods: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ("stacked",)
    repeats: PerData[int] = PerData(10)
    passes: PerData[float] = PerData(30.0)
    record_every: PerData[float] = PerData(0.5)
    batch_size: PerData[int] = BATCH_SIZE
    strength: PerData[float] = STRENGTH
    scaling: PerData[str] = SCALING
    rho: float = 0.01
    mu: float = 1e-2
    graph_alpha: float | str = "auto"
    graph_degree: float = 2.0
    limit: int | None = None
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    optimum: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.methods:
            object.__setattr__(self, "methods", default_methods())
        for method in self.methods:
            ALGORITHMS[method]
        _among(self.matrices, MATRICES, "matrix")
        _among(self.figures, (1, 2, 3), "figure")
        _among((self.scaling.default, *self.scaling.exceptions.values()), SCALINGS, "scaling")
        _among(self.protocols, tuple(PROTOCOLS), "protocol")
        if "paper" not in self.protocols:
            raise ValueError(f"protocols={', '.join(self.protocols)}: 'paper' must be among them")

    def scaling_of(self, data: str) -> str:
        """The scaling of a data set: the one in its name, or that of the settings."""
        own = data.removeprefix(base_name(data)).removeprefix("@")
        return own or self.scaling[data]

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that the selected figures need."""
        wanted = (bool({1, 2} & set(self.figures)), 3 in self.figures)
        return tuple(problem for problem, needed in zip(PROBLEMS, wanted, strict=True) if needed)

    @property
    def paper_methods(self) -> tuple[str, ...]:
        """Those of the paper's seven that are run."""
        return tuple(method for method in PAPER_METHODS if method in self.methods)

    def as_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            f.name: {"": value.default, **value.exceptions} if isinstance(value, PerData) else value
            for f in fields(self)
            for value in [getattr(self, f.name)]
        }


def default_methods() -> tuple[str, ...]:
    """The paper's seven, and those beyond it that exist."""
    return PAPER_METHODS + tuple(method for method in BEYOND if method in ALGORITHMS)


def _among(values: tuple[Any, ...], allowed: tuple[Any, ...], name: str) -> None:
    for value in values:
        if value not in allowed:
            raise ValueError(f"{name}={value!r}: it takes {', '.join(map(str, allowed))}")


def quick(settings: Settings) -> Settings:
    """Shorten a reproduction so that it takes one to four minutes: built-in data, few repeats and passes.

    Parameters
    ----------
    settings : Settings
        The settings to shorten; methods, figures and other fields are kept.

    Returns
    -------
    Settings
        The short form.

    See Also
    --------
    skadmm.paper.reproduce : Runs it.

    Examples
    --------
    >>> from skadmm.paper import Settings, quick
    >>> short = quick(Settings(data=("a9a",)))
    >>> short.data, short.repeats["digits"]
    (('breast-cancer', 'digits'), 3)
    """
    return replace(
        settings,
        data=("breast-cancer", "digits"),
        repeats=PerData(3),
        passes=PerData(20.0),
        record_every=PerData(1.0),
    )


@dataclass(frozen=True, order=True)
class Cell:
    """One run: what is saved by itself, and never run twice."""

    data: str
    matrix: str
    problem: str
    repeat: int
    method: str
    variant: str = "paper"
    """The protocol, one of ``PROTOCOLS``."""


def cells(settings: Settings) -> Iterator[Cell]:
    """All runs, those that share a training set together."""
    for data in settings.data:
        for repeat in range(settings.repeats[data]):
            problems = list(itertools.product(settings.matrices, settings.problems))
            # Neighbours differ in method, so that workers do not compile the same kernels at the same time.
            for matrix, problem in problems:
                for method in settings.methods:
                    yield Cell(data, matrix, problem, repeat, method)
            for protocol in settings.protocols:
                for (matrix, problem), method in itertools.product(problems, settings.methods):
                    if protocol != "paper" and method in WITH_TABLE:
                        yield Cell(data, matrix, problem, repeat, method, protocol)


def split_settings(settings: Settings, data: str, repeat: int, sha256: str) -> dict[str, Any]:
    """What the training half and its graph depend on."""
    return {
        "format": CELL_FORMAT,
        "skadmm": __version__,
        "data": data,
        "sha256": sha256,
        "limit": settings.limit,
        "repeat": repeat,
        "seed": settings.seed,
        "scaling": settings.scaling_of(data),
        "graph_alpha": settings.graph_alpha,
        "graph_degree": settings.graph_degree,
    }


def problem_settings(settings: Settings, cell: Cell, sha256: str) -> dict[str, Any]:
    """What the problem of a cell depends on: the same for all its methods."""
    return split_settings(settings, cell.data, cell.repeat, sha256) | {
        "matrix": cell.matrix,
        "problem": cell.problem,
        "strength": settings.strength[cell.data],
        "mu": settings.mu if cell.problem == "strong" else 0.0,
    }


def cell_settings(settings: Settings, cell: Cell, sha256: str) -> dict[str, Any]:
    """Everything that the outcome of a cell depends on."""
    return problem_settings(settings, cell, sha256) | {
        "method": cell.method,
        "variant": cell.variant,
        "rho": settings.rho,
        "batch_size": settings.batch_size[cell.data],
        "passes": settings.passes[cell.data],
        "record_every": settings.record_every[cell.data],
    }


def fingerprint(known: Mapping[str, Any]) -> str:
    """A name for some settings: equal exactly when they are."""
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]
