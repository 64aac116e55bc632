"""Deterministic policies from dynamic programming, and optimistic ones over a confidence set."""

import numpy as np

from tightrope import core
from tightrope.confidence import L1Ball
from tightrope.model import Policy
from tightrope.space import FloatArray, IntArray, LayeredSpace


def deterministic(space: LayeredSpace, pairs: IntArray) -> Policy:
    """The policy that takes the given pair at every state."""
    pi = np.zeros(space.n_pairs)
    pi[pairs] = 1.0
    return Policy.unchecked(space, pi)


def least_values(space: LayeredSpace, Q: FloatArray) -> FloatArray:
    """(n_states,) min_a Q(s,a) of values (n_pairs,), 0 at the last state."""
    return np.append(np.minimum.reduceat(Q, space.csr.state_ptr[:-2]), 0.0)


def greedy(space: LayeredSpace, Q: FloatArray) -> Policy:
    """The policy that takes the pair with the least Q (n_pairs,) at every state, the first one of equals."""
    state, best = space.pairs[:, 0], np.empty(space.n_states - 1, dtype=np.int64)
    least = np.flatnonzero(least_values(space, Q)[state] == Q)[::-1]
    best[state[least]] = least  # of several the last is kept, which is the first
    return deterministic(space, best)


def optimistic_policy(space: LayeredSpace, ball: L1Ball, cost: FloatArray) -> Policy:
    """A deterministic policy with the least cost (n_tuples,) over all policies and all models in `ball`."""
    _, best = core.extended_values(space.native, ball.center, ball.radius, cost)
    return deterministic(space, best)
