"""O-REPS: online relative entropy policy search, with the model known (Zimin & Neu 2013).

In every episode t:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. q_{t+1} = argmin over the occupancy measures q of the model of η <f^t, q> + D(q, q_t).

The publication measures D over pairs. Measures of one model, q(s,a) P(s'|s,a), have the same D over tuples, so this is
UC-O-REPS with a point for a confidence set, and another q_1.

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only).
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import KnownModel
from tightrope.learners.base import Episode, require_positive
from tightrope.learners.shared.mirror import FLOOR, MirrorLearner
from tightrope.model import LayeredMDP
from tightrope.space import LayeredSpace


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
    needs = ("model",)

    def __init__(
        self,
        space: LayeredSpace,
        budgets: ArrayLike,
        *,
        episodes: int,
        model: LayeredMDP,
        learning_rate: float | None = None,
    ) -> None:
        super().__init__(space, budgets, episodes=episodes, rule=KnownModel(transitions=model.transitions))
        divergence = np.log(space.n_states * space.n_actions / space.n_layers)
        self.learning_rate = float(np.sqrt(divergence / episodes) if learning_rate is None else learning_rate)
        require_positive(learning_rate=self.learning_rate)
        self._step(np.maximum(model.transitions, FLOOR), np.zeros(space.n_tuples), self.confidence)

    def observe(self, episode: Episode) -> None:
        """Line 2."""
        path, f, _ = self._full(episode)
        self._move(path, self._reference(), self.learning_rate * f)

    @property
    def epoch(self) -> int:
        """1: a set that is known never changes."""
        return 1

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"learning_rate": self.learning_rate}
