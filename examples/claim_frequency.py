"""
Claim frequency with fused levels
=================================

A simulated portfolio of car insurance policies: the age of the driver in 40 years, the age of the car in 20, and 12
regions, each with an exposure below one year. Rates are the same over long ranges of ages. A Poisson model with fused
levels finds the ranges; ridge on the same indicators estimates every level by itself. Both choose their strength by
cross-validation, and are judged by the Poisson deviance of policies held out.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV

from skadmm import FusedLassoRegressorCV

rng = np.random.default_rng(0)
n = 6000
levels = {"driver": 40, "car": 20, "region": 12}
codes = {name: rng.integers(0, count, n) for name, count in levels.items()}
exposure = rng.uniform(0.05, 1.0, n)
truth = {
    "driver": np.select([np.arange(40) < 6, np.arange(40) < 30], [0.9, 0.0], 0.4),
    "car": np.where(np.arange(20) < 8, 0.0, -0.4),
    "region": np.repeat([0.0, 0.35], [7, 5]),
}
rate = np.exp(-1.6 + sum(truth[name][codes[name]] for name in levels))
claims = rng.poisson(rate * exposure)

table = np.hstack([np.eye(count)[codes[name]] for name, count in levels.items()])
starts = np.concatenate([[0], np.cumsum(list(levels.values()))])
edges = [(i, i + 1) for first, last in itertools.pairwise(starts) for i in range(first, last - 1)]
train = np.arange(n) < n // 2

fused = FusedLassoRegressorCV(graph=edges, l1_ratio=0.0, ridge=1e-4, loss="poisson", alphas=20, cv=5)
fused.fit(table[train], claims[train], offset=np.log(exposure[train]))
ridge = GridSearchCV(PoissonRegressor(max_iter=1000), {"alpha": np.logspace(-5, 0, 12)}, cv=5)
ridge.fit(table[train], (claims / exposure)[train], sample_weight=exposure[train])

rest = ~train
deviance = {
    "fused": mean_poisson_deviance(claims[rest], fused.predict(table[rest], offset=np.log(exposure[rest]))),
    "ridge": mean_poisson_deviance(claims[rest], exposure[rest] * ridge.predict(table[rest])),
    "planted": mean_poisson_deviance(claims[rest], (rate * exposure)[rest]),
}
print(f"{fused.n_clusters_} levels instead of {table.shape[1]}")
print("deviance of policies held out: " + ", ".join(f"{name} {value:.4f}" for name, value in deviance.items()))

driver = slice(0, levels["driver"])
centred = {
    "planted": truth["driver"], "fused": fused.coef_[driver], "ridge": ridge.best_estimator_.coef_[driver],
}  # fmt: skip
for name, style in (("ridge", "o"), ("fused", "-"), ("planted", "k:")):
    plt.plot(
        18 + np.arange(40), centred[name] - centred[name].mean(), style, label=name, markersize=3, drawstyle="steps-mid"
    )
plt.xlabel("age of the driver")
plt.ylabel("effect on the log rate")
plt.title("Claim frequency: fused levels and ridge")
plt.legend(frameon=False)
plt.show()
