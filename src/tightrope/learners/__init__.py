"""Learners, one published method a file."""

from typing import Any

from tightrope.errors import InvalidInputError
from tightrope.learners.base import Learner
from tightrope.learners.ucpd import UCPD
from tightrope.space import FloatArray, LayeredSpace

#: Learners by name.
LEARNERS: dict[str, type[UCPD]] = {"ucpd": UCPD}


def make_learner(name: str, space: LayeredSpace, budgets: FloatArray, *, episodes: int, **options: Any) -> Learner:
    """The learner called `name`, with its published parameters unless `options` say otherwise."""
    if name not in LEARNERS:
        raise InvalidInputError(f"no learner {name!r}; there is {', '.join(sorted(LEARNERS))}")
    return LEARNERS[name](space, budgets, episodes=episodes, **options)
