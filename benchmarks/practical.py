"""python -m benchmarks.practical: an episode of ucpd-practical beside one of ucpd, and KL balls beside L1 balls.

Two learners play the same problem in turns, a block of episodes each, in one process; an episode includes the
simulator. Then the subproblems of the last episodes of ucpd-practical-0.2 are solved again, each warm from the one
before: with its KL balls, and with the L1 balls around them, of the same counts. Times are of the processor; sums of
twenty blocks, and medians over solves.
"""

import argparse
from typing import NamedTuple

import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.measure import clock, duration
from tightrope.confidence import ConfidenceSet
from tightrope.confidence.rules import KLRadius, KLRadiusL1
from tightrope.lab.metrics import Account
from tightrope.learners.base import Episode
from tightrope.learners.parts import Warmed
from tightrope.learners.ucpd_practical_0_2 import UCPDPractical02
from tightrope.problems.base import Problem
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace
from tightrope.streams import streams

BLOCKS, REPLAYS = 20, 5


def problems() -> dict[str, Problem]:
    """Return two problems of the suite, and dense layers."""
    dense = tr.make("random", layer_sizes=[1, *[10] * 9, 1], n_actions=4)
    return {"media-streaming": tr.make("media-streaming"), "edge-cloud": tr.make("edge-cloud"), "10 x 4 over 10": dense}


class Solve(NamedTuple):
    """The arguments of one projection."""

    reference: FloatArray
    cost: FloatArray


class Recording(Projector):
    """A projector that keeps the arguments of its last solves."""

    def __init__(self, like: Projector) -> None:
        super().__init__(like.space, like.tolerance)
        self.asked: list[Solve] = []

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        self.asked = [*self.asked[-39:], Solve(reference, cost)]
        super().solve(reference, cost, confidence, theta)


class Player:
    """One learner, played a block of episodes at a time."""

    def __init__(self, problem: Problem, name: str, episodes: int) -> None:
        self.problem = problem
        learner = tr.make_learner(name, problem, episodes=episodes, seed=0)
        self.learner = learner
        self.environment, self.draws, for_adversary, _ = streams(0)
        self.adversary, self.account, self.played = problem.losses.begin(for_adversary), Account(problem), 0
        self.spent = 0.0

    def play(self, episodes: int) -> None:
        begin, space = clock(), self.problem.space
        for _ in range(episodes):
            self.played += 1
            f, g = self.adversary.loss(self.played), self.problem.constraints.sample(self.draws)
            policy = self.learner.policy
            states, actions, _ = self.account.play(policy, f, g, self.environment.random(2 * space.n_layers))
            self.learner.observe(Episode(states, actions, f, g))
            self.adversary.watch(policy)
        self.spent += clock() - begin


def per_solve(space: LayeredSpace, tolerance: float, confidence: ConfidenceSet, asked: list[Solve]) -> float:
    """Return the median seconds of a solve, each the shortest of some replays."""
    theta, best = np.empty(space.n_tuples), np.full(len(asked), np.inf)
    for _ in range(REPLAYS):
        projector = Projector(space, tolerance)
        for i, question in enumerate(asked):
            begin = clock()
            projector.solve(question.reference, question.cost, confidence, theta)
            best[i] = min(best[i], clock() - begin)
    return float(np.median(best[2:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help="write into docs/explanation/benchmarks.md")
    given = parser.parse_args()
    lines = []
    for words, problem in problems().items():
        published, practical = (Player(problem, name, given.episodes) for name in ("ucpd", "ucpd-practical"))
        before = Player(problem, "ucpd-practical-0.2", given.episodes)  # its subproblems have no inequalities
        for player in (published, practical, before):  # warm up
            Player(problem, player.learner.name, given.episodes).play(30)
        assert isinstance(before.learner, UCPDPractical02) and isinstance(before.learner.rule, KLRadius)
        step = before.learner._price_step.mirror_step
        recording = Recording(step.solver._solver)
        step.solver = Warmed(recording)
        for _ in range(BLOCKS):
            for player in (published, practical, before):
                player.play(given.episodes // BLOCKS)
        laws, n_laws = before.learner.state.counts.laws, before.learner.rule.laws
        kl, l1 = (
            per_solve(
                problem.space, recording.tolerance, rule(level=0.01, laws=n_laws)(problem.space, *laws), recording.asked
            )
            for rule in (KLRadius, KLRadiusL1)
        )
        episode = [player.spent / player.played for player in (published, practical)]
        cells = (
            *map(duration, episode),
            f"{episode[1] / episode[0]:.2f}",
            duration(l1),
            duration(kl),
            f"{kl / l1:.2f}",
        )
        lines.append((words, f"{problem.space.n_tuples:,}", *cells))
        print(" | ".join(lines[-1]), flush=True)
    titles = ("", "tuples", "ucpd", "ucpd-practical", "ratio", "L1 balls", "KL balls", "ratio")
    if given.write:
        about = f"The first {given.episodes:,} episodes, per episode; then a solve at the end, on the same counts."
        page.write("practical", f"{about}\n\n{page.table(titles, lines)}")


if __name__ == "__main__":
    main()
