"""What every rule checks of its parameters."""

import math

from tightrope.arguments import real, shown, whole
from tightrope.errors import InvalidInputError


def check_episodes(episodes: int) -> None:
    """Refuse what is no number of episodes."""
    whole(episodes, "episodes", 1)


def check_level(level: float, scale: float) -> None:
    """Refuse what is no probability, or no factor of a radius."""
    zeta, factor = real(level), real(scale)
    if zeta is None or not 0 < zeta < 1:
        raise InvalidInputError(f"level is {shown(level)}; it is a probability strictly between 0 and 1")
    if factor is None or not 0 <= factor < math.inf:
        raise InvalidInputError(f"scale is {shown(scale)}; it must be finite and not negative")
