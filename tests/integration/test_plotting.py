"""Figures: what is drawn is what the trace says, one style a method, and a plain message without matplotlib."""

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from skadmm import ALGORITHMS, Problem, compare, solve
from skadmm.operators import chain
from skadmm.plotting import STYLES, comparison, convergence, style_of
from skadmm.regularizers import L1

mpl.use("Agg")
METHODS = ["opg-admm", "sa-iu-admm"]


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    return Problem(X, X[:, 0] + rng.standard_normal(40) > 0, psi=L1(0.01), A=chain(6))


@pytest.fixture(scope="module")
def result(problem):
    return solve(problem, "sa-iu-admm", passes=5, step=0.1, rho=0.1)


@pytest.fixture(scope="module")
def frame(problem):
    return compare(problem, METHODS, repeats=3, passes=5, step=0.1, rho=0.1)


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def test_every_method_has_a_style_of_its_own():
    assert all(mpl.colors.is_color_like(style_of(name).color) for name in ALGORITHMS)
    assert len({(style.marker, style.line) for style in STYLES.values()}) == len(STYLES)
    assert len({style.color for style in STYLES.values()}) == len(STYLES)
    assert len({style.marker for style in STYLES.values()}) == len(STYLES)


def test_a_stranger_gets_the_same_style_every_time():
    assert style_of("my-admm") == style_of("my-admm")
    assert style_of("my-admm") != style_of("your-admm")
    assert all(mpl.colors.is_color_like(style_of(name).color) for name in ("my-admm", "your-admm", "sa-admm"))


def test_convergence_draws_the_trace(result):
    axes = convergence(result)
    trace = result.trace
    assert axes.shape == (2, 2)
    for column, x in enumerate(("passes", "seconds")):
        for row, y in enumerate(("objective", "feasibility")):
            drawn = line(axes[row, column], "sa-iu-admm")
            np.testing.assert_array_equal(drawn.get_xdata(), trace[x])
            np.testing.assert_array_equal(drawn.get_ydata(), trace[y])
    assert axes[0, 0].get_yscale() == "linear"
    assert axes[1, 0].get_yscale() == "log"
    axes[0, 0].figure.canvas.draw()


def test_the_average_is_drawn_where_it_is_another_point(problem, result):
    assert line(convergence(result)[0, 0], "sa-iu-admm, average iterate")
    second = solve(problem, "san-admm", passes=5)
    assert second.trace["objective_average"].equals(second.trace["objective"])
    assert [drawn.get_label() for drawn in convergence(second)[0, 0].lines] == ["san-admm"]


def test_convergence_with_a_known_optimum(result):
    axes = convergence(result, optimum=0.1)
    drawn = line(axes[0, 0], "sa-iu-admm")
    np.testing.assert_allclose(drawn.get_ydata(), result.trace["objective"] - 0.1)
    assert axes[0, 0].get_yscale() == "log"
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["objective − optimum", "‖Ax + By − c‖"]


def test_convergence_above_the_lowest_objective(result):
    axes = convergence(result, optimum="lowest")
    drawn = line(axes[0, 0], "sa-iu-admm").get_ydata()
    objective = result.trace["objective"].to_numpy()
    lowest = min(objective.min(), result.trace["objective_average"].min())
    np.testing.assert_allclose(drawn, np.maximum(objective - lowest, 1e-13 * lowest), rtol=1e-9)
    assert axes[0, 0].get_yscale() == "log"
    assert axes[0, 0].get_ylim()[0] == pytest.approx(np.sort(drawn)[1] / 3.0)
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["objective − lowest", "‖Ax + By − c‖"]
    with pytest.raises(ValueError, match="optimum='best': it takes a number, 'lowest' or None"):
        convergence(result, optimum="best")


def test_convergence_draws_the_gap_where_there_is_one(result):
    import dataclasses

    certified = dataclasses.replace(result, records=[record | {"gap": 0.1} for record in result.records])
    axes = convergence(certified)
    assert axes.shape == (3, 2)
    assert axes[1, 0].get_ylabel() == "relative duality gap"
    with pytest.raises(ValueError, match=r"axes has shape \(2, 2\): it takes \(3, 2\)"):
        convergence(certified, axes=axes[:2])


def test_two_runs_in_one_figure(problem, result):
    axes = result.plot()
    other = solve(problem, "opg-admm", passes=5, step=0.1, rho=0.1)
    assert convergence(other, axes=axes, label="another") is not None
    labels = axes[0, 0].get_legend_handles_labels()[1]
    assert {"sa-iu-admm", "another"} <= set(labels)


def test_comparison_draws_mean_and_range(frame):
    ax = comparison(frame, best=0.1)
    for name in METHODS:
        mine = frame[frame["method"] == name]
        drawn = line(ax, name)
        np.testing.assert_allclose(drawn.get_ydata(), mine.groupby("record")["objective"].mean() - 0.1)
        np.testing.assert_allclose(drawn.get_xdata(), mine.groupby("record")["passes"].mean())
        assert drawn.get_color() == STYLES[name].color
    low = frame.groupby(["method", "record"])["objective"].min() - 0.1
    bottoms = [path.get_paths()[0].vertices[:, 1].min() for path in ax.collections]
    np.testing.assert_allclose(bottoms, low.groupby("method").min())
    assert ax.get_yscale() == "log"


def test_lowest_is_of_all_repeats_or_of_each(frame):
    last = frame[frame["method"] == "sa-iu-admm"].groupby("repeat")["objective"].last()
    common = line(comparison(frame, band=None), "sa-iu-admm").get_ydata()[-1]
    assert common == pytest.approx(np.mean(last - frame["objective"].min()))
    apart = frame.copy()
    apart.attrs["test_size"] = 0.5
    each = line(comparison(apart, band=None), "sa-iu-admm").get_ydata()[-1]
    lowest = frame.groupby("repeat")["objective"].min()
    assert each == pytest.approx(np.mean(last - lowest))
    given = line(comparison(frame, best=lowest.to_dict(), band=None), "sa-iu-admm").get_ydata()[-1]
    assert given == pytest.approx(each)


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_run_with_the_lowest_value_does_not_stretch_the_axis(frame, repeats):
    """Its distance to itself is zero: the axis ends below the other points, whatever the rounding error of zero."""
    shown = frame[frame["repeat"] < repeats]
    ax = comparison(shown)
    means = np.concatenate([curve.get_ydata() for curve in ax.lines])
    points = np.sort(means[means > 1e-12])
    assert points[0] / 10 < ax.get_ylim()[0] < points[0]
    known = comparison(shown, best=float(shown["objective"].min()))
    assert known.get_ylim()[0] < 1e-12


def test_other_columns_are_drawn_as_they_are(frame):
    ax = comparison(frame, "seconds", "kkt", band="std", methods=["sa-iu-admm"])
    assert [entry.get_label() for entry in ax.lines] == ["sa-iu-admm"]
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "relative KKT residual"
    plain = comparison(frame, "run_passes", best=None, legend=False)
    assert plain.get_yscale() == "linear"
    assert plain.get_legend() is None


def test_axes_given_are_axes_returned(frame):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert comparison(frame, ax=ax) is ax


def test_incomplete_runs_are_left_out_and_counted(frame):
    broken = frame.copy()
    broken.loc[(broken["method"] == "opg-admm") & (broken["repeat"] == 0), "status"] = "diverged"
    broken.loc[broken["method"] == "sa-iu-admm", "status"] = "diverged"
    ax = comparison(broken)
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["opg-admm (2 of 3 runs)", "sa-iu-admm (none complete)"]
    failed = pd.concat([frame, pd.DataFrame([{"method": "x", "repeat": 0, "status": "failed"}])])
    assert "x (none complete)" in comparison(failed).get_legend_handles_labels()[1]


def test_a_run_that_stopped_early_keeps_its_last_value(frame):
    short = frame[~((frame["repeat"] == 0) & (frame["record"] > 2))]
    values = short[short["method"] == "opg-admm"].pivot(index="record", columns="repeat", values="objective").ffill()
    drawn = line(comparison(short, best=0.0), "opg-admm")
    np.testing.assert_allclose(drawn.get_ydata(), values.mean(axis=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "steps"}, "no column 'steps'"),
        ({"band": "box"}, "band='box'"),
        ({"best": "smallest"}, "best='smallest'"),
        ({"methods": ["sa-admm"]}, "methods has 'sa-admm'"),
    ],
)
def test_bad_arguments_are_named(frame, arguments, message):
    with pytest.raises(ValueError, match=message):
        comparison(frame, **arguments)


def test_without_matplotlib_the_message_names_the_extra(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skadmm\[plot\]'"):
        result.plot()


def test_importing_the_package_does_not_import_what_is_heavy():
    import subprocess

    code = "import sys, skadmm, skadmm.plotting; print(*{'matplotlib', 'pandas', 'sklearn', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_selection_of_the_step_is_in_the_legend_not_in_the_axis(problem):
    run = solve(problem, "sa-iu-admm", passes=3)
    assert run.selection_passes > 3
    ax = convergence(run)[0, 0]
    assert ax.lines[0].get_xdata().max() == pytest.approx(3.0)
    assert "passes to select the step" in ax.get_legend().get_texts()[0].get_text()
    compared = comparison(compare(problem, ["sa-iu-admm"], passes=3, repeats=1))
    assert compared.lines[0].get_xdata().max() == pytest.approx(3.0)
    assert "passes to select the step" in compared.get_legend().get_texts()[0].get_text()


CONES = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "full vision": np.eye(3),
}
"""How linear sRGB is seen (Machado, Oliveira and Fernandes, 2009)."""


@pytest.mark.parametrize("sight", CONES)
def test_colours_of_the_papers_methods_can_be_told_apart(sight):
    def seen(color):
        sRGB = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(sRGB <= 0.04045, sRGB / 12.92, ((sRGB + 0.055) / 1.055) ** 2.4)
        to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        xyz = to_xyz @ np.clip(np.array(CONES[sight]) @ linear, 0, 1) / [0.9505, 1.0, 1.089]
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])  # CIELAB

    names = ("sa-admm", "sa-iu-admm", "stoc-admm", "opg-admm", "rda-admm", "batch-admm", "batch-iu-admm")
    colors = [seen(style_of(name).color) for name in names]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colors, 2)) > 15
