"""A model that is known only by bounds on every transition probability."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, flat
from tightrope.space import FloatArray, LayeredSpace


class Intervals(NamedTuple):
    """lower(s,a,s') <= P(s'|s,a) <= upper(s,a,s'), and how wide that is."""

    lower: FloatArray  # (n_tuples,)
    upper: FloatArray  # (n_tuples,)
    radius: (
        FloatArray  # (n_pairs,) the sum of the radii of a pair, as they were before the intervals were cut to [0, 1]
    )

    @classmethod
    def of_counts(
        cls, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64], log_term: float, scale: float = 1.0
    ) -> "Intervals":
        """Around the frequencies P̂ = M / N by the empirical Bernstein bound; a pair without visits is left free.

        β(s,a,s') = scale (√(4 P̂ (1 − P̂) log_term / N) + 14 log_term / (3 N)), and 1 at most.
        """
        n = space.expand_to_tuples(np.maximum(N, 1))
        P_hat = M / n
        deviation = np.sqrt(np.maximum(4 * P_hat * (1 - P_hat) * log_term / n, 0.0))
        beta = np.minimum(scale * (deviation + 14 * log_term / (3 * n)), 1.0)
        seen = space.expand_to_tuples(N > 0)
        lower = np.where(seen, np.maximum(P_hat - beta, 0.0), 0.0)
        upper = np.where(seen, np.minimum(P_hat + beta, 1.0), 1.0)
        return cls(lower, upper, space.sum_over_successors(beta))

    @classmethod
    def around(cls, mdp: LayeredMDP, radius: ArrayLike = 0.0) -> "Intervals":
        """A model plus and minus `radius`, a number or one for each tuple."""
        space, P = mdp.space, mdp.transitions
        beta = flat(np.broadcast_to(np.asarray(radius, np.float64), P.shape), space.n_tuples, "radius")
        if (beta < 0).any():
            raise InvalidInputError(f"radius is {beta.min()}; it cannot be negative")
        return cls(np.maximum(P - beta, 0.0), np.minimum(P + beta, 1.0), space.sum_over_successors(beta))
