"""Actor-critic: a critic estimates the values of pairs, an actor follows it slowly (Konda & Tsitsiklis 2000).

With losses ℓ = (f + 1)/2 and H = L steps; from w = 0 and Q = 0. In every episode t:
1. Play π(a|s) ∝ exp w(s,a).
2. Critic, at every pair of the path, with δ_k = ℓ_k + Q(s_{k+1},a_{k+1}) − Q(s_k,a_k), 0 after the last step:
   Q(s_k,a_k) ← Q(s_k,a_k) + γ_t Σ_{j>=k} λ^{j−k} δ_j: temporal differences with a trace, TD(λ).
3. Actor, with Q from before the episode: w(s_k,a) ← w(s_k,a) − β_t Q(s_k,a_k)/H (1[a = a_k] − π(a|s_k)), for all a.

β_t/γ_t falls to 0, so the critic has nearly converged for each policy of the actor, which follows the gradient. There
is no model and no optimism; the method finds a local optimum.

Feedback: bandit. Needs to know: the space. Budgets are ignored. Made for losses whose mean does not change.
Where we depart from the publication: it requires Σ γ_t = Σ β_t = ∞, summable squares, and Σ (β_t/γ_t)^d < ∞ for some d;
here γ_t = t^{-0.6} and β_t = t^{-0.9}. Its bound Γ on the actor's step is 1/H here, since no value exceeds H.
What the layered form changes: it has an infinite process, values relative to the average, and a critic that is linear
in features; here values are sums over the remaining steps of an episode, and every pair is a feature, so the critic can
represent any values.
"""

import numpy as np

from tightrope.arithmetic import power
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE_SHARE, SHARE, parameter
from tightrope.learners.parts import log_gradient, softmax
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, state


@state
class ActorCriticState(State):
    """The state of the actor-critic."""

    preferences: FloatArray = numbers()  #: (n_pairs,) w
    values: FloatArray = numbers()  #: (n_pairs,) Q


class ActorCritic(LearnerBase[ActorCriticState]):
    """A critic of temporal differences and an actor that follows it slowly: stochastic losses, no model, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T; it has no effect.
    trace : λ; with 1 the critic averages the losses after each pair, the case proved for general features.
    critic_power, actor_power : γ_t and β_t are t to the power of minus these.
    """

    name = "actor-critic"
    reference = "Konda, Tsitsiklis: Actor-critic algorithms (NIPS 2000)"
    constants = "balanced by us"
    feedback = "bandit"
    plans = False

    trace: float = parameter(SHARE, default=1.0)
    critic_power: float = parameter(POSITIVE_SHARE, default=0.6)
    actor_power: float = parameter(POSITIVE_SHARE, default=0.9)

    def configure(self) -> None:
        """Set no attributes: none depends on the parameters."""

    def initial(self) -> ActorCriticState:
        return ActorCriticState(preferences=np.zeros(self.space.n_pairs), values=np.zeros(self.space.n_pairs))

    def offer(self, state: ActorCriticState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(softmax(self.space, state.preferences), np.zeros(len(self.budgets)))

    def step(self, state: ActorCriticState, seen: Seen) -> ActorCriticState:
        """Return the next state (lines 2 and 3)."""
        H, t, pairs = self.space.n_layers, state.observed + 1, self.space.pair_of_tuple[seen.path]
        met = state.values[pairs]
        gradient = log_gradient(self.offered(state).policy, seen.path, met)
        preferences = state.preferences - power(t, -self.actor_power) / H * gradient

        differences = (seen.loss + 1) / 2 + np.append(met[1:], 0.0) - met
        values, traced = state.values.copy(), 0.0
        for k in range(H - 1, -1, -1):
            traced = differences[k] + self.trace * traced
            values[pairs[k]] += power(t, -self.critic_power) * traced
        return ActorCriticState(observed=t, preferences=preferences, values=values)
