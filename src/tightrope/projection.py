"""The subproblem of Algorithm 1: the nearest occupancy measure whose conditionals lie in a confidence set.

    argmin over θ of  <cost, θ> + D(θ, reference),      D(θ, θ') = Σ θ log(θ/θ') − θ + θ'

over the θ that sum to one on every layer, conserve flow, and have θ(s,a,·)/Σθ(s,a,·) in the set of (s,a).
`kernels/dual.py` has the mathematics.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.kernels.dual import Work
from tightrope.kernels.newton import solve_subproblem
from tightrope.kernels.sets import LANES
from tightrope.layout import lay_out
from tightrope.model import flat
from tightrope.options import number
from tightrope.space import FloatArray, LayeredSpace

MAX_STEPS = 200

#: The largest duality gap of an answer whose weights span more than floating point does, relative to the dual value.
GAP_TOLERANCE = 1e-6

#: Operations per tuple up to which H is factorised; beyond, Newton's steps come from conjugate gradients.
DIRECT_OPERATIONS = 500


@dataclass(frozen=True)
class Projection:
    """An answer with its certificate."""

    theta: FloatArray  #: (n_tuples,) the minimiser
    flow_residual: float  #: Σ |inflow − outflow| over the inner states
    set_violation: float  #: the most by which a pair's conditional leaves its set
    duality_gap: float  #: primal minus dual value; of the order of the flow residual times the largest potential
    iterations: int  #: Newton steps taken


class Projector:
    """Solves the subproblem again and again on one space, each time from where the last answer was."""

    def __init__(self, space: LayeredSpace, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance
        sizes = np.array(space.layer_sizes[:-1])  # the last layer's potential is fixed
        onward = np.append(sizes[1:], 0)
        operations = np.sum(sizes.astype(float) ** 3 / 3 + sizes**2 * onward + sizes * onward**2)
        direct = operations <= DIRECT_OPERATIONS * space.n_tuples
        panels = sizes * (sizes + onward) if direct else np.zeros(0, dtype=np.int64)
        self._panel_ptr = np.concatenate([[0], np.cumsum(panels)]).astype(np.uint64)
        self._layout = lay_out(space)
        self._laid_out: tuple[ConfidenceSet, Any] | None = None
        per_state, per_pair, per_slot = space.n_states, space.n_pairs, len(self._layout.successor)
        self._work = Work(
            beta=np.zeros(per_state),
            trial=np.zeros(per_state),
            step=np.zeros(per_state),
            scale=np.ones(per_state),
            inflow=np.zeros(per_state),
            outflow=np.zeros(per_state),
            high=np.zeros(space.n_layers + 2),
            u=np.zeros(per_slot),
            p=np.zeros(per_slot),
            group=np.zeros(per_slot, dtype=np.int8),
            W=np.zeros(per_pair),
            share=np.zeros(per_pair),
            warm=np.zeros((2, per_pair)),
            scratch=np.zeros(8 * LANES),
            panels=np.zeros(panels.sum()),
            factor_damping=np.full(1, np.nan),
            cg=np.zeros((5, per_state)),
        )
        self.dual_value = np.nan  #: F at the last answer
        self.flow_residual = np.nan
        self.iterations = 0

    def _forget(self) -> None:
        """Start cold next time."""
        self._work.beta[:] = 0.0
        self._work.warm[:] = 0.0
        self._work.factor_damping[:] = np.nan

    @property
    def potentials(self) -> FloatArray:
        """(n_states,) β of the last answer; the next solve starts here."""
        return self._work.beta

    def state(self) -> dict[str, FloatArray]:
        """All that the next solve starts from: with it restored, the next answer is the same to the last bit."""
        work = self._work
        return {
            "potentials": work.beta,
            "thresholds": work.warm,
            "factor": work.panels,
            "factor_damping": work.factor_damping,
        }

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from what `state` gave."""
        for name, array in self.state().items():
            array[:] = state[name]

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        """Write the answer into `theta`, or raise. Takes checked arrays. After an error the next solve starts cold."""
        if self._laid_out is None or self._laid_out[0] is not confidence:
            self._laid_out = (confidence, confidence.lay_out(self._layout))
        self.dual_value, self.flow_residual, self.iterations, far = solve_subproblem(
            self.space.csr.layer_ptr, self._layout, self._laid_out[1], self._panel_ptr, self._work,
            reference, cost, self.tolerance, MAX_STEPS, theta,
        )  # fmt: skip
        if not self.flow_residual <= self.tolerance:
            self._forget()
            raise ConvergenceError(
                f"the projection stopped at a flow residual of {self.flow_residual:.3g}, above its tolerance of "
                f"{self.tolerance:.3g}, after {self.iterations} Newton steps; no answer is returned"
            )
        if far:  # numbers so far apart that some had to be cut off
            gap = self.duality_gap(reference, cost, theta)
            if not abs(gap) <= GAP_TOLERANCE * (1 + abs(self.dual_value)):
                self._forget()
                raise ConvergenceError(
                    f"the projection's costs and references are too far apart for floating point: its duality gap is "
                    f"{gap:.3g}; no answer is returned (scale the cost down, or the reference up)"
                )

    def duality_gap(self, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
        """Primal minus dual value of the last answer, from the definition of the primal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(theta > 0, theta * (np.log(theta) - np.log(reference)), 0.0)
        primal = np.sum(cost * theta + entropy - theta)
        return float(primal + self.space.n_layers + self.dual_value)


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
    projector = Projector(space, tolerance)
    theta = np.empty(space.n_tuples)
    projector.solve(reference, cost, confidence, theta)
    return Projection(
        theta=theta,
        flow_residual=projector.flow_residual,
        set_violation=confidence.violation(space, theta),
        duality_gap=projector.duality_gap(reference, cost, theta),
        iterations=projector.iterations,
    )
