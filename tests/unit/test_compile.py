"""A first compile is announced, to a person and only then; what it makes computes what later processes will."""

import gc
import os
import pty
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from skadmm.kernels.compile import KernelFiles, kernel

PROGRAM = """
import numpy as np
from skadmm.kernels import compile

@compile.kernel
def double(x):
    return 2.0 * x

print(double(np.float64(4.0)))
"""
SAID = "skadmm: compiling kernels once; they are kept on disk"


@pytest.fixture
def run(tmp_path):
    """Run the program, its errors on a terminal or not; what it wrote there."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start(*, terminal: bool) -> str:
        reader, writer = pty.openpty() if terminal else os.pipe()
        try:
            process = subprocess.run([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE,
                                     stderr=writer, check=True)  # fmt: skip
            assert process.stdout.strip() == b"8.0"
            os.write(writer, b"\n")
            return os.read(reader, 4096).decode()
        finally:
            os.close(reader)
            os.close(writer)

    return start


def test_a_terminal_is_told_the_first_time_only(run):
    assert run(terminal=True).count(SAID) == 1
    assert SAID not in run(terminal=True)


def test_a_file_is_not(run):
    assert run(terminal=False).strip() == ""


ADVANCED = """
import re
import numpy as np
import skadmm
from skadmm.solvers.first_order import engine

rows = np.arange(12.0).reshape(4, 3)
skadmm.solve(skadmm.Problem(rows, [1, -1, 1, -1], psi="l1"), "sa-iu-admm", step=0.1, passes=2)
(signature,) = engine._advance.signatures
code = engine._advance.inspect_llvm(signature)
print(*re.findall(r"define linkonce_odr [^@]*@(\\w*skadmm\\w*)", code), *re.findall("NRT_incref", code), "end")
"""


def test_a_kernel_holds_all_it_calls():
    """Functions out of line would be taken from whichever kernel a process loaded first, with other roundings. Nor does
    one that creates no arrays count references."""
    environment = os.environ | {"SKADMM_KERNEL_CACHE": "0"}
    process = subprocess.run([sys.executable, "-c", ADVANCED], env=environment, stdout=subprocess.PIPE, check=True)
    assert process.stdout.strip() == b"end"


def _scaled(x, factor):
    out = np.empty(x.size)
    for j in range(x.size):
        out[j] = factor * x[j]
    return out


def test_a_kernel_says_that_it_creates_arrays(monkeypatch):
    """All others are compiled without counts of references, which take an eighth of the time."""
    monkeypatch.setenv("SKADMM_KERNEL_CACHE", "0")
    x = np.arange(3.0)
    np.testing.assert_array_equal(kernel(_scaled, allocates=True)(x, 2.0), 2.0 * x)
    with pytest.raises(numba.core.errors.NumbaError):
        kernel(_scaled)(x, 2.0)


def test_functions_of_users_may_create_arrays():
    """Also where a kernel calls them that creates none."""
    from skadmm import Problem, losses, solve
    from skadmm.kernels.compile import facts

    @facts(name="two-parts", labels=False, attained=True)
    class TwoParts(NamedTuple):
        curvature_bound = property(lambda self: 1.0)

    def value(loss, z, b):
        parts = np.empty(2)
        parts[0] = parts[1] = 0.25 * (z - b) ** 2
        return parts.sum()

    def derivative(loss, z, b):
        return np.full(2, 0.5 * (z - b)).sum()

    losses.define(
        TwoParts,
        value=value,
        derivative=derivative,
        curvature=lambda loss, z, b: 1.0,
        conjugate=lambda loss, theta, b: 0.5 * theta**2 + theta * b,
    )
    rng = np.random.default_rng(0)
    X, target = rng.standard_normal((20, 3)), rng.standard_normal(20)
    ours, theirs = (
        solve(Problem(X, target, loss=loss, psi="l1"), "sa-iu-admm", step=0.1, passes=3)
        for loss in ("squared", TwoParts())
    )
    np.testing.assert_allclose(theirs.x, ours.x, rtol=1e-12)


def test_functions_of_others_are_compiled_as_before():
    """Also those that belong to no module; and garbage is collected as before when a kernel has been compiled."""
    names: dict = {"__name__": None}
    exec("def double(x):\n    return 2.0 * x", names)
    assert names["double"].__module__ is None
    assert gc.isenabled()
    assert numba.njit(names["double"])(2.0) == 4.0
    assert gc.isenabled()


def test_losses_of_one_name_are_told_apart():
    """Numba tells NamedTuples apart by the names of their classes; a user's Poisson loss must not run as ours."""
    from skadmm import Problem, losses
    from skadmm.kernels.compile import facts

    def defined(factor):
        @facts(name="huber", labels=False, attained=True)
        class Squared(NamedTuple):
            curvature_bound = property(lambda self: factor)

        losses.define(
            Squared,
            value=lambda loss, z, b: factor * (z - b),
            derivative=lambda loss, z, b: factor,
            curvature=lambda loss, z, b: 0.0,
            conjugate=lambda loss, theta, b: 0.0,
        )
        return Squared()

    X, target, x = np.ones((3, 2)), np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0])
    found = [Problem(X, target, loss=loss).loss_value(x) for loss in (defined(1.0), defined(10.0), "squared")]
    np.testing.assert_allclose(found, [3.0, 30.0, np.mean((5.0 - target) ** 2) / 2])


def test_processes_that_compile_a_kernel_at_the_same_time_do_not_get_the_code_of_each_other(tmp_path):
    """Two processes read the index before either has written to it; the second one saves while the first one does."""

    def files(kind):
        return kind(str(tmp_path), "kernel", "stamp")

    class Second(KernelFiles):
        def _load_index(self):
            return {}  # as it was before the first one saved

    class First(KernelFiles):
        def _save_data(self, name, data):
            files(Second).save("b", "machine code of b")
            super()._save_data(name, data)

    files(First).save("a", "machine code of a")
    assert files(KernelFiles).load("a") == "machine code of a"
    assert files(KernelFiles).load("b") in (None, "machine code of b")
    files(KernelFiles).save("b", "machine code of b")
    assert {key: files(KernelFiles).load(key) for key in "ab"} == {key: f"machine code of {key}" for key in "ab"}
