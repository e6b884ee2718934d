"""The multinomial logistic loss."""

import math
from typing import NamedTuple

from skadmm.kernels.compile import facts
from skadmm.losses._base import define_coupled


@facts(name="multinomial", labels=True, attained=False, coupled=True)
class Multinomial(NamedTuple):
    """The multinomial logistic loss, ℓ(z, b) = log Σ_c exp(z_c) − z·b, of a margin for each class.

    b is one for the class of the sample and zero for the others. Adding a number to all margins changes nothing, so
    coefficients are unique only up to what the penalty decides.

    See Also
    --------
    skadmm.losses.Logistic : The loss of two classes with one margin.

    Examples
    --------
    >>> import numpy as np
    >>> from skadmm import Problem, solve
    >>> from skadmm.regularizers import L1
    >>> X = np.eye(6)
    >>> result = solve(Problem(X, ["a", "b", "c", "a", "b", "c"], "multinomial", psi=L1(0.01)))
    >>> result.coef.shape
    (3, 6)
    """

    @property
    def curvature_bound(self) -> float:
        return 0.5  # diag(p) − p pᵀ has no eigenvalue above ½


# b has a single 1, and Σ b = 1.


def _value(loss, z, b):
    largest, own = z[0], 0.0
    for c in range(z.size):
        largest = max(largest, z[c])
        own += b[c] * z[c]
    total = 0.0
    for c in range(z.size):
        total += math.exp(z[c] - largest)
    return math.log(total) + (largest - own)


def _curvature(loss, z, b, out):
    largest = z[0]
    for c in range(z.size):
        largest = max(largest, z[c])
    total = 0.0
    for c in range(z.size):
        out[c] = math.exp(z[c] - largest)
        total += out[c]
    for c in range(z.size):
        out[c] /= total


def _derivative(loss, z, b, out):
    # The slope of the sample's own class is minus the sum of the others: 1 − p would lose its digits where p is near 1.
    largest = z[0]
    for c in range(z.size):
        largest = max(largest, z[c])
    total = 0.0
    for c in range(z.size):
        out[c] = math.exp(z[c] - largest)
        total += out[c]
    others = 0.0
    for c in range(z.size):
        out[c] = 0.0 if b[c] > 0.5 else out[c] / total
        others += out[c]
    for c in range(z.size):
        if b[c] > 0.5:
            out[c] = -others


def _evaluate(loss, z, b, slopes, curvatures):
    largest, own = z[0], 0.0
    for c in range(z.size):
        largest = max(largest, z[c])
        own += b[c] * z[c]
    total = 0.0
    for c in range(z.size):
        curvatures[c] = math.exp(z[c] - largest)
        total += curvatures[c]
    others = 0.0
    for c in range(z.size):
        curvatures[c] /= total
        slopes[c] = 0.0 if b[c] > 0.5 else curvatures[c]
        others += slopes[c]
    for c in range(z.size):
        if b[c] > 0.5:
            slopes[c] = -others
    return math.log(total) + (largest - own)


def _conjugate(loss, theta, b):
    # With p = θ + b on the simplex: Σ p log p. Rounding of Σ θ = 0 and of p ≥ 0 is allowed for.
    total, sum_of_all, size = 0.0, 0.0, 0.0
    for c in range(theta.size):
        p = theta[c] + b[c]
        sum_of_all += theta[c]
        size += abs(theta[c])
        if p < -1e-15:
            return math.inf
        if p > 0.0:
            total += p * math.log(p)
    if abs(sum_of_all) > 1e-13 * size:
        return math.inf
    return total


define_coupled(
    Multinomial,
    value=_value,
    derivative=_derivative,
    curvature=_curvature,
    evaluate=_evaluate,
    conjugate=_conjugate,
)
