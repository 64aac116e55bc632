"""Trajectories: all of a small model, so that an expectation over them is a sum; and one by lot."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.conftest import FloatArray, pair_of_tuple
from tightrope import LayeredMDP, LayeredSpace, Policy


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


def sampled(space: LayeredSpace, played: FloatArray, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """States and actions of an episode of the policy and the model that have this measure."""
    states, actions = [0], []
    for _ in range(space.n_layers):
        at = np.flatnonzero(space.tuples[:, 0] == states[-1])
        j = rng.choice(at, p=played[at] / played[at].sum())
        actions.append(int(space.tuples[j, 1]))
        states.append(int(space.tuples[j, 2]))
    return states, actions
