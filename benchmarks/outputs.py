"""Several outputs and counts, beside scikit-learn, and adelie and glum where they are installed.

    python benchmarks/outputs.py              # digits, simulated text, and 50,000 × 200 × 10 simulated
    python benchmarks/outputs.py --quick      # digits alone
    python benchmarks/outputs.py --sets text  # one of digits, text and simulated, or several
    python benchmarks/outputs.py --ridge      # the smooth case alone: a squared norm, and scikit-learn's L-BFGS
    python benchmarks/outputs.py --counts     # Poisson regression with a ridge penalty, 500,000 × 60

Every solver fits the same objective, (1/n) Σ ℓ + alpha · penalty, without an intercept. For each, the table shows
seconds of the processor (the minimum of the runs, after one that compiles) and the objective relative to the best one
found. SAGA has no duality gap, so its tolerance is lowered until its objective is within 1e-6 of the best.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skadmm import FusedLassoRegressor, Problem, solve
from skadmm.operators import output_groups
from skadmm.problem.alpha_max import alpha_max
from skadmm.regularizers import L1, GroupL2, SquaredL2

PATIENCE = 60.0
"""No lower tolerance is tried after a run of more seconds."""
CLOSE = 1e-6
"""A solver has solved a problem where its objective is this close to the best, relatively."""


def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 images of 64 pixels, ten classes."""
    data = load_digits()
    X = data.data - data.data.mean(axis=0)
    return np.ascontiguousarray(X / np.maximum(X.std(axis=0), 1e-3)), data.target


def simulated(n: int = 50_000, d: int = 200, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Ten classes, of which twenty features tell."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    W = np.zeros((d, k))
    W[:20] = rng.standard_normal((20, k))
    return X, np.argmax(X @ W + rng.gumbel(size=(n, k)), axis=1)


def text(n: int = 10_000, d: int = 20_000, k: int = 20, length: int = 80) -> tuple[sp.csr_array, np.ndarray]:
    """Twenty classes of documents: bags of words with the frequencies of Zipf's law, thirty words of each class four
    times as frequent in it; logarithms of counts, weighted by how rare the word is, in rows of length one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    base = 1.0 / np.arange(10, d + 10)
    rows, columns = [], []
    for c in range(k):
        weight = base.copy()
        weight[rng.choice(d // 4, 30, replace=False)] *= 4.0
        members = np.flatnonzero(y == c)
        rows.append(np.repeat(members, length))
        columns.append(rng.choice(d, members.size * length, p=weight / weight.sum()))
    where = np.concatenate(rows), np.concatenate(columns)
    X = sp.csr_array((np.ones(where[0].size), where), shape=(n, d))
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as scikit-learn needs them
    X.data = np.log1p(X.data)
    seen = np.bincount(X.indices, minlength=d)
    X.data *= np.log((1 + n) / (1 + seen[X.indices]))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X, y


def timed(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The shortest of some runs, and what the last one returned."""
    best, answer = np.inf, None
    for _ in range(times):
        began = time.process_time()
        answer = run()
        best = min(best, time.process_time() - began)
    return best, answer


def ours(problem: Problem, times: int) -> tuple[float, np.ndarray]:
    """skadmm to a relative gap of 1e-6."""
    solve(problem, tol=1e-2)  # compiles
    seconds, result = timed(lambda: solve(problem, tol=CLOSE), times)
    return seconds, result.coef


def saga(X: np.ndarray, y: np.ndarray, alpha: float, close_enough: Callable[[np.ndarray], bool]) -> tuple[float, Any]:
    """scikit-learn's SAGA at the loosest tolerance that is close enough."""
    seconds, coef = np.inf, None
    for tol in (1e-3, 1e-4, 1e-5):
        model = LogisticRegression(
            C=1 / (alpha * len(y)), l1_ratio=1.0, solver="saga", tol=tol, max_iter=500, fit_intercept=False,
            random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            coef = model.fit(X, y).coef_
            seconds = time.process_time() - began
        if close_enough(coef) or seconds > PATIENCE:
            break
    return seconds, coef


def adelie_groups(X: np.ndarray, y: np.ndarray, alpha: float, times: int) -> tuple[float, Any] | None:
    """adelie's multinomial group lasso at one strength; None where it is not installed."""
    try:
        import adelie
    except ImportError:
        return None
    one_hot = np.ascontiguousarray(np.eye(y.max() + 1)[y])
    table = X if sp.issparse(X) else np.asfortranarray(X)
    if sp.issparse(X):
        table = adelie.matrix.sparse(sp.csc_matrix(X), method="naive")
    d, k = X.shape[1], one_hot.shape[1]

    def run() -> Any:
        # Its loss is that of a sample divided by k.
        return adelie.grpnet(
            X=table, glm=adelie.glm.multinomial(y=one_hot), lmda_path=[alpha / k], penalty=np.ones(d), intercept=False,
            tol=1e-9, early_exit=False, progress_bar=False,
        )  # fmt: skip

    run()
    seconds, state = timed(run, times)
    return seconds, np.asarray(state.betas.toarray()).reshape(d, k).T


def compared(
    name: str, X: np.ndarray, y: np.ndarray, share: float, times: int, *, patient: bool = True
) -> list[dict[str, Any]]:
    """All solvers on one data set, for both penalties; adelie only with `patient`."""
    rows = []
    d, k = X.shape[1], int(y.max()) + 1
    for penalty, psi in (("l1", L1(1.0)), ("rows", GroupL2(1.0, groups=output_groups(d, k)))):
        alpha = share * alpha_max(Problem(X, y, "multinomial", psi=psi))
        problem = Problem(X, y, "multinomial", psi=psi._replace(strength=alpha))
        found: dict[str, tuple[float, np.ndarray]] = {"skadmm": ours(problem, times)}
        best = problem.objective(found["skadmm"][1].ravel())

        def close_enough(coef: np.ndarray, problem: Problem = problem, best: float = best) -> bool:
            return problem.objective(coef.ravel()) <= best * (1 + CLOSE)

        if penalty == "l1":
            found["scikit-learn (saga)"] = saga(X, y, alpha, close_enough)
        else:
            other = adelie_groups(X, y, alpha, times) if patient else None
            if other is not None:
                found["adelie"] = other
        objectives = {
            solver: problem.objective(np.ascontiguousarray(coef).ravel()) for solver, (_, coef) in found.items()
        }
        lowest = min(objectives.values())
        for solver, (seconds, coef) in found.items():
            rows.append(
                {
                    "data": name, "penalty": penalty, "alpha/alpha_max": share, "solver": solver,
                    "seconds": seconds, "above the best": objectives[solver] / lowest - 1,
                    "nonzero": int(np.count_nonzero(coef)),
                }
            )  # fmt: skip
    return rows


def smooth(name: str, X: np.ndarray, y: np.ndarray, ridge: float, times: int) -> list[dict[str, Any]]:
    """The multinomial loss with ridge/2 ‖W‖², beside L-BFGS at the loosest tolerance that is close enough."""
    problem = Problem(X, y, "multinomial", omega=SquaredL2(ridge))
    seconds, coef = ours(problem, times)
    found = {"skadmm": (seconds, coef)}
    for tol in (1e-4, 1e-5, 1e-6, 1e-7):
        model = LogisticRegression(C=1 / (ridge * len(y)), tol=tol, max_iter=10_000, fit_intercept=False)
        seconds, fitted = timed(lambda model=model: model.fit(X, y), times)
        found["scikit-learn (lbfgs)"] = seconds, fitted.coef_
        if problem.objective(fitted.coef_.ravel()) <= problem.objective(coef.ravel()) * (1 + CLOSE):
            break
    objectives = {solver: problem.objective(W.ravel()) for solver, (_, W) in found.items()}
    lowest = min(objectives.values())
    return [
        {
            "data": name, "penalty": "squared l2", "strength": ridge, "solver": solver, "seconds": seconds,
            "above the best": objectives[solver] / lowest - 1,
        }
        for solver, (seconds, _) in found.items()
    ]  # fmt: skip


def claims(n: int, d: int = 60, correlated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Counts and features, independent or with a common part and columns of several scales."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if correlated:
        X = (0.6 * X + 0.8 * rng.standard_normal((n, 1))) * np.logspace(-1, 1, d)
    w = 0.1 * rng.standard_normal(d) / X.std(axis=0)
    return X, rng.poisson(np.exp(X @ w - 1.0)).astype(float)


def regressors(alpha: float) -> dict[str, Callable[[], Any]]:
    """Poisson regressions with the penalty alpha/2 ‖w‖² and an intercept."""
    found: dict[str, Callable[[], Any]] = {
        "skadmm": lambda: FusedLassoRegressor(0.0, ridge=alpha, loss="poisson", tol=1e-6),
        "scikit-learn (lbfgs)": lambda: PoissonRegressor(alpha=alpha, tol=1e-5, max_iter=2000),
        "scikit-learn (newton)": lambda: PoissonRegressor(alpha=alpha, tol=1e-5, solver="newton-cholesky"),
    }
    try:
        from glum import GeneralizedLinearRegressor
    except ImportError:
        return found
    return found | {
        "glum": lambda: GeneralizedLinearRegressor(family="poisson", alpha=alpha, l1_ratio=0.0, gradient_tol=1e-5)
    }


def counted(n: int, times: int, alpha: float = 1e-3) -> list[dict[str, Any]]:
    """Poisson regression by every package, in turns; after one run that compiles."""
    rows = []
    for name, correlated in (("independent", False), ("correlated, scales 0.1 to 10", True)):
        X, y = claims(n, correlated=correlated)
        models = regressors(alpha)
        models["skadmm"]().fit(X[:2000], y[:2000])
        wall, work, value = dict.fromkeys(models, np.inf), dict.fromkeys(models, np.inf), dict.fromkeys(models, np.inf)
        for _ in range(times):
            for package, make in models.items():
                began, cpu = time.perf_counter(), time.process_time()
                model = make().fit(X, y)
                wall[package] = min(wall[package], time.perf_counter() - began)
                work[package] = min(work[package], time.process_time() - cpu)
                z = X @ model.coef_ + model.intercept_
                value[package] = np.mean(np.exp(z) - y * z) + alpha / 2 * model.coef_ @ model.coef_
        best = min(value.values())
        for package in models:
            rows.append(
                {
                    "features": name, "package": package, "seconds": wall[package], "processor seconds": work[package],
                    "above the best": (value[package] - best) / abs(best),
                }
            )  # fmt: skip
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Digits alone.")
    parser.add_argument("--sets", nargs="+", choices=["digits", "text", "simulated"], help="These data sets.")
    parser.add_argument("--times", type=int, default=3, help="Runs of each solver.")
    parser.add_argument("--counts", action="store_true", help="Poisson regression instead.")
    parser.add_argument("--ridge", action="store_true", help="The multinomial loss with a squared norm instead.")
    parser.add_argument("--patient", action="store_true", help="adelie also on text with a small penalty.")
    parser.add_argument("--samples", type=int, default=500_000, help="Rows of the Poisson regression.")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.counts:
        warnings.simplefilter("ignore")
        rows = counted(given.samples, given.times)
        print(pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.3g}"))
        return
    chosen = given.sets or (["digits"] if given.quick else ["digits", "text", "simulated"])
    if given.ridge:
        sets = {"digits": digits, "text": text, "simulated": simulated}
        rows = [
            row for data in chosen for ridge in (1e-2, 1e-4) for row in smooth(data, *sets[data](), ridge, given.times)
        ]
        print(pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.3g}"))
        return
    if "digits" in chosen:
        for share in (0.1, 0.01):
            rows += compared("digits", *digits(), share, given.times)
    if "text" in chosen:
        rows += compared("text, 10,000 × 20,000 × 20", *text(), 0.25, given.times)
        # With 3,000 features that are not zero, adelie had not ended after 15 minutes.
        rows += compared("text, 10,000 × 20,000 × 20", *text(), 0.05, given.times, patient=given.patient)
    if "simulated" in chosen:
        rows += compared("50,000 × 200 × 10", *simulated(), 0.05, given.times)
    print(pd.DataFrame(rows).to_string(index=False, float_format=lambda v: f"{v:.3g}"))


if __name__ == "__main__":
    main()
