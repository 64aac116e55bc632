"""python -m tests.fingerprints: are results the same bits as those that `fingerprints.json` was made of?

    python -m tests.fingerprints            compares, names what differs, and exits with 1 if anything does
    python -m tests.fingerprints --write    renews fingerprints.json; say in CHANGELOG.md that results changed, and why
    python -m tests.fingerprints --json     prints all fingerprints

A fingerprint is the SHA-256 of the bits of one computation: what a learner does in a short run, or a solve. The tests
compute them for every instruction set and number of threads, and with other versions of what numpy, BLAS and libm
choose by the CPU (`test_fingerprints.py`).

Inputs are whole numbers, quotients of them and uniform draws, which are the same bits everywhere. Learners are told
safe policies and slacks that are made up here, since those of a problem come from a general LP solver.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import tightrope as tr
from tests.conftest import FloatArray
from tests.recording import Recorder
from tests.releases.write import OPTIONS
from tightrope.learners import LEARNERS
from tightrope.learners.needs import NEEDS
from tightrope.learners.registry import learner_for
from tightrope.problems.constraints import make_constraints
from tightrope.problems.losses import make_losses

FILE = Path(__file__).with_suffix(".json")

#: Episodes of a run.
EPISODES = 40


def fingerprints() -> dict[str, str]:
    """All of them by name, computed in this process."""
    return {name: digest(compute()) for name, compute in computations().items()}


def computations() -> dict[str, Callable[[], Iterable[ArrayLike]]]:
    """What has a fingerprint, by name: functions that return arrays."""
    found: dict[str, Callable[[], Iterable[ArrayLike]]] = {}
    for problem in PROBLEMS:
        for learner in LEARNERS:
            found[f"{learner} on {problem}"] = partial(play, learner, problem)
    for shape in SHAPES:
        for kind in SETS:
            found[f"project on {kind}, {shape}"] = partial(solve, shape, kind)
    for kind in SETS:
        found[f"project on {kind} with inequalities"] = partial(solve_with_inequalities, kind)
    return found


def digest(arrays: Iterable[ArrayLike]) -> str:
    """The SHA-256 of their shapes and of their entries as little-endian numbers of 8 bytes."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(repr(array.shape).encode())
        found.update(array.astype("<f8" if array.dtype.kind == "f" else "<i8").tobytes())
    return found.hexdigest()


def quotients(rng: np.random.Generator, space: tr.LayeredSpace) -> FloatArray:
    """(n_tuples,) a distribution over the successors of each pair, of whole numbers by their sum; some are 0."""
    pair = space.pair_of_tuple
    counts = rng.integers(0, 9, space.n_tuples) + np.diff(pair, prepend=-1)  # at least 1 for the first of each pair
    shares: FloatArray = counts / np.bincount(pair, counts)[pair]
    return shares


def dense_problem() -> tr.Problem:
    """Dense, three budgets, losses that drift: large enough that libraries sum in vectors."""
    rng = np.random.default_rng(1)
    space = tr.LayeredSpace.dense([1, 10, 11, 1], 4)
    mdp = tr.LayeredMDP(space, quotients(rng, space))
    return tr.Problem(
        name="dense",
        mdp=mdp,
        losses=make_losses({"name": "drifting", "period": 14}, 2 * rng.random((5, space.n_tuples)) - 1, mdp),
        constraints=make_constraints("scaled", 0.25 * rng.random((3, space.n_tuples)), mdp),
        budgets=np.array([0.359375, 0.375, 0.390625]),
        constraint_names=("first", "second", "third"),
    )


def tied_problem() -> tr.Problem:
    """Sparse, with ties and pairs that have one successor; losses that answer to what is played."""
    losses = {"name": "chaser", "memory": 8}
    return tr.make("river-swim", n_places=6, n_steps=12, budget=6.5, losses=losses, noise="scaled")


PROBLEMS: dict[str, Callable[[], tr.Problem]] = {"dense": dense_problem, "ties": tied_problem}


def play(name: str, on: str) -> Iterator[ArrayLike]:
    """A short run: policy, multipliers and actions of every episode, the last policy, and the history."""
    problem = PROBLEMS[on]()
    uniform = tr.Policy.uniform(problem.space)
    made_up = {
        "safe_policy": uniform,
        "safe_usage": 0.75 * problem.budgets,
        "slack": 0.125,
        "hindsight_policy": uniform,
    }

    def tell(need: str) -> Any:
        return made_up[need] if need in made_up else NEEDS[need].answer(problem, EPISODES, 0)

    options = OPTIONS.get(name, {})
    learner = learner_for(name, problem.space, problem.budgets, problem.ties, tell, EPISODES, options)
    recorder = Recorder(learner)
    run = tr.Run(problem, recorder, episodes=EPISODES, records=EPISODES, spacing="linear", regret="never")
    while not run.done:
        yield learner.policy.probabilities
        yield learner.multipliers
        run.step()
        yield recorder.episodes.pop().actions
    yield learner.policy.probabilities
    yield from run.history.values()


def sparse_space(sizes: list[int], n_actions: int, width: int) -> tr.LayeredSpace:
    """Every pair leads to up to `width` states of the next layer."""
    tuples, start = [], 0
    for size, n_next in pairwise(sizes):
        for i in range(size):
            for a in range(n_actions):
                to = sorted({(5 * i + width * a + k) % n_next for k in range(width)})
                tuples += [(start + i, a, start + size + j) for j in to]
        start += size
    return tr.LayeredSpace.from_tuples(sizes, n_actions, tuples)


#: Spaces to solve on. The last two have 20,400 and 121,200 tuples: what is large is solved by several threads.
SHAPES: dict[str, Callable[[], tr.LayeredSpace]] = {
    "dense": lambda: tr.LayeredSpace.dense([1, 6, 5, 7, 1], 3),
    "sparse": lambda: sparse_space([1, 9, 11, 8, 12, 1], 4, 5),
    "long": lambda: sparse_space([1, *[3] * 40, 1], 2, 2),
    "large": lambda: tr.LayeredSpace.dense([1, 50, 50, 50, 1], 4),
    "largest": lambda: tr.LayeredSpace.dense([1, 100, 100, 100, 1], 6),
}


def l1_ball(rng: np.random.Generator, space: tr.LayeredSpace) -> tr.L1Ball:
    radius = np.where(rng.random(space.n_pairs) < 0.1, np.inf, 0.75 * rng.random(space.n_pairs))
    return tr.L1Ball(quotients(rng, space), radius)


def box(rng: np.random.Generator, space: tr.LayeredSpace) -> tr.Box:
    center, radius = quotients(rng, space), 0.25 * rng.random(space.n_tuples)
    return tr.Box(np.maximum(0.0, center - radius), np.minimum(1.0, center + radius))


def box_in_a_ball(rng: np.random.Generator, space: tr.LayeredSpace) -> tr.Box:
    center, radius = quotients(rng, space), 0.25 * rng.random(space.n_tuples)
    ball = tr.L1Ball(center, 0.5 * rng.random(space.n_pairs))
    return tr.Box(np.maximum(0.0, center - radius), np.minimum(1.0, center + radius), ball)


def kl_ball(rng: np.random.Generator, space: tr.LayeredSpace) -> tr.KLBall:
    radius = np.where(rng.random(space.n_pairs) < 0.1, np.inf, 0.25 * rng.random(space.n_pairs))
    return tr.KLBall(quotients(rng, space), radius)


SETS: dict[str, Callable[[np.random.Generator, tr.LayeredSpace], Any]] = {
    "L1 balls": l1_ball,
    "boxes": box,
    "boxes in balls": box_in_a_ball,
    "KL balls": kl_ball,
}


def solve(shape: str, kind: str) -> Iterator[ArrayLike]:
    """Yield the arrays of one solve of the subproblem."""
    rng, space = np.random.default_rng(2), SHAPES[shape]()
    reference, cost = 0.0625 + rng.random(space.n_tuples), 2 * rng.random(space.n_tuples) - 1
    found = tr.project(space, reference, cost, SETS[kind](rng, space))
    yield found.theta
    yield found.iterations


def solve_with_inequalities(kind: str) -> Iterator[ArrayLike]:
    """One projection with three inequalities: one that binds, one that does not, one that is twice the first."""
    rng, space = np.random.default_rng(3), SHAPES["sparse"]()
    reference, cost = 0.0625 + rng.random(space.n_tuples), 2 * rng.random(space.n_tuples) - 1
    A, L = rng.random((2, space.n_tuples)), space.n_layers
    rows = (np.stack([A[0], A[1], 2 * A[0]]), np.array([0.4375 * L, 0.875 * L, 0.875 * L]))
    found = tr.project(space, reference, cost, SETS[kind](rng, space), inequalities=rows)
    yield found.theta
    yield found.multipliers


def stored() -> dict[str, str]:
    """Those of fingerprints.json."""
    found: dict[str, str] = json.loads(FILE.read_text("utf-8"))
    return found


def differing(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The names under which they are not the same, or only one of them has something."""
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


def main() -> None:
    """Compare, write or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="renew fingerprints.json")
    how.add_argument("--json", action="store_true", help="print all fingerprints")
    chosen = parser.parse_args()
    found = fingerprints()
    text = json.dumps(found, indent=1) + "\n"
    if chosen.write:
        FILE.write_text(text, "utf-8")
    elif chosen.json:
        sys.stdout.write(text)
    elif names := differing(found, stored()):
        sys.exit("\n".join(["these differ from fingerprints.json:", *names]))


if __name__ == "__main__":
    main()
