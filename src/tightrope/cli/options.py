"""Options that commands share, and how their values are parsed."""

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
    """Where the runs of a study are played."""

    PROCESSES = "processes"
    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


class LogLevel(StrEnum):
    """The least severe messages that a service logs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a service writes its log."""

    TEXT = "text"
    JSON = "json"


class Form(StrEnum):
    """File format of a figure."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def choices(kind: type[StrEnum]) -> str:
    """Return the values of an option for its help."""
    return "|".join(kind)


def whole(help_: str, at_least: int, at_most: int, **how: Any) -> Any:
    """An option that takes a whole number as people write it: 20000, 20_000, 2e4."""

    def parse(text: str | int) -> int:
        try:
            number = float(text)
            exact = int(text) if isinstance(text, int) or text.replace("_", "").isdigit() else int(number)
        except (ValueError, OverflowError):
            raise typer.BadParameter(f"{text!r} is not a whole number.") from None
        if number != int(number):
            raise typer.BadParameter(f"{text!r} is not a whole number.")
        if exact < at_least:
            raise typer.BadParameter(f"{text!r} is too small; the least is {at_least}.")
        if exact > at_most:
            raise typer.BadParameter(f"{text!r} is too large; the most is {at_most}.")
        return exact

    return typer.Option(parser=parse, metavar="N", help=help_, **how)


def listed(flag: str, given: Iterable[str] | None) -> list[str]:
    """Parse --learner a --learner b,c: each name once, in order."""
    names: list[str] = []
    for text in given or ():
        found = [name for name in map(str.strip, text.split(",")) if name]
        if not found:
            raise typer.BadParameter(f"{flag} {text!r} names nothing.")
        names += found
    return list(dict.fromkeys(names))


def budgets(given: Iterable[str]) -> dict[str, list[float]]:
    """Parse --budget delay=12 --budget energy=5,6: the limits of each budget."""
    found: dict[str, list[float]] = {}
    for text in given:
        name, _, values = text.rpartition("=")
        try:
            limits = [float(value) for value in values.split(",")]
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"--budget {text}: expected the name of a budget and its limit, NAME=LIMIT.")
        found.setdefault(name, []).extend(limits)
    return found


def limits(given: Iterable[str]) -> dict[str, float]:
    """Parse --budget delay=12 --budget energy=6 where each budget has one limit."""
    found = {}
    for name, values in budgets(given).items():
        if len(values) > 1:
            shown = " and ".join(f"{value:g}" for value in values)
            raise typer.BadParameter(f"--budget {name} is given twice, {shown}; leave out one.")
        [found[name]] = values
    return found


def episodes_of(problem: str, episodes: int | None) -> int:
    """Return the number of episodes: the given one, else all recorded ones, else 20,000."""
    from tightrope.problems import PROBLEMS

    recorded = PROBLEMS[problem].episodes if problem in PROBLEMS else None
    return episodes or recorded or 20_000


def complete(kind: str) -> Callable[[str], list[str]]:
    """Return what completes the last of several names; the registries are loaded only when it is called."""

    def completed(incomplete: str) -> list[str]:
        from tightrope.cli.listings import names

        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names(kind) if name.startswith(last)]

    return completed


def _several(what: str, kind: str, *flags: str, default: str) -> object:
    help_ = f"{what}, separated by commas; see: tightrope list {kind}."
    return typer.Option(*flags, metavar="NAMES", help=help_, show_default=default, autocompletion=complete(kind))


Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="The name of a problem (tightrope list problems), or a folder that holds one (tightrope new).",
        autocompletion=complete("problems"),
    ),
]
Episodes = Annotated[
    int | None,
    whole(
        "Number of episodes T of a run, for example 20000 or 2e4.",
        1,
        LARGEST,
        show_default="20000; of recorded days, all",
    ),
]
Learners = Annotated[
    list[str] | None,
    _several("Learners to run", "learners", "--learner", "--learners", default="ucpd-practical, ucpd"),
]
Losses = Annotated[
    list[str] | None, _several("Loss sequences to run", "losses", "--losses", default="the problem's own")
]
Noises = Annotated[
    list[str] | None,
    _several("Laws of the constraints to run", "noises", "--noise", "--constraints", default="the problem's own"),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run or of a study.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all numbers as JSON instead of the page.")]
Port = Annotated[int, whole("Port of the page; 0 takes a free one.", 0, 65535, show_default="a free port")]


class Conduct(NamedTuple):
    """The options of playing a study, for every command that is decorated with `conducts`."""

    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUES",
            help="Run every one of these values of an option: learner.radius_scale=0.1,0.3. Keys begin with "
            "learner., problem., losses. or noise.; repeat for several options.",
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            metavar="NAME=LIMITS",
            help="Run the problem with every one of these limits of a budget, in its own unit: delay=12,14; repeat for "
            "several budgets.",
        ),
    ] = None
    jobs: Annotated[int, whole("Number of runs to play in parallel; -1 is one for each core.", -1, LARGEST)] = -1
    backend: Annotated[
        Backend,
        typer.Option(
            metavar="BACKEND",
            help="Where to play the runs: processes or loky (on this machine), dask or ray (on a cluster).",
        ),
    ] = Backend.PROCESSES
    address: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of the Dask or Ray cluster.", show_default="a cluster on this machine"
        ),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard existing results of these runs and start over.")] = (
        False
    )
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and an estimate of their duration; play nothing.")
    ] = False
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Time between two checkpoints of a run.")
    ] = 10.0
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve a live page of the study on this machine while it is played.")
    ] = False
    port: Port = 0
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            "--tensorboard", metavar="DIR", help="Write TensorBoard logs to this folder.", show_default="none"
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the results.", show_default="a folder in runs/ named after the study"
        ),
    ] = None


def conducts(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the last argument of `command`, `conduct`, by the options of `Conduct`."""
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
