"""The losses of a play, averaged over windows of √T episodes: f^(t,τ) of the paper, τ = √T."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.lab.run import run
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.problems.losses import Adversary, Losses
from tightrope.problems.losses.oblivious import Blind
from tightrope.space import FloatArray
from tightrope.streams import streams


@dataclass(frozen=True, eq=False)
class Windows:
    """What a play charges: one window after another, those that are alike once."""

    length: int  # τ
    count: int
    losses: tuple[FloatArray, ...]  # (n_tuples,) each: f^(t,τ), t = 1, τ + 1, …
    average: FloatArray  # (n_tuples,) of all T episodes
    largest: float  # max |f^t|,
    worst: int  # and in which episode
    learner: str  # who played; empty where losses do not depend on it


class Recorded:
    """Losses as they are, written down as they are charged; the last play counts."""

    def __init__(self, losses: Losses, length: int) -> None:
        self.losses, self.length, self.name = losses, length, losses.name

    def begin(self, rng: np.random.Generator) -> "Recording":
        self.play = Recording(self.losses.begin(rng), self.length)
        return self.play


class Recording:
    """One play of them."""

    def __init__(self, adversary: Adversary, length: int) -> None:
        self.adversary, self.length = adversary, length
        self.seen: dict[bytes, FloatArray] = {}
        self.count = 0
        self.total = self.in_window = np.zeros(())
        self.largest, self.worst = 0.0, 0

    def loss(self, episode: int) -> FloatArray:
        f = self.adversary.loss(episode)
        self.total, self.in_window = self.total + f, self.in_window + f
        largest = float(np.abs(f).max())
        if largest > self.largest:
            self.largest, self.worst = largest, episode
        if episode % self.length == 0:
            average = self.in_window / self.length
            self.seen.setdefault(average.tobytes(), average)
            self.count, self.in_window = self.count + 1, np.zeros(())
        return f

    def watch(self, policy: Policy) -> None:
        self.adversary.watch(policy)


def windows(
    problem: Problem, *, episodes: int, seed: int, learner: str, progress: Callable[[int], None] | None = None
) -> Windows:
    """What a run with that seed is charged; where losses answer to what is played, `learner` plays it."""
    recorded = Recorded(problem.losses, math.isqrt(episodes))
    if answering(problem):
        watched = replace(problem, losses=recorded)
        run(watched, learner, episodes=episodes, seed=seed, records=1, regret="never", progress=progress)
    else:
        learner, play = "", recorded.begin(streams(seed).adversary)
        for t in range(1, episodes + 1):
            play.loss(t)
    play = recorded.play
    return Windows(
        length=play.length,
        count=play.count,
        losses=tuple(play.seen.values()),
        average=play.total / episodes,
        largest=play.largest,
        worst=play.worst,
        learner=learner,
    )


def answering(problem: Problem) -> bool:
    """Whether losses may depend on what was played: so they do unless they say that they look away."""
    return not isinstance(problem.losses.begin(np.random.default_rng(0)), Blind)
