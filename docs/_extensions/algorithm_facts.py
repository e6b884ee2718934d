"""What the documentation says of each method: from its entry in the registry, and for known methods from here."""

from skadmm import ALGORITHMS

STEPS = {
    "san-admm": ("ℓ twice differentiable almost everywhere", "superlinear near the solution, as observed",
                 "the default; d to a few thousand, or beyond where A has one or two entries per row"),
    "sa-admm": ("ℓ smooth", "1/T", "the paper's method; A whose system is cheap (chains, grids, small d)"),
    "sa-iu-admm": ("ℓ smooth", "1/T", "the same where the system is expensive; any Ω with a proximal step"),
    "saga-admm": ("ℓ smooth", "1/T", "one sample per step, no table of points"),
    "saga-iu-admm": ("ℓ smooth", "1/T", "the same where the system is expensive"),
    "svrg-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T; linear in that form",
                  "little memory beside the data"),
    "svrg-iu-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T; linear in that form",
                     "a first-order method to start with, preconditioned"),
    "asvrg-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T², T epochs; linear in that form",
                   "badly conditioned problems"),
    "asvrg-iu-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T², T epochs; linear in that form",
                      "the same where the system is expensive"),
    "stoc-admm": ("ℓ convex", "1/√T", "a baseline"),
    "opg-admm": ("ℓ convex", "1/√T", "a baseline; one pass over a stream (partial_fit)"),
    "rda-admm": ("ℓ convex", "1/√T", "a baseline"),
    "online-admm": ("ℓ convex", "1/√T", "a baseline"),
    "batch-admm": ("ℓ smooth", "1/T", "a baseline; few samples"),
    "batch-iu-admm": ("ℓ smooth", "1/T", "a baseline; few samples"),
    "exact-admm": ("ℓ convex", "1/T", "a reference; small problems"),
}  # fmt: skip
"""What the code cannot tell: assumptions, rate, and when to use it. b is the block size, |A| the entries of A. A method
that is not listed gets these from its entry in the registry."""

CHANGING = {"rda-admm": "growing, √t", "stoc-admm": "shrinking, 1/√t", "opg-admm": "shrinking, 1/√t", "online-admm":
            "shrinking, 1/√t"}  # fmt: skip


def memory(algorithm) -> str:
    """Numbers held besides the data and vectors of length d and m."""
    if algorithm.certifies:
        parts = ["16n", "7d² (d² of the clusters, for many features)"]
    elif algorithm.gradient == "average":
        parts = ["n", "(n/b)·d"]
    elif algorithm.gradient == "one sample, corrected":
        parts = ["n"]
    else:
        parts = []
    if not algorithm.linearised and not algorithm.certifies:
        parts.append("a factor of AᵀA")
    return " + ".join(parts) or "–"


def cost(algorithm) -> str:
    """Work of one step."""
    if algorithm.certifies:
        return "all rows, H where it changed, a Cholesky factor"
    rows = "all rows" if algorithm.full else "b rows"
    if "nonlinear" in algorithm.gradient:
        return f"{rows}, several times; a solve with I/η + ρAᵀA"
    return f"{rows} + d + |A|" if algorithm.linearised else f"{rows} + |A| + a solve with ρAᵀA + LI"


def described(algorithm) -> tuple[str, str, str]:
    """Assumptions, rate and use of a method that is not in STEPS."""
    assumes = "ℓ smooth" if algorithm.constant_step else "ℓ convex"
    return assumes, f"see {algorithm.reference}", algorithm.summary


def rows():
    """One row per method."""
    listed = [name for name in STEPS if name in ALGORITHMS]
    for name in [*listed, *(name for name in ALGORITHMS if name not in STEPS)]:
        algorithm = ALGORITHMS[name]
        assumes, rate, use = STEPS[name] if name in STEPS else described(algorithm)
        omega = ", ".join(algorithm.omega)
        options = ", ".join(algorithm.options) or "–"
        penalty = "linearised" if algorithm.linearised else "whole"
        step = (
            "none" if algorithm.stepless else "constant" if algorithm.constant_step else CHANGING.get(name, "changing")
        )
        yield (name, algorithm.summary, algorithm.gradient, penalty, step, assumes, omega,
               memory(algorithm), cost(algorithm), rate, options,
               algorithm.reference, use)  # fmt: skip
