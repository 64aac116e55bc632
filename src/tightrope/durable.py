"""A learner kept in a directory: every acknowledged call is on disk. The implementation is in `tightrope.ops`."""

from tightrope.ops.backups import backup, restore
from tightrope.ops.corrections import Correction
from tightrope.ops.exports import export_episodes, import_episodes
from tightrope.ops.learner import DurableLearner, OpenEpisode
from tightrope.ops.rebuilding import Effect
from tightrope.ops.state import StopLoss
from tightrope.ops.status import Spending, Standing, Status

__all__ = [
    "Correction", "DurableLearner", "Effect", "OpenEpisode", "Spending", "Standing", "Status", "StopLoss", "backup",
    "export_episodes", "import_episodes", "restore",
]  # fmt: skip
