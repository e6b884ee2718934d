"""Compiled kernels that a wheel carries: searched after the user's own cache and before anything is compiled.

The folder ``skadmm/_kernels`` is made when a wheel is built (``make wheel``) and is read only. Its manifest names the
versions and the processor that the kernels are for and holds a SHA-256 checksum of each of them, and one of itself.
A kernel whose checksum fails is never given to Numba's loader; it is compiled, like one that is missing.
"""

import functools
import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "_kernels"
MANIFEST = "manifest.json"
FORMAT = 1

X86_64_V3 = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "ssse3",
             "sse4.1", "sse4.2", "xsave")  # fmt: skip
BASELINES = {
    "x86_64": ("x86-64-v3", X86_64_V3),
    "amd64": ("x86-64-v3", X86_64_V3),
    "aarch64": ("generic", ("neon",)),
    "arm64": ("generic", ("neon",)),
}
"""By machine: the processor that kernels are built for, and the features of a processor that can run them."""

used: set[str] = set()
"""Keys of the kernels that this process took from the wheel."""


class Shipped(NamedTuple):
    """The kernels of the wheel that this process may use."""

    checksums: dict[str, str]
    """The checksums by key; empty where no kernel can be used."""
    cpu: str
    """The processor that the kernels are for."""
    refusal: str
    """Why no kernel is used; empty where the wheel carries none, or they are in use."""


NOTHING = Shipped({}, "", "")
FOREIGN = Shipped({}, "", "the kernels in the package have another format")


def environment() -> dict[str, Any]:
    """Versions and the platform, which must be equal where kernels are built and where they are used."""
    import llvmlite
    import numba
    import numpy as np
    from llvmlite import binding

    return {
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numpy": np.__version__.split(".")[0],
        "platform": binding.get_process_triple(),
    }


@functools.cache
def shipped() -> Shipped:
    """The kernels of the wheel that this process may use."""
    if os.environ.get("SKADMM_SHIPPED_KERNELS", "1") == "0":
        return NOTHING
    return read(FOLDER)


def read(folder: Path) -> Shipped:
    """The kernels in `folder`, if its manifest is intact and made for this interpreter and processor."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except OSError:
        return NOTHING
    checksum, _, body = text.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        return Shipped({}, "", "the kernels in the package are damaged")
    try:
        manifest = json.loads(body)
        if manifest["format"] != FORMAT:
            return FOREIGN
        refusal = _mismatch(dict(manifest["environment"])) or _unsuitable(manifest["cpu"], list(manifest["features"]))
        return Shipped({} if refusal else dict(manifest["checksums"]), manifest["cpu"], refusal)
    except (KeyError, TypeError, ValueError):
        return FOREIGN


def _mismatch(built: dict[str, Any]) -> str:
    """Why kernels of another environment cannot be used here; empty where they can."""
    for name, here in environment().items():
        if built.get(name) != here:
            return f"the kernels in the package are for {name} {built.get(name)}, this is {here}"
    return ""


def _unsuitable(cpu: str, features: list[str]) -> str:
    """Why code for `cpu` cannot be used: the processor lacks a feature, or the user chose another one; else empty."""
    import numba
    from llvmlite import binding

    settings: Any = numba.config
    if cpu != settings.CPU_NAME and (settings.CPU_NAME is not None or settings.CPU_FEATURES is not None):
        return f"the kernels in the package are for {cpu}, and NUMBA_CPU_NAME or NUMBA_CPU_FEATURES asks for another"
    if not settings.ENABLE_AVX and "avx" in features:
        return f"the kernels in the package are for {cpu}, and NUMBA_ENABLE_AVX is 0"
    try:
        here = binding.get_host_cpu_features()
    except RuntimeError:
        return "the features of this processor are not known"
    missing = [name for name in features if not here.get(name, False)]
    return f"the kernels in the package are for {cpu}, and this processor has no {missing[0]}" if missing else ""


def payload(key: str) -> bytes | None:
    """The bytes of one kernel, with their checksum verified; None where the wheel lacks it, or it is damaged."""
    checksum = shipped().checksums.get(key)
    if checksum is None:
        return None
    try:
        data = (FOLDER / f"{key}.bin").read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == checksum else None


def recording() -> Path | None:
    """The folder in which a build collects kernels; None outside a build."""
    folder = os.environ.get("SKADMM_RECORD_KERNELS")
    return Path(folder) if folder else None


def record(folder: Path, key: str, data: bytes) -> None:
    """Keep a compiled kernel for the wheel."""
    (folder / f"{key}.bin").write_bytes(data)


def write_manifest(folder: Path, cpu: str, features: tuple[str, ...]) -> int:
    """Write the manifest of the kernels in `folder`; returns the number of kernels."""
    files = sorted(folder.glob("*.bin"))
    manifest = {
        "format": FORMAT,
        "environment": environment(),
        "cpu": cpu,
        "features": list(features),
        "checksums": {file.stem: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
    }
    body = json.dumps(manifest, indent=1, sort_keys=True).encode()
    (folder / MANIFEST).write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    return len(files)


def baseline() -> tuple[str, tuple[str, ...]]:
    """The processor to build for on this machine, and the features that a processor needs to run the kernels."""
    machine = platform.machine().lower()
    if machine not in BASELINES:
        raise RuntimeError(f"there is no baseline processor for {machine}: kernels cannot be shipped for it")
    return BASELINES[machine]


def summary() -> str:
    """One line for users: how many kernels the package carries, or why they are not used."""
    found = shipped()
    if found.refusal:
        return f"none used: {found.refusal}"
    return f"{len(found.checksums)} in the package, for {found.cpu}" if found.checksums else "none in the package"
