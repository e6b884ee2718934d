"""Where the rows live. In memory for now; other homes stand behind the same kernels."""

from skadmm.blocks.memory import as_rows

__all__ = ["as_rows"]
