"""PID Lagrangian: natural policy gradient whose prices are set by a controller (Stooke, Achiam & Abbeel 2020).

As `npg-lagrangian`, with u_i = V(s_1; d_i) what π_k uses of budget i, e_i = u_i − α_i and, in place of line 5, from
I = 0 and u = 0:
5. I_i ← max{I_i + K_I e_i, 0} and λ_i = max{K_P e_i + I_i + K_D max{u_i − u_i of the episode before, 0}, 0}.

A price that only adds up what was exceeded, K_P = K_D = 0, is late: it rises until the budget is met and falls only
after that, and uses go round about the budget. K_P answers to what is exceeded now, K_D to what is about to be.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: it controls deep policies, from means over batches of episodes; its authors' code
smooths e and u (by 0.95) and takes the difference of u over 10 batches. Here u comes from all counts and needs neither.
Gains are set for each of its tasks; here K_I = 1/√K, the step of `npg-lagrangian`, and K_P = K_D = 1.
What the layered form changes: nothing, prices do not see layers.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.learners.carrying import sums_of
from tightrope.learners.npg_lagrangian import NPGLagrangian
from tightrope.learners.parameters import NOT_NEGATIVE, carried, parameter
from tightrope.space import FloatArray


class PIDLagrangian(NPGLagrangian):
    """Natural policy gradient with prices set by a PID controller: fewer swings about the budgets, no promise.

    Parameters
    ----------
    space, budgets : what is known beforehand.
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

    proportional: float = parameter(NOT_NEGATIVE, default=1.0)
    derivative: float = parameter(NOT_NEGATIVE, default=1.0)
    integrals: FloatArray = carried()  #: I
    used: FloatArray = carried()  #: u of the episode before

    def __post_init__(self) -> None:
        super().__post_init__()
        self.integrals, self.used = np.zeros((2, len(self.budgets)))

    def _priced(self, used: FloatArray) -> dict[str, Any]:
        over, rise = used - self.alpha, np.maximum(used - self.used, 0.0)
        integrals = np.maximum(self.integrals + self.dual_step * over, 0.0)
        prices = np.maximum(self.proportional * over + integrals + self.derivative * rise, 0.0)
        return {"multipliers": prices, "integrals": integrals, "used": used}

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        bounds, uses = super().bounds(), sums_of(self.space.n_layers)
        _, integral = bounds["multipliers"]
        most = integral + (self.proportional + self.derivative) * uses[1]
        return bounds | {"integrals": (0, integral), "used": uses, "multipliers": (0, most)}
