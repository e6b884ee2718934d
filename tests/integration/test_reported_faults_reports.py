"""Faults reported by a user of reports and of models of structure: each test is one of them."""

import numpy as np
import pytest

import skadmm

LINE = np.arange(100.0)[:, None]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_constant_trend_is_constant_to_the_last_bit(offset):
    constant = 0
    for seed in range(30):
        noise = offset + np.random.default_rng(seed).standard_normal(100)
        model = skadmm.TrendFilterCV(order=0, alphas=15, selection="1se").fit(LINE, noise)
        pieces = 1 + np.count_nonzero(np.diff(model.coef_))
        assert model.dof_ == model.n_clusters_ == model.knots_.size + 1 == pieces
        constant += model.dof_ == 1
    assert constant > 20


def test_small_steps_around_a_large_constant_are_steps():
    signal = 1e8 + 1e-3 * np.repeat([0.0, 1.0, -1.0, 2.0], 25)
    model = skadmm.TrendFilter(alpha=1e-6, order=0).fit(LINE, signal)
    assert model.dof_ == model.knots_.size + 1 == np.unique(model.coef_).size == 4


def test_denoised_values_at_the_strength_that_fuses_them_are_equal_to_the_last_bit():
    for seed in range(30):
        values = np.random.default_rng(seed).standard_normal(60)
        fused = np.abs(np.cumsum(values - values.mean())[:-1]).max()
        assert np.unique(skadmm.denoise_line(values, fused)).size == 1
        np.testing.assert_allclose(skadmm.denoise_line(values, fused), values.mean(), rtol=0, atol=1e-14)
        assert np.unique(skadmm.denoise_line(values, fused * (1 - 1e-9))).size == 2
