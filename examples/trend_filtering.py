"""
Trend filtering
===============

Unevenly spaced measurements, a piecewise linear curve, and its knots.
"""

import matplotlib.pyplot as plt
import numpy as np

from skadmm import TrendFilterCV
from skadmm.plotting import trend_fit

rng = np.random.default_rng(3)
position = np.sort(rng.uniform(0, 10, 250))
truth = np.interp(position, [0, 2, 3.5, 6, 8, 10], [0, 2, 1.8, 3.2, 0.5, 1.0])
measured = truth + 0.3 * rng.standard_normal(position.size)

model = TrendFilterCV(order=1, alphas=20, selection="1se").fit(position[:, None], measured)
print(f"alpha {model.alpha_:.3f}: {model.dof_} degrees of freedom, gap {model.result_.gap:.1e}")
print(f"between the measurements: {model.predict([[2.5], [7.0]]).round(3).tolist()}")

ax = trend_fit(model, position, measured)
ax.plot(position, truth, color="black", linewidth=0.9, linestyle=":", label="planted")
ax.set_title("A curve of straight pieces")
ax.legend(frameon=False, fontsize="small")
plt.show()
