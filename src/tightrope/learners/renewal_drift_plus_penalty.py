"""Renewal optimisation: drift plus penalty over frames, the model known (Neely 2013).

An episode is a frame. In frame t, with f̄ and ḡ_i the means of all losses and constraints seen before, from Q(1) = 0:
1. π_t = argmin over all policies of <V f̄ + Σ_i Q_i(t) ḡ_i, θ> / L, θ the measure of the policy: dynamic programming.
2. Play π_t; on its path it uses y_i(t) of budget i.
3. Q_i(t+1) = max{Q_i(t) + y_i(t) − c_i, 0}.

The constrained problem becomes an unconstrained one in every frame, with the price Q_i of each budget. Each π_t is
deterministic; only their average meets the budgets. The loss is within O(1/V) of the best, and Q is O(V).

`drift-plus-penalty` is from another publication: it takes gradient steps, and losses may be adversarial. Here every
frame is planned on averages, for losses whose mean does not change.

Feedback: full information. Needs to know: the space, the budgets, the number of episodes T and the model.
Where we depart from the publication: it knows the expected costs of a policy, which are averages here; it leaves V
open, and √T makes both errors of order 1/√T.
What the layered form changes: there the length of a frame depends on the policy, and line 1 minimises the ratio of cost
to length; here all episodes have length L, so that this and the second algorithm of the publication, without the
ratio, are the same. Its stochastic shortest path problem is one pass over the layers.
"""

import numpy as np

from tightrope import core
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.model import LayeredMDP
from tightrope.planning.hindsight import best_policy
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, state


@state
class RenewalState(State):
    """The state of drift plus penalty over frames."""

    mean_loss: FloatArray = numbers()  #: (n_tuples,) f̄
    mean_constraints: FloatArray = numbers()  #: (I, n_tuples) ḡ
    multipliers: FloatArray = numbers(least=0)  #: (I,) Q


class RenewalDriftPlusPenalty(LearnerBase[RenewalState]):
    """Plans every frame at the price of virtual queues: stochastic losses, known dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
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

    def configure(self) -> None:
        self.default_to(V=np.sqrt(self.episodes))
        self.loss_weight = self.V

    def initial(self) -> RenewalState:
        n, n_tuples = len(self.budgets), self.space.n_tuples
        return RenewalState(
            mean_loss=np.zeros(n_tuples), mean_constraints=np.zeros((n, n_tuples)), multipliers=np.zeros(n)
        )

    def offer(self, state: RenewalState) -> Offer:
        """Return the next policy (line 1)."""
        Q = state.multipliers
        priced = core.weigh(self.V, state.mean_loss, Q, state.mean_constraints, 1.0)
        return Offer(best_policy(self.model, priced)[1], Q)

    def step(self, state: RenewalState, seen: Seen) -> RenewalState:
        """Return the next state (line 3)."""
        path, f, g, _ = seen
        t = state.observed + 1
        return RenewalState(
            observed=t,
            mean_loss=state.mean_loss + (f - state.mean_loss) / t,
            mean_constraints=state.mean_constraints + (g - state.mean_constraints) / t,
            multipliers=np.maximum(state.multipliers + g[:, path].sum(axis=1) - self.budgets, 0.0),
        )
