"""First-order methods by name with their defaults: on how many ordinary problems do they arrive in 100 passes?

    python benchmarks/first_order_defaults.py [--count 50] [--passes 100] [--methods svrg-admm] [--rho 0.1]
    python benchmarks/first_order_defaults.py --precondition diagonal

Problems are random: squared and logistic loss; columns that are independent, correlated, of scales from 0.1 to 10,
binary or shifted; a chain or a random graph with the identity; λ between 0.3 % and 10 % of the largest entry of the
gradient at zero. The excess of an objective is measured against that of x = 0. Passes of step selection do not count.
"""

import argparse
import warnings

import numpy as np

from _common import table
from skadmm import ALGORITHMS, Problem, solve
from skadmm.operators import chain, incidence, stack
from skadmm.regularizers import L1

KINDS = ("independent", "correlated", "uneven scales", "binary", "shifted")
LEVELS = (1.0, 1e-2, 1e-3)


def columns(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """A table of one kind."""
    X = rng.standard_normal((n, d))
    if kind == "correlated":
        X = 0.6 * X + 0.8 * rng.standard_normal((n, 1))
    elif kind == "uneven scales":
        X *= 10.0 ** rng.uniform(-1, 1, d)
    elif kind == "binary":
        X = (X > 1.0).astype(float)
    elif kind == "shifted":
        X += 3.0
    return X


def problem_of(seed: int) -> tuple[Problem, str]:
    """The problem with this number, and its kind."""
    rng = np.random.default_rng(seed)
    n, d, kind = int(rng.integers(200, 600)), int(rng.integers(10, 40)), KINDS[seed % len(KINDS)]
    X = columns(rng, n, d, kind)
    x = np.repeat(rng.standard_normal(-(-d // 5)), 5)[:d] * (np.repeat(rng.random(-(-d // 5)), 5)[:d] < 0.5)
    margin = X @ x - np.median(X @ x)
    target = margin + 0.5 * (margin.std() or 1.0) * rng.standard_normal(n)
    loss = "squared" if seed % 2 else "logistic"
    if loss == "logistic":
        target = np.where(target > 0.0, 1.0, -1.0)
    if rng.random() < 0.5:
        A = chain(d)
    else:
        edges = rng.integers(d, size=(2 * d, 2))
        A = incidence(np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0), n_features=d)
    unit = Problem(X, target, loss=loss, psi=L1(1.0), A=stack(A, "identity"))
    strength = 10.0 ** rng.uniform(-2.5, -1.0) * float(np.abs(unit.gradient(np.zeros(d))).max())
    return unit.replace(psi=L1(strength)), kind


def main() -> None:
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    first_order = [name for name, method in ALGORITHMS.items() if not method.certifies]
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--passes", type=float, default=100.0)
    parser.add_argument("--methods", nargs="+", choices=first_order, default=first_order)
    parser.add_argument("--precondition", choices=["diagonal"])
    parser.add_argument("--rho", type=float, help="the package's default if left out")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    options = {} if given.precondition is None else {"precondition": given.precondition}
    options |= {} if given.rho is None else {"rho": given.rho}
    cases = [problem_of(seed) for seed in range(given.count)]
    optima = [solve(problem, tol=1e-8, record_every=0).objective for problem, _ in cases]
    rows = []
    for method in given.methods:
        left = []
        for (problem, _), optimum in zip(cases, optima, strict=True):
            result = solve(problem, method, passes=given.passes, record_every=0, random_state=0, **options)
            left.append((result.objective - optimum) / (problem.loss_at_zero - optimum))
        share = [f"{np.mean(np.array(left) < level):.0%}" for level in LEVELS]
        worst = KINDS[int(np.argmax([np.median(left[k :: len(KINDS)]) for k in range(len(KINDS))]))]
        rows.append([method, *share, f"{np.median(left):.1e}", worst])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["method", "beats x = 0", "reaches 1e-2", "reaches 1e-3", "median excess", "worst on"]
    print(table(f"{given.count} problems, {given.passes:g} passes {options or ''}", header, rows))


if __name__ == "__main__":
    main()
