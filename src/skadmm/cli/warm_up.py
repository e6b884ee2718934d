"""``skadmm warm-up``: compile kernels in advance."""

from __future__ import annotations

import sys

import typer

from skadmm.cli._errors import CommandError


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("warm-up")(warm_up)


def warm_up(
    kinds: list[str] | None = typer.Argument(None, help="Kinds of model, or how their names begin. [default: all]"),  # noqa: B008
    listed: bool = typer.Option(False, "--list", help="List the kinds and exit."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress."),
) -> None:
    """Compile kernels in advance.

    The kernels of some kinds of model are written to your cache, for use in containers and on clusters. Compiling all
    of them takes minutes.
    """
    from skadmm.warm_up import KINDS
    from skadmm.warm_up import warm_up as run

    if listed:
        print("\n".join(KINDS))
        return
    try:
        run(kinds or (), say=None if quiet else lambda name: print(name, file=sys.stderr, flush=True))
    except ValueError as error:
        if "is not a kind of model" not in str(error):
            raise
        raise CommandError(str(error), 2) from error
