"""The folder of one run: what it is and how far it has come, whatever ended it."""

import json
import platform
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import joblib
import msgspec

from tightrope import __version__
from tightrope.errors import InvalidInputError
from tightrope.lab.history import budgets_of, describe_units
from tightrope.lab.studies.configuration import Configuration
from tightrope.problems.base import Problem
from tightrope.storage import checkpoints
from tightrope.storage.files import read_csv, write_json
from tightrope.streams import Streams

RUN, HISTORY, CHECKPOINT, LOG, PROGRESS = "run.json", "history.csv", "checkpoint", "log.txt", "progress"

#: What decides on bits, apart from us.
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "joblib")

#: "running" in a folder that nobody holds: it was cut, and goes on from its checkpoint.
Status = Literal["running", "finished", "stopped", "failed"]


class Limit(msgspec.Struct, frozen=True):
    """A budget of the problem, in its own units, for an episode; `column` ends the names of its columns."""

    column: str
    name: str
    unit: str
    limit: float


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is worth knowing of the problem, without making it."""

    title: str
    losses: str
    noise: str
    loss_unit: str
    budgets: list[Limit]
    units: str  # of the violation over all constraints and of losses, in words

    @classmethod
    def of(cls, problem: Problem) -> "Facts":
        return cls(
            title=problem.name,
            losses=problem.losses.name,
            noise=problem.noise,
            loss_unit=problem.loss_unit,
            budgets=[Limit(*budget) for budget in budgets_of(problem)],
            units=describe_units(problem),
        )


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: the same for the same run on the same machine, whatever happened on the way."""

    status: Status
    words: str = ""  # what went wrong, or where and why it was stopped
    configuration: Configuration
    problem: Facts
    settings: dict[str, float | str]  # every parameter that the learner runs with
    entropy: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, Any]


def report(
    status: Status, configuration: Configuration, problem: Problem, settings: Mapping[str, Any], words: str = ""
) -> Report:
    """What there is to say of a run here and now."""
    return Report(
        status=status,
        words=words,
        configuration=configuration,
        problem=Facts.of(problem),
        settings=dict(settings),
        entropy={"seed": configuration.seed, "streams": {name: [k] for k, name in enumerate(Streams._fields)}},
        versions={"tightrope": __version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        machine={
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": joblib.cpu_count(),
        },
    )


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history, self.checkpoint, self.progress = path / HISTORY, path / CHECKPOINT, path / PROGRESS

    def report(self) -> Report | None:
        """What is there; None if nothing is, or nothing that can be read."""
        try:
            return msgspec.convert(json.loads((self.path / RUN).read_bytes()), Report)
        except (OSError, ValueError):  # msgspec's errors are of these, too
            return None

    def write(self, report: Report) -> None:
        """Say how far it has come."""
        write_json(self.path / RUN, msgspec.to_builtins(report))

    def log(self, words: str) -> None:
        """A line with the time, for whoever wonders afterwards."""
        with (self.path / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z} {words}\n")

    def columns(self) -> dict[str, list[str]]:
        """The table of what was recorded so far, as text."""
        return read_csv(self.history)

    def saved_episode(self) -> int:
        """The number of episodes in its checkpoint; 0 if there is none that can be read."""
        try:
            return int(checkpoints.peek(self.checkpoint, checkpoints.BESIDE, "state", "episode"))
        except (InvalidInputError, ValueError, TypeError):
            return 0

    def episode(self) -> int:
        """How many episodes were played, as far as anybody has said; 0 if nobody has."""
        try:
            return int(self.progress.read_bytes())
        except (OSError, ValueError):
            return 0


def finished(folder: RunFolder, configuration: Configuration) -> bool:
    """Whether this very run is there, whole."""
    found = folder.report()
    if found is None:
        return False
    if found.configuration.digest != configuration.digest:
        raise InvalidInputError(f"{folder.path} holds another run; delete it, or choose another folder with --out")
    return found.status == "finished"
