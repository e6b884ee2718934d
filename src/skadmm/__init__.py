"""Stochastic ADMM for structured-sparse learning."""

from skadmm._version import __version__

__all__ = ["__version__"]
