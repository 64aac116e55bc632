"""Parts that learners are composed of: the mirror step with its solver, knowledge of the dynamics, exponential
weights, importance weights, a learning rate, blocks of episodes.

A part belongs to the configuration of a learner and does not change. It takes and returns fields of the learner's
state, which do change. It may cache the last value of a pure function, such as a confidence set; results do not depend
on the cache.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import function, shown, unknown
from tightrope.arithmetic import exp, log
from tightrope.confidence import CONFIDENCE_RULES, Box, ConfidenceRule, ConfidenceSet, Counts, KnownModel
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import State, numbers, state

#: The least mass of a state in a reference, as a share of its layer, and of a tuple, as a share of its state: D is
#: infinite if the reference is 0, and the solver can handle weights that are this far apart
#: (docs/explanation/solver.md).
FLOOR = 1e-140


class Solver(Protocol):
    """A solver that starts from its last solution.

    `state` returns arrays that the solver does not write to afterwards. `restore` takes them, copies what it will write
    to, and raises `InvalidInputError` for arrays that cannot result from a solve.
    """

    def state(self) -> dict[str, FloatArray]: ...

    def restore(self, state: dict[str, FloatArray]) -> None: ...


class WarmStart:
    """The starting point of a solver, as a value: equal warm starts give solutions with the same bits."""

    __slots__ = ("_arrays", "_solver")

    def __init__(self, solver: "Warmed[Any]", arrays: dict[str, FloatArray]) -> None:
        self._solver = solver
        self._arrays = arrays

    def state(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        return self._arrays

    def restored(self, state: dict[str, FloatArray]) -> "WarmStart":
        """Return the warm start of these arrays; raise `InvalidInputError` if the solver cannot start from it."""
        return self._solver.begin_at(state)


S = TypeVar("S", bound=Solver)


class Warmed(Generic[S]):
    """A solver whose warm start is a value that is passed in and out."""

    def __init__(self, solver: S) -> None:
        self._solver = solver
        self._held: WarmStart | None = None  # the warm start that the solver holds

    def begin_at(self, arrays: dict[str, FloatArray]) -> WarmStart:
        """Return the warm start of these arrays; the solver raises an error if it cannot start from it."""
        self._held = None
        self._solver.restore(arrays)
        self._held = WarmStart(self, arrays)
        return self._held

    def from_(self, warm: WarmStart) -> S:
        """Return the solver, set to start from `warm`; call `now` after the solve."""
        if warm is not self._held:
            self._solver.restore(warm.state())
        self._held = None  # after an error the solver's own warm start is invalid
        return self._solver

    def now(self) -> WarmStart:
        """Return the warm start of the next solve."""
        self._held = WarmStart(self, self._solver.state())
        return self._held

    def __reduce__(self) -> tuple[type["Warmed[Any]"], tuple[S]]:
        """Copy without the warm start that the solver holds."""
        return Warmed, (self._solver,)


class MirrorStep:
    """θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference), Δ the measures whose conditionals lie in the
    confidence set that a rule makes of the counts before the epoch."""

    def __init__(self, space: LayeredSpace, rule: ConfidenceRule, tolerance: float = 1e-9) -> None:
        self.space = space
        self.rule = rule
        self.solver = Warmed(Projector(space, tolerance))
        self._set: tuple[Any, ConfidenceSet] | None = None  # the last counts N, and the set that the rule made

    def set_of(self, counts: Counts) -> ConfidenceSet:
        """Return the confidence set of the epoch of these counts.

        Raises `InvalidInputError` if a rule of the user's own makes no set, or one for another space.
        """
        kept = self._set
        if kept is not None and kept[0] is counts.N:
            return kept[1]
        made = self.rule(self.space, *counts.laws)
        if not isinstance(made, ConfidenceSet):
            raise InvalidInputError(f"the confidence rule made {shown(made)}; expected a set, such as L1Ball")
        made.check(self.space)
        self._set = (counts.N, made)
        return made

    def begin(self, counts: Counts) -> WarmStart:
        """Return the warm start before the first step; errors of the rule are raised here."""
        self.set_of(counts)
        return self.solver.now()

    def __call__(
        self, warm: WarmStart, counts: Counts, reference: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, WarmStart]:
        """Return θ (n_tuples,) for this reference and cost (n_tuples,), and the warm start of the next step.

        Raises `ConvergenceError` if the solver misses its tolerance.
        """
        confidence = self.set_of(counts)
        theta = np.empty(self.space.n_tuples)
        self.solver.from_(warm).solve(reference, cost, confidence, theta)
        return theta, self.solver.now()


def positive(space: LayeredSpace, theta: FloatArray) -> FloatArray:
    """Return θ with a little mass at every tuple: the reference of methods that do not mix."""
    reference: FloatArray = core.lift(space.native, theta, FLOOR)
    return reference


def policy_of_measure(space: LayeredSpace, theta: FloatArray) -> Policy:
    """Return π(a|s) ∝ Σ_s' θ(s,a,s')."""
    return Policy.unchecked(space, core.policy_of(space.native, theta))


class PolicyOfMeasure:
    """`policy_of_measure` with the last policy cached: θ changes only at the end of a block."""

    def __init__(self, space: LayeredSpace) -> None:
        self._space = space
        self._last: tuple[FloatArray, Policy] | None = None

    def __call__(self, theta: FloatArray) -> Policy:
        last = self._last
        if last is None or last[0] is not theta:
            last = self._last = (theta, policy_of_measure(self._space, theta))
        return last[1]


def even_measure(space: LayeredSpace) -> FloatArray:
    """Return the measure of the uniform policy in the model with equally likely successors.

    On dense layers it is uniform, as published; on others the uniform distribution is not an occupancy measure.
    """
    return LayeredMDP.even(space).occupancy(Policy.uniform(space))


#: Visits that stand for certainty: the prior is negligible beside them.
FOREVER = 1e18


@dataclass(frozen=True, slots=True)
class Dynamics:
    """Knowledge of the dynamics: a rule that makes confidence sets from counts, or the model itself."""

    space: LayeredSpace
    rule: ConfidenceRule
    model: LayeredMDP | None = None

    @classmethod
    def of(cls, learner: Any) -> "Dynamics":
        """Return those of a learner with a `model`, or else with `confidence`, `level`, `radius_scale` and `ties`."""
        space = learner.space
        if learner.model is not None:
            return cls(space, KnownModel(transitions=learner.model.transitions), learner.model)
        ties = learner.ties
        confidence = learner.confidence
        if not isinstance(confidence, str):
            return cls(space, function(confidence, "confidence"))
        if confidence not in CONFIDENCE_RULES:
            raise unknown("there is no confidence rule", confidence, CONFIDENCE_RULES)
        rule = CONFIDENCE_RULES[confidence]
        taken = {field.name for field in fields(rule)}
        if learner.episodes is None and "episodes" in taken:
            raise InvalidInputError(f"the confidence rule {confidence!r} has to be told the number of episodes")
        n_laws = None if ties is None else len(np.unique(ties.law[space.successors_per_pair > 1]))
        known = {
            "episodes": learner.episodes, "level": learner.level, "scale": learner.radius_scale, "laws": n_laws,
        }  # fmt: skip
        return cls(space, rule(**{name: known[name] for name in taken}))

    def first_measure(self) -> FloatArray:
        """Return θ^1: the measure of the uniform policy under the model, or with equally likely successors."""
        if self.model is None:
            return even_measure(self.space)
        return self.model.occupancy(Policy.uniform(self.space))

    def evidence(self, counts: Counts) -> tuple[Any, Any]:
        """Return the visits of every pair and tuple, summed over tied pairs, from which the model is estimated.

        For a known model these are so many fictitious visits that the estimate is the model.
        """
        if self.model is None:
            return counts.laws
        return np.full(len(counts.N), FOREVER), FOREVER * self.model.transitions

    def epoch_of(self, counts: Counts) -> int:
        """Return the number of the epoch, always 1 if the model is known."""
        return counts.epoch if self.model is None else 1


# --------------------------------------------------------------------------------------------- exponential weights
#
# Exponential weights over the actions of every state, fed with action values: π(a|s) ∝ exp(−η Σ_t Q_t(s,a)). A learner
# that plays π_t in episode t and feeds it the Q_t of π_t has regret Σ_s d*(s) R(s), where d*(s) is the probability that
# the comparator passes s and R(s) the regret of the weights at s (the performance difference lemma). Losses are
# ℓ = (f + 1)/2 in [0, 1], so Q lies between 0 and L.


@state
class ExpertsState(State):
    """The sum of the action values so far."""

    total_values: FloatArray = numbers(least=0)  #: (n_pairs,) Σ_t Q_t


def exponential_weights(space: LayeredSpace, total_values: FloatArray, learning_rate: float) -> Policy:
    """Return π(a|s) ∝ exp(−η Σ_t Q_t(s,a)) for total values (n_pairs,)."""
    uniform = Policy.uniform(space).probabilities
    return Policy.unchecked(space, core.mirror_step(space.native, uniform, total_values, learning_rate))


def hedge_rate(space: LayeredSpace, rounds: float) -> float:
    """Return η = √(8 log|A| / rounds) / L, which minimises the bound on the regret, L √(rounds log|A| / 2)."""
    return float(np.sqrt(8 * log(space.n_actions) / rounds)) / space.n_layers


def action_values(model: LayeredMDP, policy: Policy, losses: FloatArray) -> FloatArray:
    """Return Q(s,a) = ℓ(s,a) + Σ_s' P(s'|s,a) V(s'), V(s) = Σ_a π(a|s) Q(s,a), for losses (n_pairs,) of at least 0."""
    space, unit = model.space, max(1.0, float(losses.max()))  # the core takes losses in [0, 1]
    P, ones = model.transitions, np.ones(space.n_pairs)
    _, Q = core.evaluate(space.native, policy.probabilities, P, ones, losses[np.newaxis] / unit)
    values: FloatArray = unit * Q[0]
    return values


def softmax(space: LayeredSpace, w: FloatArray) -> Policy:
    """Return π(a|s) ∝ exp w(s,a) for preferences w (n_pairs,)."""
    state, first = space.pairs[:, 0], space.csr.state_ptr[:-2]
    weights = exp(w - np.maximum.reduceat(w, first)[state])
    return Policy.unchecked(space, weights / np.add.reduceat(weights, first)[state])


def log_gradient(policy: Policy, path: NDArray[np.int64], delta: FloatArray) -> FloatArray:
    """Return Σ_k δ_k ∇ log π(a_k|s_k) (n_pairs,): δ_k (1[a = a_k] − π(a|s_k)) at the pairs (s_k,a), 0 elsewhere."""
    space = policy.space
    met = np.zeros(space.n_states)
    met[space.tuples[path, 0]] = delta
    gradient: FloatArray = -met[space.pairs[:, 0]] * policy.probabilities
    gradient[space.pair_of_tuple[path]] += delta
    return gradient


# --------------------------------------------------------------------------------------------- importance weights
#
# Estimates of losses: those of the path, divided by the probability of passing there under the known model, or by an
# upper bound on it (Jin et al. 2020).

#: A smaller probability never occurs: random numbers are multiples of it.
NEVER = 2.0**-53


def importance_weighted(
    space: LayeredSpace,
    path: NDArray[np.int64],
    losses: FloatArray,
    weight: FloatArray,
    gamma: FloatArray | float = 0.0,
) -> FloatArray:
    """Return ℓ̂ (n_tuples,): ℓ_k / (weight_k + γ) at the pair of step k, for every k, and 0 elsewhere.

    `path`, `losses` and `weight` are (L,), and γ may be. With weight the probability of passing (s,a) and γ = 0, ℓ̂ is
    unbiased for the mean loss of (s,a); a larger weight or γ > 0 (implicit exploration) makes it smaller.
    """
    estimate = np.zeros(space.n_pairs)
    estimate[np.searchsorted(space.csr.pair_ptr, path, side="right") - 1] = losses / (weight + gamma)
    return space.expand_to_tuples(estimate)


def unbiased(
    model: LayeredMDP, policy: Policy, path: NDArray[np.int64], losses: FloatArray, episode: int
) -> FloatArray:
    """Return losses / q along the path and 0 elsewhere (n_tuples,), q the probability of passing the pair.

    The expectation is the loss wherever q is positive. A path that the policy cannot have played is refused.
    """
    space = model.space
    q = space.expand_to_tuples(space.sum_over_successors(model.occupancy(policy)))[path]
    if q.min() < NEVER:
        k = int(np.argmin(q))
        s, a, _ = space.tuples[path[k]]
        raise InvalidInputError(
            f"episode {episode}: step {k} took action {a} at state {s}, which the policy that played it does with "
            f"probability {q[k]:.3g} under the model; play what `policy` says, or say who played (BanditEpisode.policy)"
        )
    return importance_weighted(space, path, losses, q)


def upper_bounds(policy: Policy, box: Box, path: NDArray[np.int64]) -> FloatArray:
    """Return u (L,): the largest probability of passing the pair of each step under any model of the box."""
    u: FloatArray = core.upper_occupancy(policy.space.native, policy.probabilities, box.lower, box.upper, path)
    return u


def estimated(
    policy: Policy, box: Box, path: NDArray[np.int64], losses: FloatArray, exploration: FloatArray | float
) -> FloatArray:
    """Return losses / (u + γ) along the path and 0 elsewhere (n_tuples,), from the losses (L,) of the path."""
    return importance_weighted(policy.space, path, losses, upper_bounds(policy, box, path), exploration)


def published_exploration(space: LayeredSpace, level: float, episodes: int) -> float:
    """Return sqrt(L log(L|S||A|/δ) / (T|S||A|)), both γ and η of Theorem 3."""
    L, n_pairs = space.n_layers, space.n_states * space.n_actions
    return float(np.sqrt(L * log(L * n_pairs / level) / (episodes * n_pairs)))


# --------------------------------------------------------------------------------------------- learning rate
#
# A learning rate without units and without a horizon: η = 1/√(F²/h² + S/κ²), F the largest span of a loss so far, S the
# sum of the squared spans of the changes of the loss. If losses do not change, η stays h/F; if they change in every
# episode, it decreases like 1/√m.


def spans_after(
    space: LayeredSpace, f: FloatArray, last: FloatArray, F: float, S: float, steps: int
) -> tuple[float, float]:
    """Return F and S after one more loss f."""
    span = core.span(space.native, f)
    change = core.span(space.native, f - last) if steps > 0 else 0.0
    return max(F, span if span >= core.SMALLEST else 0.0), S + change * change


def rate(F: float, S: float, first_rate: float, change_rate: float) -> float:
    """Return η; 1 as long as all losses were constant."""
    if F <= 0:
        return 1.0
    fixed, grown = F / first_rate, math.sqrt(S) / change_rate
    largest = max(fixed, grown)  # outside of the root, so that squares do not underflow
    return 1 / (largest * math.sqrt((fixed / largest) ** 2 + (grown / largest) ** 2))


# --------------------------------------------------------------------------------------------- blocks
#
# A block is a number of consecutive episodes with one policy; one step learns from all of them.

#: Blocks may become one episode longer after every so many episodes.
BLOCK_GROWTH = 250


class InBlocks(Protocol):
    """The fields of a state that describe its block."""

    @property
    def observed(self) -> int:
        """The number of episodes observed so far."""
        ...

    @property
    def losses(self) -> FloatArray:
        """(n_tuples,) sum of the losses of the block."""
        ...

    @property
    def waiting(self) -> int:
        """The number of losses in that sum."""
        ...

    @property
    def last_use(self) -> FloatArray:
        """(I,) the use of the last path."""
        ...

    @property
    def squares(self) -> FloatArray:
        """(I,) the sum of the squares of the differences between the uses of successive paths."""
        ...


class Block(NamedTuple):
    """The block after one more episode; `waiting` is 0 if the block has ended, and a step is due."""

    losses: FloatArray
    waiting: int
    last_use: FloatArray
    squares: FloatArray


def block_after(state: InBlocks, f: FloatArray, met: FloatArray, most: int) -> Block:
    """Add a loss f (n_tuples,) and the constraints met on the path (I, L) to the block of at most `most` episodes."""
    use, waiting = met.sum(axis=1), state.waiting + 1
    squares = state.squares + (use - state.last_use) ** 2 if state.observed > 0 else state.squares
    if waiting < block_length(state, most):
        return Block(state.losses + f, waiting, use, squares)
    return Block(no_losses(f.size), 0, use, squares)


def block_loss(state: InBlocks, f: FloatArray) -> FloatArray:
    """Return the mean loss of the block whose last loss is f."""
    return f if state.waiting == 0 else (state.losses + f) / (state.waiting + 1)


def block_length(state: InBlocks, most: int) -> int:
    """Return the number of episodes in the block of the last episode."""
    return min(most, 1 + (state.observed + 1) // BLOCK_GROWTH)


def no_losses(n_tuples: int) -> FloatArray:
    """Return an empty sum of losses, a broadcast zero that takes no memory."""
    return np.broadcast_to(0.0, (n_tuples,))


def standard_deviations(squares: FloatArray, t: int) -> FloatArray:
    """Return σ (I,) of the use of a path, given the sum of squares over t paths.

    Successive paths have nearly the same policy, so half of the mean squared difference of their uses estimates the
    variance, even if the mean changes slowly.
    """
    sigma: FloatArray = np.sqrt(squares / 2 / max(t - 1, 1))
    return sigma
