"""UC-O-REPS: upper confidence online relative entropy policy search (Rosenberg & Mansour 2019).

In every episode t:
1. Play π_t(a|s) ∝ Σ_s' q_t(s,a,s'); q_1 is uniform on every layer.
2. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and draw the confidence set Δ anew around the frequencies.
3. q_{t+1} = argmin over q in Δ of η <f^t, q> + D(q, q_t).

That is UCPD without budgets and without mixing; budgets given to it are not looked at.

Feedback: full information. Needs to know: the space and the number of episodes T.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only); the epoch rule and
unvisited pairs are treated as in UCPD (docs/errata.md).
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import ConfidenceRule
from tightrope.learners.base import Episode, require_positive
from tightrope.learners.shared.mirror import MirrorLearner, make_rule
from tightrope.space import LayeredSpace


class UCOREPS(MirrorLearner):
    """Upper confidence O-REPS: adversarial losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    confidence : the name of a confidence rule, or a rule of your own (`tightrope.confidence`).
    learning_rate : η; by default sqrt(log(|S|²|A|/L²) / T), which balances the two terms of the published bound
        L log(|S|²|A|/L²)/η + η L T on the regret within Δ.
    level : δ, the probability that the model may leave its confidence set.
    radius_scale : multiplies the confidence radius; 1 is the published one. This and `level` are for a rule given
        by name; a rule of your own has them, or not, in itself.
    """

    name = "uc-o-reps"
    reference = "Rosenberg, Mansour: Online convex optimization in adversarial Markov decision processes (ICML 2019)"

    def __init__(
        self,
        space: LayeredSpace,
        budgets: ArrayLike,
        *,
        episodes: int,
        confidence: str | ConfidenceRule = "paper",
        learning_rate: float | None = None,
        level: float = 0.01,
        radius_scale: float = 1.0,
    ) -> None:
        rule = make_rule(confidence, episodes=episodes, level=level, radius_scale=radius_scale)
        super().__init__(space, budgets, episodes=episodes, rule=rule)
        divergence = np.log(space.n_states**2 * space.n_actions / space.n_layers**2)
        self.learning_rate = float(np.sqrt(divergence / episodes) if learning_rate is None else learning_rate)
        require_positive(learning_rate=self.learning_rate)
        self.level = level
        self.radius_scale = radius_scale
        self._confidence = confidence

    def observe(self, episode: Episode) -> None:
        """Lines 2 and 3."""
        path, f, _ = self._full(episode)
        self._move(path, self._reference(), self.learning_rate * f)

    @property
    def settings(self) -> dict[str, float | str]:
        settings = super().settings | {"learning_rate": self.learning_rate, "confidence": str(self._confidence)}
        if isinstance(self._confidence, str):
            settings |= {"level": self.level, "radius_scale": self.radius_scale}
        return settings
