"""The contract of a learner as small named checks; `tightrope.checks` offers them.

Each plays a few episodes on a small world and raises an AssertionError that says what was promised and what happened
instead. Those about saving are left out for a learner that has no `save`.
"""

from collections.abc import Iterator
from functools import partial

from tightrope.arguments import function
from tightrope.checks.learners import behaviour, refusals
from tightrope.checks.learners import saving as saved
from tightrope.checks.learners.play import LearnerCheck, new
from tightrope.errors import InvalidInputError
from tightrope.learners import Maker, make_learner

__all__ = ["LearnerCheck", "check_learner", "yield_learner_checks"]


def check_learner(learner: str | Maker) -> list[str]:
    """Run every check on a learner, given by its name or by what makes it; return the names of those passed.

    What makes it is called like `make_learner` without the name: make(problem, episodes=…, seed=…).
    """
    if not __debug__:
        raise InvalidInputError("the checks are assertions; run Python without -O")
    make: Maker = partial(make_learner, learner) if isinstance(learner, str) else function(learner, "learner")
    passed = []
    for check in yield_learner_checks(saving=hasattr(new(make)[1], "save")):
        try:
            check(make)
        except Exception as error:
            error.add_note(f"({check.__name__} of tightrope.checks)")
            raise
        passed.append(check.__name__)
    return passed


def yield_learner_checks(*, saving: bool = True) -> Iterator[LearnerCheck]:
    """The checks of a learner one by one, each a function of what makes it; those about saving only if asked for."""
    yield from behaviour.checks
    yield from refusals.checks
    if saving:
        yield from saved.checks
