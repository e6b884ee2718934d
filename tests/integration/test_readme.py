"""What the README says happens."""

import re
import runpy
from pathlib import Path

import numpy as np

from skadmm.run.result import Status

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(capsys):
    (source,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    shown = README.split(source)[1].split("```")[2].strip()
    names: dict = {}
    exec(source, names)
    assert re.sub(r"\de-\d\d", "…", capsys.readouterr().out.strip()) == re.sub(r"\de-\d\d", "…", shown)
    model, coef = names["model"], names["coef"]
    assert model.result_.status is Status.SOLVED
    assert model.result_.gap <= 1e-6
    for piece in (model.coef_[12:24], model.coef_[36:48]):
        assert np.unique(piece).size == 1
    assert np.abs(model.coef_ - coef).max() < 0.2
    assert np.count_nonzero(model.coef_) < 36


def test_the_benchmark_table_is_that_of_the_page():
    names = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert names["short_table"](page).count("\n") > 5
    assert names["filled"](README, page) == README, "python benchmarks/readme.py renews the table"


def test_it_fits_on_three_screens():
    assert len(README.splitlines()) <= 140


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
