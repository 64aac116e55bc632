"""Tries in a process of their own, so that one that hangs, eats all memory or dies is a finding and not the end.

A try is a function(seed, number, folder) -> str that says in a word what happened, in an empty folder of its own. It
fails if it raises, works for more than SECONDS, waits for more than WAITING, or brings its process above MEGABYTES.
"""

import argparse
import importlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

#: Of the processor, so that others on the same machine do no harm; and by the clock, for what waits without working.
SECONDS = 5
WAITING = 30
MEGABYTES = 1000

#: How long a process may take to begin, which no try is to blame for: it may have to compile.
PREPARING = 600

Try = Callable[[int, int, Path], str]


class HangError(BaseException):
    """Not an Exception: nothing may catch it on the way."""


def main(module: str, description: str) -> NoReturn:
    """The command line of a fuzzer: `module` has a function `attempt`, which is a Try, and may have `prepare`."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--seed", type=int, default=0, help="another seed, other tries (default 0)")
    parser.add_argument("--tries", "--count", dest="count", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first: with --count 1, a try again")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        tried = importlib.import_module(module)
        if hasattr(tried, "prepare"):  # what takes long only once, such as compiling
            tried.prepare()
        print(flush=True)  # from here on it is tries that take time
        work(tried.attempt, given.seed, given.first, given.count)
        sys.exit()
    began = time.monotonic()
    outcomes: Counter[str] = Counter()
    for number, outcome in watch(module, given.seed, given.first, given.count):
        what, _, details = outcome.partition(": ")
        outcomes[what] += 1
        if what == "FAILED":
            print(f"try {number}: {details}", flush=True)
    failed = outcomes.pop("FAILED", 0)
    counted = ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items()))
    print(f"seed {given.seed}: {given.count} tries, {counted}, {failed} failed ({time.monotonic() - began:.0f} s)")
    sys.exit(failed > 0)


def watch(module: str, seed: int, first: int, count: int) -> Iterator[tuple[int, str]]:
    """The outcome of each try; a new process takes over where one was lost, or hangs where Python cannot end it."""
    number, last = first, first + count
    while number < last:
        command = [sys.executable, "-m", module, "--work", f"--seed={seed}", f"--first={number}"]
        with subprocess.Popen([*command, f"--count={last - number}"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            alive = bool(select.select([process.stdout], [], [], PREPARING)[0])
            unread = b""
            if alive:
                os.read(process.stdout.fileno(), 1)  # the line that says that it is ready
            while alive and number < last:
                alive = bool(select.select([process.stdout], [], [], 2 * WAITING)[0])
                new = os.read(process.stdout.fileno(), 1 << 16) if alive else b""
                if not new:
                    break
                *outcomes, unread = (unread + new).split(b"\n")
                for outcome in outcomes:
                    yield number, outcome.decode(errors="replace")
                    number += 1
            if not alive:
                process.kill()
        if number < last and process.returncode:
            yield number, f"FAILED: the process {'died' if alive else 'hung'}"
            number += 1


def work(attempt: Try, seed: int, first: int, count: int) -> None:
    """Try, and print a line for each."""
    warnings.simplefilter("error")
    for number in range(first, first + count):
        outcome = guarded(attempt, seed, number)
        print(outcome.encode(errors="backslashreplace").decode().replace("\n", " | "), flush=True)
        if outcome.startswith("FAILED"):
            return  # the next is judged in a fresh process: the peak of this one only ever grows


def guarded(attempt: Try, seed: int, number: int) -> str:
    """One try and its outcome, within the limits."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        try:
            with _alarms():
                outcome = attempt(seed, number, Path(folder))
        except HangError as hang:
            place = traceback.extract_tb(hang.__traceback__)[-2]  # the last is the alarm itself
            return f"FAILED: more than {hang}, in {place.filename}, line {place.lineno}"
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            return f"FAILED: {type(error).__name__} in {place.filename}, line {place.lineno}: {str(error)[:200]}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return outcome if peak <= MEGABYTES else f"FAILED: more than {MEGABYTES} MB, {peak} in all"


@contextmanager
def _alarms() -> Iterator[None]:
    """Whatever is inside is interrupted when its time is up."""
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, SECONDS), signal.SIGALRM: (signal.ITIMER_REAL, WAITING)}
    before = {number: signal.signal(number, _alarm) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _alarm(signum: int, frame: object) -> NoReturn:
    raise HangError(f"{SECONDS} s of work" if signum == signal.SIGPROF else f"{WAITING} s of waiting")
