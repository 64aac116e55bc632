"""What optimists have in common: averages of costs and frequencies of moves, and how far they can be trusted.

Of δ a third each is for losses, constraints and transitions: 6/δ = 2 · 3/δ. The units are those of `shared.averaging`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arithmetic import log
from tightrope.learners.base import require
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.averaging import AveragingLearner, Estimates
from tightrope.model import flat
from tightrope.planning.intervals import Intervals
from tightrope.space import FloatArray, LayeredSpace


class EstimatingLearner(AveragingLearner):
    """Averages with their confidence radii."""

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def _cost_radius(self, visits: NDArray[np.int64]) -> FloatArray:
        """β^c(s,a) = √(2 log(6 SAH max(1, I) K / δ) / max(1, n)) (Hoeffding), times the scale."""
        log_term = log(6 * self.space.n_pairs * max(1, len(self.budgets)) * self.episodes / self.level)
        radius: FloatArray = self.radius_scale * np.sqrt(2 * log_term / np.maximum(1, visits))
        return radius

    def _box(self, estimates: Estimates) -> Intervals:
        """P̂ ± β^p with log(6 S²AH K / δ) (empirical Bernstein), β^p times the scale."""
        log_term = log(6 * self.space.n_tuples * self.episodes / self.level)
        return Intervals.of_counts(self.space, estimates.N, estimates.M, log_term, self.radius_scale)


def largest_multiplier(space: LayeredSpace, slack: float) -> float:
    """ρ = L / γ >= Σ_i λ*_i, γ = slack / 2 the Slater constant for constraints in [0, 1]; 0 without budgets."""
    require(slack > 0, f"slack is {slack:.6g}; a policy strictly within the budgets is needed (Slater's condition)")
    return 2 * space.n_layers / slack


def safe_slack(usage: ArrayLike, budgets: FloatArray) -> tuple[float, FloatArray]:
    """γ, the least that a policy of this usage leaves of a budget, for constraints in [0, 1]; and its usage, (I,)."""
    used = flat(usage, len(budgets), "safe_usage")
    gamma = float(np.min((budgets - used) / 2, initial=np.inf))
    require(gamma > 0, f"the safe policy uses {used} of the budgets {budgets}; less is needed of each")
    return gamma, used
