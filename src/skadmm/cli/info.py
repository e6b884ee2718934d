"""``skadmm info``: versions, methods, what is installed; or what a model file or a table holds."""

import inspect
import json
from pathlib import Path
from typing import Any

import typer

from skadmm.cli._installed import installed

LONGEST = 80
"""Characters of a parameter that are shown."""
OF_THE_RUN = ("n_jobs", "verbose")
"""Parameters that change how a fit ran, and not the model."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)


def info(
    path: Path | None = typer.Argument(None, help="A file that `skadmm fit` wrote, or a table: a file or a folder."),  # noqa: B008
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show versions and methods, a model file, or a table."""
    if path is not None:
        _tell(path, as_json)
        return
    if as_json:
        from skadmm.paper.versions import versions
        from skadmm.solvers import ALGORITHMS, SOLVERS

        methods = {name: algorithm.summary for name, algorithm in ALGORITHMS.items()}
        solvers = {name: solver.summary for name, solver in SOLVERS.items()}
        print(json.dumps({"versions": versions(), "methods": methods, "solvers": solvers}))
        return
    installed()


def _tell(path: Path, as_json: bool) -> None:
    from skadmm import load
    from skadmm.cli.fit import lines_of, summary
    from skadmm.cli.table_facts import is_table, table_facts, table_lines
    from skadmm.estimators.persistence import describe

    if is_table(path):
        facts = table_facts(path)
        print(json.dumps(facts) if as_json else "\n".join(table_lines(facts)))
        return
    held, model = describe(path), load(path)
    facts = {"file": str(path), "format": held["version"], "skadmm": held["skadmm"]} | summary(model)
    if as_json:
        print(json.dumps(facts | {"parameters": held["parameters"]}))
        return
    for line in lines_of(facts):
        print(line)
    for name, value in _changed(model, held["parameters"]).items():
        print(f"{name + '=':<19} {_short(value)}")


def _changed(model: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that differ from the defaults of the estimator."""
    defaults = {name: entry.default for name, entry in inspect.signature(type(model)).parameters.items()}
    return {name: value for name, value in parameters.items() if name not in OF_THE_RUN and defaults.get(name) != value}


def _short(value: Any) -> str:
    """A parameter on one line; of a long list, its beginning and its length."""
    text = str(value)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(value)} entries)" if isinstance(value, (list, dict)) else f"{text[:LONGEST]}…"
