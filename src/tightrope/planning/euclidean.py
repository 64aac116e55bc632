"""The nearest occupancy measure of a known model, in the Euclidean norm over pairs.

    argmin ½‖x − y‖²   over   x >= 0,   Σ_a x(s,a) − Σ_{r,a} P(s|r,a) x(r,a) = b(s)   at every state s but the last,

b = 1 at the first state, else 0; in matrices, Ax = b. With a potential β per state the answer is x = [y + Aᵀβ]_+,
where β minimises F(β) = ½‖[y + Aᵀβ]_+‖² − b·β: convex, once differentiable, ∇F = Ax − b, and quadratic wherever no
entry changes sign. Semismooth Newton on it ends after finitely many steps, few of them from a good start. Moves lead
from one layer to the next, so its matrix A D Aᵀ (D the pairs with x > 0) is banded.
"""

from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray

MAX_STEPS, MAX_DAMPINGS = 500, 40

#: μ as a share of the residual: A D Aᵀ is singular where no pair of a state is in use, and μ vanishes with it. A state
#: of that kind may be asked to move much too far, so a step that is not better is tried again with four times μ.
DAMPING = 1e-2

ARMIJO = 1e-4  # share of the promised decrease of F that a step has to bring
ROUNDING = 1e-13  # of F, relative
FURTHEST = 1e100  # |β| of a start: from further away F, of the order β², would be no number


class Point(NamedTuple):
    """A potential, and the quantities computed from it."""

    beta: FloatArray  # (n_states,)
    x: FloatArray  # (n_pairs,) [y + Aᵀβ]_+
    residual: FloatArray  # (n_states,) Ax − b = ∇F(β)
    residual_norm: float  # its sum of absolute values
    value: float  # F(β)


class EuclideanProjector:
    """Projection onto the occupancy measures of one model, with warm starts."""

    def __init__(self, mdp: LayeredMDP, tolerance: float = 1e-10) -> None:
        self.mdp = mdp
        self.tolerance = tolerance
        self.potentials = np.zeros(mdp.space.n_states)  #: β of the last answer; the next search starts here

    def state(self) -> dict[str, FloatArray]:
        """Return the warm start of the next projection."""
        return {"potentials": self.potentials.copy()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from a warm start."""
        if not (np.abs(state["potentials"]) <= FURTHEST).all():
            raise InvalidInputError(f"the projector's potentials are not finite, or beyond {FURTHEST:g}")
        self.potentials = state["potentials"]

    def solve(self, y: FloatArray) -> FloatArray:
        """Return the projection x (n_pairs,) of y (n_pairs,), with Σ|Ax − b| within the tolerance.

        Raises
        ------
        ConvergenceError : if the tolerance is not reached; the warm start is unchanged.
        """
        for start in (self.potentials, np.zeros_like(self.potentials)):  # warm, and if that was too far away, cold
            at = self._search(y, start)
            if at.residual_norm <= self.tolerance:
                self.potentials = at.beta
                return at.x
        raise ConvergenceError(
            f"the Euclidean projection stopped at a flow residual of {at.residual_norm:.3g}, above its tolerance of "
            f"{self.tolerance:.3g}; no answer is returned"
        )

    def _search(self, y: FloatArray, start: FloatArray) -> Point:
        """Return the first point within the tolerance, or the last one if no step improves it."""
        at = self._point(y, start)
        for _ in range(MAX_STEPS):
            better = self._better(y, at) if at.residual_norm > self.tolerance else None
            if better is None:
                break
            at = better
        return at

    def _better(self, y: FloatArray, at: Point) -> Point | None:
        """Return the point after the first Newton step that improves it, with increasing damping; None if none does."""
        damping = DAMPING * min(1.0, at.residual_norm)
        for _ in range(MAX_DAMPINGS):
            step = self._newton_step(at, damping)
            trial = self._point(y, at.beta + step)
            if trial.value <= at.value + ARMIJO * core.dot(at.residual, step):
                return trial
            # at the floor of rounding F no longer tells better from worse: the residual does
            level = trial.value <= at.value + ROUNDING * (1 + abs(at.value))
            if level and trial.residual_norm < at.residual_norm:
                return trial
            damping *= 4
        return None

    def _point(self, y: FloatArray, beta: FloatArray) -> Point:
        return Point(beta, *core.euclidean_point(self.mdp.space.native, self.mdp.transitions, y, beta))

    def _newton_step(self, at: Point, damping: float) -> FloatArray:
        """−(A D Aᵀ + μ)^{-1} ∇F; 0 at the last state."""
        space, P = self.mdp.space.native, self.mdp.transitions
        step: FloatArray = core.euclidean_step(space, P, at.x, at.residual, damping)
        return step
