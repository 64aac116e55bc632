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

from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, Counts
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.kernels.occupancy import policy_of
from tightrope.learners.base import Episode, checked_budgets, checked_episode
from tightrope.model import Policy
from tightrope.projection import Projector
from tightrope.space import LayeredSpace


class UCPD:
    """Upper confidence primal-dual: adversarial losses, unknown dynamics, budgets that hold in the long run.

    Parameters
    ----------
    space, budgets : what is known beforehand; budgets has one entry per constraint.
    episodes : T, the number of episodes that the parameters are set for.
    confidence : the name of a confidence rule, or a rule of your own (`tightrope.confidence`).
    alpha, V, mixing : α, V and λ; by default the theorem's L·T, L·√T and 1/T.
    level : ζ, the probability that the model may leave its confidence set. The theorem asks for at most
        1/(4 + 8L/σ̄), where σ̄ depends on the problem; the default 0.01 is admissible whenever σ̄ >= L/12.
    radius_scale : multiplies the confidence radius; 1 is the published one.

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

    def __init__(
        self,
        space: LayeredSpace,
        budgets: ArrayLike,
        *,
        episodes: int,
        confidence: str | ConfidenceRule = "paper",
        alpha: float | None = None,
        V: float | None = None,
        mixing: float | None = None,
        level: float = 0.01,
        radius_scale: float = 1.0,
    ) -> None:
        L, T = space.n_layers, episodes
        _require(T >= 1, f"episodes is {T}; at least one is needed")
        _require(0 < level < 1, f"level is {level}; ζ is a probability strictly between 0 and 1")
        _require(0 <= radius_scale < np.inf, f"radius_scale is {radius_scale}; it must be finite and not negative")
        self.space = space
        self.budgets = checked_budgets(space, budgets)
        self.episodes = T
        self.alpha = float(L * T if alpha is None else alpha)
        self.V = float(L * np.sqrt(T) if V is None else V)
        self.mixing = float(1 / T if mixing is None else mixing)
        self.level = level
        self.radius_scale = radius_scale
        _require(0 < self.alpha < np.inf, f"alpha is {self.alpha}; it must be positive")
        _require(0 < self.V < np.inf, f"V is {self.V}; it must be positive")
        _require(0 < self.mixing <= 1, f"mixing is {self.mixing}; λ lies in (0, 1]")
        if isinstance(confidence, str):
            if confidence not in CONFIDENCE_RULES:
                raise InvalidInputError(f"no confidence rule {confidence!r}; there is {', '.join(CONFIDENCE_RULES)}")
            self.rule: ConfidenceRule = CONFIDENCE_RULES[confidence](episodes=T, level=level, scale=radius_scale)
        else:
            self.rule = confidence
        self._confidence_name = confidence if isinstance(confidence, str) else type(confidence).__name__

        self.counts = Counts(space)
        self.confidence = self.rule(space, *self.counts.totals())
        self.theta = space.uniform()
        self.multipliers = np.zeros(len(self.budgets))
        self.policy = self._policy_of_theta()
        self._uniform = self.mixing * space.uniform()
        self._next_theta = np.empty(space.n_tuples)
        self._projector = Projector(space)
        self._observed = 0

    def observe(self, episode: Episode) -> None:
        """Lines 6 to 15 of Algorithm 1 for episode t, then θ, the policy and Q for episode t + 1."""
        path, f, g = checked_episode(self.space, len(self.budgets), self._observed + 1, episode)
        counts, Q, c = self.counts, self.multipliers, self.budgets

        counts.add(path)
        new_epoch = counts.epoch_is_over(path)
        confidence = self.rule(self.space, *counts.totals()) if new_epoch else self.confidence

        cost = (self.V * f + Q @ g) / self.alpha
        reference = (1 - self.mixing) * self.theta + self._uniform
        theta = self._next_theta
        try:
            self._projector.solve(reference, cost, confidence, theta)
        except ConvergenceError:
            counts.add(path, times=-1)
            raise

        if new_epoch:
            counts.start_epoch()
            self.confidence = confidence
        self.theta, self._next_theta = theta, self.theta
        self.multipliers = np.maximum(Q + g @ theta - c, 0.0)
        self.policy = self._policy_of_theta()
        self._observed += 1

    def _policy_of_theta(self) -> Policy:
        probabilities = np.empty(self.space.n_pairs)
        policy_of(self.space.csr, self.theta, probabilities)
        return Policy._of_kernel(self.space, probabilities)

    @property
    def epoch(self) -> int:
        """ℓ(t)."""
        return self.counts.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        return {
            "learner": self.name,
            "episodes": self.episodes,
            "alpha": self.alpha,
            "V": self.V,
            "mixing": self.mixing,
            "level": self.level,
            "confidence": self._confidence_name,
            "radius_scale": self.radius_scale,
        }


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidInputError(otherwise)
