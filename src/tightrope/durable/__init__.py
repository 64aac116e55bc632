"""A learner in somebody's system: what was acknowledged is on disk, counted once, and learnt to the same bits again."""

from tightrope.durable.learner import DurableLearner, OpenEpisode
from tightrope.durable.status import Spending, Status

__all__ = ["DurableLearner", "OpenEpisode", "Spending", "Status"]
