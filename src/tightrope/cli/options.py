"""Options that commands share, and how what is typed is read."""

import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from tightrope.arguments import LARGEST


class Spacing(StrEnum):
    """How records are spaced."""

    LOG = "log"
    LINEAR = "linear"


class Regret(StrEnum):
    """At which records the hindsight LP is solved."""

    RECORDS = "records"
    LAST = "last"
    NEVER = "never"


class Backend(StrEnum):
    """Who plays the runs."""

    PROCESSES = "processes"
    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


class Form(StrEnum):
    """Of a figure for a paper."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def whole(help_: str, at_least: int, at_most: int) -> Any:
    """An option that takes a whole number as people write it: 20000, 20_000, 2e4."""

    def parse(text: str | int) -> int:
        try:
            number = float(text)
            exact = int(text) if isinstance(text, int) or text.replace("_", "").isdigit() else int(number)
            if number == int(number) and at_least <= exact <= at_most:
                return exact
        except (ValueError, OverflowError):
            pass
        raise typer.BadParameter(f"{text!r} is no whole number from {at_least} to {at_most}.")

    return typer.Option(parser=parse, metavar="INTEGER", help=help_)


def listed(flag: str, given: Iterable[str] | None) -> list[str]:
    """--learner a --learner b,c: each once, in order."""
    names: list[str] = []
    for text in given or ():
        found = [name for name in map(str.strip, text.split(",")) if name]
        if not found:
            raise typer.BadParameter(f"{flag} {text!r} names nothing.")
        names += found
    return list(dict.fromkeys(names))


def limits(given: Iterable[str]) -> dict[str, float]:
    """--budget delay=12 --budget energy=6."""
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"--budget {text}: expected the name of a budget and its limit, NAME=LIMIT.")
        if name in found:
            raise typer.BadParameter(f"--budget {name} is given twice, {found[name]:g} and {limit:g}; leave out one.")
        found[name] = limit
    return found


def complete(kind: str) -> Callable[[str], list[str]]:
    """What completes the last of several names; the registries are loaded only now."""

    def completed(incomplete: str) -> list[str]:
        from tightrope.experiments.listings import names

        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names(kind) if name.startswith(last)]

    return completed


def _several(what: str, kind: str, *flags: str, default: str) -> object:
    help_ = f"{what} See: tightrope list {kind}."
    return typer.Option(*flags, help=help_, show_default=default, autocompletion=complete(kind))


Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A name (tightrope list problems) or a folder (tightrope new).",
        autocompletion=complete("problems"),
    ),
]
Episodes = Annotated[int, whole("T, how many episodes to play: 20000, 2e4.", 1, LARGEST)]
Learners = Annotated[
    list[str] | None,
    _several("One or several: a,b,c.", "learners", "--learner", "--learners", default="ucpd-practical, ucpd"),
]
Losses = Annotated[
    list[str] | None, _several("One or several: a,b,c.", "losses", "--losses", default="the problem's own")
]
Noises = Annotated[
    list[str] | None,
    _several("One or several: a,b,c.", "noises", "--noise", "--constraints", default="the problem's own"),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run or a study.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Where to serve the page.", show_default="any that is free")]


class Conduct(NamedTuple):
    """How a study is conducted: the options of every command that is decorated with `conducts`."""

    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUES",
            help="Values of an option, each played: learner.radius_scale=0.1,0.3; also problem., losses. and noise.",
        ),
    ] = None
    jobs: Annotated[int, typer.Option(min=-1, help="How many runs to play side by side; -1: one for each core.")] = -1
    backend: Annotated[
        Backend, typer.Option(help="Who plays them: processes of its own, loky, a Dask or Ray cluster.")
    ] = Backend.PROCESSES
    address: Annotated[
        str | None, typer.Option(help="Of a Dask or Ray cluster.", show_default="one on this machine")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Play anew what is there already.")] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be played, and how long it would take.")
    ] = False
    checkpoint_every: Annotated[float, typer.Option(min=0.0, help="Seconds between two checkpoints of a run.")] = 10.0
    watch: Annotated[bool, typer.Option("--watch", help="Serve a page of it on this machine, until it is done.")] = (
        False
    )
    port: Port = 0
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            "--tensorboard", metavar="DIR", help="Where to write what TensorBoard shows.", show_default="nowhere"
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables and picture.", show_default="one of its own in runs/")
    ] = None


def conducts(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with the options of its last argument, `conduct`, in place of that."""
    *own, _ = inspect.signature(command).parameters.values()
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=Conduct._field_defaults[name], annotation=kind)
        for name, kind in get_type_hints(Conduct, include_extras=True).items()
    ]

    @wraps(command)
    def with_options(**given: Any) -> None:
        conduct = Conduct(**{name: given.pop(name) for name in Conduct._fields})
        command(**given, conduct=conduct)

    with_options.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return with_options
