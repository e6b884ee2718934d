"""The paper's experiments again: ``skadmm reproduce``."""

from skadmm.paper.reproduce import Outcome, reproduce
from skadmm.paper.settings import PAPER_METHODS, PerData, Settings, quick

__all__ = ["PAPER_METHODS", "Outcome", "PerData", "Settings", "quick", "reproduce"]
