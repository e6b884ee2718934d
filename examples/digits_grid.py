"""
Digits on a grid
================

8 × 8 images, with a penalty on differences between neighbouring pixels: the coefficients form images themselves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skadmm import FusedLassoClassifier
from skadmm.plotting import coefficient_image

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(digits.data / 16, digits.target, random_state=0)
model = FusedLassoClassifier(alpha=1e-3, l1_ratio=0.2, graph=(8, 8), tol=1e-5).fit(X_train, y_train)
plain = LogisticRegression(C=1e2, max_iter=5000).fit(X_train, y_train)
print(f"ten classes, one grid: accuracy {model.score(X_test, y_test):.3f} ({plain.score(X_test, y_test):.3f} without)")
print(f"values per picture: {np.asarray(model.n_clusters_).tolist()} of 64 pixels")

figure, axes = plt.subplots(2, 5, figsize=(8.4, 3.9), layout="constrained")
limit = float(np.quantile(np.abs(model.coef_), 0.99))
for digit, ax in enumerate(axes.flat):
    coefficient_image(model, problem=digit, limit=limit, ax=ax)
    ax.set_title(f"{digit}: {model.n_clusters_[digit]} values", fontsize="small")
figure.suptitle("What makes a digit: coefficients fused over neighbouring pixels", fontsize="medium")
plt.show()
