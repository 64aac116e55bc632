"""Optimistic POMD: mirror descent on the policy, from the losses of the path (Efroni, Shani, Rosenberg & Mannor 2020).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ exp(−η Σ_{τ<t} Q_τ(s,a)): a mirror step from π_{t-1}, separately at every state.
2. Estimate the losses as UOB-REPS does: ℓ̂_t(s,a) = ℓ_t(s,a) / (u_t(s,a) + γ) where the path went, 0 elsewhere, u_t the
   largest probability of passing (s,a) with π_t under any model of the confidence set.
3. Q_t are the values of π_t for ℓ̂_t under the model of the set that minimises them.
4. Count the path; the set is that of UOB-REPS, around the frequencies of all episodes so far.

A step is one pass of dynamic programming. Regret is of order K^(2/3) in K episodes; for losses whose mean
does not change the same method is `opt-primal-dual` without budgets, with regret of order √K.

Feedback: bandit. Needs to know: the space and the number of episodes K. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2; its sets have other constants of the same kind. Its
γ and η are of order K^(-1/3) and K^(-2/3); here γ = (L² √(log|A|/K) / n)^(2/3) and η = √(γ log|A| / K) / L for n pairs,
which balance the terms of its bound: L log|A|/η for the first policy, η L³ K/γ for the steps and γ n K for the bias.
"""

import numpy as np

from tightrope.arithmetic import log, power
from tightrope.confidence import BernsteinBox, Box, Counts
from tightrope.confidence.sets import bounds_of, most_paid
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.parts import action_values, estimated, exponential_weights
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state


@state
class OptPOMDState(CountingState):
    """The state of OPT-POMD between two episodes."""

    total_values: FloatArray = numbers(least=0)  #: (n_pairs,) Σ_t Q_t


class OptPOMD(CountingLearner[OptPOMDState]):
    """Optimistic mirror descent on the policy: adversarial losses, bandit feedback, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : K, the number of episodes that the parameters are set for.
    exploration : γ; by default (L² √(log|A|/K) / n)^(2/3), n the number of pairs, or 1 if that is less.
    learning_rate : η; by default √(γ log|A| / K) / L.
    level : δ; the model may leave its confidence set with probability 4δ.
    radius_scale : multiplies the confidence radius; 1 is the published one.
    """

    name = "opt-pomd"
    reference = "Efroni, Shani, Rosenberg, Mannor: Optimistic policy optimization with bandit feedback (ICML 2020)"
    constants = "balanced by us"
    feedback = "bandit"
    learns_from = "told"

    learning_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    exploration: float = parameter(POSITIVE, default=PUBLISHED)
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        L, K, log_A = self.space.n_layers, self.episodes, log(self.space.n_actions)
        self.default_to(exploration=min(1.0, power(L**2 * np.sqrt(max(log_A, 1e-9) / K) / self.space.n_pairs, 2 / 3)))
        self.default_to(learning_rate=np.sqrt(self.exploration * log_A / K) / L)
        self.rule = BernsteinBox(episodes=K, level=self.level, scale=self.radius_scale)

    def initial(self) -> OptPOMDState:
        return OptPOMDState(counts=Counts(self.space, self.ties), total_values=np.zeros(self.space.n_pairs))

    def offer(self, state: OptPOMDState) -> Offer:
        """Return the next policy (line 1)."""
        policy = exponential_weights(self.space, state.total_values, self.learning_rate)
        return Offer(policy, np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: OptPOMDState, seen: Seen) -> OptPOMDState:
        """Return the next state (lines 2 to 4)."""
        box = self.set_of(state.counts)
        estimate = estimated(seen.policy, box, seen.path, (seen.loss + 1) / 2, self.exploration)
        values = self._least_values(box, self.offered(state).policy, estimate)
        return OptPOMDState(
            observed=state.observed + 1,
            counts=state.counts.counted(seen.path),
            total_values=state.total_values + values,
        )

    @property
    def confidence_set(self) -> Box:
        """The confidence set of the next episode."""
        return self.set_of(self.state.counts)

    def set_of(self, counts: Counts) -> Box:
        """Return the confidence set of line 4, of all counts so far."""
        return self.rule(self.space, *counts.laws_so_far)

    def _least_values(self, box: Box, policy: Policy, estimate: FloatArray) -> FloatArray:
        """Return Q_t (n_pairs,) of line 3 from ℓ̂_t (n_tuples,), which is the same at every successor."""
        space = self.space
        _, P = most_paid(space, bounds_of(box, space), policy, -estimate)
        return action_values(LayeredMDP(space, P), policy, estimate[space.csr.pair_ptr[:-1]])
