"""Natural policy gradient with a multiplier: each state moves towards its better actions, with a price per budget.

The natural gradient (Kakade 2001) of the Lagrangian, tabular. Costs c of the loss and d_i of the constraints are in
[0, 1]. In every episode k, from π_1 uniform and λ = 0:
1. Play π_k.
2. From all visits, those of this episode included: averages c̄, d̄_i of the costs, frequencies p̄ of the successors. A
   pair never visited costs 0 and leads nowhere.
3. Q(s,a; c) = c̄(s,a) + Σ_s' p̄(s'|s,a) V(s'; c), V(s; c) = Σ_a π_k(a|s) Q(s,a; c): the estimated cost of π_k;
   likewise for each d_i.
4. π_{k+1}(a|s) ∝ π_k(a|s) exp(−η (Q(s,a; c) + Σ_i λ_i Q(s,a; d_i)) / (1 + Σ_i λ_i)).
5. λ_i ← max{λ_i + η_λ (V(s_1; d_i) − α_i), 0}.

For a softmax with a weight for every pair, the natural gradient is the advantage, without the probability of the state:
line 4. OptPrimalDual-CMDP adds a bonus for rarely visited pairs, and has guarantees.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: the units of costs (`shared.counting`); it estimates advantages from the paths of
π_k, here values come from all counts; the steps, which it leaves open, are η = √(8 log A / K) / H, as for exponential
weights in K rounds with costs up to H, and η_λ = 1/√K. The division by 1 + Σ_i λ_i is due to Stooke, Achiam & Abbeel
(2020).
What the layered form changes: values are sums over the remaining steps, without a discount.
"""

from dataclasses import replace

import numpy as np

from tightrope import core
from tightrope.arithmetic import log
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, parameter
from tightrope.learners.shared.counting import (
    CountingLearner,
    Estimates,
    PricedState,
    averaged,
    budgets_of_shares,
    estimates,
    uniform_start,
)
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace


class NPGLagrangian(CountingLearner[PricedState]):
    """Natural policy gradient from counts, a price per budget: a practitioner's attempt, without guarantees.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the steps are set for.
    policy_step : η; by default √(8 log A / K) / H.
    dual_step : η_λ; by default 1/√K.
    """

    name = "npg-lagrangian"
    reference = (
        "Kakade: A natural policy gradient (NIPS 2001); Chow, Ghavamzadeh, Janson, Pavone: Risk-constrained "
        "reinforcement learning with percentile risk criteria (JMLR 2018)"
    )
    constants = "balanced by us"

    feedback = "bandit"

    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.default_to(policy_step=hedge_step(self.space, self.episodes), dual_step=1 / np.sqrt(self.episodes))

    def initial(self) -> PricedState:
        return PricedState(**uniform_start(self))

    def offer(self, state: PricedState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: PricedState, seen: Seen) -> PricedState:
        """Return the next state (lines 2 to 5)."""
        state = averaged(state, seen, self.space)
        averages = estimates(state.counts, state.cost_sum)
        used, policy = improved(state.policy, averages, state.multipliers, self.policy_step)
        return replace(state, policy=policy, multipliers=self._prices(state, used))

    def _prices(self, state: PricedState, used: FloatArray) -> FloatArray:
        """Return λ (I,) of line 5, given the uses of the budgets."""
        prices: FloatArray = np.maximum(state.multipliers + self.dual_step * (used - self.alpha), 0.0)
        return prices


def hedge_step(space: LayeredSpace, episodes: int) -> float:
    """Return η = √(8 log A / K) / H."""
    return float(np.sqrt(8 * log(space.n_actions) / episodes) / space.n_layers)


def improved(policy: Policy, averages: Estimates, prices: FloatArray, step: float) -> tuple[FloatArray, Policy]:
    """Return the uses of the policy (I,) and the policy of the next episode (lines 3 and 4)."""
    space, pi, n = policy.space, policy.probabilities, np.maximum(1, averages.N)
    V, Q = core.evaluate(space.native, pi, averages.M, n, averages.costs)
    priced = core.weigh(1.0, Q[0], prices, Q[1:], 1 + prices.sum())
    return V[1:, 0].copy(), Policy.unchecked(space, core.mirror_step(space.native, pi, priced, step))
