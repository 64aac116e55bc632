"""What the models of a confidence set can make of a cost: the most that a policy pays, the least that any can."""

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.confidence.sets import Box, ConfidenceSet, KLBall, L1Ball
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace


class Bounds(NamedTuple):
    """A set as `core.largest_values` takes it."""

    curved: bool
    lower: FloatArray
    upper: FloatArray
    center: FloatArray
    radius: FloatArray


@singledispatch
def bounds_of(confidence: ConfidenceSet, space: LayeredSpace) -> Bounds:
    """The set's bounds; for sets of one's own, register how."""
    kind = type(confidence).__name__
    raise InvalidInputError(f"the extremes of {kind} are not known; register its bounds with tightrope.confidence")


@bounds_of.register
def _(confidence: L1Ball, space: LayeredSpace) -> Bounds:
    center = np.where(space.expand_to_tuples(confidence.radius < 2), confidence.center, _even(space))
    center = center / space.expand_to_tuples(space.sum_over_successors(center))
    return Bounds(False, np.zeros_like(center), np.ones_like(center), center, confidence.radius)


@bounds_of.register
def _(confidence: Box, space: LayeredSpace) -> Bounds:
    least, most = space.sum_over_successors(confidence.lower), space.sum_over_successors(confidence.upper)
    share = np.divide(1 - least, most - least, where=most > least, out=np.zeros_like(least))
    center = confidence.lower + space.expand_to_tuples(share) * (confidence.upper - confidence.lower)
    radius = np.full(space.n_pairs, np.inf)
    if confidence.ball is not None:
        bound = confidence.ball.radius < 2
        center = np.where(space.expand_to_tuples(bound), confidence.ball.center, center)
        radius = np.where(bound, confidence.ball.radius, np.inf)
    return Bounds(False, confidence.lower, confidence.upper, center, radius)


@bounds_of.register
def _(confidence: KLBall, space: LayeredSpace) -> Bounds:
    free = confidence.free(space)
    center = np.where(space.expand_to_tuples(free), _even(space), confidence.center)
    center = center / space.expand_to_tuples(space.sum_over_successors(center))
    return Bounds(True, center, center, center, np.where(free, np.inf, confidence.radius))


def known(confidence: ConfidenceSet) -> bool:
    """Whether the set's bounds are."""
    return bounds_of.dispatch(type(confidence)) is not bounds_of.dispatch(object)


def _even(space: LayeredSpace) -> FloatArray:
    even: FloatArray = space.expand_to_tuples(1 / space.successors_per_pair)
    return even


class WorstUse(NamedTuple):
    """What a policy pays under the worst model of a set."""

    most: float  #: max over the models of <cost, θ>, θ the measure of the policy
    more: FloatArray  #: (n_tuples,) q(s,a) − V(s): what it would pay more with action a in s, at worst, then as before
    model: FloatArray  #: (n_tuples,) that attains it


def worst_use(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> WorstUse:
    """The most that `policy` pays over all models of the set, and what deviations from it would add."""
    V, p = _worst(space, bounds, policy, cost)
    q = space.sum_over_successors(p * (cost + V[space.csr.successor]))
    return WorstUse(float(V[0]), space.expand_to_tuples(q - V[space.pairs[:, 0]]), p)


def most_paid(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> tuple[float, FloatArray]:
    """max over the models of the set of <cost, θ>, θ the measure of `policy`; and the model that attains it."""
    V, p = _worst(space, bounds, policy, cost)
    return float(V[0]), p


def _worst(space: LayeredSpace, bounds: Bounds, policy: Policy, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """V (n_states,) and the model of `core.largest_values`."""
    V, _, p = core.largest_values(space.native, *bounds, cost, policy.probabilities)
    return V, p


def least_possible(space: LayeredSpace, bounds: Bounds, cost: FloatArray) -> tuple[float, FloatArray]:
    """min over all policies and all models of the set of <cost, θ>; and a θ that attains it."""
    V, best, p = core.largest_values(space.native, *bounds, -cost, None)
    theta = space.expand_to_tuples(core.visits(space.native, best, p)) * p
    return -float(V[0]), theta
