"""Length of the way from ``FusedLassoClassifier.fit`` to ``coef_``: files of the package, and switches between files.

    python benchmarks/walk.py                the package that is imported
    python benchmarks/walk.py --at v0.1.0    that of a commit
    python benchmarks/walk.py --functions    with every function, in order

A small dense problem is fitted twice, and the second fit is traced: the first one imports and compiles. Every
Python function of the package (lambdas, comprehensions and generators too, module bodies not) counts once, where it is
first called: a reader reads it once, however often it is called. Two consecutive functions from different files are a
switch. Compiled kernels are not traced. "Switches of all calls" counts every call of every function, and so grows with
the iterations. Version 0.1.0 has 54 files and 194 switches (Python 3.11; from 3.12 on there are fewer, since
comprehensions are not functions there).
"""

import argparse
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from _trees import checkout, environment

SAMPLES, FEATURES = 200, 10


def small_problem() -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and two classes by coefficients that are constant over runs of features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SAMPLES, FEATURES))
    coefficients = np.repeat([1.0, 0.0, -1.0, 0.0], -(-FEATURES // 4))[:FEATURES]
    return X, np.where(X @ coefficients + 0.5 * rng.standard_normal(SAMPLES) > 0, 1, 0)


def calls_of_a_fit() -> list[tuple[str, CodeType]]:
    """The file, relative to the package, and the code of every call, in order."""
    import skadmm

    package = Path(skadmm.__file__).parent
    inside = f"{package}{os.sep}"
    calls: list[tuple[str, CodeType]] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside) and code.co_name != "<module>":
            calls.append((code.co_filename[len(inside) :].replace(os.sep, "/"), code))

    X, target = small_problem()
    skadmm.FusedLassoClassifier().fit(X, target)
    model = skadmm.FusedLassoClassifier()
    sys.setprofile(watch)
    try:
        model.fit(X, target)
        _ = model.coef_
    finally:
        sys.setprofile(None)
    return calls


def switches(files: list[str]) -> int:
    """Neighbours that differ."""
    return sum(one != other for one, other in pairwise(files))


def report(functions: bool) -> None:
    """The figures, and the files in order of their first visit."""
    calls = calls_of_a_fit()
    walk = list(dict.fromkeys(calls))
    files = [file for file, _ in walk]
    print(f"files:                  {len(set(files))}")
    print(f"switches:               {switches(files)}")
    print(f"functions:              {len(walk)}")
    print(f"switches of all calls:  {switches([file for file, _ in calls])}")
    print("\nfiles in order of first visit:")
    for number, file in enumerate(dict.fromkeys(files), 1):
        print(f"{number:>4}  {file}")
    if functions:
        print("\nfunctions in order of first call:")
        for file, code in walk:
            print(f"  {file}:{code.co_firstlineno}  {code.co_qualname}")


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", help="the commit whose package is watched")
    parser.add_argument("--functions", action="store_true", help="list the functions, too")
    options = parser.parse_args()
    if options.at is None:
        report(options.functions)
        return
    with checkout(options.at) as tree:
        command = [sys.executable, __file__, *(["--functions"] if options.functions else [])]
        subprocess.run(command, env=environment(tree), check=True)


if __name__ == "__main__":
    main()
