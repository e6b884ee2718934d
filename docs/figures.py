"""The figures of the pages. ``python docs/figures.py FOLDER`` draws them; so does ``make docs``.

``python docs/figures.py readme`` draws the README's picture anew, into docs/images.
"""

import contextlib
import re
import sys
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np

from skadmm import Problem, compare, solve
from skadmm.datasets import make_graph_classification
from skadmm.operators import chain, incidence, stack
from skadmm.paper import theory
from skadmm.plotting import comparison, style_of
from skadmm.regularizers import L1


def small_problem(n_samples=400, n_features=40):
    """Logistic loss, graph-guided: the model of the paper, small."""
    data = make_graph_classification(n_samples, n_features, n_groups=8, random_state=0)
    return Problem(data.X, data.target, psi=L1(5e-3), A=stack(incidence(data.adjacency), "identity"))


def updates(axes):
    """The paper's methods and their baselines on one small problem."""
    problem = small_problem()
    optimum = solve(problem, tol=1e-10).objective
    frame = compare(
        problem, ["sa-admm", "sa-iu-admm", "stoc-admm", "opg-admm", "rda-admm", "batch-admm", "batch-iu-admm"],
        repeats=2, passes=20,
    )  # fmt: skip
    comparison(frame, x="run_passes", best=optimum, ax=axes)
    axes.set_ylim(bottom=1e-8)


def bounds(axes):
    """Theorem 2 and its corollary beside what was measured, mean of five runs."""
    X = np.random.default_rng(0).standard_normal((60, 8))
    problem = Problem(X, X @ np.repeat([1.0, 0.0], 4) > 0, psi=L1(0.02), A=stack(chain(8), "identity"))
    optimum = solve(problem, tol=1e-10)
    pair = optimum.x, problem.y_of_x(optimum.x)
    passes = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
    left = np.zeros(passes.size)
    for seed in range(5):
        for k, count in enumerate(passes):
            run = solve(problem, "sa-admm", rho=0.1, step="theory", passes=count + 1, random_state=seed, record_every=0)
            left[k] += theory.left_side(problem, run.x_average, optimum=optimum.objective) / 5
    steps = passes * problem.n_samples
    axes.loglog(steps, theory.corollary(problem, pair, T=steps, rho=0.1, method="sa-admm"), "k:", label="the bound")
    axes.loglog(steps, left, color="#0072b2", marker="o", label="measured")
    axes.set(xlabel="steps T", ylabel="Φ(x̄, y(x̄)) − Φ*", title="sa-admm: the corollary")
    axes.legend(frameon=False)


def newton(axes):
    """SA-ADMM, and the same with second-order surrogates."""
    problem = small_problem(2000, 40)
    best = solve(problem, tol=1e-11).objective
    for method, settings in (("sa-admm", {"passes": 30}), ("san-admm", {"passes": 30, "tol": 1e-10})):
        result = solve(problem, method, record_every=0.25, **settings)
        selection = result.tuning.samples_touched / problem.n_samples if result.tuning else 0.0
        error = np.maximum(result.trace["objective"] / best - 1, 1e-12)
        axes.semilogy(result.trace["passes"] - selection, error, color=style_of(method).color, label=method)
    axes.set(xlabel="effective passes, step selection left out", ylabel="relative suboptimality")
    axes.legend(frameon=False)


def certificate(axes):
    """The gap, and what it bounds."""
    problem = small_problem(2000, 40)
    best = solve(problem, tol=1e-11).objective
    trace = solve(problem, "san-admm", tol=1e-9, record_every=0.1).trace
    axes.semilogy(trace["passes"], trace["gap"], "k:", marker=".", label="relative gap: computed, no optimum needed")
    axes.semilogy(
        trace["passes"], np.maximum(trace["objective"] / best - 1, 1e-12), color="#0072b2", marker=".",
        label="relative suboptimality",
    )  # fmt: skip
    axes.set(xlabel="effective passes", ylabel="")
    axes.legend(frameon=False)


def drawn(function, path):
    """One of the functions above, into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    function(figure.subplots())
    figure.savefig(path, dpi=130)


def readme(path):
    """What was planted, what the lasso finds, and what the README's code finds."""
    from matplotlib.figure import Figure
    from sklearn.linear_model import LassoCV

    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    names: dict = {}
    with contextlib.redirect_stdout(None):
        exec(re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1], names)
    planted, fused = names["coef"], names["model"].coef_
    lasso = LassoCV(cv=5).fit(names["X"], names["y"]).coef_
    figure = Figure(figsize=(9.0, 2.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    found = (("planted", planted, "#444444"), ("lasso", lasso, "#D55E00"), ("fused lasso", fused, "#0072B2"))
    for axes, (title, values, color) in zip(panels, found, strict=True):
        axes.axhline(0.0, color="#bbbbbb", linewidth=0.8)
        if title != "planted":
            axes.step(range(planted.size), planted, color="#bbbbbb", where="mid", linewidth=1.2)
        axes.plot(values, ".", color=color, markersize=5)
        count = np.unique(values[values != 0.0]).size
        axes.set_title(f"{title}: {count} values that are not zero", fontsize="medium")
        axes.set_xlabel("feature")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("coefficient")
    figure.savefig(path, dpi=110)


FIGURES = {function.__name__: partial(drawn, function) for function in (updates, bounds, newton, certificate)}


def save(name, path):
    """Draw one figure into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FIGURES[name](path)


if __name__ == "__main__":
    mpl.use("Agg")
    if sys.argv[1:] == ["readme"]:
        readme(Path(__file__).parent / "images" / "readme.png")
    else:
        for title in FIGURES:
            save(title, Path(sys.argv[1] if len(sys.argv) > 1 else ".") / f"{title}.png")
