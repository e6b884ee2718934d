"""A search or a path that is killed continues with the strength at which it stood, to the bits of one that was not."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import searches
from runs import Killed

from skadmm import CheckpointError, Problem, load, path
from skadmm.backends.writer import write_blocks
from skadmm.cli import run as command
from skadmm.estimators import ESTIMATORS, _checkpoint
from skadmm.operators import chain, stack
from skadmm.regularizers import L1, ElasticNet, GroupL2
from skadmm.run import path_record

KILLS = int(os.environ.get("SKADMM_KILLS", "2"))
N, D = 90, 6
GROUPS = [[0, 1, 2], [3, 4, 5]]
RNG = np.random.default_rng(8)
X = RNG.standard_normal((N, D))
NUMBERS = X @ np.array([1.0, 1.0, 1.0, 0.0, 0.0, -1.0]) + 0.5 * RNG.standard_normal(N)
CLASSES = np.digitize(NUMBERS, [-1.0, 1.0])
ALPHAS = np.geomspace(0.3, 0.005, 7)


@pytest.fixture
def dies(monkeypatch):
    """A function that lets a program die after some strengths; it returns how many were solved."""

    def until_death(strengths, program):
        solved = []
        usual = path_record.PathRecord.add

        def add(self, *arguments):
            if strengths is not None and len(solved) >= strengths:
                raise Killed
            solved.append(1)
            usual(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(_checkpoint, "SECONDS", 0.0)
            patch.setattr(path_record.PathRecord, "add", add)
            # SIGKILL leaves no time for a last writing, and no thread alive.
            patch.setattr(_checkpoint.SearchCheckpoint, "close", lambda search: setattr(search, "closed", True))
            with contextlib.suppress(Killed):
                program()
        return len(solved)

    return until_death


# -- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("certify", [True, False], ids=["certified", "rough"])
@pytest.mark.parametrize("storage", ["memory", "folder"])
@pytest.mark.parametrize(
    ("psi", "A"),
    [(L1(1.0), stack(chain(D), "identity")), (GroupL2(1.0, GROUPS), None), (ElasticNet(1.0, 0.5), None)],
    ids=["fused", "groups", "elastic-net"],
)
@pytest.mark.parametrize("loss", ["squared", "logistic", "quantile"])
def test_paths_resume_to_the_same_bits(loss, psi, A, storage, certify, dies, tmp_path):
    target = (CLASSES > 0).astype(float) if loss == "logistic" else NUMBERS
    table = X
    if storage == "folder":
        table = tmp_path / "rows"
        write_blocks(table, [(X[:40], target[:40]), (X[40:], target[40:])])
    problem = Problem(table, target, loss=loss, psi=psi, A=A)
    options = {"tol": 1e-9, "certify": certify}
    whole = path(problem, ALPHAS, **options)
    kept = {"checkpoint": tmp_path / "p", "checkpoint_every": 0}
    for strengths in (2, 1):
        dies(strengths, lambda: path(problem, ALPHAS, **kept, **options))
    again = []
    found = path(problem, ALPHAS, **kept, **options, callback=lambda k, _: again.append(k))
    # Strengths that are solved together, with one Gram matrix, begin again together.
    assert again[0] == (0 if loss == "squared" and isinstance(psi, GroupL2) else 3)
    for name in ("x", "losses", "gaps", "dof", "alphas"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)
    assert found.statuses == whole.statuses
    finished = path(problem, ALPHAS, **kept, **options, callback=lambda *_: pytest.fail("it is in the file"))
    np.testing.assert_array_equal(finished.x, whole.x)


def test_long_stretches_resume_between_them(dies, tmp_path):
    alphas = np.geomspace(0.5, 1e-3, 60)
    problem = Problem(X, NUMBERS, loss="squared", psi=L1(1.0))
    kept = {"checkpoint": tmp_path / "p", "checkpoint_every": 0}
    assert dies(40, lambda: path(problem, alphas, **kept)) == 40
    solved = dies(None, lambda: path(problem, alphas, **kept))
    assert solved < 60
    np.testing.assert_array_equal(path(problem, alphas, **kept).x, path(problem, alphas).x)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"alphas": ALPHAS[:-1]}, "alphas"),
        ({"tol": 1e-5}, "tol"),
        ({"certify": False}, "certify"),
        ({"problem": Problem(X, NUMBERS + 1.0, loss="squared", psi=L1(1.0))}, "data"),
        ({"problem": Problem(X, NUMBERS, loss="huber", psi=L1(1.0))}, "model"),
    ],
)
def test_another_path_is_refused(change, named, tmp_path):
    run = {"problem": Problem(X, NUMBERS, loss="squared", psi=L1(3.0)), "alphas": ALPHAS, "checkpoint": tmp_path / "p"}
    path(**run)
    with pytest.raises(CheckpointError, match=f"belongs to another run: its {named} is"):
        path(**(run | change))


# -- searches ------------------------------------------------------------------------------------------------------

MODELS = [name for name in ESTIMATORS if name.endswith("CV")]
OPTIONS = {
    "loss": {},
    "bic": {"selection": "bic"},
    "ratios": {"l1_ratio": [0.3, 0.8], "scoring": "score"},
    "threads": {"n_jobs": 2, "standardize": True},
    "adaptive": {"adaptive": True, "relax": True},
}


def model_of(name, options, **more):
    settings = OPTIONS[options] | more
    if "scoring" in settings:
        settings["scoring"] = "balanced_accuracy" if "Classifier" in name else "r2"
    if name.startswith("Group"):
        settings["groups"] = GROUPS
    if name.startswith("Trend"):
        settings.pop("adaptive", None)
    return ESTIMATORS[name](alphas=5, eps=0.02, cv=3, **settings)


def data_of(name):
    target = CLASSES if "Classifier" in name else NUMBERS
    return (np.arange(float(N))[:, None] if name.startswith("Trend") else X), target


def assert_same_search(found, wanted):
    for name in ("alphas_", "cv_losses_", "cv_scores_", "criterion_", "coefs_path_", "coef_", "intercept_", "dof_"):
        assert hasattr(found, name) == hasattr(wanted, name)
        if hasattr(wanted, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


@pytest.mark.filterwarnings("ignore:.*no minimiser")  # of values fitted again to separable classes
@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("name", MODELS)
def test_searches_resume_to_the_same_bits(name, options, dies, tmp_path):
    data = data_of(name)
    wanted = []
    total = dies(None, lambda: wanted.append(model_of(name, options).fit(*data)))
    solved = 0
    for strengths in (4, total // 2):
        solved += dies(strengths, lambda: model_of(name, options, checkpoint=tmp_path / "c").fit(*data))
    found = []
    solved += dies(None, lambda: found.append(model_of(name, options, checkpoint=str(tmp_path / "c")).fit(*data)))
    assert_same_search(found[0], wanted[0])
    # What was solved since the last checkpoint is solved again: strengths that share one Gram matrix. (Here threads
    # that were not killed run on, and are counted, too.)
    assert options == "threads" or solved <= total + 9


def test_a_folder_resumes_to_the_same_bits(dies, tmp_path):
    parts = [slice(0, 40), slice(40, N)]
    write_blocks(tmp_path / "rows", [(X[part], CLASSES[part].astype(float)) for part in parts], ones=True)
    wanted = model_of("FusedLassoClassifierCV", "loss").fit(tmp_path / "rows")
    for strengths in (3, 20):
        model = model_of("FusedLassoClassifierCV", "loss", checkpoint=tmp_path / "c")
        assert dies(strengths, lambda model=model: model.fit(tmp_path / "rows")) == strengths
    found = model_of("FusedLassoClassifierCV", "loss", checkpoint=tmp_path / "c").fit(tmp_path / "rows")
    assert_same_search(found, wanted)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"y": NUMBERS + 1.0}, "data"),
        ({"cv": 4}, "folds"),
        ({"tol": 1e-5}, "tol"),
        ({"l1_ratio": 0.3}, "model"),
        ({"graph": [(0, 1)]}, "model"),
        ({"scoring": "r2"}, "scoring"),
    ],
)
def test_another_search_is_refused(change, named, tmp_path):
    def fit(y=NUMBERS, **options):
        settings = {"alphas": 3, "cv": 3, "checkpoint": tmp_path / "c"} | options
        return ESTIMATORS["FusedLassoRegressorCV"](**settings).fit(X, y)

    fit()
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(CheckpointError, match=f"belongs to another run: its {named} is"):
        fit(**change)
    assert (tmp_path / "c").read_bytes() == before


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="checkpoint=3: it takes the name of a file, or None"):
        ESTIMATORS["FusedLassoRegressorCV"](checkpoint=3).fit(X, NUMBERS)
    (tmp_path / "c").write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="not a skadmm checkpoint"):
        ESTIMATORS["FusedLassoRegressorCV"](checkpoint=tmp_path / "c").fit(X, NUMBERS)


def test_a_model_file_does_not_name_the_checkpoint(tmp_path):
    model = ESTIMATORS["FusedLassoRegressorCV"](alphas=3, cv=3, checkpoint=tmp_path / "c").fit(X, NUMBERS)
    model.save(tmp_path / "m.skadmm")
    assert load(tmp_path / "m.skadmm").checkpoint is None


def test_the_command_continues(dies, tmp_path, capsys):
    np.savez(tmp_path / "t.npz", X=X, y=NUMBERS)
    common = [str(tmp_path / "t.npz"), "--model", "fused-regressor", "--loss", "huber", "--alphas", "5", "--folds", "3"]

    def fit(out, *more):
        assert command(["fit", *common, "-o", str(tmp_path / out), *more]) == 0

    wanted = dies(None, lambda: fit("whole.skadmm"))
    kept = ["--checkpoint", str(tmp_path / "c")]
    assert dies(8, lambda: fit("killed.skadmm", *kept)) == 8
    assert dies(None, lambda: fit("resumed.skadmm", *kept)) == wanted - 8
    assert_same_search(load(tmp_path / "resumed.skadmm"), load(tmp_path / "whole.skadmm"))
    assert command(["fit", *common, "-o", str(tmp_path / "m"), "--alpha", "1", *kept]) == 2
    assert "with --alpha there is no cross-validation to store" in capsys.readouterr().err


# -- SIGKILL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["memory", "folder"])
def test_killed_at_random_moments_the_model_is_the_same(storage, tmp_path):
    moments = np.random.default_rng(int(time.time()))
    searches.table_of(storage, tmp_path)
    whole = searches.found_by(searches.model_of().fit(*searches.table_of(storage, tmp_path)))
    kept = tmp_path / "cv.ckpt"
    kills = 0
    while kills < KILLS:
        process = start(storage, kept, tmp_path / "killed.npz")
        wait_for_write(process, kept)
        time.sleep(float(moments.uniform(0, 0.4)))
        if process.poll() is not None:
            kept.unlink()  # it reached the end: begin again
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        with zipfile.ZipFile(kept) as archive:
            assert archive.testzip() is None
    assert start(storage, kept, tmp_path / "resumed.npz").wait() == 0
    with np.load(tmp_path / "resumed.npz") as resumed:
        for name, value in whole.items():
            np.testing.assert_array_equal(resumed[name], value, err_msg=name)


def start(*arguments):
    """The search in a process of its own."""
    program = [sys.executable, searches.__file__, *map(str, arguments)]
    return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_write(process, kept):
    """Until the search writes its checkpoint, or ends."""
    before = kept.stat().st_mtime_ns if kept.exists() else 0
    deadline = time.monotonic() + 120
    while process.poll() is None and not (kept.exists() and kept.stat().st_mtime_ns != before):
        assert time.monotonic() < deadline
        time.sleep(0.002)
