"""`tightrope serve`: create the learner."""

from pathlib import Path

from tightrope.errors import InvalidInputError
from tightrope.lab.plan import folder_of
from tightrope.learners import make_learner
from tightrope.problems import make
from tightrope.problems.files import load_problem
from tightrope.service.server import Made


def made_for(directory: Path, problem: str, learner: str, episodes: int | None, name: str | None) -> Made:
    """Make the learner that the options describe, for its directory."""
    if name is not None and (not name or name in (".", "..") or "/" in name):
        raise InvalidInputError(f"--name {name!r} cannot be the name of a folder")
    place = folder_of(problem, Path())
    found = make(problem) if place is None else load_problem(place)
    return Made(directory / name if name else directory, found, make_learner(learner, found, episodes=episodes))
