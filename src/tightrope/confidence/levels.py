"""What every rule checks of its parameters."""

from tightrope.arguments import EXTREME, real, shown, whole
from tightrope.errors import InvalidInputError


def check_episodes(episodes: int) -> None:
    """Refuse what is no number of episodes."""
    whole(episodes, "episodes", 1)


def check_level(level: float, scale: float) -> None:
    """Refuse what is no probability, or no factor of a radius."""
    zeta, factor = real(level), real(scale)
    if zeta is None or not 1 / EXTREME <= zeta < 1:
        raise InvalidInputError(f"level is {shown(level)}; it is a probability of at least {1 / EXTREME:g} and below 1")
    if factor is None or not 0 <= factor <= EXTREME:
        raise InvalidInputError(f"scale is {shown(scale)}; it must not be negative, and at most {EXTREME:g}")
