"""Online loop-free stochastic shortest paths: experts in every state, bandit (Neu, György & Szepesvári 2010).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) = (1 − γ) w_t(s,a) / Σ_a' w_t(s,a') + γ / |A(s)|, w_t(s,a) = exp(−η Σ_{τ<t} Q̂_τ(s,a)).
2. Estimate the losses: ℓ̂_t(s,a) = ℓ^t(s,a) / (μ_t(s) π_t(a|s)) where the trajectory went, 0 elsewhere; μ_t(s) is the
   probability that π_t passes s under the model.
3. Q̂_t are the action values of π_t under ℓ̂_t and the model; they are unbiased for those under ℓ^t.

Regret is of order L² √(T|A|) / α if every policy passes every state with probability at least α > 0.

Feedback: bandit. Needs to know: the space, the number of episodes T and the model. Budgets are ignored.
Where we depart from the publication: it has rewards, here losses ℓ = (f + 1)/2; the loss of a step may depend on the
next state, and ℓ̂_t(s,a) then estimates its mean. For an episode that was played with another policy, μ and π are those
of that policy. If some policy avoids some state, as in most problems, α = 0 and nothing is proved; α is then computed
for the uniform policy. The rates balance the terms of the bound L log|A| / η + η L³ |A| T / (2α), which its proof gives
with the inequality e^(−x) <= 1 − x + x²/2.
"""

import numpy as np

from tightrope.arithmetic import log
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, SHARE, parameter
from tightrope.learners.parts import ExpertsState, action_values, exponential_weights, unbiased
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import best_policy


class OnlineSSP(LearnerBase[ExpertsState]):
    """Exponential weights on estimated values: adversarial losses, bandit feedback, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default √(2α log|A| / (T|A|)) / L.
    exploration : γ; by default η L|A|/α, with which no η Q̂ is above 1, or 1/2 if that is less.
    """

    name = "online-ssp"
    reference = "Neu, György, Szepesvári: The online loop-free stochastic shortest-path problem (COLT 2010)"
    constants = "balanced by us"
    feedback = "bandit"
    needs = ("model",)
    learns_from = "told"

    learning_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    model: LayeredMDP
    exploration: float = parameter(SHARE, default=PUBLISHED)

    def configure(self) -> None:
        L, A, alpha = self.space.n_layers, self.space.n_actions, least_passed(self.model)
        self.default_to(learning_rate=np.sqrt(2 * alpha * log(A) / (self.episodes * A)) / L)
        self.default_to(exploration=min(0.5, self.learning_rate * L * A / alpha))

    def initial(self) -> ExpertsState:
        return ExpertsState(total_values=np.zeros(self.space.n_pairs))

    def offer(self, state: ExpertsState) -> Offer:
        """Return the next policy (line 1)."""
        weighted = exponential_weights(self.space, state.total_values, self.learning_rate).probabilities
        even, gamma = Policy.uniform(self.space).probabilities, self.exploration
        return Offer(Policy.unchecked(self.space, (1 - gamma) * weighted + gamma * even), np.zeros(len(self.budgets)))

    def step(self, state: ExpertsState, seen: Seen) -> ExpertsState:
        """Return the next state (lines 2 and 3)."""
        estimate = unbiased(self.model, seen.policy, seen.path, (seen.loss + 1) / 2, state.observed + 1)
        of_pairs = estimate[self.space.csr.pair_ptr[:-1]]  # the values of all successors are equal
        values = action_values(self.model, self.offered(state).policy, of_pairs)
        return ExpertsState(observed=state.observed + 1, total_values=state.total_values + values)


def least_passed(model: LayeredMDP) -> float:
    """Return α, the least probability over policies and reachable states that the policy passes the state.

    If it is 0, return the least probability for the uniform policy.
    """
    space = model.space
    theta = model.occupancy(Policy.uniform(space))
    passed = np.bincount(space.csr.successor, theta, minlength=space.n_states)[1:]
    reached = 1 + np.flatnonzero(passed)
    least = min(best_policy(model, (space.csr.successor == state).astype(float))[0] for state in reached)
    return least if least > 0 else float(passed[passed > 0].min())
