"""Bad input is refused at the door, in a message that names the argument; odd but sound input is taken."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skadmm import ALGORITHMS, Problem, solve
from skadmm.kernels.rows import CSRRows
from skadmm.losses import Huber
from skadmm.operators import chain
from skadmm.regularizers import L1, ElasticNet, NonNegative, SquaredL2

N, D = 12, 4
rng = np.random.default_rng(0)
X = rng.standard_normal((N, D))
CLASSES = np.where(np.arange(N) % 3 == 0, -1, 1)
NUMBERS = rng.standard_normal(N)


def spoiled(array, value):
    array = np.array(array, dtype=float)
    array.flat[array.size // 2] = value
    return array


def problem(**changes):
    told = {"X": X, "target": CLASSES, "psi": L1(0.1), "A": chain(D)} | changes
    return Problem(told.pop("X"), told.pop("target"), **told)


@pytest.fixture(scope="module")
def sound():
    return problem()


# -- not finite --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array, pd.DataFrame])
def test_X_is_finite(value, convert):
    with pytest.raises(ValueError, match=r"^X contains NaN or infinity"):
        problem(X=convert(spoiled(X, value)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("loss", "target"), [("squared", NUMBERS), ("logistic", CLASSES)])
def test_target_is_finite(value, loss, target):
    with pytest.raises(ValueError, match=r"^target contains NaN or infinity"):
        problem(target=spoiled(target, value), loss=loss)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_A_is_finite(value, convert):
    with pytest.raises(ValueError, match=r"^A must be finite"):
        problem(A=convert(spoiled(np.eye(D), value)))


def test_B_and_c_are_finite():
    with pytest.raises(ValueError, match=r"^B must be finite"):
        problem(B=spoiled(np.eye(D - 1), np.nan))
    with pytest.raises(ValueError, match=r"^c contains NaN or infinity"):
        problem(c=spoiled(np.ones(D - 1), np.nan))


def test_values_that_only_overflow_a_sum_are_finite():
    assert problem(X=np.full((N, D), 1e308)).n_samples == N


# -- shapes ------------------------------------------------------------------------------------------------------


def test_target_is_as_long_as_X():
    with pytest.raises(ValueError, match=r"^target has shape \(11,\).*length 12, the number of rows of X"):
        problem(target=CLASSES[:-1])


def test_target_is_a_vector():
    with pytest.raises(ValueError, match=r"^target has shape \(12, 1\)"):
        problem(target=CLASSES[:, None])


def test_A_is_as_wide_as_X():
    with pytest.raises(ValueError, match=r"^A must have one column per feature, 4; got shape \(5, 6\)"):
        problem(A=np.ones((5, 6)))


def test_B_has_the_rows_of_A():
    with pytest.raises(ValueError, match=r"^B has 5 rows: it takes 3, the number of rows of A"):
        problem(B=np.eye(5))


def test_B_as_a_vector_has_the_rows_of_A():
    with pytest.raises(ValueError, match=r"^B has shape .*number of rows of A"):
        problem(B=np.ones(5))


def test_c_has_the_rows_of_A():
    with pytest.raises(ValueError, match=r"^c has shape \(5,\).*length 3, the number of rows of A"):
        problem(c=np.ones(5))


@pytest.mark.parametrize("shape", [(0, D), (N, 0)])
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_X_is_not_empty(shape, convert):
    with pytest.raises(ValueError, match=r"^X has shape .* at least one row and one column"):
        problem(X=convert(np.zeros(shape)), target=CLASSES[: shape[0]])


@pytest.mark.parametrize("table", [X[0], X[None], scipy.sparse.coo_array(X[0]), 3.0])
def test_X_has_two_dimensions(table):
    with pytest.raises(ValueError, match=r"^X has . dimension"):
        problem(X=table)


@pytest.mark.parametrize(("name", "size"), [("x0", D), ("y0", D - 1), ("dual0", D - 1)])
def test_starting_points_have_the_right_length(name, size, sound):
    with pytest.raises(ValueError, match=rf"^{name} has shape \({size + 1},\).*length {size}"):
        solve(sound, step=0.1, **{name: np.zeros(size + 1)})
    with pytest.raises(ValueError, match=rf"^{name} contains NaN"):
        solve(sound, step=0.1, **{name: np.full(size, np.nan)})


def test_sample_weight_is_as_long_as_X():
    with pytest.raises(ValueError, match=r"^sample_weight has shape .*number of rows of X"):
        problem(sample_weight=np.ones(N + 1))


def test_regulariser_weights_are_as_long_as_their_vector():
    with pytest.raises(ValueError, match=r"^psi=L1.*weights must have length 3"):
        problem(psi=L1(0.1, np.ones(D)))
    with pytest.raises(ValueError, match=r"^omega=L1.*weights must have length 4"):
        problem(omega=L1(0.1, np.ones(D - 1)))


def test_test_data_is_as_wide_as_X(sound):
    with pytest.raises(ValueError, match=r"^test: X has 3 columns; it takes 4"):
        solve(sound, step=0.1, test=(X[:, :3], CLASSES))
    with pytest.raises(ValueError, match=r"^target has shape"):
        solve(sound, step=0.1, test=(X, CLASSES[:3]))
    with pytest.raises(TypeError, match=r"^test=ndarray: it takes a pair"):
        solve(sound, step=0.1, test=X)


def test_test_data_has_the_known_classes(sound):
    with pytest.raises(ValueError, match=r"^target holds classes other than"):
        solve(sound, step=0.1, test=(X, CLASSES + 5))


# -- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, bool, np.float16, ">f8"])
def test_integers_and_booleans_are_converted(dtype):
    table = (X > 0).astype(dtype)
    plain = Problem((X > 0).astype(float), CLASSES)
    for convert in (np.asarray, pd.DataFrame):
        assert np.array_equal(Problem(convert(table), CLASSES).rows.values, plain.rows.values)
        assert Problem(convert(table), CLASSES).rows.values.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool])
def test_sparse_integers_and_booleans_are_converted(dtype):
    rows = Problem(scipy.sparse.csr_array((X > 0).astype(dtype)), CLASSES).rows
    assert rows.data.dtype == np.float64
    assert rows.data.size == np.count_nonzero(X > 0)


@pytest.mark.parametrize("table", [X.astype(object), X.astype(str), X.astype(complex), X.astype("datetime64[s]")])
def test_X_holds_real_numbers(table):
    with pytest.raises(TypeError, match=r"^X has dtype .*real numbers"):
        problem(X=table)


def test_sparse_X_holds_real_numbers():
    with pytest.raises(TypeError, match=r"^X has dtype complex128"):
        problem(X=scipy.sparse.csr_array(X.astype(complex)))


def test_columns_that_are_not_numbers_are_named():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(c="red", d=pd.Timestamp(0))
    with pytest.raises(TypeError, match=r"^X has columns that are not numbers: c, d"):
        problem(X=frame)


def test_columns_of_mixed_numbers_are_converted():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(a=np.arange(N), b=np.arange(N) % 2 == 0)
    made = problem(X=frame)
    assert made.feature_names == list("abcd")
    assert np.array_equal(made.rows.values, frame.to_numpy(float))


def test_sparse_matrices_with_64_bit_indices():
    matrix = scipy.sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    made = problem(X=matrix)
    assert isinstance(made.rows, CSRRows)
    assert made.objective(np.ones(D)) == pytest.approx(problem().objective(np.ones(D)))


def test_sparse_matrices_with_duplicates_and_no_order_are_not_changed():
    matrix = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    made = Problem(matrix, [1.0, 2.0], "squared")
    assert np.array_equal(made.rows.data, [2.0, 4.0])
    assert np.array_equal(matrix.data, [1.0, 2.0, 3.0])


def test_target_of_complex_numbers_is_refused():
    with pytest.raises(TypeError, match=r"^target has dtype complex128"):
        problem(target=NUMBERS.astype(complex), loss="squared")


# -- labels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
@pytest.mark.parametrize("target", [np.ones(N), np.arange(N) % 3, NUMBERS])
def test_margin_losses_take_two_classes(loss, target):
    with pytest.raises(ValueError, match=rf"^target has \d+ class.*the {loss} loss takes exactly two"):
        problem(target=target, loss=loss)


def test_numbers_under_a_loss_for_classes_are_pointed_to_another_loss():
    with pytest.raises(ValueError, match="choose another loss, such as 'squared'"):
        problem(target=NUMBERS, loss="logistic")


@pytest.mark.parametrize("names", [(0, 1), (False, True), ("no", "yes"), (2, 7)])
def test_any_two_classes_are_coded(names):
    made = problem(target=np.where(CLASSES == 1, names[1], names[0]))
    assert np.array_equal(made.target, CLASSES)
    assert made.classes.tolist() == list(names)


def test_classes_that_cannot_be_sorted():
    with pytest.raises(TypeError, match=r"^target mixes values"):
        problem(target=np.array([None, "a"] * 6, dtype=object))


# -- numbers out of range ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rho", "passes", "step", "tol", "time_limit"])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf, True, 1j, [1.0]])
def test_numbers_above_zero(name, value, sound):
    with pytest.raises(ValueError, match=rf"^{name}=.*a finite number > 0"):
        solve(sound, **({"step": 0.1} | {name: value}))


@pytest.mark.parametrize("value", [-1, 0, 1.5, True, "7"])
def test_batch_size_is_a_count(value, sound):
    with pytest.raises(ValueError, match=r"^batch_size=.*an integer ≥ 1"):
        solve(sound, step=0.1, batch_size=value)


def test_record_every_is_not_negative(sound):
    with pytest.raises(ValueError, match=r"^record_every=-1.*≥ 0"):
        solve(sound, step=0.1, record_every=-1)


@pytest.mark.parametrize("reg", [L1(-0.1), SquaredL2(-1.0), ElasticNet(-1.0, 0.0), L1(np.nan)])
@pytest.mark.parametrize("role", ["omega", "psi"])
def test_strengths_are_not_negative(reg, role):
    with pytest.raises(ValueError, match=rf"^{role}={type(reg).__name__}.*≥ 0"):
        problem(**{role: reg})


def test_weights_are_not_negative():
    with pytest.raises(ValueError, match=r"^sample_weight takes numbers ≥ 0"):
        problem(sample_weight=-np.ones(N))
    with pytest.raises(ValueError, match=r"^sample_weight takes numbers ≥ 0, at least one of them > 0"):
        problem(sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match=r"^psi=L1.*weights must be finite and ≥ 0"):
        problem(psi=L1(0.1, -np.ones(D - 1)))


def test_huber_has_a_positive_width():
    with pytest.raises(ValueError, match=r"delta"):
        problem(target=NUMBERS, loss=Huber(-1.0))


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (True, TypeError), ("seven", TypeError)])
def test_random_state(value, error, sound):
    with pytest.raises(error, match=r"^random_state="):
        solve(sound, step=0.1, random_state=value)


# -- unknown names -----------------------------------------------------------------------------------------------


def test_unknown_method(sound):
    with pytest.raises(ValueError, match=r"^method='sa-adm' is not known.*Did you mean 'sa-admm'\?") as caught:
        solve(sound, "sa-adm")
    assert all(repr(name) in str(caught.value) for name in ALGORITHMS)


def test_unknown_loss():
    with pytest.raises(ValueError, match=r"^loss='logistc'.*'squared', 'huber'.*Did you mean 'logistic'\?"):
        problem(loss="logistc")


def test_unknown_sampler(sound):
    message = r"^sampler='permutatoin'.*'uniform', 'permutation', 'cyclic'.*Did you mean 'permutation'\?"
    with pytest.raises(ValueError, match=message):
        solve(sound, step=0.1, sampler="permutatoin")


def test_unknown_regulariser():
    with pytest.raises(ValueError, match=r"^regularizer='l11'.*Did you mean 'l1'\?"):
        problem(psi="l11")


def test_unknown_step(sound):
    with pytest.raises(ValueError, match=r"^step='fast': it takes a number > 0, 'auto' or 'theory'"):
        solve(sound, step="fast")


def test_a_far_name_gets_no_suggestion(sound):
    with pytest.raises(ValueError, match=r"^method='xyzzy' is not known; it takes one of [^?]*$"):
        solve(sound, "xyzzy")


@pytest.mark.parametrize(
    ("order", "said"),
    [([0, 99], "from 0 to 99"), ([-1, 0], "from -1"), ([], "vector of indices"), ([0.5], "vector of indices")],
)
def test_an_order_of_blocks_that_do_not_exist(order, said, sound):
    with pytest.raises(ValueError, match=rf"^sampler h.*{said}"):
        solve(sound, step=0.1, sampler=order)


# -- things of the wrong kind ------------------------------------------------------------------------------------


def test_problem_loss_and_regulariser_of_the_wrong_kind(sound):
    with pytest.raises(TypeError, match=r"^problem=ndarray: it takes a"):
        solve(X)
    with pytest.raises(TypeError, match=r"^loss=3 is not a loss"):
        problem(loss=3)
    with pytest.raises(TypeError, match=r"^psi=0.1 is not a regulariser"):
        problem(psi=0.1)
    with pytest.raises(TypeError, match=r"^omega=.* is not a regulariser"):
        problem(omega=L1)
    with pytest.raises(TypeError, match=r"^callback=5: it takes a function"):
        solve(sound, step=0.1, callback=5)
    with pytest.raises(TypeError, match=r"^callback='x'"):
        solve(sound, step=0.1, callback=["x"])


# -- Ω -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "omega", "mode"),
    [
        ("sa-iu-admm", L1(0.1), "subgradient"),
        ("sa-iu-admm", SquaredL2(0.1), "system"),
        ("sa-admm", L1(0.1), "system"),
        ("sa-admm", L1(0.1), "prox"),
        ("opg-admm", NonNegative(), "subgradient"),
    ],
)
def test_an_omega_the_method_cannot_take(method, omega, mode):
    with pytest.raises(ValueError, match=rf"^omega_mode='{mode}': {method} can take omega={type(omega).__name__} by '"):
        solve(problem(omega=omega), method, step=0.1, omega_mode=mode)


def test_an_unknown_way_for_omega(sound):
    with pytest.raises(ValueError, match=r"^omega_mode='proxy': it takes one of 'prox', 'system', 'fold'"):
        solve(sound, step=0.1, omega_mode="proxy")


# -- the constraint ----------------------------------------------------------------------------------------------


def test_B_without_a_zero_column():
    B = np.eye(3)
    B[1, 1] = 0.0
    with pytest.raises(ValueError, match=r"^B has only zeros in column 1"):
        problem(B=B)
    with pytest.raises(ValueError, match=r"^B has only zeros in column 2"):
        problem(B=np.array([1.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match=r"^B=0 leaves y unconstrained"):
        problem(B=0)


def test_B_of_the_wrong_kind():
    with pytest.raises(ValueError, match=r"^B='minus': it takes a finite number"):
        problem(B="minus")
    with pytest.raises(ValueError, match=r"^B=nan: it takes a finite number"):
        problem(B=np.array(np.nan))
    with pytest.raises(ValueError, match=r"^B must have two dimensions"):
        problem(B=np.ones((3, 3, 3)))
    with pytest.raises(ValueError, match=r"^B has rows of different lengths"):
        problem(B=[[1.0, 2.0], [3.0]])


def test_a_constraint_needs_a_psi():
    for name in ("B", "c"):
        with pytest.raises(ValueError, match=r"^B or c was given without psi"):
            problem(**{"psi": None, name: np.ones(3)})


# -- warm starts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def earlier(sound):
    return solve(sound, "opg-admm", step=0.1, rho=0.1, batch_size=3, passes=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"method": "rda-admm"}, "method='opg-admm', this one has 'rda-admm'"),
        ({"rho": 0.2}, "rho=0.1, this one has 0.2"),
        ({"batch_size": 4}, "batch_size=3, this one has 4"),
    ],
)
def test_a_warm_start_of_another_run(changes, said, sound, earlier):
    told = {"method": "opg-admm", "step": 0.1, "rho": 0.1, "batch_size": 3} | changes
    with pytest.raises(ValueError, match=rf"^warm_start: the earlier run had {said}"):
        solve(sound, **told, warm_start=earlier)


def test_a_warm_start_on_another_shape(earlier):
    other = problem(A=np.eye(D))
    with pytest.raises(ValueError, match=r"^warm_start: the earlier run has no matching table"):
        solve(other, "opg-admm", step=0.1, rho=0.1, batch_size=3, warm_start=earlier)


def test_a_warm_start_that_is_no_result(sound):
    with pytest.raises(TypeError, match=r"^warm_start=ndarray: it takes a Result"):
        solve(sound, step=0.1, warm_start=X)
