"""
Regions of an image
===================

Which parts of an image predict an outcome? Two regions were planted in images of 16 × 16 pixels, and 150 images are
given for 256 pixels. The fused lasso on the grid of pixels finds the regions, with faint pieces around them, since
cross-validation chooses for prediction. The lasso and ridge, which know nothing of neighbours, predict worse and show
no regions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV

from skadmm import FusedLassoRegressorCV

rng = np.random.default_rng(0)
shape = (16, 16)
planted = np.zeros(shape)
planted[2:7, 3:9] = 1.0
planted[9:14, 8:14] = -0.7
images = rng.standard_normal((1150, 256))
outcome = images @ planted.ravel() + 2.0 * rng.standard_normal(1150)
train = np.arange(1150) < 150

models = {
    "fused lasso on the grid": FusedLassoRegressorCV(graph=shape, l1_ratio=0.2, alphas=20, cv=5),
    "lasso": LassoCV(cv=5, max_iter=5000),
    "ridge": RidgeCV(np.logspace(-1, 4, 20)),
}
for name, model in models.items():
    model.fit(images[train], outcome[train])
    print(f"{name}: R² on 1,000 new images {model.score(images[~train], outcome[~train]):.2f}")
best = models["fused lasso on the grid"]
print(f"alpha {best.alpha_:.3f}: {best.n_clusters_} pieces that are not zero, certified gap {best.result_.gap:.0e}")

figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
coefficients = {"planted": planted.ravel(), **{name: model.coef_ for name, model in models.items()}}
for ax, (name, coef) in zip(axes, coefficients.items(), strict=True):
    picture = ax.imshow(np.reshape(coef, shape), cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set(title=name, xticks=[], yticks=[])
figure.colorbar(picture, ax=axes, shrink=0.8, label="coefficient")
plt.show()
