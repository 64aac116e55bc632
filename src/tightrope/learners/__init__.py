"""Learners, one published method a file; `registry` lists them."""

from tightrope.learners.base import BanditEpisode, Episode, Learner, LearnerBase
from tightrope.learners.registry import LEARNERS, Maker, learner_called, load, make_learner

__all__ = [
    "LEARNERS",
    "BanditEpisode",
    "Episode",
    "Learner",
    "LearnerBase",
    "Maker",
    "learner_called",
    "load",
    "make_learner",
]
