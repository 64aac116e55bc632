"""Runs side by side, in processes that end when this one does, whatever ends it.

A worker is this module as a program: what to play comes on its stdin, a line of JSON for each run, and what came of it
goes back on its stdout. Its input ends when whoever asked is gone, SIGKILL included, and then the worker ends there and
then. Signals that ask to end are not for workers: who started them answers.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

from tightrope import errors
from tightrope.ending import SIGNALS, end, finally_, held
from tightrope.errors import TightropeError, in_words

#: Seconds for workers to put away what they were writing, before they are killed.
PATIENCE = 1.0

#: Libraries that use several threads are told here how many.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

#: A line: what to play, or what came of it.
Message = dict[str, Any]
Worker = subprocess.Popen[bytes]


@contextmanager
def side_by_side(jobs: Sequence[Message], n_workers: int, n_threads: int) -> Iterator[Iterator[Message]]:
    """Yield the answers, in the order of the jobs; when the block is left, so is the work."""
    workers: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()

    def ask(job: Message) -> Message:
        worker = idle.get()
        try:
            return _ask(worker, job)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(n_workers) as threads, finally_(lambda: _end_all(workers)):
        with held(), _unsignalled():
            for _ in range(n_workers):
                workers.append(_start(n_threads))
                idle.put(workers[-1])
        answers = threads.map(ask, jobs)
        with closing(answers):  # type: ignore[type-var]  # it is a generator
            yield answers


def _start(n_threads: int) -> Worker:
    """A worker that finds modules where we do."""
    environment = {name: str(n_threads) for name in THREADS} | os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(worker: Worker, job: Message) -> Message:
    assert worker.stdin is not None and worker.stdout is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(json.dumps(job).encode() + b"\n")
        worker.stdin.flush()
    line = worker.stdout.readline()
    if not line.endswith(b"\n"):
        code = worker.wait()
        why = f"by signal {-code}, as for want of memory" if code < 0 else f"with exit code {code}"
        raise TightropeError(f"{job['learner']}, seed {job['seed']}: its process was ended {why}")
    answer: Message = json.loads(line)
    if "failed" in answer:
        raise getattr(errors, answer["failed"], TightropeError)(answer["words"])
    return answer


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
        from tightrope.experiments.play import answer  # takes a while, and we are listening

        while True:
            answers.write(json.dumps(_tried(answer, asked.get())).encode() + b"\n")
            answers.flush()
    except BrokenPipeError:  # nobody is there any more
        end(0)
    except Exception:
        traceback.print_exc()
        end(1)


def _tried(answer: Any, line: bytes) -> Message:
    """The answer, or what went wrong in words."""
    try:
        played: Message = answer(**json.loads(line))
        return played
    except TightropeError as error:
        return {"failed": type(error).__name__, "words": str(error)}
    except OSError as error:
        return {"failed": TightropeError.__name__, "words": in_words(error)}


def _listen(asked: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        asked.put(line)
    end(0)


if __name__ == "__main__":
    main()
