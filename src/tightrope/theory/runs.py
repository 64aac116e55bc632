"""Runs for the theorem: the losses of a run averaged over windows of √T episodes, and the terms of the bounds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.arguments import having
from tightrope.lab.account import norm
from tightrope.lab.history import History
from tightrope.lab.run import Run, run
from tightrope.learners.base import Learner
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.problems.losses import Adversary, Losses
from tightrope.problems.losses.oblivious import Blind
from tightrope.space import FloatArray
from tightrope.streams import streams


@dataclass(frozen=True, eq=False)
class Windows:
    """The losses of a run, averaged over windows; equal windows are kept once."""

    length: int  # τ
    count: int
    losses: tuple[FloatArray, ...]  # (n_tuples,) each: f^(t,τ), t = 1, τ + 1, …
    average: FloatArray  # (n_tuples,) of all T episodes
    largest: float  # max |f^t|,
    worst: int  # and in which episode
    learner: str  # the learner of the run; empty where losses do not depend on it


class Recorded:
    """Losses that record their values; `play` is the recording of the last run."""

    def __init__(self, losses: Losses, length: int) -> None:
        self.losses, self.length, self.name = losses, length, losses.name

    def begin(self, rng: np.random.Generator) -> "Recording":
        self.play = Recording(self.losses.begin(rng), self.length)
        return self.play


class Recording:
    """The recording of one run."""

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
    """Return the losses of a run with this seed; if they depend on the policies, those of `learner`."""
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
    """Return whether losses may depend on the policies played: all except those of `Blind` adversaries."""
    return not isinstance(problem.losses.begin(np.random.default_rng(0)), Blind)


class MeasuredRun(Run):
    """A run of a learner with a measure θ^t whose history also has, up to every record,

    model_error      Σ ‖θ^τ − θ̄^τ‖₁: between the chosen measure and the true measure of its policy
    movement         Σ ‖θ^{τ+1} − θ^τ‖₁
    multiplier_peak  max ‖Q(τ)‖₂, including that of the next episode
    """

    COLUMNS = ("model_error", "movement", "multiplier_peak")

    def __init__(self, problem: Problem, learner: str | Learner = "ucpd", **how: Any) -> None:
        super().__init__(problem, learner, **how)
        having(self.learner, "learner", "theta")
        self._terms = np.zeros(len(self.COLUMNS))
        self._measured = np.full((len(self.records), len(self.COLUMNS)), np.nan)

    def step(self) -> None:
        learner: Any = self.learner
        theta, policy = learner.theta, learner.policy
        super().step()
        self._terms[0] += np.abs(theta - self.problem.mdp.occupancy(policy)).sum()
        self._terms[1] += np.abs(learner.theta - theta).sum()
        self._terms[2] = max(self._terms[2], norm(learner.multipliers))
        row = self._rows(self.episode) - 1
        if self.records[row] == self.episode:
            self._measured[row] = self._terms

    @property
    def history(self) -> History:
        recorded = super().history
        measured = self._measured[: len(recorded["episode"])].T.copy()
        return History(dict(recorded) | dict(zip(self.COLUMNS, measured, strict=True)), recorded.settings)

    def state(self) -> dict[str, Any]:
        return super().state() | {"terms": self._terms, "measured": self._measured}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._terms, self._measured = state["terms"], state["measured"]


def measure(problem: Problem, learner: str | Learner = "ucpd", **how: Any) -> History:
    """`tightrope.run` with the terms of the bounds in its history (`MeasuredRun`); same options, same run."""
    return MeasuredRun(problem, learner, **how).play()
