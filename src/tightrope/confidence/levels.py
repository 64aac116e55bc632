"""What every rule checks of its parameters."""

import numpy as np

from tightrope.errors import InvalidInputError


def check_episodes(episodes: int) -> None:
    """Refuse what is no number of episodes."""
    if not episodes >= 1:
        raise InvalidInputError(f"episodes is {episodes}; at least one is needed")


def check_level(level: float, scale: float) -> None:
    """Refuse what is no probability, or no factor of a radius."""
    if not 0 < level < 1:
        raise InvalidInputError(f"level is {level}; it is a probability strictly between 0 and 1")
    if not 0 <= scale < np.inf:
        raise InvalidInputError(f"scale is {scale}; it must be finite and not negative")
