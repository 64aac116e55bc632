"""One run, played in its folder: from its checkpoint if it was cut, to a whole table or to words that say why not."""

import json
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from tightrope.errors import InvalidInputError, TightropeError, in_words
from tightrope.experiments.run import Run
from tightrope.experiments.studies.configuration import Conditions, Configuration
from tightrope.experiments.studies.folder import LOG, RunFolder, finished, report
from tightrope.experiments.studies.table import columns_of
from tightrope.problems.base import Problem
from tightrope.storage.files import locked, write_csv

#: Seconds to wait for one who holds the folder but is about to end: its parent is gone.
PATIENCE = 10.0

#: Seconds between two words about how far it has come.
OFTEN = 0.2


@dataclass(frozen=True)
class Task:
    """What a worker is asked for."""

    configuration: Configuration
    folder: str
    save_every: float  # seconds between checkpoints

    def message(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "configuration": msgspec.to_builtins(self.configuration),
            "folder": self.folder,
            "save_every": self.save_every,
        }


def answer(configuration: dict[str, Any], folder: str, save_every: float) -> str:
    """Play what another process asked for; what went wrong, in words, or nothing."""
    try:
        return play(Task(msgspec.convert(configuration, Configuration), folder, save_every))
    except Exception as error:  # a mistake of ours, which ends this run and no other
        with suppress(OSError):
            RunFolder(Path(folder)).log(traceback.format_exc())
        return f"{type(error).__name__}: {error} (see {Path(folder, LOG)})"


def play(task: Task) -> str:
    """Play a run to its end, unless it is there already; what went wrong, in words, or nothing."""
    folder, configuration = RunFolder(Path(task.folder)), task.configuration
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        with locked(folder.path, PATIENCE):
            if not finished(folder, configuration):
                _play_in(folder, task)
    except TightropeError as error:
        return str(error)
    except OSError as error:
        return in_words(error)
    return ""


def _play_in(folder: RunFolder, task: Task) -> None:
    """Play, and say in the folder how that ended."""
    problem = problem_of(task.configuration.conditions)
    try:
        run = begun(folder, task.configuration, problem)
        _play_on(run, folder, task)
    except TightropeError as error:
        folder.log(f"failed: {error}")
        folder.write(report("failed", task.configuration, problem, {}, str(error)))
        raise
    folder.log("finished")


def problem_of(conditions: Conditions) -> Problem:
    """The problem under these conditions; the one that was last made is at hand."""
    return _problem(json.dumps(msgspec.to_builtins(conditions)))


@lru_cache(maxsize=2)
def _problem(conditions: str) -> Problem:
    return msgspec.convert(json.loads(conditions), Conditions).make_problem()


def saved(folder: RunFolder, configuration: Configuration) -> Run:
    """The run as it was when it was last saved."""
    return Run.load(folder.checkpoint, problem_of(configuration.conditions), **configuration.how)


def begun(folder: RunFolder, configuration: Configuration, problem: Problem) -> Run:
    """The run as it was when it was last saved, or at its beginning."""
    if folder.checkpoint.exists():
        try:
            run = saved(folder, configuration)
            folder.log(f"goes on after episode {run.episode}")
            return run
        except InvalidInputError as error:
            folder.log(f"begins anew, for its checkpoint cannot be read: {error}")
    else:
        folder.log("begins")
    return Run(problem, configuration.make_learner(problem), **configuration.how)


def _play_on(run: Run, folder: RunFolder, task: Task) -> None:
    """To the end; what is done is saved now and then."""
    configuration, settings = task.configuration, run.learner.settings
    folder.write(report("running", configuration, run.problem, settings))

    def save() -> None:
        run.save(folder.checkpoint)
        write_csv(folder.history, columns_of(configuration, run.problem, run.history))

    tell_at, save_at = monotonic(), monotonic() + task.save_every
    with folder.progress.open("wb", buffering=0) as progress:
        while not run.done:
            run.step()
            now = monotonic()
            if now >= tell_at:
                progress.seek(0)
                progress.write(b"%16d" % run.episode)
                tell_at = now + OFTEN
            if now >= save_at:
                save()
                save_at = monotonic() + task.save_every
    save()
    folder.write(report("finished", configuration, run.problem, settings))
    folder.progress.unlink(missing_ok=True)
