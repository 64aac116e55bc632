"""Losses estimated where the path went, by how often the policy passes there: under the model where that is known,
else at the most that it can be (Jin et al. 2020)."""

import numpy as np
from numpy.typing import NDArray

from tightrope.confidence import Box
from tightrope.errors import InvalidInputError
from tightrope.learners.kernels.estimators import importance_weighted
from tightrope.learners.kernels.upper_occupancy import upper_occupancy
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace

#: A probability of which nothing comes: random numbers are multiples of it.
NEVER = 2.0**-53


def unbiased(
    model: LayeredMDP, policy: Policy, path: NDArray[np.int64], losses: FloatArray, episode: int
) -> FloatArray:
    """(n_tuples,) losses / q where the path went and 0 elsewhere, q(s,a) how likely the policy passes there.

    The mean of it is the loss, wherever q is positive. A path that cannot be the policy's is refused.
    """
    space = model.space
    q = space.expand_to_tuples(space.sum_over_successors(model.occupancy(policy)))[path]
    if q.min() < NEVER:
        k = int(np.argmin(q))
        s, a, _ = space.tuples[path[k]]
        raise InvalidInputError(
            f"episode {episode}: step {k} took action {a} at state {s}, which the policy that played it does with "
            f"probability {q[k]:.3g} under the model; play what `policy` says, or say who played (BanditEpisode.policy)"
        )
    estimate = np.empty(space.n_tuples)
    importance_weighted(space.csr.pair_ptr, path, losses, q, 0.0, estimate)
    return estimate


def upper_bounds(policy: Policy, box: Box, path: NDArray[np.int64]) -> FloatArray:
    """u (L,) at the pair of each step: the largest probability of passing it under any model of the box."""
    space = policy.space
    u, reach = np.empty(space.n_layers), np.empty(space.n_states)
    upper_occupancy(space.csr, policy.probabilities, box.lower, box.upper, path, reach, u)
    return u


def estimated(policy: Policy, box: Box, path: NDArray[np.int64], losses: FloatArray, exploration: float) -> FloatArray:
    """(n_tuples,) losses / (u + γ) where the path went and 0 elsewhere, from the losses (L,) that it met."""
    estimate, pair_ptr = np.empty(policy.space.n_tuples), policy.space.csr.pair_ptr
    importance_weighted(pair_ptr, path, losses, upper_bounds(policy, box, path), exploration, estimate)
    return estimate


def published_exploration(space: LayeredSpace, level: float, episodes: int) -> float:
    """γ = sqrt(L log(L|S||A|/δ) / (T|S||A|)) of Theorem 3, which is its η too."""
    L, n_pairs = space.n_layers, space.n_states * space.n_actions
    return float(np.sqrt(L * np.log(L * n_pairs / level) / (episodes * n_pairs)))
