"""Build hooks.

With ``SKADMM_SHIP_KERNELS=1`` a wheel carries kernels compiled for this platform and interpreter. Without it, and for
source archives and editable installs, the wheel is pure Python.

With ``SKADMM_REPOSITORY`` set to the address of the repository, the links and pictures of the README are absolute in
the package's metadata, where a package index shows them, and the metadata names the repository.
"""

import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class ShippedKernels(BuildHookInterface):  # type: ignore[misc]
    """Compile the kernels, add them to the wheel, and tag it."""

    def _asked(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("SKADMM_SHIP_KERNELS") == "1"

    def dependencies(self) -> list[str]:
        """Compiling needs what the package needs at run time."""
        return list(self.metadata.core.dependencies) if self._asked() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is written."""
        if not self._asked() or version == "editable":
            return
        folder = Path(self.root) / "build" / "kernels"
        settings = os.environ | {"PYTHONPATH": str(Path(self.root) / "src")}
        subprocess.run([sys.executable, "-m", "skadmm.kernels.ship", str(folder)], env=settings, check=True)
        build_data["force_include"][str(folder)] = "skadmm/_kernels"
        build_data["pure_python"] = False
        build_data["tag"] = tag()


def tag() -> str:
    """The wheel's tag. Kernels need no system library of their own: on Linux the floor is that of Numba's wheels."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if system.startswith("linux_") and platform.libc_ver()[0] == "glibc":
        system = system.replace("linux_", "manylinux_2_28_")
    return f"{python}-{python}{getattr(sys, 'abiflags', '')}-{system}"


class Readme(MetadataHookInterface):  # type: ignore[misc]
    """The README, with absolute links where the address of the repository is known, and that address."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields that pyproject.toml declares as dynamic."""
        address = os.environ.get("SKADMM_REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, address) if address else text}
        pages = {"Source": "", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
        metadata["urls"] = {name: address + page for name, page in pages.items()} if address else {}


def absolute(text: str, address: str) -> str:
    """A page whose links to files of the repository, and pictures, have its address."""

    def with_address(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/main/{path})"

    return LINK.sub(with_address, text)
