"""What optimists have in common: averages of costs and frequencies of moves, and how far they can be trusted.

Of δ a third each is for losses, constraints and transitions: 6/δ = 2 · 3/δ. The units are those of `shared.averaging`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arithmetic import log
from tightrope.learners.base import require
from tightrope.learners.shared.averaging import Estimates
from tightrope.model import flat
from tightrope.planning.intervals import Intervals
from tightrope.space import FloatArray, LayeredSpace


@dataclass(frozen=True, slots=True)
class Radii:
    """How far averages and frequencies can be trusted, with probability 1 − δ for all of K episodes."""

    space: LayeredSpace
    n_budgets: int
    episodes: int  #: K
    level: float  #: δ
    scale: float  #: multiplies every radius

    def of_costs(self, visits: NDArray[np.int64]) -> FloatArray:
        """Return β^c(s,a) = √(2 log(6 SAH max(1, I) K / δ) / max(1, n)) (Hoeffding), times the scale."""
        log_term = log(6 * self.space.n_pairs * max(1, self.n_budgets) * self.episodes / self.level)
        radius: FloatArray = self.scale * np.sqrt(2 * log_term / np.maximum(1, visits))
        return radius

    def box(self, estimates: Estimates) -> Intervals:
        """Return P̂ ± β^p with log(6 S²AH K / δ) (empirical Bernstein), β^p times the scale."""
        log_term = log(6 * self.space.n_tuples * self.episodes / self.level)
        return Intervals.of_counts(self.space, estimates.N, estimates.M, log_term, self.scale)


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
