"""The part of a report with a slider: the coefficients, or the signal, at any strength of the path."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.backends.frames import as_dates
from skadmm.estimators._report_tables import coefficient_names, is_relaxed, is_signal, part_names
from skadmm.io import page as html
from skadmm.plotting.graphs import shortened

MOST_FEATURES = 1000
"""Features in the picture: those with the largest coefficients along the path; of a signal, positions."""
DIGITS = 5
LABEL_CHARACTERS = 80
"""Characters of all labels of the horizontal axis together."""
UNITS = (
    ("Y", 4), ("M", 7), ("D", 10), ("m", 16), ("ms", 23),
)  # fmt: skip
"""Units of dates, and the characters of a date that shows them."""


def slider(model: Any) -> str:
    """The coefficients at any strength of the path, of one class or output at a time."""
    content, left_out = _content(model)
    parts = part_names(model)
    options = "".join(f'<option value="{k}">{html.escape(part)}</option>' for k, part in enumerate(parts))
    choice = f'<label for="part">coefficients of</label><select id="part">{options}</select>' if parts else ""
    drawn = html.scrolling(
        '<svg id="coefficients" role="img" aria-label="Coefficients at the chosen strength"></svg>',
        "Coefficients along the path",
    )
    kind = "signal" if is_signal(model) else "coefficients"
    penalised, rings = (f"penalised {kind}", " Rings: the relaxed values, at the chosen strength.") if is_relaxed(
        model) else (kind, "")  # fmt: skip
    return (
        f'<script type="application/json" id="path">{html.embedded(content)}</script><figure>{drawn}'
        f'<div class="slider">{choice}<label for="strength">strength</label><input type="range" id="strength" min="0" '
        f'max="{len(content["alphas"]) - 1}" value="{content["chosen"]}"><output id="strength-text" for="strength">'
        f"</output></div><figcaption>The {penalised} along the path: move the slider to another strength."
        f"{left_out}{rings}</figcaption></figure>"
    )


def _content(model: Any) -> tuple[dict[str, Any], str]:
    """What the script draws, and a sentence about what it leaves out."""
    path = model.path_[0] if isinstance(model.path_, list) else model.path_
    coefs = np.asarray(model.coefs_path_)
    coefs = coefs[:, None] if coefs.ndim == 2 else coefs
    d, names = coefs.shape[2], coefficient_names(model)
    signal = is_signal(model)
    shown, left_out = np.arange(d), ""
    if d > MOST_FEATURES and signal:
        shown = np.linspace(0, d - 1, MOST_FEATURES).round().astype(int)
        left_out = f" {MOST_FEATURES:,} of {d:,} positions."
    elif d > MOST_FEATURES:
        height = np.abs(coefs).max(axis=(0, 1))
        used = max(1, int(np.count_nonzero(height)))
        shown = np.sort(np.argsort(-height, kind="stable")[: min(used, MOST_FEATURES)])
        kind = "that are not zero everywhere" if used <= MOST_FEATURES else "with the largest coefficients"
        left_out = f" The {shown.size:,} of {d:,} features {kind} along the path."
    values = coefs[:, :, shown].transpose(1, 0, 2)
    content: dict[str, Any] = {
        "alphas": [float(f"{alpha:.{DIGITS}g}") for alpha in path.alphas],
        "coefs": [_short(part) for part in values],
        "counts": np.count_nonzero(coefs, axis=2).T.tolist(),
        "features": [names[j] for j in shown],
        "chosen": int(np.argmin(np.abs(np.log(np.asarray(path.alphas) / model.alpha_)))),
    }
    if is_relaxed(model):
        relaxed = np.atleast_2d(model.coef_)[:, shown]
        content["relaxed"] = _short(relaxed)
        values = np.concatenate([values, relaxed[:, None]], axis=1)
    low, high = (float(values.min()), float(values.max())) if signal else (-float(np.abs(values).max()), None)
    content["vertical"] = _axis(low, -low if high is None else high)
    if not signal:
        content |= {"at": shown.tolist(), "horizontal": _feature_axis(names), "label": "feature"}
        return content, left_out
    positions, dated = model.positions_[shown], bool(getattr(model, "dates_", False))
    content["horizontal"] = (_date_axis if dated else _axis)(float(positions[0]), float(positions[-1]))
    content |= {"at": positions.tolist(), "label": "date" if dated else "position", "signal": True}
    if getattr(model, "graph", None) is None:
        content["line"] = "steps" if model.order == 0 else "straight"
    if model.order == 0 and model.knots_ is not None:
        content["pieces"] = (1 + np.count_nonzero(np.diff(coefs[:, 0]), axis=1)).tolist()
    return content, left_out


def _short(rows: np.ndarray) -> list[list[float]]:
    """The numbers with few digits, as JSON takes them."""
    return [[float(f"{value:.{DIGITS}g}") for value in row] for row in rows]


def _axis(low: float, high: float) -> dict[str, Any]:
    """The range of an axis and its ticks, which are at round numbers."""
    from matplotlib.ticker import MaxNLocator

    if low == high:
        low, high = low - 1.0, high + 1.0
    ticks = np.asarray(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    ticks = ticks[(ticks >= low) & (ticks <= high)]
    largest, step = np.abs(ticks).max(initial=0.0), np.ptp(ticks) / max(1, ticks.size - 1)
    digits = 2 + int(np.ceil(np.log10(largest / step))) if step > 0.0 else 6
    texts = [f"{tick:.{min(15, digits)}g}" if abs(tick) > 1e-9 * step else "0" for tick in ticks]
    return {"range": [low, high], "ticks": [list(pair) for pair in zip(ticks.tolist(), texts, strict=True)]}


def _feature_axis(names: list[str]) -> dict[str, Any]:
    """The range of the numbers of features; its ticks have their names, as many as there is room for."""
    from matplotlib.ticker import MaxNLocator

    d = len(names)
    width = max(len(shortened(name)) for name in (names if d <= MOST_FEATURES else names[-1:]))
    count = max(1, min(10, LABEL_CHARACTERS // max(1, width)))
    numbers = [0]
    if d > 1:
        ticks = MaxNLocator(nbins=count, integer=True).tick_values(0, d - 1)
        numbers = [int(tick) for tick in ticks if 0 <= tick <= d - 1]
    return {"range": [0, d - 1], "ticks": [[j, shortened(names[j]), names[j]] for j in numbers]}


def _date_axis(low: float, high: float) -> dict[str, Any]:
    """The range of an axis of dates; its ticks are whole years, months, days or minutes where that is possible."""
    from matplotlib.dates import AutoDateLocator, date2num, num2date

    first, last = date2num(as_dates(np.array([low, high])))
    ticks = np.asarray(AutoDateLocator(minticks=3, maxticks=7).tick_values(num2date(first), num2date(last)))
    ticks = ticks[(ticks >= first) & (ticks <= last)]
    dates = np.array([num2date(tick).replace(tzinfo=None) for tick in ticks], dtype="datetime64[ms]")
    shown = next(
        length for unit, length in UNITS if unit == "ms" or np.all(dates == dates.astype(f"datetime64[{unit}]"))
    )
    texts = [text[:shown].replace("T", " ") for text in np.datetime_as_string(dates, unit="ms").tolist()]
    places = low + (high - low) * (ticks - first) / max(last - first, np.finfo(float).tiny)
    return {"range": [low, high], "ticks": [list(pair) for pair in zip(places.tolist(), texts, strict=True)]}
