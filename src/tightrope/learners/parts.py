"""Parts that learners are composed of: confidence rules, the mirror step with its solver, and their values.

A part belongs to the configuration of a learner and never changes; what changes is a field of the learner's state, which
the part takes and returns. Parts remember the last value of a pure function (a confidence set, a solver's workspace):
that saves time and changes no result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tightrope.arguments import function, instance, shown, unknown
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, ConfidenceSet, Counts, KnownModel
from tightrope.errors import InvalidInputError
from tightrope.kernels.occupancy import policy_of
from tightrope.learners.kernels.primal_dual import lift
from tightrope.model import LayeredMDP, Policy
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties

#: The share of its layer that a state keeps in a reference at the least, and the share of its state that a tuple does:
#: D is infinite where nothing is left, and the solver holds weights that are this far apart (docs/solver.md).
FLOOR = 1e-140


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Where the solver of the mirror step begins: with the same one, the next answer is the same to the last bit."""

    potentials: FloatArray  #: (n_states,) β of the last answer
    thresholds: FloatArray  #: (2, n_pairs)
    factor: FloatArray  #: of the Hessian; empty where the solver forms none
    factor_damping: FloatArray  #: (1,) NaN: there is no factor

    def state(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def restored(self, state: Mapping[str, FloatArray]) -> "WarmStart":
        """Return the warm start of these arrays; raise `InvalidInputError` where the solver cannot begin there."""
        damping = float(state["factor_damping"][0])
        for name in ("potentials", "thresholds", "factor"):
            if not (np.isfinite(state[name]).all() or (name == "factor" and np.isnan(damping))):
                raise InvalidInputError(f"the {name} of the solver are not finite")
        if state["potentials"][[0, -1]].any():
            raise InvalidInputError("the potentials of the solver must be 0 at the first and the last state")
        if damping < 0 or np.isinf(damping):
            raise InvalidInputError(f"factor_damping of the solver is {damping}; expected NaN, or 0 or more")
        return WarmStart(**state)


class MirrorStep:
    """θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference), Δ the measures whose conditionals lie in the
    confidence set that a rule makes of the counts before the epoch."""

    def __init__(self, space: LayeredSpace, rule: ConfidenceRule, tolerance: float = 1e-9) -> None:
        self.space = space
        self.rule = rule
        self._projector = Projector(space, tolerance)
        self._warm: WarmStart | None = None  # what the projector holds
        self._set: tuple[Any, ConfidenceSet] | None = None  # the last counts N, and the set that the rule made

    def set_of(self, counts: Counts) -> ConfidenceSet:
        """Return the confidence set of the epoch of these counts.

        Raises `InvalidInputError` if a rule of the user's own makes no set, or one for another space.
        """
        if self._set is None or self._set[0] is not counts.N:
            made = self.rule(self.space, *counts.laws)
            if not isinstance(made, ConfidenceSet):
                raise InvalidInputError(f"the confidence rule made {shown(made)}; expected a set, such as L1Ball")
            made.check(self.space)
            self._set = (counts.N, made)
        return self._set[1]

    def begin(self, counts: Counts) -> WarmStart:
        """Return the warm start before the first step; raise what the rule raises for these counts."""
        self.set_of(counts)
        return self._captured()

    def __call__(
        self, warm: WarmStart, counts: Counts, reference: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, WarmStart]:
        """Return θ (n_tuples,) for this reference and cost (n_tuples,), and where the next step begins.

        Raises `ConvergenceError` if the solver misses its tolerance.
        """
        if warm is not self._warm:
            self._projector.restore(warm.state())
        self._warm, theta = None, np.empty(self.space.n_tuples)  # should the solver raise, it holds nothing of use
        self._projector.solve(reference, cost, self.set_of(counts), theta)
        return theta, self._captured()

    def _captured(self) -> WarmStart:
        self._warm = WarmStart(**{name: values.copy() for name, values in self._projector.state().items()})
        return self._warm

    def positive(self, theta: FloatArray) -> FloatArray:
        """Return θ with a little in every tuple: the reference of methods that mix no other mass in."""
        reference = np.empty(self.space.n_tuples)
        lift(self.space.csr, theta, FLOOR, reference)
        return reference


def policy_of_measure(space: LayeredSpace, theta: FloatArray) -> Policy:
    """Return π(a|s) ∝ Σ_s' θ(s,a,s')."""
    probabilities = np.empty(space.n_pairs)
    policy_of(space.csr.state_ptr, space.csr.pair_ptr, theta, probabilities)
    return Policy.unchecked(space, probabilities)


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
        if ties is not None and instance(ties, "ties", Ties).space != space:
            raise InvalidInputError(f"ties is {ties!r} on {ties.space!r}; expected some on {space!r}")
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
