"""Parts that learners are composed of: confidence rules, the mirror step with its solver, and their values.

A part belongs to the configuration of a learner and does not change. What changes is a field of the learner's state,
which the part takes and returns. A part may keep the last value of a pure function (a confidence set, where its solver
is): that saves time and changes no result.
"""

from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from tightrope import core
from tightrope.arguments import function, shown, unknown
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, ConfidenceSet, Counts, KnownModel
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace

#: The share of its layer that a state keeps in a reference at the least, and the share of its state that a tuple does:
#: D is infinite where nothing is left, and the solver holds weights that are this far apart
#: (docs/explanation/solver.md).
FLOOR = 1e-140


class Solver(Protocol):
    """A solver that begins where its last answer was.

    `state` returns arrays that the solver does not write to afterwards. `restore` takes them, copies what it will write
    to, and raises `InvalidInputError` for arrays that no solve can have left.
    """

    def state(self) -> dict[str, FloatArray]: ...

    def restore(self, state: dict[str, FloatArray]) -> None: ...


class WarmStart:
    """Where a solver begins, as a value: with the same one, the next answer is the same to the last bit."""

    __slots__ = ("_arrays", "_solver")

    def __init__(self, solver: "Warmed[Any]", arrays: dict[str, FloatArray]) -> None:
        self._solver = solver
        self._arrays = arrays

    def state(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        return self._arrays

    def restored(self, state: dict[str, FloatArray]) -> "WarmStart":
        """Return the warm start of these arrays; raise `InvalidInputError` where the solver cannot begin there."""
        return self._solver.begin_at(state)


S = TypeVar("S", bound=Solver)


class Warmed(Generic[S]):
    """A solver whose warm start is a value that is passed in and out."""

    def __init__(self, solver: S) -> None:
        self._solver = solver
        self._held: WarmStart | None = None  # what the solver would begin with

    def begin_at(self, arrays: dict[str, FloatArray]) -> WarmStart:
        """Return the warm start of these arrays; raise what the solver raises if it cannot begin there."""
        self._held = None
        self._solver.restore(arrays)
        self._held = WarmStart(self, arrays)
        return self._held

    def from_(self, warm: WarmStart) -> S:
        """Return the solver, ready to begin at `warm`; after its solve comes `now`."""
        if warm is not self._held:
            self._solver.restore(warm.state())
        self._held = None  # should the solver raise, what it then holds is of no use
        return self._solver

    def now(self) -> WarmStart:
        """Return where the next solve begins."""
        self._held = WarmStart(self, self._solver.state())
        return self._held

    def __reduce__(self) -> tuple[type["Warmed[Any]"], tuple[S]]:
        """Copy and pickle it without what the solver holds: the copy of a solver begins cold."""
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
        """Return the warm start before the first step; raise what the rule raises for these counts."""
        self.set_of(counts)
        return self.solver.now()

    def __call__(
        self, warm: WarmStart, counts: Counts, reference: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, WarmStart]:
        """Return θ (n_tuples,) for this reference and cost (n_tuples,), and where the next step begins.

        Raises `ConvergenceError` if the solver misses its tolerance.
        """
        confidence = self.set_of(counts)
        theta = np.empty(self.space.n_tuples)
        self.solver.from_(warm).solve(reference, cost, confidence, theta)
        return theta, self.solver.now()


def positive(space: LayeredSpace, theta: FloatArray) -> FloatArray:
    """Return θ with a little mass in every tuple: the reference of methods that mix no other mass in."""
    reference: FloatArray = core.lift(space.native, theta, FLOOR)
    return reference


def policy_of_measure(space: LayeredSpace, theta: FloatArray) -> Policy:
    """Return π(a|s) ∝ Σ_s' θ(s,a,s')."""
    return Policy.unchecked(space, core.policy_of(space.native, theta))


class PolicyOfMeasure:
    """`policy_of_measure`, with the last one kept: most episodes of a block leave θ as it is."""

    def __init__(self, space: LayeredSpace) -> None:
        self._space = space
        self._last: tuple[FloatArray, Policy] | None = None

    def __call__(self, theta: FloatArray) -> Policy:
        last = self._last
        if last is None or last[0] is not theta:
            last = self._last = (theta, policy_of_measure(self._space, theta))
        return last[1]


def even_measure(space: LayeredSpace) -> FloatArray:
    """Return the measure of the uniform policy where every successor is as likely.

    Where layers are dense it is uniform on each, as published; elsewhere that would be no occupancy measure.
    """
    return LayeredMDP.even(space).occupancy(Policy.uniform(space))


#: Draws beside which those that a belief begins with are rounding.
FOREVER = 1e18


@dataclass(frozen=True, slots=True)
class Dynamics:
    """What a learner knows of the dynamics: a rule that makes confidence sets of counts, or the model itself."""

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
        """Return θ^1: the measure of the uniform policy under the model, or where every successor is as likely."""
        if self.model is None:
            return even_measure(self.space)
        return self.model.occupancy(Policy.uniform(self.space))

    def evidence(self, counts: Counts) -> tuple[Any, Any]:
        """Return the visits of every pair and tuple, ties pooled, that a belief about the model is made of.

        A known model is as if every law had been drawn from so often that nothing else can be believed.
        """
        if self.model is None:
            return counts.laws
        return np.full(len(counts.N), FOREVER), FOREVER * self.model.transitions

    def epoch_of(self, counts: Counts) -> int:
        """Return the number of the epoch: 1 for ever if the model is known."""
        return counts.epoch if self.model is None else 1
