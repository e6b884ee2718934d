"""The problems that a fit solves, made from a table, a penalty and limits of the coefficients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skadmm.backends import Processes, is_dask
from skadmm.estimators._bounds import Limits
from skadmm.estimators._design import Design
from skadmm.estimators._losses import best_constant, loss_of
from skadmm.estimators._outputs import OutputOptions, output_penalty
from skadmm.estimators._penalty import Penalty
from skadmm.operators.line import GraphTrend, Line
from skadmm.problem.constraint import Constraint
from skadmm.problem.problem import Problem
from skadmm.regularizers import Box, Stacked


class Prepared(NamedTuple):
    """A table and a penalty, from which problems are made."""

    design: Design
    penalty: Penalty
    sample_weight: np.ndarray | None
    loss: Any
    ridge: float
    random_state: Any
    limits: Limits | None = None
    """The constraints on the coefficients."""
    plain: Penalty | None = None
    """The penalty before adaptive weights; None where it has none."""
    outputs: OutputOptions = OutputOptions()
    """How several outputs are penalised together."""
    of_signal: bool = False
    """True where every row has one coefficient of its own, so that equal coefficients are a constant margin."""

    def problem(self, target: np.ndarray, alpha: float) -> Problem:
        """The problem for one target, which may have several columns."""
        if getattr(target, "ndim", 1) == 2:
            return self._joint_problem(target, alpha)
        if self.outputs.task_graph is not None:
            raise ValueError(
                f"task_graph={self.outputs.task_graph!r}: it joins several outputs of one model, and here is one "
                "output: it takes y with several columns, or more than two classes with multi_class='multinomial'"
            )
        free = alpha == 0.0 or self.penalty.A.shape[0] == 0
        X = self.design.X
        return Problem(
            X if isinstance(X, np.ndarray) else self._where_stored(target),
            target,
            loss=self.loss if getattr(target, "dtype", None) == np.float64 else loss_of(self.loss, target),
            omega=None if self.ridge == 0.0 else self.design.ridge(self.ridge),
            sample_weight=self.sample_weight,
            **self._penalised(None if free else alpha),
        )

    def _where_stored(self, target: Any) -> Any:
        """The rows, with the target and the weights where they are on workers."""
        X: Any = self.design.X
        if is_dask(X):
            from skadmm.backends.dask.backend import DaskBackend

            return DaskBackend(X, target, self.sample_weight, self.loss, ones=self.design.intercept)
        if isinstance(X, Processes):
            from skadmm.backends.processes.backend import ProcessBackend

            return ProcessBackend(X, target, self.sample_weight, self.loss, ones=self.design.intercept)
        return X

    def _penalised(self, alpha: float | None) -> dict[str, Any]:
        """ψ and A x = y, with the structure of A and with rows for the limits; `alpha` is None without a penalty."""
        A, trend, limits = self.design.widened(self.penalty.A), self.penalty.trend, self.limits
        if limits is not None:
            rows, box = self.limit_rows()
            rows = self.design.widened(rows)
            if alpha is None:
                return {"psi": box, "A": Constraint(rows, None, None, rows.shape[1])}
            stacked = sp.csr_array(sp.vstack([A, rows], format="csr"))
            psi = Stacked(self.penalty.psi(alpha), box, A.shape[0])
            return {"psi": psi, "A": Constraint(stacked, None, None, A.shape[1])}
        if alpha is None:
            return {}
        line = trend if isinstance(trend, Line) else None
        graph = trend._replace(G=self.design.widened(trend.G)) if isinstance(trend, GraphTrend) else None
        constraint = Constraint(A, None, None, A.shape[1], line=line, graph=graph)
        return {"psi": self.penalty.psi(alpha), "A": constraint}

    def _joint_problem(self, target: np.ndarray, alpha: float) -> Problem:
        """The problem of several outputs."""
        design, k = self.design, target.shape[1]
        ridge = design.ridge(self.ridge)
        if ridge is not None and ridge.weights is not None:
            ridge = ridge._replace(weights=np.tile(ridge.weights, k))
        copies = self.penalty.copies
        each = sp.eye_array(design.scale.size, format="csr") if copies is None else copies.sums
        wide, columns = design.widened(self.penalty.A), design.widened(each)
        joint = output_penalty(self.penalty, columns, wide, k, self.outputs)
        free = alpha == 0.0 or joint.A.shape[0] == 0
        psi, A = (None, None) if free else (joint.psi(alpha), joint.A)
        if self.limits is not None:
            self._check_limits()
            rows, box = self.limit_rows()
            rows = sp.kron(sp.eye_array(k), design.widened(rows), format="csr")
            box = Box(np.tile(box.lower, k), np.tile(box.upper, k))
            psi = box if psi is None else Stacked(psi, box, joint.A.shape[0])
            A = sp.csr_array(rows if A is None else sp.vstack([A, rows], format="csr"))
        return Problem(
            design.X, target, loss=loss_of(self.loss, target), omega=ridge, psi=psi, A=A,
            sample_weight=self.sample_weight,
        )  # fmt: skip

    def limit_rows(self) -> tuple[sp.csr_array, Box]:
        """The limits as rows on the coefficients that the penalty sees, and the bounds of these rows."""
        limits, scale, copies = self.limits, self.design.scale, self.penalty.copies
        if limits is None:
            raise TypeError("limits=None: there are no rows")
        if copies is not None:
            return copies.limit_rows(limits, scale)
        return limits.rows(scale), limits.box(scale)

    def _check_limits(self) -> None:
        """Raise where no solver reaches the tolerance under constraints with a norm across outputs."""
        across = self.outputs.penalty
        if across == "nuclear" or (across == "rows-linf" and self.loss.coupled):
            takes = "'entries', 'rows' or 'rows-linf'" if not self.loss.coupled else "'entries' or 'rows'"
            raise ValueError(
                f"output_penalty={across!r}: positive, bounds and monotone take {takes} here, because no solver "
                "certifies constraints together with this norm"
            )

    @property
    def starts_at_constant(self) -> bool:
        """Return whether fits start at the best constant margin, as they do for losses of unbounded curvature."""
        has_constants = self.design.intercept or self.of_signal
        return has_constants and self.loss.smooth and not np.isfinite(self.loss.curvature_bound)

    def start(self, problem: Problem, target: Any) -> np.ndarray | None:
        """The point whose margins are the best constant: zero coefficients and this intercept, or equal coefficients of
        a signal where the loss at zero is far above the loss there. None where fits start at zero."""
        if not self.starts_at_constant:
            return None
        if self.of_signal:
            far = problem.far_constant
            return None if far is None else np.full(problem.n_features, far.margin)
        if is_dask(target):
            far = problem.far_constant
            constants = [] if far is None else [far.margin]
        else:
            columns = target.T if target.ndim == 2 else [target]
            constants = [best_constant(problem.loss, np.ascontiguousarray(one), self.sample_weight) for one in columns]
        zero = np.zeros(self.design.n_features)
        return np.concatenate([self.design.scaled(zero, one) for one in constants]) if constants else None

    def path_start(self, problem: Problem, target: Any) -> np.ndarray | None:
        """The same for a path, which starts at zero unless the loss there is far above that at the best constant."""
        if not self.starts_at_constant or problem.far_constant is None:
            return None
        return self.start(problem, target)

    def unadapted(self) -> Prepared:
        """The same problems without adaptive weights."""
        return self if self.plain is None else self._replace(penalty=self.plain, plain=None)

    def coefficients(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients on the scale of the table given, exactly within their limits, and the intercept."""
        coef, intercept = self.design.original(x)
        return coef if self.limits is None else self.limits.exact(coef), intercept

    def solution(self, x: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """The coefficients and the intercept, and the coefficients as the penalty sees them."""
        return *self.coefficients(x), self.design.penalised(x)
