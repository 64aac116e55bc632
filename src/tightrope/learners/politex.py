"""POLITEX: policy iteration with experts, in tabular form (Abbasi-Yadkori, Bartlett, Bhatia, Lazić, Szepesvári & Weisz
2019).

In every phase i of τ episodes, with losses ℓ in [0, 1]:
1. Play π_i(a|s) ∝ exp(−η Σ_{j<i} Q̂_j(s,a)) in all its episodes: MDP-E, with estimates.
2. From all visits so far, P̂ and ℓ̄ the frequencies and the average losses: Q̂_i(s,a) = ℓ̄(s,a) + Σ_s' P̂(s'|s,a) V̂_i(s'),
   held between 0 and the steps left, V̂_i(s) = Σ_a π_i(a|s) Q̂_i(s,a); 0 at pairs never visited.

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are not looked at. Made for losses
whose mean does not change.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It has an endless, ergodic process that it does not
know, in which τ steps of one policy are a data set, and estimates relative values from the sets of all phases so far by
least squares in given features (LSPE); here τ counts episodes and every pair is a feature of its own, for which least
squares are the counts. Its bounds assume that every policy visits all there is to visit; a pair without visits has the
value 0 here, the best there is, and is tried.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.learners.base import BanditEpisode
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.shared.averaging import AveragingLearner, Estimates
from tightrope.learners.shared.experts import StateExperts, hedge_rate
from tightrope.space import FloatArray


class Politex(StateExperts, AveragingLearner):
    """Policy iteration with exponential weights: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    phase_length : τ; by default √T, as many phases as episodes in each.
    learning_rate : η; by default √(8 log|A| τ/T) / L, T/τ the number of phases and L the largest value.
    """

    name = "politex"
    reference = (
        "Abbasi-Yadkori, Bartlett, Bhatia, Lazić, Szepesvári, Weisz: POLITEX: regret bounds for policy iteration using "
        "expert prediction (ICML 2019)"
    )
    constants = "balanced by us"

    phase_length: float = parameter(POSITIVE, default=PUBLISHED)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.default_to(phase_length=np.sqrt(self.episodes))
        self.default_to(learning_rate=hedge_rate(self.space, self.episodes / self.phase_length))

    def observe(self, episode: BanditEpisode) -> None:
        """Count; at the end of a phase line 2, and line 1 for the next."""
        sums, changes = self._sums_after(episode), dict[str, Any]()
        if self._phases_after(self.observed + 1) > self._phases_after(self.observed):
            total_values = self.total_values + self._estimated_values(sums.estimates())
            changes = {"total_values": total_values, "policy": self._policy_for(total_values)}
        self._learn(**sums._asdict(), **changes)

    def _phases_after(self, episodes: int) -> int:
        """How many have ended: phase i ends in the first episode t >= iτ."""
        return int(episodes // self.phase_length)

    def _estimated_values(self, estimates: Estimates) -> FloatArray:
        """Line 2: Q̂ (n_pairs,) of the policy that it has."""
        n, pi = np.maximum(1, estimates.N), self.policy.probabilities
        _, Q = core.evaluate(self.space.native, pi, estimates.M, n, estimates.costs[:1])
        values: FloatArray = Q[0]
        return values

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        most = self.space.n_layers * self._phases_after(self.observed)
        return super().bounds() | {"total_values": (0, most)}

    @property
    def epoch(self) -> int:
        """The phase: values are estimated anew at its end."""
        return 1 + self._phases_after(self.observed)
