"""OPDOP: optimistic primal-dual proximal policy optimization, tabular (Ding, Wei, Yang, Wang & Jovanović 2020).

With rewards r = (1 − f)/2 and utilities g_i = (1 − constraint_i)/2 in [0, 1], V_{g_i} >= b_i. In every episode k, from
π_0 uniform, Y_0 = 0 and Q_0 = V_0 = 0:
1. π_k(a|s) ∝ π̃_{k-1}(a|s) exp(α (Q_r(s,a) + Σ_i Y_{k-1,i} Q_{g_i}(s,a))), Q those of episode k − 1 and
   π̃_{k-1} = (1 − θ) π_{k-1} + θ uniform.
2. Play π_k.
3. Y_{k,i} = Y_{k-1,i} + η (b_i − V_{g_i}(s_1)), V that of episode k − 1, held between 0 and χ = 2H/γ.
4. From all visits, n of each pair: r̂ = (sum of rewards) / (n + 1), P̂ = visits / (n + 1), Γ = β / √(n + 1).
5. Q_r(s,a) = r̂ + Σ_s' P̂(s'|s,a) V_r(s') + 2 Γ, held between 0 and the number of steps left; V_r(s) = Σ_a π_k(a|s)
   Q_r(s,a); likewise for each g_i.

Published: α = √(log A) / (H² √K), η = 1/√K, θ = 1/K, β = C_1 H √(S log(SAHK/p)).

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`shared.averaging`); it has one constraint, here each has
its Y_i; C_1, a constant that it does not name, is 1; S in β is the size of the widest layer. Γ is for rewards and
transitions at once, so that ties narrow P̂ alone.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arithmetic import log
from tightrope.learners.base import BanditEpisode, sums_of
from tightrope.learners.parameters import ANY, NOT_NEGATIVE, PUBLISHED, SHARE, carried, parameter
from tightrope.learners.shared.averaging import Sums
from tightrope.learners.shared.estimating import EstimatingLearner, largest_multiplier
from tightrope.model import Policy
from tightrope.space import FloatArray


class OPDOP(EstimatingLearner):
    """Optimistic primal-dual policy optimization: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : K, the number of episodes that the parameters are set for.
    slack : what some policy leaves of every budget (Slater's condition).
    policy_step, dual_step, mixing : α, η and θ; by default the published √(log A) / (H² √K), 1/√K and 1/K.
    largest : χ, the largest multiplier; by default the published 2H/γ, γ = slack/2 in the units of the publication.
    level : p, the probability that the bonuses may be too small.
    radius_scale : multiplies Γ; 1 is the published one with C_1 = 1.
    """

    name = "opdop"
    reference = (
        "Ding, Wei, Yang, Wang, Jovanović: Provably efficient safe exploration via primal-dual policy optimization "
        "(AISTATS 2021)"
    )
    constants = "balanced by us"
    needs = ("slack",)

    slack: float = parameter(ANY)
    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    mixing: float = parameter(SHARE, default=PUBLISHED)
    largest: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    policy: Policy = carried()
    multipliers: FloatArray = carried()  #: Y
    Q: FloatArray = carried()  #: (1 + I, n_pairs)
    V_first: FloatArray = carried()  #: (1 + I,) V(s_1)

    def __post_init__(self) -> None:
        super().__post_init__()
        H, K, A = self.space.n_layers, self.episodes, self.space.n_actions
        self.default_to(policy_step=np.sqrt(log(A) / K) / H**2, dual_step=1 / np.sqrt(K), mixing=1 / K)
        if "largest" not in self.parameters:
            self.default_to(largest=2 * largest_multiplier(self.space, self.slack))
        self.beta = float(H * np.sqrt(max(self.space.layer_sizes) * log(self.space.n_pairs * K / self.level)))
        self.least = self.space.n_layers - self.alpha  #: (I,) b: how much of each utility is asked for
        self.Q = np.zeros((1 + len(self.budgets), self.space.n_pairs))
        self.V_first = np.zeros(1 + len(self.budgets))
        self.policy = self._improved(Policy.uniform(self.space), self.Q, self.multipliers)

    def observe(self, episode: BanditEpisode) -> None:
        """Lines 3, 4 and 5 for this episode, and line 1 for the next one."""
        sums = self._sums_after(episode)
        Y = np.clip(self.multipliers + self.dual_step * (self.least - self.V_first[1:]), 0.0, self.largest)
        V_first, Q = self._evaluate(sums)
        self._learn(**sums._asdict(), multipliers=Y, V_first=V_first, Q=Q, policy=self._improved(self.policy, Q, Y))

    def _improved(self, policy: Policy, Q: FloatArray, Y: FloatArray) -> Policy:
        """Line 1."""
        mixed = (1 - self.mixing) * policy.probabilities + self.mixing * Policy.uniform(self.space).probabilities
        worth = core.weigh(1.0, Q[0], Y, Q[1:], 1.0)
        return Policy.unchecked(self.space, core.mirror_step(self.space.native, mixed, -worth, self.policy_step))

    def _evaluate(self, sums: Sums) -> tuple[FloatArray, FloatArray]:
        """Lines 4 and 5: V at the first state (1 + I,) and Q (1 + I, n_pairs), of the reward, then of each utility."""
        (visits, _), (N, M) = sums.counts.totals(), sums.counts.laws_so_far
        rewards = (visits - sums.cost_sum) / (visits + 1)
        bonus = 2 * self.radius_scale * self.beta / np.sqrt(visits + 1)
        V, Q = core.evaluate(self.space.native, self.policy.probabilities, M, N + 1, rewards + bonus)
        return V[:, 0].copy(), Q

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        values = sums_of(self.space.n_layers)
        return super().bounds() | {"multipliers": (0, self.largest), "Q": values, "V_first": values}

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"beta": self.beta}
