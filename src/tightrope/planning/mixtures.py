"""The best mixture of policies within budgets, by dynamic programming.

Over all policies and all models in the intervals, as measures x(s,a) = Σ_s' q(s,a,s'):

    minimise <c, x>   subject to   <d_i, x> <= α_i,   i = 1..I.

Without the budgets this is dynamic programming, so it is solved by the simplex method over the budgets alone, whose
columns dynamic programming supplies (Dantzig–Wolfe; `core/extended_lp.hpp`): a few passes over the tuples.
Weak duality says how good the answer is. Intervals of width zero are a known model.
"""

import numpy as np

from tightrope import core
from tightrope.arithmetic import combine, dot
from tightrope.model import Policy
from tightrope.planning.intervals import Intervals
from tightrope.planning.policies import deterministic
from tightrope.space import FloatArray, LayeredSpace

#: What the simplex method takes for zero, as a share of what an answer may be off by; the second is for budgets that
#: rounding alone decides on, and for those at which it goes in circles.
ZEROS = (1e-4, 1e-2)

#: Passes of dynamic programming before giving up; ordinary problems take a handful for each budget.
MAX_PIVOTS = 1000


def best_response(space: LayeredSpace, intervals: Intervals, cost: FloatArray) -> tuple[float, FloatArray, Policy]:
    """min <cost, x> without budgets: the value, x (n_pairs,), and the policy, which is deterministic."""
    V, best, p = core.optimistic_actions(space.native, intervals.lower, intervals.upper, cost)
    return float(V[0]), core.visits(space.native, best, p), deterministic(space, best)


def best_mixture(
    space: LayeredSpace, intervals: Intervals, c: FloatArray, D: FloatArray, alpha: FloatArray, allowed: float
) -> "Mixture":
    """The best x for c (n_pairs,), D (I, n_pairs), alpha (I,); if none is within alpha, one of the least excess.

    Costs are in units of the largest. What is not good to `allowed` after all is returned, too: ask `good`.
    """
    exactly, roughly = (zero * allowed for zero in ZEROS)
    mixture = Mixture(space, intervals, c, D, alpha, allowed, exactly)
    if mixture.good:
        return mixture
    uneven = roughly * np.random.default_rng(0).random(len(alpha))  # no two policies use up budgets at once
    return Mixture(space, intervals, c, D, alpha + uneven, allowed, roughly)


class Mixture:
    """One run of the simplex method, and how good its answer is."""

    def __init__(
        self,
        space: LayeredSpace,
        intervals: Intervals,
        c: FloatArray,
        D: FloatArray,
        alpha: FloatArray,
        allowed: float,
        zero: float,
    ) -> None:
        for _ in range(2):
            self.over, self.multipliers, self.x = core.best_mixture(
                space.native, intervals.lower, intervals.upper, c, D, alpha, zero, MAX_PIVOTS
            )
            self.excess = float((dot(D, self.x) - alpha).max(initial=0.0))
            if not self.over or self.excess > allowed:
                break
            alpha = alpha + self.excess + 10 * zero  # over by rounding alone: let that pass
        if self.over:
            self.multipliers /= self.multipliers.sum()
        # weak duality: no x is better than the best for these prices; without one within α, none exceeds it less
        prices = combine(self.multipliers, D)
        prices = prices if self.over else c + prices
        least, _, self.elsewhere = best_response(space, intervals, prices)
        self.gap = float((self.excess if self.over else dot(c, self.x)) - (least - dot(self.multipliers, alpha)))
        self.good = self.gap <= allowed * (1 + self.multipliers.sum()) and (self.over or self.excess <= allowed)
