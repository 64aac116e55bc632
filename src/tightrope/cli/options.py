"""Options that commands share, and how their values are parsed."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import typer

from tightrope.arguments import LARGEST

Spacing = Literal["log", "linear"]
Regret = Literal["records", "last", "never"]
Backend = Literal["processes", "loky", "dask", "ray"]
LogLevel = Literal["info", "warning", "error"]
LogFormat = Literal["text", "json"]
Form = Literal["svg", "png", "pdf"]


def argument(metavar: str, help_: str, **how: Any) -> Any:
    """An argument of a command: its name and description in the help."""
    return typer.Argument(metavar=metavar, help=help_, **how)


def value(metavar: str, help_: str, *flags: str, default: str | None = None, names: str = "", **how: Any) -> Any:
    """An option that takes a value.

    Parameters
    ----------
    flags : by default the name of the argument.
    default : what the help shows as the default where the value is None.
    names : the kind of names that complete it, as in `complete`.
    """
    if names:
        how["autocompletion"] = complete(names)
    return typer.Option(*flags, metavar=metavar, help=help_, show_default=default or True, **how)


def one_of(kind: Any, help_: str, **how: Any) -> Any:
    """An option that takes one of the values of a Literal."""
    return value("|".join(get_args(kind)), help_, **how)


def flag(name: str, help_: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help_)


def whole(help_: str, at_least: int, at_most: int, default: str | None = None) -> Any:
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

    return value("N", help_, default=default, parser=parse)


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


Problem = Annotated[
    str,
    argument(
        "PROBLEM",
        "The name of a problem (tightrope list problems), or a folder that holds one (tightrope new).",
        autocompletion=complete("problems"),
    ),
]
Episodes = Annotated[
    int | None,
    whole("Number of episodes T of a run, for example 20000 or 2e4.", 1, LARGEST, "20000; of recorded days, all"),
]
Learner = Annotated[str, value("NAME", "Learner to create; see: tightrope list learners.", names="learners")]
Planned = Annotated[int | None, whole("Planned number of episodes, for a learner that depends on it.", 1, LARGEST)]
Folder = Annotated[Path, argument("DIR", "The folder of a run or of a study.")]
AsJson = Annotated[bool, flag("--json", "Print all numbers as JSON instead of the page.")]
Port = Annotated[int, whole("Port of the page; 0 takes a free one.", 0, 65535, "a free port")]


class Conduct(NamedTuple):
    """The options of playing a study, for `tightrope run` and `sweep`."""

    set_: Annotated[
        list[str] | None,
        value(
            "KEY=VALUES",
            "Run every one of these values of an option: learner.radius_scale=0.1,0.3. Keys begin with learner., "
            "problem., losses. or noise.; repeat for several options.",
            "--set",
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        value(
            "NAME=LIMITS",
            "Run the problem with every one of these limits of a budget, in its own unit: delay=12,14; repeat for "
            "several budgets.",
        ),
    ] = None
    jobs: Annotated[int, whole("Number of runs to play in parallel; -1 is one for each core.", -1, LARGEST)] = -1
    backend: Annotated[
        Backend,
        value("BACKEND", "Where to play the runs: processes or loky (on this machine), dask or ray (on a cluster)."),
    ] = "processes"
    address: Annotated[
        str | None, value("URL", "Address of the Dask or Ray cluster.", default="a cluster on this machine")
    ] = None
    fresh: Annotated[bool, flag("--fresh", "Discard existing results of these runs and start over.")] = False
    dry_run: Annotated[bool, flag("--dry-run", "Print the runs and an estimate of their duration; play nothing.")] = (
        False
    )
    checkpoint_every: Annotated[float, value("SECONDS", "Time between two checkpoints of a run.", min=0.0)] = 10.0
    watch: Annotated[bool, flag("--watch", "Serve a live page of the study on this machine while it is played.")] = (
        False
    )
    port: Port = 0
    tensorboard: Annotated[Path | None, value("DIR", "Write TensorBoard logs to this folder.", default="none")] = None
    out: Annotated[
        Path | None, value("DIR", "Folder for the results.", default="a folder in runs/ named after the study")
    ] = None


class Serving(NamedTuple):
    """The options of a service: its address and limits, its log, and what its learners keep."""

    host: Annotated[str, value("ADDRESS", "Address to listen on; any but a loopback address requires a token.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, whole("Port to listen on; 0 takes a free one.", 0, 65535)] = 8000
    token_file: Annotated[
        Path | None,
        value("FILE", "File that holds a token with all roles.", default="the environment variable TIGHTROPE_TOKEN"),
    ] = None
    tokens_file: Annotated[
        Path | None,
        value(
            "FILE",
            "File with the tokens that clients may send, each with its roles (tightrope token).",
            "--tokens",
        ),
    ] = None
    certificate: Annotated[Path | None, value("FILE", "TLS certificate in PEM format.", default="no TLS")] = None
    key: Annotated[
        Path | None,
        value("FILE", "Private key of the certificate.", default="in the file of the certificate"),
    ] = None
    rate: Annotated[float, value("N", "Most requests per second from one address.", min=1.0)] = 5000.0
    max_body: Annotated[int, whole("Most bytes of a request.", 1, LARGEST)] = 8 * 2**20
    max_open: Annotated[int, whole("Most episodes open at once.", 1, LARGEST)] = 1000
    log_level: Annotated[
        LogLevel,
        one_of(LogLevel, "What to log: every request (info), or those that failed (warning)."),
    ] = "warning"
    log_format: Annotated[LogFormat, one_of(LogFormat, "Format of the log on stderr.")] = "text"
    expire_after: Annotated[
        float | None,
        value("SECONDS", "Give up episodes that are open for longer.", default="never", min=1.0),
    ] = None
    snapshot_every: Annotated[int, whole("Number of events between two snapshots.", 1, LARGEST)] = 1000
    keep_days: Annotated[float, value("N", "How long events are kept, to be corrected.", min=0.0, max=36_500.0)] = 90.0
    keep_journal: Annotated[int, whole("How many events are kept for that, at most.", 0, LARGEST)] = 100_000


def grouped(group: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the last argument of a command by the options of a NamedTuple, `Conduct` or `Serving`."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        *own, last = inspect.signature(command).parameters.values()
        shared = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=kind
            )
            for name, kind in get_type_hints(group, include_extras=True).items()
        ]

        @wraps(command)
        def with_options(**given: Any) -> None:
            options = group(**{name: given.pop(name) for name in group._fields})
            command(**given, **{last.name: options})

        with_options.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        return with_options

    return decorated
