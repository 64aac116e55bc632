"""`tightrope serve`: the learner to begin with."""

from pathlib import Path

from tightrope.errors import InvalidInputError
from tightrope.lab.plan import folder_of
from tightrope.learners import make_learner
from tightrope.ops.server import NewLearner
from tightrope.problems import make
from tightrope.problems.files import load_problem


def new_learner(directory: Path, problem: str, learner: str, episodes: int | None, name: str | None) -> NewLearner:
    """The learner that the options ask for, and where it is to live."""
    if name is not None and (not name or name in (".", "..") or "/" in name):
        raise InvalidInputError(f"--name {name!r} is no name of a folder")
    place = folder_of(problem, Path())
    found = make(problem) if place is None else load_problem(place)
    return NewLearner(directory / name if name else directory, found, make_learner(learner, found, episodes=episodes))
