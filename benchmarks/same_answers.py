"""Compare the results of two versions of the package on many small problems.

    python benchmarks/same_answers.py --write FILE                     solve them with the package that is imported
    python benchmarks/same_answers.py --compare BEFORE.json AFTER.json     the differences, problem by problem
    python benchmarks/same_answers.py --before v0.1.0                  both: this checkout against a commit
    python benchmarks/same_answers.py --list                           the names of the problems
    … --only lasso,path                                                those whose names contain one of these words

The comparison ends with 1 where an objective differs by more than 1e-6 (relative), where a status differs, and where a
problem is in one of the files only; else with 0. "same bits" means that x, objective, passes, gap and KKT residual are
equal to the last bit. A first run compiles kernels, which takes several times as long as the problems; a temporary
checkout of ``--before`` always does. Only public names are used, so the script runs with versions that differ inside.
"""

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import skadmm
from _trees import ROOT, checkout, environment
from skadmm import Problem, path, solve
from skadmm.operators import chain, incidence, stack, trend
from skadmm.regularizers import L1, Box, ElasticNet, GroupL2, GroupLInf, NonNegative, SquaredL2

TOLERANCE = 1e-6
"""The relative difference of objectives that counts as the same."""
TOL = 1e-8
"""The tolerance given to the second-order solvers."""
LOSSES = ("logistic", "squared", "huber", "squared-hinge")
CLASSIFYING = ("logistic", "squared-hinge")
N, D = 240, 24

Answer = dict[str, Any]
TASKS: dict[str, Callable[[], Answer]] = {}
"""The problems by name, in the order in which they run."""


# -- data ------------------------------------------------------------------------------------------------------


def coefficients(d: int) -> np.ndarray:
    """Constant over runs of features, every other run zero."""
    return np.repeat(np.resize([1.0, 0.0, -0.7, 0.0], -(-d // 4)), 4)[:d]


def data(loss: str, n: int = N, d: int = D, *, density: float = 1.0, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Normal rows, dense or CSR, and a target for the loss: two classes, or numbers with a few outliers."""
    rng = np.random.default_rng(seed)
    X: Any = rng.standard_normal((n, d))
    if density < 1.0:
        X = sp.csr_array(np.where(rng.random((n, d)) < density, X / np.sqrt(density), 0.0))
    margin = X @ coefficients(d)
    margin /= np.std(margin)
    if loss in CLASSIFYING:
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-2 * margin)), 1.0, -1.0)
    return X, margin + 0.3 * rng.standard_normal(n) + 5.0 * (rng.random(n) < 0.03)


def graph(d: int) -> Any:
    """[G; I], G the incidence matrix of a ring with chords."""
    edges = [(j, (j + 1) % d) for j in range(d)] + [(j, j + d // 2) for j in range(0, d // 2, 3)]
    return stack(incidence(edges, n_features=d), "identity")


def dense_rows(d: int, m: int = 12) -> np.ndarray:
    """A general A."""
    return np.random.default_rng(3).standard_normal((m, d))


def groups(d: int) -> list[np.ndarray]:
    """Runs of four features."""
    return [np.arange(start, min(start + 4, d)) for start in range(0, d, 4)]


def structures() -> dict[str, dict[str, Any]]:
    """Penalties and constraints by name, as arguments of Problem."""
    rng = np.random.default_rng(1)
    fused = stack(chain(D), "identity")
    m = fused.shape[0]
    square = sp.csr_array(-np.eye(m) + 0.2 * np.diag(np.ones(m - 1), 1))
    psi = L1(0.02)
    return {
        "chain": {"psi": psi, "A": chain(D)},
        "fused chain": {"psi": psi, "A": fused},
        "graph": {"psi": psi, "A": graph(D)},
        "lasso": {"psi": psi},
        "group l2": {"psi": GroupL2(0.03, groups(D))},
        "group linf": {"psi": GroupLInf(0.03, groups(D))},
        "elastic net omega": {"psi": psi, "A": chain(D), "omega": ElasticNet(0.02, 0.5)},
        "non-negative omega": {"psi": psi, "A": chain(D), "omega": NonNegative()},
        "box omega": {"psi": psi, "A": chain(D), "omega": Box(-0.2, 0.3)},
        "dense rows": {"psi": psi, "A": dense_rows(D)},
        "trend 2": {"psi": L1(0.005), "A": trend(D, 2)},
        "diagonal B": {"psi": psi, "A": fused, "B": -rng.uniform(0.5, 2.0, m)},
        "square B": {"psi": psi, "A": fused, "B": square},
        "c": {"psi": psi, "A": fused, "c": 0.1 * rng.standard_normal(m)},
        "weights": {"psi": psi, "A": fused, "sample_weight": rng.uniform(0.2, 2.0, N)},
    }


# -- results ---------------------------------------------------------------------------------------------------


def answer(x: Any, objective: Any, passes: Any, gap: Any, kkt: Any, status: str, solver: str = "") -> Answer:
    """What is kept of a run; numbers may be lists, one per strength or class."""
    x = np.ascontiguousarray(x, dtype=np.float64).ravel()
    numbers = {"objective": objective, "passes": passes, "gap": gap, "kkt": kkt}
    kept = {key: np.asarray(value, dtype=float).ravel().tolist() for key, value in numbers.items()}
    summary = {"hash": hashlib.sha256(x.tobytes()).hexdigest()[:12], "status": status, "solver": solver}
    return summary | kept | {"x": x.tolist()}


def of_results(results: list[Any], x: Any) -> Answer:
    """What is kept of one or several results."""
    return answer(
        x,
        [result.objective for result in results],
        [result.passes for result in results],
        [result.gap for result in results],
        [result.kkt.relative for result in results],
        ", ".join(dict.fromkeys(str(result.status) for result in results)),
        ", ".join(dict.fromkeys(getattr(result, "solver", "") or result.method for result in results)),
    )


def solved(problem: Problem, method: str = "auto", **options: Any) -> Answer:
    """One solve()."""
    result = solve(problem, method, **({"tol": TOL, "passes": 200, "record_every": 0} | options))
    return of_results([result], result.x)


def refusable(problem: Problem, method: str, **options: Any) -> Answer:
    """One solve(), where a solver may refuse the problem."""
    try:
        return solved(problem, method, **options)
    except ValueError:
        return answer([], np.nan, np.nan, np.nan, np.nan, "refused")


def followed(problem_of: Callable[[float], Problem], top: float) -> Answer:
    """A path() over eight strengths; the objective at each."""
    counted: list[float] = []
    alphas = np.geomspace(top, 0.01 * top, 8)
    run = path(
        problem_of(1.0), alphas, tol=TOL, callback=lambda _, point: counted.append(getattr(point, "passes", np.nan))
    )
    objectives = [problem_of(float(alpha)).objective(x) for alpha, x in zip(run.alphas, run.x, strict=True)]
    return answer(run.x, objectives, counted, run.gaps, np.nan, ", ".join(dict.fromkeys(run.statuses)))


def fitted(name: str, X: Any, target: Any, **options: Any) -> Answer:
    """An estimator: coefficients, intercept, and for cross-validation alpha and the held-out losses."""
    model = getattr(skadmm, name)(random_state=0, **({} if name.endswith("CV") else {"tol": TOL}), **options)
    model.fit(X, target)
    fields = ("coef_", "intercept_", "alpha_", "cv_mean_", "criterion_")
    parts = [getattr(model, field) for field in fields if getattr(model, field, None) is not None]
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    return of_results(results, np.concatenate([np.ravel(part) for part in parts]))


def resumed(problem: Problem, method: str, fixed: dict[str, Any]) -> Answer:
    """A run of five passes that is stopped after two, and continues from its checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {"checkpoint": Path(folder) / "kept", "checkpoint_every": 0.0, "record_every": 0}
        solve(problem, method, **(fixed | kept | {"passes": 2}))
        return solved(problem, method, **(fixed | kept))


def from_folder(loss: str, density: float) -> Answer:
    """Rows in a folder of blocks, which ``skadmm data convert`` writes."""
    X, target = data(loss, density=density)
    with tempfile.TemporaryDirectory() as folder:
        if sp.issparse(X):
            from sklearn.datasets import dump_svmlight_file

            source = Path(folder) / "rows.svm"
            dump_svmlight_file(X, target, str(source), zero_based=False)
        else:
            source = Path(folder) / "rows.csv"
            names = ",".join([*(f"x{j}" for j in range(X.shape[1])), "target"])
            np.savetxt(source, np.column_stack([X, target]), "%.17g", ",", header=names, comments="")
        command = [sys.executable, "-c", "import sys; from skadmm.cli import main; sys.exit(main())"]
        blocks = Path(folder) / "blocks"
        options = ["--block-rows", "70", "--quiet"]
        subprocess.run(
            [*command, "data", "convert", str(source), str(blocks), *options], check=True, capture_output=True
        )
        return solved(Problem(blocks, loss=loss, psi=L1(0.02), A=stack(chain(D), "identity")))


def on_dask(method: str, **options: Any) -> Answer:
    """Rows on two workers that are threads of this process."""
    import dask.array
    from distributed import Client, LocalCluster

    X, target = data("logistic", 600)
    with ExitStack() as opened:
        cluster = opened.enter_context(
            LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
        )
        opened.enter_context(Client(cluster))
        rows, targets = (dask.array.from_array(array, chunks=(150, *array.shape[1:])) for array in (X, target))
        return solved(Problem(rows, targets, psi=L1(0.02), A=stack(chain(D), "identity")), method, **options)


# -- the problems ----------------------------------------------------------------------------------------------


def add_structures() -> None:
    """Every loss with every structure."""
    for loss, (name, model) in itertools.product(LOSSES, structures().items()):
        TASKS[f"{loss}, {name}"] = lambda loss=loss, model=model: solved(Problem(*data(loss), loss, **model))
    X, target = data("logistic")
    TASKS["ridge omega"] = lambda: solved(Problem(X, target, psi=L1(0.02), A=chain(D), omega=SquaredL2(0.1)))
    wide = np.random.default_rng(5).standard_normal((D - 1, D + 5))
    TASKS["wide B"] = lambda: solved(Problem(X, target, "squared", psi=L1(0.02), A=chain(D), B=wide))
    TASKS["no psi"] = lambda: solved(Problem(X, target, omega=SquaredL2(0.1)))


def add_kinds() -> None:
    """Every kind of rows, in memory, in files and on Dask."""
    fused = {"psi": L1(0.02), "A": stack(chain(D), "identity")}
    for loss in ("logistic", "squared"):
        X, target = data(loss)
        sparse, sparse_target = data(loss, density=0.2)
        kinds = {
            "C order": (X, target),
            "F order": (np.asfortranarray(X), target),
            "float32": (X.astype(np.float32), target),
            "float32 F order": (np.asfortranarray(X, dtype=np.float32), target),
            "CSR": (sparse, sparse_target),
            "CSR float32": (sparse.astype(np.float32), sparse_target),
        }
        for kind, pair in kinds.items():
            TASKS[f"rows, {loss}, {kind}"] = lambda pair=pair, loss=loss: solved(Problem(*pair, loss, **fused))
    TASKS["rows, folder, dense"] = lambda: from_folder("logistic", 1.0)
    TASKS["rows, folder, CSR"] = lambda: from_folder("squared", 0.2)
    if find_spec("dask") and find_spec("distributed"):
        TASKS["rows, dask, auto"] = lambda: on_dask("auto")
        TASKS["rows, dask, sa-iu-admm"] = lambda: on_dask("sa-iu-admm", step=0.2, rho=0.05, passes=5, tol=None)


def add_shapes() -> None:
    """Many samples, many features, many sparse features."""
    shapes = {
        "n >> d": (20_000, 15, 1.0, 0.02),
        "d 200": (1200, 200, 1.0, 0.01),
        "n << d": (80, 1500, 1.0, 0.02),
        "d 900 sparse": (1500, 900, 0.02, 0.004),
    }
    for (shape, (n, d, density, strength)), loss in itertools.product(shapes.items(), ("logistic", "squared")):
        models: dict[str, Any] = {"lasso": None, "fused chain": stack(chain(d), "identity")}
        if d < 1000:
            models["graph"] = graph(d)
        if d == 900:
            models["trend 1 and lasso"] = stack(trend(d, 1), "identity")
        for model, A in models.items():
            TASKS[f"{shape}, {loss}, {model}"] = lambda A=A, loss=loss, strength=strength, n=n, d=d, q=density: solved(
                Problem(*data(loss, n, d, density=q), loss, psi=L1(strength), A=A), tol=1e-6
            )
    TASKS["d 5200 sparse, trend 1"] = lambda: solved(
        Problem(*data("logistic", 200, 5200, density=0.01), psi=L1(0.002), A=trend(5200, 1)), passes=5, tol=None
    )


def add_methods() -> None:
    """Every solver by name on problems of several kinds, and every first-order method for five passes."""
    solvers = list(getattr(skadmm, "SOLVERS", ()))
    fused = stack(chain(D), "identity")
    kinds = {"lasso": "identity", "fused chain": fused, "graph": graph(D), "dense rows": dense_rows(D)}
    for name, (kind, A) in itertools.product(solvers, kinds.items()):
        TASKS[f"solver {name}, {kind}"] = lambda name=name, A=A: refusable(
            Problem(*data("logistic"), psi=L1(0.02), A=A), name
        )
    fixed = {"step": 0.2, "rho": 0.05, "passes": 5, "tol": None}
    for name in skadmm.ALGORITHMS:
        if name == "san-admm" or name in solvers:
            continue
        TASKS[f"method {name}"] = lambda name=name: solved(
            Problem(*data("logistic"), psi=L1(0.02), A=graph(D)), name, **fixed
        )
    X, target = data("squared", density=0.2)
    blocks = Problem(X, target, "squared", psi=L1(0.02), A=chain(D), omega=ElasticNet(0.02, 0.5))
    TASKS["method sa-iu-admm, blocks, CSR, omega"] = lambda: solved(blocks, "sa-iu-admm", batch_size=8, **fixed)
    problem = Problem(*data("logistic"), psi=L1(0.02), A=graph(D))
    TASKS["option step auto"] = lambda: solved(problem, "sa-admm", passes=5, tol=None)
    TASKS["option step theory"] = lambda: solved(problem, "svrg-admm", passes=5, step="theory", tol=None)
    TASKS["option sampler"] = lambda: solved(problem, "sa-admm", sampler="permutation", **fixed)
    TASKS["option precondition"] = lambda: solved(problem, "sa-iu-admm", precondition="diagonal", **fixed)
    TASKS["option x0"] = lambda: solved(problem, x0=coefficients(D))
    TASKS["option rho"] = lambda: solved(problem, "san-admm", rho=0.1)
    TASKS["option warm_start"] = lambda: solved(
        problem, "sa-admm", warm_start=solve(problem, "sa-admm", **(fixed | {"record_every": 0})), **fixed
    )
    for name in ("sa-admm", "san-admm"):
        TASKS[f"option checkpoint, {name}"] = lambda name=name: resumed(problem, name, fixed)


def add_paths() -> None:
    """path() over eight strengths."""
    X, target = data("squared")
    rows, labels = data("logistic", 400, 200, density=0.1)
    TASKS["path, squared, lasso"] = lambda: followed(lambda a: Problem(X, target, "squared", psi=L1(a)), 0.5)
    TASKS["path, logistic, CSR, fused chain"] = lambda: followed(
        lambda a: Problem(rows, labels, psi=L1(a), A=stack(chain(200), "identity")), 0.05
    )
    TASKS["path, huber, graph"] = lambda: followed(lambda a: Problem(X, target, "huber", psi=L1(a), A=graph(D)), 0.2)
    TASKS["path, logistic, group l2"] = lambda: followed(
        lambda a: Problem(*data("logistic"), psi=GroupL2(a, groups(D))), 0.2
    )


def add_estimators() -> None:
    """The estimators."""
    X, labels = data("logistic")
    _, target = data("squared")
    three = np.digitize(target, [-0.5, 0.5])
    of_groups = {"groups": np.arange(D) // 4}
    for name, options in (("Fused", {}), ("Generalized", {"A": dense_rows(D)}), ("Group", of_groups)):
        for kind, wanted in (("Classifier", labels), ("Regressor", target)):
            TASKS[f"{name}Lasso{kind}"] = lambda name=name, kind=kind, wanted=wanted, options=options: fitted(
                f"{name}Lasso{kind}", X, wanted, **options
            )
    TASKS["FusedLassoClassifier, three classes"] = lambda: fitted("FusedLassoClassifier", X, three)
    TASKS["FusedLassoRegressor, standardized, ridge"] = lambda: fitted(
        "FusedLassoRegressor", X * np.arange(1, D + 1), target, standardize=True, ridge=0.01
    )
    cv = {"alphas": 8, "cv": 3}
    TASKS["FusedLassoClassifierCV"] = lambda: fitted("FusedLassoClassifierCV", X, labels, **cv)
    TASKS["GroupLassoRegressorCV, bic"] = lambda: fitted(
        "GroupLassoRegressorCV", X, target, alphas=8, selection="bic", **of_groups
    )
    place = np.linspace(0.0, 1.0, 200)
    signal = np.abs(place - 0.4) * 5 + 0.1 * np.random.default_rng(7).standard_normal(200)
    for order in (0, 1, 2):
        TASKS[f"TrendFilter, order {order}"] = lambda order=order: fitted(
            "TrendFilter", place[:, None], signal, order=order
        )
    TASKS["TrendFilter, huber, table"] = lambda: fitted("TrendFilter", X, target, loss="huber")
    TASKS["TrendFilterCV"] = lambda: fitted("TrendFilterCV", place[:, None], signal, **cv)


def add_all() -> None:
    """Fill TASKS."""
    for add in (add_structures, add_kinds, add_shapes, add_methods, add_paths, add_estimators):
        add()


# -- writing ---------------------------------------------------------------------------------------------------


def last(values: list[float]) -> float:
    """The last number; NaN where there is none."""
    return values[-1] if values else np.nan


def write(file: Path, wanted: list[str]) -> int:
    """Solve the problems, print a line for each and write all to `file`; the number of those that failed."""
    answers: dict[str, Answer] = {}
    width = max(map(len, wanted))
    header = f"{'problem':{width}}{'objective':>20}{'passes':>9}{'gap':>10}{'kkt':>10}{'s':>8}"
    print(f"{header}  {'x':12}  status, solver")
    began = time.perf_counter()
    for name in wanted:
        start = time.perf_counter()
        try:
            found = TASKS[name]()
        except Exception as error:
            found = answer([], np.nan, np.nan, np.nan, np.nan, f"error: {type(error).__name__}: {error}")
        seconds = time.perf_counter() - start
        answers[name] = found | {"seconds": seconds}
        numbers = f"{last(found['objective']):>20.12g}{sum(found['passes']):>9.2f}"
        numbers += f"{last(found['gap']):>10.1e}{last(found['kkt']):>10.1e}{seconds:>8.2f}"
        print(f"{name:{width}}{numbers}  {found['hash']}  {found['status']}, {found['solver']}", flush=True)
    failed = sum(found["status"].startswith("error") for found in answers.values())
    spent = time.perf_counter() - began
    about = {"version": skadmm.__version__, "package": str(Path(skadmm.__file__).parent), "seconds": spent}
    file.write_text(json.dumps({"about": about, "problems": answers}), encoding="utf-8")
    print(f"{len(answers)} problems in {spent:.0f} s; {failed} failed")
    return failed


# -- comparing -------------------------------------------------------------------------------------------------


def apart(before: list[float], after: list[float], *, of_largest: bool = False) -> float:
    """The largest relative difference; `of_largest`: relative to the largest number of all, as for a vector."""
    one, other = np.array(before), np.array(after)
    if one.shape != other.shape:
        return np.inf
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    one, other = one[~same], other[~same]
    if one.size == 0:
        return 0.0
    if not np.all(np.isfinite(one) & np.isfinite(other)):
        return np.inf
    scale = np.maximum(np.abs(one), np.abs(other))
    if of_largest:
        scale = max(np.abs(before).max(), np.abs(after).max())
    return float(np.max(np.abs(one - other) / scale))


def same_bits(one: Answer, other: Answer) -> bool:
    """Whether every number of two results is the same, to the last bit."""
    return all(repr(one[key]) == repr(other[key]) for key in ("hash", "x", "objective", "passes", "gap", "kkt"))


def compare(before: Path, after: Path) -> int:
    """Print the table; return 1 where results differ, else 0."""
    old, new = (json.loads(file.read_text(encoding="utf-8"))["problems"] for file in (before, after))
    names = list(old | new)
    width = max(map(len, names))
    print(f"{'problem':{width}}{'x':>10}{'objective':>11}{'passes':>10}{'gap':>10}")
    equal, different, alone, failed = 0, [], [], 0
    largest = {"x": 0.0, "objective": 0.0, "passes": 0.0, "gap": 0.0}
    for name in names:
        if name not in old or name not in new:
            alone.append(name)
            print(f"{name:{width}}  only {'after' if name in new else 'before'}")
            continue
        one, other = old[name], new[name]
        notes = [
            f"{key}: {one[key] or 'none'} -> {other[key] or 'none'}"
            for key in ("status", "solver")
            if one[key] != other[key]
        ]
        failed += other["status"].startswith("error")
        rates = {key: apart(one[key], other[key], of_largest=key == "x") for key in largest}
        largest = {key: max(largest[key], rate) for key, rate in rates.items()}
        if rates["objective"] > TOLERANCE or one["status"] != other["status"]:
            different.append(name)
            notes.insert(0, "DIFFERENT")
        if same_bits(one, other):
            equal += 1
            line = "  same bits"
        else:
            line = f"{rates['x']:>10.1e}{rates['objective']:>11.1e}{rates['passes']:>10.1e}{rates['gap']:>10.1e}"
        print("  ".join([f"{name:{width}}{line}", *notes]))
    print(
        f"{len(names)} problems: {equal} same bits, {len(names) - equal - len(alone)} not, "
        f"{len(alone)} on one side only; "
        f"{len(different)} with another status or an objective more than {TOLERANCE:g} apart; {failed} failed; "
        f"largest differences: " + ", ".join(f"{key} {rate:.1e}" for key, rate in largest.items())
    )
    return int(bool(different or alone))


def against(commit: str, words: str) -> int:
    """Solve all with the package of a commit and with that of this checkout, in turn, and compare."""
    with tempfile.TemporaryDirectory() as folder, checkout(commit) as tree:
        files = []
        for side, source in (("before", tree), ("after", ROOT)):
            print(f"{side}:", flush=True)
            files.append(Path(folder) / f"{side}.json")
            command = [sys.executable, __file__, "--write", str(files[-1]), "--only", words]
            subprocess.run(command, env=environment(source), check=False)
            package = Path(json.loads(files[-1].read_text(encoding="utf-8"))["about"]["package"])
            if not package.samefile(source / "src" / "skadmm"):
                raise RuntimeError(f"{side}: another skadmm than that of the checkout was imported")
        return compare(*files)


def main() -> int:
    """Run the selected command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="solve the problems, write the results to a file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="compare two files")
    parser.add_argument("--before", metavar="COMMIT", help="the commit to compare this checkout with")
    parser.add_argument("--list", action="store_true", help="the names of the problems")
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="problems with one of these words, separated by commas"
    )
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare)
    if options.before:
        return against(options.before, options.only)
    add_all()
    wanted = [name for name in TASKS if any(word in name for word in options.only.split(","))]
    if not wanted:
        parser.error(f"--only {options.only}: no problem has such a name")
    if options.list:
        print(*wanted, sep="\n")
        return 0
    if not options.write:
        parser.error("give --write, --compare, --before or --list")
    return int(write(options.write, wanted) > 0)


if __name__ == "__main__":
    sys.exit(main())
