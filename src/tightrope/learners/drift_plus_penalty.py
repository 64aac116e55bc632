"""Drift plus penalty: projected gradient steps with virtual queues, the model known (Wei, Yu & Neely 2018).

In every episode t, over measures x(s,a) of pairs:
1. x^t = argmin over the occupancy measures x of the model of
   <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, x> + α ‖x − x^{t-1}‖²; x^1 is that of the uniform policy.
2. Play π_t(a|s) ∝ x^t(s,a).
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, x^t> − c_i, 0}, Q(1) = 0.

Step 1 minimises a bound on the drift of ½‖Q‖² plus V times the loss; it is a Euclidean projection (`euclidean`).

Feedback: full information. Needs to know: the space, the budgets, the number of episodes T and the model.
Where we depart from the publication: it has one policy per time slot of an endless, ergodic process (several of them,
coupled by the constraints); here a slot is an episode, there is one process, and budgets c_i stand where it has 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.learners.base import Episode, LearnerBase
from tightrope.learners.parameters import POSITIVE, PUBLISHED, carried, parameter
from tightrope.model import LayeredMDP, Policy, check_measure, inner
from tightrope.planning.euclidean import EuclideanProjector
from tightrope.space import FloatArray


class DriftPlusPenalty(LearnerBase):
    """Projected gradient steps with virtual queues: adversarial losses, known dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    alpha, V : α and V; by default the published T and √T.
    """

    name = "drift-plus-penalty"
    reference = (
        "Wei, Yu, Neely: Online learning in weakly coupled Markov decision processes: a convergence time study "
        "(SIGMETRICS 2018)"
    )
    constants = "balanced by us"
    needs = ("model",)
    learns_from = "any"

    model: LayeredMDP
    alpha: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)
    x: FloatArray = carried()
    multipliers: FloatArray = carried()  #: Q
    _projector: EuclideanProjector = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.default_to(alpha=self.episodes, V=np.sqrt(self.episodes))
        self.x = self.space.sum_over_successors(self.model.occupancy(Policy.uniform(self.space)))
        self._projector = EuclideanProjector(self.model)
        self.policy = self._policy_of(self.x)

    @property
    def loss_weight(self) -> float:
        return self.V

    def observe(self, episode: Episode) -> None:
        """Line 1, the policy and line 3 for the next episode."""
        _, f, g = self._read(episode)
        Q, c = self.multipliers, self.budgets
        f_pairs, g_pairs = self._per_pair(f), self._per_pair(g)
        x = self._projector.solve(self.x - core.weigh(self.V, f_pairs, Q, g_pairs, 2 * self.alpha))
        self._learn(x=x, policy=self._policy_of(x), multipliers=np.maximum(Q + inner(g_pairs, x) - c, 0.0))

    def _per_pair(self, values: FloatArray) -> FloatArray:
        """Σ_s' P(s'|s,a) values(s,a,s')."""
        return self.space.sum_over_successors(values * self.model.transitions)

    def _policy_of(self, x: FloatArray) -> Policy:
        return Policy.from_occupancy(self.space, self.space.expand_to_tuples(x) * self.model.transitions)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"x": (0, np.inf), "multipliers": (0, 3 * self.space.n_layers * self.observed)}

    def _restored(self) -> None:
        check_measure(self.space, self.space.expand_to_tuples(self.x) * self.model.transitions, "x")
        self.policy = self._policy_of(self.x)
