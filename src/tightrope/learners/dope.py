"""DOPE: doubly optimistic and pessimistic exploration (Bura, HasanzadeZonuzy, Kalathil, Shakkottai & Chamberland 2022).

In every episode k:
1. From all visits before it: averages r̂ and ĉ_i of the costs, frequencies P̂, and radii β^l(s,a) and β(s,a,s'), as c̄,
   d̄_i, p̄, β^c and β^p of OptCMDP but 1 at most; β̄(s,a) = Σ_s' β(s,a,s').
2. Pessimistic constraints: c_i = ĉ_i + β^l + H β̄. With probability 1 − δ no model of the set makes a policy look safer
   than it is.
3. Optimistic loss: r = r̂ − β^l − (H β̄ + 2 β^l) H / γ, γ = min_i (C̄_i − C_{b,i}), which makes up for line 2.
4. π_k = argmin of <r, q> over all policies and all models with |P − P̂| <= β such that <c_i, q> <= C̄_i. As long as
   there is none, π_k = π_b, the safe policy.
5. Play π_k.

No budget is exceeded, in expectation, in any episode, with probability 1 − δ; regret is of order √K.

Feedback: bandit. Needs to know: the space, the budgets, the number of episodes K, a policy π_b strictly within the
budgets, and C_b, what it uses of them.
Where we depart from the publication: the units of costs (`shared.averaging`). It knows the mean costs, so that line
3 is r − H² β̄ / γ, and leaves unknown ones to a remark: hence β^l here. It plays π_b for a number of episodes that is
given in order of magnitude; here, as in its authors' code, until line 4 has an answer, which is what they are for. With
several budgets γ is the least slack.
"""

from typing import Any

import numpy as np

from tightrope.learners.base import BanditEpisode
from tightrope.learners.shared.averaging import Estimates
from tightrope.learners.shared.estimating import EstimatingLearner, safe_slack
from tightrope.model import Policy
from tightrope.planning.extended_lp import plan
from tightrope.space import FloatArray


class DOPE(EstimatingLearner):
    """Optimistic losses, pessimistic constraints, from a safe policy: budgets hold in every episode.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : K, the number of episodes that the confidence terms are set for.
    safe_policy, safe_usage : π_b, and (I,) what it uses of each budget in expectation.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^l and β; 1 is the published one. Below 1 the promise is gone.
    """

    name = "dope"
    reference = (
        "Bura, HasanzadeZonuzy, Kalathil, Shakkottai, Chamberland: DOPE: doubly optimistic and pessimistic exploration "
        "for safe reinforcement learning (NeurIPS 2022)"
    )
    constants = "declared departure"
    needs = ("safe_policy", "safe_usage")

    safe_policy: Policy
    safe_usage: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gamma, _ = safe_slack(self.safe_usage, self.budgets)
        self._restored()

    def observe(self, episode: BanditEpisode) -> None:
        """Line 1 after the episode, and lines 2 to 4 for the next one."""
        sums = self._sums_after(episode)
        policy, multipliers = self._plan(sums.estimates())
        self._learn(**sums._asdict(), policy=policy, multipliers=multipliers)

    def _plan(self, estimates: Estimates) -> tuple[Policy, FloatArray]:
        """Lines 2 to 4: the policy, and the multipliers of its constraints."""
        H, box = self.space.n_layers, self._box(estimates)
        beta_l = np.minimum(self._cost_radius(estimates.visits), 1.0)
        pessimistic = estimates.costs[1:] + beta_l + H * box.radius
        optimistic = estimates.costs[0] - beta_l - (H * box.radius + 2 * beta_l) * (H / self.gamma)
        best = plan(self.space, box, optimistic, pessimistic, self.alpha)
        if best.excess > 0:
            return self.safe_policy, np.zeros(len(self.budgets))
        return best.policy, best.multipliers

    def _restored(self) -> None:
        self.policy, self.multipliers = self._plan(self.sums.estimates())
