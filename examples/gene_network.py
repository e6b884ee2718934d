"""
Genes on a network
==================

Which modules of a known network distinguish two groups of patients? Neighbours in a network act together, so their
coefficients should be equal. The fused lasso finds the modules, where the plain lasso selects a few genes from each.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

from skadmm import FusedLassoClassifierCV
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

ax = coefficients_on_graph(model)
ax.set_title("What the disease does to the network")
plt.show()
