"""POLITEX: policy iteration with experts, in tabular form (Abbasi-Yadkori, Bartlett, Bhatia, Lazić, Szepesvári & Weisz
2019).

In every phase i of τ episodes, with losses ℓ in [0, 1]:
1. Play π_i(a|s) ∝ exp(−η Σ_{j<i} Q̂_j(s,a)) in all its episodes: MDP-E, with estimates.
2. From all visits so far, P̂ and ℓ̄ the frequencies and the average losses: Q̂_i(s,a) = ℓ̄(s,a) + Σ_s' P̂(s'|s,a) V̂_i(s'),
   held between 0 and the steps left, V̂_i(s) = Σ_a π_i(a|s) Q̂_i(s,a); 0 at pairs never visited.

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are ignored. Made for losses
whose mean does not change.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It has an infinite, ergodic, unknown process, in
which τ steps of one policy are a data set, and estimates relative values from all phases so far by least squares in
given features (LSPE); here τ counts episodes and every pair is a feature, for which least squares are averages. Its
bounds assume that every policy visits every state; here a pair without visits has the optimistic value 0, so it is
tried.
"""

from dataclasses import replace

import numpy as np

from tightrope import core
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import exponential_weights, hedge_rate
from tightrope.learners.shared.counting import AveragesState, CountingLearner, Estimates, averaged, estimates, no_sums
from tightrope.model import Policy
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state


@state
class PolitexState(AveragesState):
    """The state of POLITEX between two episodes."""

    total_values: FloatArray = numbers(least=0)  #: (n_pairs,) Σ Q̂ of the phases


class Politex(CountingLearner[PolitexState]):
    """Policy iteration with exponential weights: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
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

    feedback = "bandit"
    learning_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    phase_length: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        self.default_to(phase_length=np.sqrt(self.episodes))
        self.default_to(learning_rate=hedge_rate(self.space, self.episodes / self.phase_length))

    def initial(self) -> PolitexState:
        sums = no_sums(self.space, len(self.budgets), self.ties)
        return PolitexState(**sums, total_values=np.zeros(self.space.n_pairs))

    def offer(self, state: PolitexState) -> Offer:
        """Return the next policy (line 1)."""
        policy = exponential_weights(self.space, state.total_values, self.learning_rate)
        return Offer(policy, np.zeros(len(self.budgets)), epoch=1 + self._phases_after(state.observed))

    def step(self, state: PolitexState, seen: Seen) -> PolitexState:
        """Return the next state: count, and at the end of a phase line 2."""
        after = averaged(state, seen, self.space)
        if self._phases_after(after.observed) == self._phases_after(state.observed):
            return after
        values = self._estimated_values(estimates(after.counts, after.cost_sum), self.offered(state).policy)
        return replace(after, total_values=state.total_values + values)

    def _phases_after(self, episodes: int) -> int:
        """Return how many phases have ended: phase i ends in the first episode t >= iτ."""
        return int(episodes // self.phase_length)

    def _estimated_values(self, averages: Estimates, policy: Policy) -> FloatArray:
        """Return Q̂ (n_pairs,) of the policy (line 2)."""
        n, pi = np.maximum(1, averages.N), policy.probabilities
        _, Q = core.evaluate(self.space.native, pi, averages.M, n, averages.costs[:1])
        values: FloatArray = Q[0]
        return values
