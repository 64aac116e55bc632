"""python -m fuzz.endurance --minutes 60: every learner, on every problem, under every loss sequence, for a long time.

Each combination is played a fifth further than its learner was planned for; now and then its policy, multipliers and
measure are looked at. What was done is a line in a file, and is not done again; the order is shuffled, so that whatever
time there is covers a random sample. One that takes longer than its patience is noted with how far it came.
"""

import argparse
import itertools
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tightrope.lab.run import run
from tightrope.learners import LEARNERS, Learner, LearnerBase, make_learner
from tightrope.model import Policy
from tightrope.problems import PROBLEMS, make
from tightrope.problems.losses import LOSSES

#: How much further than planned a learner has to go.
BEYOND = 1.2


class Combination(NamedTuple):
    """What is played, and for how many episodes it is planned."""

    learner: str
    problem: str
    losses: str
    episodes: int


class ImpatientError(Exception):
    """It works, but takes too long."""


def endure(what: Combination, *, beyond: float = BEYOND, seed: int = 0, patience: float = np.inf) -> dict[str, Any]:
    """Play one combination; returns what happened: "ok", how far it came in the time there was, or the error."""
    began, outcome = time.process_time(), "ok"
    learner: LearnerBase | None = None

    def look(t: int) -> None:
        assert learner is not None
        inspect(learner, t)
        if time.process_time() - began > patience:
            raise ImpatientError

    try:
        with warnings.catch_warnings(action="error"):
            problem = make(what.problem, losses=what.losses)
            learner = make_learner(what.learner, problem, episodes=what.episodes, seed=seed)
            episodes = round(beyond * what.episodes)
            run(problem, learner, episodes=episodes, seed=seed, records=1, regret="never", progress=look)
    except ImpatientError:
        outcome = "ok so far"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    played = learner.observed if learner is not None else 0
    return what._asdict() | {"seed": seed, "played": played, "outcome": outcome, "seconds": time.process_time() - began}


def inspect(learner: Learner, t: int) -> None:
    """Raise unless the policy is one, multipliers are finite and not negative, and a measure is finite and adds up."""
    Policy(learner.space, learner.policy.probabilities)
    Q, theta = learner.multipliers, getattr(learner, "theta", None)
    if not (np.isfinite(Q).all() and (Q >= 0).all()):
        raise ArithmeticError(f"episode {t}: the multipliers are {Q}")
    if theta is not None and not (np.isfinite(theta).all() and (theta >= 0).all()):
        raise ArithmeticError(f"episode {t}: θ holds what is negative or not finite")
    if theta is not None and abs(theta.sum() - learner.space.n_layers) > 1e-6:
        raise ArithmeticError(f"episode {t}: θ sums to {theta.sum()}, not to the {learner.space.n_layers} layers")


def done(log: Path) -> list[dict[str, Any]]:
    """What the file says was done; where the writer was killed, a line is half of one."""
    entries = []
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        with suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def to_do(given: argparse.Namespace) -> Iterator[Combination]:
    """All combinations that were asked for and are not in the file, in the order of the seed."""
    chosen = itertools.product(given.learners, given.problems, given.losses, [given.episodes])
    everything = sorted(itertools.starmap(Combination, chosen))
    random.Random(given.seed).shuffle(everything)
    known = {tuple(entry[name] for name in (*Combination._fields, "seed")) for entry in done(given.log)}
    return (what for what in everything if (*what, given.seed) not in known)


def main() -> None:
    """Play until the time is up, and print a summary of all runs in the file."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.endurance", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--minutes", type=float, default=np.inf, help="none begins after that many (default: all do)")
    parser.add_argument("--patience", type=float, default=np.inf, help="seconds of work on one (default: any)")
    parser.add_argument("--episodes", type=int, default=100_000, help="that learners plan for (default 100000)")
    parser.add_argument("--learners", type=names(LEARNERS), default=[*LEARNERS], help="a,b,… (default: all)")
    parser.add_argument("--problems", type=names(PROBLEMS), default=[*PROBLEMS], help="likewise")
    parser.add_argument("--losses", type=names(LOSSES), default=[*LOSSES], help="likewise")
    parser.add_argument("--seed", type=int, default=0, help="of the order and of the runs (default 0)")
    parser.add_argument("--log", type=Path, default=Path("endurance.jsonl"), help="a line for each, added to")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    for what in itertools.takewhile(lambda _: time.monotonic() < end, to_do(given)):
        entry = endure(what, seed=given.seed, patience=given.patience)
        with given.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        named = ", ".join((entry["learner"], entry["problem"], entry["losses"]))
        print(f"{named}: {entry['outcome']} ({entry['played']} episodes, {entry['seconds']:.0f} s)", flush=True)
    entries = done(given.log)
    counts = Counter(entry["outcome"] if entry["outcome"].startswith("ok") else "failed" for entry in entries)
    total = sum(entry["played"] for entry in entries)
    print(f"{len(entries)} combinations, {total:,} episodes: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    sys.exit(counts["failed"] > 0)


def names(known: Iterable[str]) -> Any:
    """What reads a list of these off the command line."""

    def read(text: str) -> list[str]:
        chosen = text.split(",")
        if wrong := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return chosen

    return read


if __name__ == "__main__":
    main()
