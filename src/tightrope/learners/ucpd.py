"""UCPD: upper confidence primal-dual mirror descent (Qiu, Wei, Yang, Ye, Wang: Algorithm 1).

In every episode t:
1. θ^t = argmin over θ in Δ(ℓ(t), ζ) of <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, θ> + α D(θ, θ̃^{t-1}), where
   θ̃^{t-1} = (1-λ) θ^{t-1} + λ uniform mixes some uniform mass in; θ^1 is uniform on every layer.
2. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s').
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, θ^t> − c_i, 0}: the constraints seen last with the measure just chosen.
4. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and draw the confidence set Δ anew around the frequencies.

Feedback: full information. Needs to know: the space, the budgets and the number of episodes T.
The epoch rule and the treatment of unvisited pairs follow docs/errata.md.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.learners.base import Episode
from tightrope.learners.kernels.primal_dual import dual_step, mix, weigh
from tightrope.learners.parameters import POSITIVE, POSITIVE_SHARE, PUBLISHED, carried, parameter
from tightrope.learners.shared.mirror import ConfidentLearner
from tightrope.space import FloatArray


class UCPD(ConfidentLearner):
    """Upper confidence primal-dual: adversarial losses, unknown dynamics, budgets that hold in the long run.

    Parameters
    ----------
    space, budgets : what is known beforehand; budgets has one entry per constraint.
    episodes : T, the number of episodes that the parameters are set for.
    confidence : the name of a confidence rule, or a rule of your own (`tightrope.confidence`).
    alpha, V, mixing : α, V and λ; by default the theorem's L·T, L·√T and 1/T.
    level : ζ, the probability that the model may leave its confidence set. The theorem asks for at most
        1/(4 + 8L/σ̄), where σ̄ depends on the problem; the default 0.01 is admissible whenever σ̄ >= L/12.
    radius_scale : multiplies the confidence radius; 1 is the published one. This and `level` are for a rule given
        by name; a rule of your own has them, or not, in itself.

    Example
    -------
    >>> import numpy as np
    >>> from tightrope import LayeredSpace
    >>> space = LayeredSpace.dense(layer_sizes=[1, 2, 1], n_actions=2)
    >>> learner = UCPD(space, budgets=[0.5], episodes=100)
    >>> learner.observe(Episode([0, 1, 3], [0, 1], loss=np.zeros(8), constraints=np.zeros((1, 8))))
    >>> learner.policy.probabilities
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """

    name = "ucpd"
    reference = (
        "Qiu, Wei, Yang, Ye, Wang: Upper confidence primal-dual reinforcement learning for CMDP with adversarial loss "
        "(NeurIPS 2020)"
    )

    alpha: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)
    mixing: float = parameter(POSITIVE_SHARE, default=PUBLISHED)
    multipliers: FloatArray = carried()  #: Q

    def __post_init__(self) -> None:
        super().__post_init__()
        L, T = self.space.n_layers, self.episodes
        self.default_to(alpha=L * T, V=L * np.sqrt(T), mixing=1 / T)
        self._tuples_before = self.space.tuples_before

    def observe(self, episode: Episode) -> None:
        """Lines 6 to 15 of Algorithm 1 for episode t, then θ, the policy and Q for episode t + 1."""
        path, f, g = self._read(episode)
        Q, c = self.multipliers, self.budgets
        psi, reference = np.empty(self.space.n_tuples), np.empty(self.space.n_tuples)
        weigh(self.V, f, Q, g, self.alpha, psi)  # (V f + Σ_i Q_i g_i) / α
        mix(self._tuples_before, self.theta, self.mixing, reference)  # (1 − λ) θ + λ uniform
        move = self._move(path, reference, psi)  # counts, epoch, θ and its policy
        self._learn(**move, multipliers=dual_step(Q, g, move["theta"], c))  # max{Q + <g, θ> − c, 0}

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"multipliers": (0, 3 * self.space.n_layers * self.observed)}  # |<g, θ>|, |c| <= L
