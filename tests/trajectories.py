"""All trajectories of a small model, so that an expectation over them is a sum."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.conftest import pair_of_tuple
from tightrope.model import LayeredMDP, Policy


def trajectories(mdp: LayeredMDP, policy: Policy) -> Iterator[tuple[NDArray[np.int64], float]]:
    """(path, probability) of every trajectory that can happen; a path holds the tuple of each step."""
    space = mdp.space
    chance = policy.probabilities[pair_of_tuple(space)] * mdp.transitions

    def extend(state: int, path: list[int], probability: float) -> Iterator[tuple[NDArray[np.int64], float]]:
        if len(path) == space.n_layers:
            yield np.array(path, dtype=np.int64), probability
            return
        for j in np.flatnonzero((space.tuples[:, 0] == state) & (chance > 0)):
            yield from extend(int(space.tuples[j, 2]), [*path, int(j)], probability * chance[j])

    yield from extend(0, [], 1.0)
