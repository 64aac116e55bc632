"""OptPess-LP: optimistic losses and pessimistic constraints on the estimated model (Liu, Zhou, Kalathil, Kumar & Tian).

In every episode k:
1. From all visits before it: averages r̂ and ĉ_i of the costs, frequencies P̂ (even at pairs without visits), and
   β(s,a) = √(log(16 S²AHK/δ) / n).
2. Pessimistic constraints: c̄_i = ĉ_i + (1 + SH) β.
3. If π_b, the safe policy, seems to use half way or more to some budget, <c̄_i, q(π_b, P̂)> >= (τ_i + C_{b,i})/2, play
   π_b: too little is known.
4. Else play the best policy on P̂ for the optimistic loss r̄ = r̂ − (1 + SH + 4H (1 + SH)/γ) β such that
   <c̄_i, q> <= τ_i, γ = min_i (τ_i − C_{b,i}).

No budget is exceeded, in expectation, in any episode, with probability 1 − δ; regret is of order √K. DOPE has the same
promise for less pessimism.

Feedback: bandit. Needs to know: the space, the budgets, the number of episodes K, a policy π_b strictly within the
budgets, and C_b, what it uses of them.
Where we depart from the publication: the units of costs (`shared.averaging`). A pair leads into one layer, so that S
is the size of the largest. It has one budget; here line 3 looks at all, and γ is the least slack. The constants are
those of the code for it in the repository of DOPE (MediaControl, where A = 2); the print was not at hand.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import dot, log
from tightrope.learners.base import BanditEpisode
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.averaging import AveragingLearner, Estimates
from tightrope.learners.shared.estimating import safe_slack
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.extended_lp import plan
from tightrope.planning.intervals import Intervals
from tightrope.space import FloatArray


class OptPessLP(AveragingLearner):
    """Pessimistic constraints on the estimated model, from a safe policy: budgets hold in every episode.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : K, the number of episodes that the confidence terms are set for.
    safe_policy, safe_usage : π_b, and (I,) what it uses of each budget in expectation.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β; 1 is the one above. Below 1 the promise is gone.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gamma, usage = safe_slack(self.safe_usage, self.budgets)
        self._half_way = self.alpha - (self.budgets - usage) / 4  # (τ + C_b)/2
        self._restored()

    def observe(self, episode: BanditEpisode) -> None:
        """Line 1 after the episode, and lines 2 to 4 for the next one."""
        sums = self._sums_after(episode)
        policy, multipliers = self._plan(sums.estimates())
        self._learn(**sums._asdict(), policy=policy, multipliers=multipliers)

    def _plan(self, estimates: Estimates) -> tuple[Policy, FloatArray]:
        """Lines 2 to 4: the policy, and the multipliers of its constraints."""
        space, H, S = self.space, self.space.n_layers, max(self.space.layer_sizes)
        width = self._beta(estimates.visits) + S * H * self._beta(estimates.N)  # the same count, unless pairs are tied
        model = LayeredMDP.from_occupancy(space, estimates.M.astype(np.float64))
        pessimistic = estimates.costs[1:] + width
        seems = dot(pessimistic, space.sum_over_successors(model.occupancy(self.safe_policy)))
        if (seems >= self._half_way).any():
            return self.safe_policy, np.zeros(len(self.budgets))
        optimistic = estimates.costs[0] - (1 + 4 * H / self.gamma) * width
        best = plan(space, Intervals.around(model), optimistic, pessimistic, self.alpha)
        return best.policy, best.multipliers

    def _beta(self, visits: NDArray[np.int64]) -> FloatArray:
        """Line 1, times the scale."""
        log_term = log(16 * self.space.n_tuples * self.episodes / self.level)
        beta: FloatArray = self.radius_scale * np.sqrt(log_term / np.maximum(1, visits))
        return beta

    def _restored(self) -> None:
        self.policy, self.multipliers = self._plan(self.sums.estimates())
