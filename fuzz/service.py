"""A service, killed again and again while clients ask and tell: nothing acknowledged is lost, nothing counted twice.

python -m fuzz.service --kills 200 --interrupts 50 --seed 0

Clients ask, play and tell, some episodes twice, some never, and try again while the service does not answer. SIGKILL,
SIGINT and SIGTERM come at random moments, also while the service starts. In the end the journal is fed to a plain
learner in its order: every outcome that was acknowledged to a client is in it, once and unchanged, and the learner in
the directory has the bits of the plain one.
"""

import argparse
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from tightrope.durable import DurableLearner
from tightrope.learners import LearnerBase, make_learner
from tightrope.ops.inputs import TABLES
from tightrope.ops.state import EpisodeFormat
from tightrope.ops.store import ZEROS, Journal, SnapshotRow
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem, write_example
from tightrope.service import Client, ServiceError
from tightrope.storage import checkpoints

LEARNER = "ucpd-practical"

#: Seconds at the most from when the service answers to the next signal, how often nobody waits until it answers, and
#: how often it is SIGTERM, besides the others.
MOST, BLINDLY, POLITELY = 1.5, 0.15, 0.15

#: How often an episode is given up; told twice; told otherwise afterwards, which has to be refused.
GIVEN_UP, TWICE, OTHERWISE = 0.1, 0.3, 0.1


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Service:
    """The command, started again and again at one port."""

    def __init__(self, folder: Path) -> None:
        write_example(folder / "machine")
        self.problem, self.directory = load_problem(folder / "machine"), folder / "learner"
        self.log, self.port = folder / "log", free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "tightrope.cli", "serve", str(self.directory), "--port", str(self.port)]
        self._command += ["--snapshot-every", "20", "--keep-journal", str(10**9)]
        self._begin = ["--problem", str(folder / "machine"), "--learner", LEARNER]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """In a session of its own."""
        begun = (self.directory / TABLES).exists()
        command = self._command if begun else self._command + self._begin
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored, if we are in the background
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until the service answers."""
        assert self.process is not None
        while self.process.poll() is None:
            try:
                with urlopen(f"{self.address}/ready", timeout=60):
                    return
            except (URLError, ConnectionError, TimeoutError):
                time.sleep(0.02)
        raise AssertionError(f"exit code {self.process.returncode}: {self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        """By a signal; returns the exit code."""
        assert self.process is not None
        assert self.process.poll() is None, f"it ended by itself: {self.log.read_text()}"
        self.process.send_signal(number)
        return self.process.wait()


class Player(Thread):
    """A client: asks, plays, tells, until it is told to stop; remembers what was acknowledged."""

    def __init__(self, client: Any, problem: Problem, seed: int, stop: Event) -> None:
        super().__init__(daemon=True)
        self.client, self.problem, self.rng, self.stop = client, problem, np.random.default_rng(seed), stop
        self.told: dict[str, dict[str, Any]] = {}
        self.given_up: set[str] = set()
        self.counted: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.play()
        except BaseException as error:
            self.error = error

    def play(self) -> None:
        """Play one episode as a client."""
        episode = self.client.ask()
        if self.rng.random() < GIVEN_UP:
            self.counted[self.client.give_up(episode)] += 1
            self.given_up.add(episode)
            return
        story = self.walk(episode)
        for _ in range(1 + (self.rng.random() < TWICE)):
            self.counted[self.client.tell(episode, **story)] += 1
            self.told[episode] = story
        if self.rng.random() < OTHERWISE:
            try:
                self.client.tell(episode, **{**story, "scenario": story["scenario"] % 3 + 1})
                raise AssertionError(f"{episode} was told otherwise, and that was taken")
            except ServiceError as refused:
                assert refused.kind == "conflict", refused
                self.counted["told otherwise, refused"] += 1

    def walk(self, episode: str) -> dict[str, Any]:
        """A path under the true model; the first action is drawn by the service, the others here."""
        space, P = self.problem.space, self.problem.mdp.transitions
        states, actions, csr = [0], [], space.csr
        for k in range(space.n_layers):
            pairs = range(*csr.state_ptr[states[-1] : states[-1] + 2].tolist())
            chosen = [pair for pair in pairs if k == 0 and csr.action[pair] == self.drawn(episode)] or list(pairs)
            pair = chosen[self.rng.integers(len(chosen))]
            tuples = range(*csr.pair_ptr[pair : pair + 2].tolist())
            states.append(int(csr.successor[self.rng.choice(tuples, p=P[tuples.start : tuples.stop])]))
            actions.append(int(csr.action[pair]))
        return {"states": states, "actions": actions, "scenario": int(self.rng.integers(1, 4))}

    def drawn(self, episode: str) -> int:
        """What the service does at the start."""
        return int(self.client.act(0, episode)["action"])


def check(learner: DurableLearner, problem: Problem, players: Sequence[Player]) -> dict[str, int]:
    """Compare what clients know with the journal, and with a plain learner that was never disturbed."""
    told = {episode: story for player in players for episode, story in player.told.items()}
    given_up = {episode for player in players for episode in player.given_up}
    twin = make_learner(LEARNER, problem)
    learned = replay(Journal(learner.database), problem, twin)
    assert learner.fingerprint() == checkpoints.fingerprint(twin), "other bits than a learner that nobody disturbed"
    status, still_open = learner.status, set(learner.open_episodes())
    numbers = {int(episode.partition("-")[0]): story for episode, story in told.items()}
    assert len(numbers) == len(told), "two episodes with one number"
    assert numbers.keys() <= learned.keys(), f"lost: {numbers.keys() - learned.keys()}"
    for number, story in numbers.items():
        assert learned[number] == story, f"episode {number} is not as it was told"
    assert not given_up & still_open and not told.keys() & still_open
    assert not {int(episode.partition("-")[0]) for episode in given_up} & learned.keys()
    assert len(learned) == len(told) == status.told, "more was learned than clients told"
    return {"learned": len(told), "given up": len(given_up), "left open": len(still_open)}


def replay(journal: Journal, problem: Problem, twin: LearnerBase) -> dict[int, dict[str, Any]]:
    """Feed the journal to `twin`; returns what was told of each episode."""
    format, learned = EpisodeFormat(problem.space, len(problem.budgets), twin.feedback), dict[int, dict[str, Any]]()
    for event in journal.events(SnapshotRow(0, ZEROS, b"")):
        told = format.outcome(event, journal.array)
        assert event.episode is not None and event.episode not in learned, f"{event.episode} was counted twice"
        [scenario] = np.flatnonzero((problem.losses.scenarios == told.loss).all(axis=1)).tolist()  # type: ignore[attr-defined]
        states, actions = problem.space.trajectory(told.path)
        story = {"states": states.tolist(), "actions": actions.tolist(), "scenario": scenario + 1}
        learned[event.episode] = story
        twin.observe(format.episode(told, twin.feedback, twin.policy.probabilities))
    return learned


def disturb(
    folder: Path, kills: int, interrupts: int, seed: int, n_clients: int, say: Callable[[str], None]
) -> dict[str, int]:
    """Kill and interrupt a service so often, and look what became of it."""
    rng, service, stop = random.Random(seed), Service(folder), Event()
    clients = [Client(service.address, service.directory.name, patience=600) for _ in range(n_clients)]
    players = [Player(client, service.problem, 1000 * seed + k, stop) for k, client in enumerate(clients)]
    service.start()
    service.wait()
    for player in players:
        player.start()
    ended: Counter[str] = Counter()
    signals = [signal.SIGKILL] * kills + [signal.SIGINT] * interrupts
    signals += [signal.SIGTERM] * round(POLITELY * len(signals))
    rng.shuffle(signals)
    for number in signals:
        blindly = rng.random() < BLINDLY
        if not blindly:
            service.wait()
        time.sleep(rng.uniform(0, MOST))
        code = service.end(number)
        if number != signal.SIGKILL and not blindly:  # before our first line the answer is Python's own
            assert code == 128 + number, f"exit code {code}: {service.log.read_text()[-2000:]}"
        ended[number.name] += 1
        for player in players:
            if player.error is not None:
                raise player.error
        service.start()
        if ended.total() % 10 == 0:
            say(f"{ended.total()} signals, {sum(len(player.told) for player in players)} episodes acknowledged")
    service.wait()
    stop.set()
    for player in players:
        player.join()
        if player.error is not None:
            raise player.error
    code = service.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, f"exit code {code}: {service.log.read_text()}"
    counted = sum((player.counted for player in players), Counter[str]())
    with DurableLearner(service.directory) as learner:
        found = check(learner, service.problem, players)
    return {**ended, **found, **{f"answered {name!r}": n for name, n in counted.items()}}


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.service", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="so often (default 200)")
    parser.add_argument("--interrupts", type=int, default=50, help="SIGINT so often (default 50)")
    parser.add_argument("--clients", type=int, default=4, help="at once (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="fuzz-") as name:
        began = time.monotonic()
        numbers = (given.kills, given.interrupts, given.seed, given.clients)
        found = disturb(Path(name), *numbers, lambda words: print(words, flush=True))
    counted = ", ".join(f"{name} {n}" for name, n in found.items())
    print(f"seed {given.seed}: {counted}; the same bits ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
