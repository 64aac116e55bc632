"""python -m benchmarks.replay record FILE, compare FILE: do another version, compiler or machine give the same numbers?

`record` plays every learner on six problems under two loss sequences and writes a record of each episode to FILE:
expected loss, expected use of each budget, the norm of the prices, the epoch, and a digest of the path. `compare` plays
the same, or reads it from a second file, and prints for each learner the largest difference, and the runs that differ.

Draws depend on policies: a policy that differs in its last bits may draw another action, and then the two runs diverge.
So each run is compared up to the first episode whose path differs. A learner that breaks a tie by rounding, or that
amplifies rounding, may differ even before that.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tightrope as tr
from benchmarks.problems import table
from tests.recording import Recorder
from tightrope.learners import LEARNERS
from tightrope.learners.registry import options_of
from tightrope.space import FloatArray

EPISODES = 200

#: The problems, of different kinds: ties, two budgets, a grid, dense and random, many steps, many actions.
PROBLEMS: dict[str, dict[str, Any]] = {
    "media-streaming": {},
    "edge-cloud": {},
    "cliff-walking": {"n_rows": 3, "n_columns": 6, "n_steps": 12},
    "random": {"n_constraints": 2},
    "river-swim": {"noise": "scaled"},
    "inventory": {},
}

#: Loss sequences, the first oblivious, the second adaptive; and options for the learners that have them. In so few
#: episodes the published radii leave most confidence sets free, and small radii bind.
CONDITIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "switching": ({"name": "switching", "period": 7}, {}),
    "chaser": ({"name": "chaser", "memory": 10}, {"radius_scale": 0.01}),
}

#: Columns of a history that are sums over episodes.
SUMS = ("loss", "use_")


class Played(NamedTuple):
    """The records of a run, episode by episode."""

    values: FloatArray  #: (n_columns, EPISODES)
    paths: NDArray[np.uint64]  #: (EPISODES,) digests


class Difference(NamedTuple):
    """How two runs differ, up to the first episode whose path differs; relative to the largest entry of each column."""

    absolute: float
    relative: float
    where: str  #: the column of the largest relative difference
    grows: int | None  #: the first episode with a relative difference that is too large
    diverges: int | None  #: the first episode whose path differs

    @property
    def alike(self) -> bool:
        return self.grows is None and self.diverges is None

    def __str__(self) -> str:
        grows = f"{self.where} differs by {self.absolute:.1e}" + (f", from {self.grows} on" if self.grows else "")
        return grows + (f", another path at {self.diverges}" if self.diverges else "")


def play(learner: str, problem: str, condition: str) -> tuple[Played, list[str]]:
    """Play one run; return it with the names of its columns."""
    losses, options = CONDITIONS[condition]
    made = tr.make(problem, losses=losses, **PROBLEMS[problem])
    own = {name: value for name, value in options.items() if name in options_of(LEARNERS[learner])}
    recorder = Recorder(tr.make_learner(learner, made, episodes=EPISODES, **own))
    run = tr.Run(made, recorder, episodes=EPISODES, records=EPISODES, spacing="linear", regret="never")
    history = run.play()
    columns = [name for name in history if name.startswith((*SUMS, "multiplier_norm", "epoch")) and name != "episode"]
    values = [np.diff(history[name], prepend=0.0) if name.startswith(SUMS) else history[name] for name in columns]
    return Played(np.array(values), np.array([digest(episode) for episode in recorder.episodes])), columns


def digest(episode: tr.Episode | tr.BanditEpisode) -> np.uint64:
    """Return 64 bits of a hash of the path."""
    path = np.concatenate([np.asarray(part, dtype="<i8") for part in (episode.states, episode.actions)])
    return np.uint64(int.from_bytes(hashlib.sha256(path.tobytes()).digest()[:8], "little"))


def play_all(learners: list[str]) -> tuple[dict[str, Played], dict[str, list[str]]]:
    """Return all runs by name, and the columns of each problem."""
    runs, columns = {}, {}
    for learner in learners:
        begun = perf_counter()
        for problem in PROBLEMS:
            for condition in CONDITIONS:
                runs[f"{learner}/{problem}/{condition}"], columns[problem] = play(learner, problem, condition)
        print(f"{learner}: {perf_counter() - begun:.1f} s", flush=True)
    return runs, columns


def write(file: Path, runs: Mapping[str, Played], columns: Mapping[str, list[str]]) -> None:
    """Write all runs to a file of numpy."""
    arrays: dict[str, Any] = {}
    for name, run in runs.items():
        arrays |= {f"{name}/{part}": value for part, value in run._asdict().items()}
    np.savez_compressed(file, columns=json.dumps(columns), version=tr.__version__, **arrays)


def read(file: Path) -> tuple[dict[str, Played], dict[str, list[str]]]:
    """Read the file that `write` wrote."""
    with np.load(file) as found:
        names = dict.fromkeys(key.rpartition("/")[0] for key in found if "/" in key)
        runs = {name: Played(found[f"{name}/values"], found[f"{name}/paths"]) for name in names}
        return runs, json.loads(str(found["columns"]))


def difference(before: Played, after: Played, columns: list[str], tolerance: float) -> Difference:
    """Return how two runs differ, up to and including the first episode whose path differs."""
    differing = np.flatnonzero(before.paths != after.paths)
    diverges = int(differing[0]) + 1 if len(differing) else None
    gap = np.abs(before.values - after.values)[:, :diverges]
    scale = np.abs(before.values).max(axis=1, keepdims=True)
    relative = np.divide(gap, scale, out=np.where(gap > 0, np.inf, 0.0), where=scale > 0)
    column = int(np.argmax(relative.max(axis=1)))
    large = np.flatnonzero(relative.max(axis=0) > tolerance)
    grows = int(large[0]) + 1 if len(large) else None
    return Difference(float(gap.max()), float(relative.max()), columns[column], grows, diverges)


def compare(
    before: Mapping[str, Played], after: Mapping[str, Played], columns: Mapping[str, list[str]], tolerance: float
) -> dict[str, dict[str, Difference]]:
    """Compare the runs that are in both, by learner and by run."""
    found: dict[str, dict[str, Difference]] = {}
    for name in [name for name in before if name in after]:
        learner, _, rest = name.partition("/")
        here = columns[rest.partition("/")[0]]
        found.setdefault(learner, {})[rest] = difference(before[name], after[name], here, tolerance)
    return found


def rows(found: Mapping[str, Mapping[str, Difference]]) -> Iterator[list[str]]:
    """Return the table of `compare`: a row for each learner."""
    for learner, runs in found.items():
        alike = [run for run in runs.values() if run.alike]
        yield [
            learner,
            f"{len(alike)} of {len(runs)}",
            f"{max((run.absolute for run in alike), default=0.0):.1e}",
            f"{max((run.relative for run in alike), default=0.0):.1e}",
            "; ".join(f"{name}: {run}" for name, run in runs.items() if not run.alike),
        ]


def main() -> None:
    """Record the runs, or compare them with a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("other", type=Path, nargs="?", help="compare with this file instead of playing")
    parser.add_argument("--learners", help="play these only: a,b,c")
    parser.add_argument(
        "--tolerance", type=float, default=1e-9, help="the largest relative difference of runs that count as equal"
    )
    chosen = parser.parse_args()
    learners = chosen.learners.split(",") if chosen.learners else list(LEARNERS)
    if chosen.command == "record":
        write(chosen.file, *play_all(learners))
        return
    before, columns = read(chosen.file)
    after, _ = play_all(learners) if chosen.other is None else read(chosen.other)
    found = compare(before, after, columns, chosen.tolerance)
    print(table(["learner", "alike", "largest difference", "relative", "not alike"], rows(found)))


if __name__ == "__main__":
    main()
