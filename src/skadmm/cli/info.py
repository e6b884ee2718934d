"""``skadmm info``: versions, methods, what is installed; or what a model file holds."""

import json
from pathlib import Path

import typer

from skadmm.cli._installed import installed


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)


def info(
    model: Path | None = typer.Argument(None, help="A file that `skadmm fit` wrote."),  # noqa: B008
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Versions, the methods and the data folders; or, given a model file, its contents."""
    if model is not None:
        _tell(model, as_json)
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
    from skadmm.cli.fit import in_words, summary
    from skadmm.estimators.persistence import describe

    held = describe(path)
    facts = {"file": str(path), "format": held["version"], "skadmm": held["skadmm"]} | summary(load(path))
    facts["parameters"] = held["parameters"]
    if as_json:
        print(json.dumps(facts))
        return
    for key, value in facts.items():
        print(f"{key:<20}{in_words(value)}")
