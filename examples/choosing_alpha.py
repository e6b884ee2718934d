"""
Choosing alpha
==============

The path of the coefficients, the cross-validation curve, and the one-standard-error rule.
"""

import matplotlib.pyplot as plt

import skadmm
from skadmm import FusedLassoRegressorCV, Problem
from skadmm.datasets import make_fused_signal
from skadmm.operators import chain, stack
from skadmm.plotting import coefficient_path, cv_curve
from skadmm.regularizers import L1

data = make_fused_signal(n_samples=200, n_features=60, noise=0.4, random_state=2)
minimum = FusedLassoRegressorCV(fit_intercept=False, cv=5).fit(data.X, data.target)
careful = FusedLassoRegressorCV(fit_intercept=False, cv=5, selection="1se").fit(data.X, data.target)
for name, model in (("minimum", minimum), ("one standard error", careful)):
    print(f"{name}: alpha {model.alpha_:.4f}, {model.n_clusters_} clusters")

problem = Problem(data.X, data.target, loss="squared", psi=L1(1.0), A=stack(chain(60), "identity", weights=[0.5, 0.5]))
path = skadmm.path(problem, minimum.alphas_)
print(path.to_frame().iloc[::10].to_string(index=False))

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained")
coefficient_path(path.alphas, path.x, chosen=careful.alpha_, ax=axes[0])
cv_curve(careful, ax=axes[1])
plt.show()
