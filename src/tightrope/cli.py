"""The command line: parsing and printing only. Results on stdout, progress and notes on stderr."""

import hashlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.errors import ConvergenceError, InvalidInputError, TightropeError

# numba, scipy and matplotlib are imported by the functions that need them: help is there at once
if TYPE_CHECKING:
    from tightrope.experiments.history import History
    from tightrope.learners import LearnerBase
    from tightrope.problems.base import Problem
    from tightrope.space import FloatArray

#: What typer raises about a command line; its own module moved between releases, this heir did not.
UsageError: Any = typer.BadParameter.__base__

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


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
        except (TightropeError, OSError) as error:
            code = _complain(str(error), FAILED)
        sys.exit(code)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C ends it in good order."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_complain("interrupted", INTERRUPTED)) from None


app = typer.Typer(cls=OneLineErrors, add_completion=False, pretty_exceptions_enable=False)
EXIT_CODES = "Exit code: 0 done, 1 a run failed, 2 wrong usage or input, 130 interrupted with Ctrl-C."


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tightrope {__version__}")
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
    for one in Kind if kind is None else [kind]:
        heading, *rows = _listing(one)
        widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
        if kind is None:
            typer.echo(f"{one.value}:")
        for row in (heading, *sorted(rows)):
            typer.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        if kind is None:
            typer.echo()


def _listing(kind: Kind) -> list[tuple[str, ...]]:
    """A heading, and a row for each name."""
    from tightrope.learners import LEARNERS
    from tightrope.problems import PROBLEMS
    from tightrope.problems.constraints import NOISES
    from tightrope.problems.losses import LOSSES

    if kind is Kind.PROBLEMS:
        return [
            ("problem", "states", "steps", "budgets", "what it is", "source"),
            *(
                (name, str(entry.states), str(entry.steps), str(entry.constraints), entry.summary, entry.source)
                for name, entry in PROBLEMS.items()
            ),
        ]
    if kind is Kind.LEARNERS:
        return [
            ("learner", "feedback", "is told", "what it does", "published"),
            *(
                (name, learner.feedback, _told(learner), learner.summary().removesuffix("."), _published(learner))
                for name, learner in LEARNERS.items()
            ),
        ]
    made = LOSSES if kind is Kind.LOSSES else NOISES
    return [
        ("name", "what it is"),
        *((name, (maker.__doc__ or "").strip().partition("\n")[0].removesuffix(".")) for name, maker in made.items()),
    ]


def _told(learner: "type[LearnerBase]") -> str:
    return ", ".join(need.replace("_", " ") for need in learner.needs if need != "rng")


def _published(learner: "type[LearnerBase]") -> str:
    """By whom, where and when."""
    authors, _, title = learner.reference.partition(": ")
    names = authors.split(", ")
    who = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{who} ({title.rpartition('(')[2]}" if title else ""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `tightrope run` was asked to do; the same request gives the same files."""

    problem: str
    losses: str | None
    learner: str  # or several, with commas
    episodes: int
    seed: int
    seeds: int
    contents: str | None = None  # digest of the files, where the problem is a folder: edited, it is another problem

    @property
    def learners(self) -> list[str]:
        """Their names, each once."""
        return list(dict.fromkeys(name.strip() for name in self.learner.split(",")))

    @property
    def all_seeds(self) -> range:
        """Seeds follow one another."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def name(self) -> str:
        """A folder of its own for every request."""
        seeds = f"seed{self.seed}" if self.seeds == 1 else f"seeds{self.seed}-{self.all_seeds[-1]}"
        problem = Path(self.problem).resolve().name if self.is_folder else self.problem
        names = self.learners
        learners = "+".join(names) if len(names) <= 4 else f"{len(names)}-learners"
        parts = [problem, self.losses, learners, f"T{self.episodes}", seeds]
        return "-".join(part for part in parts if part)

    @property
    def is_folder(self) -> bool:
        """Whether the problem is a folder of somebody's own; a name that we know comes first."""
        from tightrope.problems import PROBLEMS

        path = Path(self.problem)
        return self.problem not in PROBLEMS and (len(path.parts) != 1 or path.is_absolute() or path.exists())

    def make_problem(self) -> "Problem":
        """The problem, with the losses asked for."""
        from tightrope.problems import make

        if self.is_folder:
            from tightrope.problems.files import load_problem

            return load_problem(self.problem, losses=self.losses)
        return make(self.problem) if self.losses is None else make(self.problem, losses=self.losses)


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
    ] = "ucpd",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and picture.", show_default="one of its own in runs/"),
    ] = None,
) -> None:
    """Play a problem and show regret and violation, exactly accounted for."""
    from tightrope.experiments import figures
    from tightrope.experiments.history import describe_units
    from tightrope.learners import make_learner
    from tightrope.storage.files import SETTINGS, claim_folder, write_json

    request = Request(problem=problem, losses=losses, learner=learner, episodes=episodes, seed=seed, seeds=seeds)
    if request.is_folder:
        plain = replace(request, problem=os.path.normpath(problem), contents=_digest(Path(problem)))
        request = plain if plain.is_folder else replace(plain, problem=f".{os.sep}{plain.problem}")
    # wrong names are refused before anything is written
    made = request.make_problem()
    settings = {name: make_learner(name, made, episodes=episodes, seed=seed).settings for name in request.learners}
    folder = out or Path("runs", request.name)
    if claim_folder(folder, asdict(request)):
        _note(f"{folder} holds this very run already; writing it anew")

    histories = _play(request, folder)

    names = ", ".join(settings) if len(settings) <= 4 else f"{len(settings)} learners"
    title = f"{made.name}, {made.losses.name} losses · {names} · T = {figures.grouped(episodes)} episodes"
    title += f" · seed {seed}" if seeds == 1 else f" · {seeds} seeds"
    png, _ = figures.save(figures.draw(histories, title=title), folder, "picture")
    write_json(folder / SETTINGS, {"tightrope": __version__, "request": asdict(request), "learners": settings})

    tables = [_table_path(folder, request, name, number) for name in settings for number in request.all_seeds]
    lines = [
        f"{made.name}, {made.losses.name} losses, learner{'s' * (len(settings) > 1)} {', '.join(settings)}",
        "",
        *results(request, histories, settings),
        *filter(None, [describe_units(made)]),
        *(_describe_settings(request, name, values) for name, values in settings.items()),
        "",
        f"table    {tables[0]}" + (f" … {tables[-1].name}" if len(tables) > 1 else ""),
        f"picture  {png} (and .svg)",
    ]
    typer.echo("\n".join(lines))


@app.command(epilog=EXIT_CODES)
def new(folder: Annotated[Path, typer.Argument(metavar="NAME", help="A folder that does not exist yet.")]) -> None:
    """Write a small commented example of a problem in files of your own."""
    from tightrope.problems.files import write_example

    for path in write_example(folder):
        typer.echo(path)
    _note(f"change them as you like, then: tightrope run {folder}")


def _digest(folder: Path) -> str:
    """Of all files in a folder: their names and what is in them."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.is_file():
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _table_path(folder: Path, request: Request, learner: str, seed: int) -> Path:
    return folder / (f"history-seed{seed}.csv" if len(request.learners) == 1 else f"history-{learner}-seed{seed}.csv")


def _describe_settings(request: Request, learner: str, settings: "Mapping[str, float | str]") -> str:
    shown = ", ".join(f"{name} {_plain(value)}" for name, value in settings.items() if name not in asdict(request))
    return f"settings: {shown}" if len(request.learners) == 1 else f"settings of {learner}: {shown or 'none'}"


def _play(request: Request, folder: Path) -> "dict[str, list[History]]":
    """All learners and seeds, alone here or side by side in processes: the same results."""
    runs = [(learner, seed) for learner in request.learners for seed in request.all_seeds]
    histories: dict[str, list[History]] = {learner: [] for learner in request.learners}
    if len(runs) == 1:
        with _bar("episodes", request.episodes) as show:
            histories[runs[0][0]].append(_play_one(request, *runs[0], folder, show))
        return histories

    import joblib

    with _interrupts_ignored():  # the workers start deaf to Ctrl-C and stay so: it is ours alone to answer
        place = folder.absolute()  # workers that are there already may have started elsewhere
        jobs = (joblib.delayed(_play_one)(request, learner, seed, place) for learner, seed in runs)
        arriving = joblib.Parallel(n_jobs=-1, return_as="generator")(jobs)
    try:
        with _bar("seeds" if len(histories) == 1 else "runs", len(runs)) as show:
            for done, ((learner, _), history) in enumerate(zip(runs, arriving, strict=True), 1):
                histories[learner].append(history)
                show(done)
    finally:
        with warnings.catch_warnings(action="ignore"):  # it warns that it cancels what is no longer wanted
            arriving.close()
    return histories


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _play_one(
    request: Request, learner: str, seed: int, folder: Path, progress: Callable[[int], None] | None = None
) -> "History":
    """One run; its table is on disk before the next begins."""
    from tightrope.experiments.history import in_units
    from tightrope.experiments.run import run
    from tightrope.storage.files import write_csv

    problem = request.make_problem()
    try:
        history = run(problem, learner, episodes=request.episodes, seed=seed, progress=progress)
    except ConvergenceError as error:
        which = f"seed {seed}" if len(request.learners) == 1 else f"{learner}, seed {seed}"
        raise ConvergenceError(f"{which}: {error}") from error
    history = in_units(problem, history)
    write_csv(_table_path(folder, request, learner, seed), history)
    return history


@contextmanager
def _bar(unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, a note if that is no terminal; yields what to call with the number done."""
    if not sys.stderr.isatty():
        _note(f"playing {total} {unit}")
        yield lambda done: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left:",
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(f"{unit} (compiling first)", total=total)
        yield lambda done: bars.update(task, completed=done, description=unit)


#: The table's columns: heading and column of the history.
COLUMNS = {
    "episodes": "episode",
    "loss": "loss",
    "LP value": "hindsight",
    "regret": "regret",
    "violation": "violation",
    "strong violation": "strong_violation",
}
MEANINGS = (
    "LP value: least loss of a fixed policy within the budgets, in hindsight; regret = loss − LP value",
    "violation: the paper's, good episodes pay for bad ones; strong violation: nothing is ever paid back",
)


def results(
    request: Request,
    histories: "Mapping[str, Sequence[Mapping[str, FloatArray]]]",
    settings: "Mapping[str, Mapping[str, float | str]]",
) -> list[str]:
    """The table of the last records and what it means: a line per seed for one learner, a line per learner for more."""
    if len(histories) == 1:
        [of_seeds] = histories.values()
        return [*_seed_table(request, of_seeds), "", *MEANINGS]

    from tightrope.experiments import tables

    spread = "" if request.seeds == 1 else f"mean ± standard error over {request.seeds} seeds; "
    notes = [f"{spread}after {request.episodes} episodes", *tables.conditions(request.learners)]
    return [*tables.comparison(histories, settings), "", *notes, *MEANINGS]


def _seed_table(request: Request, histories: "Sequence[Mapping[str, FloatArray]]") -> list[str]:
    """One line a seed, then mean and standard error."""
    import numpy as np

    last = np.array([[history[column][-1] for column in COLUMNS.values()] for history in histories])
    rows = dict(zip(map(str, request.all_seeds), last, strict=True))
    if len(last) > 1:
        rows |= {"mean": last.mean(axis=0), "± s.e.": last.std(axis=0, ddof=1) / np.sqrt(len(last))}
    whole_digits = np.floor(np.log10(np.maximum(np.abs(last).max(axis=0), 1)))
    decimals = np.clip(4 - whole_digits, 0, 4).astype(int)
    decimals[0] = 0
    cells = [["seed", *COLUMNS]]
    cells += [[name, *map("{:.{}f}".format, row, decimals)] for name, row in rows.items()]
    if len(last) > 1:
        cells[-1][1] = ""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _note(message: str) -> None:
    typer.echo(message, err=True)


def _complain(message: str, code: int) -> int:
    """One line on stderr; returns the exit code."""
    _note(f"tightrope: {' '.join(message.split())}")
    return code


def main() -> None:
    """The `tightrope` command."""
    app(prog_name="tightrope")


if __name__ == "__main__":
    main()
