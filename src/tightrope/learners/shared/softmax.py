"""Policy gradient methods: π(a|s) ∝ exp w(s,a), and the gradient of its logarithm along a path."""

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import exp
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace


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
