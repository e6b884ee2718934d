"""The command line, ``skadmm``: one file per command or group of commands.

A command raises an exception; :func:`main` turns it into one line on stderr and an exit code: 0 success; 1 failure (a
file cannot be found, read or written); 2 usage error (options, or what a file holds, are not accepted); 130
interrupted.
"""

import importlib
import sys
from typing import Any

from skadmm._version import __version__
from skadmm.cli._installed import installed

INTERRUPTED = 130
COMMANDS = ("fit", "predict", "compare", "reproduce", "data", "info", "coef", "report", "warm_up")
"""The files of this package that hold commands, in the order of ``skadmm --help``."""


def main() -> None:
    """The entry point."""
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; the exit code."""
    try:
        import typer
    except ImportError:
        if (sys.argv[1:] if arguments is None else arguments) == ["info"]:
            installed()
            return 0
        return _complain("the command line needs typer: pip install 'skadmm[cli]'", 1)
    from skadmm.cli._errors import CommandError

    if not (sys.argv[1:] if arguments is None else arguments):
        arguments = ["--help"]
    try:
        code = typer.main.get_command(_app())(args=arguments, prog_name="skadmm", standalone_mode=False)
        code = code if isinstance(code, int) else 0
    except typer.Exit as end:
        code = end.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except CommandError as error:
        return _complain(str(error), error.code)
    except (ImportError, OSError) as error:
        return _complain(str(error), 1)
    except (ValueError, TypeError) as error:
        return _complain(str(error), 2)
    except Exception as error:
        # A usage error. Its class has moved between versions of typer; its method has not.
        if not hasattr(error, "format_message"):
            from skadmm.datasets import DataError  # slow to import

            if isinstance(error, DataError):
                return _complain(str(error), 1)
            raise
        context = getattr(error, "ctx", None)
        return _complain(f"{error.format_message()} (see `{context.command_path if context else 'skadmm'} --help`)", 2)
    # Some versions of typer turn an interrupt into this code by themselves.
    return _complain("interrupted; finished work is kept", code) if code == INTERRUPTED else code


def _complain(message: str, code: int) -> int:
    print(f"skadmm: {' '.join(message.split())}", file=sys.stderr)
    return code


def _app() -> Any:
    import typer

    app = typer.Typer(
        name="skadmm",
        help="Fused, graph-guided and group lasso, trend filtering and their relatives, with a proof of optimality.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def top(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
        if version:
            print(__version__)
            raise typer.Exit

    for name in COMMANDS:
        importlib.import_module(f"skadmm.cli.{name}").add_to(app)
    return app


__all__ = ["main", "run"]
