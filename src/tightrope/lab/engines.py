"""Where the runs of a study are played: in this process, in worker processes, or on a cluster. The bits are the same.

Tasks are plain data, and results are on disk before a task is answered. So an engine only returns which tasks failed,
and may lose workers: their runs continue from their checkpoints when they are tried again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import joblib

from tightrope.arguments import choice, whole
from tightrope.errors import InvalidInputError, missing
from tightrope.lab.folder import RunFolder
from tightrope.lab.pool import number_of_workers, side_by_side
from tightrope.lab.run import Callback
from tightrope.lab.worker import Task, answer, play, replied
from tightrope.signals import end_with_parent

Backend = Literal["processes", "loky", "dask", "ray"]

#: For each task why it failed, "" if it did not, None if its worker has died.
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
        """Refuse values that make no sense."""
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
                return failed | dict.fromkeys(left, f"its process was ended from outside {PATIENCE} times{why}")
        return failed

    def check_tells(self) -> None:
        """Refuse backends whose workers cannot call a callback in this process."""
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

            with side_by_side([task.message() for task in tasks], jobs, reply=reply) as answers:
                return list(answers)
        with CLUSTERS[self.backend](jobs, self.address):
            try:
                parallel = joblib.Parallel(n_jobs=jobs, batch_size=1)
                return list(parallel(joblib.delayed(_answer)(**task.message()) for task in tasks))
            except Exception as error:  # of the backend; a failure of a run is returned
                raise LostError(f"{type(error).__name__}: {error}") from error


def _is_finished(task: Task) -> bool:
    found = RunFolder(Path(task.folder)).report()
    return found is not None and found.status == "finished"


def _answer(**message: Any) -> str:
    """Play a task in a worker of joblib, which ends with its parent."""
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
