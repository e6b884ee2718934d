"""The group lasso, with groups that may overlap."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from skadmm._types import (
    Bounds,
    ByName,
    Categories,
    ClassWeight,
    CrossValidator,
    FilePath,
    Graph,
    Groups,
    LossLike,
    OutputPenalty,
    Overlap,
    PenaltyFactor,
    RandomState,
    Scoring,
)
from skadmm.estimators._base import SeveralOutputs, StructuredModel
from skadmm.estimators._categories import level_groups
from skadmm.estimators._classification import Classification, SeveralClasses
from skadmm.estimators._columns import warn_ungrouped
from skadmm.estimators._cv import CrossValidated, Tracking
from skadmm.estimators._factors import checked_factors
from skadmm.estimators._groups import (
    NamedGroups,
    checked_groups,
    checked_overlap,
    group_penalty,
    latent_penalty,
    ungrouped,
)
from skadmm.estimators._online import OnlineClassification, OnlineRegression
from skadmm.estimators._penalty import Penalty, checked_ratio
from skadmm.estimators._prepared import Prepared
from skadmm.estimators._regression import Regression
from skadmm.run.follow import Solution
from skadmm.run.path import Path
from skadmm.run.result import Result


class _Grouped(StructuredModel):
    groups: Any
    group_weights: Any
    overlap: Any
    unknown: str
    l1_ratio: Any
    penalty_factor: Any
    categorical_features: Any
    groups_: Any

    def _penalty(self, X: Any, names: Any) -> Penalty:
        if self.categorical_features is None:
            groups = checked_groups(self.groups, X.shape[1], names, self.unknown)
        elif self.groups is None:
            by_name = level_groups(self)
            groups = NamedGroups(list(by_name.values()), list(by_name))
        else:
            raise ValueError("groups: with categorical_features it takes None; the levels of a column are its group")
        factors = checked_factors(self.penalty_factor, X.shape[1], names)
        ratio = checked_ratio(self.l1_ratio)
        penalty_of = latent_penalty if checked_overlap(self.overlap) == "latent" else group_penalty
        return penalty_of(groups, X.shape[1], self.group_weights, ratio, factors.features)

    def _prepare(self, X: Any, sample_weight: np.ndarray | None) -> Prepared:
        prepared = super()._prepare(X, sample_weight)
        d, names = X.shape[1], self._column_names()
        free = ungrouped(self.groups, self.groups_, d)
        if free.size and checked_ratio(self.l1_ratio) == 0.0:
            factors = checked_factors(self.penalty_factor, d, names).features
            silent = free if factors is None else free[factors[free] > 0.0]
            if silent.size:
                warn_ungrouped([j if names is None else names[j] for j in silent.tolist()], d)
        return prepared

    def _take(self, prepared: Prepared, results: list[Result]) -> None:
        super()._take(prepared, results)
        parts, copies = self._parts(prepared, results), prepared.penalty.copies
        members = self.groups_ if copies is None else copies.members
        active = np.array([[bool(np.any(x[group])) for group in members] for x in parts])
        self.active_groups_ = active[0] if len(active) == 1 else active
        self.__dict__.pop("latent_coef_", None)
        if copies is not None:
            self._take_latent(prepared, results, parts)

    def _take_latent(self, prepared: Prepared, results: list[Result], parts: list[np.ndarray]) -> None:
        """Set the coefficients of each group, and the degrees of freedom, which do not count a feature twice."""
        copies, A = prepared.penalty.copies, prepared.penalty.A
        xs = [x for result in results for x in np.atleast_2d(result.coef)]
        v = np.array([prepared.design.parts(x) for x in xs])
        self.latent_coef_ = copies.by_group(v if np.ndim(self.coef_) == 2 else v[0], self.groups_)
        m = A.shape[0]
        ys = [result.y[:m] if result.n_outputs == 1 else None for result in results for _ in range(result.n_outputs)]
        dof = [copies.degrees_of_freedom(A, x, y) for x, y in zip(parts, ys, strict=True)]
        self.dof_ = dof[0] if len(dof) == 1 else np.array(dof)


class _GroupedSearch(_Grouped, CrossValidated):
    def _path(
        self, prepared: Prepared, target: np.ndarray, alphas: np.ndarray, track: Tracking, *, certify: bool = True
    ) -> Path:
        copies = prepared.penalty.copies
        if copies is not None and certify:
            A, width = prepared.design.widened(prepared.penalty.A), prepared.design.width

            def freedom(solution: Solution) -> int:
                y = None if solution.y is None else solution.y[: A.shape[0]]
                xs = solution.x.reshape(-1, width)
                return sum(copies.degrees_of_freedom(A, x, y if len(xs) == 1 else None) for x in xs)

            track = track._replace(dof=freedom)
        return super()._path(prepared, target, alphas, track, certify=certify)


class GroupLassoClassifier(SeveralClasses, _Grouped, OnlineClassification):
    """Classification by the group lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty, or one multinomial model.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised, with a warning. An array or list of integers or strings: the label of each
        feature's one group in column order, negative or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None, array or dict
        One weight per group: the square root of its size, 1, or as given. The order of an array is that of ``groups_``:
        labels are sorted. A dict has the weights by the names of the groups.
    overlap : {"shared", "latent"}
        What a feature of several groups means. "shared": its coefficient is in the norm of each of them, and the
        coefficients that are zero form a union of groups. "latent": every group has coefficients v_g of its own, which
        add up to x, and the coefficients that are not zero form a union of groups; the penalty is Σ_g w_g ‖v_g‖₂, and
        the ridge is on v.
    unknown : {"raise", "ignore"}
        What to do with members of groups that are not among the columns of X: refuse them with a list of all, or leave
        them out with a warning that counts them. A group that loses all its members stays in ``groups_`` and is empty.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    penalty_factor : array, dict, Series or None
        How much more, or less, a feature is penalised, in its groups and in the ℓ1 norm: ‖f_g x_g‖₂ and f_j|x_j|. One
        number ≥ 0 per feature, or a dict or Series by name (others: 1); 0 leaves a feature unpenalised.
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
        Columns of levels: each level gets a coefficient, and the levels of a column are one group. "from_dtype" takes
        those of a categorical dtype of pandas or polars. A dict has "ordered", "unordered" or the levels, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    multi_class : "ovr" or "multinomial"
        More than two classes: one model for each class against the rest, or one multinomial model of all.
    output_penalty : "entries", "rows" or "rows-linf"
        With several outputs in one model: penalise every coefficient, or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge, or a group) is zero in all outputs or in none.
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
    groups_ : list of arrays
        The column numbers of each group.
    group_names_ : list of str
        The name of each group, where `groups` is a dict or holds labels.
    active_groups_ : ndarray of bool
        For each group (and class) whether any of its coefficients is not zero.
    latent_coef_ : list of arrays
        With `overlap="latent"`, the coefficients v_g of each group for its features, in the order of ``groups_``, with
        a row for each class or output where `coef_` has rows. ``result_`` and ``path_`` hold them one after another.
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
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.

    See Also
    --------
    skadmm.GroupLassoClassifierCV : With alpha chosen by cross-validation.
    skadmm.GroupLassoRegressor : For numbers.
    skadmm.regularizers.GroupL2 : The penalty by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GroupLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = GroupLassoClassifier(alpha=0.1, groups=[[0, 1, 2], [3, 4, 5]]).fit(X, y)
    >>> model.coef_.round(2)
    array([[0.66, 0.5 , 0.42, 0.  , 0.  , 0.  ]])
    >>> model.active_groups_
    array([ True, False])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        groups: Groups | None = None,
        group_weights: ByName = "sqrt",
        overlap: Overlap = "shared",
        unknown: Literal["raise", "ignore"] = "raise",
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
        self.groups = groups
        self.group_weights = group_weights
        self.overlap = overlap
        self.unknown = unknown
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


class GroupLassoRegressor(SeveralOutputs, _Grouped, OnlineRegression):
    """Regression by the group lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised, with a warning. An array or list of integers or strings: the label of each
        feature's one group in column order, negative or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None, array or dict
        One weight per group: the square root of its size, 1, or as given. The order of an array is that of ``groups_``:
        labels are sorted. A dict has the weights by the names of the groups.
    overlap : {"shared", "latent"}
        What a feature of several groups means. "shared": its coefficient is in the norm of each of them, and the
        coefficients that are zero form a union of groups. "latent": every group has coefficients v_g of its own, which
        add up to x, and the coefficients that are not zero form a union of groups; the penalty is Σ_g w_g ‖v_g‖₂, and
        the ridge is on v.
    unknown : {"raise", "ignore"}
        What to do with members of groups that are not among the columns of X: refuse them with a list of all, or leave
        them out with a warning that counts them. A group that loses all its members stays in ``groups_`` and is empty.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
    penalty_factor : array, dict, Series or None
        How much more, or less, a feature is penalised, in its groups and in the ℓ1 norm: ‖f_g x_g‖₂ and f_j|x_j|. One
        number ≥ 0 per feature, or a dict or Series by name (others: 1); 0 leaves a feature unpenalised.
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
        Columns of levels: each level gets a coefficient, and the levels of a column are one group. "from_dtype" takes
        those of a categorical dtype of pandas or polars. A dict has "ordered", "unordered" or the levels, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    output_penalty : "entries", "rows" or "rows-linf"
        With several outputs in one model: penalise every coefficient, or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge, or a group) is zero in all outputs or in none.
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
    groups_ : list of arrays
        The column numbers of each group.
    group_names_ : list of str
        The name of each group, where `groups` is a dict or holds labels.
    active_groups_ : ndarray of bool
        For each group (and class) whether any of its coefficients is not zero.
    latent_coef_ : list of arrays
        With `overlap="latent"`, the coefficients v_g of each group for its features, in the order of ``groups_``, with
        a row for each class or output where `coef_` has rows. ``result_`` and ``path_`` hold them one after another.
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
    result_ : Result or list of Result
        Status, duality gap and trace; a list for more than two classes.
    n_iter_ : int
        Passes of the run over the data, without the selection of the step.
    n_samples_fit_ : int
        The number of rows that the model was fitted on.

    See Also
    --------
    skadmm.GroupLassoRegressorCV : With alpha chosen by cross-validation.
    skadmm.GroupLassoClassifier : For classes.
    skadmm.regularizers.GroupL2 : The penalty by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GroupLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = GroupLassoRegressor(alpha=0.3, groups=[[0, 1, 2], [3, 4, 5]]).fit(X, y)
    >>> model.coef_.round(2)
    array([0.73, 0.54, 0.76, 0.  , 0.  , 0.  ])
    >>> model.active_groups_
    array([ True, False])
    >>> print(model.result_.status)
    solved
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        groups: Groups | None = None,
        group_weights: ByName = "sqrt",
        overlap: Overlap = "shared",
        unknown: Literal["raise", "ignore"] = "raise",
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
        self.groups = groups
        self.group_weights = group_weights
        self.overlap = overlap
        self.unknown = unknown
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


class GroupLassoClassifierCV(SeveralClasses, _GroupedSearch, Classification):
    """Classification by the group lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
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
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised, with a warning. An array or list of integers or strings: the label of each
        feature's one group in column order, negative or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None, array or dict
        One weight per group: the square root of its size, 1, or as given. The order of an array is that of ``groups_``:
        labels are sorted. A dict has the weights by the names of the groups.
    overlap : {"shared", "latent"}
        What a feature of several groups means. "shared": its coefficient is in the norm of each of them, and the
        coefficients that are zero form a union of groups. "latent": every group has coefficients v_g of its own, which
        add up to x, and the coefficients that are not zero form a union of groups; the penalty is Σ_g w_g ‖v_g‖₂, and
        the ridge is on v.
    unknown : {"raise", "ignore"}
        What to do with members of groups that are not among the columns of X: refuse them with a list of all, or leave
        them out with a warning that counts them. A group that loses all its members stays in ``groups_`` and is empty.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    penalty_factor : array, dict, Series or None
        How much more, or less, a feature is penalised, in its groups and in the ℓ1 norm: ‖f_g x_g‖₂ and f_j|x_j|. One
        number ≥ 0 per feature, or a dict or Series by name (others: 1); 0 leaves a feature unpenalised.
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
        Columns of levels: each level gets a coefficient, and the levels of a column are one group. "from_dtype" takes
        those of a categorical dtype of pandas or polars. A dict has "ordered", "unordered" or the levels, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "logistic", "squared-hinge", or another loss for two classes: its name in ``skadmm.losses.LOSSES``, or an
        instance.
    multi_class : "ovr" or "multinomial"
        More than two classes: one model for each class against the rest, or one multinomial model of all.
    output_penalty : "entries", "rows" or "rows-linf"
        With several outputs in one model: penalise every coefficient, or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge, or a group) is zero in all outputs or in none.
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
    groups_ : list of arrays
        The column numbers of each group.
    group_names_ : list of str
        The name of each group, where `groups` is a dict or holds labels.
    active_groups_ : ndarray of bool
        For each group (and class) whether any of its coefficients is not zero.
    latent_coef_ : list of arrays
        With `overlap="latent"`, the coefficients v_g of each group for its features, in the order of ``groups_``, with
        a row for each class or output where `coef_` has rows. ``result_`` and ``path_`` hold them one after another.
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
    skadmm.GroupLassoClassifier : With a given alpha.
    skadmm.GroupLassoRegressorCV : For numbers.
    skadmm.regularizers.GroupL2 : The penalty by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GroupLassoClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50) > 0
    >>> model = GroupLassoClassifierCV(alphas=5, cv=3, eps=0.01, groups=[[0, 1, 2], [3, 4, 5]]).fit(X, y)
    >>> model.coef_.round(2)
    array([[ 1.61,  1.37,  1.09, -0.15,  0.35,  0.33]])
    >>> model.active_groups_
    array([ True,  True])
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
        groups: Groups | None = None,
        group_weights: ByName = "sqrt",
        overlap: Overlap = "shared",
        unknown: Literal["raise", "ignore"] = "raise",
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
        self.groups = groups
        self.group_weights = group_weights
        self.overlap = overlap
        self.unknown = unknown
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


class GroupLassoRegressorCV(SeveralOutputs, _GroupedSearch, Regression):
    """Regression by the group lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

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
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised, with a warning. An array or list of integers or strings: the label of each
        feature's one group in column order, negative or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None, array or dict
        One weight per group: the square root of its size, 1, or as given. The order of an array is that of ``groups_``:
        labels are sorted. A dict has the weights by the names of the groups.
    overlap : {"shared", "latent"}
        What a feature of several groups means. "shared": its coefficient is in the norm of each of them, and the
        coefficients that are zero form a union of groups. "latent": every group has coefficients v_g of its own, which
        add up to x, and the coefficients that are not zero form a union of groups; the penalty is Σ_g w_g ‖v_g‖₂, and
        the ridge is on v.
    unknown : {"raise", "ignore"}
        What to do with members of groups that are not among the columns of X: refuse them with a list of all, or leave
        them out with a warning that counts them. A group that loses all its members stays in ``groups_`` and is empty.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
    penalty_factor : array, dict, Series or None
        How much more, or less, a feature is penalised, in its groups and in the ℓ1 norm: ‖f_g x_g‖₂ and f_j|x_j|. One
        number ≥ 0 per feature, or a dict or Series by name (others: 1); 0 leaves a feature unpenalised.
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
        Columns of levels: each level gets a coefficient, and the levels of a column are one group. "from_dtype" takes
        those of a categorical dtype of pandas or polars. A dict has "ordered", "unordered" or the levels, by column.
    handle_unknown : "error" or "ignore"
        What happens to levels that the fit has not seen, and to missing values: an error, or a row without a level.
    ridge : float ≥ 0
        Strength of an added (ridge/2)‖x‖².
    loss : str or loss
        "squared", "huber", or another loss for numbers: its name in ``skadmm.losses.LOSSES``, or an instance such as
        ``Huber(0.5)``.
    output_penalty : "entries", "rows" or "rows-linf"
        With several outputs in one model: penalise every coefficient, or the Euclidean or the maximum norm across
        outputs, so that a feature (or an edge, or a group) is zero in all outputs or in none.
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
    groups_ : list of arrays
        The column numbers of each group.
    group_names_ : list of str
        The name of each group, where `groups` is a dict or holds labels.
    active_groups_ : ndarray of bool
        For each group (and class) whether any of its coefficients is not zero.
    latent_coef_ : list of arrays
        With `overlap="latent"`, the coefficients v_g of each group for its features, in the order of ``groups_``, with
        a row for each class or output where `coef_` has rows. ``result_`` and ``path_`` hold them one after another.
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
    skadmm.GroupLassoRegressor : With a given alpha.
    skadmm.GroupLassoClassifierCV : For classes.
    skadmm.regularizers.GroupL2 : The penalty by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import GroupLassoRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 6))
    >>> y = X @ [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    >>> model = GroupLassoRegressorCV(alphas=5, cv=3, eps=0.01, groups=[[0, 1, 2], [3, 4, 5]]).fit(X, y)
    >>> model.coef_.round(2)
    array([ 0.9 ,  0.75,  1.  , -0.07,  0.05,  0.15])
    >>> model.active_groups_
    array([ True,  True])
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
        groups: Groups | None = None,
        group_weights: ByName = "sqrt",
        overlap: Overlap = "shared",
        unknown: Literal["raise", "ignore"] = "raise",
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
        self.groups = groups
        self.group_weights = group_weights
        self.overlap = overlap
        self.unknown = unknown
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
