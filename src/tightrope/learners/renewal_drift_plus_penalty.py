"""Renewal optimisation: drift plus penalty over frames, the model known (Neely 2013).

An episode is a frame. In frame t, with f̄ and ḡ_i the means of all losses and constraints seen before, from Q(1) = 0:
1. π_t = argmin over all policies of <V f̄ + Σ_i Q_i(t) ḡ_i, θ> / L, θ the measure of the policy: dynamic programming.
2. Play π_t; on its path it uses y_i(t) of budget i.
3. Q_i(t+1) = max{Q_i(t) + y_i(t) − c_i, 0}.

A constrained problem becomes one without constraints in every frame, at the price Q_i of each budget. Each π_t is
deterministic; what meets the budgets is their average. The loss is within O(1/V) of the best, Q within O(V).

`drift-plus-penalty` is another publication's: it takes steps of a gradient from the measure before, and its losses may
change as they like. Here every frame is planned anew on averages, which is for losses whose mean does not change.

Feedback: full information. Needs to know: the space, the budgets, the number of episodes T and the model.
Where we depart from the publication: it knows what a policy is expected to cost, here averages stand for that; it
leaves V free, and √T makes both errors of order 1/√T.
What the layered form changes: frames there have lengths that depend on the policy, and line 1 minimises a ratio, cost
of a frame over its length; all episodes have length L, which makes the ratio, and the second algorithm of the
publication, which has none, the same. Its stochastic shortest path problem is one pass over the layers.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.learners.base import Episode, LearnerBase, sums_of
from tightrope.learners.parameters import POSITIVE, PUBLISHED, carried, parameter
from tightrope.model import LayeredMDP
from tightrope.planning.hindsight import best_policy
from tightrope.space import FloatArray


class RenewalDriftPlusPenalty(LearnerBase):
    """Plans every frame at the price of virtual queues: stochastic losses, known dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : T, the number of episodes that V is set for.
    model : the true one.
    V : weight of the loss; by default √T.
    """

    name = "renewal-drift-plus-penalty"
    reference = "Neely: Dynamic optimization and learning for renewal systems (IEEE Trans. Automatic Control 2013)"
    constants = "balanced by us"
    needs = ("model",)
    learns_from = "any"

    model: LayeredMDP
    V: float = parameter(POSITIVE, default=PUBLISHED)
    mean_loss: FloatArray = carried()  #: f̄
    mean_constraints: FloatArray = carried()  #: (I, n_tuples) ḡ
    multipliers: FloatArray = carried()  #: Q

    def __post_init__(self) -> None:
        super().__post_init__()
        self.default_to(V=np.sqrt(self.episodes))
        self.mean_loss = np.zeros(self.space.n_tuples)
        self.mean_constraints = np.zeros((len(self.budgets), self.space.n_tuples))
        self._restored()

    @property
    def loss_weight(self) -> float:
        return self.V

    def observe(self, episode: Episode) -> None:
        """Line 3, and line 1 for the next frame."""
        path, f, g = self._read(episode)
        t = self.observed + 1
        f_mean = self.mean_loss + (f - self.mean_loss) / t
        g_mean = self.mean_constraints + (g - self.mean_constraints) / t
        Q = np.maximum(self.multipliers + g[:, path].sum(axis=1) - self.budgets, 0.0)
        _, policy = best_policy(self.model, core.weigh(self.V, f_mean, Q, g_mean, 1.0))
        self._learn(mean_loss=f_mean, mean_constraints=g_mean, multipliers=Q, policy=policy)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        means, most = sums_of(1, least=-1), 3 * self.space.n_layers * self.observed
        return super().bounds() | {"mean_loss": means, "mean_constraints": means, "multipliers": (0, most)}

    def _restored(self) -> None:
        priced = core.weigh(self.V, self.mean_loss, self.multipliers, self.mean_constraints, 1.0)
        _, self.policy = best_policy(self.model, priced)
