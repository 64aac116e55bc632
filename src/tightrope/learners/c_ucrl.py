"""C-UCRL: constrained upper confidence reinforcement learning with a known model (Zheng & Ratliff 2020).

Costs c of the loss and d_i of the constraints lie in [0, 1] and are known as averages c̄ and d̄_i of n(s,a) visits. In
phase k = 1, 2, …, which has k episodes:
1. In the first, play π_0, a policy within the budgets.
2. t episodes were played so far: ε(s,a) = √(log((1 + I) SAH π² t³ / (3δ)) / (2 n)).
3. π_k = argmin over all policies of <c̄ − ε, q> such that <d̄_i + ε, q> <= α_i: a linear program with optimistic losses
   and pessimistic constraints. If it has no solution, π_k = π_0.
4. In the other episodes of the phase, play π_k.

With probability 1 − δ all averages are within ε at all times (the probability of failure at time t is 6δ/(π²t²)), and
then no episode exceeds a budget in expectation. Regret is of order T^(3/4) √log(T/δ): π_0 is played √(2T) times.

Feedback: bandit. Needs to know: the space, the budgets, the model and a policy within the budgets.
Where we depart from the publication: the units of costs (`shared.counting`); estimates are clipped to [0, 1]. We had no
access to the radius in print: ε is chosen so that the probability of failure at time t is the 6δ/(π²t²) above.
What the layered form changes: there a phase is h steps of π_0 and then (k − 1) h of π_k in an infinite process, and q
is the stationary distribution; here h = L steps are an episode, q is its occupancy measure, and budgets are per episode
rather than per step.
"""

from dataclasses import field, replace

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arithmetic import log
from tightrope.confidence import Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    CountingLearner,
    averaged,
    budgets_of_shares,
    estimates,
    no_sums,
)
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.dynamic_programming import Intervals, plan
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class CUCRLState(AveragesState):
    """The state of C-UCRL between two episodes."""

    policy: Policy = part()
    multipliers: FloatArray = numbers(least=0)  #: (I,) of the last linear program
    phase: int = numbers(least=1)  #: k
    played: int = numbers(least=0)  #: episodes of the phase so far


class CUCRL(CountingLearner[CUCRLState]):
    """Optimistic losses, pessimistic constraints, known dynamics: budgets hold in every episode.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : T; it has no effect.
    model : the true one.
    safe_policy : π_0.
    level : δ, the probability that an average may ever be outside its confidence interval.
    radius_scale : multiplies ε; 1 is the published one. Below 1 the guarantee is lost.
    """

    name = "c-ucrl"
    reference = "Zheng, Ratliff: Constrained upper confidence reinforcement learning (L4DC 2020)"
    constants = "balanced by us"
    plans = False
    needs = ("model", "safe_policy")

    feedback = "bandit"

    model: LayeredMDP
    safe_policy: Policy
    ties: None = field(init=False, default=None)
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self._known = Intervals.around(self.model)

    def initial(self) -> CUCRLState:
        n = len(self.budgets)
        sums = no_sums(self.space, n, None)
        return CUCRLState(**sums, policy=self.safe_policy, multipliers=np.zeros(n), phase=1, played=0)

    def offer(self, state: CUCRLState) -> Offer:
        return Offer(state.policy, state.multipliers)

    def step(self, state: CUCRLState, seen: Seen) -> CUCRLState:
        """Return the next state: update the averages, and choose the next policy (lines 1 to 4)."""
        state = averaged(state, seen, self.space)
        phase, played, policy, multipliers = state.phase, state.played + 1, state.policy, state.multipliers
        if played == phase:
            phase, played, policy = phase + 1, 0, self.safe_policy
        elif played == 1:
            policy, multipliers = self._plan(state.counts, state.cost_sum)
        return replace(state, policy=policy, multipliers=multipliers, phase=phase, played=played)

    def _plan(self, counts: Counts, cost_sum: FloatArray) -> tuple[Policy, FloatArray]:
        """Return the policy of lines 2 and 3, and the multipliers of the budgets."""
        averages = estimates(counts, cost_sum)
        radius = self._radius(counts.episodes, averages.visits)
        loss, constraints = np.maximum(averages.costs[0] - radius, 0.0), np.minimum(averages.costs[1:] + radius, 1.0)
        best = plan(self.space, self._known, loss, constraints, self.alpha)
        return (best.policy, best.multipliers) if best.excess == 0 else (self.safe_policy, best.multipliers)

    def _radius(self, t: int, visits: ArrayLike) -> FloatArray:
        """Return ε of line 2 after t episodes, for pairs with these visits."""
        log_term = log((1 + len(self.budgets)) * self.space.n_pairs * np.pi**2 * t**3 / (3 * self.level))
        radius: FloatArray = self.radius_scale * np.sqrt(log_term / (2 * np.maximum(1, visits)))
        return radius
