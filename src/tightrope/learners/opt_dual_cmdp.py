"""OptDual-CMDP: optimistic planning at a price, and a dual step on the price (Efroni, Mannor & Pirotta 2020).

In every episode k, from λ_1 = 0:
1. c̃ = c̄ − β^c, d̃_i = d̄_i − β^c and the models p with |p − p̄| <= β^p, as in OptCMDP.
2. (π_k, p_k) = argmin of <c̃ + Σ_i λ_{k,i} d̃_i, q> over all policies and these models: dynamic programming.
3. Play π_k.
4. λ_{k+1,i} = max{λ_{k,i} + (<d̃_i, q_k> − α_i) / t_λ, 0}, q_k the measure of (π_k, p_k); t_λ = √(H² I K / ρ²).

Each π_k is deterministic; what meets the budgets is their average. Regret and violation with paying back are of order
√K. ρ bounds the optimal multipliers: (V(π̄) − V*) / γ, with γ what a policy π̄ leaves of every budget.

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`shared.averaging`); V(π̄) − V* is not known beforehand and
is bounded by H, so ρ = H/γ.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arithmetic import dot
from tightrope.learners.base import BanditEpisode, sums_of
from tightrope.learners.parameters import ANY, NOT_NEGATIVE, PUBLISHED, carried, parameter
from tightrope.learners.shared.averaging import Estimates
from tightrope.learners.shared.estimating import EstimatingLearner, largest_multiplier
from tightrope.model import Policy
from tightrope.planning.mixtures import best_response
from tightrope.space import FloatArray


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
    constants = "published"
    needs = ("slack",)

    slack: float = parameter(ANY)
    rho: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    multipliers: FloatArray = carried()  #: λ

    def __post_init__(self) -> None:
        super().__post_init__()
        n, H, K = max(1, len(self.budgets)), self.space.n_layers, self.episodes
        if "rho" not in self.parameters:
            self.default_to(rho=largest_multiplier(self.space, self.slack))
        self.default_to(dual_step=self.rho / (H * np.sqrt(n * K)))
        self._restored()

    def observe(self, episode: BanditEpisode) -> None:
        """Line 4 for this episode, and lines 1 and 2 for the next one."""
        sums = self._sums_after(episode)
        prices = np.maximum(self.multipliers + self.dual_step * (self._usage - self.alpha), 0.0)
        usage, policy = self._respond(sums.estimates(), prices)
        self._learn(**sums._asdict(), multipliers=prices, _usage=usage, policy=policy)

    def _respond(self, estimates: Estimates, prices: FloatArray) -> tuple[FloatArray, Policy]:
        """Lines 1 and 2: <d̃_i, q_k> (I,) and π_k."""
        optimistic = estimates.costs - self._cost_radius(estimates.visits)
        priced = core.weigh(1.0, optimistic[0], prices, optimistic[1:], 1.0)
        _, x, policy = best_response(self.space, self._box(estimates), priced)
        usage: FloatArray = dot(optimistic[1:], x)
        return usage, policy

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        used = sums_of(self.space.n_layers * self.observed)[1]  # at most, of budgets that are 0 at least
        return super().bounds() | {"multipliers": (0, self.dual_step * used)}

    def _restored(self) -> None:
        self._usage, self.policy = self._respond(self.sums.estimates(), self.multipliers)
