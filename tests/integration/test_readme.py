"""What the README says happens."""

import re
import runpy
from pathlib import Path

import numpy as np

from skadmm.run.result import Status

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_written(capsys):
    (source,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(source.strip().splitlines()) == 10
    names: dict = {}
    exec(source, names)
    result, truth = names["result"], names["truth"]
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-6
    assert capsys.readouterr().out.startswith("san-admm: solved after")
    assert np.array_equal(np.sign(np.where(np.abs(result.x) > 0.1, result.x, 0)), np.sign(truth))
    assert np.unique(result.x).size < 20
    assert np.count_nonzero(result.x) < 30


def test_the_benchmark_table_is_that_of_the_page():
    names = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert names["short_table"](page).count("\n") > 5
    assert names["filled"](README, page) == README, "python benchmarks/readme.py renews the table"


def test_it_fits_on_two_screens():
    assert len(README.splitlines()) <= 90


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
