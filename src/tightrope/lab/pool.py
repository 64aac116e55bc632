"""Worker processes that end with this process, even if it is killed.

A worker is a process that executes this module. For each job it reads a line of JSON from stdin, calls
`engines.answer`, and writes the returned text to stdout as JSON. While it works, `answer` may send a question: the
worker writes an object and reads the reply. When stdin ends, because the parent has ended or was killed, the worker
ends at once. Workers ignore signals such as SIGINT and SIGTERM; the parent handles them.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import IO, Any

from tightrope.signals import SIGNALS, end, finally_, held

#: Seconds for workers to clean up before they are killed.
PATIENCE = 1.0

#: Variables that tell numerical libraries how many threads to use.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

#: A line.
Message = dict[str, Any]
Worker = subprocess.Popen[bytes]


def usable_cores() -> int:
    """Return the number of cores that this process may use, also in a container."""
    import joblib  # takes longer than NumPy, and workers do not need it

    found: int = joblib.cpu_count()
    return found


def number_of_workers(jobs: int, n_tasks: int) -> int:
    """Return the number of workers: `jobs`, or one for each core if it is -1; at most one for each task."""
    return min(usable_cores() if jobs == -1 else jobs, n_tasks)


@contextmanager
def side_by_side(
    jobs: Sequence[Message],
    n_workers: int,
    n_threads: int | None = None,
    reply: Callable[[Message], Message] = dict,
) -> Iterator[Iterator[str | None]]:
    """Yield the answers in the order of the jobs; leaving the block ends the workers.

    Parameters
    ----------
    jobs : the arguments of each call.
    n_threads : of each worker; None shares the cores equally.
    reply : answers the questions of workers; called from several threads.

    If a worker dies, the answer to its job is None, and another worker replaces it.
    """
    threads_each = max(1, usable_cores() // n_workers) if n_threads is None else n_threads
    workers: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()
    over = Event()

    def start() -> None:
        with _unsignalled():
            workers.append(_start(threads_each))
        idle.put(workers[-1])

    def ask(job: Message) -> str | None:
        worker = idle.get()
        answer = _ask(worker, job, reply)
        if answer is not None:
            idle.put(worker)
        elif not over.is_set():
            start()
        return answer

    def end_all() -> None:
        over.set()
        _end_all(workers)

    with ThreadPoolExecutor(n_workers) as threads, finally_(end_all):
        with held():
            for _ in range(n_workers):
                start()
        answers = threads.map(ask, jobs)
        with closing(answers):  # type: ignore[type-var]  # it is a generator
            yield answers


def _start(n_threads: int) -> Worker:
    """Start a worker with the module path of this process."""
    environment = {name: str(n_threads) for name in THREADS} | os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(worker: Worker, job: Message, reply: Callable[[Message], Message]) -> str | None:
    """Send a job, reply to the questions of the worker, return its answer; None if it has died."""
    assert worker.stdin is not None and worker.stdout is not None
    message = job
    while True:
        try:
            _write(worker.stdin, message)
            line = worker.stdout.readline()
        except (OSError, ValueError):  # ended, or closed by us
            return None
        if not line.endswith(b"\n"):
            return None
        said = json.loads(line)
        if isinstance(said, str):
            return said
        message = reply(said)


def _write(to: IO[bytes], message: Message | str) -> None:
    to.write(json.dumps(message).encode() + b"\n")
    to.flush()


def _end_all(workers: Sequence[Worker]) -> None:
    """End the workers. After this call none of them writes to a file."""
    for worker in workers:
        assert worker.stdin is not None
        with suppress(OSError):
            worker.stdin.close()
    until = monotonic() + PATIENCE
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, until - monotonic()))
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()


@contextmanager
def _unsignalled() -> Iterator[None]:
    """Block signals in processes that are started inside the block; this process handles them after it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main() -> None:
    """Answer jobs until stdin ends."""
    asked: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(asked,), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    try:
        from tightrope.lab.engines import answer  # slow to import; the thread watches stdin meanwhile

        def ask(message: Message) -> Message:
            _write(answers, message)
            return dict(json.loads(asked.get()))

        while True:
            _write(answers, answer(json.loads(asked.get()), ask))
    except BrokenPipeError:  # the parent is gone
        end(0)
    except Exception:
        traceback.print_exc()
        end(1)


def _listen(asked: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        asked.put(line)
    end(0)


if __name__ == "__main__":
    main()
