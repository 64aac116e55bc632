"""DOPE: doubly optimistic and pessimistic exploration (Bura, HasanzadeZonuzy, Kalathil, Shakkottai & Chamberland 2022).

In every episode k:
1. From all visits before it: averages r̂ and ĉ_i of the costs, frequencies P̂, and radii β^l(s,a) and β(s,a,s'), like c̄,
   d̄_i, p̄, β^c and β^p of OptCMDP but at most 1; β̄(s,a) = Σ_s' β(s,a,s').
2. Pessimistic constraints: c_i = ĉ_i + β^l + H β̄. With probability 1 − δ no model of the set makes a policy look safer
   than it is.
3. Optimistic loss: r = r̂ − β^l − (H β̄ + 2 β^l) H / γ, γ = min_i (C̄_i − C_{b,i}), which compensates for line 2.
4. π_k = argmin of <r, q> over all policies and all models with |P − P̂| <= β such that <c_i, q> <= C̄_i. If there
   is none, π_k = π_b, the safe policy.
5. Play π_k.

No budget is exceeded, in expectation, in any episode, with probability 1 − δ; regret is of order √K.

Feedback: bandit. Needs to know: the space, the budgets, the number of episodes K, a policy π_b strictly within the
budgets, and C_b, its uses.
Where we depart from the publication: the units of costs (`shared.counting`). It knows the mean costs, so its line
3 is r − H² β̄ / γ; a remark extends it to unknown ones, hence β^l here. It plays π_b for a number of episodes whose
order is given; here, as in the code of its authors, π_b is played until line 4 has a solution. With several budgets γ
is the least slack.
"""

from typing import Any

import numpy as np

from tightrope.learners.base import Offer
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    AveragingLearner,
    Radii,
    budgets_of_shares,
    estimates,
    safe_slack,
)
from tightrope.model import Policy
from tightrope.planning.dynamic_programming import plan


class DOPE(AveragingLearner):
    """Optimistic losses, pessimistic constraints, from a safe policy: budgets hold in every episode.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the confidence terms are set for.
    safe_policy, safe_usage : π_b, and its expected use of each budget (I,).
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^l and β; 1 is the published one. Below 1 the guarantee is lost.
    """

    name = "dope"
    reference = (
        "Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland: DOPE: doubly optimistic and pessimistic exploration "
        "for safe reinforcement learning (NeurIPS 2022)"
    )
    constants = "declared departure"
    needs = ("safe_policy", "safe_usage")

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    safe_policy: Policy
    safe_usage: Any

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.gamma, _ = safe_slack(self.safe_usage, self.budgets)
        self._radii = Radii(self.space, len(self.budgets), self.episodes, self.level, self.radius_scale)

    def offer(self, state: AveragesState) -> Offer:
        """Return the next policy (lines 2 to 4)."""
        averages = estimates(state.counts, state.cost_sum)
        H, box = self.space.n_layers, self._radii.box(averages)
        beta_l = np.minimum(self._radii.of_costs(averages.visits), 1.0)
        pessimistic = averages.costs[1:] + beta_l + H * box.radius
        optimistic = averages.costs[0] - beta_l - (H * box.radius + 2 * beta_l) * (H / self.gamma)
        best = plan(self.space, box, optimistic, pessimistic, self.alpha)
        if best.excess > 0:
            return Offer(self.safe_policy, np.zeros(len(self.budgets)), state.counts.epoch)
        return Offer(best.policy, best.multipliers, state.counts.epoch)
