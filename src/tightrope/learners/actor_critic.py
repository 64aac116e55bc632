"""Actor-critic: a critic that averages what follows each pair, an actor that follows slowly (Konda & Tsitsiklis 2000).

With losses ℓ = (f + 1)/2 and H = L steps; from w = 0 and Q = 0. In every episode t:
1. Play π(a|s) ∝ exp w(s,a).
2. Critic, at every pair of the path, with δ_k = ℓ_k + Q(s_{k+1},a_{k+1}) − Q(s_k,a_k), 0 after the last step:
   Q(s_k,a_k) ← Q(s_k,a_k) + γ_t Σ_{j>=k} λ^{j−k} δ_j: temporal differences with a trace, TD(λ).
3. Actor, with the Q of before the episode: w(s_k,a) ← w(s_k,a) − β_t Q(s_k,a_k)/H (1[a = a_k] − π(a|s_k)), for all a.

β_t/γ_t falls to 0: to the actor the critic is always nearly done, and what it follows is the gradient. No model, no
optimism; it finds a policy that no small change improves.

Feedback: bandit. Needs to know: the space. Budgets are not looked at. Made for losses whose mean does not change.
Where we depart from the publication: it asks of the steps that Σ γ_t = Σ β_t = ∞, that their squares are summable and
that Σ (β_t/γ_t)^d < ∞ for some d; here γ_t = t^{-0.6} and β_t = t^{-0.9}. Γ, by which it bounds the actor's step, is
1/H: no value is larger than H.
What the layered form changes: it has an endless process, values relative to the average and features of which the
critic's values are a linear function; here an episode ends, its values are those of the steps that are left, and every
pair is a feature of its own, so the critic can represent every value there is.
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
    episodes : T; it changes nothing.
    trace : λ; with 1 the critic averages the losses after each pair, the case proved for general features.
    critic_power, actor_power : γ_t and β_t are t to the minus that.
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
        """Nothing follows from the parameters."""

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
