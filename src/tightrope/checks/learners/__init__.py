"""The contract of a learner as small named checks, for `tightrope.checks`.

Each plays a few episodes on a small world and raises an AssertionError with the promise and what happened instead.
A learner without `save` skips the checks of saving.
"""

from collections.abc import Iterator
from functools import partial

from tightrope.arguments import function
from tightrope.checks.learners import behaviour, refusals
from tightrope.checks.learners.play import LearnerCheck, new
from tightrope.errors import InvalidInputError
from tightrope.learners import Maker, make_learner

__all__ = ["LearnerCheck", "check_learner", "yield_learner_checks"]


def check_learner(learner: str | Maker) -> list[str]:
    """Run every check on a learner.

    Parameters
    ----------
    learner : the name of a learner, or a function make(problem, *, episodes, seed) that returns a new one.

    Returns
    -------
    list : the names of the checks, all passed.

    Raises
    ------
    AssertionError : by the first check that fails, with the promise and what happened instead.
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
    """Yield the checks of a learner, each a function of its maker; those of saving only if `saving`."""
    yield from behaviour.checks
    yield from refusals.checks
    if saving:
        yield from behaviour.saving_checks
