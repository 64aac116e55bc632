"""One root seed, four independent streams of randomness."""

from typing import NamedTuple

import numpy as np


class Streams(NamedTuple):
    """One generator for each part of a run, so that the draws of one do not affect the others."""

    environment: np.random.Generator
    constraints: np.random.Generator
    adversary: np.random.Generator
    learner: np.random.Generator


def streams(seed: int) -> Streams:
    """Return the new streams of a run with this root seed."""
    return Streams(*(np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)))
