"""The regret that a log saves: `python -m benchmarks.logged` (a minute) writes the table of docs/how-to/logs.md.

The log has 400 episodes of the uniform policy. `ucpd-practical` plays 300 episodes, with and without it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import tightrope as tr
from benchmarks import page
from tightrope import core
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem, write_example
from tightrope.space import LayeredSpace

LOGGED, PLAYED, SEEDS = 400, 300, 6
NAMES = ("inventory", "media-streaming", "edge-cloud", "river-swim")


@dataclass(frozen=True)
class Recorded:
    """Episodes that were played; a learner reads their paths."""

    played: Sequence[NDArray[np.int64]]

    def paths(self, space: LayeredSpace) -> Sequence[NDArray[np.int64]]:
        return self.played


def recorded(problem: Problem, episodes: int, seed: int) -> Recorded:
    """Play episodes of the uniform policy."""
    space, rng = problem.space, np.random.default_rng(seed)
    uniform = tr.Policy.uniform(space).probabilities
    uniforms = rng.random((episodes, 2 * space.n_layers))
    played = [core.sample_path(space.native, uniform, problem.mdp.transitions, one) for one in uniforms]
    return Recorded([steps for _, _, steps in played])


def regret(problem: Problem, logged: int, seed: int, played: int = PLAYED) -> float:
    """Return the regret of `ucpd-practical` after a log of so many episodes."""
    learner = tr.UCPDPractical(problem.space, problem.budgets, ties=problem.ties)
    if logged:
        learner.learn_from(recorded(problem, logged, 1000 + seed))
    history = tr.run(problem, learner, episodes=played, seed=seed, regret="last")
    return float(history["regret"][-1])


def problems() -> Iterator[tuple[str, Problem]]:
    for name in NAMES:
        yield name, tr.make(name)
    with TemporaryDirectory() as place:
        folder = Path(place, "machine")
        write_example(folder)
        yield "the machine of `tightrope new`", load_problem(folder)


def rows() -> Iterator[tuple[str, ...]]:
    for name, problem in problems():
        means = [np.mean([regret(problem, logged, seed) for seed in range(SEEDS)]) for logged in (0, LOGGED)]
        row = (name, *(f"{mean:.0f}" for mean in means))
        print(*row, flush=True)
        yield row


def main() -> None:
    text = page.table(("problem", "without the log", "with the log"), rows())
    page.write("logged", text, page.DOCS / "how-to" / "logs.md")


if __name__ == "__main__":
    main()
