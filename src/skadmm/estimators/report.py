"""``model.report(path)``: one HTML file about a fitted model that needs no other file and no network."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np

from skadmm._version import __version__
from skadmm.backends import is_dask, is_stored
from skadmm.backends.named_columns import stored_target
from skadmm.backends.sources import is_npz
from skadmm.estimators._as_code import code_of
from skadmm.estimators._columns import warn_missing_offset
from skadmm.estimators._large import is_large
from skadmm.estimators._report_groups import active_groups, group_picture, groups_table, has_groups
from skadmm.estimators._report_path import slider
from skadmm.estimators._report_tables import (
    CONDITIONAL,
    clusters_table,
    coefficients_table,
    is_relaxed,
    is_signal,
    part_names,
)
from skadmm.io import page as html
from skadmm.io.atomic import write_atomically
from skadmm.plotting import coefficient_image, coefficients_on_graph, convergence, cv_curve, trend_fit
from skadmm.plotting.graphs import chain_order
from skadmm.run.result import Status

MOST_PICTURES = 20
"""Classes or outputs whose coefficients are drawn; the table has all of them."""
MOST_NODES = 500
"""Features in a picture of a graph that is not a chain."""
ROUNDING = 1e-9
"""Relative changes of an objective that are not drawn."""


def write_report(model: Any, path: Any, X: Any = None, y: Any = None, offset: Any = None) -> None:
    """Write the report on a fitted `model` to `path`; with data, their size and the score on them are part of it."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError("a report needs matplotlib: pip install 'skadmm[plot]'") from error

    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: it takes the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: there is no such folder")
    if model.with_offset_ and X is not None and y is not None and offset is None:
        warn_missing_offset(type(model).__name__, "report")
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "skadmm"}):
        page = _page(model, X, y, offset)
    write_atomically(path, lambda stream: stream.write(page.encode()))


def _page(model: Any, X: Any, y: Any, offset: Any) -> str:
    name = type(model).__name__
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    sections = [
        _section("Model", html.facts(_facts(model, results), "Model") + _proof(model, results)),
        _section("Data", html.facts(_data(model, X, y, offset), "Data")),
        _section("Signal" if is_signal(model) else "Coefficients", _coefficients(model, X, y)),
        _section("Clusters", clusters_table(model)),
        _section("Groups", groups_table(model)),
        _section("Choice of the strength", _choice(model)),
        _section("Convergence", _convergence(results, part_names(model))),
        _section("How to reproduce it", _reproduce(model, model.with_offset_ or offset is not None)),
    ]
    css, script = html.style("skadmm.estimators"), html.asset("skadmm.estimators", "report.js")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(name)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{css}</style>'
        f"</head><body><header><h1>{html.escape(name)}</h1></header><main>{''.join(sections)}</main>"
        f"<script>{script}</script></body></html>\n"
    )


def _facts(model: Any, results: list[Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "alpha": f"{getattr(model, 'alpha_', getattr(model, 'alpha', np.nan)):.6g}",
        "degrees of freedom": _entries(model.dof_),
    }
    if is_relaxed(model):
        facts["values"] = "relaxed: fitted again without the penalty on the structure found"
    signal = is_signal(model)
    if signal and model.knots_ is not None:
        facts["knots"] = model.knots_.size
    if not signal:
        facts["coefficients that are not zero"] = int(np.count_nonzero(model.coef_))
    if hasattr(model, "n_clusters_") and not signal:
        facts["clusters"] = _entries(model.n_clusters_)
    if hasattr(model, "active_groups_"):
        active = np.atleast_2d(model.active_groups_)
        facts["groups in the model"] = f"{', '.join(str(row.sum()) for row in active)} of {active.shape[1]}"
        if hasattr(model, "group_names_"):
            facts["active groups"] = active_groups(model)
    facts["status"] = ", ".join(dict.fromkeys(str(result.status) for result in results))
    facts["cost"] = "; ".join(result.cost for result in results)
    return facts


def _proof(model: Any, results: list[Any]) -> str:
    gaps = [result.gap for result in results]
    relaxed = is_relaxed(model)
    of, than = ("of the penalised fit ", "that of the penalised fit") if relaxed else ("", "this model's")
    note = f"<p>{CONDITIONAL} The certificate is that of the penalised fit, not of these values.</p>" if relaxed else ""
    if np.isnan(gaps).any():
        worst = max(result.kkt.relative for result in results)
        which = "The penalised fit" if relaxed else "This model"
        return (
            f"<p>{which} has no certificate by duality; its relative KKT residual, which is zero at the optimum, is "
            f"{worst:.1e}.</p>{note}"
        )
    return (
        f"<p>The relative duality gap {of}is {max(gaps):.1e}: no coefficients have a penalised objective that is lower "
        f"than {than} by a larger share.</p>{note}"
    )


def _data(model: Any, X: Any, y: Any, offset: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    rows = None if X is None else _rows(X, y)
    fitted = getattr(model, "n_samples_fit_", rows)
    if fitted is not None:
        facts["samples"] = f"{fitted:,}"
    if rows not in (None, fitted):
        facts["samples of these data"] = f"{rows:,}"
    if is_signal(model):
        facts["positions"] = f"{model.positions_.size:,}"
    else:
        facts["features"] = f"{model.n_features_in_:,}"
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        facts["names"] = ", ".join(map(str, names[:12])) + (", …" if len(names) > 12 else "")
    if hasattr(model, "classes_"):
        facts["classes"] = ", ".join(map(str, model.classes_))
    if model.with_offset_ and X is not None and offset is None:
        facts["offset"] = "none was given with these data, although the model was fitted with one: the score is for 0"
    if X is not None and y is not None:
        facts[f"{score_name(model)} on these data"] = f"{score_with(model, X, y, offset):.4f}"
    graph = getattr(model, "graph_", None)
    if graph is not None:
        facts["graph"] = f"{len(graph.edges):,} edges" + (
            f", a grid of {' × '.join(map(str, graph.shape))}" if graph.shape else ""
        )
    return facts


def _rows(X: Any, y: Any) -> int | None:
    """How many rows a table has: in memory by its shape, on disk by its targets, of a frame of Dask by counting."""
    if is_stored(X) or is_npz(X):
        return None if y is None else len(stored_target(X, y))
    return len(X) if is_dask(X) and hasattr(X, "columns") else int(np.shape(X)[0])


def score_name(model: Any) -> str:
    """What ``model.score`` is: the accuracy, R², or D² under another loss than the squared one."""
    if hasattr(model, "classes_"):
        return "accuracy"
    return "R²" if getattr(model.loss, "name", model.loss) == "squared" else "D²"


def score_with(model: Any, X: Any, y: Any, offset: Any = None) -> float:
    """The score on some data, with their offset."""
    if offset is None and not model.with_offset_:
        return float(model.score(X, y))
    return float(model.score(X, y, offset=0.0 if offset is None else offset))


def favoured_class(model: Any) -> Any:
    """The class that positive coefficients favour, ``classes_[1]``; None unless one row tells two classes apart."""
    if len(getattr(model, "classes_", ())) != 2 or len(np.atleast_2d(model.coef_)) != 1:
        return None
    return model.classes_[1:].tolist()[0]


def in_favour(label: Any) -> str:
    """A line that says which class positive coefficients favour."""
    return f"positive coefficients favour class: {as_label(label)}"


def as_label(label: Any) -> str:
    """A class as a text: numbers without the zero after their point."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def _coefficients(model: Any, X: Any, y: Any) -> str:
    favoured = favoured_class(model)
    said = "" if favoured is None else f"<p>Positive coefficients favour class: {html.escape(as_label(favoured))}.</p>"
    return f"{_pictures(model, X, y)}{said}{coefficients_table(model)}"


def _pictures(model: Any, X: Any, y: Any) -> str:
    """The coefficients as pictures of the structure that the model has: one for each class or output."""
    parts = part_names(model)
    if is_signal(model):
        return _signal(model, X, y)
    if not parts:
        return _picture(model, 0, "")
    drawn = [_picture(model, k, f", {part}") for k, part in enumerate(parts[:MOST_PICTURES])]
    if not any(drawn):
        return ""
    left_out = len(parts) - len(drawn)
    more = f"<p>The first {len(drawn)} of {len(parts)}; the table has all of them.</p>" if left_out else ""
    return f'<div class="pictures">{"".join(drawn)}</div>{more}'


def _signal(model: Any, X: Any, y: Any) -> str:
    """The fitted signal, over the observations where they are given in memory."""
    observed = X is not None and y is not None and not is_large(X) and not is_npz(X) and np.ndim(y) == 1
    axes = trend_fit(model, X, y) if observed else trend_fit(model)
    over = ", over the observations" if observed else ""
    return _figure(axes, f"The fitted signal and its knots{over}.")


def _picture(model: Any, part: int, of: str) -> str:
    """The coefficients of one class or output; the colours mean the same in the pictures of all of them."""
    if has_groups(model):
        axes, which = group_picture(model, part)
        return _figure(axes, f"The coefficients by group{of}{which}.")
    graph = getattr(model, "graph_", None)
    if graph is None or not hasattr(model, "clusters_"):
        return ""
    if len(graph.shape) == 2:
        limit = float(np.abs(model.coef_).max()) or 1.0
        return _figure(coefficient_image(model, problem=part, limit=limit), f"The coefficients on their grid{of}.")
    if graph.n_features > MOST_NODES and chain_order(graph) is None:  # a chain needs no layout
        return ""
    limit = float(np.abs(model.coef_ * getattr(model, "scale_", 1.0)).max()) or 1.0
    try:
        axes = coefficients_on_graph(model, problem=part, limit=limit)
    except ImportError:  # a layout needs networkx
        return ""
    signs = ", or opposite ones where it is dashed" if np.any(graph.signs < 0) else ""
    return _figure(
        axes,
        f"The coefficients on their graph{of}. Colour is the value; a dark edge joins two features with equal "
        f"coefficients{signs}.",
    )


def _choice(model: Any) -> str:
    if not hasattr(model, "alphas_"):
        return ""
    parts = [_figure(cv_curve(model), "The curve from which the strength was chosen.")]
    if hasattr(model, "coefs_path_"):
        parts.append(slider(model))
    return "".join(parts)


def _convergence(results: list[Any], parts: list[str]) -> str:
    """The run; of several, the one with the most passes."""
    drawn = [k for k, result in enumerate(results) if len(result.records) > 1]
    if not drawn:
        return ""
    moved = [k for k in drawn if not _started_at_optimum(results[k])]
    if not moved:
        return "<p>The run started at the optimum: its objective changed by rounding only.</p>"
    k = max(moved, key=lambda k: results[k].passes)
    run = f"The run of {parts[k]}, the longest of {len(results)}" if len(results) > 1 else "The run"
    axes = convergence(results[k], optimum="lowest")
    *others, last = [ax.get_ylabel() for ax in axes[:, 0]]
    shown = f"{', '.join(others)} and {last}" if others else last
    return _figure(axes[0, 0], f"{run}: {shown} against passes and seconds.")


def _started_at_optimum(result: Any) -> bool:
    """Return whether a run that was solved has the same objective from its start on, but for rounding."""
    values = result.trace["objective"].to_numpy()
    return result.status is Status.SOLVED and bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


def _reproduce(model: Any, with_offset: bool) -> str:
    import numba
    import scipy
    import sklearn

    versions = {"skadmm": __version__, "scikit-learn": sklearn.__version__, "NumPy": np.__version__,
                "SciPy": scipy.__version__, "Numba": numba.__version__}  # fmt: skip
    code = code_of(model, with_offset)
    return f'<pre tabindex="0">{html.escape(code)}</pre>' + html.facts(versions, "Versions")


def _figure(axes: Any, caption: str) -> str:
    """A picture as part of the page."""
    import matplotlib.pyplot as plt

    figure, stream = axes.figure, io.StringIO()
    figure.savefig(stream, format="svg", facecolor="white", metadata={"Date": None})
    plt.close(figure)
    text = stream.getvalue()
    coded = base64.b64encode(text[text.index("<svg") :].encode()).decode()
    picture = f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{coded}">'
    return (
        f"<figure>{html.scrolling(picture, f'Picture: {caption}')}"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{content}</section>" if content else ""


def _entries(value: Any) -> str:
    return ", ".join(map(str, np.atleast_1d(value).tolist()))
