"""PID Lagrangian: natural policy gradient whose prices are set by a controller (Stooke, Achiam & Abbeel 2020).

As `npg-lagrangian`, but with another line 5, where u_i = V(s_1; d_i) is the use of π_k and e_i = u_i − α_i, from I = 0
and u = 0:
5. I_i ← max{I_i + K_I e_i, 0} and λ_i = max{K_P e_i + I_i + K_D max{u_i − u_i of the episode before, 0}, 0}.

A price that only integrates the excess (K_P = K_D = 0) reacts late: it rises until the budget is met and falls only
after that, so uses oscillate about the budget. K_P reacts to the present excess, K_D to its trend.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: it controls deep policies, from means over batches of episodes; its authors' code
smooths e and u (by 0.95) and takes the difference of u over 10 batches. Here u comes from all counts and needs neither.
There the gains are tuned for each task; here K_I = 1/√K, the step of `npg-lagrangian`, and K_P = K_D = 1.
What the layered form changes: nothing, since prices do not depend on layers.
"""

from dataclasses import replace

import numpy as np

from tightrope.learners.base import Offer, Seen
from tightrope.learners.npg_lagrangian import hedge_step, improved
from tightrope.learners.parameters import NOT_NEGATIVE, PUBLISHED, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    CountingLearner,
    averaged,
    budgets_of_shares,
    estimates,
    uniform_start,
)
from tightrope.model import Policy
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class PIDState(AveragesState):
    """The state of the PID controller."""

    policy: Policy = part()
    multipliers: FloatArray = numbers(least=0)  #: (I,) λ
    integrals: FloatArray = numbers(least=0)  #: (I,) I
    used: FloatArray = numbers()  #: (I,) u of the episode before


class PIDLagrangian(CountingLearner[PIDState]):
    """Natural policy gradient with prices of a PID controller: less oscillation about budgets, without guarantees.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the steps are set for.
    policy_step : η; by default √(8 log A / K) / H.
    dual_step : K_I; by default 1/√K.
    proportional, derivative : K_P and K_D.
    """

    name = "pid-lagrangian"
    reference = (
        "Stooke, Achiam, Abbeel: Responsive safety in reinforcement learning by PID Lagrangian methods (ICML 2020)"
    )
    constants = "balanced by us"

    feedback = "bandit"

    policy_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    dual_step: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    proportional: float = parameter(NOT_NEGATIVE, default=1.0)
    derivative: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.default_to(policy_step=hedge_step(self.space, self.episodes), dual_step=1 / np.sqrt(self.episodes))

    def initial(self) -> PIDState:
        zeros = np.zeros(len(self.budgets))
        return PIDState(**uniform_start(self), integrals=zeros, used=zeros)

    def offer(self, state: PIDState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: PIDState, seen: Seen) -> PIDState:
        """Return the next state (lines 2 to 5)."""
        state = averaged(state, seen, self.space)
        averages = estimates(state.counts, state.cost_sum)
        used, policy = improved(state.policy, averages, state.multipliers, self.policy_step)
        prices, integrals = self._prices(state, used)
        return replace(state, policy=policy, multipliers=prices, integrals=integrals, used=used)

    def _prices(self, state: PIDState, used: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return λ and I of line 5, (I,) each, for the uses of the budgets."""
        over, rise = used - self.alpha, np.maximum(used - state.used, 0.0)
        integrals = np.maximum(state.integrals + self.dual_step * over, 0.0)
        return np.maximum(self.proportional * over + integrals + self.derivative * rise, 0.0), integrals
