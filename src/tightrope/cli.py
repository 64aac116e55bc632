"""The command line: parsing and printing only. Results on stdout, progress and notes on stderr."""

import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.errors import ConvergenceError, InvalidInputError, TightropeError

# numba, scipy and matplotlib are imported by the functions that need them: help is there at once
if TYPE_CHECKING:
    from tightrope.problems.base import Problem
    from tightrope.simulate import History
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


@app.command("list")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="One kind only; everything if left out.")] = None,
) -> None:
    """List the problems, learners or loss sequences that can be asked for by name."""
    for one in Kind if kind is None else [kind]:
        if kind is None:
            typer.echo(f"{one.value}:")
        entries = _entries(one)
        width = max(len(name) for name, _ in entries)
        for name, summary in entries:
            typer.echo(f"{'' if kind else '  '}{name:{width}}  {summary}")


def _entries(kind: Kind) -> list[tuple[str, str]]:
    """Names and one-line summaries, in alphabetical order."""
    from tightrope.learners import LEARNERS
    from tightrope.problems import PROBLEMS
    from tightrope.problems.losses import LOSSES

    if kind is Kind.PROBLEMS:
        return sorted((name, entry.summary) for name, entry in PROBLEMS.items())
    classes: Mapping[str, object] = LEARNERS if kind is Kind.LEARNERS else LOSSES
    return sorted((name, (made.__doc__ or "").strip().partition("\n")[0]) for name, made in classes.items())


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `tightrope run` was asked to do; the same request gives the same files."""

    problem: str
    losses: str | None
    learner: str
    episodes: int
    seed: int
    seeds: int

    @property
    def all_seeds(self) -> range:
        """Seeds follow one another."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def name(self) -> str:
        """A folder of its own for every request."""
        seeds = f"seed{self.seed}" if self.seeds == 1 else f"seeds{self.seed}-{self.all_seeds[-1]}"
        parts = [self.problem, self.losses, self.learner, f"T{self.episodes}", seeds]
        return "-".join(part for part in parts if part)

    def make_problem(self) -> "Problem":
        """The problem, with the losses asked for."""
        from tightrope.problems import make

        return make(self.problem) if self.losses is None else make(self.problem, losses=self.losses)


@app.command(epilog=EXIT_CODES)
def run(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="See: tightrope list problems.")],
    episodes: Annotated[int, typer.Option(min=1, help="T, how many episodes to play.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="The (first) random seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, one after another; all cores share them.")] = 1,
    losses: Annotated[
        str | None, typer.Option(help="See: tightrope list losses.", show_default="the problem's own")
    ] = None,
    learner: Annotated[str, typer.Option(help="See: tightrope list learners.")] = "ucpd",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and picture.", show_default="one of its own in runs/"),
    ] = None,
) -> None:
    """Play a problem and show regret and violation, exactly accounted for."""
    from tightrope import figures
    from tightrope.files import SETTINGS, claim_folder, write_json
    from tightrope.learners import make_learner

    request = Request(problem=problem, losses=losses, learner=learner, episodes=episodes, seed=seed, seeds=seeds)
    # wrong names are refused before anything is written
    made = request.make_problem()
    settings = make_learner(learner, made.space, made.budgets, episodes=episodes).settings
    folder = out or Path("runs", request.name)
    if claim_folder(folder, asdict(request)):
        _note(f"{folder} holds this very run already; writing it anew")

    histories = _play(request, folder)

    title = f"{problem}, {made.losses.name} losses · {learner} · T = {figures.grouped(episodes)} episodes"
    title += f" · seed {seed}" if seeds == 1 else f" · {seeds} seeds"
    png, _ = figures.save(figures.draw({learner: histories}, title=title), folder, "picture")
    write_json(folder / SETTINGS, {"tightrope": __version__, "request": asdict(request), "learner": settings})

    shown = {name: value for name, value in settings.items() if name not in asdict(request)}
    more = f" … seed{request.all_seeds[-1]}.csv" if seeds > 1 else ""
    lines = [
        f"{problem}, {made.losses.name} losses, learner {learner}",
        "",
        *results(request, histories),
        "settings: " + ", ".join(f"{name} {_plain(value)}" for name, value in shown.items()),
        "",
        f"table    {_table_path(folder, seed)}{more}",
        f"picture  {png} (and .svg)",
    ]
    typer.echo("\n".join(lines))


def _table_path(folder: Path, seed: int) -> Path:
    return folder / f"history-seed{seed}.csv"


def _play(request: Request, folder: Path) -> "list[History]":
    """All seeds, alone here or side by side in processes: the same results."""
    seeds = request.all_seeds
    if len(seeds) == 1:
        with _bar("episodes", request.episodes) as show:
            return [_play_seed(request, seeds[0], folder, show)]

    import joblib

    with _interrupts_ignored():  # the workers start deaf to Ctrl-C and stay so: it is ours alone to answer
        jobs = (joblib.delayed(_play_seed)(request, seed, folder) for seed in seeds)
        arriving = joblib.Parallel(n_jobs=-1, return_as="generator")(jobs)
    histories = []
    try:
        with _bar("seeds", len(seeds)) as show:
            for history in arriving:
                histories.append(history)
                show(len(histories))
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


def _play_seed(request: Request, seed: int, folder: Path, progress: Callable[[int], None] | None = None) -> "History":
    """One run; its table is on disk before the next begins."""
    from tightrope.files import write_csv
    from tightrope.simulate import run

    problem = request.make_problem()
    try:
        history = run(problem, request.learner, episodes=request.episodes, seed=seed, progress=progress)
    except ConvergenceError as error:
        raise ConvergenceError(f"seed {seed}: {error}") from error
    write_csv(_table_path(folder, seed), history)
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


def results(request: Request, histories: "Sequence[Mapping[str, FloatArray]]") -> list[str]:
    """The table of the last records, one line a seed, then mean and standard error; what it means."""
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
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    return [*lines, "", *MEANINGS]


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
