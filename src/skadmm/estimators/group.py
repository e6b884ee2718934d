"""The group lasso, with groups that may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from skadmm.estimators._base import Prepared, StructuredModel
from skadmm.estimators._classification import Classification
from skadmm.estimators._cv import CrossValidated
from skadmm.estimators._groups import checked_groups, group_penalty
from skadmm.estimators._online import OnlineClassification, OnlineRegression
from skadmm.estimators._penalty import Penalty, checked_ratio
from skadmm.estimators._regression import Regression
from skadmm.run.result import Result


class _Grouped(StructuredModel):
    groups: Any
    group_weights: Any
    l1_ratio: Any
    groups_: Any

    def _penalty(self, X: Any, names: Any) -> Penalty:
        groups = checked_groups(self.groups, X.shape[1], names)
        return group_penalty(groups, X.shape[1], self.group_weights, checked_ratio(self.l1_ratio))

    def _take(self, prepared: Prepared, results: list[Result]) -> None:
        super()._take(prepared, results)
        parts = self._parts(prepared, results)
        active = np.array([[bool(np.any(x[group])) for group in self.groups_] for x in parts])
        self.active_groups_ = active[0] if len(active) == 1 else active


class GroupLassoClassifier(_Grouped, OnlineClassification):
    """Classification by the group lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
    More than two classes: one against the rest, under one shared penalty.

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised. An array or list of integers or strings: the label of each feature's one
        group in column order, a negative number or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None or array
        One weight per group: the square root of its size, 1, or as given. The order is that of ``groups_``: labels are
        sorted.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
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
    groups_ : the column numbers of each group
    active_groups_ : for each group (and problem) whether any of its coefficients is not zero
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        groups: Any = None,
        group_weights: Any = "sqrt",
        l1_ratio: float = 0.0,
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
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
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


class GroupLassoRegressor(_Grouped, OnlineRegression):
    """Regression by the group lasso.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

    Parameters
    ----------
    alpha : float ≥ 0
        Strength of the penalty.
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised. An array or list of integers or strings: the label of each feature's one
        group in column order, a negative number or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None or array
        One weight per group: the square root of its size, 1, or as given. The order is that of ``groups_``: labels are
        sorted.
    l1_ratio : float in [0, 1]
        The share of the plain ℓ1 norm.
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
    groups_ : the column numbers of each group
    active_groups_ : for each group (and problem) whether any of its coefficients is not zero
    dof_ : degrees of freedom, without the intercept
    result_ : Result, or a list of them for more than two classes: status, gap, trace
    n_iter_ : passes over the data
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        groups: Any = None,
        group_weights: Any = "sqrt",
        l1_ratio: float = 0.0,
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
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
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


class GroupLassoClassifierCV(_Grouped, CrossValidated, Classification):
    """Classification by the group lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².
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
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised. An array or list of integers or strings: the label of each feature's one
        group in column order, a negative number or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None or array
        One weight per group: the square root of its size, 1, or as given. The order is that of ``groups_``: labels are
        sorted.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
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
    groups_ : the column numbers of each group
    active_groups_ : for each group (and problem) whether any of its coefficients is not zero
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
        groups: Any = None,
        group_weights: Any = "sqrt",
        l1_ratio: Any = 0.0,
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
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
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


class GroupLassoRegressorCV(_Grouped, CrossValidated, Regression):
    """Regression by the group lasso, alpha chosen by cross-validation.

    Minimises (1/n) Σ ℓ + alpha ((1 − l1_ratio) Σ_g w_g ‖x_g‖₂ + l1_ratio ‖x‖₁) + (ridge/2)‖x‖².

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
    groups : list of sequences of column numbers or names, labels, dict, Series or None
        A list of sequences (or a dict of them by the group's name): the features of each group; groups may overlap, and
        a feature in none is not penalised. An array or list of integers or strings: the label of each feature's one
        group in column order, a negative number or None for no group. A dict {column: label} or a pandas Series of
        labels is matched to the columns by name, or by column number where its keys are integers; every column needs a
        label, and those of other names are left out. None: every feature by itself.
    group_weights : "sqrt", None or array
        One weight per group: the square root of its size, 1, or as given. The order is that of ``groups_``: labels are
        sorted.
    l1_ratio : float in [0, 1], or a list of them
        The share of the plain ℓ1 norm. From a list one is chosen together with alpha.
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
    groups_ : the column numbers of each group
    active_groups_ : for each group (and problem) whether any of its coefficients is not zero
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
        groups: Any = None,
        group_weights: Any = "sqrt",
        l1_ratio: Any = 0.0,
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
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
