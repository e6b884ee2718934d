"""docs/benchmarks.md from benchopt's results: tables, figures, versions, memory.

    python benchmarks/generalized_lasso/page.py --run [--timeout 60]    run everything, then write the page
    python benchmarks/generalized_lasso/page.py                         write it from the results in outputs/
    python benchmarks/generalized_lasso/page.py --run --only pinned     in a separate environment: lightning, prox_tv

Every GPE is a ratio of times of one run: its unit is measured in the process that timed the solver. Solvers are ranked
and compared by GPE, which for two of one run is the same as by seconds.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BY_HAND = "<!-- what follows is not made by benchmarks/generalized_lasso/page.py -->"
OUTPUTS, IMAGES, PAGE = HERE / "outputs", ROOT / "docs" / "images", ROOT / "docs" / "benchmarks.md"
LEVELS = (1e-3, 1e-6)
FLOOR = 1e-9
GROUPS = {
    "graph": ["a9a", "qm9mu", "covtype", "hiv-path4932", "20ng-ltc"],
    "special": ["chain", "lasso", "groups", "a9a[penalty=l1]", "20ng-ltc[penalty=l1]"],
}
GROWTH = {
    "n": "simulated[n=[1000,4000,16000],d=50]",
    "d": "simulated[n=4000,d=[25,100,400]]",
}
GROWING = ("skadmm-auto", "condat-vu[balance=1.0]", "lbfgs-smoothed[width=1e-05]")
PACKAGES = ("skadmm", "benchopt", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "scs", "ecos", "copt",
            "regreg", "pyproximal", "skglm", "celer", "adelie", "cyanure", "spams-bin", "sklearn-contrib-lightning",
            "prox_tv")  # fmt: skip
PINNED = "special-pinned"
PINNED_SOLVERS = ("lightning-saga", "lightning-cd", "lightning-fista", "prox-tv-fista")
OURS = {
    "skadmm-auto": "#CC79A7",
    "skadmm-san-admm": "#882255",
    "skadmm-sa-iu-admm": "#56B4E9",
    "skadmm-saga-iu-admm": "#117733",
    "skadmm-svrg-iu-admm": "#009E73",
    "skadmm-asvrg-iu-admm": "#88CCAA",
}
OTHERS = (("#D55E00", "--"), ("#E69F00", "-."), ("#222222", ":"), ("#0072B2", "--"), ("#8C510A", "-."))
"""Colours and dashes of the best other solvers."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def run(timeout: float, only: list[str]) -> None:
    """Run everything with benchopt, one thread per solver, and measure the memory of each in its own process."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    common = ["--no-plot", "--no-html", "--no-display", "--no-cache", "-r", "1", "-n", "100", "--timeout", str(timeout)]
    jobs = GROUPS | {f"growth-{axis}": [data] for axis, data in GROWTH.items()}
    if "pinned" in only:
        only, jobs = [PINNED], {PINNED: GROUPS["special"]}
    for name, data in jobs.items():
        if only and name not in only:
            continue
        chosen = PINNED_SOLVERS if name == PINNED else GROWING if name.startswith("growth") else ()
        solvers = [part for solver in chosen for part in ("-s", solver)]
        sets = [part for one in data for part in ("-d", one)]
        (OUTPUTS / f"{name}.parquet").unlink(missing_ok=True)  # or benchopt would write beside it
        command = [sys.executable, "-m", "benchopt", "run", str(HERE), *sets, *solvers, *common, "--output", name]
        subprocess.run(command, check=True, env=environment)
    if PINNED in only:
        about = {"python": platform.python_version(), "packages": versions(), "timeout": timeout}
        (OUTPUTS / f"{PINNED}.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    if not only or "memory" in only:
        subprocess.run([sys.executable, str(HERE / "memory.py")], check=True, env=environment)


def curves(names: list[str]) -> pd.DataFrame:
    """The results of some groups as one table, each with the time of its own gradient as unit."""
    there = [name for name in names if (OUTPUTS / f"{name}.parquet").exists()]
    found = [pd.read_parquet(OUTPUTS / f"{name}.parquet").assign(run=name) for name in there]
    if not found:
        raise SystemExit(f"no results of {', '.join(names)} in {OUTPUTS}: run with --run first")
    frame = pd.concat(found, ignore_index=True)
    frame = frame.rename(columns={"objective_suboptimality": "suboptimality", "objective_gap": "gap"})
    units = frame.groupby(["run", "dataset_name"])["objective_gradient_seconds"]
    frame["gpe"] = frame["time"] / units.transform("min")  # measured when the machine was least busy
    low = frame["gap"].min()
    if low < -1e-9:
        worst = frame.loc[frame["gap"].idxmin()]
        raise SystemExit(f"{worst['solver_name']} is below the certified bound on {worst['dataset_name']}: {low:.1e}")
    return frame


def reached(frame: pd.DataFrame) -> pd.DataFrame:
    """For each data set and solver: seconds and GPE to each level (NaN where it was not reached), and the best."""
    rows = []
    for (data, solver), curve in frame.groupby(["dataset_name", "solver_name"], sort=False):
        row: dict[str, Any] = {"data": data, "solver": solver, "best": max(curve["suboptimality"].min(), 0.0)}
        for level in LEVELS:
            below = curve[curve["suboptimality"] <= level]
            first = below.loc[below["time"].idxmin()] if len(below) else None
            row[f"seconds {level:.0e}"] = np.nan if first is None else first["time"]
            row[f"gpe {level:.0e}"] = np.nan if first is None else first["gpe"]
        rows.append(row)
    return pd.DataFrame(rows)


def certified(frame: pd.DataFrame) -> str:
    """The certified accuracy of the optimum of one data set, in words."""
    value, gap = frame["objective_value"], frame["gap"]
    optimum = value / (1.0 + frame["suboptimality"])
    proved = float(((optimum - value * (1.0 - gap)) / optimum).abs().min())
    return "the optimum has no certificate" if np.isnan(proved) else f"the optimum is certified to {proved:.0e}"


def is_ours(solver: str) -> bool:
    return solver.startswith("skadmm")


def summary(table: pd.DataFrame) -> list[str]:
    """Our best against the best of the others, data set by data set."""
    lines = ["| data | to | ours | s | GPE | best other | s | GPE | ratio |", "|---|---|---|---|---|---|---|---|---|"]
    for data, rows in table.groupby("data", sort=False):
        for level in LEVELS:
            seconds, column = f"seconds {level:.0e}", f"gpe {level:.0e}"
            cells, times = [], []
            for mine in (True, False):
                some = rows[[is_ours(name) == mine for name in rows["solver"]]].dropna(subset=[column])
                if some.empty:
                    cells += ["none", "–", "–"]
                    times.append(np.nan)
                    continue
                best = some.loc[some[column].idxmin()]
                cells += [f"`{best['solver']}`", shown(best[seconds]), shown(best[column])]
                times.append(best[column])
            ratio = times[1] / times[0]
            said = f"{shown(ratio)}×"
            if np.isnan(times[1]):
                said = "none reached it" if np.isnan(times[0]) else "no other reached it"
            lines.append(f"| {title(data)} | {level:.0e} | " + " | ".join(cells) + f" | {said} |")
    return lines


def full_table(rows: pd.DataFrame) -> list[str]:
    """Every solver on one data set, the fastest to the tight level first."""
    rows = rows.sort_values([f"gpe {LEVELS[1]:.0e}", f"gpe {LEVELS[0]:.0e}", "best"])
    lines = ["| solver | s to 1e-3 | GPE | s to 1e-6 | GPE | best seen |", "|---|---|---|---|---|---|"]
    for _, row in rows.iterrows():
        cells = [shown(row[f"{unit} {level:.0e}"]) for level in LEVELS for unit in ("seconds", "gpe")]
        lines.append(f"| `{row['solver']}` | " + " | ".join(cells) + f" | {row['best']:.0e} |")
    return lines


def shown(number: float) -> str:
    if np.isnan(number):
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.0f}"


def title(data: str) -> str:
    """A data set's name without the parameters that are the same everywhere."""
    name, _, inside = data.partition("[")
    parts = [part for part in inside.rstrip("]").split(",") if part]
    dull = ("strength=", "share=", "penalty=graph", "n=5000", "d=500")
    kept = [part for part in parts if not part.startswith(dull)]
    return name + (f" ({', '.join(kept)})" if kept else "")


def file_name(data: str) -> str:
    return "benchmarks-" + "".join(c if c.isalnum() else "-" for c in title(data)).strip("-") + ".png"


def best_others(frame: pd.DataFrame, count: int = len(OTHERS)) -> list[str]:
    """The other solvers that were the fastest to the tight level, then to the loose one, then the most accurate."""
    table = reached(frame)
    table = table[[not is_ours(name) for name in table["solver"]]]
    ranked = table.sort_values([f"gpe {LEVELS[1]:.0e}", f"gpe {LEVELS[0]:.0e}", "best"])
    return ranked["solver"].head(count).tolist()


def draw(frame: pd.DataFrame, data: str) -> None:
    """Suboptimality against seconds; ours and the five best others in colour, the rest grey."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    named = best_others(frame)
    rest = [name for name in frame["solver_name"].unique() if not is_ours(name) and name not in named]
    ours = sorted(name for name in frame["solver_name"].unique() if is_ours(name))
    for solver in [*rest, *named, *ours]:
        curve = frame[frame["solver_name"] == solver].sort_values("time")
        best = curve["suboptimality"].clip(lower=FLOOR).cummin()
        if is_ours(solver):
            style = {"color": OURS[solver.partition("[")[0]], "lw": 2.2, "marker": "o", "ms": 3.5, "label": solver}
        elif solver in named:
            color, dash = OTHERS[named.index(solver)]
            style = {"color": color, "lw": 1.4, "ls": dash, "marker": ".", "ms": 3.5, "label": solver}
        else:
            text = f"{len(rest)} other solver{'s' if len(rest) > 1 else ''}" if solver == rest[0] else None
            style = {"color": "#C4C9CE", "lw": 0.8, "zorder": 1, "label": text}
        # Between two points nothing was measured.
        axes.plot(curve["time"].clip(lower=1e-5), best, drawstyle="steps-post", **style)
    for level in LEVELS:
        axes.axhline(level, color="#BBBBBB", lw=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="relative suboptimality", title=title(data))
    axes.set_ylim(FLOOR / 2, 3)
    axes.set_xlim(left=1e-3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / file_name(data), dpi=110)
    plt.close(figure)


def draw_growth(axis: str) -> list[str]:
    """Seconds to 1e-6 as n or d grows; the table's lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    frame = curves([f"growth-{axis}"])
    table = reached(frame)
    sizes = frame.groupby("dataset_name")[f"p_dataset_{axis}"].first().astype(int)
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    lines = [
        f"| solver | {' | '.join(f'{axis} = {size:,}' for size in sorted(sizes))} |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for solver, rows in table.groupby("solver", sort=False):
        points = sorted((int(sizes[data]), seconds) for data, seconds in zip(rows["data"], rows["seconds 1e-06"],
                                                                          strict=True))  # fmt: skip
        x, y = zip(*points, strict=True)
        mine = is_ours(solver)
        axes.plot(
            x, y, "o-" if mine else "s--", lw=2.2 if mine else 1.2, color="#CC79A7" if mine else None, label=solver
        )
        lines.append(f"| `{solver}` | " + " | ".join(shown(value) for value in y) + " |")
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds to 1e-6")
    axes.set_xticks(sorted(sizes), [f"{size:,}" for size in sorted(sizes)])
    axes.minorticks_off()
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(IMAGES / f"benchmarks-growth-{axis}.png", dpi=110)
    plt.close(figure)
    return lines


def versions() -> str:
    known = []
    for package in PACKAGES:
        try:
            known.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(known)


def pinned() -> dict[str, Any] | None:
    """Versions and time limit of the run in a separate environment; None where there was none."""
    about = OUTPUTS / f"{PINNED}.json"
    if not (about.exists() and (OUTPUTS / f"{PINNED}.parquet").exists()):
        return None
    return json.loads(about.read_text(encoding="utf-8"))


def one_gradient(runs: pd.DataFrame) -> str:
    """The unit of GPE on one data set, in each run that it was in."""
    units = runs.groupby("run", sort=False)["objective_gradient_seconds"].min()
    where = {name: " (lightning and prox_tv)" if name == PINNED else "" for name in units.index}
    return ", ".join(f"{1e3 * unit:.3g} ms{where[name]}" for name, unit in units.items())


def page(timeout: float) -> str:
    """The text of the page."""
    frame = curves([*GROUPS, PINNED])
    table = reached(frame)
    note, apart = OUTPUTS / "note.txt", pinned()
    parts = [
        INTRODUCTION.format(timeout=timeout),
        APART.format(**apart) if apart else NOT_RUN,
        note.read_text(encoding="utf-8") if note.exists() else "",
        "## Our best against the best other\n",
        "Ratios are of GPE; above 1 ours was faster. `condat-vu`, `fista-smoothed` and `lbfgs-smoothed` are\n"
        "plain baselines written for this benchmark; they count as others.\n",
        *summary(table),
        SHORT,
        "## Every solver\n",
    ]
    for data, rows in table.groupby("data", sort=False):
        runs = frame[frame["dataset_name"] == data]
        draw(runs, data)
        parts += [
            f"### {title(data)}\n",
            f"One gradient: {one_gradient(runs)}; {certified(runs)}.\n",
            *full_table(rows),
            f"\n![Suboptimality against seconds on {title(data)}](images/{file_name(data)})\n",
        ]
    grown = [axis for axis in GROWTH if (OUTPUTS / f"growth-{axis}.parquet").exists()]
    if grown:
        parts.append("## How the cost grows\n\nSeconds to 1e-6, simulated data, logistic loss, a ring of features.\n")
        for axis in grown:
            parts += [*draw_growth(axis), f"\n![Seconds as {axis} grows](images/benchmarks-growth-{axis}.png)\n"]
    memory = OUTPUTS / "memory.json"
    if memory.exists():
        used = json.loads(memory.read_text())
        parts += [
            "## Peak memory\n",
            "Peak memory of a run beyond the data, in MB, each in its own process, compilation included; "
            "`skadmm` includes the rescaled copy of X where it preconditions.\n",
            "| solver | " + " | ".join(used) + " |", "|---" * (len(used) + 1) + "|",
        ]  # fmt: skip
        for solver in dict.fromkeys(name for by_solver in used.values() for name in by_solver):
            cells = [f"{used[data][solver]:,.0f}" if solver in used[data] else "–" for data in used]
            parts.append(f"| `{solver}` | " + " | ".join(cells) + " |")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    parts.append(f"\n## Versions\n\n{versions()}; {machine}; one thread for every solver.")
    if apart:
        parts.append(f"\nFor lightning and prox_tv: {apart['packages']}; Python {apart['python']}.")
    return "\n".join(parts) + "\n"


SHORT = """
The aim was ten times the speed of any other solver to 1e-6 on the five graphs and three times to 1e-3, and at most
twice the time of the best specialised solver on a chain and where A = I. Ratios vary by a fifth from run to run, and
two of them are near their aims: a9a to 1e-3 (3.0 and 4.3 in two runs) and covtype to 1e-6 (8.0 and 10). Where the time
goes, `python benchmarks/generalized_lasso/where.py` shows:

- **a9a, 1e-3.** With λ = 1e-5 the gap is uninformative before slopes are accurate to about 1e-5: after the second
  evaluation of all samples the suboptimality is 1e-4 and the gap still 0.9, after the third 1e-7 and 0.25. So no
  tolerance ends a run at 1e-3, although two passes reach it. L-BFGS on the smoothed penalty passes 1e-3 on its way.
- **covtype, 1e-6.** Of the time, a third is the first pass, a quarter evaluations, a seventh the Hessian H, and a ninth
  the recording of the first and last point. L-BFGS is strong where n ≫ d and columns are standardised.
- **chain.** The exact proximal steps of prox_tv in a FISTA and of skadmm take the same time in seconds; one gradient,
  the unit of GPE, took longer in the environment that prox_tv needs.
"""

INTRODUCTION = """# Benchmarks

Every solver minimises (1/n) Σ ℓ(aᵢ·x, bᵢ) + λ‖Ax‖₁. The value is computed by the benchmark from the solver's x, never
taken from the solver; the optimum is that of SAN-ADMM, run to a relative gap of 1e-10, and its certified accuracy is
given with each data set (`chain` has only a KKT residual). Suboptimality is known to that accuracy. A solver that
minimises a different objective never reaches these accuracies. One that does not apply to a data set is skipped, with a
reason that `benchopt run` prints.

Each real data set is reduced to half of its rows. A = [G; I], where G has a row per edge of the graph learnt by sparse
inverse covariance selection; with `penalty=l1`, A = I. λ is 1e-5 for a9a, qm9mu and covtype and 1e-4 for the other two.
`chain` is the fused lasso along a chain and `lasso` is A = I, both simulated with n = 5,000 and d = 500. Each solver
had {timeout:g} s of wall time per data set for all points of its curve together; "–" means that the level was not
reached in that time. GPE is a time in units of one full gradient on the same data in the same run. `skadmm-auto` is
`solve(problem, tol=…)` as a user calls it, its certificate included; `skadmm-san-admm` is the same method with a number
of passes instead of a tolerance, as others are given a number of iterations; the other `skadmm` rows are first-order
methods, with step selection and recording included in the time. Translation into a cone program, bounds of the
curvature and compilation are excluded for all solvers. Under the squared loss `scikit-learn` is the coordinate descent
of `Lasso`, whatever the solver's name.

    pip install 'skadmm[bench]'  # and the packages to compare with
    benchopt run benchmarks/generalized_lasso -d a9a --timeout 60  # one data set
    python benchmarks/generalized_lasso/page.py --run --timeout {timeout:g}  # all of it
"""

APART = """The `lightning` and `prox-tv` rows are from a separate run, {timeout:g} s per data set, in an environment
with older packages. Their GPE are relative to the gradient of that run: compare them with the others by GPE, as the
ratios do, rather than by seconds. `prox-tv-fista` is a FISTA written for this benchmark around the proximal step of
prox_tv.
"""

NOT_RUN = """lightning and prox_tv were not run: they need older packages, in a separate environment, which
`benchmarks/generalized_lasso/README.md` describes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run the benchmark first")
    parser.add_argument(
        "--only", nargs="*", default=[], help=f"with --run: some of {', '.join(GROUPS)}, growth-n, …, or pinned alone"
    )
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a solver on a data set")
    options = parser.parse_args()
    if options.run:
        run(options.timeout, options.only)
    if "pinned" in options.only:  # an environment without the others' packages: the page is written elsewhere
        print(OUTPUTS / f"{PINNED}.parquet")
        return
    _, mark, kept = PAGE.read_text(encoding="utf-8").partition(BY_HAND)
    PAGE.write_text(f"{page(options.timeout)}\n{mark}{kept}", encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
