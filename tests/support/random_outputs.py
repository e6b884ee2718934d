"""Random problems with several outputs, their optima by CVXPY, and whether certificates and results hold.

As a program it judges many seeds:

    python tests/support/random_outputs.py --first 0 --count 300
"""

import argparse
import collections
import os
import warnings
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np
import scipy.sparse
import scipy.special

from skadmm import Problem, solve
from skadmm.losses import Huber
from skadmm.operators import chain, output_groups
from skadmm.regularizers import L1, GroupL2, GroupLInf, Nuclear

LOSSES = ("multinomial", "squared", "multinomial", "huber", "poisson", "absolute")
PENALTIES = ("entries", "rows", "rows-linf", "chain", "nuclear", "nuclear of the chain", "rows of the chain")
CLOSE = 1e-5
"""An objective this close to the oracle's, relatively, is right."""
RUNS = (("auto", 3), ("auto", 8), ("newton-admm", 4))
"""Methods and passes of the runs that are cut short."""


class Case(NamedTuple):
    """A problem as plain arrays."""

    X: np.ndarray
    Y: np.ndarray
    """Numbers, or classes."""
    loss: str
    penalty: str
    strength: float
    n_features: int
    """Without the column of ones, which is not penalised."""
    n_outputs: int
    weight: np.ndarray | None
    sparse: bool

    @property
    def A(self) -> np.ndarray:
        """The penalty's matrix on the features of one output."""
        d, wide = self.n_features, self.X.shape[1]
        differences = chain(d).toarray() if d > 1 else np.eye(1)
        A = {"chain": np.vstack([differences, np.eye(d)])}.get(self.penalty)
        if A is None:
            A = differences if self.penalty.endswith("of the chain") else np.eye(d)
        return np.hstack([A, np.zeros((A.shape[0], wide - d))])

    def problem(self) -> Problem:
        m, k, s = self.A.shape[0], self.n_outputs, self.strength
        psi = {
            "entries": lambda: L1(s),
            "chain": lambda: L1(s),
            "rows": lambda: GroupL2(s, groups=output_groups(m, k)),
            "rows of the chain": lambda: GroupL2(s, groups=output_groups(m, k)),
            "rows-linf": lambda: GroupLInf(s, groups=output_groups(m, k)),
            "nuclear": lambda: Nuclear(s, k),
            "nuclear of the chain": lambda: Nuclear(s, k),
        }[self.penalty]()
        X = scipy.sparse.csr_array(self.X) if self.sparse else self.X
        loss = Huber(0.7) if self.loss == "huber" else self.loss
        return Problem(X, self.Y, loss, psi=psi, A=scipy.sparse.csr_array(self.A), sample_weight=self.weight)

    def oracle(self) -> float | None:
        """The optimum by CVXPY; None where it is not sure of it."""
        n = self.X.shape[0]
        V = cp.Variable((self.X.shape[1], self.n_outputs))
        Z, Y = self.X @ V, self.Y
        weight = np.ones(n) if self.weight is None else self.weight * n / self.weight.sum()
        if self.loss == "multinomial":
            hot = (Y[:, None] == np.unique(Y)).astype(float)
            terms = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(hot, Z), axis=1)
        elif self.loss == "poisson":
            terms = cp.sum(cp.exp(Z) - cp.multiply(Y, Z) + scipy.special.xlogy(Y, Y) - Y, axis=1)
        elif self.loss == "absolute":
            terms = cp.sum(cp.abs(Z - Y), axis=1)
        elif self.loss == "huber":
            terms = 0.5 * cp.sum(cp.huber(Z - Y, 0.7), axis=1)
        else:
            terms = 0.5 * cp.sum(cp.square(Z - Y), axis=1)
        used = weight > 0
        AV = self.A @ V
        size = {
            "rows": lambda: cp.sum(cp.norm(AV, axis=1)),
            "rows of the chain": lambda: cp.sum(cp.norm(AV, axis=1)),
            "rows-linf": lambda: cp.sum(cp.norm(AV, "inf", axis=1)),
            "nuclear": lambda: cp.normNuc(AV),
            "nuclear of the chain": lambda: cp.normNuc(AV),
        }.get(self.penalty, lambda: cp.sum(cp.abs(AV)))()
        model = cp.Problem(cp.Minimize(cp.sum(cp.multiply(weight, terms)[used]) / n + self.strength * size))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return None
        return float(model.value) if model.status == cp.OPTIMAL else None


def random_case(seed: int) -> Case:
    """The problem of a seed: a random size, loss and penalty; some with intercepts and weights."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(5, 40)), int(rng.integers(1, 8)), int(rng.integers(2, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=n)])[:n] if n >= k else np.arange(n)
    k = np.unique(labels).size
    loss, penalty = LOSSES[seed % len(LOSSES)], PENALTIES[seed % len(PENALTIES)]
    margins = X @ (rng.standard_normal((d, 1)) * rng.standard_normal((1, k))) / np.abs(X).sum(axis=1).max()
    Y: Any = margins + rng.standard_normal((n, k)) * float(rng.choice([0.1, 1.0]))
    Y = {"multinomial": labels, "poisson": rng.poisson(np.exp(margins)) + (np.arange(n) == 0)[:, None]}.get(loss, Y)
    if rng.random() < 0.5:
        X = np.column_stack([X, np.ones(n)])
    weight = rng.integers(0, 3, n) + (np.arange(n) < k) if rng.random() < 0.3 else None
    return Case(X, Y, loss, penalty, 10.0 ** rng.uniform(-3, -0.5), d, k, weight, bool(seed % 2))


class Verdict(NamedTuple):
    """What became of the runs of a seed."""

    kind: str
    """ "solved", "not solved", "false certificate", "wrong objective", "no minimiser" or "crash"."""
    note: str = ""


def judge(seed: int) -> Verdict:
    """Runs that are cut short and one that is not, against the best objective known."""
    case = random_case(seed)
    problem = case.problem()
    try:
        result = solve(problem, tol=1e-8, passes=2000)
        early = [(run, solve(problem, run[0], tol=1e-9, passes=run[1])) for run in RUNS if problem.loss.smooth]
    except Exception as error:
        return Verdict("crash", f"{type(error).__name__}: {error}")
    if result.status.name == "NO_MINIMISER":
        return Verdict("no minimiser")
    found = case.oracle()
    best = min(result.objective, np.inf if found is None else found)
    size = max(abs(best), 1e-3 * problem.loss_at_zero)
    for run, one in [(("auto", 2000), result), *early]:
        if np.isnan(one.gap):
            continue
        scale = max(abs(one.objective), 1e-5 * problem.loss_at_zero)
        # The oracle's own value may be below its optimum by its tolerance; all have rounding errors.
        slack = 1e-7 * size if best < result.objective else 1e-12 * scale
        if one.objective - one.gap * scale > best + slack:
            return Verdict("false certificate", f"{run}: {one.objective - one.gap * scale - best:.1e} above the best")
    if result.status.name != "SOLVED":
        return Verdict("not solved", str(result.message))
    if found is not None and not result.objective - found <= CLOSE * size:  # below it, the oracle was off
        return Verdict("wrong objective", f"{result.objective:.10g} against {found:.10g}")
    return Verdict("solved")


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve random problems with several outputs; compare with CVXPY.")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    kinds = collections.Counter()
    for seed in range(given.first, given.first + given.count):
        verdict = judge(seed)
        kinds[verdict.kind] += 1
        if verdict.kind != "solved":
            case = random_case(seed)
            print(seed, verdict.kind.upper(), case.loss, case.penalty, case.X.shape, case.n_outputs, verdict.note,
                  flush=True)  # fmt: skip
    print(dict(kinds))


if __name__ == "__main__":
    main()
