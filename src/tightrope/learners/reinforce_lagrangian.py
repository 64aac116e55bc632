"""REINFORCE with a multiplier: the policy gradient of one path, and a price that goes up when a budget is exceeded.

What a practitioner would write first: the likelihood-ratio gradient with a baseline (Williams 1992) of the Lagrangian
(Chow, Ghavamzadeh, Janson & Pavone 2018). In every episode, from w = 0 and λ = 0:
1. Play π(a|s) ∝ exp w(s,a).
2. F_k and G_{i,k} are the loss and the uses of the path from step k on. b(s) are their means over earlier episodes.
3. At every state of the path: w(s_k,a) ← w(s_k,a) − η δ_k (1[a = a_k] − π(a|s_k)), for all a, with
   δ_k = (F_k − b_F(s_k) + Σ_i λ_i (G_{i,k} − b_i(s_k))) / (1 + Σ_i λ_i).
4. λ_i ← max{λ_i + η_λ (G_{i,0} − c_i), 0}.

There is no model, no optimism and no guarantee: gradients find a local optimum, and because the price reacts late, uses
oscillate about the budgets.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes T.
Where we depart from the publications: they prove convergence for decreasing steps, η_λ faster than η; here both are
constant, η = 1/L and η_λ = 1/√T, so that λ changes slowly beside the policy. Dividing by 1 + Σ_i λ_i limits the size of
a step when prices are high; it is due to Stooke, Achiam & Abbeel (2020). What the layered form changes: a state belongs
to one step, so a baseline for every state is one for every step, too.
"""

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, parameter
from tightrope.learners.parts import log_gradient, softmax
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, state


@state
class ReinforceState(State):
    """The state of REINFORCE."""

    preferences: FloatArray = numbers()  #: (n_pairs,) w
    visits: NDArray[np.int64] = numbers(least=0)  #: (n_states,)
    baseline: FloatArray = numbers()  #: (1 + I, n_states) b: of the loss, then of each constraint
    multipliers: FloatArray = numbers(least=0)  #: (I,) λ


class ReinforceLagrangian(LearnerBase[ReinforceState]):
    """Policy gradient of one path with a price for every budget: a practitioner's first attempt, without guarantees.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : T, the number of episodes that the dual step is set for.
    policy_step : η; by default 1/L.
    dual_step : η_λ; by default 1/√T.
    """

    name = "reinforce-lagrangian"
    reference = (
        "Williams: Simple statistical gradient-following algorithms for connectionist reinforcement learning (1992); "
        "Chow, Ghavamzadeh, Janson, Pavone: Risk-constrained reinforcement learning with percentile risk criteria "
        "(JMLR 2018)"
    )
    constants = "balanced by us"
    feedback = "bandit"

    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        self.default_to(policy_step=1 / self.space.n_layers, dual_step=1 / np.sqrt(self.episodes))

    def initial(self) -> ReinforceState:
        space, n = self.space, len(self.budgets)
        return ReinforceState(
            preferences=np.zeros(space.n_pairs),
            visits=np.zeros(space.n_states, dtype=np.int64),
            baseline=np.zeros((1 + n, space.n_states)),
            multipliers=np.zeros(n),
        )

    def offer(self, state: ReinforceState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(softmax(self.space, state.preferences), state.multipliers)

    def step(self, state: ReinforceState, seen: Seen) -> ReinforceState:
        """Return the next state (lines 2, 3 and 4)."""
        path, losses, g, _ = seen
        states = self.space.tuples[path, 0]
        to_go = np.cumsum(np.vstack([losses, g])[:, ::-1], axis=1)[:, ::-1]  # (1 + I, L) F_k, G_k
        surprise = np.ascontiguousarray(to_go - state.baseline[:, states])
        delta = core.weigh(1.0, surprise[0], state.multipliers, surprise[1:], 1 + state.multipliers.sum())
        gradient = log_gradient(self.offered(state).policy, path, delta)

        visits, baseline = state.visits.copy(), state.baseline.copy()
        visits[states] += 1
        baseline[:, states] += surprise / visits[states]
        return ReinforceState(
            observed=state.observed + 1,
            preferences=state.preferences - self.policy_step * gradient,
            visits=visits,
            baseline=baseline,
            multipliers=np.maximum(state.multipliers + self.dual_step * (to_go[1:, 0] - self.budgets), 0.0),
        )
