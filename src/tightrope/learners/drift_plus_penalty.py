"""Drift plus penalty: projected gradient steps with virtual queues, the model known (Wei, Yu & Neely 2018).

In every episode t, over measures x(s,a) of pairs:
1. x^t = argmin over the occupancy measures x of the model of
   <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, x> + α ‖x − x^{t-1}‖²; x^1 is that of the uniform policy.
2. Play π_t(a|s) ∝ x^t(s,a).
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, x^t> − c_i, 0}, Q(1) = 0.

Step 1 minimises a bound on the drift of ½‖Q‖² plus V times the loss; a Euclidean projection (`EuclideanProjector`).

Feedback: full information. Needs to know: the space, the budgets, the number of episodes T and the model.
Where we depart from the publication: it has one policy per time slot of an infinite, ergodic process (several of them,
coupled by the constraints); here a slot is an episode, there is one process, and its budgets 0 are c_i.
"""

from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import Warmed, WarmStart
from tightrope.model import LayeredMDP, Policy, inner
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, part, state


@state
class DriftState(State):
    """The state of drift plus penalty."""

    x: FloatArray = numbers(least=0)  #: (n_pairs,)
    multipliers: FloatArray = numbers(least=0)  #: (I,) Q
    solver: WarmStart = part(written_as="_projector")


class DriftPlusPenalty(LearnerBase[DriftState]):
    """Projected gradient steps with virtual queues: adversarial losses, known dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    alpha, V : α and V; by default the published T and √T.
    """

    name = "drift-plus-penalty"
    reference = (
        "Wei, Yu, Neely: Online learning in weakly coupled Markov decision processes: a convergence time study "
        "(SIGMETRICS 2018)"
    )
    constants = "balanced by us"
    needs = ("model",)
    learns_from = "any"

    model: LayeredMDP
    alpha: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        self.default_to(alpha=self.episodes, V=np.sqrt(self.episodes))
        self.loss_weight = self.V
        self._projector = Warmed(EuclideanProjector(self.model))

    def initial(self) -> DriftState:
        x = self.space.sum_over_successors(self.model.occupancy(Policy.uniform(self.space)))
        return DriftState(x=x, multipliers=np.zeros(len(self.budgets)), solver=self._projector.now())

    def offer(self, state: DriftState) -> Offer:
        theta = self.space.expand_to_tuples(state.x) * self.model.transitions
        return Offer(Policy.from_occupancy(self.space, theta), state.multipliers)

    def step(self, state: DriftState, seen: Seen) -> DriftState:
        """Return the next state (lines 1 and 3)."""
        Q, c = state.multipliers, self.budgets
        f, g = self._per_pair(seen.loss), self._per_pair(seen.constraints)
        x = self._projector.from_(state.solver).solve(state.x - core.weigh(self.V, f, Q, g, 2 * self.alpha))
        return DriftState(
            observed=state.observed + 1,
            x=x,
            multipliers=np.maximum(Q + inner(g, x) - c, 0.0),
            solver=self._projector.now(),
        )

    def _per_pair(self, values: FloatArray) -> FloatArray:
        """Σ_s' P(s'|s,a) values(s,a,s')."""
        return self.space.sum_over_successors(values * self.model.transitions)


MAX_STEPS, MAX_DAMPINGS = 500, 40

#: The damping μ as a share of the residual: A D Aᵀ is singular if no pair of some state is in use, and the potential of
#: such a state may move much too far. A step that does not improve F is tried again with four times μ.
DAMPING = 1e-2

ARMIJO = 1e-4  # the share of the promised decrease of F that a step must achieve
ROUNDING = 1e-13  # of F, relative
FURTHEST = 1e100  # the largest |β| of a start: F is of the order β², and must not overflow


class Point(NamedTuple):
    """A potential, and the quantities computed from it."""

    beta: FloatArray  # (n_states,)
    x: FloatArray  # (n_pairs,) [y + Aᵀβ]_+
    residual: FloatArray  # (n_states,) Ax − b = ∇F(β)
    residual_norm: float  # its sum of absolute values
    value: float  # F(β)


class EuclideanProjector:
    """Projection onto the occupancy measures of one model, in the Euclidean norm over pairs, with warm starts.

        argmin ½‖x − y‖²   over   x >= 0,   Σ_a x(s,a) − Σ_{r,a} P(s|r,a) x(r,a) = b(s)   at every state s but the last,

    b = 1 at the first state, else 0; in matrices, Ax = b. With a potential β per state the answer is x = [y + Aᵀβ]_+,
    where β minimises F(β) = ½‖[y + Aᵀβ]_+‖² − b·β: convex, once differentiable, ∇F = Ax − b, and quadratic wherever no
    entry changes sign. Semismooth Newton on it ends after finitely many steps, few of them from a good start. Moves
    lead to the next layer, so the matrix A D Aᵀ (D the pairs with x > 0) is banded.
    """

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
        for start in (self.potentials, np.zeros_like(self.potentials)):  # warm first, then cold
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
            # F is at the level of rounding: compare residuals instead
            level = trial.value <= at.value + ROUNDING * (1 + abs(at.value))
            if level and trial.residual_norm < at.residual_norm:
                return trial
            damping *= 4
        return None

    def _point(self, y: FloatArray, beta: FloatArray) -> Point:
        return Point(beta, *core.euclidean_point(self.mdp.space.native, self.mdp.transitions, y, beta))

    def _newton_step(self, at: Point, damping: float) -> FloatArray:
        """Return −(A D Aᵀ + μ)^{-1} ∇F; 0 at the last state."""
        space, P = self.mdp.space.native, self.mdp.transitions
        step: FloatArray = core.euclidean_step(space, P, at.x, at.residual, damping)
        return step
