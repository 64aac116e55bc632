"""The solver of the subproblem of `project.py`; its mathematics are in `core/dual.hpp` and `core/newton.hpp`.

`hand_over` passes a confidence set to the compiled solver. For a set that is not written in C++ (`confidence.OwnSet`),
`reference.py` solves the subproblem in NumPy.
"""

from functools import singledispatch
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.confidence import Box, ConfidenceSet, KLBall, L1Ball, OwnSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.projection import reference as in_numpy
from tightrope.space import FloatArray, LayeredSpace

#: The largest duality gap of an answer whose weights span more than floating point does, relative to the dual value.
GAP_TOLERANCE = 1e-6

#: Operations per tuple up to which H is factorised; beyond, Newton's steps come from conjugate gradients.
DIRECT_OPERATIONS = 500


class Projector:
    """Solves subproblems on one space, each from the solution of the last one."""

    def __init__(self, space: LayeredSpace, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance
        self._solver = core.Solver(space.native, _factorises(space))
        self.potentials: FloatArray = self._solver.potentials  #: β of the last answer; the next solve starts here
        self._confidence: ConfidenceSet | None = None
        self._own: OwnSet | None = None  # the set of the last solve, if it is one of the user's own
        self._free: NDArray[np.bool_] | None = None
        self.dual_value = np.nan  #: F at the last answer
        self.flow_residual = np.nan
        self.iterations = 0

    def prepare(self, confidence: ConfidenceSet) -> None:
        """Pass a confidence set to the core; `solve` does this too.

        Tuples are laid out again if other pairs are free.
        """
        # isinstance of a protocol takes longer than a small solve
        self._own = cast(OwnSet, confidence) if hasattr(confidence, "pair_question") else None
        if self._own is not None:
            self._confidence = confidence
            return
        free = confidence.free(self.space)
        if type(confidence) is not type(self._confidence) or self._free is None or not (free & self._free).all():
            self._confidence = None
            hand_over(confidence, self._solver, free)
        self._confidence, self._free = confidence, free  # it may be the same set in another object

    def solver_for(self, confidence: ConfidenceSet) -> tuple[core.Solver, OwnSet | None]:
        """Return the solver of the core with this set, and the set itself if the core does not know it."""
        if confidence is not self._confidence:
            self.prepare(confidence)
        return self._solver, self._own

    def __reduce__(self) -> tuple[type["Projector"], tuple[LayeredSpace, float]]:
        """Copy without the warm start, which is in `state`."""
        return Projector, (self.space, self.tolerance)

    def forget(self) -> None:
        """Start cold next time."""
        self._solver.forget()

    def state(self) -> dict[str, FloatArray]:
        """Return copies of the warm start; once they are restored, the next solution has the same bits."""
        thresholds, factor = np.empty((2, self.space.n_pairs)), np.empty(self._solver.factor_size)
        self._solver.state(thresholds, factor)
        return {
            "potentials": self.potentials.copy(),
            "thresholds": thresholds,
            "factor": factor,
            "factor_damping": np.array([self._solver.factor_damping]),
        }

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from a warm start that `state` returned."""
        damping = float(state["factor_damping"][0])
        for name in ("potentials", "thresholds", "factor"):
            if not (np.isfinite(state[name]).all() or (name == "factor" and np.isnan(damping))):
                raise InvalidInputError(f"the projector's {name} are not finite")
        if state["potentials"][[0, -1]].any():
            raise InvalidInputError("the projector's potentials are 0 at the first and the last state")
        if damping < 0 or np.isinf(damping):
            raise InvalidInputError(f"the projector's factor_damping is {damping}; it is NaN, or 0 or more")
        self._solver.restore(state["potentials"], state["thresholds"], state["factor"], damping)

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        """Write the solution into `theta`, or raise. The arrays must be checked, and `theta` distinct from the others.

        After an error `theta` is NaN and the next solve starts cold.
        """
        if confidence is not self._confidence:
            self.prepare(confidence)
        if self._own is not None:
            self._solve_in_numpy(reference, cost, self._own, theta)
            return
        self.dual_value, self.flow_residual, self.iterations, far = self._solver.solve(
            reference, cost, self.tolerance, theta
        )
        if not self.flow_residual <= self.tolerance:
            self.forget()
            raise ConvergenceError(
                f"the projection stopped at a flow residual of {self.flow_residual:.3g}, above its tolerance of "
                f"{self.tolerance:.3g}, after {self.iterations} Newton steps; no answer is returned"
            )
        if far:  # weights spanned more than floating point does
            gap = self.duality_gap(reference, cost, theta)
            if not abs(gap) <= GAP_TOLERANCE * (1 + abs(self.dual_value)):
                self.forget()
                theta[:] = np.nan
                raise ConvergenceError(
                    f"the projection's costs and references are too far apart for floating point: its duality gap is "
                    f"{gap:.3g}; no answer is returned (scale the cost down, or the reference up)"
                )

    def _solve_in_numpy(self, reference: FloatArray, cost: FloatArray, confidence: OwnSet, theta: FloatArray) -> None:
        """Solve for a user's own set."""
        theta[:] = np.nan
        try:
            found = in_numpy.solve(self.space, reference, cost, confidence, self.tolerance, self.potentials)
            gap = primal_value(self.space, reference, cost, found.theta) + found.dual_value
            if not abs(gap) <= GAP_TOLERANCE * (1 + abs(found.dual_value)):
                raise ConvergenceError(
                    f"the projection's duality gap is {gap:.3g}; no answer is returned (scale the cost down, or the "
                    f"reference up; or {type(confidence).__name__}.pair_question does not return the maximiser)"
                )
        except Exception:
            self.forget()
            raise
        theta[:], self.potentials[:] = found.theta, found.potentials
        self.dual_value, self.flow_residual, self.iterations = found.dual_value, found.flow_residual, found.iterations

    def duality_gap(self, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
        """Primal minus dual value of the last answer."""
        return primal_value(self.space, reference, cost, theta) + self.dual_value


def primal_value(space: LayeredSpace, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
    """Return <cost, θ> + D(θ, reference) − Σ reference + n_layers, which is −F at the solution."""
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(theta > 0, theta * (np.log(theta) - np.log(reference)), 0.0)
    return float(np.sum(cost * theta + entropy - theta) + space.n_layers)


def _factorises(space: LayeredSpace) -> bool:
    """Return whether factorising H is fast; the potentials of the last layer are fixed and not in H."""
    sizes = np.array(space.layer_sizes[:-1])
    onward = np.append(sizes[1:], 0)
    operations = np.sum(sizes.astype(float) ** 3 / 3 + sizes**2 * onward + sizes * onward**2)
    return bool(operations <= DIRECT_OPERATIONS * space.n_tuples)


@singledispatch
def hand_over(confidence: ConfidenceSet, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    """Set the confidence set of the solver; `free` marks the pairs with no restriction on their distribution."""
    raise InvalidInputError(
        f"{type(confidence).__name__} does not answer the pair's question; give it a method pair_question(i, log_w) "
        "as tightrope.confidence.OwnSet describes"
    )


@hand_over.register
def _(confidence: L1Ball, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    solver.set_l1(confidence.center, confidence.radius, free)


@hand_over.register
def _(confidence: Box, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    bounds, ball = (confidence.lower, confidence.upper), confidence.ball
    if ball is None:
        solver.set_box(*bounds, free)
    else:
        solver.set_cut_box(*bounds, ball.center, ball.radius, free)


@hand_over.register
def _(confidence: KLBall, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    solver.set_kl(confidence.center, confidence.radius, free)
