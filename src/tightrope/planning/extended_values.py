"""Policies that are the best under the best model of a confidence set."""

import numpy as np

from tightrope.confidence import L1Ball
from tightrope.model import Policy
from tightrope.planning.kernels.extended_values import extended_values
from tightrope.planning.policies import deterministic
from tightrope.space import FloatArray, LayeredSpace


def optimistic_policy(space: LayeredSpace, ball: L1Ball, cost: FloatArray) -> Policy:
    """A deterministic policy with the least cost (n_tuples,) over all policies and all models in `ball`."""
    V, best = np.empty(space.n_states), np.empty(space.n_states - 1, dtype=np.int64)
    extended_values(space.csr, ball.center, ball.radius, cost, V, best)
    return deterministic(space, best)
