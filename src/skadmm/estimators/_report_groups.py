"""The groups of a model in its report: a table, and a picture of the coefficients group by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.estimators._report_tables import MOST_ROWS, part_names
from skadmm.io import page as html
from skadmm.plotting.graphs import shortened
from skadmm.plotting.models import CLUSTERS, INK, new_axes

MOST_DRAWN = 500
"""Coefficients in a picture of groups."""
MOST_TICKS, TICK_CHARACTERS = 20, 60
"""Names below a picture, and their characters where they are not slanted."""


def group_labels(model: Any) -> list[str]:
    """The names of the groups, or their numbers."""
    return getattr(model, "group_names_", None) or [str(number) for number in range(len(model.groups_))]


def active_groups(model: Any) -> str:
    """The groups with a coefficient that is not zero, of each class or output, by name."""
    labels = np.array(group_labels(model), dtype=object)
    return "; ".join(", ".join(labels[row]) or "none" for row in np.atleast_2d(model.active_groups_))


def has_groups(model: Any) -> bool:
    """Return whether a model has groups of features."""
    return hasattr(model, "groups_") and hasattr(model, "active_groups_")


def _values(model: Any, part: int) -> list[np.ndarray]:
    """The coefficients of each group, of one class or output, on the scale that the penalty saw."""
    scale = getattr(model, "scale_", np.ones(np.shape(model.coef_)[-1]))
    if hasattr(model, "latent_coef_"):  # each group has coefficients of its own
        own = [np.atleast_2d(values)[part] for values in model.latent_coef_]
    else:
        own = [np.atleast_2d(model.coef_)[part, group] for group in model.groups_]
    return [values * scale[group] for values, group in zip(own, model.groups_, strict=True)]


def groups_table(model: Any) -> str:
    """The groups, those with the largest coefficients first."""
    if not has_groups(model):
        return ""
    scaled = not np.all(getattr(model, "scale_", 1.0) == 1.0)
    norm = "norm of the coefficients" + (" of the standardised columns" if scaled else "")
    of, active = part_names(model), np.atleast_2d(model.active_groups_)
    kind = "class" if hasattr(model, "classes_") else "output"
    rows: list[tuple[float, dict[str, Any]]] = []
    for part, used in enumerate(active):
        where = {kind: of[part].removeprefix(f"{kind} ")} if of else {}
        for label, values, is_active in zip(group_labels(model), _values(model, part), used, strict=True):
            size = float(np.linalg.norm(values))
            row = {"group": label, "features": values.size, norm: f"{size:.6g}", "active": "yes" if is_active else "no"}
            rows.append((size, where | row))
    rows.sort(key=lambda pair: -pair[0])
    more = f"<p>The {MOST_ROWS} largest of {len(rows):,}.</p>" if len(rows) > MOST_ROWS else ""
    return html.table([row for _, row in rows[:MOST_ROWS]], "Groups") + more


def group_picture(model: Any, part: int) -> tuple[Any, str]:
    """The axes with the coefficients group by group, of one class or output; and the caption's words on what is shown.

    The heights mean the same in the pictures of all classes and outputs.
    """
    every = _values(model, part)
    norms = np.array([np.linalg.norm(values) for values in every])
    order = np.argsort(-norms, kind="stable")
    fitting = int(np.count_nonzero(np.cumsum([every[g].size for g in order]) <= MOST_DRAWN))
    shown = np.sort(order[: max(1, fitting)])
    ax = new_axes(None, (6.6, 4.2))
    limit = max(float(np.abs(np.concatenate(_values(model, k))).max(initial=0.0)) for k in range(_parts(model))) or 1.0
    start, middles = 0, []
    for k, g in enumerate(shown):
        at = start + np.arange(every[g].size)
        color = CLUSTERS[k % len(CLUSTERS)] if norms[g] > 0.0 else "#999999"
        ax.vlines(at, 0.0, every[g], color=color, linewidth=1.2)
        ax.plot(at, every[g], linestyle="", marker="o", markersize=3.5 if start < 100 else 2.0, color=color)
        middles.append(float(at.mean()) if at.size else start - 0.5)
        start += every[g].size
        if k < shown.size - 1:
            ax.axvline(start - 0.5, color="#DDDDDD", linewidth=0.7, zorder=0)
    _name_groups(ax, [shortened(group_labels(model)[g]) for g in shown], middles)
    ax.axhline(0.0, color=INK, linewidth=0.6)
    scaled = not np.all(getattr(model, "scale_", 1.0) == 1.0)
    ax.set(xlabel="group", ylabel="coefficient" + (" of the standardised column" if scaled else ""),
           ylim=(-1.08 * limit, 1.08 * limit))  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    which = "" if shown.size == len(every) else f"; the {shown.size} of {len(every):,} groups with the largest norms"
    return ax, which


def _parts(model: Any) -> int:
    return len(np.atleast_2d(model.coef_))


def _name_groups(ax: Any, names: list[str], middles: list[float]) -> None:
    """The names of groups as ticks: all of them, or some at equal distances."""
    kept = range(0, len(names), -(-len(names) // MOST_TICKS))
    texts = [names[k] for k in kept]
    slanted = sum(map(len, texts)) > TICK_CHARACTERS
    ax.set_xticks([middles[k] for k in kept], texts, rotation=45 if slanted else 0, ha="right" if slanted else "center",
                  rotation_mode="anchor" if slanted else "default")  # fmt: skip
