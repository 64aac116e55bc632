"""Planning in the face of uncertainty: the best policy for the best model between bounds, within budgets.

The model is known only by intervals, lower <= P(s'|s,a) <= upper, and what a pair costs by an estimate. The optimistic
LP is over all policies and all models in the intervals at once, as measures q(s,a,s') (the extended LP of Efroni,
Mannor & Pirotta):

    minimise <c, x>   subject to   <d_i, x> <= α_i,   x(s,a) = Σ_s' q(s,a,s'),
                                   lower(s,a,s') x(s,a) <= q(s,a,s') <= upper(s,a,s') x(s,a),

and q conserves flow. It is solved by `planning.dynamic_programming`, and the answer is compared with the bound of weak
duality before it is returned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arithmetic import dot
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.model import Policy, flat
from tightrope.planning.dynamic_programming import Intervals, best_mixture
from tightrope.planning.hindsight import largest
from tightrope.space import FloatArray, LayeredSpace

#: How far an answer may be from the best, or over a budget: per step, in units of the largest |c| or |d|.
TOLERANCE = 1e-7

#: Less mass than this at a state is none.
NEVER = 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimisticPlan:
    """The best policy with the best model, or, if none is within the budgets, one of the least excess."""

    value: float  # <c, x>
    visits: FloatArray  # (n_pairs,) x
    policy: Policy  # π(a|s) ∝ x(s,a); where x never goes, what is best for c + Σ_i λ_i d_i
    multipliers: FloatArray  # (I,) λ >= 0; zeros if no model has a policy within the budgets
    excess: float  # by how much the budget that fares worst is exceeded; 0 if all are met


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
    best = best_mixture(space, intervals, c / c_unit, scaled, alpha / d_unit, allowed)
    if not best.good:
        raise ConvergenceError(
            f"the optimistic LP was not solved well enough: duality gap {best.gap:.3g} and excess "
            f"{best.excess:.3g} in units of the largest cost, {allowed:.3g} allowed"
        )
    x, over = best.x, best.over
    return OptimisticPlan(
        value=dot(c, x),
        visits=x,
        policy=_policy(space, x, best.elsewhere),
        multipliers=np.zeros(len(alpha)) if over else best.multipliers * c_unit / d_unit,
        excess=float((dot(D, x) - alpha).max()) if over else 0.0,
    )


def _policy(space: LayeredSpace, x: FloatArray, elsewhere: Policy) -> Policy:
    """π(a|s) ∝ x(s,a); the policy `elsewhere` at states where x never goes."""
    mass = np.add.reduceat(x, space.csr.state_ptr[:-2])
    mass = np.repeat(mass, np.diff(space.csr.state_ptr)[:-1])
    reached = mass > NEVER
    return Policy.unchecked(space, np.where(reached, x / np.where(reached, mass, 1.0), elsewhere.probabilities))
