"""The subproblem of Algorithm 1: the nearest occupancy measure whose conditionals lie in a confidence set.

    argmin over θ of  <cost, θ> + D(θ, reference),      D(θ, θ') = Σ θ log(θ/θ') − θ + θ'

over the θ that sum to one on every layer, conserve flow, and have θ(s,a,·)/Σθ(s,a,·) in the set of (s,a).
`projector.py` solves it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import instance, number, shown
from tightrope.arguments.arrays import finite, floats
from tightrope.confidence import ConfidenceSet
from tightrope.errors import InvalidInputError
from tightrope.model import flat
from tightrope.projection.priced import PricedProjector
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace


@dataclass(frozen=True)
class Projection:
    """An answer with its certificate."""

    theta: FloatArray  #: (n_tuples,) the minimiser
    flow_residual: float  #: Σ |inflow − outflow| over the inner states
    set_violation: float  #: the most by which a conditional leaves its set, over pairs with a mass above 1e-300
    duality_gap: float  #: primal minus dual value; of the order of the flow residual times the largest potential
    iterations: int  #: Newton steps taken
    multipliers: FloatArray  #: (m,) of the inequalities; 0 for an inequality that is not tight
    excess: float  #: the most by which an inequality is exceeded, in units of its largest coefficient


def project(
    space: LayeredSpace,
    reference: ArrayLike,
    cost: ArrayLike,
    confidence: ConfidenceSet,
    *,
    inequalities: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = 1e-9,
) -> Projection:
    """Minimise <cost, θ> + D(θ, reference) over occupancy measures with conditionals in `confidence`.

    Parameters
    ----------
    space : the layered space.
    reference : (n_tuples,) positive; need not be an occupancy measure.
    cost : (n_tuples,) ψ/α in Algorithm 1.
    confidence : a confidence set, such as `L1Ball`, `Box` or `KLBall`.
    inequalities : (A, b), shapes (m, n_tuples) and (m,): θ also meets <A_i, θ> <= b_i.
    tolerance : on the flow residual, in L1; and on every inequality, in units of its largest coefficient.

    Returns
    -------
    Projection : `theta`, (n_tuples,) the minimiser, with its residuals and its duality gap.

    Raises
    ------
    ConvergenceError : if the tolerance is not met; a returned `theta` always meets it.
    InfeasibleError : if no measure meets the inequalities; it names them and the smallest possible excess.

    Examples
    --------
    >>> import tightrope as tr
    >>> space = tr.LayeredSpace.dense([1, 2, 1], n_actions=1)
    >>> anything = tr.L1Ball(center=[0.5, 0.5, 1.0, 1.0], radius=[2.0, 2.0, 2.0])
    >>> answer = project(space, reference=[0.5, 0.5, 0.5, 0.5], cost=[1.0, 0.0, 0.0, 0.0], confidence=anything)
    >>> answer.theta.round(3).tolist()
    [0.378, 0.622, 0.378, 0.622]
    """
    instance(space, "space", LayeredSpace)
    if not isinstance(confidence, ConfidenceSet) or isinstance(confidence, type):
        raise InvalidInputError(f"confidence is {shown(confidence)}; expected a set, such as L1Ball or Box")
    tolerance = number(tolerance, "tolerance", 1e-15, 1.0)
    reference = flat(reference, space.n_tuples, "reference")
    cost = flat(cost, space.n_tuples, "cost")
    if (reference <= 0).any():
        j = int(np.argmin(reference))
        s, a, s_next = space.tuples[j]
        raise InvalidInputError(
            f"reference is {reference[j]} at tuple ({s}, {a}, {s_next}); D needs it positive (mix in some uniform mass)"
        )
    confidence.check(space)
    theta, A, b = np.empty(space.n_tuples), *_checked(space, inequalities)
    multipliers, excess = np.zeros(len(b)), 0.0
    projector: Projector | PricedProjector
    if len(b) == 0:
        projector = Projector(space, tolerance)
        projector.solve(reference, cost, confidence, theta)
        gap = projector.duality_gap(reference, cost, theta)
    else:
        projector, without_limit = PricedProjector(space, len(b), tolerance), np.full(len(b), np.inf)
        projector.solve(reference, cost, confidence, A, b, without_limit, theta)
        multipliers, excess = projector.multipliers, projector.excess
        gap = projector.duality_gap(reference, cost, A, b, without_limit, theta)
    return Projection(
        theta=theta,
        flow_residual=projector.flow_residual,
        set_violation=confidence.violation(space, theta),
        duality_gap=gap,
        iterations=projector.iterations,
        multipliers=multipliers,
        excess=excess,
    )


def _checked(space: LayeredSpace, inequalities: object) -> tuple[FloatArray, FloatArray]:
    """Return A (m, n_tuples) and b (m,); m = 0 without inequalities."""
    if inequalities is None:
        return np.empty((0, space.n_tuples)), np.empty(0)
    if not isinstance(inequalities, tuple | list) or len(inequalities) != 2:
        raise InvalidInputError(f"inequalities is {shown(inequalities)}; expected (A, b), for <A[i], θ> <= b[i]")
    A = floats(inequalities[0], "A of the inequalities", ("m", space.n_tuples))
    b = flat(inequalities[1], len(A), "b of the inequalities")
    return finite(A, "A of the inequalities"), b
