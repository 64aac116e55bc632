"""The service under load, beside a bare endpoint and beside synced inserts, in one run: python -m benchmarks.service

On the example that `tightrope new` writes, with ucpd-practical; requests by wrk (Debian: apt-get install wrk) on
loopback, over 1, 10 and 100 connections. The parts take turns, --rounds times; results are medians of the rounds:

    inserts   rows of an event's size into SQLite, each in a transaction that is synced, without HTTP
    bare      GET of a constant JSON from Starlette on uvicorn, without anything else
    act       GET of an action from `tightrope serve`
    ask       POST that opens an episode
    tell      POST of an outcome, each of another episode
    p99       of acts over that many connections, while 10 others ask and tell in turns; and of the bare endpoint,
              another process, under the same load of the processor

p99 is measured under two loads: each connection sends its next request at once (which measures throughput if there are
many, since they wait for one another), or after a pause, for 500 requests a second in all.
With --tells N, tells N outcomes, and prints the memory of the service on the way.
"""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.request import urlopen

import numpy as np

from benchmarks.measure import machine, shown
from fuzz.service import free_port
from tightrope import __version__
from tightrope.problems.files import write_example

LEARNER, CONNECTIONS = "ucpd-practical", (1, 10, 100)

#: The connections that learn while acts are measured, and the acts per second of the load with pauses.
TELLERS, PACED = 10, 500

#: Bytes of a row in `inserts`, as many as the journal stores for an outcome of the example.
ROW = 200

WEEK = {
    "states": ["good", "good", "worn", "good", "worn", "broken", "good"],
    "actions": ["run", "run", "service", "run", "run", "repair", "run"],
    "scenario": 1,
}

BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

ACTED = {"state": 0, "state_name": "good, step 0", "action": 0, "action_name": "run", "probability": 0.5}

async def act(request):
    return JSONResponse(ACTED)

uvicorn.run(Starlette(routes=[Route("/act", act)]), port=int(sys.argv[1]), access_log=False, log_level="warning")
"""

#: Makes wrk print its results as JSON.
DONE = """
function done(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format('\\n{"requests": %d, "seconds": %f, "failed": %d, "median": %f, "late": %f}\\n',
        summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6))
end
"""

#: A pause between the requests of a connection, in milliseconds.
PAUSE = "function delay() return {pause} end\n"

ASK = """
wrk.method = "POST"
local file = io.open("{ids}", "a")
function response(status, headers, body) file:write(string.match(body, '"episode":"([^"]*)"'), "\\n") end
"""

TELL = """
local ids, k = {{}}, 0
for id in io.lines("{ids}") do ids[#ids + 1] = id end
function request()
    k = k + 1
    local headers = {{["Content-Type"] = "application/json"}}
    return wrk.format("POST", "{path}/episodes/" .. (ids[k] or "none-left") .. "/tell", headers, '{body}')
end
"""


#: An episode is told as soon as there is one, so that few are open.
IN_TURNS = """
wrk.method = "POST"
local ids, headers = {{}}, {{["Content-Type"] = "application/json"}}
function request()
    local id = table.remove(ids)
    if not id then return wrk.format("POST", "{path}/ask") end
    return wrk.format("POST", "{path}/episodes/" .. id .. "/tell", headers, '{body}')
end
function response(status, headers, body)
    if not string.find(body, "answer") then ids[#ids + 1] = string.match(body, '"episode":"([^"]*)"') end
end
"""


class Load(NamedTuple):
    """The measurements of wrk."""

    requests: int
    seconds: float
    failed: int
    median: float
    late: float  #: the 99th percentile

    @property
    def rate(self) -> float:
        """Return the requests per second."""
        return self.requests / self.seconds


class Wrk:
    """Sends requests to one server with wrk."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._address = folder, f"http://127.0.0.1:{port}"
        self._scripts = 0

    def start(self, path: str, connections: int, seconds: float, script: str = "") -> "subprocess.Popen[str]":
        """Start sending requests to a path."""
        self._scripts += 1
        file = self._folder / f"{self._scripts}.lua"
        file.write_text(script + DONE)
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--timeout", "30s", "-s", str(file)]
        return subprocess.Popen([*command, self._address + path], stdout=subprocess.PIPE, text=True)

    def send(self, path: str, connections: int, seconds: float, script: str = "") -> Load:
        """Send requests to a path for so many seconds."""
        return measured(self.start(path, connections, seconds, script))


def measured(wrk: "subprocess.Popen[str]") -> Load:
    """Return the measurements of wrk when it ends."""
    said, _ = wrk.communicate()
    assert wrk.returncode == 0, said
    load = Load(**json.loads(said.strip().rpartition("\n")[2]))
    assert load.failed == 0, said
    return load


@contextmanager
def running(command: Sequence[str], place: str) -> Iterator[int]:
    """Run a server; yield its process once it answers, and end it after the block."""
    process = subprocess.Popen(command)
    try:
        while True:
            with suppress(OSError), urlopen(place, timeout=60):
                break
            assert process.poll() is None
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


class Episodes:
    """The open episodes of the service, and those that were told."""

    def __init__(self, wrk: Wrk, name: str, file: Path) -> None:
        self._wrk, self._path, self._file = wrk, f"/learners/{name}", file
        self._ids: list[str] = []

    def ask(self, connections: int, seconds: float) -> Load:
        """Open episodes, and keep their ids."""
        self._file.write_text("")
        load = self._wrk.send(f"{self._path}/ask", connections, seconds, ASK.format(ids=self._file))
        self._ids += self._file.read_text().split()
        return load

    def start_learning(self, seconds: float) -> "subprocess.Popen[str]":
        """Start to ask and tell in turns."""
        script = IN_TURNS.format(path=self._path, body=json.dumps(WEEK))
        return self._wrk.start("/", TELLERS, seconds, script)

    def tell(self, connections: int, seconds: float) -> Load:
        """Tell the outcomes of episodes until the time is over."""
        while len(self._ids) < 4000 * seconds:
            self.ask(20, 2.0)
        self._file.write_text("\n".join(self._ids))
        script = TELL.format(ids=self._file, path=self._path, body=json.dumps(WEEK))
        load = self._wrk.send("/", connections, seconds, script)
        del self._ids[: load.requests + connections]  # at the end, an outcome of each connection may be under way
        return load


def inserts(folder: Path, seconds: float) -> float:
    """Rows per second that SQLite inserts and syncs, one in each transaction."""
    with closing(sqlite3.connect(folder / "inserts.sqlite", isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")
        sql.execute("CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, body BLOB)")
        began, count = time.perf_counter(), 0
        while (took := time.perf_counter() - began) < seconds:
            sql.execute("INSERT INTO events (body) VALUES (?)", (os.urandom(ROW),))
            count += 1
    return count / took


def memory(pid: int) -> float:
    """Resident megabytes of a process (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


#: The columns of the table, which has a row for each number of connections: rates and ratios; then milliseconds.
COLUMNS = (
    "inserts", "bare", "act", "act / bare", "ask", "tell", "tell / inserts", "p99 bare, idle",
    "p99 bare", "p99 act", "p99 bare, paced", "p99 act, paced",
)  # fmt: skip


def one_round(
    folder: Path, bare: Wrk, service: Wrk, episodes: Episodes, connections: int, seconds: float
) -> list[float]:
    """Measure every part once, in the order of `COLUMNS`."""
    act = "/learners/learner/act?state=0"
    written = inserts(folder, seconds / 2)
    empty, acted = bare.send("/act", connections, seconds), service.send(act, connections, seconds)
    asked, told = episodes.ask(connections, seconds), episodes.tell(connections, seconds)
    written = (written + inserts(folder, seconds / 2)) / 2  # before and after
    late = []
    for script in ("", PAUSE.format(pause=1000 * connections // PACED)):
        for server, path in ((bare, "/act"), (service, act)):
            learning = episodes.start_learning(seconds + 2)
            time.sleep(1)
            late.append(1e3 * server.send(path, connections, seconds, script).late)
            measured(learning)
    rates = (written, empty.rate, acted.rate, acted.rate / empty.rate, asked.rate, told.rate, told.rate / written)
    return [*rates, 1e3 * empty.late, *late]


def soak(episodes: Episodes, pid: int, tells: int) -> None:
    """Tell that many outcomes; print the memory of the service at every tenth of them."""
    done, step = 0, tells // 10
    while done < tells:
        done += episodes.tell(TELLERS, 2.0).requests
        if done >= step:
            print(f"{done:,} outcomes told: {memory(pid):.0f} MB", flush=True)
            step += tells // 10


def main() -> None:
    """Parse the command line, and run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default 3)")
    parser.add_argument("--tells", type=int, help="tell this many outcomes instead, and print the memory")
    parser.add_argument(
        "--folder", type=Path, help="a folder on the disk to measure (default: that of temporary files)"
    )
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed; on Debian: apt-get install wrk")
    with TemporaryDirectory(dir=given.folder) as name:
        folder, ports = Path(name), (free_port(), free_port())
        write_example(folder / "machine")
        serve = [sys.executable, "-m", "tightrope.cli", "serve", str(folder / "learner"), "--port", str(ports[1])]
        serve += ["--problem", str(folder / "machine"), "--learner", LEARNER, "--rate", "1e9", "--max-open", "1000000"]
        endpoint = [sys.executable, "-c", BARE, str(ports[0])]
        print(f"{machine()}; tightrope {__version__}; {LEARNER}; load {os.getloadavg()[0]:.1f}\n", flush=True)
        with (
            running(endpoint, f"http://127.0.0.1:{ports[0]}/act"),
            running(serve, f"http://127.0.0.1:{ports[1]}/ready") as pid,
        ):
            service = Wrk(folder, ports[1])
            episodes = Episodes(service, "learner", folder / "ids")
            if given.tells:
                soak(episodes, pid, given.tells)
                return
            print(f"| connections | {' | '.join(COLUMNS)} |\n|{'---|' * (1 + len(COLUMNS))}")
            for connections in CONNECTIONS:
                rounds = [
                    one_round(folder, Wrk(folder, ports[0]), service, episodes, connections, given.seconds)
                    for _ in range(given.rounds)
                ]
                row = np.median(rounds, axis=0).tolist()
                print(f"| {connections} | {' | '.join(map(shown, row))} |", flush=True)
            print(f"\nload {os.getloadavg()[0]:.1f}; memory of the service {memory(pid):.0f} MB")


if __name__ == "__main__":
    main()
