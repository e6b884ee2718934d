"""Trend filtering: a signal over a line or a graph, or the coefficients of a table."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from skadmm._types import Bounds, ByName, CrossValidator, FilePath, Graph, LossLike, RandomState, Scoring
from skadmm.estimators._cv import CrossValidated
from skadmm.estimators._regression import Regression
from skadmm.estimators._trends import TrendModel


class TrendFilter(TrendModel, Regression):
    """Trend filtering: a signal, or coefficients, piecewise polynomial along a line or over a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) ‖D x‖₁ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², D the differences of order
    `order` + 1.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    order : int ≥ 0
        The degree of the pieces: 0 constant, 1 linear, 2 quadratic, 3 cubic; at most 3 for a signal along a line,
        because rounding prevents accurate fits of higher orders. At most two less than there are distinct positions, or
        one less than there are columns of a table.
    graph : None or a graph, as for the fused lasso
        Trends over a graph in place of a line; in a signal the nodes are the numbers in `X`. Weights and signs that the
        graph carries are used.
    design : "auto", "positions" or "matrix"
        "positions": `X` has one column, the positions of the observations (or node numbers), and the model is a signal
        over them. "matrix": `X` is a table, and its coefficients follow the trend in column order. "auto": positions
        where `X` has one column.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing" or None
        An exact order of the signal along its positions (or edges), or of the coefficients in column order.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    method : str
        "auto", or the name of a method in ``skadmm.ALGORITHMS`` or of a solver in ``skadmm.SOLVERS``.
    max_passes : float
        Stop after this many passes over the data. Completing a step and computing its duality gap may take a few more.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    warm_start : bool
        Start from the last solution.
    random_state : int, generator or None
        Draws the samples of stochastic methods; the default method draws none.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    dates_ : bool
        Whether `X` was a column of dates; ``positions_`` and ``knots_`` are then nanoseconds since 1970-01-01 (UTC).
    positions_ : ndarray or None
        The distinct positions of a signal, at which ``coef_`` is its value, without those that only occur in rows of
        weight zero; None for a table. Dates are nanoseconds since 1970-01-01 (UTC), whatever the unit of their dtype;
        ``pandas.to_datetime`` turns them and ``knots_`` back into dates.
    knots_, changepoints_ : ndarray or None
        Where pieces of a signal along a line meet, as positions and as indices into ``positions_``: a piece ends
        before, and the next one begins at, each of them. None for tables and graphs.
    clusters_, n_clusters_ : ndarray of int, int
        For order 0 the pieces, as in the fused lasso.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.

    See Also
    --------
    skadmm.TrendFilterCV : With alpha chosen by cross-validation.
    skadmm.FusedLassoRegressor : Coefficients that are piecewise constant over a graph.
    skadmm.plotting.trend_fit : Draws the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import TrendFilter
    >>> rng = np.random.default_rng(0)
    >>> position = np.arange(40.0)[:, None]
    >>> signal = np.abs(position[:, 0] - 20.0) + 0.1 * rng.standard_normal(40)
    >>> model = TrendFilter(alpha=0.1, order=1).fit(position, signal)
    >>> model.knots_
    array([16., 17., 20., 22.])
    >>> model.predict([[0.0], [20.5]]).round(1)
    array([20. ,  0.6])
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        order: int = 1,
        graph: Graph | None = None,
        design: Literal["auto", "positions", "matrix"] = "auto",
        l1_ratio: float = 0.0,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        relax: bool = False,
        ridge: float = 0.0,
        loss: LossLike = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        method: str = "auto",
        max_passes: float = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.order = order
        self.graph = graph
        self.design = design
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.relax = relax
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class TrendFilterCV(TrendModel, CrossValidated, Regression):
    """Trend filtering, with alpha chosen by cross-validation.

    A signal, or the coefficients of a table, are piecewise polynomial along a line or over a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) ‖D x‖₁ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², D the differences of order
    `order` + 1.

    Parameters
    ----------
    alphas : int or array
        The number of alphas between alpha_max and eps · alpha_max, or the alphas themselves.
    eps : float in (0, 1) or None
        None: 1e-3, and for a signal along a line a hundred times less for each order.
    cv : int, splitter or None
        A number of folds (None: 5), a splitter of scikit-learn, or pairs of training and test rows: numbers or masks.
    selection : "min", "1se", "aic" or "bic"
        The minimum mean held-out loss; the largest alpha within one standard error of it; or an information criterion
        on one path over all the data.
    scoring : str, callable or None
        How a model is scored on held-out rows: the name of a scorer of scikit-learn, or a function of
        (estimator, X, y); higher is better. None: the mean held-out loss, lower is better.
    refit : bool
        False: only the scores and the best parameters are kept, and no model is fitted to all the data.
    n_jobs : int or None
        The number of folds that are solved at the same time, in threads that share the data. With
        ``joblib.parallel_config("loky")`` they are processes.
    checkpoint : str, path or None
        A file in which the search is stored while it runs. Where it exists already, a search of the same model and data
        continues with the fold and the alpha that were interrupted.
    order : int ≥ 0
        The degree of the pieces: 0 constant, 1 linear, 2 quadratic, 3 cubic; at most 3 for a signal along a line,
        because rounding prevents accurate fits of higher orders. At most two less than there are distinct positions, or
        one less than there are columns of a table.
    graph : None or a graph, as for the fused lasso
        Trends over a graph in place of a line; in a signal the nodes are the numbers in `X`. Weights and signs that the
        graph carries are used.
    design : "auto", "positions" or "matrix"
        "positions": `X` has one column, the positions of the observations (or node numbers), and the model is a signal
        over them. "matrix": `X` is a table, and its coefficients follow the trend in column order. "auto": positions
        where `X` has one column.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing" or None
        An exact order of the signal along its positions (or edges), or of the coefficients in column order.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    method : str
        "auto", or the name of a method in ``skadmm.ALGORITHMS`` or of a solver in ``skadmm.SOLVERS``.
    max_passes : float
        Stop after this many passes over the data. Completing a step and computing its duality gap may take a few more.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    random_state : int, generator or None
        Draws the samples of stochastic methods; the default method draws none.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    dates_ : bool
        Whether `X` was a column of dates; ``positions_`` and ``knots_`` are then nanoseconds since 1970-01-01 (UTC).
    positions_ : ndarray or None
        The distinct positions of a signal, at which ``coef_`` is its value, without those that only occur in rows of
        weight zero; None for a table. Dates are nanoseconds since 1970-01-01 (UTC), whatever the unit of their dtype;
        ``pandas.to_datetime`` turns them and ``knots_`` back into dates.
    knots_, changepoints_ : ndarray or None
        Where pieces of a signal along a line meet, as positions and as indices into ``positions_``: a piece ends
        before, and the next one begins at, each of them. None for tables and graphs.
    clusters_, n_clusters_ : ndarray of int, int
        For order 0 the pieces, as in the fused lasso.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.
    alpha_ : float
        The alpha chosen.
    alphas_ : ndarray
        All alphas, decreasing.
    l1_ratio_ : float
        The l1_ratio chosen from a list; ``alphas_`` and the attributes below then have a row for each l1_ratio.
    cv_losses_, cv_mean_, cv_se_ : ndarray
        Held-out losses by alpha and fold, their mean and its standard error.
    cv_scores_ : ndarray
        Held-out scores, in place of ``cv_losses_``, where `scoring` is given.
    criterion_ : ndarray
        AIC or BIC by alpha, where `selection` is one of them.
    path_ : Path or list of Path
        The solutions over all the data; a list for more than two classes. For a table, ``path_.dof`` counts
        the intercept, and ``dof_`` does not.
    coefs_path_ : ndarray of shape (n_alphas, n_features) or (n_alphas, n_classes, n_features)
        The coefficients along the path.

    See Also
    --------
    skadmm.TrendFilter : With a given alpha.
    skadmm.plotting.cv_curve : Draws the held-out loss.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import TrendFilterCV
    >>> rng = np.random.default_rng(0)
    >>> position = np.arange(40.0)[:, None]
    >>> signal = np.abs(position[:, 0] - 20.0) + 0.1 * rng.standard_normal(40)
    >>> model = TrendFilterCV(order=1, alphas=8, cv=4, selection="1se").fit(position, signal)
    >>> model.alpha_ in model.alphas_, model.knots_.size < 10
    (True, True)
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike | None = 50,
        eps: float | None = None,
        cv: CrossValidator | None = None,
        selection: Literal["min", "1se", "aic", "bic"] = "min",
        scoring: Scoring | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        checkpoint: FilePath | None = None,
        order: int = 1,
        graph: Graph | None = None,
        design: Literal["auto", "positions", "matrix"] = "auto",
        l1_ratio: ArrayLike = 0.0,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        relax: bool = False,
        ridge: float = 0.0,
        loss: LossLike = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        method: str = "auto",
        max_passes: float = 2000,
        tol: float = 1e-6,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.order = order
        self.graph = graph
        self.design = design
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.relax = relax
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
