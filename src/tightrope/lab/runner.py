"""A study, conducted in a folder: what is there is kept, what was cut goes on, what is new is played beside it."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import msgspec

from tightrope.arguments import LISTED
from tightrope.ending import advising
from tightrope.errors import InvalidInputError
from tightrope.lab.callbacks import Callback
from tightrope.lab.engines import Engine
from tightrope.lab.folder import RunFolder, finished
from tightrope.lab.plan import folder_of, planned
from tightrope.lab.progress import Watch, silence
from tightrope.lab.results import Section, sections, write_summary
from tightrope.lab.studies.changes import differences
from tightrope.lab.studies.configuration import Configuration, digest
from tightrope.lab.studies.table import write_table
from tightrope.lab.studies.toml import HEADING, to_toml
from tightrope.lab.study import Choice, Named, Study, StudyFile
from tightrope.lab.worker import Task
from tightrope.problems.files.declaration import FILE
from tightrope.storage.files import claim_folder, write_bytes

STUDY, RUNS = "study.toml", "runs"

#: What to do after an interruption.
RESUME = "the same command continues from the last checkpoint"

#: How many of the runs that continue are named.
NAMED = 5

#: Seconds between two looks at how far the runs have come.
LOOK = 0.5


@dataclass(frozen=True)
class Conducted:
    """What came of it."""

    folder: Path
    runs: dict[str, RunFolder]  # all that are finished, by name, in the order of the table
    failed: dict[str, str]  # what went wrong with the others, in words
    tables: list[Path]
    sections: list[Section]  # the same results, by conditions, to print and draw
    summaries: list[Path]


def folder_name(study: Study) -> str:
    """What the folder of a study without a file is called: its own, and readable."""
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
    """The study as it is written down, whatever folder it is read from, and its runs."""
    runs = planned(study, beside)
    played = [run.conditions for run in runs]
    contents = {under.problem.name: under.contents for under in played if under.contents is not None}
    problems = []
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
) -> Iterator[Conducted]:
    """Play what is not there yet, and make the table; the folder is ours until the block is left.

    `fresh` throws away what is there of these runs. `save_every` is the seconds between two checkpoints of a run. A run
    that the `callback` stops has its rows in the table, and goes on the next time.
    """
    if callback is not None:
        engine.check_tells()  # before anything is thrown away
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
        done = {name: run for name, run in folders.items() if name not in failed}
        found = list(sections(done.values()))
        tables = write_table(folder, list(done.values())) if done else []
        yield Conducted(folder, done, failed, tables, found, write_summary(folder, found) if found else [])


def _continued(waiting: Sequence[Configuration], folders: Mapping[str, RunFolder]) -> list[str]:
    """Which runs continue from a checkpoint, and from which episode; the first few by name."""
    found = {run.name: episode for run in waiting if (episode := folders[run.name].saved_episode())}
    episodes = {run.name: run.episodes for run in waiting}
    lines = [f"continuing {name} after episode {found[name]:,} of {episodes[name]:,}" for name in list(found)[:NAMED]]
    return lines if len(found) <= NAMED else [*lines, f"continuing {len(found) - NAMED} more from their checkpoints"]


def studies_in(folder: Path) -> str:
    """The folders of studies inside a folder, in words; empty if there are none."""
    found = sorted(str(path.parent) for path in folder.glob(f"*/{STUDY}"))
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f"{', '.join(found[:LISTED])}{more}"


def is_conducted(file: Path) -> bool:
    """Whether it is the file of a study in its own folder, which we wrote; another one is not ours to replace."""
    return file.name == STUDY and StudyFile(file).text.startswith(HEADING)


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
    """Look now and then how far the runs have come, and show it."""
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
