"""A learner that records the episodes it observes."""

from typing import Any

from tests.conftest import FloatArray
from tightrope import Policy
from tightrope.learners.base import Feedback, Learner


class Recorder:
    """A learner, unchanged, and the list of all episodes that it observed."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.space, self.budgets = learner.space, learner.budgets
        self.episodes: list[Any] = []  #: `Episode` or `BanditEpisode`, by the learner's feedback

    @property
    def feedback(self) -> Feedback:
        return self.learner.feedback

    @property
    def policy(self) -> Policy:
        return self.learner.policy

    @property
    def multipliers(self) -> FloatArray:
        return self.learner.multipliers

    @property
    def epoch(self) -> int:
        return self.learner.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        return self.learner.settings

    def observe(self, episode: Any) -> None:
        self.learner.observe(episode)
        self.episodes.append(episode)
