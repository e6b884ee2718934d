"""Cross-validation and paths of every model on every storage: the answers are those of rows in memory."""

import functools

import numpy as np
import pytest
import scipy.sparse

from skadmm import Problem, path
from skadmm.backends.writer import write_blocks
from skadmm.estimators import ESTIMATORS
from skadmm.operators import chain, stack
from skadmm.regularizers import L1, ElasticNet, GroupL2

N, D = 90, 6
GROUPS = [[0, 1, 2], [3, 4, 5]]
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D))
NUMBERS = X @ np.array([1.0, 1.0, 1.0, 0.0, 0.0, -1.0]) + 0.5 * RNG.standard_normal(N)
CLASSES = NUMBERS > 0
WEIGHT = RNG.uniform(0.5, 2.0, N)
MODELS = [name for name in ESTIMATORS if name.endswith("CV") and name != "TrendFilterCV"]
OPERATIONS = {
    "loss": {},
    "score": {"scoring": "balanced_accuracy"},
    "1se": {"selection": "1se"},
    "bic": {"selection": "bic"},
    "ratios": {"l1_ratio": [0.3, 0.8]},
}


def target_of(name):
    return CLASSES if "Classifier" in name else NUMBERS


def model_of(name, operation, **options):
    settings = OPERATIONS[operation] | options
    if settings.get("scoring") and "Regressor" in name:
        settings["scoring"] = "neg_mean_absolute_error"
    if name.startswith("Group"):
        settings["groups"] = GROUPS
    return ESTIMATORS[name](alphas=4, eps=0.05, cv=3, tol=1e-11, **settings)


def stored(storage, tmp_path, target):
    if storage == "sparse":
        return scipy.sparse.csr_array(X)
    if storage == "frame":
        return pytest.importorskip("pandas").DataFrame(X, columns=list("abcdef"))
    parts = [slice(0, 40), slice(40, N)]
    write_blocks(tmp_path / "blocks", [(X[part], target[part].astype(float)) for part in parts], ones=True)
    return tmp_path / "blocks"


def same(found, wanted, atol=1e-6):
    """`atol` is for scores of folds, which are solved to a gap only."""
    np.testing.assert_allclose(found.alphas_, wanted.alphas_, rtol=1e-9)
    for name in ("cv_losses_", "cv_scores_", "criterion_"):
        assert hasattr(found, name) == hasattr(wanted, name)
        if hasattr(wanted, name):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=atol)
    assert found.alpha_ == pytest.approx(wanted.alpha_)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)
    np.testing.assert_allclose(found.coefs_path_, wanted.coefs_path_, atol=1e-4)


@functools.cache
def in_memory(name, operation):
    return model_of(name, operation).fit(X, target_of(name), sample_weight=WEIGHT)


@pytest.mark.parametrize(
    ("operation", "storage"), [("loss", "sparse"), ("loss", "frame"), *((name, "folder") for name in OPERATIONS)]
)
@pytest.mark.parametrize("name", MODELS)
def test_cross_validation(name, operation, storage, tmp_path):
    target, wanted = target_of(name), in_memory(name, operation)
    found = model_of(name, operation).fit(stored(storage, tmp_path, target), target, sample_weight=WEIGHT)
    same(found, wanted)


@pytest.mark.parametrize("storage", ["sparse", "folder"])
@pytest.mark.parametrize(
    ("psi", "A"),
    [(L1(1.0), stack(chain(D), "identity")), (GroupL2(1.0, GROUPS), None), (ElasticNet(1.0, 0.5), None)],
    ids=["fused", "groups", "elastic-net"],
)
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_path(loss, psi, A, storage, tmp_path):
    target = CLASSES if loss == "logistic" else NUMBERS
    alphas = [0.1, 0.03, 0.01]
    wanted = path(Problem(X, target, loss=loss, psi=psi, A=A), alphas, tol=1e-11)
    if storage == "sparse":
        table = scipy.sparse.csr_array(X)
    else:
        table = tmp_path / "blocks"
        write_blocks(table, [(X[:40], target[:40].astype(float)), (X[40:], target[40:].astype(float))])
    found = path(Problem(table, target, loss=loss, psi=psi, A=A), alphas, tol=1e-11)
    assert found.statuses == ["solved"] * 3
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-6)
    np.testing.assert_array_equal(found.dof, wanted.dof)


@pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and loops
def test_cross_validation_on_dask(client):
    """By a scorer; test_storage_matrix.py has the loss of held-out rows, for every model."""
    da = pytest.importorskip("dask.array")
    name, operation = "GroupLassoRegressorCV", "score"
    target = target_of(name)
    wanted = model_of(name, operation).fit(X, target)
    found = model_of(name, operation).fit(da.from_array(X, chunks=(40, D)), da.from_array(target, chunks=40))
    # Another solver on the cluster: where a group is about to leave zero, folds are known to the root of their gap.
    same(found, wanted, atol=3e-5)
