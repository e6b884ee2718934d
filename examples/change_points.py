"""
Change points in an ordered signal
==================================

A noisy recording, its levels, and the change points. The same model fits a regression whose features are ordered; here
the coefficients are the signal itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from skadmm import TrendFilterCV
from skadmm.plotting import trend_fit

rng = np.random.default_rng(1)
truth = np.repeat([0.0, 1.5, 0.6, 2.4, 1.0], [60, 90, 50, 70, 80])
signal = truth + 0.5 * rng.standard_normal(truth.size)
time = np.arange(truth.size)[:, None]

model = TrendFilterCV(order=0, alphas=20, selection="1se").fit(time, signal)
changes = np.flatnonzero(np.diff(model.coef_)) + 1
print(
    f"alpha {model.alpha_:.4f}: {model.n_clusters_} levels, changes at {changes.tolist()} (planted 60, 150, 200, 270)"
)
error, noise = (np.sqrt(np.mean((values - truth) ** 2)) for values in (model.coef_, signal))
print(f"error {error:.3f}, of the recording {noise:.3f}")

ax = trend_fit(model, time, signal)
ax.plot(time, truth, color="black", linewidth=0.9, linestyle=":", label="planted")
ax.set_title("Levels and change points")
ax.legend(frameon=False, fontsize="small")
plt.show()
