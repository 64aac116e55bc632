"""A durable learner, killed again and again: it has the bits of a twin that was not interrupted.

python -m fuzz.durable --kills 1000 --seed 0

A process of its own opens the directory, asks, watches what somebody else plays, tells, tells again, gives up, changes
budgets and stop-loss rules, adds challengers, promotes and dismisses them, retracts and amends outcomes, undoes that,
writes snapshots, and says before and after each call what it does. SIGKILL comes at a random moment, as likely while it
opens as later. The next process says what it found, which must be all that was acknowledged and at most the one call
that was under way, to the bit; the twin is plain learners in memory (`fuzz.twin`). The directory is in memory
(/dev/shm) where there is such a thing, so that not all kills meet somebody who waits for the disk; --folder puts it
elsewhere.
"""

import argparse
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from fuzz.twin import (
    CORRECTIONS,
    SAFE,
    Twin,
    candidates,
    challenger,
    digest,
    possible,
    rules,
    some_budgets,
    somebody,
    story,
    sums,
    watched,
)
from tightrope.durable import DurableLearner, Effect
from tightrope.errors import InvalidInputError, StorageError
from tightrope.learners import LEARNERS as CLASSES
from tightrope.model import Policy

LEARNERS = ("ucpd-practical", "ucpd-bandit", "uob-reps", "ucpd")
OPTIONS: dict[str, Any] = {"snapshot_every": 5, "remember": 50, "most_open": 6, "keep_journal": 100}

#: What is about no episode.
OPERATIONS = ("set_budgets", "stop_loss", "challenge", "promote", "dismiss")

#: What may come next, some of it more often.
CALLS = (
    *("ask", "tell") * 4, "watch", "watch", "tell", "tell", "again", "give_up", "snapshot", *OPERATIONS, *CORRECTIONS,
)  # fmt: skip

#: The same, where most calls correct something.
MOSTLY_CORRECTIONS = ("ask", "tell", "ask", "tell", "challenge", "promote", *CORRECTIONS * 3)

#: Seconds to a kill, on average; and how often they are counted from the start, not from when the directory was open.
MEAN, FROM_THE_START = 0.06, 0.4


def sight_of(learner: DurableLearner) -> dict[str, Any]:
    """All that must be as in the twin."""
    status, found = learner.status, learner.open_episodes()
    watched = {str(number_of(id)): "" for id in learner.open_ids() if id not in found}
    given = {str(number_of(id)): digest(one.policy.probabilities.tobytes()) for id, one in found.items()}
    assert status.open == len(found) + len(watched)
    return {
        "asked": status.asked,
        "told": status.told,
        "retracted": status.retracted,
        "left out": status.left_out,
        "events": status.event,
        "given": given | watched,
        "plays": digest(status.policy.probabilities.tobytes()),
        "champion": status.champion,
        "account": sums(status.account),
        "guard": sums(status.guard),
        "learners": {
            one.name: [digest(learner.fingerprint(one.name)), sums(one.shadow), one.failed] for one in status.entrants
        },
    }


def number_of(id: str) -> int:
    return int(id.partition("-")[0])


def operate(learner: DurableLearner, what: str, number: int) -> Any:
    """A call that is about no episode in particular; what `Twin.do` does."""
    names = [one.name for one in learner.status.standings]
    match what:
        case "watch":
            kinds = [CLASSES[str(one.settings["learner"])] for one in learner.status.standings if not one.failed]
            return learner.watch(watched(number, all(kind.learns_from == "any" for kind in kinds)))
        case "set_budgets":
            return learner.set_budgets(some_budgets(number))
        case "stop_loss":
            return learner.stop_loss(rules(number), SAFE)
        case "challenge":
            return learner.challenge(f"number {learner.status.event}", challenger(learner.feedback, number))
        case "promote" | "dismiss":
            return getattr(learner, what)(names[number % len(names)])
        case "ask" | "snapshot":
            return getattr(learner, what)()
        case "retract" | "amend" | "undo":
            return correct(learner, what, number)


def correct(learner: DurableLearner, what: str, number: int, dry_run: bool = False) -> Effect:
    """A correction, as `Twin.do` does it; refused if nothing can be chosen."""
    asked = learner.status.asked
    rows = [row for n in range(max(asked - 19, 1), asked + 1) if (row := learner._store.episode(n))]
    told = {row.number: row for row in rows if row.fate == "told"}
    if what == "undo":
        holding = [one.event for one in learner.corrections() if one.undone_by is None]
        return learner.undo(holding[number % len(holding)] if holding else 1, dry_run=dry_run)
    if what == "retract":
        return learner.retract([told[n].id for n in candidates(number, told, asked, 3)], dry_run=dry_run)
    for n in candidates(number, told, asked, 5)[:1]:
        policy = somebody(0)
        if told[n].policy:
            try:
                policy = Policy(learner.space, learner._store.array(told[n].policy))
            except StorageError:  # told before the journal begins
                break
        return learner.amend(told[n].id, **story(policy, learner.feedback, n, number + 1), dry_run=dry_run)
    raise InvalidInputError("there is nothing to amend")


def live(folder: Path, pipe: int, rng: random.Random, calls: Sequence[str]) -> NoReturn:
    """What the process does that is killed."""

    def say(**words: Any) -> None:
        os.write(pipe, json.dumps(words).encode() + b"\n")

    with DurableLearner(folder, **OPTIONS) as learner:
        say(found=sight_of(learner))
        settled: list[tuple[str, dict[str, Any]]] = []
        while True:
            what, number = rng.choice(calls), rng.randrange(100)
            found, known = learner.open_ids(), learner.open_episodes()
            if what in ("ask", "watch") and len(found) == OPTIONS["most_open"]:
                continue
            if what in ("tell", "give_up"):
                if not found:
                    continue
                id = rng.choice(found)
                champion = CLASSES[str(learner.settings["learner"])]
                if what == "tell" and id not in known and champion.learns_from == "told":
                    continue  # it would be refused
                number = number_of(id)
            if what == "again":
                for id, parts in settled[-3:]:
                    assert learner.tell(id, **parts) == "already"
                continue
            failed = {one.name: one.failed for one in learner.status.standings}
            if not possible(what, number, failed, learner.status.champion):
                continue
            if what in CORRECTIONS:
                try:
                    correct(learner, what, number, dry_run=True)
                except InvalidInputError:
                    continue
            say(do=what, number=number)
            if what == "tell":
                policy = known[id].policy if id in known else somebody(0)
                parts = story(policy, learner.feedback, number)
                assert learner.tell(id, **parts) == "learned"
                settled.append((id, parts))
            elif what == "give_up":
                learner.give_up(id)
            else:
                operate(learner, what, number)
            say(done=what)


def killed_once(folder: Path, rng: random.Random, calls: Sequence[str]) -> list[dict[str, Any]]:
    """A process from its start to its end by SIGKILL; what it said."""
    reading, writing = os.pipe()
    seed, delay, blindly = rng.random(), rng.expovariate(1 / MEAN), rng.random() < FROM_THE_START
    if (pid := os.fork()) == 0:
        try:
            os.close(reading)
            live(folder, writing, random.Random(seed), calls)
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
    for k in range(2):
        twin.do("challenge", k)
    for _ in range(40):
        twin.do("ask", 0)
        twin.do("tell", twin.asked)
    with TemporaryDirectory() as folder, DurableLearner(folder, Twin(name).champion.learner) as learner:
        episode = learner.ask()
        learner.tell(episode.id, **story(episode.policy, learner.feedback, 1))


def disturb(name: str, folder: Path, kills: int, seed: int, calls: Sequence[str] = CALLS) -> Counter[str]:
    """Kill so many processes; returns what was under way how often, and asserts that nothing was lost."""
    rng, twin, counts = random.Random(seed), Twin(name), Counter[str]()
    warm_up(name)
    DurableLearner(folder, twin.champion.learner, **OPTIONS).close()
    under_way: dict[str, Any] | None = None
    for _ in range(kills):
        before = "opening"
        for words in killed_once(folder, rng, calls):
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
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.durable", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    parser.add_argument("--kills", type=int, default=1000, help="in all, the same for each learner (default 1000)")
    parser.add_argument("--folder", type=Path, help="where the directory is made (default in memory)")
    parser.add_argument("--corrections", action="store_true", help="mostly retract, amend and undo")
    given = parser.parse_args()
    calls = MOSTLY_CORRECTIONS if given.corrections else CALLS
    memory, began, total = Path("/dev/shm"), time.monotonic(), Counter[str]()
    where = given.folder or (memory if memory.is_dir() else None)
    for k, name in enumerate(LEARNERS):
        with TemporaryDirectory(prefix="fuzz-", dir=where) as folder:
            counts = disturb(name, Path(folder) / name, given.kills // len(LEARNERS), given.seed + k, calls)
        print(f"{name}: {dict(sorted(counts.items()))}", flush=True)
        total += counts
    kills = sum(n for what, n in total.items() if what.startswith("killed"))
    print(
        f"seed {given.seed}: {kills} kills, {total['acknowledged']} calls acknowledged, none lost, none counted twice, "
        f"the same bits in {total['looked at']} looks ({time.monotonic() - began:.0f} s)"
    )


if __name__ == "__main__":
    main()
