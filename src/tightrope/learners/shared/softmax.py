"""What policy gradient methods have in common: π(a|s) ∝ exp w(s,a), and the gradient of its logarithm along a path."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arithmetic import exp
from tightrope.learners.base import LearnerBase
from tightrope.learners.parameters import carried
from tightrope.model import Policy
from tightrope.space import FloatArray


class SoftmaxLearner(LearnerBase):
    """Preferences w, and the policy that they make; its `observe` calls `_refuse_another`."""

    preferences: FloatArray = carried()  #: w (n_pairs,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.preferences = np.zeros(self.space.n_pairs)
        self.policy = self._softmax(self.preferences)

    def _softmax(self, w: FloatArray) -> Policy:
        """π(a|s) ∝ exp w(s,a)."""
        state, first = self.space.pairs[:, 0], self.space.csr.state_ptr[:-2]
        weights = exp(w - np.maximum.reduceat(w, first)[state])
        return Policy.unchecked(self.space, weights / np.add.reduceat(weights, first)[state])

    def _gradient(self, path: NDArray[np.int64], delta: FloatArray) -> FloatArray:
        """Σ_k δ_k ∇ log π(a_k|s_k) (n_pairs,): δ_k (1[a = a_k] − π(a|s_k)) at the pairs (s_k,a), 0 elsewhere."""
        space, met = self.space, np.zeros(self.space.n_states)
        met[space.tuples[path, 0]] = delta
        gradient: FloatArray = -met[space.pairs[:, 0]] * self.policy.probabilities
        gradient[space.pair_of_tuple[path]] += delta
        return gradient

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"preferences": (-np.inf, np.inf)}

    def _restored(self) -> None:
        self.policy = self._softmax(self.preferences)
