"""The problem: what is minimised. Its values are here; its optimality conditions in ``kkt.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skadmm import _summary
from skadmm._types import LossLike, Matrix, PenaltyLike, TableLike, Values
from skadmm.backends import Backend, LocalBackend, as_rows, as_target, as_weight, open_backend, tasks
from skadmm.backends.base import FAR_BELOW
from skadmm.backends.constant_margin import ConstantScale
from skadmm.backends.named_columns import less_columns
from skadmm.backends.tables import for_outputs
from skadmm.kernels.compile import compiled
from skadmm.kernels.rows import is_dense
from skadmm.kernels.samples import Samples
from skadmm.losses import as_loss
from skadmm.losses.offset import output_offset, with_offset
from skadmm.operators.outputs import for_each_output
from skadmm.problem.constraint import Constraint
from skadmm.problem.kkt import KKT, Scales, kkt_residual
from skadmm.regularizers import Stacked, Zero, as_regularizer
from skadmm.regularizers._base import prox, value

LOCAL_ROWS = "needs rows that this process can read, and the {} backend keeps them elsewhere"
COUPLED = "its loss must be a sum over outputs, and that of the problem joins the margins of a sample"
TINY = float(np.finfo(float).tiny)
ROUNDING = 1e-13
"""The rounding error of an entry of Ax, relative to the sum of the absolute values of its terms."""

_value = compiled(value)
_prox = compiled(prox)


class Problem:
    """The problem to minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y) subject to A x + B y = c.

    A problem is immutable; :meth:`replace` returns a variant.

    Parameters
    ----------
    X : array, sparse matrix, table of shape (n, d), path, LazyFrame or Dask collection
        The rows aᵢ; a table is a DataFrame of pandas or polars, a pyarrow Table, or anything that exports an Arrow
        stream. float32 and float64 are used as they are, integers and booleans are converted. A path (of a
        folder of blocks, of a Parquet, CSV, svmlight or npy file, or of a folder of Parquet files) stays on disk; all
        but a folder of blocks are converted once into such a folder, in a cache. An npz file is read into memory. A
        dask.array, a dask.dataframe or a list of delayed blocks stays on the workers of the current client.
    target : array of length n or of shape (n, k), str, or list of str
        The bᵢ: numbers, or two classes for the losses of classification (coded −1 and +1 in sorted order). A folder of
        blocks has its own; in another file it is the column of this name, the last one by default, or several columns.
        With k columns the loss is a sum over k outputs; ``loss="multinomial"`` joins the margins of k classes in one
        loss. x then holds the coefficients of the first output, those of the second, and so on: ``x.reshape(k, d)``.
    loss : str or loss
        A name in ``skadmm.losses.LOSSES`` or an instance such as ``Huber(0.5)``.
    omega, psi : regulariser or None
        Ω on x and ψ on y. Without ψ the constraint is dropped.
    A, B, c : matrix, matrix, array of length m
        The constraint. A defaults to the identity when there is a ψ, B to −I, c to 0. A may be a ``Constraint``. With k
        outputs a matrix with a column for each feature is used for every output (I ⊗ A).
    sample_weight : array of length n or None
        A weight k means the same as k copies of the row.
    offset : array of length n or None
        Known numbers oᵢ that are added to the margins: ℓ(aᵢ·x + oᵢ, bᵢ). For counts under exposure, its logarithm.
    drop : str, list of str or None
        Columns of a table on disk that are not features, such as identifiers.

    See Also
    --------
    skadmm.solve : Solves it.
    skadmm.path : Solves it for many strengths of ψ.

    References
    ----------
    Zhong, L. W. and Kwok, J. T. (2013). Fast stochastic alternating direction method of multipliers.

    Examples
    --------
    The fused lasso on ten ordered features:

    >>> import numpy as np
    >>> from skadmm import Problem
    >>> from skadmm.operators import chain, stack
    >>> from skadmm.regularizers import L1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 10))
    >>> problem = Problem(X, X[:, 0], loss="squared", psi=L1(0.1), A=stack(chain(10), "identity"))
    >>> problem
    Problem(X=50 × 10 (dense), loss=squared, psi=L1(0.1), A=19 × 10)
    >>> problem.replace(psi=L1(0.2)).psi.strength
    0.2
    """

    backend: Backend
    loss: Any
    omega: Any
    psi: Any
    constraint: Constraint
    n_samples: int
    """The number of margins: n, times the number of outputs."""
    n_features: int
    """The length of x: d, times the number of outputs."""
    n_outputs: int
    """k, the number of outputs: columns of the target, or classes of the multinomial loss; else 1."""
    n_rows: int
    """The number of rows of X, n."""
    n_split: int
    """The length of y; 0 where there is no ψ."""
    n_constraints: int
    """The length of the multiplier; 0 where there is no ψ."""
    nnz: int
    """Stored entries of X."""
    is_sparse: bool
    """Are the rows of X sparse? Those of several outputs are, for each has its own columns."""
    is_coupled: bool
    """Does the loss join the margins of a sample, so that it is no sum over outputs?"""

    def __init__(
        self,
        X: TableLike,
        target: Values | None = None,
        loss: LossLike = "logistic",
        omega: PenaltyLike | None = None,
        psi: PenaltyLike | None = None,
        A: Matrix | None = None,
        B: Matrix | None = None,
        c: ArrayLike | None = None,
        sample_weight: Values | None = None,
        offset: Values | None = None,
        drop: str | Sequence[str] | None = None,
    ) -> None:
        if drop is not None:
            X, target = less_columns(X, drop, {"target": target, "sample_weight": sample_weight}, "target")
        backend = open_backend(X, target, sample_weight, as_loss(loss))
        if offset is not None:
            backend = _offset_by(backend, offset)
        own = backend.loss
        on_x = as_regularizer(omega, backend.d, "omega")
        if psi is None or isinstance(psi, Zero):
            if B is not None or c is not None:
                raise ValueError("B or c was given without psi: a constraint needs a psi on its y")
            A = None
        elif A is None:
            A = "identity"
        if not isinstance(A, Constraint) and backend.n_outputs > 1:
            A = for_each_output(A, backend.n_outputs, backend.d)
        constraint = A if isinstance(A, Constraint) else Constraint(A, B, c, backend.d)
        on_y = as_regularizer(psi, constraint.n_split, "psi")
        vars(self).update(
            backend=backend, loss=own, omega=on_x, psi=on_y, constraint=constraint,
            n_samples=backend.n, n_features=backend.d, n_outputs=backend.n_outputs, nnz=backend.nnz,
            n_rows=backend.n // backend.n_outputs, is_sparse=backend.sparse, is_coupled=bool(own.coupled),
            n_split=constraint.n_split, n_constraints=constraint.n_constraints,
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Problem cannot be changed: problem.replace({name}=...) returns a new one")

    def replace(self, **changes: Any) -> Problem:
        """The same problem with other parts: `backend`, `omega`, `psi`, `constraint`."""
        parts = {name: getattr(self, name) for name in ("backend", "omega", "psi", "constraint")}
        for name in changes:
            if name not in parts:
                raise TypeError(f"replace() has no {name!r}: it takes {', '.join(parts)}")
        parts |= changes
        backend = parts["backend"]
        return Problem(backend, loss=backend.loss, omega=parts["omega"], psi=parts["psi"], A=parts["constraint"])

    def _facts(self) -> dict[str, Any]:
        """The essentials, in words."""
        backend, constraint = self.backend, self.constraint
        kind, where = (
            "sparse" if self.has_sparse_rows else "dense",
            "" if backend.name == "memory" else f", {backend.name}",
        )
        return {
            "X": f"{self.n_rows} × {backend.d // backend.n_outputs} ({kind}{where})",
            "outputs": None if backend.n_outputs == 1 else backend.n_outputs,
            "loss": self.loss.name,
            "omega": None if isinstance(self.omega, Zero) else _named(self.omega),
            "psi": None if isinstance(self.psi, Zero) else _named(self.psi),
            "A": f"{constraint.A.shape[0]} × {constraint.A.shape[1]}" if self.n_split else None,
            "B": None if constraint.B is None else f"{constraint.B.shape[0]} × {constraint.B.shape[1]}",
        }

    def __repr__(self) -> str:
        return _summary.line("Problem", self._facts())

    def _repr_html_(self) -> str:
        return _summary.table("Problem", self._facts())

    # -- shape and data ------------------------------------------------------------------------------------

    @property
    def has_sparse_rows(self) -> bool:
        """Is X sparse?"""
        if self.n_outputs == 1:
            return self.backend.sparse
        return not is_dense(self.rows.rows)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns of X, where they have any."""
        return self.backend.feature_names

    @property
    def classes(self) -> np.ndarray | None:
        """The classes, in sorted order; None in regression."""
        return self.backend.classes

    @property
    def local(self) -> LocalBackend:
        """The backend, where compiled code in this process can read its rows; an error elsewhere."""
        reason = self.lacks_local_rows()
        if reason is not None:
            raise ValueError(f"this {reason}")
        return self.backend  # type: ignore[return-value]

    def lacks_local_rows(self) -> str | None:
        """Why code that needs rows in this process cannot take the problem; None when it can."""
        return None if self.backend.local_rows else LOCAL_ROWS.format(self.backend.name)

    @property
    def rows(self) -> Any:
        """The rows of X, in this process."""
        return self.local.rows

    @property
    def target(self) -> np.ndarray:
        """The bᵢ, in this process."""
        return self.local.target

    @property
    def sample_weight(self) -> np.ndarray:
        """Weights that average to one, in this process; empty where all samples count the same."""
        return self.local.weight

    def samples(self, batch_size: int = 1) -> Samples:
        """The rows as the kernels see them, in blocks of `batch_size`."""
        return self.local.samples(batch_size)

    @property
    def rows_per_chunk(self) -> int:
        """Rows read between two moments at which a run can be stopped."""
        return self.local.rows_per_chunk

    def n_blocks(self, batch_size: int) -> int:
        """The number of blocks of `batch_size`."""
        return self.backend.block_sizes(batch_size).size

    def subset(self, indices: np.ndarray) -> Problem:
        """The same problem on some of the samples, copied into memory."""
        return self.replace(backend=self.backend.take(np.asarray(indices)))

    def fold(self) -> Problem:
        """The equivalent problem without Ω: ψ(y) + Ω(z) with the constraint stacked on x − z = 0."""
        psi = self.omega if self.n_split == 0 else Stacked(self.psi, self.omega, self.n_split)
        return self.replace(omega=None, constraint=self.constraint.stacked_on_identity(), psi=psi)

    # -- constants -----------------------------------------------------------------------------------------

    @property
    def curvature_scale(self) -> float:
        """sup ℓ'' where it is finite. Elsewhere (Poisson, gamma, …) a typical curvature takes its place: the constants
        below are then no bounds, but steps and dampings that are derived from them have the right size."""
        return self.backend.curvature_scale

    @property
    def typical_curvature(self) -> float:
        """The same for solvers that search along lines and need no bound: without the margin zero where the curvature
        there is far larger than near solutions."""
        return self.backend.typical_curvature

    @property
    def L(self) -> float:
        """The smoothness of the roughest sample: max over i of w_i sup ℓ'' ‖aᵢ‖²."""
        return float(self.curvature_scale * self.backend.largest_norm)

    @property
    def L_mean(self) -> float:
        """The mean smoothness of the samples."""
        return float(self.curvature_scale * self.backend.mean_norm)

    @property
    def L_full(self) -> float:
        """A bound on the smoothness of the mean loss: sup ℓ'' times the largest eigenvalue of XᵀX/n."""
        return float(self.curvature_scale * self.backend.top_eigenvalue)

    def L_A(self, rho: float) -> float:
        """An upper bound on the eigenvalues of ρAᵀA."""
        return rho * self.constraint.norm_A_squared

    @property
    def loss_at_zero(self) -> float:
        """The mean loss at x = 0."""
        return self.backend.at_zero[0]

    @property
    def gradient_scale(self) -> float:
        """The scale of gradients: ‖∇f(0)‖, or where that is zero the gradient's at a very small x."""
        return self.backend.at_zero[1] or 1e-10 * self.L_mean

    @property
    def far_constant(self) -> ConstantScale | None:
        """The best constant margin, where the loss at zero is far above the loss there; None elsewhere."""
        constant = self.backend.constant_scale
        return None if constant is None or constant.loss >= FAR_BELOW * abs(self.loss_at_zero) else constant

    def scales(self, objective: float | None = None) -> Scales:
        """What losses and gradients at a point with this objective are measured against.

        Those at x = 0; but where the objective is far below the loss at zero, and the loss at the best constant margin
        is far below, too, those at this margin. Without an objective the margin decides where ℓ'' is unbounded.
        """
        at_zero = Scales(abs(self.loss_at_zero), self.gradient_scale)
        if objective is not None and abs(objective) >= FAR_BELOW * at_zero.loss:
            return at_zero
        if objective is None and np.isfinite(self.loss.curvature_bound):
            return at_zero
        constant = self.far_constant
        if constant is None:
            return at_zero
        gradient = constant.slope * float(np.sqrt(self.backend.mean_norm))
        return Scales(constant.loss, gradient if not at_zero.gradient <= gradient else at_zero.gradient)

    # -- values --------------------------------------------------------------------------------------------

    def loss_value(self, x: np.ndarray) -> float:
        """(1/n) Σ ℓ(aᵢ·x, bᵢ)."""
        return float(self.backend.mean(tasks.loss, x))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the mean loss."""
        return self.backend.mean(tasks.loss_and_gradient, x)[1]

    def loss_and_gradient(self, x: np.ndarray, out: np.ndarray) -> float:
        """The mean loss, and its gradient into `out`, in one sweep over the rows."""
        loss, out[:] = self.backend.mean(tasks.loss_and_gradient, x)
        return float(loss)

    def omega_value(self, x: np.ndarray) -> float:
        """Ω(x)."""
        return 0.0 if isinstance(self.omega, Zero) else float(_value(self.omega, x))

    def psi_value(self, y: np.ndarray) -> float:
        """ψ(y)."""
        return float(_value(self.psi, y)) if y.size else 0.0

    def objective(self, x: np.ndarray, y: np.ndarray | None = None) -> float:
        """Φ(x, y); with y left out, at (x, y(x)), where B is invertible."""
        return self.loss_value(x) + self.penalty(x, y)

    def penalty(self, x: np.ndarray, y: np.ndarray | None = None) -> float:
        """Ω(x) + ψ(y); with y left out, at y(x), where B is invertible."""
        if y is None:
            y = self.y_of_x(x)
            if y is None:
                raise ValueError("B is not invertible, so y(x) does not exist: give y")
        return self.omega_value(x) + self.psi_value(y)

    def y_of_x(self, x: np.ndarray) -> np.ndarray | None:
        """y(x) = B⁻¹(c − Ax), or None where B is not invertible.

        Where ψ is a constraint and B = −I, entries that miss the constraint by no more than rounding are on its
        boundary.
        """
        y, constraint = self.constraint.y_of_x(x), self.constraint
        if y is None or constraint.B is not None or y.size == 0 or self.psi.subdifferentiable:
            return y
        nearest = self.prox_psi(y, TINY)  # a step of length zero: the projection onto the domain of ψ
        near = np.abs(nearest - y) <= ROUNDING * (abs(constraint.A) @ np.abs(x) + np.abs(constraint.c))
        return np.where(near, nearest, y)

    def exact_split(self, x: np.ndarray) -> np.ndarray | None:
        """y(x), zero where it is the rounding error of Ax; None where it does not follow from x."""
        exact, constraint = self.y_of_x(x), self.constraint
        if exact is not None and constraint.B is None:
            exact[np.abs(exact) <= ROUNDING * (abs(constraint.A) @ np.abs(x))] = 0.0
        return exact

    def x_of_y(self, y: np.ndarray) -> np.ndarray | None:
        """x(y) = A⁻¹(c − By), or None where A is not invertible."""
        return self.constraint.x_of_y(y)

    def feasibility(self, x: np.ndarray, y: np.ndarray) -> float:
        """‖Ax + By − c‖."""
        return float(np.linalg.norm(self.constraint.residual(x, y)))

    def prox_omega(self, v: np.ndarray, step: float = 1.0) -> np.ndarray:
        """The proximal point of Ω."""
        if isinstance(self.omega, Zero):
            return v.copy()
        out = np.empty_like(v)
        _prox(self.omega, v, step, out)
        return out

    def within_omega(self, x: np.ndarray) -> np.ndarray:
        """`x` with entries that miss the set of a constraint Ω by no more than rounding moved onto its boundary."""
        if self.omega.subdifferentiable:
            return x
        nearest = self.prox_omega(x, TINY)
        return np.where(np.abs(nearest - x) <= ROUNDING * np.maximum(np.abs(x), np.abs(nearest)), nearest, x)

    def prox_psi(self, v: np.ndarray, step: float = 1.0) -> np.ndarray:
        """The proximal point of ψ."""
        out = np.empty_like(v)
        _prox(self.psi, v, step, out)
        return out

    def least_decrease(self, gradient: np.ndarray) -> float:
        """How much the mean loss can fall, at least, from a point with this gradient, where nothing but the loss is
        minimised: ½ g·M⁺g with M = sup ℓ'' XᵀWX/n. Zero where that is not known."""
        bound = self.loss.curvature_bound
        if self.n_constraints or not isinstance(self.omega, Zero) or not np.isfinite(bound) or bound == 0.0:
            return 0.0
        directions = self.local.directions if self.backend.local_rows else None
        if directions is None:
            return 0.0
        parts = (directions.axes @ gradient) / directions.sizes
        return 0.5 / bound * float(parts @ parts)

    def kkt(
        self,
        x: np.ndarray,
        y: np.ndarray,
        multiplier: np.ndarray,
        gradient: np.ndarray | None = None,
        loss: float | None = None,
    ) -> KKT:
        """How far (x, y, β) is from optimal, β = ρ·dual; see :func:`skadmm.problem.kkt.kkt_residual`."""
        gradient = self.gradient(x) if gradient is None else gradient
        return kkt_residual(self, x, y, multiplier, gradient, loss)

    def test_loss(self, x: np.ndarray, X: TableLike, target: Values | None) -> float:
        """The mean loss of `x` on other data."""
        return held_out(self, X, target).loss_value(x)


def _offset_by(backend: Backend, offset: Any) -> Backend:
    """The same samples, with known numbers added to their margins."""
    if not backend.local_rows:
        raise ValueError(f"offset: {LOCAL_ROWS.format(backend.name)}; for counts use rates and sample_weight=exposure")
    local: LocalBackend = backend  # type: ignore[assignment]
    numbers = output_offset(offset, backend.n // backend.n_outputs, backend.n_outputs, joined=backend.loss.coupled)
    return local.with_targets(*with_offset(local.loss, local.target, numbers.ravel()))


def _named(regularizer: Any) -> str:
    """A regulariser by its class and strength, without its arrays."""
    strength = getattr(regularizer, "strength", None)
    return type(regularizer).__name__ if strength is None else f"{type(regularizer).__name__}({float(strength):.6g})"


def held_out(problem: Problem, X: Any, target: Any) -> Problem:
    """`problem` on other data in memory: the same model and the same classes."""
    rows, names = as_rows(X, "X of test")
    d = problem.n_features // problem.n_outputs
    if rows.shape[1] != d:
        raise ValueError(f"test: X has {rows.shape[1]} columns; it takes {d}, as in training")
    if names is not None and problem.feature_names is not None and names != list(problem.feature_names):
        j = next(j for j, name in enumerate(names) if name != problem.feature_names[j])
        wanted = problem.feature_names[j]
        raise ValueError(f"test: column {j} of X is {names[j]!r}; it takes {wanted!r}, as in training")
    coded, _ = as_target(target, rows.shape[0], problem.loss, problem.classes)
    if coded.size != rows.shape[0] * problem.n_outputs:
        given = coded.size // rows.shape[0]
        raise ValueError(f"test: target has {given} column(s); it takes {problem.n_outputs}, as in training")
    return on_samples(problem, rows, coded, None)


def on_samples(problem: Problem, rows: Any, target: np.ndarray, sample_weight: Any) -> Problem:
    """`problem` on other samples in memory, whose targets are coded as in `problem`."""
    rows, weight = for_outputs(rows, target, as_weight(sample_weight, rows.shape[0]))
    backend = LocalBackend(
        rows, target, weight, problem.loss, classes=problem.classes, feature_names=problem.feature_names
    )
    return problem.replace(backend=backend)
