"""OPDOP: optimistic primal-dual proximal policy optimization, tabular (Ding, Wei, Yang, Wang & Jovanović 2020).

With rewards r = (1 − f)/2 and utilities g_i = (1 − constraint_i)/2 in [0, 1], V_{g_i} >= b_i. In every episode k, from
π_0 uniform, Y_0 = 0 and Q_0 = V_0 = 0:
1. π_k(a|s) ∝ π̃_{k-1}(a|s) exp(α (Q_r(s,a) + Σ_i Y_{k-1,i} Q_{g_i}(s,a))), with Q of episode k − 1 and
   π̃_{k-1} = (1 − θ) π_{k-1} + θ uniform.
2. Play π_k.
3. Y_{k,i} = Y_{k-1,i} + η (b_i − V_{g_i}(s_1)), with V of episode k − 1, clipped to [0, χ], χ = 2H/γ.
4. From all visits, n of each pair: r̂ = (sum of rewards) / (n + 1), P̂ = visits / (n + 1), Γ = β / √(n + 1).
5. Q_r(s,a) = r̂ + Σ_s' P̂(s'|s,a) V_r(s') + 2 Γ, held between 0 and the number of steps left; V_r(s) = Σ_a π_k(a|s)
   Q_r(s,a); likewise for each g_i.

Published: α = √(log A) / (H² √K), η = 1/√K, θ = 1/K, β = C_1 H √(S log(SAHK/p)).

Feedback: bandit, as published. Needs to know: the space, the budgets, the number of episodes K and the slack γ.
Where we depart from the publication: the units of costs (`shared.counting`); it has one constraint, here each has
its Y_i; C_1, a constant that it does not specify, is 1; S in β is the size of the widest layer. Γ covers rewards and
transitions together, so ties improve P̂ only.
"""

from dataclasses import replace

import numpy as np

from tightrope import core
from tightrope.arithmetic import log
from tightrope.confidence import Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import ANY, NOT_NEGATIVE, PROBABILITY, PUBLISHED, SHARE, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    CountingLearner,
    averaged,
    budgets_of_shares,
    largest_multiplier,
    no_sums,
)
from tightrope.model import Policy
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class OPDOPState(AveragesState):
    """The state of OPDOP."""

    policy: Policy = part()
    multipliers: FloatArray = numbers(least=0)  #: (I,) Y
    Q: FloatArray = numbers()  #: (1 + I, n_pairs)
    V_first: FloatArray = numbers()  #: (1 + I,) V(s_1)


class OPDOP(CountingLearner[OPDOPState]):
    """Optimistic primal-dual policy optimization: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the parameters are set for.
    slack : the slack that some policy has in every budget (Slater's condition).
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

    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    slack: float = parameter(ANY)
    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    mixing: float = parameter(SHARE, default=PUBLISHED)
    largest: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        H, K, A = self.space.n_layers, self.episodes, self.space.n_actions
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.default_to(policy_step=np.sqrt(log(A) / K) / H**2, dual_step=1 / np.sqrt(K), mixing=1 / K)
        if "largest" not in self.parameters:
            self.default_to(largest=2 * largest_multiplier(self.space, self.slack))
        self.beta = float(H * np.sqrt(max(self.space.layer_sizes) * log(self.space.n_pairs * K / self.level)))
        self.least = self.space.n_layers - self.alpha  #: (I,) b: the required amount of each utility
        self.reported["beta"] = self.beta

    def initial(self) -> OPDOPState:
        n = len(self.budgets)
        Q, Y = np.zeros((1 + n, self.space.n_pairs)), np.zeros(n)
        return OPDOPState(
            **no_sums(self.space, n, self.ties),
            policy=self._improved(Policy.uniform(self.space), Q, Y),
            multipliers=Y,
            Q=Q,
            V_first=np.zeros(1 + n),
        )

    def offer(self, state: OPDOPState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: OPDOPState, seen: Seen) -> OPDOPState:
        """Return the next state (lines 3, 4 and 5 for this episode, and line 1 for the next one)."""
        state = averaged(state, seen, self.space)
        Y = np.clip(state.multipliers + self.dual_step * (self.least - state.V_first[1:]), 0.0, self.largest)
        V_first, Q = self._evaluate(state.counts, state.cost_sum, state.policy)
        return replace(state, policy=self._improved(state.policy, Q, Y), multipliers=Y, Q=Q, V_first=V_first)

    def _improved(self, policy: Policy, Q: FloatArray, Y: FloatArray) -> Policy:
        """Return the next policy (line 1)."""
        mixed = (1 - self.mixing) * policy.probabilities + self.mixing * Policy.uniform(self.space).probabilities
        worth = core.weigh(1.0, Q[0], Y, Q[1:], 1.0)
        return Policy.unchecked(self.space, core.mirror_step(self.space.native, mixed, -worth, self.policy_step))

    def _evaluate(self, counts: Counts, cost_sum: FloatArray, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """Return V(s_1) (1 + I,) and Q (1 + I, n_pairs) of the reward, then of each utility (lines 4 and 5)."""
        (visits, _), (N, M) = counts.totals(), counts.laws_so_far
        rewards = (visits - cost_sum) / (visits + 1)
        bonus = 2 * self.radius_scale * self.beta / np.sqrt(visits + 1)
        V, Q = core.evaluate(self.space.native, policy.probabilities, M, N + 1, rewards + bonus)
        return V[:, 0].copy(), Q
