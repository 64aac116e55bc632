"""Runs for the theorem: the losses of a run averaged over windows of √T episodes, and the terms of the bounds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, cast

import numpy as np

from tightrope.arguments import file_path, having, instance, whole
from tightrope.lab.history import History
from tightrope.lab.metrics import norm
from tightrope.lab.run import Run, run
from tightrope.learners import LearnerBase, load
from tightrope.learners.base import Learner
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.problems.losses import Adversary, Losses
from tightrope.problems.losses.oblivious import Blind
from tightrope.space import FloatArray
from tightrope.storage import checkpoints
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


class MeasuredRun:
    """A run of a learner with a measure θ^t whose history also has, up to every record,

    model_error      Σ ‖θ^τ − θ̄^τ‖₁: between the chosen measure and the true measure of its policy
    movement         Σ ‖θ^{τ+1} − θ^τ‖₁
    multiplier_peak  max ‖Q(τ)‖₂, including that of the next episode

    `run` is the run itself; the arguments are those of `tightrope.Run`.
    """

    COLUMNS = ("model_error", "movement", "multiplier_peak")

    def __init__(self, problem: Problem, learner: str | Learner = "ucpd", **how: Any) -> None:
        self.run = Run(problem, learner, **how)
        having(self.run.learner, "learner", "theta")
        self._terms = np.zeros(len(self.COLUMNS))
        self._measured = np.full((len(self.run.records), len(self.COLUMNS)), np.nan)

    @property
    def done(self) -> bool:
        """Whether all episodes were played."""
        return self.run.done

    def step(self) -> None:
        """Play one episode, and record it if its turn has come."""
        run, learner = self.run, cast("Any", self.run.learner)
        theta, policy = learner.theta, learner.policy
        run.step()
        self._terms[0] += np.abs(theta - run.problem.mdp.occupancy(policy)).sum()
        self._terms[1] += np.abs(learner.theta - theta).sum()
        self._terms[2] = max(self._terms[2], norm(learner.multipliers))
        if run.episode in run.records:
            self._measured[run.records.index(run.episode)] = self._terms

    def play(self, until: int | None = None) -> History:
        """Play to episode `until` or the end; return the history so far."""
        run = self.run
        last = run.episodes if until is None else whole(until, "until", run.episode, run.episodes)
        while run.episode < last:
            self.step()
        return self.history

    @property
    def history(self) -> History:
        """The history of the records so far."""
        recorded = self.run.history
        measured = self._measured[: len(recorded["episode"])].T.copy()
        return History(dict(recorded) | dict(zip(self.COLUMNS, measured, strict=True)), recorded.settings)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to one file."""
        learner = instance(self.run.learner, "learner", LearnerBase)  # type: ignore[type-abstract]
        checkpoints.save(learner, file_path(path, "path"), beside=self)

    @classmethod
    def load(cls, path: str | PathLike[str], problem: Problem, *classes: type, **how: Any) -> "MeasuredRun":
        """Read the run that was saved at `path`; the arguments are those of `tightrope.Run.load`."""
        loaded = cls(problem, load(path, *classes), **how)
        checkpoints.restore(file_path(path, "path"), loaded)
        return loaded

    def state(self) -> dict[str, Any]:
        """All that is needed to continue, except for the learner."""
        return self.run.state() | {"terms": self._terms, "measured": self._measured}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the `state` of a run that was made the same way and has the same learner."""
        self.run.restore(state)
        self._terms, self._measured = state["terms"], state["measured"]


def measure(problem: Problem, learner: str | Learner = "ucpd", **how: Any) -> History:
    """`tightrope.run` with the terms of the bounds in its history (`MeasuredRun`); same options, same run."""
    return MeasuredRun(problem, learner, **how).play()
