"""A learner in somebody's system: what was acknowledged is on disk, counted once, and learnt to the same bits again."""

from tightrope.durable.guard import StopLoss
from tightrope.durable.learner import DurableLearner, OpenEpisode
from tightrope.durable.status import Spending, Standing, Status

__all__ = ["DurableLearner", "OpenEpisode", "Spending", "Standing", "Status", "StopLoss"]
