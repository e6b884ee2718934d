"""
Genes and several traits at once
================================

Five traits of 120 plants depend on 50 genes (simulated): only on eight of them, the same ones for all traits, and the
effects of the traits follow two common patterns. Three models are fitted to all traits: each trait by itself
(``"entries"``), genes that all traits share (``"rows"``), and few common patterns (``"nuclear"``). Each chooses its
strength by cross-validation, and is judged by the error of the coefficients and on 1,000 other plants. Sharing genes is
what helps here: it uses the fewest genes, and has the smallest errors. The nuclear norm uses every gene.
"""

import matplotlib.pyplot as plt
import numpy as np

from skadmm import GeneralizedLassoRegressorCV

rng = np.random.default_rng(1)
n, n_genes, n_traits = 120, 50, 5
truth = np.zeros((n_traits, n_genes))
active = np.sort(rng.choice(n_genes, 8, replace=False))
truth[:, active] = rng.standard_normal((n_traits, 2)) @ rng.standard_normal((2, active.size))


def plants(count):
    """Expression of all genes, and the traits."""
    expression = rng.standard_normal((count, n_genes))
    return expression, expression @ truth.T + 2.0 * rng.standard_normal((count, n_traits))


expression, traits = plants(n)
others, traits_of_others = plants(1000)
models = {}
for penalty in ("entries", "rows", "nuclear"):
    model = GeneralizedLassoRegressorCV(output_penalty=penalty, alphas=10, eps=0.03, cv=3, tol=1e-4)
    models[penalty] = model.fit(expression, traits)
    genes = np.count_nonzero(np.abs(model.coef_).max(axis=0) > 1e-6)
    rank = np.linalg.matrix_rank(model.coef_, tol=1e-2)
    error = np.linalg.norm(model.coef_ - truth) / np.linalg.norm(truth)
    print(
        f"{penalty:8s} R² on other plants {model.score(others, traits_of_others):.3f}, error of the coefficients "
        f"{error:.2f}, {genes} genes in use, rank {rank}"
    )

figure, axes = plt.subplots(4, 1, figsize=(8, 5), sharex=True, layout="constrained")
limit = np.abs(truth).max()
shown = {"planted": truth} | {f'output_penalty="{name}"': model.coef_ for name, model in models.items()}
for ax, (name, coef) in zip(axes, shown.items(), strict=True):
    image = ax.imshow(coef, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set_title(name, fontsize=9, loc="left")
    ax.set_ylabel("trait")
    ax.set_yticks(range(0, n_traits, 2))
axes[-1].set_xlabel("gene")
figure.colorbar(image, ax=axes, label="coefficient")
plt.show()
