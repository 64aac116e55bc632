"""Runs side by side, in processes that end when this one does, whatever ends it.

A worker is this module as a program: what to play comes on its stdin, a line of JSON for each run, and what went wrong
(or an empty text) goes back on its stdout. Before that it may ask something, an object, and is answered with another.
Its input ends when whoever asked is gone, SIGKILL included, and then the worker ends there and then. Signals that ask
to end are not for workers: who started them answers.
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

from tightrope.ending import SIGNALS, end, finally_, held

#: Seconds for workers to put away what they were writing, before they are killed.
PATIENCE = 1.0

#: Libraries that use several threads are told here how many.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

#: A line: what to play.
Message = dict[str, Any]
Worker = subprocess.Popen[bytes]


@contextmanager
def side_by_side(
    jobs: Sequence[Message], n_workers: int, n_threads: int, reply: Callable[[Message], Message] = dict
) -> Iterator[Iterator[str | None]]:
    """Yield the answers, in the order of the jobs; when the block is left, so is the work.

    The answer to a job whose worker is gone is None. Another one takes its place. What workers ask is answered by
    `reply`, in several threads.
    """
    workers: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()
    over = Event()

    def start() -> None:
        with _unsignalled():
            workers.append(_start(n_threads))
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
    """A worker that finds modules where we do."""
    environment = {name: str(n_threads) for name in THREADS} | os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(worker: Worker, job: Message, reply: Callable[[Message], Message]) -> str | None:
    """What it says of the job in the end; None if it is gone."""
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
    """When this returns, nobody writes any more."""
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
    """Whoever is started in this block never gets a signal that asks to end, nor loses us one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main() -> None:
    """Play what is asked for, until nobody asks any more."""
    asked: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(asked,), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print does not go among the answers
    try:
        from tightrope.lab.worker import answer  # takes a while, and we are listening

        def ask(message: Message) -> Message:
            _write(answers, message)
            return dict(json.loads(asked.get()))

        while True:
            _write(answers, answer(**json.loads(asked.get()), ask=ask))
    except BrokenPipeError:  # nobody is there any more
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
