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

from tightrope import core
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import Warmed, WarmStart
from tightrope.model import LayeredMDP, Policy, inner
from tightrope.planning.euclidean import EuclideanProjector
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, part, state


@state
class DriftState(State):
    """The state of drift plus penalty."""

    x: FloatArray = numbers(least=0)  #: (n_pairs,)
    multipliers: FloatArray = numbers(least=0)  #: (I,) Q
    solver: WarmStart = part(written_as="_projector")


class DriftPlusPenalty(LearnerBase[DriftState]):
    """Projected gradient steps with virtual queues: adversarial losses, known dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
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

    def configure(self) -> None:
        self.default_to(alpha=self.episodes, V=np.sqrt(self.episodes))
        self.loss_weight = self.V
        self._projector = Warmed(EuclideanProjector(self.model))

    def initial(self) -> DriftState:
        x = self.space.sum_over_successors(self.model.occupancy(Policy.uniform(self.space)))
        return DriftState(x=x, multipliers=np.zeros(len(self.budgets)), solver=self._projector.now())

    def offer(self, state: DriftState) -> Offer:
        theta = self.space.expand_to_tuples(state.x) * self.model.transitions
        return Offer(Policy.from_occupancy(self.space, theta), state.multipliers)

    def step(self, state: DriftState, seen: Seen) -> DriftState:
        """Return the next state (lines 1 and 3)."""
        Q, c = state.multipliers, self.budgets
        f, g = self._per_pair(seen.loss), self._per_pair(seen.constraints)
        x = self._projector.from_(state.solver).solve(state.x - core.weigh(self.V, f, Q, g, 2 * self.alpha))
        return DriftState(
            observed=state.observed + 1,
            x=x,
            multipliers=np.maximum(Q + inner(g, x) - c, 0.0),
            solver=self._projector.now(),
        )

    def _per_pair(self, values: FloatArray) -> FloatArray:
        """Σ_s' P(s'|s,a) values(s,a,s')."""
        return self.space.sum_over_successors(values * self.model.transitions)
