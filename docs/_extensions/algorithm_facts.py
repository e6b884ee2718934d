"""What is said of each method: from the registry where it knows, from here where it does not."""

from skadmm import ALGORITHMS

STEPS = {
    "san-admm": ("ℓ twice differentiable almost everywhere", "superlinear near the solution, as observed",
                 "the default; d to a few thousand, or beyond where A has one or two entries a row"),
    "sa-admm": ("ℓ smooth", "1/T", "the paper's method; A whose system is cheap (chains, grids, small d)"),
    "sa-iu-admm": ("ℓ smooth", "1/T", "the same where the system is dear; any Ω with a proximal step"),
    "saga-admm": ("ℓ smooth", "1/T", "one sample a step, no table of points"),
    "saga-iu-admm": ("ℓ smooth", "1/T", "the same where the system is dear"),
    "svrg-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T; linear in that form",
                  "little memory beside the data"),
    "svrg-iu-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T; linear in that form",
                     "a first-order method to start with, preconditioned"),
    "asvrg-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T², T epochs; linear in that form",
                   "badly conditioned problems"),
    "asvrg-iu-admm": ("ℓ smooth; strongly convex form: A of full row rank", "1/T², T epochs; linear in that form",
                      "the same where the system is dear"),
    "stoc-admm": ("ℓ convex", "1/√T", "a baseline"),
    "opg-admm": ("ℓ convex", "1/√T", "a baseline; one pass over a stream (partial_fit)"),
    "rda-admm": ("ℓ convex", "1/√T", "a baseline"),
    "online-admm": ("ℓ convex", "1/√T", "a baseline"),
    "batch-admm": ("ℓ smooth", "1/T", "a baseline; few samples"),
    "batch-iu-admm": ("ℓ smooth", "1/T", "a baseline; few samples"),
    "exact-admm": ("ℓ convex", "1/T", "a reference; small problems"),
}  # fmt: skip
"""What the code cannot tell: assumptions, rate, and when to use it. b is the block size, |A| the entries of A."""

CHANGING = {"rda-admm": "growing, √t", "stoc-admm": "shrinking, 1/√t", "opg-admm": "shrinking, 1/√t", "online-admm":
            "shrinking, 1/√t"}  # fmt: skip


def memory(algorithm) -> str:
    """Numbers held besides the data and vectors of length d and m."""
    if algorithm.certifies:
        parts = ["16n", "7d² (d² of the units, for many features)"]
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


def rows():
    """One row a method."""
    for name, (assumes, rate, use) in STEPS.items():
        algorithm = ALGORITHMS[name]
        omega = ", ".join(algorithm.omega)
        options = ", ".join(algorithm.options) or "–"
        penalty = "linearised" if algorithm.linearised else "whole"
        step = "none" if algorithm.stepless else "constant" if algorithm.constant_step else CHANGING[name]
        yield (name, algorithm.summary, algorithm.gradient, penalty, step, assumes, omega,
               memory(algorithm), cost(algorithm), rate, options,
               algorithm.reference, use)  # fmt: skip
