"""Losses estimated where the path went, by how often the policy passes there: under the model where that is known,
else at the most that it can be (Jin et al. 2020)."""

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arithmetic import log
from tightrope.confidence import Box
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace

#: A probability of which nothing comes: random numbers are multiples of it.
NEVER = 2.0**-53


def importance_weighted(
    space: LayeredSpace, path: NDArray[np.int64], losses: FloatArray, weight: FloatArray, gamma: float = 0.0
) -> FloatArray:
    """(n_tuples,) ℓ̂(s,a) = ℓ_k / (weight_k + γ) at the pair of step k, for every k, and 0 elsewhere.

    `path`, `losses` and `weight` are (L,). With weight the probability of passing (s,a) and γ = 0, ℓ̂ is unbiased for
    the mean loss of (s,a); a larger weight or γ > 0 (implicit exploration) makes it smaller.
    """
    estimate = np.zeros(space.n_pairs)
    estimate[np.searchsorted(space.csr.pair_ptr, path, side="right") - 1] = losses / (weight + gamma)
    return space.expand_to_tuples(estimate)


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
    return importance_weighted(space, path, losses, q)


def upper_bounds(policy: Policy, box: Box, path: NDArray[np.int64]) -> FloatArray:
    """u (L,) at the pair of each step: the largest probability of passing it under any model of the box."""
    u: FloatArray = core.upper_occupancy(policy.space.native, policy.probabilities, box.lower, box.upper, path)
    return u


def estimated(policy: Policy, box: Box, path: NDArray[np.int64], losses: FloatArray, exploration: float) -> FloatArray:
    """(n_tuples,) losses / (u + γ) where the path went and 0 elsewhere, from the losses (L,) that it met."""
    return importance_weighted(policy.space, path, losses, upper_bounds(policy, box, path), exploration)


def published_exploration(space: LayeredSpace, level: float, episodes: int) -> float:
    """γ = sqrt(L log(L|S||A|/δ) / (T|S||A|)) of Theorem 3, which is its η too."""
    L, n_pairs = space.n_layers, space.n_states * space.n_actions
    return float(np.sqrt(L * log(L * n_pairs / level) / (episodes * n_pairs)))
