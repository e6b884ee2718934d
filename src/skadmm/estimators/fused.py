"""The fused lasso on a graph: coefficients that are sparse, and equal over neighbours."""

from __future__ import annotations

from typing import Any

from skadmm.estimators._base import StructuredModel
from skadmm.estimators._classification import Classification
from skadmm.estimators._cv import CrossValidated
from skadmm.estimators._graphs import feature_graph
from skadmm.estimators._online import OnlineClassification, OnlineRegression
from skadmm.estimators._penalty import Penalty, checked_ratio, with_l1
from skadmm.estimators._regression import Regression


class _Fused(StructuredModel):
    graph: Any
    l1_ratio: Any
    edge_weights: Any
    edge_signs: Any
    graph_: Any

    def _penalty(self, X: Any, names: Any) -> Penalty:
        ratio = checked_ratio(self.l1_ratio)
        graph = feature_graph(self.graph, X, names, weights=self.edge_weights, signs=self.edge_signs)
        return Penalty(with_l1(graph.matrix(), ratio), graph=graph)


class FusedLassoClassifier(_Fused, OnlineClassification):
    """Classification by the fused lasso on a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    graph : None, tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None: a chain in column order. A tuple of integers: a grid of that shape. Nodes may
        be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or triples with a
        value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another edge attribute. An array: one number ≥ 0 per edge.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 pulls the coefficients of an edge towards each other's negative. None: the signs of the values that the graph
        carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as None, but an error where
        the graph carries none.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    class_weight : dict, "balanced" or None
    method : "auto" or a name in ``skadmm.ALGORITHMS``
    max_passes : float
        At most this many passes over the data.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    warm_start : bool
        Start from the last solution.
    random_state : int, generator or None
    verbose : int, 1 shows progress on a terminal

    Attributes
    ----------
    coef_, intercept_ : the coefficients, one row per problem, and the intercept
    classes_ : the classes
    clusters_ : for each feature the number of its cluster, −1 where the coefficient is fused to zero
    n_clusters_ : the number of clusters that are not zero
    graph_ : FeatureGraph, the graph used, with the features' names
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        graph: Any = None,
        l1_ratio: float = 0.5,
        edge_weights: Any = None,
        edge_signs: Any = None,
        ridge: float = 0.0,
        loss: Any = "logistic",
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Any = None,
        method: str = "auto",
        max_passes: float = 500,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class FusedLassoRegressor(_Fused, OnlineRegression):
    """Regression by the fused lasso on a graph.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    graph : None, tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None: a chain in column order. A tuple of integers: a grid of that shape. Nodes may
        be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or triples with a
        value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another edge attribute. An array: one number ≥ 0 per edge.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 pulls the coefficients of an edge towards each other's negative. None: the signs of the values that the graph
        carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as None, but an error where
        the graph carries none.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    method : "auto" or a name in ``skadmm.ALGORITHMS``
    max_passes : float
        At most this many passes over the data.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    warm_start : bool
        Start from the last solution.
    random_state : int, generator or None
    verbose : int, 1 shows progress on a terminal

    Attributes
    ----------
    coef_, intercept_ : the coefficients, and the intercept
    clusters_ : for each feature the number of its cluster, −1 where the coefficient is fused to zero
    n_clusters_ : the number of clusters that are not zero
    graph_ : FeatureGraph, the graph used, with the features' names
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        graph: Any = None,
        l1_ratio: float = 0.5,
        edge_weights: Any = None,
        edge_signs: Any = None,
        ridge: float = 0.0,
        loss: Any = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        method: str = "auto",
        max_passes: float = 500,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
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


class FusedLassoClassifierCV(_Fused, CrossValidated, Classification):
    """Classification by the fused lasso on a graph, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty.

    Parameters
    ----------
    alphas : int or array
        The number of alphas between alpha_max and eps · alpha_max, or the alphas themselves.
    eps : float in (0, 1)
    cv : int, splitter or None
        As in scikit-learn.
    selection : "min", "1se", "aic" or "bic"
        The smallest mean held-out loss; the largest alpha within one standard error of it; or an information criterion
        on one path over all the data.
    scoring : str, callable or None
        How held-out rows judge a model: the name of a scorer of scikit-learn, or a function of (estimator, X, y), more
        is better. None: the mean held-out loss, less is better.
    refit : bool
        False: only the scores and the best parameters are kept, and no model is fitted to all the data.
    n_jobs : int or None
        Folds at a time, in threads that share the data; ``joblib.parallel_config("loky")`` takes processes.
    graph : None, tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None: a chain in column order. A tuple of integers: a grid of that shape. Nodes may
        be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or triples with a
        value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another edge attribute. An array: one number ≥ 0 per edge.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 pulls the coefficients of an edge towards each other's negative. None: the signs of the values that the graph
        carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as None, but an error where
        the graph carries none.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    class_weight : dict, "balanced" or None
    method : "auto" or a name in ``skadmm.ALGORITHMS``
    max_passes : float
        At most this many passes over the data.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    random_state : int, generator or None
    verbose : int, 1 shows progress on a terminal

    Attributes
    ----------
    coef_, intercept_ : the coefficients, one row per problem, and the intercept
    classes_ : the classes
    clusters_ : for each feature the number of its cluster, −1 where the coefficient is fused to zero
    n_clusters_ : the number of clusters that are not zero
    graph_ : FeatureGraph, the graph used, with the features' names
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    alpha_, alphas_ : the alpha chosen, and all of them
    l1_ratio_ : the l1_ratio chosen from a list; ``alphas_`` and the attributes below then have a row for each l1_ratio
    cv_losses_, cv_mean_, cv_se_ : held-out losses by alpha and fold, their mean and its standard error
    cv_scores_ : held-out scores, in place of ``cv_losses_``, where `scoring` is given
    criterion_ : AIC or BIC by alpha, where `selection` is one of them
    path_ : Path, the solutions over all the data, or a list of them for more than two classes
    coefs_path_ : array of shape (n_alphas, n_features), or (n_alphas, n_classes, n_features): its coefficients
    """

    def __init__(
        self,
        *,
        alphas: Any = 50,
        eps: float = 1e-3,
        cv: Any = None,
        selection: str = "min",
        scoring: Any = None,
        refit: bool = True,
        n_jobs: Any = None,
        graph: Any = None,
        l1_ratio: Any = 0.5,
        edge_weights: Any = None,
        edge_signs: Any = None,
        ridge: float = 0.0,
        loss: Any = "logistic",
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Any = None,
        method: str = "auto",
        max_passes: float = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class FusedLassoRegressorCV(_Fused, CrossValidated, Regression):
    """Regression by the fused lasso on a graph, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_edges w|xᵢ − s xⱼ| + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alphas : int or array
        The number of alphas between alpha_max and eps · alpha_max, or the alphas themselves.
    eps : float in (0, 1)
    cv : int, splitter or None
        As in scikit-learn.
    selection : "min", "1se", "aic" or "bic"
        The smallest mean held-out loss; the largest alpha within one standard error of it; or an information criterion
        on one path over all the data.
    scoring : str, callable or None
        How held-out rows judge a model: the name of a scorer of scikit-learn, or a function of (estimator, X, y), more
        is better. None: the mean held-out loss, less is better.
    refit : bool
        False: only the scores and the best parameters are kept, and no model is fitted to all the data.
    n_jobs : int or None
        Folds at a time, in threads that share the data; ``joblib.parallel_config("loky")`` takes processes.
    graph : None, tuple, networkx graph, adjacency matrix, edge list or "precision"
        The features' neighbourhood. None: a chain in column order. A tuple of integers: a grid of that shape. Nodes may
        be column numbers, or the names of a DataFrame's columns; the edges of a list are pairs, or triples with a
        value. "precision": learnt from the training rows.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    edge_weights : None, False, True, str or array
        None: the absolute values that the graph carries (entries of the adjacency matrix, the edge attribute "weight",
        the third entry of an edge), else 1. False: 1. True: as None, but an error where the graph carries none. A
        string: another edge attribute. An array: one number ≥ 0 per edge.
    edge_signs : None, False, "adjacency" or array of −1 and +1
        −1 pulls the coefficients of an edge towards each other's negative. None: the signs of the values that the graph
        carries ("precision": of the partial correlations), else +1. False: +1. "adjacency": as None, but an error where
        the graph carries none.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    fit_intercept : bool
        The intercept is never penalised.
    standardize : bool
        Penalise the coefficients of columns divided by their standard deviation; ``coef_`` is on the original scale.
    method : "auto" or a name in ``skadmm.ALGORITHMS``
    max_passes : float
        At most this many passes over the data.
    tol : float
        The relative duality gap to reach, or the relative KKT residual where there is no certificate.
    random_state : int, generator or None
    verbose : int, 1 shows progress on a terminal

    Attributes
    ----------
    coef_, intercept_ : the coefficients, and the intercept
    clusters_ : for each feature the number of its cluster, −1 where the coefficient is fused to zero
    n_clusters_ : the number of clusters that are not zero
    graph_ : FeatureGraph, the graph used, with the features' names
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    alpha_, alphas_ : the alpha chosen, and all of them
    l1_ratio_ : the l1_ratio chosen from a list; ``alphas_`` and the attributes below then have a row for each l1_ratio
    cv_losses_, cv_mean_, cv_se_ : held-out losses by alpha and fold, their mean and its standard error
    cv_scores_ : held-out scores, in place of ``cv_losses_``, where `scoring` is given
    criterion_ : AIC or BIC by alpha, where `selection` is one of them
    path_ : Path, the solutions over all the data, or a list of them for more than two classes
    coefs_path_ : array of shape (n_alphas, n_features), or (n_alphas, n_classes, n_features): its coefficients
    """

    def __init__(
        self,
        *,
        alphas: Any = 50,
        eps: float = 1e-3,
        cv: Any = None,
        selection: str = "min",
        scoring: Any = None,
        refit: bool = True,
        n_jobs: Any = None,
        graph: Any = None,
        l1_ratio: Any = 0.5,
        edge_weights: Any = None,
        edge_signs: Any = None,
        ridge: float = 0.0,
        loss: Any = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        method: str = "auto",
        max_passes: float = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.selection = selection
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.graph = graph
        self.l1_ratio = l1_ratio
        self.edge_weights = edge_weights
        self.edge_signs = edge_signs
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
