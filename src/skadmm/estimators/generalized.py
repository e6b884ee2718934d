"""The generalised lasso: any penalty matrix A, and any penalty with a strength on Ax."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from skadmm._types import (
    Bounds,
    Categories,
    ClassWeight,
    CrossValidator,
    FilePath,
    Graph,
    LossLike,
    Matrix,
    OutputPenalty,
    PenaltyFactor,
    PenaltyLike,
    RandomState,
    Scoring,
)
from skadmm.estimators._base import SeveralOutputs, StructuredModel
from skadmm.estimators._classification import Classification, SeveralClasses
from skadmm.estimators._cv import CrossValidated
from skadmm.estimators._factors import Factors, checked_factors
from skadmm.estimators._online import OnlineClassification, OnlineRegression
from skadmm.estimators._penalty import Penalty, checked_ratio, general_penalty
from skadmm.estimators._regression import Regression
from skadmm.operators.canonical import as_operator
from skadmm.regularizers import REGULARIZERS


class _Generalized(StructuredModel):
    A: Any
    penalty: Any
    l1_ratio: Any
    penalty_factor: Any

    def _penalty(self, X: Any, names: Any) -> Penalty:
        A, d = as_operator(_in_column_order(self.A, names), X.shape[1]), X.shape[1]
        factors = checked_factors(self.penalty_factor, d, names, n_rows=A.shape[0])
        if (self.A is None or isinstance(self.A, str)) and factors.features is not None:
            # A is the identity, so its rows are the features for every share of the ℓ1 norm.
            rows = factors.features if factors.rows is None else factors.rows * factors.features
            factors = Factors(None if checked_ratio(self.l1_ratio) == 0.0 else factors.features, rows)
        return general_penalty(A, self.penalty, checked_ratio(self.l1_ratio), factors)

    def _check_storable(self) -> None:
        super()._check_storable()
        cls = type(self.penalty)
        if not isinstance(self.penalty, str) and all(cls is not known for _, known in REGULARIZERS.items()):
            name = getattr(self.penalty, "name", "a-name")
            raise TypeError(
                f"penalty={self.penalty!r} cannot be saved: a file names its penalty, and this one is not in "
                f"skadmm.regularizers.REGULARIZERS. REGULARIZERS.add({name!r}, {cls.__name__}) adds it, here and "
                "before the file is loaded"
            )


def _in_column_order(A: Any, names: Any) -> Any:
    """A DataFrame with named columns, in the order of the columns of X; other values unchanged."""
    if names is None or not hasattr(A, "columns") or not all(isinstance(column, str) for column in A.columns):
        return A
    missing = [name for name in names if name not in A.columns]
    if missing:
        raise ValueError(f"A has no column {missing[0]!r}: it takes one for each column of X")
    return A[list(names)]


class GeneralizedLassoClassifier(SeveralClasses, _Generalized, OnlineClassification):
    """Classification by the generalised lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) R(Ax) + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², with R = ‖·‖₁
    unless `penalty` names another.
    More than two classes: one against the rest, under one shared penalty, or one multinomial model.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    A : matrix of shape (m, n_features), "identity" or None
        The penalty matrix, its entries used as they are; a DataFrame is matched to the columns of X by name. None is
        the identity, the plain lasso. The matrix of a graph with its weights and signs is
        ``skadmm.operators.incidence(graph)``.
    penalty : str or regulariser
        R: a name in ``skadmm.regularizers.REGULARIZERS``, or an instance such as ``GroupL2(groups=rows)`` or one of
        your own. It needs a field `strength`, whose value alpha replaces. "l1" is ‖Ax‖₁.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature, which
        multiplies its term of the ℓ1 norm, and its row of A where that is the identity; or a dict or Series by name
        (others: 1). A pair (features, rows) also has a number for each row of A.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. "from_dtype" takes those of a categorical dtype of pandas or
        polars. A dict has "ordered", "unordered" or the levels in their order, by column.
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
    clusters_, n_clusters_ : ndarray of int, int
        The features that rows of A with one or two entries fuse, as in the fused lasso.
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
    skadmm.GeneralizedLassoClassifierCV : With alpha chosen by cross-validation.
    skadmm.GeneralizedLassoRegressor : For numbers.
    skadmm.operators.incidence : The penalty matrix of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GeneralizedLassoClassifier
    >>> from skadmm.operators import chain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = GeneralizedLassoClassifier(alpha=0.05, A=chain(6)).fit(X, y)
    >>> model.coef_.round(2)
    array([[1.74, 1.74, 1.33, 0.51, 0.51, 0.51]])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        A: Matrix | None = None,
        penalty: PenaltyLike = "l1",
        l1_ratio: float = 0.0,
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
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
        self.A = A
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
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


class GeneralizedLassoRegressor(SeveralOutputs, _Generalized, OnlineRegression):
    """Regression by the generalised lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) R(Ax) + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², with R = ‖·‖₁
    unless `penalty` names another.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    A : matrix of shape (m, n_features), "identity" or None
        The penalty matrix, its entries used as they are; a DataFrame is matched to the columns of X by name. None is
        the identity, the plain lasso. The matrix of a graph with its weights and signs is
        ``skadmm.operators.incidence(graph)``.
    penalty : str or regulariser
        R: a name in ``skadmm.regularizers.REGULARIZERS``, or an instance such as ``GroupL2(groups=rows)`` or one of
        your own. It needs a field `strength`, whose value alpha replaces. "l1" is ‖Ax‖₁.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature, which
        multiplies its term of the ℓ1 norm, and its row of A where that is the identity; or a dict or Series by name
        (others: 1). A pair (features, rows) also has a number for each row of A.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. "from_dtype" takes those of a categorical dtype of pandas or
        polars. A dict has "ordered", "unordered" or the levels in their order, by column.
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
    clusters_, n_clusters_ : ndarray of int, int
        The features that rows of A with one or two entries fuse, as in the fused lasso.
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
    skadmm.GeneralizedLassoRegressorCV : With alpha chosen by cross-validation.
    skadmm.GeneralizedLassoClassifier : For classes.
    skadmm.operators.incidence : The penalty matrix of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GeneralizedLassoRegressor
    >>> from skadmm.operators import chain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = GeneralizedLassoRegressor(alpha=0.1, A=chain(6)).fit(X, y)
    >>> model.coef_.round(2)
    array([0.9 , 0.9 , 0.9 , 0.09, 0.11, 0.11])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        A: Matrix | None = None,
        penalty: PenaltyLike = "l1",
        l1_ratio: float = 0.0,
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
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
        self.A = A
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
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


class GeneralizedLassoClassifierCV(SeveralClasses, _Generalized, CrossValidated, Classification):
    """Classification by the generalised lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) R(Ax) + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², with R = ‖·‖₁
    unless `penalty` names another.
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
    A : matrix of shape (m, n_features), "identity" or None
        The penalty matrix, its entries used as they are; a DataFrame is matched to the columns of X by name. None is
        the identity, the plain lasso. The matrix of a graph with its weights and signs is
        ``skadmm.operators.incidence(graph)``.
    penalty : str or regulariser
        R: a name in ``skadmm.regularizers.REGULARIZERS``, or an instance such as ``GroupL2(groups=rows)`` or one of
        your own. It needs a field `strength`, whose value alpha replaces. "l1" is ‖Ax‖₁.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature, which
        multiplies its term of the ℓ1 norm, and its row of A where that is the identity; or a dict or Series by name
        (others: 1). A pair (features, rows) also has a number for each row of A.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. "from_dtype" takes those of a categorical dtype of pandas or
        polars. A dict has "ordered", "unordered" or the levels in their order, by column.
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
    clusters_, n_clusters_ : ndarray of int, int
        The features that rows of A with one or two entries fuse, as in the fused lasso.
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
    skadmm.GeneralizedLassoClassifier : With a given alpha.
    skadmm.GeneralizedLassoRegressorCV : For numbers.
    skadmm.operators.incidence : The penalty matrix of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GeneralizedLassoClassifierCV
    >>> from skadmm.operators import chain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = GeneralizedLassoClassifierCV(alphas=5, cv=3, eps=0.01, A=chain(6)).fit(X, y)
    >>> model.coef_.round(2)
    array([[2.1 , 2.07, 1.57, 0.16, 0.72, 0.72]])
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
        A: Matrix | None = None,
        penalty: PenaltyLike = "l1",
        l1_ratio: ArrayLike = 0.0,
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
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
        self.A = A
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
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


class GeneralizedLassoRegressorCV(SeveralOutputs, _Generalized, CrossValidated, Regression):
    """Regression by the generalised lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) R(Ax) + l1_ratio ‖x‖₁) + (ridge/2)‖x‖², with R = ‖·‖₁
    unless `penalty` names another.

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
    A : matrix of shape (m, n_features), "identity" or None
        The penalty matrix, its entries used as they are; a DataFrame is matched to the columns of X by name. None is
        the identity, the plain lasso. The matrix of a graph with its weights and signs is
        ``skadmm.operators.incidence(graph)``.
    penalty : str or regulariser
        R: a name in ``skadmm.regularizers.REGULARIZERS``, or an instance such as ``GroupL2(groups=rows)`` or one of
        your own. It needs a field `strength`, whose value alpha replaces. "l1" is ‖Ax‖₁.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    penalty_factor : array, dict, Series, pair or None
        How much more, or less, a feature is penalised; 0 leaves it unpenalised. One number ≥ 0 per feature, which
        multiplies its term of the ℓ1 norm, and its row of A where that is the identity; or a dict or Series by name
        (others: 1). A pair (features, rows) also has a number for each row of A.
    positive : bool
        Coefficients ≥ 0, exactly. The intercept is not constrained.
    bounds : pair (low, high), dict or None
        Exact bounds of the coefficients in the units of X: numbers, arrays, or dicts or Series by name, None for an
        open side; or a dict of pairs by name.
    adaptive : bool or float > 0
        Penalise less what a first fit, by the same loss with a weak ridge, finds large: weights
        (mean / (v + mean/1000))^γ for terms whose value there is v; a number is γ, True is 1.
    relax : bool
        Fit the values again, without the penalty, on the structure found; ``coef_`` is then that fit, and
        ``penalized_coef_`` the penalised one.
    categorical_features : "from_dtype", list of names or numbers, mask, dict or None
        Columns of levels: each level gets a coefficient. "from_dtype" takes those of a categorical dtype of pandas or
        polars. A dict has "ordered", "unordered" or the levels in their order, by column.
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
    clusters_, n_clusters_ : ndarray of int, int
        The features that rows of A with one or two entries fuse, as in the fused lasso.
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
    skadmm.GeneralizedLassoRegressor : With a given alpha.
    skadmm.GeneralizedLassoClassifierCV : For classes.
    skadmm.operators.incidence : The penalty matrix of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GeneralizedLassoRegressorCV
    >>> from skadmm.operators import chain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = GeneralizedLassoRegressorCV(alphas=5, cv=3, eps=0.01, A=chain(6)).fit(X, y)
    >>> model.coef_.round(2)
    array([0.9 , 0.9 , 0.9 , 0.11, 0.11, 0.11])
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
        A: Matrix | None = None,
        penalty: PenaltyLike = "l1",
        l1_ratio: ArrayLike = 0.0,
        penalty_factor: PenaltyFactor | None = None,
        positive: bool = False,
        bounds: Bounds | None = None,
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
        self.A = A
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.positive = positive
        self.bounds = bounds
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
