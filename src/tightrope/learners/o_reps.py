"""O-REPS: online relative entropy policy search, with the model known (Zimin & Neu 2013).

In every episode t:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. q_{t+1} = argmin over the occupancy measures q of the model of η <f^t, q> + D(q, q_t).

The publication measures D over pairs. Measures of one model, q(s,a) P(s'|s,a), have the same D over tuples, so this is
UC-O-REPS with a point for a confidence set, and another q_1.

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only).
"""

from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceRule, KnownModel
from tightrope.learners.base import Constants
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.shared.mirror import FLOOR, MirrorLearner
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray


class OREPS(MirrorLearner):
    """Online relative entropy policy search: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default sqrt(log(|S||A|/L) / T), which gives the published regret 2L sqrt(T log(|S||A|/L)).
    """

    name = "o-reps"
    reference = (
        "Zimin, Neu: Online learning in episodic Markovian decision processes by relative entropy policy search "
        "(NIPS 2013)"
    )
    constants: ClassVar[Constants] = "published"
    needs = ("model",)

    model: LayeredMDP
    ties: None = field(init=False, default=None)
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.default_to(learning_rate=self._published_rate())
        largest_entropy = np.maximum(self.model.transitions, FLOOR)
        self.theta = self._step(largest_entropy, np.zeros(self.space.n_tuples), self.confidence_set)
        self.policy = self._policy_of(self.theta)

    def _published_rate(self) -> float:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        return float(np.sqrt(log(S * A / L) / T))

    def _make_rule(self) -> ConfidenceRule:
        return KnownModel(transitions=self.model.transitions)

    def observe(self, episode: Any) -> None:
        """Line 2."""
        path, f = self._seen(episode)
        self._learn(**self._move(path, self._reference(), self.learning_rate * f))

    def _seen(self, episode: Any) -> tuple[NDArray[np.int64], FloatArray]:
        """The path, and the loss of every tuple."""
        path, f, _ = self._read(episode)
        return path, f

    @property
    def epoch(self) -> int:
        """1: a set that is known never changes."""
        return 1
