"""REINFORCE with a multiplier: the policy gradient of one path, and a price that goes up when a budget is exceeded.

What a practitioner would write first: the likelihood-ratio gradient with a baseline (Williams 1992) of the Lagrangian
(Chow, Ghavamzadeh, Janson & Pavone 2018). In every episode, from w = 0 and λ = 0:
1. Play π(a|s) ∝ exp w(s,a).
2. From step k on the path lost F_k and used G_{i,k}. b(s) is the mean of all that was lost, and used, from s on before.
3. At every state of the path: w(s_k,a) ← w(s_k,a) − η δ_k (1[a = a_k] − π(a|s_k)), for all a, with
   δ_k = (F_k − b_F(s_k) + Σ_i λ_i (G_{i,k} − b_i(s_k))) / (1 + Σ_i λ_i).
4. λ_i ← max{λ_i + η_λ (G_{i,0} − c_i), 0}.

No model, no optimism, no promise: gradients find a local optimum, and with a price that is always late the policy goes
round about its budgets.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes T.
Where we depart from the publications: they prove limits for steps that fall, η_λ faster than η; here both are constant,
η = 1/L and η_λ = 1/√T, so that λ changes slowly beside the policy. Dividing by 1 + Σ_i λ_i keeps the size of a step
when prices are high; it is Stooke, Achiam & Abbeel's (2020).
What the layered form changes: a state belongs to one step, so a baseline for every state is one for every step, too.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.learners.base import BanditEpisode, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, carried, parameter
from tightrope.learners.shared.softmax import SoftmaxLearner
from tightrope.space import FloatArray


class ReinforceLagrangian(SoftmaxLearner):
    """Policy gradient of one path with a price for every budget: a practitioner's first attempt, no promise.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : T, the number of episodes that the dual step is set for.
    policy_step : η; by default 1/L.
    dual_step : η_λ; by default 1/√T.
    """

    name = "reinforce-lagrangian"
    reference = (
        "Williams: Simple statistical gradient-following algorithms for connectionist reinforcement learning (1992); "
        "Chow, Ghavamzadeh, Janson, Pavone: Risk-constrained reinforcement learning with percentile risk criteria "
        "(JMLR 2018)"
    )
    constants = "balanced by us"
    feedback = "bandit"

    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    visits: NDArray[np.int64] = carried()  #: (n_states,)
    baseline: FloatArray = carried()  #: (1 + I, n_states) b: of the loss, then of each constraint
    multipliers: FloatArray = carried()  #: λ

    def __post_init__(self) -> None:
        super().__post_init__()
        self.default_to(policy_step=1 / self.space.n_layers, dual_step=1 / np.sqrt(self.episodes))
        self.visits = np.zeros(self.space.n_states, dtype=np.int64)
        self.baseline = np.zeros((1 + len(self.budgets), self.space.n_states))

    def observe(self, episode: BanditEpisode) -> None:
        """Lines 2, 3 and 4, and line 1 for the next episode."""
        path, losses, g = self._read(episode)
        self._refuse_another(episode)
        states = self.space.tuples[path, 0]
        to_go = np.cumsum(np.vstack([losses, g])[:, ::-1], axis=1)[:, ::-1]  # (1 + I, L) F_k, G_k
        surprise = np.ascontiguousarray(to_go - self.baseline[:, states])
        delta = core.weigh(1.0, surprise[0], self.multipliers, surprise[1:], 1 + self.multipliers.sum())
        preferences = self.preferences - self.policy_step * self._gradient(path, delta)

        visits, baseline = self.visits.copy(), self.baseline.copy()
        visits[states] += 1
        baseline[:, states] += surprise / visits[states]
        prices = np.maximum(self.multipliers + self.dual_step * (to_go[1:, 0] - self.budgets), 0.0)
        self._learn(
            preferences=preferences, visits=visits, baseline=baseline, multipliers=prices,
            policy=self._softmax(preferences),
        )  # fmt: skip

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        L = self.space.n_layers
        return super().bounds() | {
            "visits": (0, self.observed),
            "baseline": sums_of(L, least=-1),
            "multipliers": (0, 3 * L * self.dual_step * self.observed),
        }
