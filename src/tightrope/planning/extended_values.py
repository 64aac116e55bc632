"""Policies that are the best under the best model of a confidence set."""

from tightrope import core
from tightrope.confidence import L1Ball
from tightrope.model import Policy
from tightrope.planning.policies import deterministic
from tightrope.space import FloatArray, LayeredSpace


def optimistic_policy(space: LayeredSpace, ball: L1Ball, cost: FloatArray) -> Policy:
    """A deterministic policy with the least cost (n_tuples,) over all policies and all models in `ball`."""
    _, best = core.extended_values(space.native, ball.center, ball.radius, cost)
    return deterministic(space, best)
