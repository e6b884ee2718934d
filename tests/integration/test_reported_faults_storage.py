"""Faults that users reported: models, labels and folds that were not the same for every storage of a table."""

import numpy as np
import pandas as pd
import pytest

from skadmm import FusedLassoRegressor, FusedLassoRegressorCV
from skadmm.backends.writer import write_blocks

RNG = np.random.default_rng(0)
N = 80
X = RNG.standard_normal((N, 4))
Y = X[:, 0] + RNG.standard_normal(N)
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "cache"))


def same_model(found, wanted, atol=1e-8):
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=atol, rtol=0)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=atol, rtol=0)


# -- several outputs whose large shifts are copied in chunks ---------------------------------------------------------


def test_a_search_over_several_outputs_on_disk(tmp_path):
    FRAME.assign(y=Y, y2=-Y).to_parquet(tmp_path / "t.parquet")
    found = FusedLassoRegressorCV(alphas=4, tol=1e-11).fit(tmp_path / "t.parquet", ["y", "y2"])
    same_model(found, FusedLassoRegressorCV(alphas=4, tol=1e-11).fit(FRAME, np.column_stack([Y, -Y])))


def test_several_outputs_on_blocks_at_a_weak_penalty(tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((120, 4))
    outcome = (rows[:, 0] * 2 + rng.standard_normal(120) > 0).astype(float)
    write_blocks(tmp_path / "blocks", [(rows[:60], None), (rows[60:], None)], ones=True)
    model = FusedLassoRegressor(0.001, loss="binomial", output_penalty="rows", tol=1e-11)
    target = np.column_stack([outcome, outcome])
    coef = model.fit(tmp_path / "blocks", target).coef_
    np.testing.assert_allclose(coef, model.fit(rows, target).coef_, atol=1e-8)
