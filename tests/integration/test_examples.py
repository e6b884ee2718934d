"""The examples run, say what they found, and show a picture."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAVED_NOT_SHOWN = """
import runpy, sys
import matplotlib.pyplot as plt
plt.show = lambda: plt.gcf().savefig("picture.png", dpi=130)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py")))
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", SAVED_NOT_SHOWN, str(EXAMPLES / f"{name}.py")],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
    picture = (tmp_path / "picture.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
