"""The settings of cross-validation: how models are scored, which rows are held out, and where metadata go."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from skadmm import _checks
from skadmm._names import unexpected
from skadmm.backends.sources import is_npz, read_npz
from skadmm.estimators._large import LargeTable

SELECTIONS = ("min", "1se", "aic", "bic")
FIT_TAKES = ("X", "y", "sample_weight", "groups", "offset")


class Split(NamedTuple):
    """One fold: the rows to fit, the rows held out, and a random state of its own. Rows of a large table are masks."""

    train: np.ndarray
    test: np.ndarray
    random_state: Any


class Judge(NamedTuple):
    """How a model is scored on held-out rows: by the loss, or by a scorer of scikit-learn."""

    scorer: Callable[..., float] | None
    """The scorer; None for the mean held-out loss, where lower is better."""
    options: dict[str, Any]
    """What the scorer takes besides the model, X and y: one entry per sample."""
    given: Any = None
    """`scoring`, for messages."""

    @property
    def sign(self) -> float:
        """−1 where higher is better."""
        return 1.0 if self.scorer is None else -1.0

    def weighing(self, sample_weight: np.ndarray | None) -> Judge:
        """The judge with these weights where it has the name of a column of them."""
        named = isinstance(self.options.get("sample_weight"), str)
        return self._replace(options=self.options | {"sample_weight": sample_weight}) if named else self

    def scores(self, models: Iterable[Any], X: Any, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        """The score of each model on the rows held out."""
        assert self.scorer is not None
        options = {name: np.asarray(value)[test] for name, value in self.options.items() if value is not None}
        try:
            return np.array([float(self.scorer(model, X, y, **options)) for model in models])
        except ValueError as error:
            raise ValueError(f"scoring={self.given!r} fails on the rows held out: {error}") from error


def check_search(model: Any) -> None:
    """Raise where a parameter of the search is not allowed."""
    if model.selection not in SELECTIONS:
        raise ValueError(f"selection={model.selection!r}: it takes one of {', '.join(map(repr, SELECTIONS))}")
    if not isinstance(model.refit, (bool, np.bool_)):
        raise ValueError(f"refit={model.refit!r}: it takes True or False")
    if model.checkpoint is not None and not isinstance(model.checkpoint, (str, os.PathLike)):
        raise ValueError(f"checkpoint={model.checkpoint!r}: it takes the name of a file, or None")
    if model.scoring is None:
        return
    if not (isinstance(model.scoring, str) or callable(model.scoring)):
        raise ValueError(
            f"scoring={model.scoring!r}: it takes the name of a scorer of scikit-learn, a callable or None"
        )
    if model.selection in ("aic", "bic"):
        raise ValueError(
            f"scoring={model.scoring!r}: selection={model.selection!r} holds no rows out; "
            "scoring takes selection='min' or '1se'"
        )


def ratios_of(model: Any) -> tuple[list[float | None], bool]:
    """The values of `l1_ratio` to search over, and whether it is a list; [None] for a model without one."""
    given = getattr(model, "l1_ratio", None)
    if given is None or np.ndim(given) == 0:
        return [None], False
    values = [_checks.number(value, f"l1_ratio[{k}]", least=0) for k, value in enumerate(given)]
    if not values or max(values) > 1 or len(set(values)) < len(values):
        raise ValueError(f"l1_ratio={given!r}: it takes a number in [0, 1], or a list of different ones")
    return list(values), True


def at_ratio(model: Any, ratio: float | None) -> Any:
    """`model` with one `l1_ratio` of several: a copy that shares everything else."""
    if ratio is None:
        return model
    other = copy.copy(model)
    other.l1_ratio = ratio
    return other


# -- metadata -----------------------------------------------------------------------------------------------


def routing(model: Any) -> MetadataRouter:
    """Where the metadata of ``fit`` go: groups to the splitter, weights to the scorer."""
    router = MetadataRouter(owner=type(model).__name__).add_self_request(model)
    # A splitter of scikit-learn declares the metadata that it takes; a number of folds takes none.
    if hasattr(model.cv, "split") and hasattr(model.cv, "get_metadata_routing"):
        router.add(splitter=model.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    scorer = None if model.scoring is None else check_scoring(model, scoring=model.scoring)
    if hasattr(scorer, "get_metadata_routing"):
        router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    return router


def routed(model: Any, sample_weight: Any, given: dict[str, Any]) -> tuple[dict[str, Any], Judge]:
    """What the splitter takes, and the judge with what the scorer takes."""
    scorer = None if model.scoring is None else check_scoring(model, scoring=model.scoring)
    if _routing_enabled():
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        found = process_routing(model, "fit", **weights, **given)
        empty = Bunch(split={}, score={})
        judge = Judge(scorer, dict(found.get("scorer", empty).score), model.scoring)
        return dict(found.get("splitter", empty).split), judge
    unknown = sorted(set(given) - {"groups"})
    if unknown:
        routing_needed = "; other metadata need sklearn.set_config(enable_metadata_routing=True)"
        raise TypeError(unexpected("fit", unknown[0], FIT_TAKES, routing_needed))
    weighs = scorer is not None and sample_weight is not None and _takes_weights(scorer)
    return given, Judge(scorer, {"sample_weight": sample_weight} if weighs else {}, model.scoring)


def given_weights(table: Any, X: Any, sample_weight: Any, read: np.ndarray | None) -> Any:
    """The weights, without those of classes: numbers where they are the name of a column of X, which was read as
    `table`. `read` are the weights that were read with it, which include those of classes."""
    if not isinstance(sample_weight, str):
        return sample_weight
    if isinstance(table, LargeTable):
        return table.table.sample_weight
    return read_npz(X, weight=sample_weight)[2] if is_npz(X) else read


def _routing_enabled() -> bool:
    from sklearn import get_config

    return bool(get_config().get("enable_metadata_routing", False))


def _takes_weights(scorer: Any) -> bool:
    parameters = inspect.signature(scorer).parameters
    return "sample_weight" in parameters


# -- folds --------------------------------------------------------------------------------------------------


def splits(splitter: Any, X: Any, y: Any, metadata: dict[str, Any], random_state: Any) -> Iterator[Split]:
    """The folds. Rows that are not in this process are numbered, not read."""
    large = isinstance(X, LargeTable)
    rows = np.empty((X.shape[0], 0)) if large else X
    for train, test in _with_hint(splitter.split(rows, y, **metadata), metadata):
        train, test = (_numbers(given, X.shape[0], part) for given, part in ((train, "training"), (test, "test")))
        if large:  # a byte per row
            train, test = (_mask(numbers, X.shape[0]) for numbers in (train, test))
        # Threads must not draw from one generator: the order of their draws would change from fit to fit.
        yield Split(train, test, _own(random_state))


def check_classes(model: Any, y: np.ndarray, sample_weight: np.ndarray | None, folds: Sequence[Split]) -> None:
    """Raise where a class has no row to fit in one of the folds."""
    used = np.ones(len(y), dtype=bool) if sample_weight is None else np.asarray(sample_weight) > 0
    for number, fold in enumerate(folds):
        rows = np.zeros(len(y), dtype=bool)
        rows[fold.train] = True
        absent = np.setdiff1d(model.classes_, y[rows & used])
        if absent.size == 0:
            continue
        label = absent[0].item() if isinstance(absent[0], np.generic) else absent[0]
        count = int(np.sum(used & (y == absent[0])))
        size = "1 row" if count == 1 else f"{count:,} rows"
        advice = "join it with another class or leave it out, or take selection='bic', which holds no rows out"
        if count > 1:
            advice = f"cv as a number, at least 2, spreads every class over the folds; or {advice}"
        raise ValueError(
            f"cv={model.cv!r}: the class {label!r} of y has {size}, and fold {number + 1} "
            f"of {len(folds)} holds {'all of them' if count > 1 else 'it'} out, so that none is left to fit: {advice}"
        )


def _with_hint(folds: Iterable[Any], metadata: dict[str, Any]) -> Iterator[Any]:
    """The folds; the message of a splitter that lacks groups says where to give them."""
    try:
        yield from folds
    except ValueError as error:
        if metadata.get("groups") is None and "groups" in str(error):
            raise ValueError(f"{error} Give them to fit: fit(X, y, groups=...)") from error
        raise


def _numbers(given: Any, n: int, part: str) -> np.ndarray:
    """The numbers of the rows that a splitter gave as numbers, or as a mask of all rows."""
    rows = np.asarray(given)
    if rows.size == 0:
        raise ValueError(f"cv: a fold has no {part} rows: it takes one or more")
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"cv: a mask of {part} rows has shape {rows.shape}: it takes {n} entries, one per row")
        return _numbers(np.flatnonzero(rows), n, part)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise TypeError(
            f"cv: {part} rows have the type {rows.dtype} and shape {rows.shape}: it takes integers or a mask"
        )
    outside = np.flatnonzero((rows < -n) | (rows >= n))
    if outside.size:
        odd = rows[outside[0]]
        raise ValueError(f"cv: a fold has the {part} row {odd}: it takes numbers below {n}, the number of rows")
    return rows


def _mask(rows: np.ndarray, n: int) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask


def masked(sample_weight: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Weights that leave out all but some rows: a fold of a table that is not copied."""
    mask = np.zeros(n)
    mask[rows] = 1.0
    return mask if sample_weight is None else mask * np.asarray(sample_weight)


def _own(random_state: Any) -> Any:
    """A new generator drawn from `random_state`; a seed is returned unchanged."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**63))
    return random_state


__all__ = [
    "SELECTIONS", "Judge", "Split", "at_ratio", "check_classes", "check_search", "given_weights", "masked", "ratios_of",
    "routed", "routing", "splits",
]  # fmt: skip
