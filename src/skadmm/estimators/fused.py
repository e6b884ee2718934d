"""The fused lasso on a graph: coefficients that are sparse, and equal over neighbours."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from skadmm._types import (
    Bounds,
    ByName,
    Categories,
    ClassWeight,
    CrossValidator,
    FilePath,
    Graph,
    LossLike,
    OutputPenalty,
    PenaltyFactor,
    RandomState,
    Scoring,
)
from skadmm.estimators._base import SeveralOutputs, StructuredModel
from skadmm.estimators._categories import level_graph
from skadmm.estimators._classification import Classification, SeveralClasses
from skadmm.estimators._cv import CrossValidated
from skadmm.estimators._factors import NO_FACTORS, checked_factors
from skadmm.estimators._graphs import FeatureGraph, feature_graph, joined
from skadmm.estimators._online import OnlineClassification, OnlineRegression
from skadmm.estimators._penalty import Penalty, checked_ratio, with_l1
from skadmm.estimators._regression import Regression


class _Fused(StructuredModel):
    graph: Any
    l1_ratio: Any
    edge_weights: Any
    edge_signs: Any
    unknown: str
    penalty_factor: Any
    monotone: Any
    categorical_features: Any
    graph_: Any

    def _penalty(self, X: Any, names: Any) -> Penalty:
        graph, factors = self._feature_graph(X, names), NO_FACTORS
        if self.penalty_factor is not None:
            factors = checked_factors(self.penalty_factor, X.shape[1], names, graph.edges)
        return Penalty(with_l1(graph.matrix(), checked_ratio(self.l1_ratio), factors), graph=graph)

    def _feature_graph(self, X: Any, names: Any) -> FeatureGraph:
        """The graph given, and the edges between the levels of categorical columns."""
        levels = level_graph(self) if self.categorical_features is not None else None
        if levels is not None and (self.graph is None or (isinstance(self.graph, str) and self.graph == "chain")):
            return levels
        graph = feature_graph(
            self.graph, X, names, weights=self.edge_weights, signs=self.edge_signs, unknown=self.unknown
        )
        return graph if levels is None else joined(graph, levels)


class FusedLassoClassifier(SeveralClasses, _Fused, OnlineClassification):
    """Classification by the fused lasso on a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty, or one multinomial model.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    graph : None, "chain", tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None or "chain": a chain in column order. A tuple of integers: a grid of that
        shape. Nodes may be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or
        triples with a value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another attribute or column. An array: one number ≥ 0 per edge, in the order of the list or of
        ``graph.edges``; of an adjacency matrix row by row of its upper triangle.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 penalises the sum of the two coefficients of an edge in place of their difference. None: the signs of the
        values that the graph carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as
        None, but an error where the graph carries none.
    unknown : {"raise", "ignore"}
        What to do with nodes of the graph that are not among the columns of X: refuse them with a list of all, or leave
        them out with their edges and a warning that counts them.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature or an edge is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature,
        which multiplies its term of the ℓ1 norm, or a dict or Series by name (others: 1). Pairs of names as keys are
        edges, whose weights are multiplied; a pair (features, edges) holds both, and either may be None.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing", array, dict or None
        An exact order of the coefficients along the edges of the graph: in column order for a chain, a grid, an
        adjacency matrix or an undirected graph; from the first to the second node for a directed graph or a list of
        edges. An array has −1, 0 or +1 for each edge; a dict has a direction for the levels of categorical columns.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. Ordered levels form a chain, unordered ones are joined in all
        pairs, and other columns have no edges unless `graph` gives some. "from_dtype" takes those of a categorical
        dtype of pandas or polars. A dict has "ordered", "unordered" or the levels in their order, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    multi_class : "ovr" or "multinomial"
        More than two classes: one model for each class against the rest, or one multinomial model of all.
    output_penalty : "entries", "rows", "rows-linf" or "nuclear"
        With several outputs in one model: penalise every coefficient; or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge) is zero in all outputs or in none; or the nuclear norm of the matrix
        over all of them, so that the outputs share a few directions (``rank_``).
    task_graph : None, "complete", networkx graph, adjacency matrix or edge list
        With several outputs in one model: a graph over them. The absolute differences of the coefficients over its
        edges are added to the penalty. Nodes are the names of outputs (the columns of a DataFrame `y`, or classes)
        where these are strings, or their numbers from 0.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients; two classes have one row.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    clusters_ : ndarray of int
        The number of each feature's cluster, −1 where the coefficient is fused to zero. Coefficients of a cluster are
        equal, across edges with a negative sign up to their sign.
    n_clusters_ : int or list of int
        The number of clusters that are not zero.
    graph_ : FeatureGraph
        The graph that was used, with the names of the features.
    adaptive_weights_ : ndarray
        With `adaptive`, the weight of each row of the penalty: of edges or groups, then of features.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    categories_ : dict
        With `categorical_features`, the levels of each categorical column.
    feature_names_out_ : ndarray of str
        With `categorical_features`, a name for each coefficient: the column's, or "column=level".
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    rank_ : int
        With ``output_penalty="nuclear"`` and several outputs, the rank of the matrix that is penalised.
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.

    See Also
    --------
    skadmm.FusedLassoClassifierCV : With alpha chosen by cross-validation.
    skadmm.FusedLassoRegressor : For numbers.
    skadmm.GeneralizedLassoClassifier : Any penalty matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import FusedLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = FusedLassoClassifier(alpha=0.05).fit(X, y)
    >>> model.coef_.round(2)
    array([[1.3 , 1.19, 0.92, 0.  , 0.24, 0.24]])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        graph: Graph | None = None,
        l1_ratio: float = 0.5,
        edge_weights: ArrayLike | None = None,
        edge_signs: ArrayLike | None = None,
        unknown: Literal["raise", "ignore"] = "raise",
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        adaptive: bool | float = False,
        relax: bool = False,
        categorical_features: Categories | None = None,
        handle_unknown: Literal["error", "ignore"] = "error",
        ridge: float = 0.0,
        loss: LossLike = "logistic",
        multi_class: Literal["ovr", "multinomial"] = "ovr",
        output_penalty: OutputPenalty = "entries",
        task_graph: Graph | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: ClassWeight | None = None,
        method: str = "auto",
        max_passes: float = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.unknown = unknown
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.adaptive = adaptive
        self.relax = relax
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.ridge = ridge
        self.loss = loss
        self.multi_class = multi_class
        self.output_penalty = output_penalty
        self.task_graph = task_graph
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class FusedLassoRegressor(SeveralOutputs, _Fused, OnlineRegression):
    """Regression by the fused lasso on a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    graph : None, "chain", tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None or "chain": a chain in column order. A tuple of integers: a grid of that
        shape. Nodes may be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or
        triples with a value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another attribute or column. An array: one number ≥ 0 per edge, in the order of the list or of
        ``graph.edges``; of an adjacency matrix row by row of its upper triangle.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 penalises the sum of the two coefficients of an edge in place of their difference. None: the signs of the
        values that the graph carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as
        None, but an error where the graph carries none.
    unknown : {"raise", "ignore"}
        What to do with nodes of the graph that are not among the columns of X: refuse them with a list of all, or leave
        them out with their edges and a warning that counts them.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature or an edge is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature,
        which multiplies its term of the ℓ1 norm, or a dict or Series by name (others: 1). Pairs of names as keys are
        edges, whose weights are multiplied; a pair (features, edges) holds both, and either may be None.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing", array, dict or None
        An exact order of the coefficients along the edges of the graph: in column order for a chain, a grid, an
        adjacency matrix or an undirected graph; from the first to the second node for a directed graph or a list of
        edges. An array has −1, 0 or +1 for each edge; a dict has a direction for the levels of categorical columns.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. Ordered levels form a chain, unordered ones are joined in all
        pairs, and other columns have no edges unless `graph` gives some. "from_dtype" takes those of a categorical
        dtype of pandas or polars. A dict has "ordered", "unordered" or the levels in their order, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    output_penalty : "entries", "rows", "rows-linf" or "nuclear"
        With several outputs in one model: penalise every coefficient; or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge) is zero in all outputs or in none; or the nuclear norm of the matrix
        over all of them, so that the outputs share a few directions (``rank_``).
    task_graph : None, "complete", networkx graph, adjacency matrix or edge list
        With several outputs in one model: a graph over them. The absolute differences of the coefficients over its
        edges are added to the penalty. Nodes are the names of outputs (the columns of a DataFrame `y`, or classes)
        where these are strings, or their numbers from 0.
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
    clusters_ : ndarray of int
        The number of each feature's cluster, −1 where the coefficient is fused to zero. Coefficients of a cluster are
        equal, across edges with a negative sign up to their sign.
    n_clusters_ : int or list of int
        The number of clusters that are not zero.
    graph_ : FeatureGraph
        The graph that was used, with the names of the features.
    adaptive_weights_ : ndarray
        With `adaptive`, the weight of each row of the penalty: of edges or groups, then of features.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    categories_ : dict
        With `categorical_features`, the levels of each categorical column.
    feature_names_out_ : ndarray of str
        With `categorical_features`, a name for each coefficient: the column's, or "column=level".
    output_names_ : list of str
        The names of the columns of y, where it has several that have names; reports use them.
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    rank_ : int
        With ``output_penalty="nuclear"`` and several outputs, the rank of the matrix that is penalised.
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.

    See Also
    --------
    skadmm.FusedLassoRegressorCV : With alpha chosen by cross-validation.
    skadmm.FusedLassoClassifier : For classes.
    skadmm.GeneralizedLassoRegressor : Any penalty matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressor(alpha=0.1).fit(X, y)
    >>> model.coef_.round(2)
    array([0.87, 0.84, 0.89, 0.  , 0.06, 0.12])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        graph: Graph | None = None,
        l1_ratio: float = 0.5,
        edge_weights: ArrayLike | None = None,
        edge_signs: ArrayLike | None = None,
        unknown: Literal["raise", "ignore"] = "raise",
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        adaptive: bool | float = False,
        relax: bool = False,
        categorical_features: Categories | None = None,
        handle_unknown: Literal["error", "ignore"] = "error",
        ridge: float = 0.0,
        loss: LossLike = "squared",
        output_penalty: OutputPenalty = "entries",
        task_graph: Graph | None = None,
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
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.unknown = unknown
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.adaptive = adaptive
        self.relax = relax
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.ridge = ridge
        self.loss = loss
        self.output_penalty = output_penalty
        self.task_graph = task_graph
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class FusedLassoClassifierCV(SeveralClasses, _Fused, CrossValidated, Classification):
    """Classification by the fused lasso on a graph, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty, or one multinomial model.

    Parameters
    ----------
    alphas : int or array
        The number of alphas between alpha_max and eps · alpha_max, or the alphas themselves.
    eps : float in (0, 1)
        The ratio of the smallest alpha to alpha_max, where `alphas` is a number.
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
    graph : None, "chain", tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None or "chain": a chain in column order. A tuple of integers: a grid of that
        shape. Nodes may be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or
        triples with a value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another attribute or column. An array: one number ≥ 0 per edge, in the order of the list or of
        ``graph.edges``; of an adjacency matrix row by row of its upper triangle.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 penalises the sum of the two coefficients of an edge in place of their difference. None: the signs of the
        values that the graph carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as
        None, but an error where the graph carries none.
    unknown : {"raise", "ignore"}
        What to do with nodes of the graph that are not among the columns of X: refuse them with a list of all, or leave
        them out with their edges and a warning that counts them.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature or an edge is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature,
        which multiplies its term of the ℓ1 norm, or a dict or Series by name (others: 1). Pairs of names as keys are
        edges, whose weights are multiplied; a pair (features, edges) holds both, and either may be None.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing", array, dict or None
        An exact order of the coefficients along the edges of the graph: in column order for a chain, a grid, an
        adjacency matrix or an undirected graph; from the first to the second node for a directed graph or a list of
        edges. An array has −1, 0 or +1 for each edge; a dict has a direction for the levels of categorical columns.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. Ordered levels form a chain, unordered ones are joined in all
        pairs, and other columns have no edges unless `graph` gives some. "from_dtype" takes those of a categorical
        dtype of pandas or polars. A dict has "ordered", "unordered" or the levels in their order, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    multi_class : "ovr" or "multinomial"
        More than two classes: one model for each class against the rest, or one multinomial model of all.
    output_penalty : "entries", "rows", "rows-linf" or "nuclear"
        With several outputs in one model: penalise every coefficient; or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge) is zero in all outputs or in none; or the nuclear norm of the matrix
        over all of them, so that the outputs share a few directions (``rank_``).
    task_graph : None, "complete", networkx graph, adjacency matrix or edge list
        With several outputs in one model: a graph over them. The absolute differences of the coefficients over its
        edges are added to the penalty. Nodes are the names of outputs (the columns of a DataFrame `y`, or classes)
        where these are strings, or their numbers from 0.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients; two classes have one row.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    clusters_ : ndarray of int
        The number of each feature's cluster, −1 where the coefficient is fused to zero. Coefficients of a cluster are
        equal, across edges with a negative sign up to their sign.
    n_clusters_ : int or list of int
        The number of clusters that are not zero.
    graph_ : FeatureGraph
        The graph that was used, with the names of the features.
    adaptive_weights_ : ndarray
        With `adaptive`, the weight of each row of the penalty: of edges or groups, then of features.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    categories_ : dict
        With `categorical_features`, the levels of each categorical column.
    feature_names_out_ : ndarray of str
        With `categorical_features`, a name for each coefficient: the column's, or "column=level".
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    rank_ : int
        With ``output_penalty="nuclear"`` and several outputs, the rank of the matrix that is penalised.
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
        The solutions over all the data; a list for more than two classes. ``path_.dof`` counts the
        intercept, and ``dof_`` does not.
    coefs_path_ : ndarray of shape (n_alphas, n_features) or (n_alphas, n_classes, n_features)
        The coefficients along the path.

    See Also
    --------
    skadmm.FusedLassoClassifier : With a given alpha.
    skadmm.FusedLassoRegressorCV : For numbers.
    skadmm.GeneralizedLassoClassifierCV : Any penalty matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import FusedLassoClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = FusedLassoClassifierCV(alphas=5, cv=3, eps=0.01).fit(X, y)
    >>> model.coef_.round(2)
    array([[1.57, 1.43, 1.09, 0.  , 0.38, 0.38]])
    >>> model.cv_mean_.shape, model.alpha_ in model.alphas_
    ((5,), True)
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike | None = 50,
        eps: float = 1e-3,
        cv: CrossValidator | None = None,
        selection: Literal["min", "1se", "aic", "bic"] = "min",
        scoring: Scoring | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        checkpoint: FilePath | None = None,
        graph: Graph | None = None,
        l1_ratio: ArrayLike = 0.5,
        edge_weights: ArrayLike | None = None,
        edge_signs: ArrayLike | None = None,
        unknown: Literal["raise", "ignore"] = "raise",
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        adaptive: bool | float = False,
        relax: bool = False,
        categorical_features: Categories | None = None,
        handle_unknown: Literal["error", "ignore"] = "error",
        ridge: float = 0.0,
        loss: LossLike = "logistic",
        multi_class: Literal["ovr", "multinomial"] = "ovr",
        output_penalty: OutputPenalty = "entries",
        task_graph: Graph | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: ClassWeight | None = None,
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
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.unknown = unknown
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.adaptive = adaptive
        self.relax = relax
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.ridge = ridge
        self.loss = loss
        self.multi_class = multi_class
        self.output_penalty = output_penalty
        self.task_graph = task_graph
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class FusedLassoRegressorCV(SeveralOutputs, _Fused, CrossValidated, Regression):
    """Regression by the fused lasso on a graph, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alphas : int or array
        The number of alphas between alpha_max and eps · alpha_max, or the alphas themselves.
    eps : float in (0, 1)
        The ratio of the smallest alpha to alpha_max, where `alphas` is a number.
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
    graph : None, "chain", tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None or "chain": a chain in column order. A tuple of integers: a grid of that
        shape. Nodes may be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or
        triples with a value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another attribute or column. An array: one number ≥ 0 per edge, in the order of the list or of
        ``graph.edges``; of an adjacency matrix row by row of its upper triangle.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 penalises the sum of the two coefficients of an edge in place of their difference. None: the signs of the
        values that the graph carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as
        None, but an error where the graph carries none.
    unknown : {"raise", "ignore"}
        What to do with nodes of the graph that are not among the columns of X: refuse them with a list of all, or leave
        them out with their edges and a warning that counts them.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature or an edge is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature,
        which multiplies its term of the ℓ1 norm, or a dict or Series by name (others: 1). Pairs of names as keys are
        edges, whose weights are multiplied; a pair (features, edges) holds both, and either may be None.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    monotone : "increasing", "decreasing", array, dict or None
        An exact order of the coefficients along the edges of the graph: in column order for a chain, a grid, an
        adjacency matrix or an undirected graph; from the first to the second node for a directed graph or a list of
        edges. An array has −1, 0 or +1 for each edge; a dict has a direction for the levels of categorical columns.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. Ordered levels form a chain, unordered ones are joined in all
        pairs, and other columns have no edges unless `graph` gives some. "from_dtype" takes those of a categorical
        dtype of pandas or polars. A dict has "ordered", "unordered" or the levels in their order, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    output_penalty : "entries", "rows", "rows-linf" or "nuclear"
        With several outputs in one model: penalise every coefficient; or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge) is zero in all outputs or in none; or the nuclear norm of the matrix
        over all of them, so that the outputs share a few directions (``rank_``).
    task_graph : None, "complete", networkx graph, adjacency matrix or edge list
        With several outputs in one model: a graph over them. The absolute differences of the coefficients over its
        edges are added to the penalty. Nodes are the names of outputs (the columns of a DataFrame `y`, or classes)
        where these are strings, or their numbers from 0.
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
    clusters_ : ndarray of int
        The number of each feature's cluster, −1 where the coefficient is fused to zero. Coefficients of a cluster are
        equal, across edges with a negative sign up to their sign.
    n_clusters_ : int or list of int
        The number of clusters that are not zero.
    graph_ : FeatureGraph
        The graph that was used, with the names of the features.
    adaptive_weights_ : ndarray
        With `adaptive`, the weight of each row of the penalty: of edges or groups, then of features.
    penalized_coef_ : ndarray
        With `relax`, the penalised coefficients.
    standard_errors_ : ndarray
        With `relax`, standard errors that take the structure as given; NaN for coefficients that it keeps at zero,
        and for all of them where a bound is active or the loss has kinks.
        Sample weights count as copies of rows here: twice the weights divide them by √2, or about that.
    categories_ : dict
        With `categorical_features`, the levels of each categorical column.
    feature_names_out_ : ndarray of str
        With `categorical_features`, a name for each coefficient: the column's, or "column=level".
    output_names_ : list of str
        The names of the columns of y, where it has several that have names; reports use them.
    dof_ : int or list of int
        Degrees of freedom, without the intercept.
    rank_ : int
        With ``output_penalty="nuclear"`` and several outputs, the rank of the matrix that is penalised.
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
        The solutions over all the data; a list for more than two classes. ``path_.dof`` counts the
        intercept, and ``dof_`` does not.
    coefs_path_ : ndarray of shape (n_alphas, n_features) or (n_alphas, n_classes, n_features)
        The coefficients along the path.

    See Also
    --------
    skadmm.FusedLassoRegressor : With a given alpha.
    skadmm.FusedLassoClassifierCV : For classes.
    skadmm.GeneralizedLassoRegressorCV : Any penalty matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import FusedLassoRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = FusedLassoRegressorCV(alphas=5, cv=3, eps=0.01).fit(X, y)
    >>> model.coef_.round(2)
    array([0.84, 0.84, 0.84, 0.  , 0.06, 0.06])
    >>> model.cv_mean_.shape, model.alpha_ in model.alphas_
    ((5,), True)
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike | None = 50,
        eps: float = 1e-3,
        cv: CrossValidator | None = None,
        selection: Literal["min", "1se", "aic", "bic"] = "min",
        scoring: Scoring | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        checkpoint: FilePath | None = None,
        graph: Graph | None = None,
        l1_ratio: ArrayLike = 0.5,
        edge_weights: ArrayLike | None = None,
        edge_signs: ArrayLike | None = None,
        unknown: Literal["raise", "ignore"] = "raise",
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
        monotone: ByName | None = None,
        adaptive: bool | float = False,
        relax: bool = False,
        categorical_features: Categories | None = None,
        handle_unknown: Literal["error", "ignore"] = "error",
        ridge: float = 0.0,
        loss: LossLike = "squared",
        output_penalty: OutputPenalty = "entries",
        task_graph: Graph | None = None,
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
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.unknown = unknown
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
        self.monotone = monotone
        self.adaptive = adaptive
        self.relax = relax
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.ridge = ridge
        self.loss = loss
        self.output_penalty = output_penalty
        self.task_graph = task_graph
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
