"""Engines play the runs of a study: in this process, in worker processes, or on a cluster, with the same bits.

Each run is played in its folder, from its checkpoint if there is one. Tasks are plain data, and a worker writes the
results to disk before it answers. So an engine returns only which tasks failed, and may lose workers: a run that is
tried again continues from its checkpoint."""

import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Literal, get_args

import msgspec

from tightrope.arguments import choice, whole
from tightrope.errors import CallbackError, InvalidInputError, TightropeError, in_words, missing
from tightrope.lab.folder import LOG, RunFolder, finished, report
from tightrope.lab.plan import Conditions, Configuration
from tightrope.lab.pool import number_of_workers, side_by_side
from tightrope.lab.run import Callback, Record, Run, Stop, ask
from tightrope.problems.base import Problem
from tightrope.signals import end_with_parent
from tightrope.storage.files import locked

#: Seconds to wait for the lock of a folder: a process whose parent has died may hold it until it ends.
LOCK_PATIENCE = 10.0

#: Seconds between two updates of the progress file.
OFTEN = 0.2

#: Sends a message to the process that started this one, and returns the reply.
Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Task(msgspec.Struct, frozen=True):
    """A run that a worker has to play."""

    configuration: Configuration
    folder: str
    save_every: float  # seconds between checkpoints
    told: bool = False  # whether records are sent to a callback in another process


def answer(message: dict[str, Any], ask: Ask | None = None) -> str:
    """Play the task of another process, as plain data; return why it failed, or "".

    `ask` sends a message to that process.
    """
    try:
        task = msgspec.convert(message, Task)
        return play(task, partial(passed_on, ask) if task.told and ask is not None else None)
    except Exception as error:  # a bug, which ends this run and no other
        folder = Path(message["folder"])
        with suppress(OSError):
            RunFolder(folder).log(traceback.format_exc())
        return f"{type(error).__name__}: {error} (see {folder / LOG})"


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
        with locked(folder.path, LOCK_PATIENCE):
            if not finished(folder, configuration):
                _play_in(folder, task, callback)
    except TightropeError as error:
        return str(error)
    except OSError as error:
        return in_words(error)
    return ""


def _play_in(folder: RunFolder, task: Task, callback: Callback | None) -> None:
    """Play a run, and write its outcome to its folder."""
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
    """Return the problem of these conditions; the last two are cached."""
    return _problem(json.dumps(msgspec.to_builtins(conditions)))


@lru_cache(maxsize=2)
def _problem(conditions: str) -> Problem:
    return msgspec.convert(json.loads(conditions), Conditions).make_problem()


def saved(folder: RunFolder, configuration: Configuration) -> Run:
    """Return the run of the last checkpoint."""
    return Run.load(folder.checkpoint, problem_of(configuration.conditions), **configuration.how)


def begun(folder: RunFolder, configuration: Configuration, problem: Problem) -> Run:
    """Return the run of the last checkpoint, or a new one."""
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
    """Play to the end or until the callback stops the run; save regularly, and when the callback raises an error."""
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


Backend = Literal["processes", "loky", "dask", "ray"]

#: For each task: the reason why it failed, "" if it succeeded, None if its worker died.
Answers = Sequence[str | None]

#: How many times in a row all workers may die without finishing a run.
PATIENCE = 3


class LostError(Exception):
    """A backend of joblib lost a worker, and with it all tasks."""


@dataclass(frozen=True)
class Engine:
    """How many runs are played in parallel, and where."""

    jobs: int = -1  # one for each core
    backend: Backend = "processes"
    address: str | None = None  # of a running cluster; None starts one on this machine

    def checked(self) -> "Engine":
        """Return this engine, or raise InvalidInputError for invalid values."""
        if whole(self.jobs, "jobs", -1) == 0:
            raise InvalidInputError("jobs is 0; give a number of parallel runs, or -1 for one for each core")
        choice(self.backend, "backend", get_args(Backend))
        if self.address is not None and self.backend not in ("dask", "ray"):
            raise InvalidInputError(f"address needs the backend dask or ray; the backend is {self.backend}")
        return self

    def play(self, tasks: Sequence[Task], callback: Callback | None = None) -> dict[int, str]:
        """Play all tasks; return why tasks failed, by their number.

        A task whose worker has died is tried again, and continues from its checkpoint. The callback is called at all
        records, one at a time, in this process.
        """
        if callback is not None:
            self.check_tells()
            tasks = [msgspec.structs.replace(task, told=True) for task in tasks]
        failed: dict[int, str] = {}
        waiting, lost, why = list(range(len(tasks))), 0, ""
        while waiting:
            answers: dict[int, str | None] = dict.fromkeys(waiting)
            try:
                answers |= zip(waiting, self._play_once([tasks[k] for k in waiting], callback), strict=True)
            except LostError as error:
                why = f": {error}"
            failed |= {k: words for k, words in answers.items() if words}
            left = [k for k, words in answers.items() if words is None and not _is_finished(tasks[k])]
            lost = lost + 1 if len(left) == len(waiting) else 0
            waiting = left
            if lost == PATIENCE:
                return failed | dict.fromkeys(left, f"its process was ended from outside {PATIENCE} times{why}")
        return failed

    def check_tells(self) -> None:
        """Raise InvalidInputError for a backend whose workers cannot call a callback in this process."""
        if self.backend != "processes":
            raise InvalidInputError(f"the backend is {self.backend}; a callback needs the backend processes")

    def _play_once(self, tasks: Sequence[Task], callback: Callback | None) -> Answers:
        jobs = number_of_workers(self.jobs, len(tasks))
        if self.backend == "processes":
            if jobs == 1:
                return [play(task, callback) for task in tasks]
            one_at_a_time = Lock()

            def reply(message: dict[str, Any]) -> dict[str, Any]:
                assert callback is not None  # otherwise no worker asks
                with one_at_a_time:
                    return replied(callback, message)

            with side_by_side(msgspec.to_builtins(tasks), jobs, reply=reply) as answers:
                return list(answers)
        import joblib

        with CLUSTERS[self.backend](jobs, self.address):
            try:
                parallel = joblib.Parallel(n_jobs=jobs, batch_size=1)
                return list(parallel(joblib.delayed(_answer)(message) for message in msgspec.to_builtins(tasks)))
            except Exception as error:  # of the backend; a failure of a run is returned
                raise LostError(f"{type(error).__name__}: {error}") from error


def _is_finished(task: Task) -> bool:
    found = RunFolder(Path(task.folder)).report()
    return found is not None and found.status == "finished"


def _answer(message: dict[str, Any]) -> str:
    """Play a task in a worker of joblib, which ends with its parent."""
    end_with_parent()
    return answer(message)


@contextmanager
def _loky(jobs: int, address: str | None) -> Iterator[None]:
    import joblib

    with joblib.parallel_config(backend="loky"):
        yield


@contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[None]:
    import joblib

    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        raise missing("dask", "dask") from error
    if address is None:
        cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
            yield
    else:
        with Client(address), joblib.parallel_config(backend="dask"):
            yield


@contextmanager
def _ray(jobs: int, address: str | None) -> Iterator[None]:
    import joblib

    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise missing("ray", "ray") from error
    own: dict[str, Any] = {} if address is not None else {"num_cpus": jobs, "include_dashboard": False}
    ray.init(address=address, log_to_driver=False, logging_level="error", **own)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            yield
    finally:
        ray.shutdown()


CLUSTERS = {"loky": _loky, "dask": _dask, "ray": _ray}
