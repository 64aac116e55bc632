"""What the theorem says about a problem: the constants that it depends on, and whether its assumptions hold."""

from tightrope.theory.constants import Constants, constants

__all__ = ["Constants", "constants"]
