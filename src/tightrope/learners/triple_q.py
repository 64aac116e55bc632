"""Triple-Q: two Q-functions and a virtual queue, model-free with budgets (Wei, Liu & Ying 2022).

With rewards r = (1 − f)/2 and utilities u_i = (1 − constraint_i)/2 in [0, 1], of which ρ_i are required; H = L steps.
At first Q = C_i = H everywhere and Z = 0. In every episode:
1. Play the action with the largest Q(s,a) + Σ_i (Z_i/η) C_i(s,a). For it V(s) = Q(s,a) and W_i(s) = C_i(s,a), both 0
   at the last state.
2. C̄_i ← C̄_i + W_i(s_1).
3. At every pair of the path, visited t times in this frame: Q ← (1 − α_t) Q + α_t (r + V(s') + b_t) and
   C_i ← (1 − α_t) C_i + α_t (u_i + W_i(s') + b_t), α_t = (χ + 1)/(χ + t), with V and W from before the episode.
4. After every K^0.6 episodes a frame ends: Z_i ← max{Z_i + ρ_i + ε − C̄_i/K^0.6, 0}, visits and C̄ start at 0 again, Q
   rises by 2H³√ι/η, and where Q or some C_i is H or more, all are H.

Published: χ = η = K^0.2, ι = 128 log(√(2SAH) K), b_t = ¼ √(H² ι (χ + 1)/(χ + t)), ε = 8 √(SAH⁶ι³)/K^0.2. For realistic
K, ε is far more than H, so Z only grows; the bonus is large as well and raises tried actions, so the first action is
played again and again.

With tuning="code", the values of the authors' notebook, in units in which its rewards of 32 per step are 1:
b_t = 0.2 √(log K / t) / 32 for Q and 0.002 √(log K / t) for C, η = 0.0032 K^0.2 √(SAH⁴), ε = 1/2, and Q rises by 3/32.

Feedback: bandit. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: we had no access to the paper in print; the notebook has the same χ, frames, rates
and form of ι. It has one constraint; here each has its Z_i and C_i. The notebook also plays random actions (always at
first, then in 3 % of the steps), which is left out, and resets only Q.
What the layered form changes: a pair belongs to one step, so Q_h is Q, and SAH is the number of pairs.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import choice
from tightrope.arithmetic import log, power
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PUBLISHED, parameter
from tightrope.planning.dynamic_programming import greedy
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, state

#: Rounding: 1024^0.6 = 64 is a little less as a float.
ROUNDING = 1e-12


@state
class TripleQState(State):
    """The state of Triple-Q between two episodes."""

    values: FloatArray = numbers(least=0)  #: (1 + I, n_pairs) Q, then each C_i
    visits: NDArray[np.int64] = numbers(least=0)  #: (n_pairs,) of the frame
    earned: FloatArray = numbers(least=0)  #: (I,) C̄
    queues: FloatArray = numbers(least=0)  #: (I,) Z


class TripleQ(LearnerBase[TripleQState]):
    """Q-functions of rewards and utilities and a queue: stochastic losses, no model, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the parameters are set for.
    tuning : "published" bonuses and steps, or those of the authors' "code".
    eta, tightness : η and ε; by default those of the tuning.
    """

    name = "triple-q"
    reference = (
        "Wei, Liu, Ying: Triple-Q: a model-free algorithm for constrained reinforcement learning with sublinear regret "
        "and zero constraint violation (AISTATS 2022)"
    )
    constants = "balanced by us"
    feedback = "bandit"
    learns_from = "any"

    tuning: Literal["published", "code"] = "published"
    eta: float = parameter(POSITIVE, default=PUBLISHED)
    tightness: float = parameter(NOT_NEGATIVE, default=PUBLISHED)

    def configure(self) -> None:
        choice(self.tuning, "tuning", ("published", "code"))
        H, K, n, m = self.space.n_layers, self.episodes, self.space.n_pairs, len(self.budgets)
        self._chi, self.frame = power(K, 0.2), int(power(K, 0.6) * (1 + ROUNDING))
        iota = 128 * log(np.sqrt(2 * n) * K)
        if self.tuning == "published":
            self.default_to(eta=self._chi, tightness=8 * np.sqrt(n * H**5 * iota**3) / self._chi)
            self._lift = 2 * H**3 * np.sqrt(iota) / self.eta
            self._bonus = np.full((1 + m, 1), H * np.sqrt(iota) / 4)  # to be multiplied by √α_t
        else:
            self.default_to(eta=0.0032 * self._chi * np.sqrt(n * H**3), tightness=0.5)
            self._lift = 3 / 32
            self._bonus = np.sqrt(log(K)) * np.array([[0.2 / 32], *[[0.002]] * m])  # over √t
        self.least = (H - self.budgets) / 2  #: (I,) ρ

    def initial(self) -> TripleQState:
        n, m = self.space.n_pairs, len(self.budgets)
        return TripleQState(
            values=np.full((1 + m, n), float(self.space.n_layers)),
            visits=np.zeros(n, dtype=np.int64),
            earned=np.zeros(m),
            queues=np.zeros(m),
        )

    def offer(self, state: TripleQState) -> Offer:
        """Return the next policy (line 1)."""
        prices = state.queues / self.eta
        policy = greedy(self.space, -core.weigh(1.0, state.values[0], prices, state.values[1:], 1.0))
        return Offer(policy, prices, epoch=1 + state.observed // self.frame)

    def step(self, state: TripleQState, seen: Seen) -> TripleQState:
        """Return the next state (lines 2, 3 and, if a frame ends, 4)."""
        path, losses, g, _ = seen
        space, pairs = self.space, self.space.pair_of_tuple[path]
        visits, values, queues = state.visits.copy(), state.values.copy(), state.queues
        chosen = np.flatnonzero(self.offered(state).policy.probabilities)  # of every state but the last, in order
        V = np.pad(values[:, chosen], ((0, 0), (0, 1)))  # (1 + I, n_states) V, then each W_i
        earned = state.earned + V[1:, 0]
        visits[pairs] += 1
        t = visits[pairs]
        rate = (self._chi + 1) / (self._chi + t)
        bonus = self._bonus * (np.sqrt(rate) if self.tuning == "published" else 1 / np.sqrt(t))
        target = (1 - np.vstack([losses, g])) / 2 + V[:, space.csr.successor[path]] + bonus
        values[:, pairs] = (1 - rate) * values[:, pairs] + rate * target
        if (state.observed + 1) % self.frame == 0:
            queues, values = self._next_frame(queues, values, earned)
            visits, earned = np.zeros_like(visits), np.zeros_like(earned)
        return TripleQState(observed=state.observed + 1, values=values, visits=visits, earned=earned, queues=queues)

    def _next_frame(self, queues: FloatArray, values: FloatArray, earned: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Z (I,), and Q and each C_i (1 + I, n_pairs), of the next frame (line 4)."""
        queues = np.maximum(queues + self.least + self.tightness - earned / self.frame, 0.0)
        values = np.vstack([values[:1] + self._lift, values[1:]])
        values[:, (values >= self.space.n_layers).any(axis=0)] = self.space.n_layers
        return queues, values
