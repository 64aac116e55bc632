"""python -m benchmarks.durable: the cost of durability, against the plain learner and against the disk.

    tell      `DurableLearner.tell`
    observe   the same episodes, observed by the same learner in memory
    fsync     the floor: as many bytes as the journal stores for the episode, appended to a file and synced

Constraints are drawn anew for every episode, or are constant and then stored once; losses change seldom. The three
take turns, episode by episode and in all six orders, so that other processes, and the cost of reading new data first,
affect all of them alike. Wall-clock time includes waiting for the disk; processor time is the cost of a tell beside the
sync. Only the latter is stable between runs, since a busy disk answers when it can.
With --soak N, plays N episodes of a small problem instead, and prints memory and journal size on the way.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Generator
from functools import partial
from itertools import permutations
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import tightrope as tr
from benchmarks.measure import machine, resident_bytes
from tightrope.checks.worlds import ordinary_world
from tightrope.core import sample_path
from tightrope.learners.base import Episode, LearnerBase
from tightrope.model import Policy
from tightrope.problems.base import Problem

#: Warm-up episodes, which are not counted: code is loaded, and the log of the journal grows to its length.
WARM = 1000

#: The orders of tell, observe and fsync.
ORDERS = list(permutations(range(3)))


def episodes_of(problem: Problem, seed: int, anew: bool = False) -> Generator[dict[str, Any] | None, Policy, None]:
    """Receive policies by `send`, and yield what happened; with `anew`, constraints are drawn for each episode."""
    rng, space = np.random.default_rng(seed), problem.mdp.space
    adversary, L, t = problem.losses.begin(rng), space.n_layers, 0
    told: dict[str, Any] | None = None
    while True:
        policy = yield told
        t += 1
        uniforms = rng.random(2 * L)
        states, actions, _ = sample_path(space.native, policy.probabilities, problem.mdp.transitions, uniforms)
        told = {
            "states": states,
            "actions": actions,
            "loss": adversary.loss(t),
            "constraints": problem.constraints.sample(rng) if anew else problem.constraints.mean,
        }
        adversary.watch(policy)


def compare(name: str, learner: str, episodes: int, folder: Path, anew: bool = False) -> dict[str, np.ndarray]:
    """Return the seconds of every tell, observe and fsync, (2, episodes): wall clock, then processor."""
    problem = tr.make(name)
    plain: LearnerBase = tr.make_learner(learner, problem, episodes=WARM + episodes)
    play, times = episodes_of(problem, 0, anew), np.empty((3, 2, WARM + episodes))
    next(play)
    floor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT, 0o600)
    with tr.DurableLearner(
        folder / "it", tr.make_learner(learner, problem, episodes=WARM + episodes), problem=problem
    ) as it:
        for t in range(WARM + episodes):
            episode = it.ask()
            told = play.send(episode.policy)
            assert told is not None
            row = bytes(
                told["actions"].nbytes + (told["constraints"].nbytes if anew else 0)
            )  # the path, and arrays that are new
            turns: list[Callable[[], object]] = [
                partial(it.tell, episode.id, **told),
                partial(plain.observe, Episode(**told)),
                partial(append, floor, row),
            ]
            for which in ORDERS[t % len(ORDERS)]:
                begin = perf_counter(), process_time()
                turns[which]()
                times[which, :, t] = perf_counter() - begin[0], process_time() - begin[1]
    os.close(floor)
    return dict(zip(("tell", "observe", "fsync"), times[:, :, WARM:], strict=True))


def append(file: int, data: bytes) -> None:
    """Append bytes to a file and sync it, as a log written by hand would do."""
    os.write(file, data)
    os.fsync(file)


def show(name: str, learner: str, times: dict[str, np.ndarray]) -> None:
    """Print medians and means, and the ratio that was promised."""
    of = (("median", np.median, 0), ("mean", np.mean, 0), ("mean of the processor", np.mean, 1))
    for word, middle, clock in of:
        tell, observe, fsync = (float(middle(times[what][clock])) for what in ("tell", "observe", "fsync"))
        ratio = (tell - fsync) / observe
        print(
            f"{name}, {learner}, {word}: tell {tell * 1e3:.2f} ms, observe {observe * 1e3:.2f} ms, fsync "
            f"{fsync * 1e3:.2f} ms; tell = fsync + {ratio:.2f} observe"
        )


def soak(episodes: int, folder: Path) -> None:
    """Play that many episodes of a small problem; print memory and journal size at every tenth of them."""
    at = ordinary_world()
    learner = tr.make_learner("ucpd-practical", at)
    path, began = folder / "it", perf_counter()
    with tr.DurableLearner(path, learner, snapshot_every=5000, remember=10_000) as it:
        for t in range(1, episodes + 1):
            episode = it.ask()
            play = at.play(episode.policy, "full", t, np.random.default_rng([9, t]))
            it.tell(episode.id, play.states, play.actions, play.loss, play.constraints)
            if t % max(1, episodes // 10) == 0:
                size = sum(file.stat().st_size for file in path.iterdir())
                print(
                    f"{t} episodes: {resident_bytes() / 1e6:.0f} MB of memory, {size / 1e6:.1f} MB on disk, "
                    f"{perf_counter() - began:.0f} s",
                    flush=True,
                )


def main() -> None:
    """Parse the command line, and run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="edge-cloud", help="the problem (default edge-cloud)")
    parser.add_argument("--episodes", type=int, default=1000, help="number of episodes of each learner (default 1000)")
    parser.add_argument(
        "--folder", type=Path, help="a folder on the disk to measure (default: that of temporary files)"
    )
    parser.add_argument("--soak", type=int, metavar="N", help="play N episodes of a small problem instead")
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.soak:
            soak(given.soak, Path(folder))
            return
        for anew in (True, False):
            print(f"constraints {'drawn anew' if anew else 'the same in every episode'}")
            for learner in ("ucpd-practical", "ucpd"):
                with tempfile.TemporaryDirectory(dir=folder) as where:
                    times = compare(given.problem, learner, given.episodes, Path(where), anew)
                    show(given.problem, learner, times)


if __name__ == "__main__":
    main()
