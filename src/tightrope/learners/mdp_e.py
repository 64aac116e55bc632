"""MDP-E: an expert algorithm in every state, with the model known (Even-Dar, Kakade & Mansour 2009).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ exp(−η Σ_{τ<t} Q_τ(s,a)): exponential weights at every state.
2. Q_t are the action values of π_t under the losses of the episode and the model:
   Q_t(s,a) = Σ_s' P(s'|s,a) (ℓ^t(s,a,s') + Σ_a' π_t(a'|s') Q_t(s',a')), 0 at the last state.

Each state runs an expert algorithm of its own, which needs small regret on the values that it observes.

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It has an infinite, ergodic process with a new loss
in every step, values relative to the average, and regret that grows with the mixing time; here a loss belongs to an
episode, values are sums over the remaining steps, L takes the place of the mixing time, and policies need not change
slowly. It allows any expert algorithm whose regret is of order M √(T log|A|) for losses up to M; ours is exponential
weights, at the rate that is best for M = L.
"""

import numpy as np

from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, parameter
from tightrope.learners.parts import ExpertsState, action_values, exponential_weights, hedge_rate
from tightrope.model import LayeredMDP


class MDPE(LearnerBase[ExpertsState]):
    """Exponential weights in every state: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default √(8 log|A| / T) / L, for which the regret is at most L² √(T log|A| / 2).
    """

    name = "mdp-e"
    reference = "Even-Dar, Kakade, Mansour: Online Markov decision processes (Mathematics of Operations Research 2009)"
    constants = "balanced by us"
    needs = ("model",)
    learns_from = "any"

    learning_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    model: LayeredMDP

    def configure(self) -> None:
        self.default_to(learning_rate=hedge_rate(self.space, self.episodes))

    def initial(self) -> ExpertsState:
        return ExpertsState(total_values=np.zeros(self.space.n_pairs))

    def offer(self, state: ExpertsState) -> Offer:
        """Return the next policy (line 1)."""
        policy = exponential_weights(self.space, state.total_values, self.learning_rate)
        return Offer(policy, np.zeros(len(self.budgets)))

    def step(self, state: ExpertsState, seen: Seen) -> ExpertsState:
        """Return the next state (line 2)."""
        losses = self.space.sum_over_successors(self.model.transitions * (seen.loss + 1) / 2)
        values = action_values(self.model, self.offered(state).policy, losses)
        return ExpertsState(observed=state.observed + 1, total_values=state.total_values + values)
