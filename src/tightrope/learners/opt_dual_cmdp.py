"""OptDual-CMDP: optimistic planning at a price, and a dual step on the price (Efroni, Mannor & Pirotta 2020).

In every episode k, from λ_1 = 0:
1. c̃ = c̄ − β^c, d̃_i = d̄_i − β^c and the models p with |p − p̄| <= β^p, as in OptCMDP.
2. (π_k, p_k) = argmin of <c̃ + Σ_i λ_{k,i} d̃_i, q> over all policies and these models: dynamic programming.
3. Play π_k.
4. λ_{k+1,i} = max{λ_{k,i} + (<d̃_i, q_k> − α_i) / t_λ, 0}, q_k the measure of (π_k, p_k); t_λ = √(H² I K / ρ²).

Each π_k is deterministic; only their average meets the budgets. Regret and violation are of order √K. ρ bounds the
optimal multipliers, (V(π̄) − V*) / γ, where γ is the slack of a policy π̄ in every budget.

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`shared.counting`); V(π̄) − V* is unknown and
is bounded by H, so ρ = H/γ.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.arithmetic import dot
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import ANY, NOT_NEGATIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    CountingLearner,
    Radii,
    averaged,
    budgets_of_shares,
    estimates,
    largest_multiplier,
    no_sums,
)
from tightrope.model import Policy
from tightrope.planning.dynamic_programming import best_response
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state


@state
class OptDualState(AveragesState):
    """The state of OptDual-CMDP."""

    multipliers: FloatArray = numbers(least=0)  #: (I,) λ


class Response(NamedTuple):
    """The answer to lines 1 and 2."""

    usage: FloatArray  #: (I,) <d̃_i, q_k>
    policy: Policy  #: π_k


class OptDualCMDP(CountingLearner[OptDualState]):
    """Optimistic planning with dual steps on prices: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the parameters are set for.
    slack : the slack that some policy has in every budget (Slater's condition).
    rho : ρ, a bound on the optimal multipliers; by default H/γ, γ = slack/2 in the units of the publication.
    dual_step : 1/t_λ; by default the published ρ / (H √(I K)).
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is the published one.
    """

    name = "opt-dual-cmdp"
    reference = "Efroni, Mannor, Pirotta: Exploration-exploitation in constrained MDPs (2020)"
    constants = "published"
    needs = ("slack",)

    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    slack: float = parameter(ANY)
    rho: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        n, H, K = max(1, len(self.budgets)), self.space.n_layers, self.episodes
        self.alpha = budgets_of_shares(self.budgets, self.space)
        if "rho" not in self.parameters:
            self.default_to(rho=largest_multiplier(self.space, self.slack))
        self.default_to(dual_step=self.rho / (H * np.sqrt(n * K)))
        self._radii = Radii(self.space, len(self.budgets), K, self.level, self.radius_scale)
        self._responded: tuple[OptDualState, Response] | None = None

    def initial(self) -> OptDualState:
        n = len(self.budgets)
        return OptDualState(**no_sums(self.space, n, self.ties), multipliers=np.zeros(n))

    def step(self, state: OptDualState, seen: Seen) -> OptDualState:
        """Return the next state (line 4)."""
        over = self._response(state).usage - self.alpha
        prices = np.maximum(state.multipliers + self.dual_step * over, 0.0)
        return replace(averaged(state, seen, self.space), multipliers=prices)

    def offer(self, state: OptDualState) -> Offer:
        return Offer(self._response(state).policy, state.multipliers, state.counts.epoch)

    def _response(self, state: OptDualState) -> Response:
        """Return the answer to lines 1 and 2; the last one is kept."""
        kept = self._responded
        if kept is None or kept[0] is not state:
            averages, prices = estimates(state.counts, state.cost_sum), state.multipliers
            optimistic = averages.costs - self._radii.of_costs(averages.visits)
            box = self._radii.box(averages)
            priced = core.weigh(1.0, optimistic[0], prices, optimistic[1:], 1.0)
            _, x, policy = best_response(self.space, box, priced)
            kept = self._responded = (state, Response(dot(optimistic[1:], x), policy))
        return kept[1]
