"""UC-O-REPS: upper confidence online relative entropy policy search (Rosenberg & Mansour 2019).

In every episode t:
1. Play π_t(a|s) ∝ Σ_s' q_t(s,a,s'); q_1 as θ^1 of `ucpd`.
2. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and draw the confidence set Δ anew around the frequencies.
3. q_{t+1} = argmin over q in Δ of η <f^t, q> + D(q, q_t).

That is UCPD without budgets and without mixing; budgets given to it are not looked at.

Feedback: full information. Needs to know: the space and the number of episodes T.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only); the epoch rule and
unvisited pairs are treated as in UCPD (docs/errata.md).
"""

import numpy as np

from tightrope.arithmetic import log
from tightrope.learners.base import Episode
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.shared.mirror import ConfidentLearner


class UCOREPS(ConfidentLearner):
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
    constants = "balanced by us"

    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def __post_init__(self) -> None:
        super().__post_init__()
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        self.default_to(learning_rate=np.sqrt(log(S**2 * A / L**2) / T))

    def observe(self, episode: Episode) -> None:
        """Lines 2 and 3."""
        path, f, _ = self._read(episode)
        self._learn(**self._move(path, self._reference(), self.learning_rate * f))
