"""Subproblems from real runs: consecutive episodes of a run of UCPD, recorded so that they can be solved again.

`early`: the first episodes, in which every pair is free. `late`: after many visits, with balls that bind. A small model
is played until then; a large one is given counts, drawn from the true model, that bring every radius down to `RADIUS`.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

import tightrope as tr
from tightrope.confidence import ConfidenceSet, Counts, L1Ball
from tightrope.learners.parts import Warmed
from tightrope.problems.base import Problem
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, IntArray, LayeredSpace

EPISODES = 20_000  # T
LATE = 15_000  # the first late episode of a model that is small enough to be played until then
SETTLE = 50  # episodes that a model with given counts plays before it is recorded
MOST_NUMBERS = 30_000_000  # the most numbers in a recording
RADIUS = 0.3


class Subproblem(NamedTuple):
    """The subproblem of one episode."""

    reference: FloatArray
    cost: FloatArray
    confidence: ConfidenceSet


@dataclass
class Recording:
    """Consecutive subproblems, and the warm start of the first of them."""

    space: LayeredSpace
    start: dict[str, FloatArray] = field(default_factory=dict)
    episodes: list[Subproblem] = field(default_factory=list)
    binding: float = 0.0  #: share of the pairs whose ball binds, at the last answer

    def projector(self) -> Projector:
        """Return a projector with that warm start."""
        projector = Projector(self.space)
        projector.restore(self.start)
        projector.prepare(self.episodes[0].confidence)
        return projector


class RecordingProjector(Projector):
    """A projector that records the subproblems it solves, from solve number `first` on."""

    def __init__(self, space: LayeredSpace, first: int, count: int) -> None:
        super().__init__(space)
        self.recording = Recording(space)
        self._first, self._count, self._solved = first, count, 0

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        if self._solved == self._first:
            self.recording.start = {name: array.copy() for name, array in self.state().items()}
        super().solve(reference, cost, confidence, theta)
        if self._first <= self._solved < self._first + self._count:
            self.recording.episodes.append(Subproblem(reference.copy(), cost.copy(), confidence))
            self.recording.binding = share_binding(self.space, theta, confidence)
        self._solved += 1


class RecordedUCPD(tr.UCPD):
    """UCPD whose subproblems are recorded; with `model`, it has visited every pair often before it starts."""

    def record(self, first: int, count: int, model: tr.LayeredMDP | None = None) -> RecordingProjector:
        """Start recording at the next solve."""
        if model is not None:
            let_visit(self, model)
        projector = RecordingProjector(self.space, first, count)
        self._mirror_step.solver = Warmed(projector)
        return projector


def let_visit(learner: tr.UCPD, model: tr.LayeredMDP) -> None:
    """Give a learner enough visits to bring every radius down to RADIUS."""
    counts = Counts(learner.space)
    counts.N[:], counts.M[:] = counted(learner, model.transitions)
    learner.state = replace(learner.state, counts=counts)


def counted(learner: tr.UCPD, transitions: FloatArray) -> tuple[IntArray, IntArray]:
    """Return visits of pairs and tuples, drawn from the model, that give a radius of about RADIUS."""
    space = learner.space
    once = np.ones(space.n_pairs, dtype=np.int64)
    ball = learner.rule(space, once, np.zeros(space.n_tuples, dtype=np.int64))
    assert isinstance(ball, L1Ball)
    visits = space.expand_to_tuples((ball.radius / RADIUS) ** 2)  # a radius falls with the square root of the visits
    M = np.random.default_rng(7).poisson(visits * transitions)
    return np.add.reduceat(M, space.csr.pair_ptr[:-1]), M


def share_binding(space: LayeredSpace, theta: FloatArray, confidence: ConfidenceSet) -> float:
    """Return the share of the pairs whose conditional lies on the surface of its ball."""
    if not isinstance(confidence, L1Ball):
        return np.nan
    p = theta / space.expand_to_tuples(np.maximum(space.sum_over_successors(theta), 1e-300))
    distance = space.sum_over_successors(np.abs(p - confidence.center))
    return float(np.mean((confidence.radius < 2) & (distance >= confidence.radius * (1 - 1e-9))))


def record(problem: Problem, phase: str, *, run_there: bool, count: int = 100) -> Recording:
    """Record consecutive subproblems of a run of UCPD, `early` or `late`; fewer of a large model."""
    space = problem.space
    count = int(np.clip(MOST_NUMBERS // (2 * space.n_tuples), 4, count))
    settle = int(np.clip(MOST_NUMBERS // (2 * space.n_tuples), 8, SETTLE))
    first = LATE if phase == "late" and run_there else settle if phase == "late" else 2
    learner = RecordedUCPD(space, problem.budgets, episodes=EPISODES)
    projector = learner.record(first, count, problem.mdp if phase == "late" and not run_there else None)
    tr.run(problem, learner, episodes=first + count, regret="never", records=1)
    return projector.recording
