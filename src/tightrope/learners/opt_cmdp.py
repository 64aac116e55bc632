"""OptCMDP: optimism by an extended linear program (Efroni, Mannor & Pirotta 2020, Algorithm 1).

In every episode k:
1. From all visits before it: averages c̄, d̄_i of the costs, frequencies p̄ of the successors, n visits of each pair.
2. c̃ = c̄ − β^c and d̃_i = d̄_i − β^c, with β^c = √(2 log(6 SAH max(1, I) K/δ) / n).
3. (π_k, p_k) = argmin of <c̃, q> over all policies and all models with |p(s'|s,a) − p̄(s'|s,a)| <= β^p(s,a,s') such that
   <d̃_i, q> <= α_i; β^p = √(4 p̄ (1 − p̄) log(6 S²AH K/δ) / n) + 14 log(…) / (3 n).
4. Play π_k.

Its regret and its violation, without paying back, are of order √K for losses and constraints drawn independently.

Feedback: bandit, as published. Needs to know: the space, the budgets and the number of episodes K.
Where we depart from the publication: the units of costs (`shared.averaging`); step 3, one LP over S²AH variables
there, is solved exactly by a few passes of dynamic programming (`planning.mixtures`), so that every episode has its
plan. The program has an answer with probability 1 − δ; if it has none, the mixture that exceeds the budgets least is
played.
"""

from tightrope.learners.base import BanditEpisode
from tightrope.learners.shared.averaging import Estimates
from tightrope.learners.shared.estimating import EstimatingLearner
from tightrope.planning.extended_lp import OptimisticPlan, plan


class OptCMDP(EstimatingLearner):
    """Optimistic linear programming: stochastic losses, unknown dynamics, budgets that are never paid back.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : K, the number of episodes that the confidence terms are set for.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is the published one.
    """

    name = "opt-cmdp"
    reference = "Efroni, Mannor, Pirotta: Exploration-exploitation in constrained MDPs (2020)"
    constants = "published"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._restored()

    def observe(self, episode: BanditEpisode) -> None:
        """Line 1 after the episode, and lines 2 and 3 for the next one."""
        sums = self._sums_after(episode)
        best = self._plan(sums.estimates())
        self._learn(**sums._asdict(), policy=best.policy, multipliers=best.multipliers)

    def _plan(self, estimates: Estimates) -> OptimisticPlan:
        """Lines 2 and 3."""
        optimistic = estimates.costs - self._cost_radius(estimates.visits)
        return plan(self.space, self._box(estimates), optimistic[0], optimistic[1:], self.alpha)

    def _restored(self) -> None:
        best = self._plan(self.sums.estimates())
        self.policy, self.multipliers = best.policy, best.multipliers
