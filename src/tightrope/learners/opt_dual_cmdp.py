"""OptDual-CMDP: optimistic planning at a price, and a dual step on the price (Efroni, Mannor & Pirotta 2020).

In every episode k, from λ_1 = 0:
1. c̃ = c̄ − β^c, d̃_i = d̄_i − β^c and the models p with |p − p̄| <= β^p, as in OptCMDP.
2. (π_k, p_k) = argmin of <c̃ + Σ_i λ_{k,i} d̃_i, q> over all policies and these models: dynamic programming.
3. Play π_k.
4. λ_{k+1,i} = max{λ_{k,i} + (<d̃_i, q_k> − α_i) / t_λ, 0}, q_k the measure of (π_k, p_k); t_λ = √(H² I K / ρ²).

Each π_k is deterministic; what meets the budgets is their average. Regret and violation with paying back are of order
√K. ρ bounds the optimal multipliers: (V(π̄) − V*) / γ, with γ what a policy π̄ leaves of every budget.

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`learners.estimating`); V(π̄) − V* is not known beforehand and
is bounded by H, so ρ = H/γ.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.learners.base import BanditEpisode, require_not_negative
from tightrope.learners.shared.estimating import EstimatingLearner, largest_multiplier
from tightrope.model import Policy
from tightrope.planning.extended_lp import best_response
from tightrope.space import FloatArray, LayeredSpace


class OptDualCMDP(EstimatingLearner):
    """Optimistic planning with dual steps on prices: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : K, the number of episodes that the parameters are set for.
    slack : what some policy leaves of every budget (Slater's condition).
    rho : ρ, a bound on the optimal multipliers; by default H/γ, γ = slack/2 in the units of the publication.
    dual_step : 1/t_λ; by default the published ρ / (H √(I K)).
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is the published one.
    """

    name = "opt-dual-cmdp"
    reference = "Efroni, Mannor, Pirotta: Exploration-exploitation in constrained MDPs (2020)"
    needs = ("slack",)
    carries = (*EstimatingLearner.carries, "multipliers")

    def __init__(
        self,
        space: LayeredSpace,
        budgets: ArrayLike,
        *,
        episodes: int,
        slack: float,
        rho: float | None = None,
        dual_step: float | None = None,
        level: float = 0.01,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(space, budgets, episodes=episodes, level=level, radius_scale=radius_scale)
        n, H, K = max(1, len(self.budgets)), space.n_layers, episodes
        self.rho = float(largest_multiplier(space, slack) if rho is None else rho)
        self.dual_step = float(self.rho / (H * np.sqrt(n * K)) if dual_step is None else dual_step)
        require_not_negative(rho=self.rho, dual_step=self.dual_step)
        self._usage, self.policy = self._respond(self.multipliers)

    def observe(self, episode: BanditEpisode) -> None:
        """Line 4 for this episode, and lines 1 and 2 for the next one."""
        with self._counting(episode):
            prices = np.maximum(self.multipliers + self.dual_step * (self._usage - self.alpha), 0.0)
            usage, policy = self._respond(prices)
            self.multipliers, self._usage, self.policy = prices, usage, policy

    def _respond(self, prices: FloatArray) -> tuple[FloatArray, Policy]:
        """Lines 1 and 2: <d̃_i, q_k> (I,) and π_k."""
        estimates = self._estimates()
        optimistic = estimates.costs - self._cost_radius(estimates.N)
        _, x, policy = best_response(self.space, self._box(estimates), optimistic[0] + prices @ optimistic[1:])
        usage: FloatArray = optimistic[1:] @ x
        return usage, policy

    def _restored(self) -> None:
        self._usage, self.policy = self._respond(self.multipliers)

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"rho": self.rho, "dual_step": self.dual_step}
