"""Who plays the runs: this process, processes of its own, or a backend of joblib. The bits are the same.

Runs are handed over as plain data, and what comes of them is on disk before anybody is told. So an engine has only to
say which failed, in words, and may lose workers: their runs go on from their checkpoints when they are asked for again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import joblib

from tightrope.ending import end_with_parent
from tightrope.errors import InvalidInputError, missing
from tightrope.lab.callbacks import Callback
from tightrope.lab.folder import RunFolder
from tightrope.lab.pool import side_by_side
from tightrope.lab.worker import Task, answer, play, replied

Backend = Literal["processes", "loky", "dask", "ray"]

#: For each task what went wrong, in words: nothing if it was played, None if whoever played it is gone.
Answers = Sequence[str | None]

#: So many times in a row all who play may be lost before a run is finished.
PATIENCE = 3


class LostError(Exception):
    """A backend of joblib lost a worker, and with it all others."""


@dataclass(frozen=True)
class Engine:
    """How many runs are played side by side, and where."""

    jobs: int = -1  # one for each core
    backend: Backend = "processes"
    address: str | None = None  # of a cluster that is there; None: one of its own, on this machine

    def play(self, tasks: Sequence[Task], callback: Callback | None = None) -> dict[int, str]:
        """Play all tasks; what went wrong, in words, by the number of the task.

        One whose worker is lost is tried again, and goes on from its checkpoint. The callback is told of all records,
        one at a time, in this process.
        """
        if callback is not None:
            self.check_tells()
            tasks = [replace(task, told=True) for task in tasks]
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
                return failed | dict.fromkeys(left, f"its process was ended from outside, time and again{why}")
        return failed

    def check_tells(self) -> None:
        """Refuse workers that cannot ask a callback here."""
        if self.backend != "processes":
            raise InvalidInputError(f"the backend is {self.backend}; only processes can tell a callback of records")

    def _play_once(self, tasks: Sequence[Task], callback: Callback | None) -> Answers:
        n_cores = joblib.cpu_count()
        jobs = min(n_cores if self.jobs == -1 else self.jobs, len(tasks))
        if self.backend == "processes":
            if jobs == 1:
                return [play(task, callback) for task in tasks]
            messages = [task.message() for task in tasks]
            one_at_a_time = Lock()

            def reply(message: dict[str, Any]) -> dict[str, Any]:
                assert callback is not None  # else nobody asks
                with one_at_a_time:
                    return replied(callback, message)

            with side_by_side(messages, jobs, n_threads=max(1, n_cores // jobs), reply=reply) as answers:
                return list(answers)
        with CLUSTERS[self.backend](jobs, self.address):
            try:
                parallel = joblib.Parallel(n_jobs=jobs, batch_size=1)
                return list(parallel(joblib.delayed(_answer)(**task.message()) for task in tasks))
            except Exception as error:  # not of the runs, whose own are words
                raise LostError(f"{type(error).__name__}: {error}") from error


def _is_finished(task: Task) -> bool:
    found = RunFolder(Path(task.folder)).report()
    return found is not None and found.status == "finished"


def _answer(**message: Any) -> str:
    """What a worker of joblib is asked; it ends with whoever started it."""
    end_with_parent()
    return answer(**message)


@contextmanager
def _loky(jobs: int, address: str | None) -> Iterator[None]:
    with joblib.parallel_config(backend="loky"):
        yield


@contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[None]:
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
