"""Plays one run in its folder, from its checkpoint if there is one. A failure is returned as a message."""

import json
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from tightrope.errors import CallbackError, InvalidInputError, TightropeError, in_words
from tightrope.lab.folder import LOG, RunFolder, finished, report
from tightrope.lab.plan import Conditions, Configuration
from tightrope.lab.run import Callback, Record, Run, Stop, ask
from tightrope.problems.base import Problem
from tightrope.storage.files import locked

#: Seconds to wait for another process that holds the folder and is about to end, because its parent is gone.
PATIENCE = 10.0

#: Seconds between two updates of the progress file.
OFTEN = 0.2

#: Sends a message to the process that started this one, and returns the reply.
Ask = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """A run to play."""

    configuration: Configuration
    folder: str
    save_every: float  # seconds between checkpoints
    told: bool = False  # whether records are sent to a callback in another process

    def message(self) -> dict[str, Any]:
        """The task as plain data."""
        return {
            "configuration": msgspec.to_builtins(self.configuration),
            "folder": self.folder,
            "save_every": self.save_every,
            "told": self.told,
        }


def answer(
    configuration: dict[str, Any], folder: str, save_every: float, told: bool = False, ask: Ask | None = None
) -> str:
    """Play the task of another process; return why it failed, or "". `ask` sends a message to that process."""
    try:
        task = Task(msgspec.convert(configuration, Configuration), folder, save_every, told)
        return play(task, partial(passed_on, ask) if told and ask is not None else None)
    except Exception as error:  # a bug, which ends this run and no other
        with suppress(OSError):
            RunFolder(Path(folder)).log(traceback.format_exc())
        return f"{type(error).__name__}: {error} (see {Path(folder, LOG)})"


def passed_on(ask: Ask, record: Record) -> Stop | None:
    """A callback that passes records on to another process, where `replied` calls the user's."""
    reply = ask(record._asdict())
    if "raised" in reply:
        raise CallbackError(reply["raised"])
    return Stop(reply["stop"]) if "stop" in reply else None


def replied(callback: Callback, message: dict[str, Any]) -> dict[str, str]:
    """Call the user's callback with a record that was passed on; return the reply."""
    try:
        stop = ask(callback, Record(**message))
    except CallbackError as error:
        return {"raised": str(error)}
    return {} if stop is None else {"stop": stop.reason}


def play(task: Task, callback: Callback | None = None) -> str:
    """Play a run to its end, unless it is finished; return why it failed, or ""."""
    folder, configuration = RunFolder(Path(task.folder)), task.configuration
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        with locked(folder.path, PATIENCE):
            if not finished(folder, configuration):
                _play_in(folder, task, callback)
    except TightropeError as error:
        return str(error)
    except OSError as error:
        return in_words(error)
    return ""


def _play_in(folder: RunFolder, task: Task, callback: Callback | None) -> None:
    """Play, and write to the folder how it ended."""
    problem = problem_of(task.configuration.conditions)
    try:
        run = begun(folder, task.configuration, problem)
        _play_on(run, folder, task, callback)
    except TightropeError as error:
        folder.log(f"failed: {error}")
        folder.write(report("failed", task.configuration, problem, {}, str(error)))
        raise
    folder.log(f"stopped {run.stopped}" if run.stopped else "finished")


def problem_of(conditions: Conditions) -> Problem:
    """The problem under these conditions; the last two are kept."""
    return _problem(json.dumps(msgspec.to_builtins(conditions)))


@lru_cache(maxsize=2)
def _problem(conditions: str) -> Problem:
    return msgspec.convert(json.loads(conditions), Conditions).make_problem()


def saved(folder: RunFolder, configuration: Configuration) -> Run:
    """The run of the last checkpoint."""
    return Run.load(folder.checkpoint, problem_of(configuration.conditions), **configuration.how)


def begun(folder: RunFolder, configuration: Configuration, problem: Problem) -> Run:
    """The run of the last checkpoint, or a new one."""
    if folder.checkpoint.exists():
        try:
            run = saved(folder, configuration)
            folder.log(f"continues after episode {run.episode}")
            return run
        except InvalidInputError as error:
            folder.log(f"starts over, for its checkpoint cannot be read: {error}")
    else:
        folder.log("begins")
    return Run(problem, configuration.make_learner(problem), **configuration.how)


def _play_on(run: Run, folder: RunFolder, task: Task, callback: Callback | None) -> None:
    """Play until the end, or until the callback stops the run; save now and then, and before an error of a callback."""
    configuration, settings = task.configuration, run.learner.settings
    run.name = configuration.name
    folder.write(report("running", configuration, run.problem, settings))

    def save() -> None:
        run.save(folder.checkpoint)
        folder.write_history(configuration, run.problem, run.history)

    tell_at, save_at = monotonic(), monotonic() + task.save_every
    with folder.progress.open("wb", buffering=0) as progress:
        try:
            for episode in run.played(callback=callback):
                now = monotonic()
                if now >= tell_at:
                    progress.seek(0)
                    progress.write(b"%16d" % episode)
                    tell_at = now + OFTEN
                if now >= save_at:
                    save()
                    save_at = monotonic() + task.save_every
        except CallbackError:
            save()
            raise
    save()
    folder.write(report("stopped" if run.stopped else "finished", configuration, run.problem, settings, run.stopped))
    folder.progress.unlink(missing_ok=True)
