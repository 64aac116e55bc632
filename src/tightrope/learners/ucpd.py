"""UCPD: upper confidence primal-dual mirror descent (Qiu, Wei, Yang, Ye, Wang: Algorithm 1).

In every episode t:
1. θ^t = argmin over θ in Δ(ℓ(t), ζ) of <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, θ> + α D(θ, θ̃^{t-1}), where
   θ̃^{t-1} = (1-λ) θ^{t-1} + λ uniform mixes in mass that is uniform on every layer; θ^1 is the measure of the
   uniform policy where every successor is as likely (uniform on every layer, too, if layers are dense).
2. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s').
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, θ^t> − c_i, 0}: the constraints seen last with the measure just chosen.
4. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and draw the confidence set Δ anew around the frequencies.

Three options, each off in the publication, are written next to the line that they change (docs/theory.md):
- charge="played" in 3: Q_i(t) = max{Q_i(t-1) + e_i, 0}, e_i = ĝ_i^{t-1}(π_{t-1}) − c_i what the policy just played uses
  beyond its budget by what was counted; <g_i^{t-1}, θ^t> is what an optimist believes.
- proportional=κ in 1: Q_i(t-1) + κ √T [e_i]_+ in place of Q_i(t-1).
- draws="mean" in 1 and 3: the mean of g_i^1, …, g_i^{t-1} in place of g_i^{t-1}.

Feedback: full information. Needs to know: the space, the budgets and the number of episodes T.
The epoch rule and the treatment of unvisited pairs follow docs/errata.md.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import choice
from tightrope.learners.base import Episode, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, POSITIVE_SHARE, PUBLISHED, carried, parameter
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
    charge : what the multipliers are charged for: "optimistic", <g, θ> of the θ chosen, as published; or "played".
    proportional : κ, weight of what the policy just played uses beyond its budgets; 0 as published.
    draws : which constraints count: the "last" draw, as published, or the "mean" of all so far.

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
    constants = "published"

    alpha: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)
    mixing: float = parameter(POSITIVE_SHARE, default=PUBLISHED)
    charge: Literal["optimistic", "played"] = "optimistic"
    proportional: float = parameter(NOT_NEGATIVE, default=0.0)
    draws: Literal["last", "mean"] = "last"
    multipliers: FloatArray = carried()  #: Q
    mean_constraints: FloatArray = carried(since=4)  #: (I, n_tuples) of all draws; (0, 0) where the last one counts

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.charge, "charge", ("optimistic", "played"))
        choice(self.draws, "draws", ("last", "mean"))
        L, T = self.space.n_layers, self.episodes
        self.default_to(alpha=L * T, V=L * np.sqrt(T), mixing=1 / T)
        self._kappa = self.proportional * float(np.sqrt(T))
        self._looks_back = self.charge == "played" or self._kappa > 0
        averaged = (len(self.budgets), self.space.n_tuples) if self.draws == "mean" else (0, 0)
        self.mean_constraints = np.zeros(averaged)

    @property
    def loss_weight(self) -> float:
        return self.V

    def observe(self, episode: Episode) -> None:
        """Lines 6 to 15 of Algorithm 1 for episode t, then θ, the policy and Q for episode t + 1."""
        path, f, g = self._read(episode)
        Q, c, mean = self.multipliers, self.budgets, self.mean_constraints
        if self.draws == "mean":
            g = mean = mean + (g - mean) / (self.observed + 1)
        e: Any = self._used(g) - c if self._looks_back else 0.0  # by how much π_t is over its budgets
        weights = Q + self._kappa * np.maximum(e, 0.0) if self._kappa > 0 else Q
        psi = core.weigh(self.V, f, weights, g, self.alpha)  # (V f + Σ_i Q_i g_i) / α
        reference = core.mix(self.space.native, self.theta, self.mixing)  # (1 − λ) θ + λ uniform
        move = self._move(path, reference, psi)  # counts, epoch, θ and its policy
        Q = core.dual_step(Q, g, move["theta"], c) if self.charge == "optimistic" else np.maximum(Q + e, 0.0)
        self._learn(**move, multipliers=Q, mean_constraints=mean)

    def _used(self, g: FloatArray) -> FloatArray:
        """(I,) what the policy just played uses by what was counted, and by θ where little was."""
        laws, pi = self._evidence(self.counts), self.policy.probabilities
        use: FloatArray = core.uses(self.space.native, pi, *laws, self.theta, g)
        return use

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        # |<g, θ>|, |c| <= L
        most = 3 * self.space.n_layers * self.observed
        return super().bounds() | {"multipliers": (0, most), "mean_constraints": sums_of(1, least=-1)}
