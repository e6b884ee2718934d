"""``skadmm fit``: a model from a file of data."""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import typer

from skadmm._names import nearest
from skadmm.cli._errors import CommandError, naming
from skadmm.cli.large import open_table
from skadmm.cli.loss_option import loss_of
from skadmm.cli.offsets import check_link, take_offset
from skadmm.cli.outputs import with_names
from skadmm.cli.parameters import parameters
from skadmm.cli.structure import GROUP_FORMS, read_graph, read_groups
from skadmm.cli.words import in_words

MODELS = {
    "fused-classifier": "FusedLassoClassifier",
    "fused-regressor": "FusedLassoRegressor",
    "lasso-classifier": "GeneralizedLassoClassifier",
    "lasso-regressor": "GeneralizedLassoRegressor",
    "group-classifier": "GroupLassoClassifier",
    "group-regressor": "GroupLassoRegressor",
    "trend-filter": "TrendFilter",
}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(fit)


def fit(
    data: Path = typer.Argument(help="svmlight, CSV, TSV, Parquet, npy, npz; a folder of blocks or Parquet files."),  # noqa: B008
    out: Path = typer.Option(..., "--out", "-o", help="The file to write the model to."),  # noqa: B008
    model: str = typer.Option("fused-classifier", help=f"One of {', '.join(MODELS)}."),
    target: list[str] | None = typer.Option(  # noqa: B008
        None,
        help="The column (or npz array) of targets, for npy its number from 0; repeat it for several outputs. "
        "[default: the last; npz: y]",
    ),
    drop: list[str] | None = typer.Option(None, help="Columns to leave out, separated by commas; may be repeated."),  # noqa: B008
    weight: str | None = typer.Option(None, help="The column of sample weights."),
    offset: str | None = typer.Option(None, help="A column that is added to the linear predictor."),
    exposure: str | None = typer.Option(
        None, help="For counts: a column whose logarithm is added to the linear predictor."
    ),
    on_disk: bool | None = typer.Option(
        None, "--on-disk/--in-memory", help="Leave the table on disk. [default: if it needs a quarter of the memory]"
    ),
    cache_dir: Path | None = typer.Option(  # noqa: B008
        None, "--cache-dir", help="Where a table on disk is kept. [default: SKADMM_CACHE, or the system's cache]"
    ),
    alpha: float | None = typer.Option(None, help="The strength of the penalty. [default: chosen by cross-validation]"),
    l1_ratio: str | None = typer.Option(
        None, "--l1-ratio", help="The share of the plain l1 norm; several, such as 0.2,0.5,1, are cross-validated."
    ),
    graph: str = typer.Option("chain", help="chain, precision, a grid such as 8x8, or a CSV file of edges."),
    groups: Path | None = typer.Option(None, help=f"A JSON file: {GROUP_FORMS}."),  # noqa: B008
    unknown: str = typer.Option("raise", help="Names in --graph or --groups that are not columns: raise, or ignore."),
    order: int | None = typer.Option(
        None, min=0, max=3, help="The degree of the pieces of a trend: 0 (constant) to 3 (cubic). [default: 1]"
    ),
    ridge: float = typer.Option(0.0, help="Strength of an added squared l2 norm."),
    multi_class: str | None = typer.Option(
        None, "--multi-class", help="More than two classes: ovr (one model each), or multinomial. [default: ovr]"
    ),
    loss: str | None = typer.Option(
        None, help="A loss, such as logistic, hinge or poisson, or with parameters: 'tweedie(power=1.3)', 'huber(2)'."
    ),
    penalty: str | None = typer.Option(None, help="For --model lasso-...: a registered penalty. [default: l1]"),
    settings: list[str] = typer.Option(  # noqa: B008
        [], "--set", help="Another parameter of the estimator, such as positive=true or bounds=[0,1]; may be repeated."
    ),
    standardize: bool = typer.Option(False, "--standardize", help="Divide columns by their standard deviation."),
    intercept: bool = typer.Option(True, "--intercept/--no-intercept", help="Fit an intercept."),
    folds: int | None = typer.Option(None, min=2, help="Number of folds of the cross-validation. [default: 5]"),
    alphas: int | None = typer.Option(
        None, min=1, help="Number of strengths that the cross-validation tries. [default: 50]"
    ),
    selection: str | None = typer.Option(
        None, help="How the strength is chosen: min, 1se, aic or bic. [default: min]"
    ),
    scoring: str | None = typer.Option(None, help="A scorer of scikit-learn, such as r2. [default: held-out loss]"),
    jobs: int | None = typer.Option(None, help="Number of folds that are solved at the same time. [default: 1]"),
    checkpoint: Path | None = typer.Option(  # noqa: B008
        None, help="A file that stores the cross-validation while it runs; if it exists, the search continues from it."
    ),
    method: str = typer.Option("auto", help="auto, or the name of a method or solver; 'skadmm info' lists them."),
    tol: float = typer.Option(1e-6, help="The relative duality gap to reach."),
    max_passes: float = typer.Option(2000, help="Maximum number of passes over the data."),
    report: Path | None = typer.Option(None, help="Also write a report on the model: an HTML file."),  # noqa: B008
    force: bool = typer.Option(False, "--force", help="Replace an existing file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress."),
) -> None:  # fmt: skip
    """Fit a model and write it to a file."""
    from skadmm.estimators.report import score_name, score_with

    if model not in MODELS:
        raise CommandError(f"--model {model}: it takes one of {', '.join(MODELS)}.{nearest(model, MODELS)}", 2)
    for written in (out, report):
        if written is not None and written.exists() and not force:
            raise CommandError(f"{written} exists already: --force replaces it", 2)
        if written is not None and not written.parent.is_dir():
            raise CommandError(f"{written.parent}: there is no such folder")
    if cache_dir is not None and cache_dir.exists() and not cache_dir.is_dir():
        raise CommandError(f"--cache-dir {cache_dir}: it takes a folder, and this is a file", 2)
    search = _given(checkpoint=checkpoint, selection=selection, scoring=scoring, folds=folds, alphas=alphas, jobs=jobs)
    estimator = _estimator(model, alpha, search)
    further = parameters(settings, estimator.get_params(deep=False))
    table = open_table(data, target, drop, weight=weight, other=offset or exposure, ones=intercept, on_disk=on_disk,
                       cache=cache_dir, texts=further.get("categorical_features"), quiet=quiet or as_json,
                       dates=model == "trend-filter")  # fmt: skip
    if further.get("categorical_features") == "from_dtype" and hasattr(table.X, "text_columns"):
        further["categorical_features"] = table.X.text_columns()
    levels = further.get("categorical_features") is not None
    table, shift = take_offset(table, data, offset, exposure)
    if table.target is None:
        raise CommandError(f"{data}: the folder has no target; convert the data with --target", 2)
    _check_classes(model, table.target)
    options: dict[str, Any] = {
        "ridge": ridge, "standardize": standardize, "fit_intercept": intercept, "tol": tol, "max_passes": max_passes,
        "method": method,
        "verbose": 0 if quiet or as_json else 1,
    }  # fmt: skip
    if multi_class is not None and not model.endswith("classifier"):
        raise CommandError(f"--multi-class {multi_class}: --model {model} has no classes", 2)
    options |= _given(l1_ratio=_ratios(l1_ratio, alpha), loss=loss and loss_of(loss), multi_class=multi_class)
    names = list(map(str, getattr(table.X, "columns", [])))
    own = _own_options(model, graph, groups, unknown, penalty, order, names)
    estimator.set_params(**(options | own | further))
    _check_numbers(model, table.target)
    check_link(estimator.loss, exposure)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", r"groups: \d+ of \d+ columns are in no group")  # the summary says so
        with naming(data):
            estimator.fit(table.X, with_names(table.target, target), table.weight, **_given(offset=shift))
    seconds = time.perf_counter() - began
    estimator.save(out)
    score = score_with(estimator, table.X, table.target, shift)
    if report is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        estimator.report(report, table.X, table.target, shift)
    notes = [_with_options(" ".join(str(note.message).split())) for note in caught]
    if model.startswith("group") and groups is None and "groups" not in further and not levels:
        notes.append("without --groups every column is a group of its own, as in the lasso")
    for note in notes:
        print(f"skadmm: {note}", file=sys.stderr)
    measure = score_name(estimator).lower().replace("²", "2")
    facts = summary(estimator) | {f"training_{measure}": score, "seconds": seconds, "file": str(out)}
    print(json.dumps(facts | {"warnings": notes}) if as_json else "\n".join(lines_of(facts)))


def _with_options(note: str) -> str:
    """A note of an estimator with options of the command line in place of parameters."""
    note = note.replace("give eps, a share of the largest alpha", "give --set eps=..., a share of the largest alpha")
    return re.sub(r"lower eps=(\S+)$", lambda found: f"lower it by --set eps={float(found[1]) / 100:g}", note)


def _check_classes(model: str, target: Any) -> None:
    """Refuse numbers for a classifier, with the model that takes them."""
    from sklearn.utils.multiclass import type_of_target

    if model.endswith("classifier") and type_of_target(target).startswith("continuous"):
        raise CommandError(
            f"the target holds numbers that are not classes, and --model {model} takes two or more classes: "
            f"try --model {model.replace('classifier', 'regressor')}",
            2,
        )


def _check_numbers(model: str, target: Any) -> None:
    """Refuse texts as targets of a regression."""
    if not model.endswith("regressor") or target.dtype.kind not in "OUS":
        return
    text = next((value for value in target.ravel() if isinstance(value, str)), None)
    if text is not None:
        raise CommandError(
            f"the target holds {text!r}, and --model {model} takes numbers: for classes, "
            f"--model {model.replace('regressor', 'classifier')}",
            2,
        )


def _given(**options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _own_options(
    model: str, graph: str, groups: Path | None, unknown: str, penalty: str | None, order: int | None, names: list[str]
) -> dict[str, Any]:
    """The parameters that not all models have; an option that the model does not use is an error."""
    if unknown not in ("raise", "ignore"):
        raise CommandError(f"--unknown {unknown}: it takes raise or ignore", 2)
    if unknown != "raise" and not model.startswith(("fused", "group")):
        raise CommandError(f"--unknown {unknown}: --model {model} takes no graph or groups of names", 2)
    if graph != "chain" and model.startswith(("lasso", "group")):
        raise CommandError(f"--graph {graph}: --model {model} takes no graph", 2)
    if groups is not None and not model.startswith("group"):
        raise CommandError(f"--groups {groups}: --model {model} takes no groups", 2)
    if penalty is not None and not model.startswith("lasso"):
        raise CommandError(f"--penalty {penalty}: --model {model} has its own penalty; --model lasso-... takes one", 2)
    if order is not None and model != "trend-filter":
        raise CommandError(f"--order {order}: --model {model} is no trend; --model trend-filter takes an order", 2)
    options: dict[str, Any] = {}
    if not model.startswith(("lasso", "group")):
        options["graph"] = read_graph(graph, names)
    if model.startswith("group"):
        options["groups"] = read_groups(groups, names)
    if model.startswith(("fused", "group")):
        options["unknown"] = unknown
    if penalty is not None:
        options["penalty"] = penalty
    if order is not None:
        options["order"] = order
    return options


def summary(estimator: Any) -> dict[str, Any]:
    """The fitted model in a few numbers."""
    import numpy as np

    from skadmm.estimators.report import favoured_class

    results = estimator.result_ if isinstance(estimator.result_, list) else [estimator.result_]
    gaps = [result.gap for result in results]
    kkt = [result.kkt.relative for result in results]
    width = np.shape(estimator.coef_)[-1]
    answer = {
        "model": type(estimator).__name__,
        "alpha": float(getattr(estimator, "alpha_", getattr(estimator, "alpha", float("nan")))),
        "features": int(estimator.n_features_in_),
        "coefficients": width if hasattr(estimator, "feature_names_out_") else None,
        "nonzero": int(np.count_nonzero(estimator.coef_)),
        "clusters": np.asarray(getattr(estimator, "n_clusters_", [])).tolist(),
        "dof": np.asarray(estimator.dof_).tolist(),
        "status": [str(result.status) for result in results],
        "gap": None if any(np.isnan(gaps)) else float(max(gaps)),
        "kkt": float(max(kkt)),
        "passes": float(sum(result.run_passes for result in results)),
        "selection_passes": float(sum(result.selection_passes for result in results)),
    }
    if hasattr(estimator, "classes_"):
        answer["classes"] = estimator.classes_.tolist()
        answer["positive_class"] = favoured_class(estimator)
    if hasattr(estimator, "groups_"):
        active = np.atleast_2d(estimator.active_groups_)
        answer["groups"] = ", ".join(f"{int(row.sum())} of {row.size}" for row in active)
        grouped = np.unique(np.concatenate([np.asarray(group, dtype=int) for group in estimator.groups_]))
        free = width - grouped.size
        if free and getattr(estimator, "l1_ratio_", estimator.l1_ratio) == 0.0:
            answer["not_penalised"] = f"{free} features that are in no group"
    if hasattr(estimator, "cv_mean_"):
        row: Any = list(estimator.l1_ratio).index(estimator.l1_ratio_) if estimator.alphas_.ndim == 2 else ...
        chosen = np.argmin(np.abs(estimator.alphas_[row] - estimator.alpha_))
        answer["cv_loss" if estimator.scoring is None else "cv_score"] = float(estimator.cv_mean_[row][chosen])
    if hasattr(estimator, "l1_ratio_"):
        answer["l1_ratio"] = estimator.l1_ratio_
    return answer


def lines_of(facts: dict[str, Any]) -> list[str]:
    """The facts of :func:`summary` as text, one line per fact; passes include those that selected the step."""
    from skadmm.estimators.report import in_favour
    from skadmm.run.result import passes_in_words

    passes = passes_in_words(facts["passes"], facts["selection_passes"]).replace(" passes", "")
    shown = facts | {"passes": passes, "selection_passes": None, "positive_class": None}
    lines = [f"{key:<20}{in_words(value)}" for key, value in shown.items() if value not in (None, [])]
    return lines if facts.get("positive_class") is None else [*lines, in_favour(facts["positive_class"])]


def _estimator(model: str, alpha: float | None, search: dict[str, Any]) -> Any:
    """The model with a given strength, or with a cross-validation and the options of it that were given."""
    from skadmm.estimators import ESTIMATORS

    if alpha is None:
        names = {"folds": "cv", "jobs": "n_jobs"}
        return ESTIMATORS[MODELS[model] + "CV"](**{names.get(name, name): value for name, value in search.items()})
    for name, value in search.items():
        purpose = " to store" if name == "checkpoint" else ""
        raise CommandError(f"--{name} {value}: with --alpha there is no cross-validation{purpose}", 2)
    return ESTIMATORS[MODELS[model]](alpha=alpha)


def _ratios(text: str | None, alpha: float | None) -> Any:
    """What ``--l1-ratio`` stands for: a number, or several to choose from."""
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise CommandError(
            f"--l1-ratio {text}: it takes a number in [0, 1], or several separated by commas", 2
        ) from None
    if len(values) > 1 and alpha is not None:
        raise CommandError(f"--l1-ratio {text}: with --alpha it takes one number", 2)
    return values[0] if len(values) == 1 else values
