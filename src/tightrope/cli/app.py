"""What all commands have in common: how errors are told, exit codes, the version."""

import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.cli.standard import note, show
from tightrope.errors import InvalidInputError, TightropeError, in_words

#: What typer raises about a command line; its own module moved between releases, this heir did not.
UsageError: Any = typer.BadParameter.__base__

FAILED, WRONG_INPUT = 1, 2


class OneLineErrors(TyperGroup):
    """Whatever goes wrong is one line on stderr and an exit code; only a bug of ours shows a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command and exit."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except UsageError as error:
            where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
            code = _complain(f"{error.format_message().removesuffix('.')}{where}", WRONG_INPUT)
        except InvalidInputError as error:
            code = _complain(str(error), WRONG_INPUT)
        except TightropeError as error:
            code = _complain(str(error), FAILED)
        except OSError as error:
            code = _complain(in_words(error), FAILED)
        sys.exit(code)


app = typer.Typer(cls=OneLineErrors, pretty_exceptions_enable=False)
EXIT_CODES = (
    "Exit code: 0 done, 1 a run failed, 2 wrong usage or input, 130 interrupted with Ctrl-C, 128 + n ended by signal n."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        show(f"tightrope {__version__}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Online reinforcement learning on a budget: unknown dynamics, adversarial losses, long-run limits."""


def _complain(message: str, code: int) -> int:
    """One line on stderr; returns the exit code."""
    note(f"tightrope: {' '.join(message.split())}")
    return code
