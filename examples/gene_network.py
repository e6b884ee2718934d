"""
Genes on a network
==================

Which modules of a known network distinguish two groups of patients? Neighbours in a network act together, so their
coefficients should be equal. The fused lasso gives one coefficient to a module; the plain lasso, which does not use the
network, gives every gene its own.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

from skadmm import FusedLassoClassifier, FusedLassoClassifierCV
from skadmm.plotting import coefficients_on_graph

rng = np.random.default_rng(0)
modules = {"immune": 8, "repair": 7, "growth": 9, "other": 12}
graph, names, truth = nx.Graph(), [], []
for module, size in modules.items():
    genes = [f"{module[:3].upper()}{k + 1}" for k in range(size)]
    graph.add_edges_from(
        (genes[u], genes[v]) for u, v in nx.connected_watts_strogatz_graph(size, 4, 0.3, seed=size).edges
    )
    names += genes
    truth += [{"immune": 0.5, "growth": -0.4}.get(module, 0.0)] * size
graph.add_edges_from([("IMM1", "REP1"), ("REP3", "GRO2"), ("GRO5", "OTH1")])

shared = rng.standard_normal((400, len(modules)))
module_of = np.repeat(np.arange(len(modules)), list(modules.values()))
expression = pd.DataFrame(0.6 * shared[:, module_of] + 0.8 * rng.standard_normal((400, len(names))), columns=names)
odds = expression.to_numpy() @ np.array(truth)
ill = np.where(rng.random(400) < 1 / (1 + np.exp(-odds)), "ill", "well")

model = FusedLassoClassifierCV(graph=graph, l1_ratio=0.2, alphas=25, cv=5, selection="1se").fit(
    expression, ill == "ill"
)
print(f"alpha {model.alpha_:.4f}: {model.n_clusters_} clusters of genes, certified gap {model.result_.gap:.1e}")
for label in range(model.n_clusters_):
    members = model.clusters_ == label
    print(f"  {model.coef_[0][members].mean():+.3f}  {', '.join(np.array(names)[members])}")

# %%
# Two modules were planted: immune with an effect of 0.5 per gene, growth with −0.4. Both are found as a whole, with
# values that the penalty has shrunk. The other two modules have no effect, and their coefficients are close to zero but
# not equal to it: cross-validation chooses for prediction, and a value of −0.02 costs little there. Three times this
# alpha sets both to zero, and ``relax=True`` undoes the shrinkage.

strong = FusedLassoClassifier(alpha=3 * model.alpha_, graph=graph, l1_ratio=0.2, relax=True)
strong.fit(expression, ill == "ill")
print(f"three times the alpha, relaxed: {strong.n_clusters_} clusters")
for label in range(strong.n_clusters_):
    members = strong.clusters_ == label
    print(f"  {strong.coef_[0][members].mean():+.3f}  {', '.join(np.array(names)[members])}")

# %%
# With ``l1_ratio=1`` only the plain ℓ1 norm is left: the lasso, at the alpha that cross-validation chooses for it. It
# finds the genes of both modules and a few others, each with its own value, which is farther from the planted one.

lasso = FusedLassoClassifierCV(graph=graph, l1_ratio=1, alphas=25, cv=5, selection="1se")
lasso.fit(expression, ill == "ill")
for name, fitted in {"fused lasso": model, "three times the alpha, relaxed": strong, "lasso": lasso}.items():
    used = fitted.coef_[0][fitted.coef_[0] != 0]
    error = np.abs(fitted.coef_[0] - truth).mean()
    print(f"{name}: {used.size} genes, {np.unique(used).size} different values, mean error {error:.3f}")

# %%
# The fused lasso, on the network:

ax = coefficients_on_graph(model)
ax.set_title("What the disease does to the network")
plt.show()
