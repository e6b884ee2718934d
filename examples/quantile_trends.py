"""
Quantile trends
===============

Measurements whose spread grows with time, and every tenth of which is too high by accident. A trend of the mean follows
the accidents; trends of quantiles do not: the median stays where most points are, and the quantiles 0.1 and 0.8 show
how the spread grows. Each curve is piecewise linear with few knots.
"""

import matplotlib.pyplot as plt
import numpy as np

from skadmm import TrendFilter
from skadmm.losses import Quantile

rng = np.random.default_rng(0)
time = np.arange(240.0)
curve = np.interp(time, [0, 80, 150, 239], [0.0, 3.0, 1.0, 2.0])
spread = 0.15 + 0.6 * time / time[-1]
values = curve + spread * rng.standard_normal(time.size)
accident = np.arange(time.size) % 10 == 4
values[accident] += rng.uniform(4.0, 8.0, accident.sum())

fits = {
    q: TrendFilter(10.0 / time.size, order=1, loss=Quantile(q), tol=1e-4).fit(time[:, None], values)
    for q in (0.1, 0.5, 0.8)
}
mean = TrendFilter(20.0 / time.size, order=1).fit(time[:, None], values)
for q, fit in fits.items():
    below = np.mean(values <= fit.predict(time[:, None]) + 1e-9)
    print(f"quantile {q}: {below:.2f} of the points are on the curve or below it, {len(fit.knots_)} knots")
error = {
    name: np.sqrt(np.mean((fit.predict(time[:, None]) - curve) ** 2))
    for name, fit in (("median", fits[0.5]), ("mean", mean))
}
print(f"distance from the curve without accidents: median {error['median']:.2f}, mean {error['mean']:.2f}")

plt.plot(time, values, ".", color="0.7", markersize=4, label="measurements")
for q, color in ((0.1, "C0"), (0.5, "C1"), (0.8, "C2")):
    plt.plot(time, fits[q].predict(time[:, None]), color=color, label=f"quantile {q}")
plt.plot(time, mean.predict(time[:, None]), "--", color="C3", label="mean")
plt.plot(time, curve, "k:", label="curve without accidents")
plt.xlabel("time")
plt.ylabel("value")
plt.ylim(top=14)
plt.title("Trends of quantiles and of the mean")
plt.legend(frameon=False, ncols=2)
plt.show()
