"""OptCMDP: optimism by an extended linear program (Efroni, Mannor & Pirotta 2020, Algorithm 1).

In every episode k:
1. From all visits before it: averages c̄, d̄_i of the costs, frequencies p̄ of the successors, n visits of each pair.
2. c̃ = c̄ − β^c and d̃_i = d̄_i − β^c, with β^c = √(2 log(6 SAH max(1, I) K/δ) / n).
3. (π_k, p_k) = argmin of <c̃, q> over all policies and all models with |p(s'|s,a) − p̄(s'|s,a)| <= β^p(s,a,s') such that
   <d̃_i, q> <= α_i; β^p = √(4 p̄ (1 − p̄) log(6 S²AH K/δ) / n) + 14 log(…) / (3 n).
4. Play π_k.

Its regret and its strong violation are of order √K if losses and constraints are drawn independently.

Feedback: bandit, as published. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: the units of costs (`shared.counting`); line 3, an LP with S²AH variables, is
solved exactly by a few passes of dynamic programming, fast enough for every episode. With probability 1 − δ it has a
solution; if it has none, the mixture with the least excess is played.
"""

from tightrope.learners.base import Offer
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import (
    AveragesState,
    AveragingLearner,
    Estimates,
    Radii,
    budgets_of_shares,
    estimates,
)
from tightrope.planning.dynamic_programming import OptimisticPlan, plan


class OptCMDP(AveragingLearner):
    """Optimistic linear programming: stochastic losses, unknown dynamics, no compensation between episodes.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the confidence terms are set for.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is the published one.
    """

    name = "opt-cmdp"
    reference = "Efroni, Mannor, Pirotta: Exploration-exploitation in constrained MDPs (2020)"
    constants = "published"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self._radii = Radii(self.space, len(self.budgets), self.episodes, self.level, self.radius_scale)

    def offer(self, state: AveragesState) -> Offer:
        best = self._plan(estimates(state.counts, state.cost_sum))
        return Offer(best.policy, best.multipliers, state.counts.epoch)

    def _plan(self, averages: Estimates) -> OptimisticPlan:
        """Return the plan of lines 2 and 3."""
        optimistic = averages.costs - self._radii.of_costs(averages.visits)
        return plan(self.space, self._radii.box(averages), optimistic[0], optimistic[1:], self.alpha)
