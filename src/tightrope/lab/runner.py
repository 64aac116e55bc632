"""Plays a study in a folder and shows its progress: finished runs are kept, interrupted ones continue."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, process_time

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TimeElapsedColumn

from tightrope.errors import InvalidInputError, TightropeError
from tightrope.lab.engines import Engine, Task
from tightrope.lab.folder import RUNS, RunFolder, finished
from tightrope.lab.plan import Configuration, digest, folder_of, planned
from tightrope.lab.pool import usable_cores
from tightrope.lab.results import Results
from tightrope.lab.run import Callback, Run
from tightrope.lab.study import MARK, STUDY, Choice, Named, Study, StudyFile, differences, to_toml
from tightrope.lab.tables import aligned
from tightrope.problems.files.declaration import FILE
from tightrope.signals import advising, finally_
from tightrope.storage.files import claim_folder, write_bytes

# --------------------------------------------------------------------------------------------- progress
#
# The share of all episodes of all runs: a bar on a terminal, otherwise a line from time to time.

#: Called with the numbers of episodes and of runs that are done.
Show = Callable[[int, int], None]

#: Takes the total numbers of episodes and runs, and how many of each were done before; yields a `Show`.
Watch = Callable[[int, int, int, int], AbstractContextManager[Show]]

#: Seconds between lines if there is no terminal; the last value is repeated.
LINES = (5, 15, 30, 60)


@contextmanager
def silence(episodes: int, runs: int, episodes_before: int, runs_before: int) -> Iterator[Show]:
    """Show no progress."""
    yield lambda episodes_done, runs_done: None


class Estimate:
    """An estimate of the remaining time, from the time of the episodes so far."""

    def __init__(self, episodes: int, before: int, clock: Callable[[], float] = monotonic) -> None:
        self.episodes, self.before, self.clock = episodes, before, clock
        self.began: float | None = None

    def __call__(self, done: int) -> str:
        """Return the estimate as text; empty before the first episode, since imports come first."""
        if done <= self.before:
            return ""
        if self.began is None:
            self.began, self.before = self.clock(), done
            return ""
        seconds = (self.clock() - self.began) * (self.episodes - done) / (done - self.before)
        return f"about {lasting(seconds)} left"


def lasting(seconds: float) -> str:
    """Return a duration as text."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@contextmanager
def shown(episodes: int, runs: int, episodes_before: int, runs_before: int) -> Iterator[Show]:
    """Show a progress bar on stderr, or lines if that is not a terminal."""
    estimate = Estimate(episodes, episodes_before)

    def words(episodes_done: int, runs_done: int) -> str:
        left = estimate(episodes_done)
        of_runs = f"{runs_done} of {runs} runs, " if runs > 1 else ""
        return f"{of_runs}{episodes_done:,} of {episodes:,} episodes" + (f", {left}" if left else "")

    if not sys.stderr.isatty():
        begun = f"{runs - runs_before} runs, " if runs > 1 else ""
        print(f"playing {begun}{episodes - episodes_before:,} episodes", file=sys.stderr, flush=True)
        yield lines(words)
        return
    columns = (BarColumn(), "{task.percentage:>3.0f} %", "{task.description}", TimeElapsedColumn())
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    with finally_(bars.stop):  # restores the cursor
        bars.start()
        task = bars.add_task("starting", total=episodes, completed=episodes_before)

        def show(episodes_done: int, runs_done: int) -> None:
            bars.update(task, completed=episodes_done, description=words(episodes_done, runs_done))

        yield show


def lines(words: Callable[[int, int], str], clock: Callable[[], float] = monotonic) -> Show:
    """Return a `Show` that prints a line from time to time."""
    began, printed = clock(), 0

    def show(episodes_done: int, runs_done: int) -> None:
        nonlocal printed
        text = words(episodes_done, runs_done)
        due = LINES[printed] if printed < len(LINES) else LINES[-1] * (printed - len(LINES) + 2)
        if clock() - began >= due:
            printed += 1
            print(text, file=sys.stderr, flush=True)

    return show


# --------------------------------------------------------------------------------------------- studies

#: What to do after an interruption.
RESUME = "the same command continues from the last checkpoint"

#: The most runs that are named in the note about runs that continue.
NAMED = 5

#: Seconds between two looks at the progress of the runs.
LOOK = 0.5


def folder_name(study: Study) -> str:
    """Return a readable and unique folder name for a study without a file."""
    asked = [_names(choices) for choices in (study.problems, study.losses, study.noises)]
    learners, seeds = study.learners, study.all_seeds
    names = _names(learners) if len(learners) <= 4 else f"{len(learners)}-learners"
    horizons = "T" + "+".join(map(str, study.horizons))
    which = f"seed{seeds[0]}" if len(seeds) == 1 else f"seeds{seeds[0]}-{seeds[-1]}"
    beyond = msgspec.structs.replace(study, contents={}, seeds=1, episodes=1)
    ordinary = Study(problems=study.problems, learners=learners, losses=study.losses, noises=study.noises)
    same = len(learners) <= 4 and beyond == msgspec.structs.replace(ordinary, seeds=1, episodes=1)
    return "-".join(filter(None, [*asked, names, horizons, which, "" if same else digest(beyond)]))


def _names(choices: Sequence[Choice]) -> str:
    return "+".join(_label(Named.of(choice).name) for choice in choices)


def _label(name: str) -> str:
    """A name, or the name of the folder that a path leads to."""
    path = Path(name).parent if Path(name).name == FILE else Path(name)
    return path.resolve().name if os.sep in name or path == Path() else name


def resolved(study: Study, beside: Path) -> tuple[Study, list[Configuration]]:
    """Return the study as it is written to its folder, with absolute paths and digests of problems, and its runs."""
    runs = planned(study, beside)
    played = [run.conditions for run in runs]
    contents = {under.problem.name: under.contents for under in played if under.contents is not None}
    problems: list[Choice] = []
    for choice in study.problems:
        name = Named.of(choice).name
        place = folder_of(name, beside)
        absolute = name if place is None else str(place.resolve())
        problems.append(absolute if isinstance(choice, str) else choice | {"name": absolute})
    return msgspec.structs.replace(study, problems=problems, contents=contents), runs


@contextmanager
def conducted(
    study: Study,
    folder: Path,
    engine: Engine,
    *,
    beside: Path = Path(),
    fresh: bool = False,
    save_every: float = 10.0,
    watch: Watch = silence,
    callback: Callback | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> Iterator[Results]:
    """Play the unfinished runs, write the tables, and yield the results; the folder is locked until the block ends.

    Parameters
    ----------
    beside : where folders of problems are looked for.
    fresh : discard existing results of these runs.
    save_every : seconds between two checkpoints of a run.
    watch : shows progress.
    callback : called at each record. A run that it stops has its rows in the table, and continues the next time.
    tell : called with notes for the user.
    """
    if callback is not None:
        engine.check_tells()  # before anything is discarded
    study, configurations = resolved(study, beside)
    folders = {run.name: RunFolder(folder / RUNS / run.name) for run in configurations}
    with claim_folder(folder, STUDY) as new:
        if not new:
            for words in differences(_study_in(folder), study):
                tell(f"changed since it was last run: {words}")
        write_bytes(folder / STUDY, to_toml(study).encode(errors="replace"))
        if fresh:
            for run in folders.values():
                shutil.rmtree(run.path, ignore_errors=True)
        waiting = [run for run in configurations if not finished(folders[run.name], run)]
        n_there = len(configurations) - len(waiting)
        if n_there:
            tell(f"{n_there} of {len(configurations)} runs are finished and kept; --fresh starts them over")
        for words in _continued(waiting, folders):
            tell(words)
        tasks = [Task(run, str(folders[run.name].path.absolute()), save_every) for run in waiting]
        failed = {}
        if tasks:
            with advising(RESUME), _watched(configurations, folders, waiting, watch):
                failed = {waiting[k].name: words for k, words in engine.play(tasks, callback).items()}
        yield Results.of_runs(folder, [run for name, run in folders.items() if name not in failed], failed)


def _continued(waiting: Sequence[Configuration], folders: Mapping[str, RunFolder]) -> list[str]:
    """Which runs continue from a checkpoint, and from which episode; the first few by name."""
    found = {run.name: episode for run in waiting if (episode := folders[run.name].saved_episode())}
    episodes = {run.name: run.episodes for run in waiting}
    lines = [f"continuing {name} after episode {found[name]:,} of {episodes[name]:,}" for name in list(found)[:NAMED]]
    return lines if len(found) <= NAMED else [*lines, f"continuing {len(found) - NAMED} more from their checkpoints"]


def is_conducted(file: Path) -> bool:
    """Return whether tightrope wrote the study file in this folder; no other file is replaced."""
    return file.name == STUDY and StudyFile(file).text.startswith(MARK)


def _study_in(folder: Path) -> Study:
    try:
        if is_conducted(folder / STUDY):
            return StudyFile(folder / STUDY).study
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}; choose another folder with --out, or delete that one") from error
    raise InvalidInputError(f"{folder} holds a {STUDY} that is not tightrope's; choose another folder with --out")


@contextmanager
def _watched(
    configurations: Sequence[Configuration],
    folders: dict[str, RunFolder],
    waiting: Sequence[Configuration],
    watch: Watch,
) -> Iterator[None]:
    """Show the progress of the runs while the block runs."""
    total, todo = sum(run.episodes for run in configurations), {run.name: run.episodes for run in waiting}
    n_runs, over = len(configurations), Event()
    with watch(total, n_runs, total - sum(todo.values()), n_runs - len(todo)) as show:

        def look() -> None:
            while not over.wait(LOOK):
                played = 0
                for name in list(todo):
                    played += (episode := folders[name].episode())
                    found = None if episode else folders[name].report()
                    if found is not None and found.status == "finished":
                        del todo[name]
                show(total - sum(todo.values()) + played, n_runs - len(todo))

        looking = Thread(target=look, daemon=True)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()


#: Seconds of a trial, and the number of episodes before it, which are slower: they renew sets and fill caches.
TRIAL, WARM_UP = 0.5, 3


def estimate(study: Study, folder: Path, engine: Engine, beside: Path) -> list[str]:
    """Return lines about the runs of a study: how many, which are finished, and the time that the others need."""
    _, configurations = resolved(study, beside)
    there = {run.name: finished(RunFolder(folder / RUNS / run.name), run) for run in configurations}
    rows = [(run.name, f"{run.episodes:,}", "finished" if there[run.name] else "to play") for run in configurations]
    waiting = [run for run in configurations if not there[run.name]]
    lines = [*aligned(["run", "episodes", ""], rows, text=["run", ""]), ""]
    total = f"{len(configurations)} runs, {sum(run.episodes for run in configurations):,} episodes in all"
    if not waiting:
        return [*lines, f"{total}; all are finished"]
    cores = usable_cores() if engine.jobs == -1 else engine.jobs
    jobs = min(cores, len(waiting))
    seconds = trials(waiting)
    return [
        *lines,
        f"{total}; {len(waiting)} to play",
        f"about {lasting(seconds / jobs)} on {jobs} processes of this machine, from trials of {TRIAL} s each",
        *(f"about {megabytes:.0f} MB of memory for each process" for megabytes in peak_memory()),
    ]


def peak_memory() -> list[float]:
    """Return the peak memory of this process in megabytes; empty where it is unknown."""
    if sys.platform == "win32":
        return []
    import resource

    return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)]


def trials(configurations: Sequence[Configuration]) -> float:
    """Estimate the seconds of work by short trials; runs that differ only in options or seed share one."""
    kinds: dict[tuple[str, str], list[Configuration]] = {}
    for run in configurations:
        kinds.setdefault((digest(run.conditions), run.learner.name), []).append(run)
    return sum(trial(runs[0]) * sum(run.episodes for run in runs) for runs in kinds.values())


def trial(configuration: Configuration) -> float:
    """Return the seconds of work for an episode, records included."""
    problem = configuration.conditions.make_problem()
    run = Run(problem, configuration.make_learner(problem), **configuration.how)
    began, first = process_time(), 0
    try:
        for episode in run.played():
            if episode == WARM_UP:
                began, first = process_time(), episode
            elif episode > WARM_UP and process_time() - began >= TRIAL:
                break
    except TightropeError:  # reported when the run is played
        return 0.0
    return (process_time() - began) / max(1, run.episode - first)
