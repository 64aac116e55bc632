"""Models, policies and occupancy measures on a layered space.

An occupancy measure θ(s,a,s') is the probability that an episode passes through (s,a,s'): it sums to one on every
layer, conserves flow at every inner state, and its conditionals are the model.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import instance, shown
from tightrope.arguments.arrays import finite, floats
from tightrope.arithmetic import dot
from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray, LayeredSpace

#: The tolerance of the sum of a distribution.
SUM_TOLERANCE = 1e-9

#: The tolerance of the sum of a measure over a layer, which a solver computed.
MEASURE_TOLERANCE = 1e-6

#: Larger numbers are scaled by this power of two before they are summed, since their sums could overflow.
LARGE, SMALLER = 1e290, 2.0**-64

#: Sums this close to one are not normalised, so that the given bits are kept.
ROUNDING = 1e-13


def flat(values: ArrayLike, size: int, what: str) -> FloatArray:
    """Return `values` as a finite, contiguous, writable float array of shape (size,), or raise InvalidInputError."""
    return finite(floats(values, what, (size,)), what)


def _measure(space: LayeredSpace, theta: ArrayLike) -> FloatArray:
    """Return `theta` as a finite, non-negative array of shape (n_tuples,), or raise InvalidInputError."""
    measure = flat(theta, space.n_tuples, "theta")
    if (measure < 0).any():
        j = int(np.argmax(measure < 0))
        s, a, s_next = space.tuples[j]
        raise InvalidInputError(f"theta is {measure[j]} at tuple ({s}, {a}, {s_next}); it cannot be negative")
    return measure if measure.max() < LARGE else SMALLER * measure


def check_measure(space: LayeredSpace, theta: FloatArray, what: str) -> None:
    """Raise InvalidInputError unless `theta` sums to one on every layer, up to the tolerance of solvers."""
    totals = np.add.reduceat(theta, space.tuples_before[:-1])
    wrong = ~(np.abs(totals - 1) <= MEASURE_TOLERANCE)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InvalidInputError(f"{what} is not an occupancy measure: it sums to {totals[k]:.12g} on layer {k}, not 1")


def inner(values: ArrayLike, theta: FloatArray) -> Any:
    """Return <values, θ> over the last axis: a number for values (n_tuples,), an array (I,) for (I, n_tuples)."""
    return dot(values, theta)


class Policy:
    """Action probabilities at every state, flat over `space.pairs`.

    `policy[state]` is a dict from actions to probabilities; states and actions have names if the space has.

    Parameters
    ----------
    space : the layered space.
    probabilities : (n_pairs,), which sum to 1 in every state.

    Raises
    ------
    InvalidInputError : if they are not distributions.

    Examples
    --------
    >>> policy = Policy.uniform(LayeredSpace.dense([1, 2, 1], 2).named(["home", "lane", "road", "town"], ["go", "run"]))
    >>> policy[1], policy["lane"]
    ({0: 0.5, 1: 0.5}, {'go': 0.5, 'run': 0.5})
    """

    __iter__ = None  # states are looked up; there are no entries to iterate over

    def __init__(self, space: LayeredSpace, probabilities: ArrayLike) -> None:
        pi = flat(probabilities, instance(space, "space", LayeredSpace).n_pairs, "probabilities").copy()
        if (pi < 0).any():
            i = int(np.argmax(pi < 0))
            s, a = space.pairs[i]
            raise InvalidInputError(f"action {a} at state {s} has probability {pi[i]}; it cannot be negative")
        with np.errstate(over="ignore"):
            totals = np.add.reduceat(pi, space.csr.state_ptr[:-2])
        wrong = np.abs(totals - 1) > SUM_TOLERANCE
        if wrong.any():
            s = int(np.argmax(wrong))
            raise InvalidInputError(f"action probabilities at state {s} sum to {totals[s]:.12g}, not 1")
        self.space = space
        self.probabilities = pi

    @classmethod
    def unchecked(cls, space: LayeredSpace, probabilities: FloatArray) -> Self:
        """Wrap probabilities that are known to be valid, such as those from the core, without a check or a copy."""
        policy = cls.__new__(cls)
        policy.space, policy.probabilities = space, probabilities
        return policy

    @classmethod
    def uniform(cls, space: LayeredSpace) -> Self:
        """Return the policy that takes every available action with equal probability."""
        n_actions = np.diff(instance(space, "space", LayeredSpace).csr.state_ptr)[:-1]
        return cls.unchecked(space, np.repeat(1.0 / n_actions, n_actions))

    @classmethod
    def from_occupancy(cls, space: LayeredSpace, theta: ArrayLike) -> Self:
        """Return the policy π(a|s) ∝ Σ_s' θ(s,a,s') of a measure θ, (n_tuples,); uniform at states that θ misses."""
        theta = _measure(instance(space, "space", LayeredSpace), theta)
        return cls.unchecked(space, core.policy_of(space.native, theta))

    def _pairs(self, state: int) -> tuple[int, int]:
        """Return the first pair of a state, and the first pair after those of the state."""
        first, end = self.space.csr.state_ptr[state : state + 2].tolist()
        return first, end

    def __getitem__(self, state: int | str) -> dict[Any, float]:
        """Return the probability of each action of a state: by name if the state is given by name, else by number."""
        first, end = self._pairs(self.space.state_number(state))
        actions: list[Any] = self.space.csr.action[first:end].tolist()
        if isinstance(state, str):
            actions = [self.space.action_name(action) for action in actions]
        return dict(zip(actions, self.probabilities[first:end].tolist(), strict=True))

    def sample(self, state: int | str, rng: np.random.Generator) -> int:
        """Draw an action for a state, given by number or name, with one number of the generator."""
        instance(rng, "rng", np.random.Generator)
        first, end = self._pairs(self.space.state_number(state))
        if first == end:
            raise InvalidInputError(f"state {shown(state)} ends the episode; it has no actions")
        return int(self.space.csr.action[core.draw(self.probabilities, first, end, rng.random())])

    def table(self) -> dict[str, list[Any]]:
        """Columns with a row for each pair, as `pandas.DataFrame` and `polars.DataFrame` take them.

        layer, state, action, probability, and how state and action are called (their numbers, if they have no names).
        """
        space = self.space
        states, actions = space.pairs.T.tolist()
        return {
            "layer": space.layer_of_pair.tolist(),
            "state": states,
            "action": actions,
            "probability": self.probabilities.tolist(),
            "state_name": [space.state_name(state) for state in states],
            "action_name": [space.action_name(action) for action in actions],
        }

    def __repr__(self) -> str:
        return f"Policy({self.space!r})"


class LayeredMDP:
    """A layered space with its transition probabilities, flat over `space.tuples`.

    Parameters
    ----------
    space : the layered space.
    transitions : (n_tuples,), which sum to 1 over the successors of every pair.

    Raises
    ------
    InvalidInputError : if they are not distributions.

    Examples
    --------
    >>> mdp = LayeredMDP(LayeredSpace.dense([1, 2, 1], 1), [0.75, 0.25, 1.0, 1.0])
    >>> mdp.occupancy(Policy.uniform(mdp.space)).tolist()
    [0.75, 0.25, 0.75, 0.25]
    """

    def __init__(self, space: LayeredSpace, transitions: ArrayLike) -> None:
        P = flat(transitions, instance(space, "space", LayeredSpace).n_tuples, "transitions").copy()
        if (P < 0).any():
            j = int(np.argmax(P < 0))
            s, a, s_next = space.tuples[j]
            raise InvalidInputError(f"transition ({s}, {a}, {s_next}) has probability {P[j]}; it cannot be negative")
        with np.errstate(over="ignore"):
            totals = space.sum_over_successors(P)
        wrong = np.abs(totals - 1) > SUM_TOLERANCE
        if wrong.any():
            i = int(np.argmax(wrong))
            s, a = space.pairs[i]
            raise InvalidInputError(f"transitions from state {s} under action {a} sum to {totals[i]:.12g}, not 1")
        self.space = space
        self.transitions = P / space.expand_to_tuples(np.where(np.abs(totals - 1) > ROUNDING, totals, 1.0))

    @classmethod
    def even(cls, space: LayeredSpace) -> Self:
        """Return the model in which all successors of a pair have equal probability."""
        return cls(space, 1.0 / space.expand_to_tuples(instance(space, "space", LayeredSpace).successors_per_pair))

    @classmethod
    def from_occupancy(cls, space: LayeredSpace, theta: ArrayLike) -> Self:
        """Return the model P(s'|s,a) ∝ θ(s,a,s') of a measure θ, (n_tuples,); uniform at pairs that θ misses."""
        theta = _measure(instance(space, "space", LayeredSpace), theta)
        return cls(space, core.model_of(space.native, theta))

    def named(self, state_names: Sequence[str] = (), action_names: Sequence[str] = ()) -> Self:
        """Return the model on a space with these names; empty ones are kept."""
        mdp = copy(self)
        mdp.space = self.space.named(state_names, action_names)
        return mdp

    def occupancy(self, policy: Policy) -> FloatArray:
        """(n_tuples,) the probability that an episode under `policy` passes through each tuple."""
        if instance(policy, "policy", Policy).space != self.space:
            raise InvalidInputError("the policy and the model have different spaces")
        theta: FloatArray = core.occupancy(self.space.native, policy.probabilities, self.transitions)
        return theta

    def __repr__(self) -> str:
        return f"LayeredMDP({self.space!r})"
