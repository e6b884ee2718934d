"""``--graph`` and ``--groups``: the structure of the columns, by a word, a size or a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skadmm.cli._errors import CommandError


def read_graph(text: str, names: Sequence[str] = ()) -> Any:
    """What ``--graph`` stands for; nodes of digits are column numbers unless the columns have `names` of digits."""
    if text == "chain":
        return None
    if text == "precision":
        return "precision"
    sides = text.lower().split("x")
    if len(sides) > 1 and all(side.isdigit() for side in sides):
        return tuple(int(side) for side in sides)
    path = Path(text)
    if not path.is_file():
        taken = "it takes chain, precision, a grid such as 8x8, or a file of edges"
        if path.suffix or len(path.parts) > 1:
            raise CommandError(f"--graph {text}: there is no such file; {taken}")
        raise CommandError(f"--graph {text}: {taken}", 2)
    edges: list[tuple[Any, ...]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fields = [field.strip() for field in line.replace("\t", ",").split(",")]
        if not line.strip() or line.startswith("#") or (not edges and _is_header(fields, names)):
            continue
        if len(fields) < 2:
            raise CommandError(f"{path}: line {number} has one column: it takes two nodes, separated by a comma", 2)
        if len(fields) > 3:
            raise CommandError(f"{path}: line {number} has {len(fields)} columns: it takes two nodes and a weight", 2)
        if edges and len(fields) != len(edges[0]):
            raise CommandError(f"{path}: line {number} has {len(fields)} columns, the lines before {len(edges[0])}", 2)
        edges.append((fields[0], fields[1], *(_weight(field, path, number) for field in fields[2:])))
    if not edges:
        raise CommandError(
            f"{path}: it has no edges: each line takes two nodes, and a weight where there are weights", 2
        )
    if all(node.isdigit() for edge in edges for node in edge[:2]) and not _of_digits(names):
        return [(int(edge[0]), int(edge[1]), *edge[2:]) for edge in edges]
    return edges


HEADERS = ({"source", "from", "tail", "u", "i", "node1", "node_1", "feature1", "feature_1"},
           {"target", "to", "head", "v", "j", "node2", "node_2", "feature2", "feature_2"})  # fmt: skip
"""What the first line of a file of edges may call its first and its second column."""


def _is_header(fields: list[str], features: Sequence[str]) -> bool:
    """Does a line name the columns of a file of edges: with known names, or with a word where weights are numbers?

    A line that starts with two features is an edge, whatever its weight is.
    """
    if len(fields) not in (2, 3) or {*fields[:2]} <= {*features}:
        return False
    named = all(field.lower() in names for field, names in zip(fields, HEADERS, strict=False))
    return named or (len(fields) == 3 and fields[2].isidentifier() and not _number(fields[2]))


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _weight(text: str, path: Path, number: int) -> float:
    if not _number(text):
        raise CommandError(f"{path}: line {number} has the weight {text!r}, which is not a number", 2)
    return float(text)


def _of_digits(names: Sequence[str]) -> bool:
    """Are the columns named by numbers, such as years?"""
    return bool(names) and all(name.isdigit() for name in names)


GROUP_FORMS = "[[columns], …], [a label per column], {name: [columns]} or {column: label}"
"""What a file of ``--groups`` may hold."""


def read_groups(path: Path | None, names: Sequence[str]) -> Any:
    """What a file of ``--groups`` holds; numbers as members are names where the columns have `names` of digits."""
    if path is None:
        return None
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    try:
        groups = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {error}", 2) from error
    if not isinstance(groups, (list, dict)):
        raise CommandError(f"{path}: it takes {GROUP_FORMS}", 2)
    if not _of_digits(names):
        return groups
    named = groups if isinstance(groups, dict) else dict(enumerate(groups))
    if not all(isinstance(group, list) for group in named.values()):
        return groups
    texts = {name: [str(member) for member in group] for name, group in named.items()}
    return texts if isinstance(groups, dict) else list(texts.values())
