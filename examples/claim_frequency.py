"""
Claim frequency and severity with fused levels
==============================================

Car insurance policies: the age of the driver, the age and the power of the car, and the region, each with an exposure
below one year. ``make_claims`` simulates them, with rates and costs that are the same over long ranges of levels;
``fetch_claims`` downloads the real ones (freMTPL2), and everything below works on them too.

The frequency is a Poisson model of the number of claims with the logarithm of the exposure as offset. The severity is a
gamma model of the mean cost of a claim, weighted by the number of claims. Fused levels find the ranges; ridge on the
same indicators estimates every level by itself. Both choose their strength by cross-validation, and are judged by the
deviance of policies held out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from skadmm import FusedLassoRegressorCV
from skadmm.datasets import make_claims

data = make_claims(8000)
table, counts, years = data.table, data.counts, data.exposure
train = np.arange(len(table)) % 2 == 0
encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
indicators = encoder.fit_transform(table)
options = {"categorical_features": "from_dtype", "handle_unknown": "ignore", "l1_ratio": 0.05, "alphas": 15, "cv": 4}
strengths = {"alpha": np.logspace(-5, 0, 12)}

# %%
# How often
# ---------
frequency = FusedLassoRegressorCV(loss="poisson", **options)
frequency.fit(table[train], counts[train], offset=np.log(years[train]))
plain = GridSearchCV(PoissonRegressor(max_iter=1000), strengths, cv=4)
plain.fit(indicators[train], (counts / years)[train], sample_weight=years[train])

rest = ~train
expected = frequency.predict(table[rest], offset=np.log(years[rest]))
deviance = {
    "fused": mean_poisson_deviance(counts[rest], expected),
    "ridge": mean_poisson_deviance(counts[rest], years[rest] * plain.predict(indicators[rest])),
    "planted": mean_poisson_deviance(counts[rest], (data.rate * years)[rest]),
}
print(f"{frequency.n_clusters_} levels instead of {indicators.shape[1]}")
print("deviance of policies held out: " + ", ".join(f"{name} {value:.4f}" for name, value in deviance.items()))

# %%
# How much
# --------
# The mean cost of a policy's claims, where it has some. The pure premium of a policy is the product of both models.
claimed = counts > 0
mean_cost = np.where(claimed, data.costs / np.maximum(counts, 1.0), 0.0)
fit, test = train & claimed, rest & claimed
severity = FusedLassoRegressorCV(loss="gamma", **options)
severity.fit(table[fit], mean_cost[fit], sample_weight=counts[fit])
ridge = GridSearchCV(GammaRegressor(max_iter=1000), strengths, cv=4)
ridge.fit(indicators[fit], mean_cost[fit], sample_weight=counts[fit])
costs = {
    "fused": mean_gamma_deviance(mean_cost[test], severity.predict(table[test]), sample_weight=counts[test]),
    "ridge": mean_gamma_deviance(mean_cost[test], ridge.predict(indicators[test]), sample_weight=counts[test]),
    "planted": mean_gamma_deviance(mean_cost[test], data.mean_cost[test], sample_weight=counts[test]),
}
print(f"{severity.n_clusters_} levels of cost")
print("deviance of costs held out: " + ", ".join(f"{name} {value:.4f}" for name, value in costs.items()))
premium = frequency.predict(table[rest], offset=0.0) * severity.predict(table[rest])
print(f"pure premium per year: from {premium.min():.0f} to {premium.max():.0f}")

# %%
# The ages of drivers
# -------------------
ages = np.array(table["DrivAge"].cat.categories)
young = data.table["DrivAge"].to_numpy()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True)
panels = (("log rate", frequency, plain, data.rate), ("log cost", severity, ridge, data.mean_cost))
for axis, (what, fused, other, truth) in zip(axes, panels, strict=True):
    own = np.array([fused.coef_[list(fused.feature_names_out_).index(f"DrivAge={age}")] for age in ages])
    planted = np.array([np.log(truth[young == age]).mean() for age in ages])
    for name, effect, style in (
        ("ridge", other.best_estimator_.coef_[: ages.size], "o"), ("fused", own, "-"), ("planted", planted, "k:"),
    ):  # fmt: skip
        axis.plot(ages, effect - effect.mean(), style, label=name, markersize=3, drawstyle="steps-mid")
    axis.set(xlabel="age of the driver", title=f"effect on the {what}")
axes[0].legend(frameon=False)
figure.tight_layout()
plt.show()
