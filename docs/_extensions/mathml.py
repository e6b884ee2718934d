"""Formulas as MathML, written at build time, so that pages load no script.

Browsers do not break a formula over lines. A long one is therefore written as several ``math`` elements, divided before
its relations, sums and differences: on a narrow screen it continues on the next line, on a wide one it is one line.
"""

import html
import re

from docutils import nodes
from latex2mathml.converter import convert

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
RELATIONS = {"=", "<", ">", r"\le", r"\ge", r"\leq", r"\geq", r"\approx", r"\leftarrow", r"\to", r"\in", r"\equiv"}
SUMS = {"+", "-"}
SPACES = {r"\quad", r"\qquad"}
OPENING, CLOSING = {"(", "["}, {")", "]"}
BLOCK, INLINE = 26, 12
"""The numbers of symbols above which a formula is divided."""


def _width(text):
    """Roughly the number of symbols of a formula: of a fraction, the longer part."""
    shorter = re.sub(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", lambda found: max(found.groups(), key=len), text)
    return len(html.unescape(re.sub(r"<[^>]*>|\s", "", convert(shorter))))


def pieces(text, depth=0):
    """A formula cut before its relations, sums and differences that stand inside at most `depth` pairs of brackets."""
    found, braces, brackets, fixed, norms, before = [""], 0, 0, 0, 0, ""
    for token in TOKEN.findall(text):
        if token.isspace():
            found[-1] += " "
            continue
        inside = braces or fixed or brackets + norms > depth
        binary = token in SUMS and before not in {"", "^", "_", *RELATIONS, *SUMS, *OPENING, *SPACES}
        if token in SPACES and not inside:
            found[-1] += token
            found.append("")
        elif (token in RELATIONS or binary) and not inside and found[-1].strip():
            found.append(token)
        else:
            found[-1] += token
        braces += (token == "{") - (token == "}")
        fixed += (token == r"\left") - (token == r"\right")
        brackets += (token in OPENING) - (token in CLOSING)
        norms = 1 - norms if token == r"\|" else norms
        before = token
    return [piece.strip() for piece in found if piece.strip()]


def divided(text, limit):
    """The pieces of a formula: those within brackets are cut too where they are longer than the limit."""
    if _width(text) <= limit:
        return [text]
    parts = pieces(text)
    for depth in (1, 2):
        parts = [part for piece in parts for part in ([piece] if _width(piece) <= limit else pieces(piece, depth))]
    return parts


def _math(text, limit, display):
    # The elements of a block are inline, so that they follow each other, in the style of a block.
    style = 'display="inline" displaystyle="true"' if display == "block" else 'display="inline"'
    parts = [
        convert(piece, display=display).replace(f'display="{display}"', style, 1) for piece in divided(text, limit)
    ]
    # An operator at the start of a piece keeps the spaces of an operator between two operands.
    rest = [re.sub(r"(<math[^>]*><mrow>)<mo", r'\1<mo form="infix"', part, count=1) for part in parts[1:]]
    return "<wbr>".join([parts[0], *rest])


def _inline(writer, node):
    writer.body.append(_math(node.astext(), INLINE, "inline"))
    raise nodes.SkipNode


def _block(writer, node):
    formula = _math(node.astext(), BLOCK, "block")
    writer.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
