"""TensorBoard as a callback: every run becomes a run there, and every metric a curve over the episodes."""

import math
import re
from os import PathLike
from typing import Any, Self

from tightrope.arguments import file_path
from tightrope.errors import InvalidInputError, missing
from tightrope.lab.run import Record

try:
    from tensorboardX import SummaryWriter
except ImportError as error:
    raise missing("tensorboardX", extra="tensorboard") from error


class TensorBoard:
    """Writes logs for `tensorboard --logdir FOLDER` while runs are played.

    tr.run(problem, "ucpd", episodes=2000, callback=tr.interop.TensorBoard("boards"))

    The file of a run is closed when the run ends; `close`, or the end of a `with` block, closes all files.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = file_path(folder, "folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot write TensorBoard logs to {self.folder}: {error.strerror}") from error
        self._writers: dict[str, Any] = {}

    def __call__(self, record: Record) -> None:
        if record.run not in self._writers:
            name = re.sub(r"[^\w+=,.-]+", "_", record.run).lstrip(".") or "run"
            self._writers[record.run] = SummaryWriter(str(self.folder / name))
        writer = self._writers[record.run]
        for name, value in record.metrics.items():
            if math.isfinite(value):  # regret is known only where the LP was solved
                writer.add_scalar(name, value, record.episode)
        writer.flush()
        if record.episode == record.episodes:
            self._writers.pop(record.run).close()

    def close(self) -> None:
        """Close the files of all runs."""
        while self._writers:
            self._writers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
