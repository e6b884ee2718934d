"""The problem: what is minimised, and how far a point is from the minimum."""

import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg

from skadmm import _checks
from skadmm.backends import FileBlocks, as_folder, as_rows, is_dask, is_folder, tasks
from skadmm.backends.local import LocalBackend
from skadmm.backends.slicing import take_rows
from skadmm.kernels.compile import kernel
from skadmm.kernels.rows import CSRRows
from skadmm.kernels.samples import Samples
from skadmm.losses import as_loss
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import Stacked, Zero, as_regularizer
from skadmm.regularizers._base import prox, value

ENTRIES_PER_CHUNK = 8_000_000
"""Stored entries of X read between two moments at which a run can be stopped."""


class KKT(NamedTuple):
    """The three parts of the optimality residual, absolute, and the largest of them relative to its scale."""

    stationarity: float
    """‖x − prox_Ω(x − ∇f(x) − Aᵀβ)‖, β = ρ·dual."""
    feasibility: float
    """‖Ax + By − c‖."""
    split: float
    """‖y − prox_ψ(y − Bᵀβ)‖."""
    relative: float


@kernel
def _value(reg, v):
    return value(reg, v)


@kernel
def _prox(reg, v, step, out):
    prox(reg, v, step, out)


class Problem:
    """minimise (1/n) Σ ℓ(aᵢ·x, bᵢ) + Ω(x) + ψ(y) subject to A x + B y = c.

    Parameters
    ----------
    X : array, sparse matrix, table of shape (n, d), a folder of blocks, or a Dask collection
        The rows aᵢ; a table is a DataFrame of pandas or polars, a pyarrow Table, or anything that exports an Arrow
        stream. float32 and float64 are used as they are, integers and booleans are converted. A folder (a path, or
        :class:`skadmm.backends.FileBlocks`) stays on disk: see ``skadmm data convert``. A
        dask.array, a dask.dataframe or a list of delayed blocks stays on the workers of the current client.
    target : array of length n
        The bᵢ: numbers, or two classes for the losses of classification (coded −1 and +1 in sorted order). A folder
        has its own, and need not be given one.
    loss : str or loss
        A name in ``skadmm.losses.LOSSES`` or an instance such as ``Huber(0.5)``.
    omega, psi : regulariser or None
        Ω on x and ψ on y. Without ψ the constraint is dropped.
    A, B, c : the constraint, see :class:`skadmm.problem.constraint.Constraint`
        A defaults to the identity when there is a ψ, B to −I, c to 0.
    sample_weight : array of length n or None
        A weight k means the same as k copies of the row.

    References
    ----------
    Zhong, L. W. and Kwok, J. T. (2013). Fast stochastic alternating direction method of multipliers.
    """

    rows: Any = None
    """None where they live elsewhere."""
    folder: FileBlocks | None = None
    """Where the rows are, if they are in files."""

    def __init__(
        self,
        X: Any,
        target: Any = None,
        loss: Any = "logistic",
        omega: Any = None,
        psi: Any = None,
        A: Any = None,
        B: Any = None,
        c: Any = None,
        sample_weight: Any = None,
    ) -> None:
        self.loss = as_loss(loss)
        if is_dask(X):
            self._take_dask(X, target, sample_weight)
        else:
            self._take_local(X, target, sample_weight)
        self.omega = as_regularizer(omega, self.n_features, "omega")
        if psi is None or isinstance(psi, Zero):
            if B is not None or c is not None:
                raise ValueError("B or c was given without psi: a constraint needs a psi on its y")
            A = None
        elif A is None:
            A = "identity"
        self.constraint = Constraint(A, B, c, self.n_features)
        self.psi = as_regularizer(psi, self.constraint.n_split, "psi")

    def _take_dask(self, X: Any, target: Any, sample_weight: Any) -> None:
        """Rows that stay on the workers of a cluster."""
        from skadmm.backends.dask.backend import DaskBackend

        backend = X if isinstance(X, DaskBackend) else DaskBackend(X, target, sample_weight, self.loss)
        self.__dict__["backend"] = backend
        self.feature_names, self.classes = backend.names, backend.classes

    def _take_local(self, X: Any, target: Any, sample_weight: Any) -> None:
        """Rows within reach of compiled code."""
        if is_folder(X):
            X = as_folder(X)
            target = X.target if target is None else target
            sample_weight = X.sample_weight if sample_weight is None else sample_weight
            self.folder = X
        self.rows, self.feature_names = as_rows(X)
        if target is None:
            raise ValueError("target=None: it takes a vector with an entry for each row of X")
        self.target, self.classes = _as_target(target, self.n_samples, self.loss)
        self.sample_weight = _as_weight(sample_weight, self.n_samples)

    # -- shape ---------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """n."""
        return int(self.backend.n if self.rows is None else self.rows.shape[0])

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.backend.d if self.rows is None else self.rows.shape[1])

    @property
    def n_split(self) -> int:
        """The length of y; 0 where there is no ψ."""
        return self.constraint.n_split

    @property
    def n_constraints(self) -> int:
        """The length of the multiplier; 0 where there is no ψ."""
        return self.constraint.n_constraints

    @property
    def nnz(self) -> int:
        """Stored entries of X."""
        if self.rows is None:
            return int(self.backend.stored)
        return int(self.rows.data.size if isinstance(self.rows, CSRRows) else self.rows.values.size)

    def samples(self, batch_size: int = 1) -> Samples:
        """The rows as the kernels see them, cut into blocks of `batch_size`."""
        if self.rows is None:
            raise ValueError("X lives on Dask: this works on rows in memory or in files only")
        return Samples(self.rows, self.target, self.sample_weight, self.loss, batch_size)

    @cached_property
    def backend(self) -> Any:
        """Where the samples live; see ``blocks/``."""
        return LocalBackend(self.samples(), self.rows_per_chunk)

    @property
    def remote(self) -> bool:
        """Do the rows live in other processes?"""
        return self.backend.remote

    @property
    def rows_per_chunk(self) -> int:
        """Rows read between two moments at which a run can be stopped: about 64 MB of them."""
        return max(1024, min(1 << 20, int(ENTRIES_PER_CHUNK * self.n_samples / max(1, self.nnz))))

    @property
    def files(self) -> FileBlocks | None:
        """Where the rows are mapped from; None where they are in memory, if only because columns were scaled."""
        return self.folder if self.folder is not None and self.rows is self.folder.rows else None

    def expect(self, order: np.ndarray, batch_size: int) -> None:
        """Blocks of `batch_size` will be read in this order: files can be fetched ahead."""
        if self.files is not None:
            self.files.expect(order, batch_size)

    @property
    def natural_batch(self) -> int:
        """Samples in a block unless somebody says otherwise: one; on Dask, a whole block of Dask's."""
        return int(self.backend.sizes.max()) if self.remote else 1

    def n_blocks(self, batch_size: int) -> int:
        """The number of blocks of `batch_size`."""
        return len(self.backend.bounds(batch_size)) if self.remote else -(-self.n_samples // batch_size)

    def block_sizes(self, batch_size: int) -> np.ndarray:
        """The number of samples in each block of `batch_size`; the last one may be short."""
        if self.remote:
            return np.array([float(stop - start) for _, start, stop in self.backend.bounds(batch_size)])
        n = self.n_samples
        return np.minimum(batch_size, n - np.arange(0, n, batch_size)).astype(float)

    def subset(self, indices: np.ndarray) -> "Problem":
        """The same problem on some of the samples."""
        indices = np.asarray(indices)
        if self.remote:
            return self._on(*self.backend.take(indices))
        weight = self.sample_weight[indices] if self.sample_weight.size else None
        return self._on(take_rows(self.rows, indices), self.target[indices], weight)

    def _on(self, rows: Any, target: np.ndarray, weight: Any) -> "Problem":
        """The same model on other, already checked, samples."""
        other = object.__new__(Problem)
        for name in ("loss", "classes", "omega", "psi", "constraint", "feature_names"):
            setattr(other, name, getattr(self, name))
        other.rows, other.target = rows, target
        other.folder = self.folder if rows is self.rows else None
        other.sample_weight = _as_weight(weight, target.size)
        return other

    def fold(self) -> "Problem":
        """The equivalent problem without Ω: ψ(y) + Ω(z) with the constraint stacked on x − z = 0."""
        folded = copy.copy(self)
        folded.omega = Zero()
        folded.constraint = self.constraint.stacked_on_identity()
        folded.psi = self.omega if self.n_split == 0 else Stacked(self.psi, self.omega, self.n_split)
        return folded

    # -- constants -----------------------------------------------------------------------------------------

    @cached_property
    def L(self) -> float:
        """The smoothness of the roughest sample: max over i of w_i sup ℓ'' ‖aᵢ‖²."""
        return float(self.loss.curvature_bound * max(self.backend.each(tasks.largest_norm)))

    @cached_property
    def L_mean(self) -> float:
        """The mean smoothness of the samples."""
        return float(self.loss.curvature_bound * self.backend.mean(tasks.mean_norm))

    @cached_property
    def L_full(self) -> float:
        """A bound of the smoothness of the mean loss: sup ℓ'' times the largest eigenvalue of XᵀX/n."""
        d = self.n_features

        def product(v: np.ndarray) -> np.ndarray:
            return self.backend.mean(tasks.gram_product, np.ascontiguousarray(v.ravel(), dtype=float))

        if d == 1:
            return float(self.loss.curvature_bound * product(np.ones(1))[0])
        start = np.random.default_rng(0).standard_normal(d)
        operator = scipy.sparse.linalg.LinearOperator((d, d), matvec=product, dtype=float)
        if not np.any(product(start)):
            return 0.0
        try:
            top = scipy.sparse.linalg.eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0]
        except scipy.sparse.linalg.ArpackError:  # numbers beyond what squares can hold: the trace is a bound too
            return self.L_mean
        return self.loss.curvature_bound * float(top) * 1.01

    def L_A(self, rho: float) -> float:
        """An upper bound of the eigenvalues of ρAᵀA."""
        return rho * self.constraint.norm_A_squared

    @cached_property
    def _at_zero(self) -> tuple[float, float]:
        """The mean loss at x = 0, and the norm of its gradient."""
        gradient = np.empty(self.n_features)
        loss = self.loss_and_gradient(np.zeros(self.n_features), gradient)
        return loss, float(np.linalg.norm(gradient))

    @property
    def loss_at_zero(self) -> float:
        """The mean loss at x = 0."""
        return self._at_zero[0]

    @cached_property
    def gradient_scale(self) -> float:
        """The scale of gradients: ‖∇f(0)‖, or where that is zero the gradient's at a very small x."""
        return self._at_zero[1] or 1e-10 * self.L_mean

    @property
    def _typical_split(self) -> float:
        """The size of Ax after a gradient step from zero, were A to treat all directions alike."""
        step = self.gradient_scale / self.L_mean if self.L_mean > 0 else 1.0
        return step * float(np.sqrt(self.constraint.sum_of_squares / self.n_features))

    # -- values --------------------------------------------------------------------------------------------

    def loss_value(self, x: np.ndarray) -> float:
        """(1/n) Σ ℓ(aᵢ·x, bᵢ)."""
        return float(self.backend.mean(tasks.loss, x))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the mean loss."""
        return self.backend.mean(tasks.gradient, x)

    def loss_and_gradient(self, x: np.ndarray, out: np.ndarray) -> float:
        """The mean loss, and its gradient into `out`, in one sweep over the rows."""
        loss, out[:] = self.backend.mean(tasks.loss_and_gradient, x)
        return float(loss)

    def omega_value(self, x: np.ndarray) -> float:
        """Ω(x)."""
        return float(_value(self.omega, x))

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
        """y(x) = B⁻¹(c − Ax), or None where B is not invertible."""
        return self.constraint.y_of_x(x)

    def x_of_y(self, y: np.ndarray) -> np.ndarray | None:
        """x(y) = A⁻¹(c − By), or None where A is not invertible."""
        return self.constraint.x_of_y(y)

    def feasibility(self, x: np.ndarray, y: np.ndarray) -> float:
        """‖Ax + By − c‖."""
        return float(np.linalg.norm(self.constraint.residual(x, y)))

    def prox_omega(self, v: np.ndarray, step: float = 1.0) -> np.ndarray:
        """The proximal point of Ω."""
        out = np.empty_like(v)
        _prox(self.omega, v, step, out)
        return out

    def prox_psi(self, v: np.ndarray, step: float = 1.0) -> np.ndarray:
        """The proximal point of ψ."""
        out = np.empty_like(v)
        _prox(self.psi, v, step, out)
        return out

    def kkt(
        self,
        x: np.ndarray,
        y: np.ndarray,
        multiplier: np.ndarray,
        gradient: np.ndarray | None = None,
        loss: float | None = None,
    ) -> KKT:
        """How far (x, y, β) is from optimal, β = ρ·dual the unscaled multiplier.

        Relative means: stationarity against the larger of ‖∇f(x)‖ and ‖Aᵀβ‖, the split against ‖Bᵀβ‖, both not below
        1e-4 ‖∇f(0)‖ (or ‖∇f(0)‖ itself where there is no constraint); feasibility against the largest of ‖Ax‖, ‖By‖
        and ‖c‖, but not below 1e-4 ‖|A||x|‖, nor, where the solution is zero, below a millionth of what A makes of a
        gradient step from zero. With the mean loss at x the residual is also no less than what feasibility is worth,
        |β·(Ax + By − c)| and |ψ(y(x)) − ψ(y)|, against the objective, but not below 1e-3 of the loss at zero.
        """
        gradient = self.gradient(x) if gradient is None else gradient
        pull = self.constraint.At(multiplier)
        move = x - self.prox_omega(x - gradient - pull)
        residual = self.constraint.residual(x, y)
        push = self.constraint.Bt(multiplier)
        stray = y - self.prox_psi(y - push) if y.size else y
        stationarity, feasibility, split = (float(np.linalg.norm(v)) for v in (move, residual, stray))
        floor = (1e-4 if self.n_constraints else 1.0) * self.gradient_scale
        # Where Ax vanishes at the solution, what is left of it is rounding: no scale to measure by.
        rounding = 1e-4 * float(np.linalg.norm(abs(self.constraint.A) @ np.abs(x)))

        def against(part: float, *vectors: np.ndarray, least: float = 0.0) -> float:
            scale = max(least, *(float(np.linalg.norm(v)) for v in vectors))
            return part / scale if scale > 0 else np.inf if part > 0 else 0.0

        sides = self.constraint.A @ x, self.constraint.By(y), self.constraint.c
        infeasible = against(feasibility, *sides, least=rounding)
        if infeasible > 0.1:  # x and y of the size of what separates them: the solution may be zero
            infeasible = against(feasibility, *sides, least=1e-6 * self._typical_split)
        relative = max(
            against(stationarity, gradient, pull, least=floor), infeasible, against(split, push, least=floor)
        )
        if loss is not None and y.size:
            relative = max(relative, self._worth(x, y, float(multiplier @ residual), loss))
        return KKT(stationarity, feasibility, split, relative)

    def _worth(self, x: np.ndarray, y: np.ndarray, priced: float, loss: float) -> float:
        """What is left of feasibility, in units of the objective."""
        psi, exact = self.psi_value(y), self.y_of_x(x)
        change = 0.0 if exact is None else self.psi_value(exact) - psi
        scale = max(abs(loss + self.omega_value(x) + psi), 1e-3 * self.loss_at_zero)
        worth = (abs(priced) + abs(change)) / scale if scale > 0.0 else 0.0
        return worth if np.isfinite(worth) else 0.0

    def test_loss(self, x: np.ndarray, X: Any, target: Any) -> float:
        """The mean loss of `x` on other data."""
        return held_out(self, X, target).loss_value(x)


def held_out(problem: Problem, X: Any, target: Any) -> Problem:
    """`problem` on other data: the same model and the same classes."""
    rows, names = as_rows(X, "X of test")
    if rows.shape[1] != problem.n_features:
        raise ValueError(f"test: X has {rows.shape[1]} columns; it takes {problem.n_features}, as in training")
    if names is not None and problem.feature_names is not None and names != list(problem.feature_names):
        j = next(j for j, name in enumerate(names) if name != problem.feature_names[j])
        wanted = problem.feature_names[j]
        raise ValueError(f"test: column {j} of X is {names[j]!r}; it takes {wanted!r}, as in training")
    coded, _ = _as_target(target, rows.shape[0], problem.loss, problem.classes)
    return problem._on(rows, coded, None)


def _as_target(target: Any, n: int, loss: Any, classes: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
    """The target as float64; for classification coded −1/+1, with the two classes in sorted order."""
    array = np.asarray(target)
    if array.ndim != 1 or array.size != n:
        raise ValueError(f"target has shape {array.shape}: it takes a vector of length {n}, the number of rows of X")
    if not loss.labels:
        return _checks.vector(array, "target", n, of="the number of rows of X"), None
    if array.dtype.kind == "f":
        _checks.finite(array, "target")
    if classes is None:
        try:
            classes = np.unique(array)
        except TypeError:
            raise TypeError("target mixes values that cannot be sorted: it takes two classes of one type") from None
        if classes.size != 2:
            shown = ", ".join(repr(v) for v in classes[:5].tolist()) + (", …" if classes.size > 5 else "")
            raise ValueError(f"target has {classes.size} class(es) ({shown}): the {loss.name} loss takes exactly two")
    elif not np.isin(array, classes).all():
        raise ValueError(f"target holds classes other than {classes.tolist()}")
    return np.where(array == classes[1], 1.0, -1.0), classes


def _as_weight(weight: Any, n: int) -> np.ndarray:
    """Weights that average to one; empty where all are equal by default."""
    if weight is None:
        return np.empty(0)
    weight = _checks.vector(weight, "sample_weight", n, of="the number of rows of X")
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight takes numbers ≥ 0, at least one of them > 0")
    return weight * (n / weight.sum())
