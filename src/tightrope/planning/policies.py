"""Policies as dynamic programming finds them."""

import numpy as np

from tightrope.model import Policy
from tightrope.space import IntArray, LayeredSpace


def deterministic(space: LayeredSpace, pairs: IntArray) -> Policy:
    """The policy that takes the given pair at every state."""
    pi = np.zeros(space.n_pairs)
    pi[pairs] = 1.0
    return Policy.unchecked(space, pi)
