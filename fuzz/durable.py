"""A durable learner, killed again and again: it has the bits of a twin that nobody disturbed.

python -m fuzz.durable --kills 1000 --seed 0

A process of its own opens the directory, asks, tells, tells again, gives up, changes budgets and writes snapshots, and
says before and after each call what it does. SIGKILL comes at a random moment, as likely while it opens as later. The
next process says what it found, which must be all that was acknowledged and at most the one call that was under way,
to the bit; the twin is a plain learner in memory. The directory is in memory (/dev/shm) where there is such a thing, so
that not all kills meet somebody who waits for the disk; --folder puts it elsewhere.
"""

import argparse
import json
import os
import random
import signal
import time
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from tightrope.checks.learners.play import arrays, ordinary_world
from tightrope.durable import DurableLearner
from tightrope.learners import LearnerBase, make_learner
from tightrope.learners.base import BanditEpisode, Episode
from tightrope.model import Policy
from tightrope.storage.checkpoints import fingerprint

WORLD = ordinary_world()
LEARNERS = ("ucpd-practical", "ucpd-bandit", "uob-reps", "ucpd")
OPTIONS: dict[str, Any] = {"snapshot_every": 5, "remember": 50, "most_open": 6}

#: Seconds to a kill, on average; and how often they are counted from the start, not from when the directory was open.
MEAN, FROM_THE_START = 0.06, 0.4


def story(policy: Policy, feedback: str, number: int) -> dict[str, Any]:
    """What came of episode `number`, as arguments of `tell`: a function of the policy and the number."""
    parts = arrays(WORLD.play(policy, feedback, number, np.random.default_rng([9, number])))
    return {"loss" if name == "losses" else name: part for name, part in parts.items()}


def number_of(id: str) -> int:
    return int(id.partition("-")[0])


def some_budgets(number: int) -> Any:
    return WORLD.budgets * (0.8 + 0.05 * (number % 9))


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


class Twin:
    """The same in memory, without ids, files or crashes."""

    def __init__(self, name: str) -> None:
        self.learner: LearnerBase = make_learner(name, WORLD, episodes=10_000)
        self.given: dict[int, Policy] = {}  #: policies of those that are open
        self.asked = self.told = self.events = 0

    def ask(self) -> int:
        self.asked += 1
        self.given[self.asked] = self.learner.policy
        return self.asked

    def tell(self, number: int) -> None:
        policy = self.given.pop(number)
        parts = story(policy, self.learner.feedback, number)
        if self.learner.feedback == "full":
            self.learner.observe(Episode(**parts))
        else:
            self.learner.observe(BanditEpisode(losses=parts.pop("loss"), **parts, policy=policy))
        self.told += 1
        self.events += 1

    def give_up(self, number: int) -> None:
        del self.given[number]

    def set_budgets(self, number: int) -> None:
        self.learner = self.learner.with_budgets(some_budgets(number))
        self.events += 1

    def do(self, what: str, number: int) -> None:
        """A call that changes something."""
        if what in ("tell", "give_up", "set_budgets"):
            getattr(self, what)(number)
        elif what == "ask":
            self.ask()

    def sight(self) -> dict[str, Any]:
        """All that must be as in the directory."""
        given = {str(number): digest(policy.probabilities.tobytes()) for number, policy in self.given.items()}
        return {
            "asked": self.asked,
            "told": self.told,
            "events": self.events,
            "given": given,
            "learner": digest(fingerprint(self.learner)),
        }


def sight_of(learner: DurableLearner) -> dict[str, Any]:
    """The same of a directory."""
    status, found = learner.status, learner.open_episodes()
    assert status.open == len(found)
    return {
        "asked": status.asked,
        "told": status.told,
        "events": status.event,
        "given": {str(number_of(id)): digest(one.policy.probabilities.tobytes()) for id, one in found.items()},
        "learner": digest(learner.fingerprint()),
    }


def live(folder: Path, pipe: int, rng: random.Random) -> NoReturn:
    """What the process does that is killed."""

    def say(**words: Any) -> None:
        os.write(pipe, json.dumps(words).encode() + b"\n")

    with DurableLearner(folder, **OPTIONS) as learner:
        say(found=sight_of(learner))
        settled: list[tuple[str, dict[str, Any]]] = []
        while True:
            found = list(learner.open_episodes().values())
            what = rng.choice(["ask", "ask", "tell", "tell", "tell", "again", "give_up", "set_budgets", "snapshot"])
            if (what == "ask" and len(found) == OPTIONS["most_open"]) or (what in ("tell", "give_up") and not found):
                continue
            if what in ("tell", "give_up"):
                episode = rng.choice(found)
                say(do=what, number=number_of(episode.id))
                if what == "give_up":
                    learner.give_up(episode.id)
                else:
                    parts = story(episode.policy, learner.feedback, number_of(episode.id))
                    assert learner.tell(episode.id, **parts) == "learned"
                    settled.append((episode.id, parts))
            elif what == "again":
                for id, parts in settled[-3:]:
                    assert learner.tell(id, **parts) == "already"
                continue
            else:
                number = rng.randrange(100)
                say(do=what, number=number)
                if what == "ask":
                    learner.ask()
                elif what == "set_budgets":
                    learner.set_budgets(some_budgets(number))
                else:
                    learner.snapshot()
            say(done=what)


def killed_once(folder: Path, rng: random.Random) -> list[dict[str, Any]]:
    """A process from its start to its end by SIGKILL; what it said."""
    reading, writing = os.pipe()
    seed, delay, blindly = rng.random(), rng.expovariate(1 / MEAN), rng.random() < FROM_THE_START
    if (pid := os.fork()) == 0:
        try:
            os.close(reading)
            live(folder, writing, random.Random(seed))
        except BaseException as error:
            os.write(writing, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        finally:
            os._exit(1)
    os.close(writing)
    said = b"" if blindly else os.read(reading, 1 << 16)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    while more := os.read(reading, 1 << 16):
        said += more
    os.close(reading)
    os.waitpid(pid, 0)
    *lines, cut = said.split(b"\n")
    assert not cut, f"half a line: {cut!r}"
    return [json.loads(line) for line in lines]


def warm_up(name: str) -> None:
    """Load what is compiled, so that no process does before it is killed."""
    twin = Twin(name)
    for _ in range(40):
        twin.tell(twin.ask())


def disturb(name: str, folder: Path, kills: int, seed: int) -> Counter[str]:
    """Kill so many processes; returns what was under way how often, and asserts that nothing was lost."""
    rng, twin, counts = random.Random(seed), Twin(name), Counter[str]()
    warm_up(name)
    DurableLearner(folder, twin.learner, **OPTIONS).close()
    under_way: dict[str, Any] | None = None
    for _ in range(kills):
        before = "opening"
        for words in killed_once(folder, rng):
            assert "failed" not in words, words
            if "found" in words:
                if under_way is not None and words["found"] != twin.sight():  # then it had come to disk
                    twin.do(under_way["do"], under_way["number"])
                    counts["under way and found on disk"] += 1
                under_way = None
                assert words["found"] == twin.sight(), f"{words['found']} in place of {twin.sight()}"
                counts["looked at"] += 1
                before = "between calls"
            elif "do" in words:
                under_way, before = words, words["do"]
            else:
                assert under_way is not None
                twin.do(under_way["do"], under_way["number"])
                counts["acknowledged"] += 1
                under_way, before = None, "between calls"
        counts[f"killed in {before}"] += 1
    with DurableLearner(folder, **OPTIONS) as learner:
        if under_way is not None and sight_of(learner) != twin.sight():
            twin.do(under_way["do"], under_way["number"])
        assert sight_of(learner) == twin.sight()
        counts["episodes told"] = learner.status.told
    return counts


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.durable", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    parser.add_argument("--kills", type=int, default=1000, help="in all, the same for each learner (default 1000)")
    parser.add_argument("--folder", type=Path, help="where the directory is made (default in memory)")
    given = parser.parse_args()
    memory, began, total = Path("/dev/shm"), time.monotonic(), Counter[str]()
    where = given.folder or (memory if memory.is_dir() else None)
    for k, name in enumerate(LEARNERS):
        with TemporaryDirectory(prefix="fuzz-", dir=where) as folder:
            counts = disturb(name, Path(folder) / name, given.kills // len(LEARNERS), given.seed + k)
        print(f"{name}: {dict(sorted(counts.items()))}", flush=True)
        total += counts
    kills = sum(n for what, n in total.items() if what.startswith("killed"))
    print(
        f"seed {given.seed}: {kills} kills, {total['acknowledged']} calls acknowledged, none lost, none counted twice, "
        f"the same bits in {total['looked at']} looks ({time.monotonic() - began:.0f} s)"
    )


if __name__ == "__main__":
    main()
