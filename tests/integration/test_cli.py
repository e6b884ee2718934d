"""The command line: exit codes, one line on stderr, and a reproduction from end to end."""

import subprocess
import sys

import numpy as np
import pytest

import skadmm
from skadmm.cli import COMMANDS, run

TINY = ["--figure", "1", "--methods", "sa-iu-admm,opg-admm,batch-iu-admm", "--repeats", "1", "--passes", "2",
        "--limit", "200", "--protocols", "paper", "--no-optimum", "--jobs", "1"]  # fmt: skip


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("SKADMM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["dance"], 2, "No such command"),
        (["reproduce", "--jobs", "0"], 2, "--jobs"),
        (["reproduce", "--repeats", "none"], 2, "--repeats: 'none' is not a number"),
        (["reproduce", "--repeats", "2.5"], 2, "it takes an integer ≥ 1"),
        (["reproduce", "--passes", "3,4"], 2, "two values"),
        (["reproduce", "--passes", "a9a=3"], 2, "no value for the other data sets"),
        (["reproduce", "--figure", "7", "--data", "digits"], 2, "figure=7"),
        (["reproduce", "--methods", "sa-adm", "--data", "digits"], 2, "Did you mean 'sa-admm'"),
        (["reproduce", "--matrix", "tree", "--data", "digits"], 2, "matrix='tree'"),
        (["reproduce", "--quick", "--data", "a9b"], 2, "Did you mean 'a9a'"),
        (["reproduce", "--quick", "--passes", "none"], 2, "--passes: 'none' is not a number"),
        (["reproduce", "--data", "a9a"], 1, "skadmm data fetch a9a"),
        (["reproduce", "--data", "no/such/file.svm"], 1, "there is no such file"),
        (["reproduce", "--data", "a9b"], 2, "Did you mean 'a9a'"),
        (["reproduce", "--data", "a9a", "--data-dir", "nowhere"], 1, "there is no such folder"),
        (["data", "fetch", "sido"], 1, "sido0_text.zip"),
        (["data", "fetch", "qm9mu"], 1, "SKADMM_DATA"),
        (["data", "fetch", "a9b"], 2, "Did you mean 'a9a'"),
        (["data", "--data-dir", "nowhere"], 1, "there is no such folder"),
    ],
)
def test_errors_are_one_line_with_a_code(arguments, code, message, capsys):
    assert run(arguments) == code
    captured = capsys.readouterr()
    last = captured.err.rstrip("\n").splitlines()[-1]
    assert message in last
    assert last.startswith("skadmm: ")
    assert "Traceback" not in captured.err


def test_interrupt_is_130(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("skadmm.paper.reproduce", stop)
    assert run(["reproduce", "--data", "digits"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_version_help_and_info(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip()
    for arguments in (["--help"], ["reproduce", "--help"], ["data", "fetch", "--help"]):
        assert run(arguments) == 0
        assert "Usage" in capsys.readouterr().out
    assert run(["info"]) == 0
    assert "sa-iu-admm" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(name, capsys):
    assert run([name.replace("_", "-"), "--help"]) == 0
    assert "--help" in capsys.readouterr().out


def test_without_typer(capsys, monkeypatch):
    """`skadmm info` tells what is there all the same; anything else names the extra."""
    assert run(["info"]) == 0
    usual = capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "typer", None)
    assert run(["info"]) == 0
    assert capsys.readouterr().out == usual
    assert run(["fit", "table.csv"]) == 1
    assert "pip install 'skadmm[cli]'" in capsys.readouterr().err


def test_data_lists_the_five_and_the_substitutes(capsys, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "hiva.svm.xz").write_bytes(b"")
    assert run(["data"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.split()}
    for name in ("a9a", "covertype", "quantum", "rcv1", "sido"):
        assert "in the paper" in lines[name]
        assert " no " in lines[name]
    assert "for rcv1" in lines["20ng-ltc"]
    assert " yes " in lines["hiva"]


def test_reproduce_leaves_a_report(tmp_path, capsys):
    arguments = ["reproduce", "--data", "digits", "--out", str(tmp_path / "out"), *TINY]
    assert run(arguments) == 0
    captured = capsys.readouterr()
    assert "report.html" in captured.out
    assert "cells" in captured.err
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "out" / "figures" / "figure1.svg").is_file()


def test_the_entry_point_is_installed():
    done = subprocess.run([sys.executable, "-c", "from skadmm.cli import main; main()", "dance"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_without_arguments_the_help_is_shown(capsys):
    assert run([]) == 0
    assert "Usage: skadmm" in capsys.readouterr().out
    done = subprocess.run([sys.executable, "-m", "skadmm", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == skadmm.__version__


def test_the_short_option_shows_help(capsys):
    assert run(["-h"]) == 0
    assert run(["fit", "-h"]) == 0
    shown = capsys.readouterr().out
    assert "..." not in shown.split("Usage: skadmm fit")[0].split("Commands:")[1]  # no summary is cut


def test_info_shows_the_parameters_that_were_changed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 30))
    np.savez("data.npz", X=X, y=X[:, 0])
    (tmp_path / "groups.json").write_text("[[0, 1], [2, 3]]")
    made = ["fit", "data.npz", "-o", "model.skadmm", "--model", "group-regressor", "--alpha", "0.1"]
    assert run([*made, "--groups", "groups.json"]) == 0
    assert "26 features that are in no group" in capsys.readouterr().out
    assert run(["info", "model.skadmm"]) == 0
    shown = capsys.readouterr().out
    assert "alpha=" in shown
    assert "[[0, 1], [2, 3]]" in shown
    assert "positive=" not in shown


def test_info_shows_groups_by_name(tmp_path, capsys):
    X = np.random.default_rng(0).standard_normal((40, 4))
    model = skadmm.GroupLassoRegressor(alpha=0.1, groups={"left": [0, 1], "right": [2, 3]}).fit(X, X[:, 0])
    model.save(tmp_path / "model.skadmm")
    assert run(["info", str(tmp_path / "model.skadmm")]) == 0
    assert "groups=             {'left': [0, 1], 'right': [2, 3]}" in capsys.readouterr().out
