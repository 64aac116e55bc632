"""OptPrimalDual-CMDP: mirror descent on the policy, a dual step on the price (Efroni, Mannor & Pirotta 2020).

In every episode k, from π_1 uniform and λ_1 = 0:
1. From all visits before it: c̄, d̄_i, p̄ as in OptCMDP, and the bonus b(s,a) = β^c(s,a) + H Σ_s' β^p(s,a,s').
2. Q(s,a; c) = max{c̄ − b + Σ_s' p̄(s'|s,a) V(s'; c), 0}, V(s; c) = Σ_a π_k(a|s) Q(s,a; c): an optimistic
   cost of π_k; likewise for each d_i.
3. Play π_k.
4. π_{k+1}(a|s) ∝ π_k(a|s) exp(−t_K (Q(s,a; c) + Σ_i λ_{k,i} Q(s,a; d_i))), t_K = √(2 log A / (H² (1 + I ρ)² K)).
5. λ_{k+1,i} = λ_{k,i} + (V(s_1; d_i) − α_i) / t_λ, clipped to [0, ρ]; t_λ = √(H² I K / ρ²).

No linear program is solved: there is one step of the policy and one of the prices. Regret and violation are of order
√K.

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`shared.counting`); ρ = H/γ as in OptDual-CMDP; β^p is 1
at most.
"""

from dataclasses import replace

import numpy as np

from tightrope import core
from tightrope.arithmetic import log
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import ANY, NOT_NEGATIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.shared.counting import (
    CountingLearner,
    Estimates,
    PricedState,
    Radii,
    averaged,
    budgets_of_shares,
    estimates,
    largest_multiplier,
    uniform_start,
)
from tightrope.model import Policy
from tightrope.space import FloatArray


class OptPrimalDual(CountingLearner[PricedState]):
    """Optimistic mirror descent with dual steps on prices: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the parameters are set for.
    slack : the slack that some policy has in every budget (Slater's condition).
    rho : ρ, the largest multiplier; by default H/γ, γ = slack/2 in the units of the publication.
    policy_step : t_K; by default the published √(2 log A / (H² (1 + I ρ)² K)).
    dual_step : 1/t_λ; by default the published ρ / (H √(I K)).
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is the published one.
    """

    name = "opt-primal-dual"
    reference = "Efroni, Mannor, Pirotta: Exploration-exploitation in constrained MDPs (2020)"
    constants = "published"
    needs = ("slack",)

    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    slack: float = parameter(ANY)
    rho: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        n, H, K, A = len(self.budgets), self.space.n_layers, self.episodes, self.space.n_actions
        self.alpha = budgets_of_shares(self.budgets, self.space)
        if "rho" not in self.parameters:
            self.default_to(rho=largest_multiplier(self.space, self.slack))
        self.default_to(
            policy_step=np.sqrt(2 * log(A) / K) / (H * (1 + n * self.rho)),
            dual_step=self.rho / (H * np.sqrt(max(1, n) * K)),
        )
        self._radii = Radii(self.space, n, K, self.level, self.radius_scale)

    def initial(self) -> PricedState:
        return PricedState(**uniform_start(self))

    def offer(self, state: PricedState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: PricedState, seen: Seen) -> PricedState:
        """Return the next state (lines 1, 2, 4 and 5)."""
        prices = state.multipliers
        V, Q = self._evaluate(estimates(state.counts, state.cost_sum), state.policy)
        gradient = core.weigh(1.0, Q[0], prices, Q[1:], 1.0)
        pi = core.mirror_step(self.space.native, state.policy.probabilities, gradient, self.policy_step)
        prices = np.clip(prices + self.dual_step * (V[1:, 0] - self.alpha), 0.0, self.rho)
        return replace(averaged(state, seen, self.space), policy=Policy.unchecked(self.space, pi), multipliers=prices)

    def _evaluate(self, averages: Estimates, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """Return V (1 + I, n_states) and Q (1 + I, n_pairs) of the loss, then of each constraint (lines 1 and 2)."""
        space, n = self.space, np.maximum(1, averages.N)
        bonus = self._radii.of_costs(averages.visits) + space.n_layers * self._radii.box(averages).radius
        V, Q = core.evaluate(space.native, policy.probabilities, averages.M, n, averages.costs - bonus)
        return V, Q
