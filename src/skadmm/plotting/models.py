"""Pictures of fitted models: paths, cross-validation, coefficients on grids, trends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm import _checks
from skadmm._types import TableLike, Values
from skadmm.backends.frames import as_dates, dates_as_numbers, from_arrow
from skadmm.plotting.convergence import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

INK = "#444444"
ACCENT = "#D55E00"
BLUE = "#0072B2"
# Distinguishable for colour-blind readers, as far as that is possible for a dozen clusters.
CLUSTERS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#882255",
    "#44AA99",
    "#999933",
    "#332288",
)


def coefficient_path(
    alphas: ArrayLike | BaseEstimator,
    coefs: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    chosen: float | None = None,
    n_named: int = 8,
    problem: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw every coefficient against alpha, the strongest penalty on the left.

    Of a model with ``relax=True`` these are the penalised coefficients, and not the relaxed ones of ``coef_``.

    Parameters
    ----------
    alphas : array of shape (k,), or a fitted estimator whose name ends in CV
        An estimator is drawn with its path over all the data, the names of its features and the alpha it chose.
    coefs : array of shape (k, d)
        Not for an estimator.
    names : sequence of d strings, optional
        The features with the largest coefficients at the end of the path are named.
    chosen : float, optional
        An alpha to mark.
    n_named : int
        How many features are named.
    problem : int
        Which class or output, of an estimator with more than two classes or several outputs.
    ax : Axes or None
        The axes to draw into; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.path : Computes a path.
    skadmm.plotting.cv_curve : The held-out loss along the path.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressorCV
    >>> from skadmm.plotting import coefficient_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressorCV(alphas=5, cv=3, eps=0.01).fit(X, y)
    >>> coefficient_path(model).get_xlabel()
    'alpha (weaker to the right)'
    """
    label = "coefficient"
    if coefs is None:
        model: Any = alphas
        label = "penalised coefficient" if hasattr(model, "penalized_coef_") else label
        alphas, coefs = _path_of(model, problem)
        known = getattr(model, "feature_names_out_", getattr(model, "feature_names_in_", None))
        names = known if names is None else names
        names = [f"x{j}" for j in range(np.shape(coefs)[1])] if names is None else names
        chosen = model.alpha_ if chosen is None else chosen
    alphas, coefs = np.asarray(alphas, dtype=float), np.asarray(coefs, dtype=float)
    if alphas.ndim != 1 or coefs.ndim != 2 or coefs.shape[0] != alphas.size:
        raise ValueError(f"coefs has shape {coefs.shape}: it takes ({alphas.size}, d), one row per alpha")
    if names is not None and len(names) != coefs.shape[1]:
        raise ValueError(f"names has length {len(names)}: coefs has {coefs.shape[1]} columns")
    ax = new_axes(ax)
    order = np.argsort(alphas)
    alphas, coefs = alphas[order], coefs[order]
    largest = np.argsort(-np.abs(coefs[0]), kind="stable")[: n_named if names is not None else 0]
    shown = [j for j in largest if coefs[0, j] != 0]
    for j in range(coefs.shape[1]):
        if j not in shown:
            ax.plot(alphas, coefs[:, j], color=INK, linewidth=0.8, alpha=0.35)
    for k, j in enumerate(shown):
        ax.plot(
            alphas,
            coefs[:, j],
            color=CLUSTERS[k % len(CLUSTERS)],
            linewidth=1.8,
            label=str(names[j]) if names is not None else "",
        )
    if chosen is not None:
        ax.axvline(chosen, color=ACCENT, linewidth=1.2, linestyle="--", label=f"alpha = {chosen:.3g}")
    ax.axhline(0.0, color=INK, linewidth=0.6)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("alpha (weaker to the right)")
    ax.set_ylabel(label)
    if shown:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif chosen is not None:
        _legend_above(ax)
    return _tidy(ax)


def _path_of(model: BaseEstimator, problem: int) -> tuple[np.ndarray, np.ndarray]:
    """The alphas and coefficients of a fitted estimator's path."""
    if not hasattr(model, "coefs_path_"):
        raise ValueError(
            "coefs=None: without it coefficient_path takes an estimator with cross-validation, fitted with refit=True; "
            f"got {type(model).__name__}"
        )
    path = model.path_[problem] if isinstance(model.path_, list) else model.path_
    return path.alphas, model.coefs_path_ if model.coefs_path_.ndim == 2 else model.coefs_path_[:, problem]


def cv_curve(model: BaseEstimator, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out loss or score of a CV estimator: each fold, and the mean with one standard error.

    Parameters
    ----------
    model : estimator
        A fitted estimator whose name ends in CV. With selection "aic" or "bic" the criterion is drawn.
    ax : Axes or None
        The axes to draw into; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.plotting.coefficient_path : The coefficients along the path.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressorCV
    >>> from skadmm.plotting import cv_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressorCV(alphas=5, cv=3, eps=0.01).fit(X, y)
    >>> cv_curve(model).get_xscale()
    'log'
    """
    if not hasattr(model, "alphas_"):
        raise ValueError(f"model={type(model).__name__}: cv_curve takes a fitted estimator with cross-validation")
    ax = new_axes(ax)
    # Of a list of l1_ratio, the one that was chosen.
    row: Any = list(model.l1_ratio).index(model.l1_ratio_) if model.alphas_.ndim == 2 else ...
    alphas, best, extremum = model.alphas_[row], None, "minimum"
    if hasattr(model, "cv_mean_") and model.selection not in ("aic", "bic"):
        scored = hasattr(model, "cv_scores_")
        folds, mean = (model.cv_scores_ if scored else model.cv_losses_)[row], model.cv_mean_[row]
        ax.plot(alphas, folds, color=INK, linewidth=0.7, alpha=0.3)
        ax.errorbar(
            alphas, mean, yerr=model.cv_se_[row], color=BLUE, marker="o", markersize=3.5, linewidth=1.4,
            elinewidth=0.9, capsize=2, label=f"mean of {folds.shape[1]} folds ± one standard error",
        )  # fmt: skip
        best = alphas[int(np.nanargmax(mean) if scored else np.nanargmin(mean))]
        extremum = "maximum" if scored else "minimum"
        if best != model.alpha_:
            ax.axvline(best, color=INK, linewidth=1.0, linestyle=":", label=f"{extremum}: {best:.3g}")
        name = model.scoring if isinstance(model.scoring, str) else "score"
        ax.set_ylabel(f"held-out {name}" if scored else "held-out loss")
    else:
        ax.plot(alphas, model.criterion_[row], color=BLUE, marker="o", markersize=3.5, linewidth=1.4)
        ax.set_ylabel(model.selection.upper())
    if model.selection not in ("aic", "bic") and 0.0 < 3.0 * np.min(model.cv_mean_) < np.max(model.cv_mean_):
        ax.set_yscale("log")  # the flat part is where the choice is made
    chosen = f"chosen: {model.alpha_:.3g}" + (f", the {extremum}" if best == model.alpha_ else "")
    ax.axvline(model.alpha_, color=ACCENT, linewidth=1.4, linestyle="--", label=chosen)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("alpha (weaker to the right)")
    _legend_above(ax)
    return _tidy(ax)


def _legend_above(ax: Axes) -> None:
    """Place the legend above the axes, where it hides no curve: in two columns, or in one where two are too wide."""
    for columns in (2, 1):
        legend = ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns,
                           borderaxespad=0.2)  # fmt: skip
        if legend.get_window_extent().width <= ax.bbox.width:
            break


def coefficient_image(
    model: BaseEstimator,
    shape: Sequence[int] | None = None,
    *,
    problem: int = 0,
    limit: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The coefficients of a model on a two-dimensional grid, red positive and blue negative.

    Parameters
    ----------
    model : estimator or array
        A fitted model, or the coefficients themselves.
    shape : (rows, columns), optional
        By default that of the model's grid.
    problem : int
        Which row of ``coef_``, for more than two classes or several outputs.
    limit : float, optional
        The coefficient of the darkest colours, the largest by default; give the same to pictures side by side.
    ax : Axes or None
        The axes to draw into; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.plotting.coefficients_on_graph : For any graph.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm.plotting import coefficient_image
    >>> axes = coefficient_image(np.arange(6.0), shape=(2, 3))
    >>> axes.images[0].get_array().shape
    (2, 3)
    """
    check_coefficients(model)
    coef = np.atleast_2d(getattr(model, "coef_", model))[problem]
    sides: tuple[int, ...] = tuple(getattr(getattr(model, "graph_", None), "shape", ()) if shape is None else shape)
    if shape is None and len(sides) != 2:
        what = f"the grid of the model has {len(sides)} sides" if sides else f"{type(model).__name__} has no grid"
        raise ValueError(f"shape=None: {what}; give shape=(rows, columns), two lengths whose product is {coef.size}")
    if len(sides) != 2 or int(np.prod(sides)) != coef.size:
        raise ValueError(f"shape={sides!r}: it takes two lengths whose product is {coef.size}")
    own = ax is None
    ax = new_axes(ax, (4.6, 4.0))
    limit = float(np.abs(coef).max()) or 1.0 if limit is None else limit
    image = ax.imshow(coef.reshape(sides), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    if own:
        ax.figure.colorbar(image, ax=ax, shrink=0.85, label="coefficient")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def trend_fit(
    model: BaseEstimator, X: TableLike | None = None, y: Values | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw a fitted signal over its observations.

    Parameters
    ----------
    model : TrendFilter
        Fitted on positions.
    X, y : arrays, optional
        Positions and observations to draw as points.
    ax : Axes or None
        The axes to draw into; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn into.

    See Also
    --------
    skadmm.TrendFilter : Fits the signal.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skadmm import TrendFilter
    >>> from skadmm.plotting import trend_fit
    >>> position = np.arange(20.0)[:, None]
    >>> signal = np.abs(position[:, 0] - 10.0)
    >>> model = TrendFilter(alpha=0.01, order=1).fit(position, signal)
    >>> axes = trend_fit(model, position, signal)
    """
    check_coefficients(model)
    at = getattr(model, "positions_", None)
    if at is None:
        raise ValueError(f"model={type(model).__name__}: trend_fit takes a TrendFilter fitted on positions")
    ax = new_axes(ax)
    dated = bool(getattr(model, "dates_", False))
    if y is not None:
        given = at if X is None else np.asarray(dates_as_numbers(from_arrow(X)), dtype=float)
        positions = given.reshape(len(np.asarray(y)), -1)[:, 0]
        positions = as_dates(positions) if dated else positions
        ax.scatter(positions, np.asarray(y), s=9, color="#999999", alpha=0.7, linewidths=0, label="observed")
    at = as_dates(at) if dated else at
    value = model.coef_ + model.intercept_
    step: dict[str, Any] = {"drawstyle": "steps-post"} if model.order == 0 else {}
    ax.plot(at, value, color=BLUE, linewidth=2.0, label="fitted", **step)
    bends = np.empty(0, dtype=int) if model.changepoints_ is None else model.changepoints_
    if 0 < bends.size <= 60:
        ax.plot(at[bends], value[bends], linestyle="", marker="o", markersize=5, markerfacecolor="white",
                markeredgecolor=ACCENT, label="changes" if model.order == 0 else "knots")  # fmt: skip
    ax.set_xlabel("date" if dated else "position")
    if dated:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    ax.legend(frameon=False, fontsize="small")
    return _tidy(ax)


def check_coefficients(model: Any) -> None:
    """Raise where an estimator has no coefficients: it is not fitted, or was fitted with refit=False."""
    if hasattr(model, "get_params") and not hasattr(model, "coef_"):
        _checks.coefficients(model)


def new_axes(ax: Any, size: tuple[float, float] = (6.4, 4.2)) -> Any:
    """The axes given, or those of a new figure."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _tidy(ax: Any) -> Any:
    ax.grid(True, which="major", linewidth=0.5, alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


__all__ = ["coefficient_image", "coefficient_path", "cv_curve", "trend_fit"]
