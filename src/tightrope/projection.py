"""The subproblem of Algorithm 1: the nearest occupancy measure whose conditionals lie in a confidence set.

    argmin over θ of  <cost, θ> + D(θ, reference),      D(θ, θ') = Σ θ log(θ/θ') − θ + θ'

over the θ that sum to one on every layer, conserve flow, and have θ(s,a,·)/Σθ(s,a,·) in the set of (s,a).
`kernels/newton.py` has the mathematics.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.kernels import newton as kernels
from tightrope.model import flat
from tightrope.space import FloatArray, LayeredSpace

MAX_STEPS = 200


@dataclass(frozen=True)
class Projection:
    """An answer with its certificate."""

    theta: FloatArray  #: (n_tuples,) the minimiser
    flow_residual: float  #: Σ |inflow − outflow| over the inner states
    set_violation: float  #: the most by which a pair's conditional leaves its set
    duality_gap: float  #: primal minus dual value; at most rounding
    iterations: int  #: Newton steps taken


class Projector:
    """Solves the subproblem again and again on one space, each time from where the last answer was."""

    def __init__(self, space: LayeredSpace, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance
        sizes = np.array(space.layer_sizes[:-1])  # the last layer's potential is fixed
        diagonal, upper = sizes**2, np.append(sizes[:-1] * sizes[1:], 0)
        self._block = np.stack([np.cumsum(diagonal) - diagonal, np.cumsum(upper) - upper], axis=1)
        per_state, per_pair, per_tuple = space.n_states, space.n_pairs, space.n_tuples
        self._work = kernels.Work(
            beta=np.zeros(per_state),
            trial=np.zeros(per_state),
            step=np.zeros(per_state),
            scale=np.zeros(per_state),
            inflow=np.zeros(per_state),
            outflow=np.zeros(per_state),
            u=np.zeros(per_tuple),
            p=np.zeros(per_tuple),
            group=np.zeros(per_tuple, dtype=np.int8),
            offset=np.zeros(per_pair),
            q=np.zeros(per_pair),
            warm=np.zeros((per_pair, 2)),
            diagonal=np.zeros(diagonal.sum()),
            upper=np.zeros(upper.sum()),
            damped=np.full(1, np.nan),
        )
        self._theta = np.empty(per_tuple)
        self.dual_value = np.nan  #: F at the last answer
        self.flow_residual = np.nan
        self.iterations = 0

    @property
    def potentials(self) -> FloatArray:
        """(n_states,) β of the last answer; the next solve starts here."""
        return self._work.beta

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        """Write the answer into `theta`, or raise and leave it alone. Takes checked arrays."""
        csr, work = self.space.csr, self._work
        shifted = max(cost.max(), -cost.min()) > kernels.RANGE
        if shifted:
            kernels.offset_costs(csr.pair_ptr, reference, cost, work)
        else:
            np.multiply(np.exp(np.negative(cost, out=work.u), out=work.u), reference, out=work.u)
        for start in ("warm", "cold"):
            if start == "cold":
                work.beta[:] = 0.0
                work.damped[0] = np.nan
            self.dual_value, self.flow_residual, self.iterations = kernels.newton(
                csr, confidence.data, self._block, work, shifted, self.tolerance, MAX_STEPS, self._theta
            )
            if self.flow_residual <= self.tolerance:
                theta[:] = self._theta
                return
        work.beta[:] = 0.0
        work.damped[0] = np.nan
        raise ConvergenceError(
            f"the projection stopped at a flow residual of {self.flow_residual:.3g}, above its tolerance of "
            f"{self.tolerance:.3g}, after {self.iterations} Newton steps; no answer is returned"
        )


def project(
    space: LayeredSpace,
    reference: ArrayLike,
    cost: ArrayLike,
    confidence: ConfidenceSet,
    *,
    tolerance: float = 1e-9,
) -> Projection:
    """argmin <cost, θ> + D(θ, reference) over occupancy measures with conditionals in `confidence`.

    Parameters
    ----------
    reference : (n_tuples,) positive; need not be an occupancy measure.
    cost : (n_tuples,) ψ/α in Algorithm 1.
    tolerance : on the flow residual, in L1.

    Raises `ConvergenceError` if the tolerance is not met: a returned `theta` always meets it.
    """
    reference = flat(reference, space.n_tuples, "reference")
    cost = flat(cost, space.n_tuples, "cost")
    if (reference <= 0).any():
        j = int(np.argmin(reference))
        s, a, s_next = space.tuples[j]
        raise InvalidInputError(
            f"reference is {reference[j]} at tuple ({s}, {a}, {s_next}); D needs it positive (mix in some uniform mass)"
        )
    confidence.check(space)
    projector = Projector(space, tolerance)
    theta = np.empty(space.n_tuples)
    projector.solve(reference, cost, confidence, theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(theta > 0, theta * np.log(theta / reference), 0.0)
    primal = float(cost @ theta + np.sum(entropy - theta + reference))
    dual = float(np.sum(reference) - space.n_layers - projector.dual_value)
    return Projection(
        theta=theta,
        flow_residual=projector.flow_residual,
        set_violation=confidence.violation(space, theta),
        duality_gap=primal - dual,
        iterations=projector.iterations,
    )
