"""
Ten digits on a grid of pixels
==============================

One multinomial model reads ten digits from images of 8 × 8 pixels. Neighbouring pixels are joined, and a pixel or a
difference between two neighbours is used by all digits or by none (``output_penalty="rows"``). The same model without
the grid selects single pixels. Both are trained on 300 images, on which cross-validation chooses their strength, and
tested on the other 1,497, where the model with the grid makes fewer errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skadmm import FusedLassoClassifierCV, GeneralizedLassoClassifierCV

images, digit = load_digits(return_X_y=True)
images = images / 16
train = np.arange(digit.size) < 300

common = {"multi_class": "multinomial", "output_penalty": "rows", "tol": 1e-4, "alphas": 8, "eps": 2e-4, "cv": 3}
pixels = GeneralizedLassoClassifierCV(**common).fit(images[train], digit[train])
regions = FusedLassoClassifierCV(graph=(8, 8), l1_ratio=0.2, **common).fit(images[train], digit[train])
for name, model in (("single pixels", pixels), ("with the grid", regions)):
    used = np.count_nonzero(model.coef_.any(axis=0))
    print(
        f"{name}: accuracy on the other images {model.score(images[~train], digit[~train]):.3f}, "
        f"alpha {model.alpha_:.2g}, {used} of 64 pixels used, certified gap {model.result_.gap:.1e}"
    )

limit = np.abs(regions.coef_).max()
figure, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for number, (ax, weights) in enumerate(zip(axes.flat, regions.coef_, strict=True)):
    shown = ax.imshow(weights.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set_title(f"digit {number}", fontsize=9)
    ax.set_axis_off()
figure.colorbar(shown, ax=axes, label="coefficient")
figure.suptitle("What speaks for each digit, and what against it")
plt.show()
