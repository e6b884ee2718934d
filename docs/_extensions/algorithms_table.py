"""The directives ``algorithms-overview`` and ``algorithms``: every registered method."""

from algorithm_facts import rows
from docutils import nodes
from docutils.parsers.rst import Directive

HEAD = (
    "",
    "gradient",
    "penalty",
    "step",
    "assumes",
    "Ω enters by",
    "memory",
    "one step",
    "rate",
    "options",
    "reference",
    "use it for",
)


class Algorithms(Directive):
    """For each method a heading and a list of facts; a table of twelve columns would not fit a narrow screen."""

    def run(self):  # noqa: D102
        found = []
        for name, summary, *facts in rows():
            section = nodes.section(ids=[f"method-{name}"], names=[f"method-{name}"])
            section += nodes.title(text=name)
            section += nodes.paragraph(text=f"{summary}.")
            items = nodes.field_list()
            for label, fact in zip(HEAD[1:], facts, strict=True):
                items += nodes.field("", nodes.field_name(text=label), nodes.field_body("", nodes.paragraph(text=fact)))
            section += items
            found.append(section)
        return found


class Overview(Directive):
    """The short table: memory, cost of a step, rate, use."""

    def run(self):  # noqa: D102
        table = nodes.table(classes=["algorithms"])
        group = nodes.tgroup(cols=4)
        table += group
        for width in (14, 20, 20, 46):
            group += nodes.colspec(colwidth=width)
        head, body = nodes.thead(), nodes.tbody()
        group += [head, body]
        head += self._row([nodes.Text(text) for text in ("method", "memory", "rate", "use it for")])
        for name, _, _, _, _, _, _, held, _, rate, _, _, use in rows():
            link = nodes.reference("", "", nodes.literal(text=name), refid=f"method-{name}", internal=True)
            body += self._row([link, nodes.Text(held), nodes.Text(rate), nodes.Text(use)])
        return [table]

    def _row(self, cells):
        row = nodes.row()
        for cell in cells:
            row += nodes.entry("", nodes.paragraph("", "", cell))
        return row


def setup(app):
    """What Sphinx calls."""
    app.add_directive("algorithms", Algorithms)
    app.add_directive("algorithms-overview", Overview)
    return {"parallel_read_safe": True}
