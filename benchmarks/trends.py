"""Trend filtering and total variation: which problems are solved, against whom, and in how much time.

    python benchmarks/trends.py                   every part
    python benchmarks/trends.py --only matrix     parts whose name holds a word
    python benchmarks/trends.py --small           the smallest sizes alone

Parts: matrix (orders × positions × sizes × strengths, against CVXPY with Clarabel), scaling (up to a million points),
cv (cross-validation against a smoothing spline), dof (degrees of freedom), image (total variation of an image and of a
volume, against scikit-image), graph (trends of order one and two over graphs), changes (change points, against
ruptures). CVXPY, prox_tv, ruptures and scikit-image are compared with where they are installed. Times are processor
seconds of one thread.
"""

import os

os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import make_interp_spline, make_smoothing_spline
from scipy.spatial import Delaunay

from _common import table
from skadmm import Problem, Status, TrendFilter, TrendFilterCV, alpha_max, denoise_line, exact_trend_gap, solve
from skadmm.estimators._trends import graph_trend
from skadmm.operators import grid, incidence, trend
from skadmm.operators.line import line_at
from skadmm.problem.constraint import Constraint
from skadmm.regularizers import L1

STRENGTHS = 2.0 * np.geomspace(5e-7, 1.0, 12)
"""In units of alpha_max."""


def positions_of(kind: str, n: int, seed: int = 0) -> np.ndarray:
    """Increasing positions in about [0, 1]."""
    rng = np.random.default_rng(seed)
    if kind == "even":
        return np.linspace(0.0, 1.0, n)
    if kind == "uniform":
        return np.sort(rng.uniform(0.0, 1.0, n))
    return np.sort(rng.choice([0.05, 0.3, 0.35, 0.6, 0.95], n) + 0.01 * rng.standard_normal(n))


def signal_at(t: np.ndarray, seed: int = 0) -> np.ndarray:
    """Waves, a kink and a jump, with noise."""
    rng = np.random.default_rng(seed + 1)
    clean = np.sin(8.0 * t) + 2.0 * np.abs(t - 0.4) + 0.7 * (t > 0.7)
    return clean + 0.2 * rng.standard_normal(t.size)


def reference(t: np.ndarray, b: np.ndarray, order: int, alpha: float) -> float:
    """The optimum by CVXPY with Clarabel; NaN where it is not solved.

    Derivatives are variables of their own, so that differences are not multiplied out. They are measured over one
    spacing and over the whole line, and the smaller of the two values counts.
    """
    values = [_by_clarabel(t, b, order, alpha, unit) for unit in ((t[-1] - t[0]) / (t.size - 1), t[-1] - t[0])]
    return min(values, key=lambda value: np.inf if np.isnan(value) else value)


def _by_clarabel(t: np.ndarray, b: np.ndarray, order: int, alpha: float, unit: float) -> float:
    import cvxpy as cp

    n = t.size
    x = cp.Variable(n)
    z, constraints = x, []
    for k in range(1, order + 1):
        slope = cp.Variable(n - k)
        constraints.append(cp.multiply((t[k:] - t[:-k]) / (k * unit), slope) == cp.diff(z))
        z = slope
    strength = n * alpha * ((t[-1] - t[0]) / (unit * (n - 1))) ** order
    program = cp.Problem(cp.Minimize(cp.sum_squares(x - b) / 2 + strength * cp.norm1(cp.diff(z))), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-12, tol_feas=1e-10)
    except cp.SolverError:
        return np.nan
    return float(program.value) / n if program.status == "optimal" else np.nan


def problem_at(t: np.ndarray, b: np.ndarray, order: int, alpha: float = 1.0) -> Problem:
    """Trend filtering of `b` at `t`."""
    n = t.size
    A = Constraint(trend(n, order, t), None, None, n, line=line_at(t, order))
    return Problem(sp.eye_array(n, format="csr"), b, "squared", psi=L1(alpha), A=A)


def matrix(small: bool) -> str:
    """Orders × positions × sizes × strengths."""
    compared = importlib.util.find_spec("cvxpy") is not None
    rows = [
        _cell(order, kind, n, compared)
        for order in range(4)
        for kind in ("even", "uniform", "clustered")
        for n in ((50,) if small else (50, 600, 3000))
    ]
    title = (
        "12 strengths from 1e-6 to 2 alpha_max. Exact: the gap in 60 digits, the worst. "
        "CVXPY: ours less theirs, relative, where we are above and where we are below"
    )
    header = ["order", "positions", "n", "solved", "gap", "exact", "CVXPY", "above", "below", "polynomial", "ms"]
    return table(title, header, rows)


def _cell(order: int, kind: str, n: int, compared: bool) -> list[Any]:
    """One row of the table: the worst over all strengths."""
    t = positions_of(kind, n)
    b = signal_at(t)
    problem = problem_at(t, b, order)
    top = alpha_max(problem, line_at(t, order))
    tol = 1e-6 if order < 3 else 1e-5
    solved, gaps, bounds, excess, spent = 0, [], [], [], []
    for share in STRENGTHS:
        began = time.process_time()
        result = solve(problem.replace(psi=L1(share * top)), tol=tol, record_every=0)
        spent.append(time.process_time() - began)
        solved += result.status is Status.SOLVED and result.gap <= tol
        gaps.append(result.gap)
        bounds.append(exact_trend_gap(t, b, order, share * top, result.y))
        if compared:
            value = reference(t, b, order, share * top)
            excess += [result.objective / value - 1.0] if np.isfinite(value) else []
    domain = (float(t[0]), float(t[-1]))
    flat = np.polynomial.Legendre.fit(t, b, order, domain=domain)(t)
    return [
        str(order), kind, n, f"{solved}/12", max(gaps), max(bounds), f"{len(excess)}/12", max(excess, default=np.nan),
        min(excess, default=np.nan), float(np.abs(result.x - flat).max()), 1e3 * float(np.median(spent)),
    ]  # fmt: skip


def _process_seconds(function: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """The smallest processor time of several runs, and what the last one returned."""
    spent, found = [], None
    for _ in range(times):
        began = time.process_time()
        found = function()
        spent.append(time.process_time() - began)
    return min(spent), found


def scaling(small: bool) -> str:
    """From ten thousand points to a million, at about the same number of pieces; order 0 against prox_tv."""
    rows: list[list[Any]] = []
    sizes = (10**4, 10**5) if small else (10**4, 10**5, 10**6)
    for order in range(3):
        before = np.nan
        for n in sizes:
            t = np.arange(n) / n
            b = signal_at(t)
            problem = Problem(sp.eye_array(n, format="csr"), b, "squared", psi=L1(1.0), A=trend(n, order))
            problem = problem.replace(psi=L1(1e-3 * alpha_max(problem)))
            solve(problem_at(t[:100], b[:100], order, 1e-6), tol=1e-6)  # compiles
            times = max(5, 2 * 10**6 // n) if order == 0 else 3 if n < 10**6 else 1
            seconds, result = _process_seconds(lambda problem=problem: solve(problem, tol=1e-6, record_every=0), times)
            growth = np.log10(seconds / before) if np.isfinite(before) else np.nan
            before = seconds
            knots = int(np.count_nonzero(result.y))
            other = np.nan
            if order == 0 and importlib.util.find_spec("prox_tv"):
                import prox_tv

                strength = n * float(problem.psi.strength)
                other, _ = _process_seconds(lambda: prox_tv.tv1_1d(b, strength), times)  # noqa: B023
            ratio = seconds / other
            rows.append(
                [str(order), n, str(result.status), result.gap, result.passes, knots, seconds, growth, other, ratio]
            )
    title = (
        "Length: process seconds of solve(), and the exponent of their growth from the length before. Order 0: best "
        "of five or more, and prox_tv at the same strength"
    )
    header = ["order", "n", "status", "gap", "steps", "knots", "seconds", "exponent", "prox_tv", "ratio"]
    return table(title, header, rows) + "\n" + _chains(sizes)


def _chains(sizes: tuple[int, ...]) -> str:
    """The dynamic programme of order 0 as a function of arrays, against prox_tv where it is installed."""
    rows = []
    for n in sizes:
        b = signal_at(np.arange(n) / n)
        for strength in (1.0, 0.01 * n):
            out = denoise_line(b, strength)
            mine, _ = _process_seconds(lambda: denoise_line(b, strength), 7)  # noqa: B023
            theirs = np.nan
            if importlib.util.find_spec("prox_tv"):
                import prox_tv

                theirs, other = _process_seconds(lambda: prox_tv.tv1_1d(b, strength), 7)  # noqa: B023
                assert np.abs(other - out).max() < 1e-6
            rows.append([str(n), strength, 1e3 * mine, 1e3 * theirs, mine / theirs])
    title = "Order 0: milliseconds of denoise_line() and of prox_tv, best of seven"
    return table(title, ["n", "strength", "skadmm", "prox_tv", "ratio"], rows)


def curve(name: str, order: int, t: np.ndarray) -> np.ndarray:
    """The curve of the guide, with two jumps; one that is calm at first and busy later, with pieces of degree `order`;
    and three lines, on which a smoothing spline is hard to beat."""
    if name == "guide":
        return np.where(t < 4, 0.5 * t, np.where(t < 7, 3.0, 0.5 + 0.3 * (t - 7)))
    if name == "three lines":
        return np.interp(t, [0, 4, 7, 10], [0, 3, 1, 2])
    at = np.array([0, 3, 6, 7, 7.5, 8, 8.5, 9, 10])
    values = np.array([0, 1, 0.5, 2, 0, 2, 0, 1.5, 1])
    return make_interp_spline(at, values, k=order)(t) if order else values[np.searchsorted(at, t, side="right") - 1]


def cv(small: bool) -> str:
    """Cross-validation against a smoothing spline, 600 points, noise 0.2."""
    rows = []
    for name in ("guide", "calm then busy", "three lines"):
        for order in range(4):
            runs = [_chosen(name, order, seed) for seed in range(1 if small else 8)]
            places, said, degrees, mine, spline, seconds = (list(column) for column in zip(*runs, strict=True))
            ratios = [one / two for one, two in zip(mine, spline, strict=True)]
            interior = sum(0 < place < 49 for place in places)
            rows.append(
                [name, str(order), f"{interior}/{len(runs)}", str(sum(said)), str(degrees), float(np.mean(mine)),
                 float(np.mean(spline)), min(ratios), max(ratios), f"{sum(r < 1 for r in ratios)}/{len(runs)}",
                 float(np.mean(seconds))]
            )  # fmt: skip
    title = (
        "TrendFilterCV: mean errors to the truth over the seeds, and the smallest and largest ratio to that of the "
        "smoothing spline (scipy.interpolate.make_smoothing_spline). Interior: alpha is no end of the grid"
    )
    header = [
        "curve", "order", "interior", "warnings", "dof", "trend filter", "spline", "least", "most", "won", "seconds"
    ]  # fmt: skip
    return table(title, header, rows)


def _chosen(name: str, order: int, seed: int) -> tuple[int, int, int, float, float, float]:
    """The place of alpha in its grid, warnings, degrees of freedom, both errors and seconds of one fit."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 10, 600))
    truth = curve(name, order, t)
    noisy = truth + 0.2 * rng.standard_normal(600)
    model = TrendFilterCV(order=order)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seconds, _ = _process_seconds(lambda: model.fit(t[:, None], noisy))
    place = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    errors = [float(np.sqrt(np.mean((fit - truth) ** 2))) for fit in (model.coef_, make_smoothing_spline(t, noisy)(t))]
    return place, len(said), int(model.dof_), errors[0], errors[1], seconds


def dof(small: bool) -> str:
    """Degrees of freedom against the rank of the differences that are zero, on random problems."""
    rows = []
    for kind in ("line", "grid"):
        equal = solved = 0
        count = 20 if small else 200
        for seed in range(count):
            rng = np.random.default_rng(seed)
            order = seed % 4 if kind == "line" else 0
            if kind == "line":
                t = np.sort(rng.uniform(0, 1, 60))
                A, graph = trend(60, order, t), None
            else:
                t, graph = np.arange(60.0), (6, 10)
                A = grid(graph)
            b = np.sin(6 * t / t[-1]) + 0.3 * rng.standard_normal(60)
            scale = 1.0 if kind == "line" else 0.01
            model = TrendFilter(alpha=scale * 10.0 ** rng.uniform(-4, 0), order=order, graph=graph).fit(t[:, None], b)
            solved += model.result_.status is Status.SOLVED
            tied = A.toarray()[model.result_.y == 0.0]
            tied = tied / np.abs(tied).max(axis=1, initial=1e-300)[:, None]
            free = 60 - (int(np.linalg.matrix_rank(tied, tol=1e-9)) if tied.size else 0)
            equal += model.dof_ == free
        rows.append([kind, f"{solved}/{count}", f"{equal}/{count}"])
    return table("Degrees of freedom equal to the number of free parameters", ["problems", "solved", "equal"], rows)


def picture(size: int) -> np.ndarray:
    """A disc and a box on waves, with noise."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[0:size, 0:size] / size
    disc, box = (i - 0.5) ** 2 + (j - 0.4) ** 2 < 0.08, (np.abs(i - 0.7) < 0.15) & (np.abs(j - 0.7) < 0.2)
    return disc + 0.5 * box + 0.3 * np.sin(6 * i) + 0.1 * rng.standard_normal((size, size))


def volume(size: int) -> np.ndarray:
    """A ball, with noise."""
    rng = np.random.default_rng(0)
    i, j, k = np.mgrid[0:size, 0:size, 0:size] / size
    return ((i - 0.5) ** 2 + (j - 0.4) ** 2 + (k - 0.5) ** 2 < 0.08) + 0.3 * rng.standard_normal((size,) * 3)


def image(small: bool) -> str:
    """Total variation of an image and of a volume, certified."""
    rows: list[list[Any]] = []
    TrendFilter(order=0, graph=(9, 9)).fit(np.arange(81.0)[:, None], picture(9).ravel())  # compiles
    for name, noisy in (("image", picture(128 if small else 512)), ("volume", volume(20 if small else 50))):
        A, b = grid(noisy.shape), noisy.ravel()
        transposed = sp.csr_array(A.T)
        product, _ = _process_seconds(lambda: transposed @ (A @ b), 9)  # noqa: B023
        for strength in (0.05, 0.3, 2.0):
            problem = Problem(sp.eye_array(b.size, format="csr"), b, "squared", psi=L1(strength / b.size), A=A)
            for tol in (1e-4, 1e-8):
                seconds, result = _process_seconds(lambda: solve(problem, tol=tol, record_every=0))  # noqa: B023
                shape = " × ".join(map(str, noisy.shape))
                rows.append([f"{name} {shape}", strength, f"{tol:g}", str(result.status), result.gap, result.passes,
                             seconds, seconds / product, "", "", "", ""])  # fmt: skip
            if noisy.ndim == 2:
                rows[-2][-2:] = _chambolle(noisy, strength, result.objective * b.size)
                if importlib.util.find_spec("skimage"):
                    rows[-2][-4:-2] = _split_bregman(noisy, strength, result.objective * b.size)
    title = (
        "Total variation: process seconds of solve(), also in products with AᵀA. Bregman: scikit-image's split Bregman "
        "with isotropic=False, the same objective, its excess over ours and its seconds. Chambolle: his iteration as "
        "scikit-image has it, in NumPy, but with the projection of this objective, until its excess is 1e-4"
    )
    header = ["data", "strength", "tol", "status", "gap", "sweeps", "seconds", "AᵀA", "Bregman", "seconds",
              "Chambolle", "seconds"]  # fmt: skip
    return table(title, header, rows)


def graph(small: bool) -> str:
    """Trends of order one and two over grids and a triangulation, certified, against the interior point solver."""
    rows: list[list[Any]] = []
    grids = [picture(32)] if small else [picture(100), picture(512), volume(50)]
    data = [(" × ".join(map(str, b.shape)), grid(b.shape), b.ravel()) for b in grids] + [_triangulation()]
    for name, G, b in data:
        for order in (1, 2):
            A = graph_trend(G, order)
            for strength in (0.3, 3.0):
                problem = Problem(sp.eye_array(b.size, format="csr"), b, "squared", psi=L1(strength / b.size), A=A)
                for tol in (1e-4,) if b.size > 10**4 else (1e-4, 1e-6):
                    seconds, result = _process_seconds(lambda: solve(problem, tol=tol, record_every=0))  # noqa: B023
                    rows.append([name, str(order), strength, f"{tol:g}", str(result.status), result.gap, result.solver,
                                 seconds, np.nan, np.nan])  # fmt: skip
                if b.size <= 10**4 and order == 1:
                    other, exact = _process_seconds(lambda: solve(problem, "interior-point", tol=1e-6, record_every=0))  # noqa: B023
                    rows[-1][-2:] = [result.objective / exact.objective - 1.0, other]
    title = (
        "Trends over graphs: process seconds of solve(); the excess of the objective over interior-point, and its "
        "seconds"
    )
    header = ["graph", "order", "strength", "tol", "status", "gap", "solver", "seconds", "excess", "seconds"]
    return table(title, header, rows)


def _triangulation(d: int = 5000) -> tuple[str, sp.csr_array, np.ndarray]:
    """Random places in a square, joined by a Delaunay triangulation, and a signal on them."""
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(d, 2))
    corners = Delaunay(places).simplices
    edges = np.unique(np.sort(np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
    b = np.sin(6 * places[:, 0]) + np.abs(places[:, 1] - 0.5) + 0.1 * rng.standard_normal(d)
    return f"triangulation {d}", incidence([tuple(map(int, edge)) for edge in edges], n_features=d), b


def _split_bregman(noisy: np.ndarray, strength: float, best: float) -> list[Any]:
    """The relative excess of scikit-image's split Bregman iterations, and their time."""
    from skimage.restoration import denoise_tv_bregman

    def run() -> np.ndarray:
        return denoise_tv_bregman(noisy, weight=1.0 / strength, max_num_iter=300, eps=1e-9, isotropic=False)

    seconds, found = _process_seconds(run)
    value = 0.5 * np.sum((found - noisy) ** 2)
    value += strength * sum(float(np.abs(np.diff(found, axis=axis)).sum()) for axis in (0, 1))
    return [value / best - 1.0, seconds]


def _chambolle(noisy: np.ndarray, strength: float, best: float, most: int = 3000) -> list[Any]:
    """The relative excess of Chambolle's iteration on the multipliers, and its time without the evaluations of it."""
    across, down = np.zeros((noisy.shape[0], noisy.shape[1] - 1)), np.zeros((noisy.shape[0] - 1, noisy.shape[1]))
    spent = 0.0
    for i in range(1, most + 1):
        began = time.process_time()
        found = noisy.copy()
        found[:, 1:] -= across
        found[:, :-1] += across
        found[1:] -= down
        found[:-1] += down
        right, below = np.diff(found, axis=1), np.diff(found, axis=0)
        np.clip(across + 0.25 * right, -strength, strength, out=across)
        np.clip(down + 0.25 * below, -strength, strength, out=down)
        spent += time.process_time() - began
        if i % 10 == 0 or i == most:
            value = 0.5 * np.sum((found - noisy) ** 2) + strength * (np.abs(right).sum() + np.abs(below).sum())
            excess = float(value / best - 1.0)
            if excess <= 1e-4:
                break
    return [excess, spent]


def changes(small: bool) -> str:
    """Change points of a step function against ruptures, given the number of changes."""
    rows = []
    for seed in range(2 if small else 5):
        rng = np.random.default_rng(seed)
        true = np.sort(rng.choice(np.arange(50, 950, 50), 6, replace=False))
        steps = np.cumsum(np.bincount(true, weights=rng.choice([-1.0, 1.0], 6), minlength=1000))
        noisy = steps + 0.3 * rng.standard_normal(1000)
        seconds, model = _process_seconds(
            lambda: TrendFilterCV(order=0, selection="1se").fit(np.arange(1000.0)[:, None], noisy)  # noqa: B023
        )
        found = model.changepoints_
        mine = float(np.mean([np.abs(found - place).min() for place in true])) if found.size else np.nan
        other = spent = np.nan
        if importlib.util.find_spec("ruptures"):
            import ruptures

            spent, breaks = _process_seconds(lambda: ruptures.Dynp(model="l2", jump=1).fit(noisy).predict(6))  # noqa: B023
            other = float(np.mean([np.abs(np.array(breaks[:-1]) - place).min() for place in true]))
        rows.append([str(seed), str(found.size), mine, seconds, other, spent])
    title = (
        "Change points: the mean distance from a true change to the nearest found. ruptures is given their number, 6"
    )
    return table(title, ["seed", "found", "distance", "seconds", "ruptures", "seconds"], rows)


PARTS = {"matrix": matrix, "scaling": scaling, "cv": cv, "dof": dof, "image": image, "graph": graph, "changes": changes}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in name:
            print(part(arguments.small), flush=True)


if __name__ == "__main__":
    main()
