"""``skadmm fit``: a model from a file of data."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from skadmm._names import nearest
from skadmm.cli._errors import CommandError, naming
from skadmm.cli.large import open_table
from skadmm.cli.offsets import check_link, take_offset
from skadmm.cli.parameters import parameters
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
        None, help="The column (or npz array) of targets; repeat it for several outputs. [default: the last; npz: y]"
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
    groups: Path | None = typer.Option(None, help="A JSON file: lists of columns, or a label per column."),  # noqa: B008
    unknown: str = typer.Option("raise", help="Names in --graph or --groups that are not columns: raise, or ignore."),
    order: int = typer.Option(1, help="The degree of the pieces of a trend: 0 (constant) to 3 (cubic)."),
    ridge: float = typer.Option(0.0, help="Strength of an added squared l2 norm."),
    multi_class: str | None = typer.Option(
        None, "--multi-class", help="More than two classes: ovr (one model each), or multinomial. [default: ovr]"
    ),
    loss: str | None = typer.Option(None, help="A registered loss, such as logistic, hinge, huber or poisson."),
    penalty: str | None = typer.Option(None, help="For --model lasso-...: a registered penalty. [default: l1]"),
    settings: list[str] = typer.Option(  # noqa: B008
        [], "--set", help="Another parameter of the estimator, such as positive=true or bounds=[0,1]; may be repeated."
    ),
    standardize: bool = typer.Option(False, "--standardize", help="Divide columns by their standard deviation."),
    intercept: bool = typer.Option(True, "--intercept/--no-intercept", help="Fit an intercept."),
    folds: int = typer.Option(5, min=2, help="Number of folds of the cross-validation."),
    alphas: int = typer.Option(50, min=1, help="Number of strengths that the cross-validation tries."),
    selection: str = typer.Option("min", help="How the strength is chosen: min, 1se, aic or bic."),
    scoring: str | None = typer.Option(None, help="A scorer of scikit-learn, such as r2. [default: held-out loss]"),
    jobs: int = typer.Option(1, help="Number of folds that are solved at the same time."),
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
    if checkpoint is not None and alpha is not None:
        raise CommandError(f"--checkpoint {checkpoint}: with --alpha there is no cross-validation to store", 2)
    search: dict[str, Any] = {"alphas": alphas, "cv": folds, "selection": selection, "scoring": scoring}
    search |= {"n_jobs": jobs, "checkpoint": checkpoint}
    estimator = _estimator(model, alpha, search)
    further = parameters(settings, sorted(estimator.get_params(deep=False)))
    table = open_table(data, target, drop, weight=weight, other=offset or exposure, ones=intercept, on_disk=on_disk,
                       cache=cache_dir, texts=further.get("categorical_features"), quiet=quiet or as_json,
                       dates=model == "trend-filter")  # fmt: skip
    if further.get("categorical_features") == "from_dtype" and hasattr(table.X, "text_columns"):
        further["categorical_features"] = table.X.text_columns()
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
    options |= _given(l1_ratio=_ratios(l1_ratio, alpha), loss=loss, multi_class=multi_class)
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
            estimator.fit(table.X, table.target, table.weight, **_given(offset=shift))
    seconds = time.perf_counter() - began
    estimator.save(out)
    score = score_with(estimator, table.X, table.target, shift)
    if report is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        estimator.report(report, table.X, table.target, shift)
    notes = [" ".join(str(note.message).split()) for note in caught]
    for note in notes:
        print(f"skadmm: {note}", file=sys.stderr)
    measure = score_name(estimator).lower().replace("²", "2")
    facts = summary(estimator) | {f"training_{measure}": score, "seconds": seconds, "file": str(out)}
    print(json.dumps(facts | {"warnings": notes}) if as_json else "\n".join(lines_of(facts)))


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
    model: str, graph: str, groups: Path | None, unknown: str, penalty: str | None, order: int, names: list[str]
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
    options: dict[str, Any] = {}
    if not model.startswith(("lasso", "group")):
        options["graph"] = read_graph(graph, names)
    if model.startswith("group"):
        options["groups"] = _groups(groups, names)
    if model.startswith(("fused", "group")):
        options["unknown"] = unknown
    if penalty is not None:
        options["penalty"] = penalty
    if model == "trend-filter":
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
    from skadmm.estimators import ESTIMATORS

    if alpha is not None:
        return ESTIMATORS[MODELS[model]](alpha=alpha)
    return ESTIMATORS[MODELS[model] + "CV"](**search)


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


def read_graph(text: str, names: Sequence[str] = ()) -> Any:
    """What ``--graph`` stands for; nodes of digits are column numbers unless the columns have `names` of digits."""
    if text == "chain":
        return None
    if text == "precision":
        return "precision"
    sides = text.lower().split("x")
    if len(sides) > 1 and all(side.isdigit() for side in sides):
        return tuple(int(side) for side in sides)
    path = Path(text)
    if not path.is_file():
        taken = "it takes chain, precision, a grid such as 8x8, or a file of edges"
        if path.suffix or len(path.parts) > 1:
            raise CommandError(f"--graph {text}: there is no such file; {taken}")
        raise CommandError(f"--graph {text}: {taken}", 2)
    edges: list[tuple[Any, ...]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fields = [field.strip() for field in line.replace("\t", ",").split(",")]
        if not line.strip() or line.startswith("#") or (not edges and _is_header(fields, names)):
            continue
        if len(fields) < 2:
            raise CommandError(f"{path}: line {number} has one column: it takes two nodes, separated by a comma", 2)
        if len(fields) > 3:
            raise CommandError(f"{path}: line {number} has {len(fields)} columns: it takes two nodes and a weight", 2)
        if edges and len(fields) != len(edges[0]):
            raise CommandError(f"{path}: line {number} has {len(fields)} columns, the lines before {len(edges[0])}", 2)
        edges.append((fields[0], fields[1], *(_weight(field, path, number) for field in fields[2:])))
    if not edges:
        raise CommandError(
            f"{path}: it has no edges: each line takes two nodes, and a weight where there are weights", 2
        )
    if all(node.isdigit() for edge in edges for node in edge[:2]) and not _of_digits(names):
        return [(int(edge[0]), int(edge[1]), *edge[2:]) for edge in edges]
    return edges


HEADERS = ({"source", "from", "tail", "u", "i", "node1", "node_1", "feature1", "feature_1"},
           {"target", "to", "head", "v", "j", "node2", "node_2", "feature2", "feature_2"})  # fmt: skip
"""What the first line of a file of edges may call its first and its second column."""


def _is_header(fields: list[str], features: Sequence[str]) -> bool:
    """Does a line name the columns of a file of edges: with known names, or with a word where weights are numbers?

    A line that starts with two features is an edge, whatever its weight is.
    """
    if len(fields) not in (2, 3) or {*fields[:2]} <= {*features}:
        return False
    named = all(field.lower() in names for field, names in zip(fields, HEADERS, strict=False))
    return named or (len(fields) == 3 and fields[2].isidentifier() and not _number(fields[2]))


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _weight(text: str, path: Path, number: int) -> float:
    if not _number(text):
        raise CommandError(f"{path}: line {number} has the weight {text!r}, which is not a number", 2)
    return float(text)


def _of_digits(names: Sequence[str]) -> bool:
    """Are the columns named by numbers, such as years?"""
    return bool(names) and all(name.isdigit() for name in names)


def _groups(path: Path | None, names: Sequence[str]) -> Any:
    if path is None:
        return None
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    try:
        groups = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {error}", 2) from error
    if not isinstance(groups, (list, dict)):
        raise CommandError(f"{path}: it takes lists of columns, or an object with a label for each column", 2)
    if not _of_digits(names):
        return groups
    named = groups if isinstance(groups, dict) else dict(enumerate(groups))
    if not all(isinstance(group, list) for group in named.values()):
        return groups
    texts = {name: [str(member) for member in group] for name, group in named.items()}
    return texts if isinstance(groups, dict) else list(texts.values())
