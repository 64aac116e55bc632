"""The best mixture of policies within budgets, by dynamic programming.

Over all policies and all models in the intervals, as measures x(s,a) = Σ_s' q(s,a,s'):

    minimise <c, x>   subject to   <d_i, x> <= α_i,   i = 1..I.

Without the budgets this is dynamic programming, so it is solved by the simplex method over the budgets alone, whose
columns dynamic programming supplies (Dantzig–Wolfe; `kernels.extended_lp.best_mixture`): a few passes over the tuples.
Weak duality says how good the answer is. Intervals of width zero are a known model.
"""

import numpy as np

from tightrope.model import Policy
from tightrope.planning.intervals import Intervals
from tightrope.planning.kernels import extended_lp as kernels
from tightrope.planning.policies import deterministic
from tightrope.space import FloatArray, LayeredSpace

#: What the simplex method takes for zero, as a share of what an answer may be off by; the second is for budgets that
#: rounding alone decides on, and for those at which it goes in circles.
ZEROS = (1e-4, 1e-2)

#: Passes of dynamic programming before giving up; ordinary problems take a handful for each budget.
MAX_PIVOTS = 1000


def best_response(space: LayeredSpace, intervals: Intervals, cost: FloatArray) -> tuple[float, FloatArray, Policy]:
    """min <cost, x> without budgets: the value, x (n_pairs,), and the policy, which is deterministic."""
    V, d, p = np.empty(space.n_states), np.empty(space.n_states), np.empty(space.n_tuples)
    best, x = np.empty(space.n_states - 1, dtype=np.int64), np.empty(space.n_pairs)
    kernels.optimistic_actions(space.csr, intervals.lower, intervals.upper, cost, V, best, p)
    kernels.visits(space.csr, best, p, d, x)
    return float(V[0]), x, deterministic(space, best)


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
        self.x, self.multipliers = np.empty(space.n_pairs), np.empty(len(alpha))
        for _ in range(2):
            self.over = kernels.best_mixture(
                space.csr, intervals.lower, intervals.upper, c, D, alpha, zero, MAX_PIVOTS, self.multipliers, self.x
            )
            self.excess = float((D @ self.x - alpha).max(initial=0.0))
            if not self.over or self.excess > allowed:
                break
            alpha = alpha + self.excess + 10 * zero  # over by rounding alone: let that pass
        if self.over:
            self.multipliers /= self.multipliers.sum()
        # weak duality: no x is better than the best for these prices; without one within α, none exceeds it less
        prices = self.multipliers @ D if self.over else c + self.multipliers @ D
        least, _, self.elsewhere = best_response(space, intervals, prices)
        self.gap = float((self.excess if self.over else c @ self.x) - (least - self.multipliers @ alpha))
        self.good = self.gap <= allowed * (1 + self.multipliers.sum()) and (self.over or self.excess <= allowed)
