"""Replicas of a service on PostgreSQL, killed again and again, as is the database: nothing acknowledged is lost.

python -m fuzz.replicas --kills 200 --restarts 50 --seed 0

Clients ask at one replica, act at another and tell at a third, some episodes twice, some otherwise, some never, and try
again while nobody answers. SIGKILL ends a replica, half of the time the one that holds the lock, and comes also while a
replica starts. The database is restarted meanwhile, by SIGINT, SIGQUIT and SIGKILL. In the end the journal is
fed to a plain learner in its order: what every client was told is learned is there, once, as it was told, and a learner
from the database has the bits of the plain one, as has each replica that follows.
"""

import argparse
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from fuzz.cluster import Cluster
from fuzz.service import LEARNER, Player, check, free_port
from tightrope.durable import DurableLearner
from tightrope.ops.postgres import LOCK, PostgreSQL
from tightrope.problems.files import load_problem, write_example
from tightrope.service import Client, ServiceError

#: Between two signals, at the most: episodes that are acknowledged, and then seconds. How often a replica is killed
#: while it starts; how often nothing but the one that learns is aimed at.
EPISODES, MOST, BLINDLY, AIMED = 12, 0.8, 0.15, 0.5

#: Seconds that a client tries again before it goes to another replica.
PATIENCE = 1.0

#: How the database ends; SIGTERM would wait until its clients are gone.
ENDS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)


class Replica:
    """One process of the service, started again and again at one port."""

    def __init__(self, folder: Path, number: int, database: str) -> None:
        self.port, self.log = free_port(), folder / f"log-{number}"
        self.address = f"http://127.0.0.1:{self.port}"
        self._command = [
            sys.executable,
            "-m",
            "tightrope.cli",
            "serve",
            f"{database}&application_name=replica-{number}",
            "--port",
            str(self.port),
        ]
        self._command += ["--problem", str(folder / "machine"), "--learner", LEARNER]
        self._command += [
            "--snapshot-every",
            "20",
            "--keep-journal",
            str(10**9),
            "--rate",
            "1e9",
            "--max-open",
            "100000",
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    def ready(self) -> bool:
        try:
            with urlopen(f"{self.address}/ready", timeout=60):
                return True
        except (URLError, ConnectionError, TimeoutError):
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


class Everywhere:
    """A client of all replicas: each call goes to a random one, and to another one while it fails."""

    def __init__(self, replicas: list[Replica], name: str, seed: int) -> None:
        self._rng = random.Random(seed)
        self._clients = [Client(replica.address, name, patience=PATIENCE) for replica in replicas]

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            while True:
                try:
                    return getattr(self._rng.choice(self._clients), name)(*given, **named)
                except ServiceError as error:
                    if error.kind not in ("no-answer", "storage", "not-ready", "busy", "too-many-open"):
                        raise
                    time.sleep(0.02)

        return call


class Disturbed:
    """A database with replicas and clients."""

    def __init__(self, folder: Path, cluster: Cluster, n_replicas: int, n_clients: int, seed: int) -> None:
        write_example(folder / "machine")
        self.cluster, self.address, self.rng = cluster, cluster.address(), random.Random(seed)
        self.problem, self.stop = load_problem(folder / "machine"), Event()
        self.replicas = [Replica(folder, k, self.address) for k in range(n_replicas)]
        self.players = [
            Player(Everywhere(self.replicas, "tightrope", 100 * seed + k), self.problem, 1000 * seed + k, self.stop)
            for k in range(n_clients)
        ]
        self.counts = Counter[str]()
        self.longest = 0.0  #: seconds until an outcome was learned after the one that learned was killed

    def leader(self) -> int | None:
        """Return the number of the replica that holds the lock, or waits for it; None if there is none."""
        query = (
            "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE l.locktype = 'advisory' AND l.classid = ? AND l.granted"
        )
        with closing(PostgreSQL(self.address, create=False)) as database:
            for _ in range(50):
                for (name,) in database.query(query, LOCK):
                    if name.startswith("replica-"):
                        return int(name.removeprefix("replica-"))
        return None

    def told(self) -> int:
        return sum(len(player.told) for player in self.players)

    def kill(self) -> None:
        """Kill a replica and start it again."""
        aimed = self.leader() if self.rng.random() < AIMED else None
        victim = self.replicas[self.rng.randrange(len(self.replicas)) if aimed is None else aimed]
        victim.kill()
        self.counts["killed with the lock" if aimed is not None else "killed"] += 1
        before, began = self.told(), time.monotonic()
        while aimed is not None and self.told() == before and not self.failed():
            time.sleep(0.005)
        if aimed is not None:
            self.longest = max(self.longest, time.monotonic() - began)
        victim.start()
        if self.rng.random() < BLINDLY:
            time.sleep(self.rng.uniform(0, 2.0))
            victim.kill()
            victim.start()
            self.counts["killed while it started"] += 1

    def restart(self) -> None:
        how = self.rng.choice(ENDS)
        self.cluster.stop(how)
        time.sleep(self.rng.uniform(0, 0.5))
        self.cluster.start()
        self.counts[f"database ended by {how.name}"] += 1

    def failed(self) -> bool:
        return any(player.error is not None for player in self.players)

    def raise_errors(self) -> None:
        for player in self.players:
            if player.error is not None:
                raise player.error

    def wait(self) -> None:
        """Until one replica is ready, at least. Those that ended, without a database at their start, start again."""
        while True:
            for replica in self.replicas:
                if replica.process is not None and replica.process.poll() is not None:
                    replica.start()
                    self.counts["started again, after there was no database"] += 1
            if any(replica.ready() for replica in self.replicas):
                return
            time.sleep(0.05)

    def run(self, kills: int, restarts: int) -> dict[str, Any]:
        for replica in self.replicas:
            replica.start()
        self.wait()
        for player in self.players:
            player.start()
        signals = [self.kill] * kills + [self.restart] * restarts
        self.rng.shuffle(signals)
        for number, disturb in enumerate(signals, start=1):
            self.wait()
            enough = self.told() + self.rng.randrange(EPISODES)
            while self.told() < enough and not self.failed():
                time.sleep(0.005)
            time.sleep(self.rng.uniform(0, MOST))
            disturb()
            self.raise_errors()
            if number % 10 == 0:
                print(f"{number} signals, {self.told()} episodes acknowledged", flush=True)
        self.wait()
        self.stop.set()
        for player in self.players:
            player.join()
        self.raise_errors()
        return self.check()

    def close(self) -> None:
        """End all processes and clients."""
        self.stop.set()
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.kill()

    def check(self) -> dict[str, Any]:
        """Compare what clients know with the journal, with a plain learner, and with each replica."""
        with DurableLearner(self.address) as learner:
            found = check(learner, self.problem, self.players)
            policy = np.array(learner.policy.table()["probability"])
            told = learner.status.told
        for replica in self.replicas:
            while not replica.ready():
                assert replica.process is not None
                if replica.process.poll() is not None:
                    replica.start()
                time.sleep(0.05)
            client = Client(replica.address, "tightrope")
            assert client.state()["told"] == told
            assert (np.array(client.policy()["probability"]) == policy).all(), "a replica has other bits"
            replica.kill()
        answers = sum((player.counted for player in self.players), Counter[str]())
        found |= {f"answered {name!r}": n for name, n in answers.items()}
        return {**self.counts, **found, "seconds to the next learner, at most": round(self.longest, 2)}


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.replicas", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="of replicas (default 200)")
    parser.add_argument("--restarts", type=int, default=50, help="of the database (default 50)")
    parser.add_argument("--replicas", type=int, default=3, help="at once (default 3)")
    parser.add_argument("--clients", type=int, default=4, help="at once (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="fuzz-") as name, Cluster() as cluster:
        began = time.monotonic()
        disturbed = Disturbed(Path(name), cluster, given.replicas, given.clients, given.seed)
        try:
            found = disturbed.run(given.kills, given.restarts)
        finally:
            disturbed.close()
    counted = ", ".join(f"{words} {n}" for words, n in found.items())
    print(f"seed {given.seed}: {counted}; the same bits ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
