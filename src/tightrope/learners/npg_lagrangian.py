"""Natural policy gradient with a multiplier: every state steps towards its better actions, at a price for budgets.

The natural gradient (Kakade 2001) of the Lagrangian, tabular. Costs c of the loss and d_i of the constraints are in
[0, 1]. In every episode k, from π_1 uniform and λ = 0:
1. Play π_k.
2. From all visits, those of this episode included: averages c̄, d̄_i of the costs, frequencies p̄ of the successors. A
   pair never visited costs 0 and leads nowhere.
3. Q(s,a; c) = c̄(s,a) + Σ_s' p̄(s'|s,a) V(s'; c), V(s; c) = Σ_a π_k(a|s) Q(s,a; c): what π_k costs by what was counted;
   likewise for each d_i.
4. π_{k+1}(a|s) ∝ π_k(a|s) exp(−η (Q(s,a; c) + Σ_i λ_i Q(s,a; d_i)) / (1 + Σ_i λ_i)).
5. λ_i ← max{λ_i + η_λ (V(s_1; d_i) − α_i), 0}.

Of a softmax with a weight for every pair the natural gradient is the advantage, without the probability of the state:
line 4. OptPrimalDual-CMDP is this with a bonus for what was seen seldom, and so with a promise.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: the units of costs (`shared.averaging`); it estimates advantages from the paths of
π_k, here values come from all counts; steps, free there, are η = √(8 log A / K) / H, that of exponential weights for K
rounds of costs up to H, and η_λ = 1/√K. Dividing by 1 + Σ_i λ_i is Stooke, Achiam & Abbeel's (2020).
What the layered form changes: values are sums over the steps that are left, with no discount.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arithmetic import log
from tightrope.learners.base import BanditEpisode, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, carried, parameter
from tightrope.learners.shared.averaging import AveragingLearner, Estimates
from tightrope.model import Policy
from tightrope.space import FloatArray


class NPGLagrangian(AveragingLearner):
    """Natural policy gradient from counts with a price for every budget: a practitioner's attempt, no promise.

    Parameters
    ----------
    space, budgets : what is known beforehand.
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

    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    policy: Policy = carried()
    multipliers: FloatArray = carried()  #: λ

    def __post_init__(self) -> None:
        super().__post_init__()
        H, K, A = self.space.n_layers, self.episodes, self.space.n_actions
        self.default_to(policy_step=np.sqrt(8 * log(A) / K) / H, dual_step=1 / np.sqrt(K))
        self.policy = Policy.uniform(self.space)

    def observe(self, episode: BanditEpisode) -> None:
        """Lines 2 to 5."""
        sums = self._sums_after(episode)
        used, Q = self._evaluate(sums.estimates())
        priced = core.weigh(1.0, Q[0], self.multipliers, Q[1:], 1 + self.multipliers.sum())
        pi = core.mirror_step(self.space.native, self.policy.probabilities, priced, self.policy_step)
        self._learn(**sums._asdict(), policy=Policy.unchecked(self.space, pi), **self._priced(used))

    def _evaluate(self, estimates: Estimates) -> tuple[FloatArray, FloatArray]:
        """Line 3: V(s_1; d_i) (I,), and Q (1 + I, n_pairs) of the loss, then of each constraint."""
        n, pi = np.maximum(1, estimates.N), self.policy.probabilities
        V, Q = core.evaluate(self.space.native, pi, estimates.M, n, estimates.costs)
        return V[1:, 0].copy(), Q

    def _priced(self, used: FloatArray) -> dict[str, Any]:
        """Line 5: what changes with the prices when so much is used of each budget."""
        return {"multipliers": np.maximum(self.multipliers + self.dual_step * (used - self.alpha), 0.0)}

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        used = sums_of(self.space.n_layers * self.observed)[1]  # at most, of budgets that are 0 at least
        return super().bounds() | {"multipliers": (0, self.dual_step * used)}
