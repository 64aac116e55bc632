"""The solver of the subproblem (`project.py` says what that is); `kernels/dual.py` has the mathematics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.projection.kernels.newton import solve_subproblem
from tightrope.projection.kernels.sensitivity import sensitivities
from tightrope.projection.kernels.workspace import THRESHOLDS, Stacks, Workspace, allocate_panels
from tightrope.projection.lanes import assign_lanes
from tightrope.projection.sets import lay_out
from tightrope.space import FloatArray, IntArray, LayeredSpace

#: The largest duality gap of an answer whose weights span more than floating point does, relative to the dual value.
GAP_TOLERANCE = 1e-6

#: Operations per tuple up to which H is factorised; beyond, Newton's steps come from conjugate gradients.
DIRECT_OPERATIONS = 500


class Projector:
    """Solves the subproblem again and again on one space, each time from where the last answer was."""

    def __init__(self, space: LayeredSpace, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance
        self.potentials = np.zeros(space.n_states)  #: β of the last answer; the next solve starts here
        self._thresholds = np.zeros((2, space.n_pairs))
        self._panel_ptr, self._panels = allocate_panels(_factorised_layers(space))
        self._factor_damping = np.nan  # how much damping the factor in the panels holds; NaN while there is none
        self._confidence: ConfidenceSet | None = None
        self._free: NDArray[np.bool_] | None = None
        self._stacks: Stacks | None = None
        self._data: Any = None
        self.dual_value = np.nan  #: F at the last answer
        self.flow_residual = np.nan
        self.iterations = 0

    def prepare(self, confidence: ConfidenceSet) -> None:
        """Lay out a confidence set, and the tuples anew if other pairs than before are free; `solve` would do it."""
        free = confidence.free(self.space)
        same_free = self._free is not None and not (free != self._free).any()
        if same_free and type(confidence) is type(self._confidence) and free.all():
            self._confidence = confidence  # another name for the set of everything
            return
        self._confidence = self._data = None  # its memory is needed
        if not same_free:
            self._gather_thresholds()
            self._free = self._stacks = None
            self._lanes = assign_lanes(self.space, free)
            self._stacks = Workspace.allocate(self._lanes, self.potentials, self._panel_ptr, self._panels)
            self._stacks.by_pair[THRESHOLDS] = self._thresholds[:, self._lanes.pair]
            self._free = free
        self._data = lay_out(confidence, self.space, self._lanes)
        self._confidence = confidence

    def _gather_thresholds(self) -> None:
        """Bring the thresholds by pair of the space up to date with those by pair of the lanes."""
        if self._free is not None and self._stacks is not None:
            self._thresholds[:, self._lanes.pair] = self._stacks.by_pair[THRESHOLDS]

    def forget(self) -> None:
        """Start cold next time."""
        self.potentials[:] = 0.0
        self._thresholds[:] = 0.0
        self._factor_damping = np.nan
        self._confidence = self._free = None

    def state(self) -> dict[str, FloatArray]:
        """All that the next solve starts from: with it restored, the next answer is the same to the last bit."""
        self._gather_thresholds()
        return {
            "potentials": self.potentials,
            "thresholds": self._thresholds,
            "factor": self._panels,
            "factor_damping": np.array([self._factor_damping]),
        }

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from what `state` gave."""
        damping = float(state["factor_damping"][0])
        for name in ("potentials", "thresholds", "factor"):
            if not (np.isfinite(state[name]).all() or (name == "factor" and np.isnan(damping))):
                raise InvalidInputError(f"the projector's {name} are not finite")
        if state["potentials"][[0, -1]].any():
            raise InvalidInputError("the projector's potentials are 0 at the first and the last state")
        if damping < 0 or np.isinf(damping):
            raise InvalidInputError(f"the projector's factor_damping is {damping}; it is NaN, or 0 or more")
        self.potentials[:] = state["potentials"]
        self._thresholds[:] = state["thresholds"]
        self._panels[:] = state["factor"]
        self._factor_damping = damping
        self._confidence = self._free = None

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        """Write the answer into `theta`, or raise. Takes checked arrays, `theta` another than the rest.

        After an error `theta` is NaN and the next solve starts cold.
        """
        if confidence is not self._confidence:
            self.prepare(confidence)
        assert self._stacks is not None
        self.dual_value, self.flow_residual, self.iterations, far, self._factor_damping = solve_subproblem(
            self._lanes, self._data, reference, cost, self.tolerance, self._factor_damping, theta, *self._stacks
        )
        if not self.flow_residual <= self.tolerance:
            self.forget()
            raise ConvergenceError(
                f"the projection stopped at a flow residual of {self.flow_residual:.3g}, above its tolerance of "
                f"{self.tolerance:.3g}, after {self.iterations} Newton steps; no answer is returned"
            )
        if far:  # numbers so far apart that some had to be cut off
            gap = self.duality_gap(reference, cost, theta)
            if not abs(gap) <= GAP_TOLERANCE * (1 + abs(self.dual_value)):
                self.forget()
                theta[:] = np.nan
                raise ConvergenceError(
                    f"the projection's costs and references are too far apart for floating point: its duality gap is "
                    f"{gap:.3g}; no answer is returned (scale the cost down, or the reference up)"
                )

    def duality_gap(self, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
        """Primal minus dual value of the last answer."""
        return primal_value(self.space, reference, cost, theta) + self.dual_value

    def sensitivities(
        self, reference: FloatArray, cost: FloatArray, A: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How the last answer, `theta` at the potentials as they are, moves as `cost` does along each row of A.

        (m, n_states) of the potentials, (m, n_tuples) of θ.
        """
        assert self._stacks is not None
        dbeta, dtheta = np.empty((len(A), self.space.n_states)), np.empty_like(A)
        sensitivities(
            self.space.csr, self._lanes, self._data, self._free, reference, cost, A, theta, np.empty_like(cost),
            dbeta, dtheta, *self._stacks,
        )  # fmt: skip
        self._factor_damping = 0.0 if len(self._panels) else self._factor_damping
        return dbeta, dtheta


def primal_value(space: LayeredSpace, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
    """<cost, θ> + D(θ, reference) − Σ reference + n_layers, from the definition: −F at the answer."""
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(theta > 0, theta * (np.log(theta) - np.log(reference)), 0.0)
    return float(np.sum(cost * theta + entropy - theta) + space.n_layers)


def _factorised_layers(space: LayeredSpace) -> IntArray:
    """Sizes of the layers whose potentials a factor of H would be over; none where factorising takes too long."""
    sizes = np.array(space.layer_sizes[:-1])  # the last layer's potential is fixed
    onward = np.append(sizes[1:], 0)
    operations = np.sum(sizes.astype(float) ** 3 / 3 + sizes**2 * onward + sizes * onward**2)
    return sizes if operations <= DIRECT_OPERATIONS * space.n_tuples else sizes[:0]
