"""Bandit O-REPS: online relative entropy policy search from the losses of the path, the model known (Zimin & Neu 2013).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. Estimate the losses: ℓ̂_t(s,a) = ℓ^t(s,a) / q_t(s,a) where the trajectory went, 0 elsewhere.
3. q_{t+1} = argmin over the occupancy measures q of the model of η <ℓ̂_t, q> + D(q, q_t).

Feedback: bandit. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses here are ℓ = (f + 1)/2; the loss of a step may depend on the state it leads
to, and ℓ̂_t(s,a) then estimates its mean. Of an episode that another policy played, the probability q is that policy's.
"""

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import log
from tightrope.learners.base import BanditEpisode
from tightrope.learners.o_reps import OREPS
from tightrope.learners.shared.importance import unbiased
from tightrope.space import FloatArray


class BanditOREPS(OREPS):
    """O-REPS from the losses of the path: adversarial losses, bandit feedback, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default sqrt(L log(|S||A|/L) / (T|S||A|)), which gives the published regret
        2 sqrt(L|S||A|T log(|S||A|/L)).
    """

    name = "bandit-o-reps"
    feedback = "bandit"
    learns_from = "told"

    def _published_rate(self) -> float:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        return float(np.sqrt(L * log(S * A / L) / (T * S * A)))

    def _seen(self, episode: BanditEpisode) -> tuple[NDArray[np.int64], FloatArray]:
        """Line 2: the path, and ℓ̂_t (n_tuples,)."""
        path, losses, _ = self._read(episode)
        return path, unbiased(self.model, self._played(episode), path, (losses + 1) / 2, self.observed + 1)
