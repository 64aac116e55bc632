"""OptPess-LP: optimistic losses and pessimistic constraints on the estimated model (Liu, Zhou, Kalathil, Kumar & Tian).

In every episode k:
1. From all visits before it: averages r̂ and ĉ_i of the costs, frequencies P̂ (even at pairs without visits), and
   β(s,a) = √(log(16 S²AHK/δ) / n).
2. Pessimistic constraints: c̄_i = ĉ_i + (1 + SH) β.
3. If the pessimistic use of the safe policy π_b is at least half way from its true use to some budget,
   <c̄_i, q(π_b, P̂)> >= (τ_i + C_{b,i})/2, play π_b: too little is known.
4. Otherwise play the best policy on P̂ for the optimistic loss r̄ = r̂ − (1 + SH + 4H (1 + SH)/γ) β such that
   <c̄_i, q> <= τ_i, γ = min_i (τ_i − C_{b,i}).

No budget is exceeded, in expectation, in any episode, with probability 1 − δ; regret is of order √K. DOPE has the same
guarantee with less pessimism.

Feedback: bandit. Needs to know: the space, the budgets, the number of episodes K, a policy π_b strictly within the
budgets, and C_b, its uses.
Where we depart from the publication: the units of costs (`shared.counting`). A pair leads into one layer, so S is
the size of the largest layer. It has one budget; here line 3 applies to each, and γ is the least slack. The constants
are those of its implementation in the repository of DOPE (MediaControl, where A = 2); we had no access to the paper.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import dot, log
from tightrope.learners.base import Offer
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    AveragingLearner,
    budgets_of_shares,
    estimates,
    safe_slack,
)
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.dynamic_programming import Intervals, plan
from tightrope.space import FloatArray


class OptPessLP(AveragingLearner):
    """Pessimistic constraints on the estimated model, from a safe policy: budgets hold in every episode.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the confidence terms are set for.
    safe_policy, safe_usage : π_b, and its expected use of each budget (I,).
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β; 1 is β as above. Below 1 the guarantee is lost.
    """

    name = "optpess-lp"
    reference = (
        "Liu, Zhou, Kalathil, Kumar, Tian: Learning policies with zero or bounded constraint violation for constrained "
        "MDPs (NeurIPS 2021)"
    )
    constants = "balanced by us"
    needs = ("safe_policy", "safe_usage")

    safe_policy: Policy
    safe_usage: Any
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.gamma, usage = safe_slack(self.safe_usage, self.budgets)
        self._half_way = self.alpha - (self.budgets - usage) / 4  # (τ + C_b)/2

    def offer(self, state: AveragesState) -> Offer:
        """Return the next policy (lines 2 to 4)."""
        averages = estimates(state.counts, state.cost_sum)
        space, H, S = self.space, self.space.n_layers, max(self.space.layer_sizes)
        width = self._beta(averages.visits) + S * H * self._beta(averages.N)  # visits and N differ only for tied pairs
        model = LayeredMDP.from_occupancy(space, averages.M.astype(np.float64))
        pessimistic = averages.costs[1:] + width
        seems = dot(pessimistic, space.sum_over_successors(model.occupancy(self.safe_policy)))
        if (seems >= self._half_way).any():
            return Offer(self.safe_policy, np.zeros(len(self.budgets)), state.counts.epoch)
        optimistic = averages.costs[0] - (1 + 4 * H / self.gamma) * width
        best = plan(space, Intervals.around(model), optimistic, pessimistic, self.alpha)
        return Offer(best.policy, best.multipliers, state.counts.epoch)

    def _beta(self, visits: NDArray[np.int64]) -> FloatArray:
        """Return β of line 1, times the scale."""
        log_term = log(16 * self.space.n_tuples * self.episodes / self.level)
        beta: FloatArray = self.radius_scale * np.sqrt(log_term / np.maximum(1, visits))
        return beta
