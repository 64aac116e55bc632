"""One root seed, four independent streams of randomness."""

from typing import NamedTuple

import numpy as np


class Streams(NamedTuple):
    """Who draws from what: same seed, same bits, whatever the others draw."""

    environment: np.random.Generator
    constraints: np.random.Generator
    adversary: np.random.Generator
    learner: np.random.Generator


def streams(seed: int) -> Streams:
    """The streams of a run with this root seed, all at their beginning."""
    return Streams(*(np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)))
