"""The one place where the version lives."""

__version__ = "0.1.1"
