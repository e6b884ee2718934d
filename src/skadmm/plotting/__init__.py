"""Pictures: axes in, axes out; matplotlib is only imported when something is drawn."""

from skadmm.plotting.convergence import STYLES, Style, comparison, convergence, style_of
from skadmm.plotting.graphs import coefficients_on_graph
from skadmm.plotting.models import coefficient_image, coefficient_path, cv_curve, trend_fit

__all__ = [
    "STYLES",
    "Style",
    "coefficient_image",
    "coefficient_path",
    "coefficients_on_graph",
    "comparison",
    "convergence",
    "cv_curve",
    "style_of",
    "trend_fit",
]
