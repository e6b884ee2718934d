"""The losses of counts, costs, shares, quantiles and classes with kinks in plain NumPy, from their definitions.

As in ``reference.py`` nothing here imports skadmm. A loss returns value, derivative and second derivative of each
margin; the parameters are the defaults of the package. A loss with a kink has a subgradient, 0 at the kink itself.
"""

import numpy as np
from scipy.special import xlogy


def poisson(z, b):
    mean = np.exp(z)
    return mean - b * z + xlogy(b, b) - b, mean - b, mean


def gamma(z, b):
    ratio = b / np.exp(z)
    return ratio - np.log(ratio) - 1, 1 - ratio, ratio


def binomial(z, b):
    p = 1 / (1 + np.exp(-z))
    return -xlogy(b, p) - xlogy(1 - b, 1 - p) + xlogy(b, b) + xlogy(1 - b, 1 - b), p - b, p * (1 - p)


def tweedie(z, b, power=1.5):
    """b^(2−p)/((1−p)(2−p)) − b μ^(1−p)/(1−p) + μ^(2−p)/(2−p): half the unit deviance."""
    p, mean = power, np.exp(z)
    value = b ** (2 - p) / ((1 - p) * (2 - p)) - b * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p)
    return value, mean ** (1 - p) * (mean - b), (2 - p) * mean ** (2 - p) + (p - 1) * b * mean ** (1 - p)


def negative_binomial(z, b, dispersion=1.0):
    """From the density: b log(b/μ) − (b + 1/k) log((1 + kb)/(1 + kμ)), with slope (μ − b)/(1 + kμ)."""
    k, mean = dispersion, np.exp(z)
    value = xlogy(b, b / mean) - (b + 1 / k) * np.log((1 + k * b) / (1 + k * mean))
    return value, (mean - b) / (1 + k * mean), mean * (1 + k * b) / (1 + k * mean) ** 2


def quantile(z, b, q=0.5):
    r = b - z
    return np.maximum(q * r, (q - 1) * r), np.where(r > 0, -q, np.where(r < 0, 1 - q, 0.0)), np.zeros_like(z)


def smoothed_quantile(z, b, q=0.5, width=0.1):
    """The least of quantile(u, b) + (u − z)²/(2·width) over u, at u = z − width·slope."""
    slope = np.clip((z - b) / width, -q, 1 - q)
    u = z - width * slope
    inside = (-q < slope) & (slope < 1 - q)
    return quantile(u, b, q)[0] + (u - z) ** 2 / (2 * width), slope, inside / width


def absolute(z, b):
    return np.abs(z - b), np.sign(z - b), np.zeros_like(z)


def hinge(z, b):
    return np.maximum(0, 1 - b * z), np.where(b * z < 1, -b, 0.0), np.zeros_like(z)


LOSSES = {
    "poisson": poisson, "gamma": gamma, "binomial": binomial, "tweedie": tweedie,
    "negative-binomial": negative_binomial, "quantile": quantile, "smoothed-quantile": smoothed_quantile,
    "absolute": absolute, "hinge": hinge,
}  # fmt: skip
