"""The service under load, with a real HTTP client on loopback: python -m benchmarks.service

On edge-cloud with ucpd-practical: what an episode costs plain, durable and over HTTP, next to one synced write; asks,
tells and acts per second; and how long an act takes while episodes are being learned.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np

from benchmarks.durable import compare, episodes_of, show
from benchmarks.measure import duration, machine, shown
from fuzz.service import free_port
from tightrope import __version__
from tightrope.model import Policy
from tightrope.problems import make
from tightrope.problems.base import Problem

PROBLEM, LEARNER = "edge-cloud", "ucpd-practical"


def as_json(problem: Problem, told: dict[str, Any]) -> bytes:
    """In the units of the problem, as a client sends it."""
    uses = problem.constraint_scales[:, None] * told["constraints"]
    return json.dumps(
        {
            "states": told["states"].tolist(),
            "actions": told["actions"].tolist(),
            "loss": (problem.loss_scale * told["loss"] + problem.loss_offset).tolist(),
            "constraints": dict(zip(problem.constraint_names, uses.tolist(), strict=True)),
        }
    ).encode()


class Caller:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self._base = f"/learners/{PROBLEM}"

    def call(self, method: str, place: str, body: bytes | None = None) -> Any:
        """The answer, read to its end."""
        self._connection.request(method, self._base + place, body)
        answer = self._connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        return json.loads(data)


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """The command; yields its port and its process."""
    port = free_port()
    command = [sys.executable, "-m", "tightrope.cli", "serve", str(folder / PROBLEM), "--problem", PROBLEM]
    process = subprocess.Popen([*command, "--learner", LEARNER, "--port", str(port), "--rate", "1e9"])
    try:
        while True:
            try:
                Caller(port).call("GET", "/state")
                break
            except (ConnectionError, AssertionError):
                assert process.poll() is None
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def each(function: Callable[[], object], seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How long each of as many calls took as fit into so many seconds."""
    took, until = [], time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        function()
        took.append(time.perf_counter() - began)
    return np.array(took)


def act_again(port: int, seconds: float, results: Any) -> None:
    """In a process of its own: acts, one after another; puts how long each took."""
    caller = Caller(port)
    results.put(each(lambda: caller.call("GET", "/act?state=0"), seconds))


def acting(port: int, seconds: float, n_processes: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How long acts took that several clients made at once."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    clients = [context.Process(target=act_again, args=(port, seconds, results)) for _ in range(n_processes)]
    for client in clients:
        client.start()
    took = np.concatenate([results.get() for _ in clients])
    for client in clients:
        client.join()
    return took


def learning(port: int, stop: Event) -> Iterator[float]:
    """Ask and tell without a pause until `stop`; yields how long each tell took."""
    caller, problem = Caller(port), make(PROBLEM)
    play, uniform = episodes_of(problem, 1), Policy.uniform(problem.space)
    next(play)
    bodies = [as_json(problem, play.send(uniform) or {}) for _ in range(50)]
    k = 0
    while not stop.is_set():
        episode = caller.call("POST", "/ask")["episode"]
        began = time.perf_counter()
        caller.call("POST", f"/episodes/{episode}/tell", bodies[k % len(bodies)])
        yield time.perf_counter() - began
        k += 1


def processor_seconds(pid: int) -> float:
    """Of a process, so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each measurement (default 10)")
    parser.add_argument("--episodes", type=int, default=500, help="without HTTP (default 500)")
    parser.add_argument("--clients", type=int, default=2, help="processes that ask for actions (default 2)")
    parser.add_argument("--folder", type=Path, help="on which disk (default: that of temporary files)")
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        print(f"{machine()}; tightrope {__version__}; {PROBLEM}, {LEARNER}; load {os.getloadavg()[0]:.1f}\n")
        show(PROBLEM, LEARNER, compare(PROBLEM, LEARNER, given.episodes, folder))
        with served(folder) as (port, pid):
            caller = Caller(port)
            asks = each(lambda: caller.call("POST", f"/episodes/{caller.call('POST', '/ask')['episode']}/give-up"), 3.0)
            print(f"ask and give up: {shown(1 / asks.mean())} a second")
            before = processor_seconds(pid)
            idle = acting(port, given.seconds, given.clients)
            used = processor_seconds(pid) - before
            _say("act, nobody learns", idle, given.seconds)
            print(f"act: {duration(used / len(idle))} of processor time in the service")
            stop, tells = Event(), list[float]()
            teller = Thread(target=lambda: tells.extend(learning(port, stop)))
            teller.start()
            busy = acting(port, given.seconds, given.clients)
            stop.set()
            teller.join()
            _say("act, while episodes are learned", busy, given.seconds)
            told = np.array(tells)
            print(f"ask and tell meanwhile: {len(told)} episodes; tell {duration(float(told.mean()))} on average")


def _say(what: str, took: np.ndarray[Any, np.dtype[np.float64]], seconds: float) -> None:
    middle, late = np.percentile(took, [50, 99]).tolist()
    print(f"{what}: {shown(len(took) / seconds)} a second; median {duration(middle)}, 99th percentile {duration(late)}")


if __name__ == "__main__":
    main()
