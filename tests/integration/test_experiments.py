"""The reproduction: what it computes, what it keeps, and that being killed changes nothing."""

import contextlib
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skadmm.paper import PAPER_METHODS, PerData, Settings, claims, reproduce, tables
from skadmm.paper import settings as s
from skadmm.paper.collect import save_trace
from skadmm.paper.execute import TIME_COLUMNS
from skadmm.paper.prepare import Halves, graph_of, halves_of, register_source, scaled, unbounded_features
from skadmm.paper.runner import missing_tasks
from skadmm.paper.store import Store, write_atomically
from skadmm.paper.summary import passes_to, value_at
from skadmm.solvers import ALGORITHMS

KILLS = int(os.environ.get("SKADMM_KILLS", "3"))
SMALL = Settings(
    data=("digits",),
    figures=(1,),
    methods=("sa-iu-admm", "opg-admm", "batch-iu-admm"),
    repeats=PerData(2),
    passes=PerData(3.0),
    record_every=PerData(1.0),
    limit=200,
    protocols=("paper",),
    optimum=False,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return reproduce(SMALL, tmp_path_factory.mktemp("small"), command="skadmm reproduce <small> & more")


def without_times(path):
    """The bytes of a trace, time columns aside."""
    frame = pd.read_parquet(path).drop(columns=list(TIME_COLUMNS))
    kept = path.parent / "without-times.parquet"
    save_trace(frame, kept)
    return kept.read_bytes()


# -- what is left behind -----------------------------------------------------------------------------------


def test_everything_promised_is_there(small):
    names = {path.relative_to(small.folder).as_posix() for path in small.folder.rglob("*") if path.is_file()}
    wanted = {"trace.parquet", "summary.csv", "summary.md", "report.html", "settings.json"}
    wanted |= {
        f"figures/{name}.{kind}" for name in ("figure1", "figure1-seconds", "optimum") for kind in ("png", "svg")
    }
    assert wanted <= names
    assert not any(name.endswith(".part") for name in names)
    assert small.failures == []


def test_the_trace_is_tidy(small):
    trace = pd.read_parquet(small.folder / "trace.parquet")
    runs = trace.groupby(["data", "matrix", "problem", "method", "variant", "repeat"])
    assert runs.ngroups == 3 * 2
    for _, run in runs:
        assert run["record"].tolist() == list(range(len(run)))
        assert run["passes"].is_monotonic_increasing
        assert run["passes"].iloc[0] == 0
        assert run["passes"].iloc[-1] == pytest.approx(3, abs=0.05)
        assert (run["seconds"].diff().dropna() >= 0).all()
    assert (trace["objective"] >= trace["best"]).all()
    assert (trace["best"] >= trace["optimum"]).all()
    assert (trace.groupby("repeat")["best"].nunique() == 1).all()
    # Every run starts at x = 0, where the logistic loss is log 2.
    np.testing.assert_allclose(trace.loc[trace["record"] == 0, "objective"], np.log(2), rtol=1e-12)
    assert trace.loc[trace["record"] > 0, "test_loss"].notna().all()


def test_the_report_needs_nothing_else(small):
    page = (small.folder / "report.html").read_text()
    assert "http" not in page.lower()
    assert not re.search(r"<(link|script|img|iframe)[^>]*\s(src|href)=[\"'](?!data:)", page)
    assert "@import" not in page
    assert "<!--" not in page  # every place was filled
    assert "&lt;small&gt; &amp; more" in page  # the command, escaped
    assert 'name="viewport"' in page
    content = json.loads(re.search(r'id="content">(.*?)</script>', page, re.DOTALL).group(1))
    assert {line["method"] for line in content["lines"]} == set(SMALL.methods)
    for line in content["lines"]:
        assert len(line["passes"]) == len(line["seconds"]) == len(line["optimum"][0])
    assert "data:text/csv;base64," in page


def test_the_report_defines_its_terms_before_its_claims(small):
    page = (small.folder / "report.html").read_text()
    assert page.index("Relative suboptimality</dt>") < page.index('<section id="claims">')
    trained = small.trace["train_samples"].max()
    assert small.trace["selection_samples"].max() == min(500, trained)
    assert f"Samples in the subset: digits {min(500, trained)}." in page
    assert "500 samples" not in page or trained > 500


def test_the_report_announces_what_it_hides_and_has_a_dark_mode(small):
    page = (small.folder / "report.html").read_text()
    assert re.search(r'id="status"[^>]*role="status"[^>]*aria-live="polite"', page)
    assert "prefers-color-scheme: dark" in page
    content = json.loads(re.search(r'id="content">(.*?)</script>', page, re.DOTALL).group(1))
    assert all(re.fullmatch("#[0-9a-f]{6}", line["dark"]) for line in content["lines"])


@pytest.mark.parametrize(("chosen", "n", "text"), [(284, 284, "all 284 samples"), (500, 9000, "500 of 9,000 samples")])
def test_the_samples_of_the_selection_are_those_that_were_used(chosen, n, text):
    runs = pd.DataFrame({"selection_samples": [chosen], "train_samples": [n]})
    assert text in claims.selected_step(runs)
    assert claims.selected_step(runs.drop(columns="selection_samples")) == "the selected step"


def test_settings_and_versions_are_kept(small):
    about = json.loads((small.folder / "settings.json").read_text())
    assert about["settings"]["rho"] == 0.01
    assert about["versions"]["numpy"] == np.__version__


# -- resuming ----------------------------------------------------------------------------------------------


def _child(out, jobs):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_experiments as t; "
        "t.reproduce(t.SMALL, sys.argv[2], jobs=int(sys.argv[3]))"
    )
    arguments = [sys.executable, "-c", code, os.path.dirname(__file__), str(out), str(jobs)]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def test_killed_runs_resume_to_the_same_bytes(small, tmp_path):
    """SIGKILL at random moments; what is resumed equals what was never interrupted, to the byte."""
    rng = np.random.default_rng(int(time.time()))
    cells = tmp_path / "cells" / "runs"
    for kill in range(KILLS):
        before = len(list(cells.rglob("*.parquet")))
        process = _child(tmp_path, jobs=2 if kill == 0 else 1)
        deadline = time.monotonic() + 120
        while len(list(cells.rglob("*.parquet"))) <= min(before, 4) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.05)))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers with it, or they might still write
        process.wait()
    again = reproduce(SMALL, tmp_path)
    assert again.failures == []
    assert list(tmp_path.rglob("*.part")) == []
    assert without_times(tmp_path / "trace.parquet") == without_times(small.folder / "trace.parquet")


def test_a_finished_run_runs_nothing_again(small):
    stamps = {path: path.stat().st_mtime_ns for path in (small.folder / "cells").rglob("*.parquet")}
    reproduce(SMALL, small.folder, progress=lambda *_: pytest.fail("a cell was run again"))
    assert stamps == {path: path.stat().st_mtime_ns for path in (small.folder / "cells").rglob("*.parquet")}


@pytest.mark.parametrize(
    ("change", "runs", "graphs"),
    [
        ({}, 0, 0),
        ({"rho": 0.02}, 6, 0),
        ({"passes": PerData(4.0)}, 6, 0),
        ({"record_every": PerData(0.5)}, 6, 0),
        ({"batch_size": PerData(2)}, 6, 0),
        ({"strength": PerData(1e-4)}, 6, 0),
        ({"matrices": ("graph",)}, 6, 0),
        ({"figures": (3,)}, 6, 0),
        ({"figures": (1, 2)}, 0, 0),
        ({"repeats": PerData(3)}, 3, 1),
        ({"scaling": PerData("standard")}, 6, 2),
        ({"graph_alpha": 0.4}, 6, 2),
        ({"seed": 1}, 6, 2),
        ({"limit": 100}, 6, 2),
        ({"methods": ("sa-iu-admm", "rda-admm")}, 2, 0),
        ({"mu": 0.5}, 0, 0),
    ],
)
def test_changed_settings_never_meet_old_cells(small, change, runs, graphs):
    changed = replace(SMALL, **change)
    store = Store(small.folder / "cells")
    source = register_source(store, "digits", None, changed.limit)
    first, rest = missing_tasks(changed, store, {"digits": source})
    assert (len(rest), len(first)) == (runs, graphs)


def test_other_data_under_the_same_name_never_meets_old_cells(small):
    store = Store(small.folder / "cells")
    source = register_source(store, "digits", None, SMALL.limit)._replace(sha256="0" * 64)
    first, rest = missing_tasks(SMALL, store, {"digits": source})
    assert (len(rest), len(first)) == (6, 2)


def test_a_failed_write_leaves_nothing(tmp_path):
    def write(stream):
        stream.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "whole", write)
    assert list(tmp_path.iterdir()) == []


def test_a_cell_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    from skadmm.paper import execute

    usual = execute.run_cell

    def fragile(settings, store, source, cell):
        if cell.method == "opg-admm":
            raise RuntimeError("out of luck")
        usual(settings, store, source, cell)

    monkeypatch.setattr(execute, "run_cell", fragile)
    outcome = reproduce(replace(SMALL, repeats=PerData(1)), tmp_path)
    assert [failure.error for failure in outcome.failures] == ["RuntimeError: out of luck"]
    assert set(outcome.trace["method"]) == {"sa-iu-admm", "batch-iu-admm"}
    assert "out of luck" in (tmp_path / "report.html").read_text()


# -- the experiment is the paper's -------------------------------------------------------------------------


def test_table_1_is_the_papers():
    paper = {
        "sa-admm": ("average", "no", "yes"),
        "sa-iu-admm": ("average", "yes", "yes"),
        "stoc-admm": ("one sample", "no", "no"),
        "opg-admm": ("one sample", "yes", "no"),
        "rda-admm": ("average (history)", "yes", "no"),
        "batch-admm": ("all samples", "no", "yes"),
        "batch-iu-admm": ("all samples", "yes", "yes"),
    }
    rows = {row.pop("method"): tuple(row.values()) for row in tables.update_rules()}
    assert rows == paper
    assert set(PAPER_METHODS) == set(paper) <= set(ALGORITHMS)


def test_the_papers_settings_are_the_defaults():
    default = Settings(data=("a9a",))
    assert default.rho == 0.01
    assert [default.strength[name] for name in ("a9a", "covertype", "quantum")] == [1e-5] * 3
    assert [default.strength[name] for name in ("rcv1", "sido", "20ng-ltc", "hiv-path4932")] == [1e-4] * 4
    assert default.repeats["a9a"] == 10
    assert set(default.methods) >= set(PAPER_METHODS)
    assert default.problems == ("convex", "strong")


def test_halves_are_halves_and_the_graph_sees_only_training(tmp_path):
    store = Store(tmp_path)
    source = register_source(store, "digits", None, 200)
    first, second = (halves_of(SMALL, store, source, repeat) for repeat in (0, 1))
    assert first.X.shape == first.X_test.shape == (100, 64)
    rows = {row.tobytes() for row in first.X}
    assert not rows & {row.tobytes() for row in first.X_test}
    assert rows != {row.tobytes() for row in second.X}
    graph = graph_of(SMALL, store, source, 0)
    assert graph.G.shape[1] == 64
    np.testing.assert_array_equal(graph.G.sum(axis=1), np.zeros(graph.G.shape[0]))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scaling", s.SCALINGS)
def test_scaling_is_learnt_on_the_training_half(scaling, sparse):
    rng = np.random.default_rng(0)
    dense = rng.random((30, 4)) * [1, 100, 0.01, 0] + [0, 5, 0, 0]
    X, other = dense[:20], dense[20:]
    if sparse:
        X, other = scipy.sparse.csr_array(X), scipy.sparse.csr_array(other)
    new, new_other = (p.toarray() if scipy.sparse.issparse(p) else p for p in scaled(X, other, scaling))
    if scaling == "standard":
        np.testing.assert_allclose(new[:, :3].mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(new[:, :3].std(axis=0), 1)
    elif scaling == "minmax":
        np.testing.assert_allclose([new[:, :3].min(axis=0), new[:, :3].max(axis=0)], [[0] * 3, [1] * 3], atol=1e-12)
    elif scaling == "unit-rows":
        np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1)
        np.testing.assert_allclose(np.linalg.norm(new_other, axis=1), 1)
    elif scaling == "maxabs":
        np.testing.assert_allclose(np.abs(new[:, :3]).max(axis=0), 1)
    else:
        np.testing.assert_array_equal(new, dense[:20])
    assert np.isfinite(new_other).all()
    assert not np.allclose(new_other[:, 0].std(), 1, atol=1e-9)


def test_features_without_a_minimiser_are_counted():
    X = scipy.sparse.csr_array(np.array([[1.0, 1, 0, 2], [0, 1, 0, 1], [1, 0, 0, -1], [1, 0, 0, 3]]))
    target = np.array([1.0, 1.0, -1.0, -1.0])
    G = scipy.sparse.csr_array((1, 4))  # no edge at all
    # Feature 1 occurs with one label only; feature 2 never occurs; 0 and 3 are mixed.
    assert unbounded_features(Halves(X, target, X, target), G) == 1
    joined = scipy.sparse.csr_array(np.array([[0.0, 1, -1, 0]]))
    assert unbounded_features(Halves(X, target, X, target), joined) == 0


# -- the numbers -------------------------------------------------------------------------------------------


def test_passes_to_a_target_are_those_after_which_it_stays():
    passes = np.arange(6.0)
    values = np.array([1, 0.005, 0.02, 0.009, 0.004, 0.001])
    assert passes_to(passes, values, 1e-2) == 3
    assert passes_to(passes, values, 1e-3) == 5
    assert passes_to(passes, values, 1e-4) == np.inf
    assert passes_to(passes, np.array([0.001] * 5 + [np.nan]), 1e-2) == np.inf


def test_a_value_at_a_checkpoint_is_the_newest_by_then():
    passes = np.array([0, 1.0001, 2.0001, 3.5])
    values = np.array([4.0, 3.0, 2.0, 1.0])
    assert value_at(passes, values, 1.0) == 3.0
    assert value_at(passes, values, 3.0) == 2.0
    assert np.isnan(value_at(passes, values, 10.0))


def _ranked(order):
    """A trace in which method k of `order` is at 10^-(rank) times 2^-passes."""
    rows = []
    for problem, power in (("convex", 1), ("strong", 2)):
        for rank, method in enumerate(order):
            for record in range(11):
                value = (2.0 ** -(len(order) - rank) * 2.0**-record) ** power if record else 0.6
                rows.append({"data": "made", "matrix": "stacked", "problem": problem, "method": method,
                             "variant": "paper", "repeat": 0, "record": record, "passes": float(record),
                             "seconds": float(record), "objective": 1 + value, "objective_average": 1 + value,
                             "suboptimality": value, "suboptimality_average": value, "test_loss": 0.1})  # fmt: skip
    return pd.DataFrame(rows)


def test_claims_hold_where_they_are_true_and_not_where_they_are_false():
    settings = Settings(data=("made",), methods=PAPER_METHODS, passes=PerData(10.0), protocols=("paper",))
    true = {v.claim: v.verdict for v in claims.judge(_ranked(PAPER_METHODS), settings)}
    assert true == dict.fromkeys(claims.STATEMENTS, "holds")
    false = {v.claim: v.verdict for v in claims.judge(_ranked(PAPER_METHODS[::-1]), settings)}
    assert false == dict.fromkeys(claims.STATEMENTS, "does not hold")
    swapped = ("sa-admm", "sa-iu-admm", *PAPER_METHODS[2:])
    mixed = {v.claim: v.verdict for v in claims.judge(_ranked(swapped), settings)}
    assert mixed["order"] == mixed["order-strong"] == "does not hold"
    assert mixed["ahead"] == mixed["ahead-strong"] == mixed["slowest"] == "holds"


def test_level_is_not_ahead_and_failures_name_their_checkpoints():
    settings = Settings(data=("made",), methods=PAPER_METHODS, passes=PerData(10.0), protocols=("paper",))
    trace = _ranked(PAPER_METHODS)
    values = trace.loc[trace["method"] == "sa-iu-admm", ["problem", "record", "suboptimality"]]
    level = (trace["method"] == "sa-admm") & (trace["record"] > 4)
    known = values.set_index(["problem", "record"])["suboptimality"]
    trace.loc[level, "suboptimality"] = [
        1.04 * known[key] for key in zip(trace.loc[level, "problem"], trace.loc[level, "record"], strict=True)
    ]
    late = (trace["method"] == "opg-admm") & (trace["record"] == 10) & (trace["problem"] == "convex")
    trace.loc[late, "suboptimality"] = 0.0
    found = {v.claim: v for v in claims.judge(trace, settings)}
    assert found["order"].text == "holds in part (33%); level at 5, 10"
    assert found["ahead"].text == "holds in part (67%); behind at 10"
    assert found["ahead-strong"].text == "holds"
    rows = {row["problem"]: row for row in claims.leads(trace, settings)}
    assert rows["strong"]["SA ÷ SA-IU @5"] == "1.04"
    assert rows["strong"]["SA ÷ SA-IU @10"] == "1"  # both below what objectives resolve


def test_protocols_differ_in_the_table_and_in_nothing_else(tmp_path):
    methods = ("sa-iu-admm", "sa-admm", "opg-admm", "batch-admm")
    settings = replace(SMALL, methods=methods, repeats=PerData(1), limit=None, protocols=tuple(s.PROTOCOLS))
    outcome = reproduce(settings, tmp_path)
    assert outcome.failures == []
    trace = outcome.trace
    store = Store(tmp_path / "cells")
    n = halves_of(settings, store, register_source(store, "digits", None, None), 0).X.shape[0]
    runs = dict(list(trace.groupby(["method", "variant"])))
    assert set(runs) == {(method, "paper") for method in methods} | {
        (method, protocol) for method in ("sa-iu-admm", "sa-admm") for protocol in ("zero+n", "restored")
    }
    for method in ("sa-iu-admm", "sa-admm"):
        literal, zero, restored = (runs[method, protocol] for protocol in s.PROTOCOLS)
        assert literal["step_scale"].unique() == [1.0]
        assert zero["step_scale"].unique() == restored["step_scale"].unique() == [n / 500]
        # After one pass, which fills the literal table, the paper's protocol has not moved; zero+n has.
        assert literal.loc[literal["passes"].round() == 1, "objective"].iloc[0] == pytest.approx(np.log(2), rel=1e-3)
        assert zero.loc[zero["passes"].round() == 1, "objective"].iloc[0] < 0.9 * np.log(2)
    assert {verdict.variant for verdict in outcome.verdicts} == set(s.PROTOCOLS)
    page = (tmp_path / "report.html").read_text()
    plain = re.sub("</?span[^>]*>", "", page)
    for text in s.PROTOCOLS.values():
        assert html.escape(text) in plain
    content = json.loads(re.search(r'id="content">(.*?)</script>', page, re.DOTALL).group(1))
    labels = [line["label"] for line in content["lines"]]
    assert labels == ["SA-ADMM", "SA-ADMM, zero+n", "SA-IU-ADMM", "SA-IU-ADMM, zero+n", "OPG-ADMM", "batch-ADMM",
                      "SA-ADMM, restored", "SA-IU-ADMM, restored"]  # fmt: skip
    assert (tmp_path / "figures" / "figure1-zero-n.png").is_file()


def test_a_data_set_under_a_scaling_of_its_own(tmp_path):
    store = Store(tmp_path)
    plain, scaled_too = (register_source(store, name, None, 200) for name in ("digits", "digits@unit-rows"))
    assert (plain.name, scaled_too.name) == ("digits", "digits@unit-rows")
    settings = replace(SMALL, data=("digits", "digits@unit-rows"), strength=PerData(1e-5, {"digits": 1e-3}))
    assert [settings.scaling_of(name) for name in settings.data] == ["none", "unit-rows"]
    assert settings.strength["digits@unit-rows"] == 1e-3
    first, second = (halves_of(settings, store, source, 0) for source in (plain, scaled_too))
    np.testing.assert_allclose(second.X, first.X / np.linalg.norm(first.X, axis=1, keepdims=True))
    assert tables.data_label("covertype@minmax") == "covertype, min-max"
    assert s.base_name("me@home.svm") == "me@home.svm"


def test_markdown_and_numbers_are_readable():
    assert tables.markdown([{"a": 1, "b": "x|y"}]) == "| a | b |\n|---|---|\n| 1 | x\\|y |"
    assert [tables.shown(v) for v in (0.00012, 12345.6, 1493.2, 0.5, float("inf"), float("nan"), None)] == [
        "1.2e-4", "1.2e4", "1,493", "0.5", "∞", "–", "–",
    ]  # fmt: skip


def test_wrong_settings_are_refused():
    for change, message in [
        ({"figures": (4,)}, "figure=4"),
        ({"matrices": ("laplacian",)}, "matrix='laplacian'"),
        ({"scaling": PerData("log")}, "scaling='log'"),
        ({"protocols": ("paper", "one")}, "protocol='one'"),
        ({"protocols": ("zero+n",)}, "'paper' must be among them"),
        ({"methods": ("sa-adm",)}, "Did you mean 'sa-admm'"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            replace(SMALL, **change)
    with pytest.raises(ValueError, match="iterate='first'"):
        reproduce(SMALL, io.StringIO().getvalue() or "unused", iterate="first")
