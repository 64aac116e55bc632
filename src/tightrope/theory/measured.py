"""What the terms of the bounds came to in a run: more columns of its history."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.arguments import having
from tightrope.lab.account import norm
from tightrope.lab.history import History
from tightrope.lab.run import Run
from tightrope.learners.base import Learner
from tightrope.problems.base import Problem


class MeasuredRun(Run):
    """A run of a learner with a measure θ^t whose history also has, up to every record,

    model_error      Σ ‖θ^τ − θ̄^τ‖₁: between the measure chosen and the one that its policy truly has
    movement         Σ ‖θ^{τ+1} − θ^τ‖₁
    multiplier_peak  max ‖Q(τ)‖₂, that of the episode to come included
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
