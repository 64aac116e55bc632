"""The application that all commands belong to: help, one-line errors, exit codes, the version."""

import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from tightrope import __version__
from tightrope.cli import note, show
from tightrope.errors import InvalidInputError, TightropeError, in_words

#: The base class of typer's errors about a command line. It is not imported by name, since its module has moved.
UsageError: Any = typer.BadParameter.__base__

FAILED, WRONG_INPUT = 1, 2


def _without_types(parameters: list[Any]) -> list[Any]:
    """Show flags as flags, and arguments by their names alone."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            parameter.metavar = name
            usage = name if parameter.required else f"[{name}]"
            parameter.display_type_rich = lambda ctx: ""
            parameter.get_usage_pieces = lambda ctx, usage=usage: [usage]
    return parameters


class Command(TyperCommand):
    """A command whose help shows no Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters for parsing and help."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """Reports every error as one line on stderr and an exit code; only a bug of ours shows a traceback."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters for parsing and help."""
        return _without_types(super().get_params(ctx))

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command and exit."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except UsageError as error:
            code = _complain(_usage(error), WRONG_INPUT)
        except InvalidInputError as error:
            code = _complain(str(error), WRONG_INPUT)
        except TightropeError as error:
            code = _complain(str(error), FAILED)
        except OSError as error:
            code = _complain(in_words(error), FAILED)
        sys.exit(code)


def _usage(error: Any) -> str:
    """Return the message of an error about the command line, with the nearest option and the help to read."""
    words = error.format_message()
    if getattr(error, "possibilities", None) and hasattr(error, "option_name"):
        words = f"{error.message}; did you mean {error.possibilities[0]}?"
    where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
    words = words.replace("Value error, ", "").replace("Input should be", "it must be")  # of pydantic, inside typer
    return f"{words.removesuffix('.')}{where}"


app = typer.Typer(cls=Group, pretty_exceptions_enable=False)
EXIT_CODES = (
    "Exit code: 0 success, 1 a run failed, 2 wrong usage or input, 130 interrupted with Ctrl-C, 128 + n ended by "
    "signal n."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        show(f"tightrope {__version__}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Online reinforcement learning on a budget: unknown dynamics, adversarial losses, long-run limits."""


def _complain(message: str, code: int) -> int:
    """Write one line to stderr and return the exit code."""
    note(f"tightrope: {' '.join(message.split())}")
    return code
