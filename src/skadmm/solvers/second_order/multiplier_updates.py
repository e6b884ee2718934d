"""When the method of multipliers changes the multiplier, and σ and κ with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UpdateConfig:
    """Settings of the changes of the multiplier; the solvers of the method extend them."""

    first_kappa: float = 1e-3
    """The first value of κ, the weight of the distance from the last centre; every change of the multiplier divides it
    by ten."""
    min_kappa: float = 1e-8
    """The smallest value of κ."""
    inner_tolerance: float = 0.1
    """The multiplier changes when the gradient of φ has fallen to this share of the constraint's residual."""
    min_inner_tolerance: float = 1e-13
    """The multiplier also changes when the gradient of φ has fallen to this share of its own parts."""
    max_changes: int = 50
    """The maximum number of changes of the multiplier before one Newton step."""
    min_sigma: float = 1e-8
    """σ at first is at least this share of the one that gives loss and constraint the same curvature."""
    residual_left: float = 0.3
    """σ grows where a change of the multiplier leaves more than this share of the constraint's residual."""
    sigma_growth: float = 5.0
    """The factor by which σ grows."""
    max_sigma: float = 1e9
    """The largest σ, as a multiple of the one that gives loss and constraint the same curvature."""
    max_inner_steps: int = 12
    """More Newton steps than this between two changes of the multiplier mean that σ is too large."""
    max_refusals: int = 8
    """The solver stops after this many Newton steps in a row that do not decrease φ."""
    max_idle: int = 60
    """The solver stops after this many changes of the multiplier without a better measure of optimality."""

    def enough(self, residual: float, scale: float) -> float:
        """The size of φ's gradient at which the multiplier changes: `residual` is that of the constraint, `scale` the
        size of the gradient's parts."""
        return max(min(self.inner_tolerance * residual, 1e-2 * scale), self.min_inner_tolerance * scale)

    def next_kappa(self, kappa: float) -> float:
        """κ after a change of the multiplier."""
        return max(0.1 * kappa, self.min_kappa)

    def next_sigma(self, sigma: float, newton_steps: int, residual: float, last_residual: float) -> float:
        """σ after a change of the multiplier that took so many Newton steps; the residuals of the constraint are those
        at this change and at the last one."""
        if newton_steps > self.max_inner_steps:
            return sigma / self.sigma_growth
        if residual > self.residual_left * last_residual and sigma < self.max_sigma:
            return sigma * self.sigma_growth
        return sigma
