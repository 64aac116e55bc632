"""Planning in the face of uncertainty: the best policy for the best model between bounds, within budgets.

The model is known only by intervals, lower <= P(s'|s,a) <= upper, and what a pair costs by an estimate. The optimistic
LP is over all policies and all models in the intervals at once, as measures q(s,a,s') (the extended LP of Efroni,
Mannor & Pirotta):

    minimise <c, x>   subject to   <d_i, x> <= α_i,   x(s,a) = Σ_s' q(s,a,s'),
                                   lower(s,a,s') x(s,a) <= q(s,a,s') <= upper(s,a,s') x(s,a),

and q conserves flow. Without the budgets it is dynamic programming, so it is solved by the simplex method over the
budgets alone, whose columns dynamic programming supplies (Dantzig–Wolfe; `kernels.extended_lp.best_mixture`): a few
passes over the tuples. The answer is held against the bound of weak duality before it is returned.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.model import LayeredMDP, Policy, flat
from tightrope.planning.hindsight import largest
from tightrope.planning.kernels import extended_lp as kernels
from tightrope.planning.policies import deterministic
from tightrope.space import FloatArray, LayeredSpace

#: How far an answer may be from the best, or over a budget: per step, in units of the largest |c| or |d|.
TOLERANCE = 1e-7

#: What the simplex method takes for zero, likewise; the second is for budgets that rounding alone decides on.
ZEROS = (1e-11, 1e-9)

#: Less mass than this at a state is none.
NEVER = 1e-300

#: Passes of dynamic programming before giving up; ordinary problems take a handful for each budget.
MAX_PIVOTS = 1000


class Intervals(NamedTuple):
    """lower(s,a,s') <= P(s'|s,a) <= upper(s,a,s'), and how wide that is."""

    lower: FloatArray  # (n_tuples,)
    upper: FloatArray  # (n_tuples,)
    radius: (
        FloatArray  # (n_pairs,) the sum of the radii of a pair, as they were before the intervals were cut to [0, 1]
    )

    @classmethod
    def of_counts(
        cls, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64], log_term: float, scale: float = 1.0
    ) -> "Intervals":
        """Around the frequencies P̂ = M / N by the empirical Bernstein bound; a pair without visits is left free.

        β(s,a,s') = scale (√(4 P̂ (1 − P̂) log_term / N) + 14 log_term / (3 N)), and 1 at most.
        """
        intervals = cls(np.empty(space.n_tuples), np.empty(space.n_tuples), np.empty(space.n_pairs))
        kernels.bernstein_intervals(space.csr, N, M, log_term, scale, *intervals)
        return intervals

    @classmethod
    def around(cls, mdp: LayeredMDP, radius: ArrayLike = 0.0) -> "Intervals":
        """A model plus and minus `radius`, a number or one for each tuple."""
        space, P = mdp.space, mdp.transitions
        beta = flat(np.broadcast_to(np.asarray(radius, np.float64), P.shape), space.n_tuples, "radius")
        if (beta < 0).any():
            raise InvalidInputError(f"radius is {beta.min()}; it cannot be negative")
        return cls(np.maximum(P - beta, 0.0), np.minimum(P + beta, 1.0), space.sum_over_successors(beta))


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimisticPlan:
    """The best policy with the best model, or, if none is within the budgets, one of the least excess."""

    value: float  # <c, x>
    visits: FloatArray  # (n_pairs,) x
    policy: Policy  # π(a|s) ∝ x(s,a); where x never goes, what is best for c + Σ_i λ_i d_i
    multipliers: FloatArray  # (I,) λ >= 0; zeros if no model has a policy within the budgets
    excess: float  # by how much the budget that fares worst is exceeded; 0 if all are met


def best_response(space: LayeredSpace, intervals: Intervals, cost: FloatArray) -> tuple[float, FloatArray, Policy]:
    """min <cost, x> without budgets: the value, x (n_pairs,), and the policy, which is deterministic."""
    V, d, p = np.empty(space.n_states), np.empty(space.n_states), np.empty(space.n_tuples)
    best, x = np.empty(space.n_states - 1, dtype=np.int64), np.empty(space.n_pairs)
    kernels.optimistic_actions(space.csr, intervals.lower, intervals.upper, cost, V, best, p)
    kernels.visits(space.csr, best, p, d, x)
    return float(V[0]), x, deterministic(space, best)


def plan(
    space: LayeredSpace, intervals: Intervals, loss: ArrayLike, constraints: ArrayLike, budgets: ArrayLike
) -> OptimisticPlan:
    """The optimistic LP: loss c (n_pairs,), constraints d (I, n_pairs), budgets α (I,); I may be 0."""
    c, alpha = flat(loss, space.n_pairs, "loss"), np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    D = np.asarray(constraints, dtype=np.float64)
    if D.shape != (len(alpha), space.n_pairs) or not (np.isfinite(D).all() and np.isfinite(alpha).all()):
        raise InvalidInputError(f"constraints has shape {D.shape}; expected {(len(alpha), space.n_pairs)}, all finite")
    c_unit, d_unit = largest(c), largest(D)
    scaled, allowed = np.ascontiguousarray(D / d_unit), TOLERANCE * space.n_layers
    for zero in ZEROS:
        attempt = _Attempt(space, intervals, c / c_unit, scaled, alpha / d_unit, zero * space.n_layers)
        if attempt.gap <= allowed * (1 + attempt.multipliers.sum()) and (attempt.over or attempt.excess <= allowed):
            break
    else:
        raise ConvergenceError(
            f"the optimistic LP was not solved well enough: duality gap {attempt.gap:.3g} and excess "
            f"{attempt.excess:.3g} in units of the largest cost, {allowed:.3g} allowed"
        )
    x, over = attempt.x, attempt.over
    return OptimisticPlan(
        value=float(c @ x),
        visits=x,
        policy=_policy(space, x, attempt.elsewhere),
        multipliers=np.zeros(len(alpha)) if over else attempt.multipliers * c_unit / d_unit,
        excess=float((D @ x - alpha).max()) if over else 0.0,
    )


class _Attempt:
    """One run of the simplex method, and how good its answer is."""

    def __init__(
        self, space: LayeredSpace, intervals: Intervals, c: FloatArray, D: FloatArray, alpha: FloatArray, zero: float
    ) -> None:
        self.x, self.multipliers = np.empty(space.n_pairs), np.empty(len(alpha))
        for _ in range(2):
            self.over = kernels.best_mixture(
                space.csr, intervals.lower, intervals.upper, c, D, alpha, zero, MAX_PIVOTS, self.multipliers, self.x
            )
            self.excess = (D @ self.x - alpha).max(initial=0.0)
            if not self.over or self.excess > TOLERANCE * space.n_layers:
                break
            alpha = alpha + self.excess + 10 * zero  # over by rounding alone: let that pass
        # weak duality: no x is better than the best for these prices; without one within α, none exceeds it less
        prices = self.multipliers @ D if self.over else c + self.multipliers @ D
        least, _, self.elsewhere = best_response(space, intervals, prices)
        self.gap = (self.excess if self.over else c @ self.x) - (least - self.multipliers @ alpha)


def _policy(space: LayeredSpace, x: FloatArray, elsewhere: Policy) -> Policy:
    """π(a|s) ∝ x(s,a); the policy `elsewhere` at states where x never goes."""
    mass = np.add.reduceat(x, space.csr.state_ptr[:-2])
    mass = np.repeat(mass, np.diff(space.csr.state_ptr)[:-1])
    reached = mass > NEVER
    return Policy.unchecked(space, np.where(reached, x / np.where(reached, mass, 1.0), elsewhere.probabilities))
