"""The commands: parsing and printing only. Results on stdout, progress and notes on stderr."""

import sys
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.errors import InvalidInputError, TightropeError, in_words

# all else of ours is imported by the commands that need it: help does not wait for numba, scipy and matplotlib

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


app = typer.Typer(cls=OneLineErrors, add_completion=False, pretty_exceptions_enable=False)
EXIT_CODES = (
    "Exit code: 0 done, 1 a run failed, 2 wrong usage or input, 130 interrupted with Ctrl-C, 128 + n ended by signal n."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        _show(f"tightrope {__version__}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Online reinforcement learning on a budget: unknown dynamics, adversarial losses, long-run limits."""


class Kind(StrEnum):
    """What can be listed."""

    PROBLEMS = "problems"
    LEARNERS = "learners"
    LOSSES = "losses"
    NOISES = "noises"


@app.command("list")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="One kind only; everything if left out.")] = None,
) -> None:
    """List the problems, learners, loss sequences or constraint noises that can be asked for by name."""
    from tightrope.experiments.listings import listing

    for one in [kind] if kind else Kind:
        lines = listing(one)
        _show("\n".join(lines if kind else [f"{one}:", *lines, ""]))


@app.command(epilog=EXIT_CODES)
def run(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="A name (tightrope list problems) or a folder (tightrope new).")
    ],
    episodes: Annotated[int, typer.Option(min=1, help="T, how many episodes to play.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="The (first) random seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, one after another; all cores share them.")] = 1,
    losses: Annotated[
        str | None, typer.Option(help="See: tightrope list losses.", show_default="the problem's own")
    ] = None,
    learner: Annotated[
        str, typer.Option("--learners", "--learner", help="One or several, a,b,c. See: tightrope list learners.")
    ] = "ucpd-practical,ucpd",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and picture.", show_default="one of its own in runs/"),
    ] = None,
) -> None:
    """Play a problem and show regret and violation, exactly accounted for."""
    from tightrope.experiments import figures, tables
    from tightrope.experiments.history import budgets_of, describe_units
    from tightrope.experiments.play import compiled_before, play, prepare
    from tightrope.experiments.progress import bar
    from tightrope.experiments.request import Request
    from tightrope.storage.files import SETTINGS, claim_folder, write_json

    request = Request(
        problem=problem, losses=losses, learner=learner, episodes=episodes, seed=seed, seeds=seeds
    ).located()
    ready = compiled_before()
    prepared = prepare(request)  # what is wrong is refused before anything is written
    request = prepared.request
    folder = out or Path("runs", request.name)
    with claim_folder(folder, asdict(request)) as held_before:
        if held_before:
            _note(f"{folder} holds this very run already; writing it anew")
        if not ready:
            _note("compiling first, which takes a minute or less and is kept for the next time")
        played = play(prepared, folder, bar)
        settings, made = played.settings, prepared.problem
        write_json(folder / SETTINGS, {"tightrope": __version__, "request": asdict(request), "learners": settings})
        budgets, files = budgets_of(made), [folder / request.table_name(*run) for run in request.runs]
        lines = [
            f"{made.name}, {made.losses.name} losses, learner{'s' * (len(settings) > 1)} {', '.join(settings)}",
            "",
            *tables.spending(budgets, played.histories),
            *[""] * bool(budgets),
            *tables.results(request, played.histories, settings),
            *filter(None, [describe_units(made)]),
            *tables.describe_settings(request, settings),
            "",
            f"table    {files[0]}" + (f" … {files[-1].name}" if len(files) > 1 else ""),
        ]
        _show("\n".join(lines))  # before the picture, which takes a while
        picture = figures.draw(played.histories, title=figures.title(request, made), budgets=budgets)
        png, _ = figures.save(picture, folder, "picture")
    _show(f"picture  {png} (and .svg)")


@app.command(epilog=EXIT_CODES)
def new(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="A folder that does not exist yet; those above it are made too.")
    ],
) -> None:
    """Write a small commented example of a problem in files of your own."""
    from tightrope.problems.files import write_example

    for path in write_example(folder):
        _show(str(path))
    _note(f"change them as you like, then: tightrope run {folder}")


def _show(text: str) -> None:
    """Results, on stdout."""
    try:
        print(text, flush=True)
    except OSError as error:  # typer is silent about one who has read enough
        raise OSError(error.errno, error.strerror, "stdout") from error


def _note(message: str) -> None:
    """All else, on stderr; there is no one to tell if that cannot be written."""
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)


def _complain(message: str, code: int) -> int:
    """One line on stderr; returns the exit code."""
    _note(f"tightrope: {' '.join(message.split())}")
    return code
