"""The folder of one run: its description, its history, its checkpoint, its log (docs/how-to/studies.md)."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from tightrope import __version__
from tightrope.errors import InvalidInputError
from tightrope.lab.history import Budget, History, budgets_of, describe_units, in_units
from tightrope.lab.metrics import COLUMNS
from tightrope.lab.plan import Configuration
from tightrope.problems.base import Problem
from tightrope.storage import checkpoints
from tightrope.storage.files import write_csv, write_json
from tightrope.streams import Streams

#: In the folder of a study: the folders of its runs.
RUNS = "runs"

#: In the folder of a run.
RUN, HISTORY, CHECKPOINT, LOG, PROGRESS = "run.json", "history.csv", "checkpoint", "log.txt", "progress"

#: The columns of a table that identify a run; those of its options stand before `episodes`.
RUN_COLUMNS = ("run", "problem", "losses", "noise", "learner", "episodes", "seed")

#: The suffix of columns in the learner's units, where the problem has units of its own.
SCALED = "_scaled"

#: Columns that are the same in any units.
WITHOUT_UNITS = tuple(name for name, column in COLUMNS.items() if not column.unit)

#: The packages, besides tightrope, that may change the bits of a result.
PACKAGES = ("numpy", "highspy", "joblib")

#: The status of a run. "running" in a folder without a lock means that the run was interrupted.
Status = Literal["running", "finished", "stopped", "failed"]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A description of the problem that can be read without making it."""

    title: str = ""
    losses: str = ""
    noise: str = ""
    loss_unit: str = ""
    budgets: list[Budget] = []
    units: str = ""  # units of losses and violations, as text
    warnings: list[str] = []

    @classmethod
    def of(cls, problem: Problem) -> "Facts":
        """Return the description of a problem."""
        return cls(
            title=problem.name,
            losses=problem.losses.name,
            noise=problem.noise,
            loss_unit=problem.loss_unit,
            budgets=budgets_of(problem),
            units=describe_units(problem),
            warnings=list(problem.warnings),
        )


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.json`; it does not depend on interruptions of the run."""

    status: Status
    words: str = ""  # why it failed, or where and why it was stopped
    configuration: Configuration
    problem: Facts
    settings: dict[str, float | str]  # every parameter of the learner
    entropy: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, Any]


def report(
    status: Status, configuration: Configuration, problem: Problem, settings: Mapping[str, Any], words: str = ""
) -> Report:
    """Describe a run on this machine."""
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
            "cores": os.cpu_count(),
        },
    )


class RunFolder:
    """The folder of a run, and the files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history, self.checkpoint, self.progress = path / HISTORY, path / CHECKPOINT, path / PROGRESS

    def report(self) -> Report | None:
        """Read `run.json`; None if it is not there, or cannot be read."""
        try:
            return msgspec.convert(self.facts(), Report)
        except msgspec.ValidationError:
            return None

    def facts(self) -> dict[str, Any]:
        """Return the content of `run.json` as plain data; empty if there is none."""
        try:
            found = json.loads((self.path / RUN).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, report: Report) -> None:
        """Write the report of the run to `run.json`."""
        write_json(self.path / RUN, msgspec.to_builtins(report))

    def write_history(self, configuration: Configuration, problem: Problem, history: History) -> None:
        """Write `history.csv`: the rows of this run in the table of a study."""
        write_csv(self.history, columns_of(configuration, problem, history))

    def log(self, words: str) -> None:
        """Append a line with the time to the log."""
        with (self.path / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z} {words}\n")

    def saved_episode(self) -> int:
        """Return the number of episodes in the checkpoint; 0 without a readable one."""
        try:
            return int(checkpoints.peek(self.checkpoint, checkpoints.BESIDE, "state", "episode"))
        except (InvalidInputError, ValueError, TypeError):
            return 0

    def episode(self) -> int:
        """Return the number of episodes played so far, from the `progress` file; 0 if there is none."""
        try:
            return int(self.progress.read_bytes())
        except (OSError, ValueError):
            return 0


def finished(folder: RunFolder, configuration: Configuration) -> bool:
    """Return whether the folder holds this run, finished; raise InvalidInputError if it holds another run."""
    found = folder.report()
    if found is None:
        return False
    if found.configuration.digest != configuration.digest:
        raise InvalidInputError(f"{folder.path} holds another run; delete it, or choose another folder with --out")
    return found.status == "finished"


def columns_of(configuration: Configuration, problem: Problem, history: History) -> dict[str, Sequence[Any]]:
    """Return the columns of a run: its identity, then its records in the problem's units and in the learner's units."""
    facts, n = Facts.of(problem), len(history["episode"])
    which: dict[str, Any] = {
        "run": configuration.name,
        "problem": configuration.conditions.problem.name,
        "losses": facts.losses,
        "noise": facts.noise,
        "learner": configuration.learner.name,
        **{
            name: value if isinstance(value, int | float | str) else str(value)
            for name, value in configuration.options.items()
        },
        "episodes": configuration.episodes,
        "seed": configuration.seed,
    }
    own = {name: column.tolist() for name, column in in_units(problem, history).items()}
    scaled = {name + SCALED: column.tolist() for name, column in history.items() if name not in WITHOUT_UNITS}
    return {name: [value] * n for name, value in which.items()} | own | scaled


@dataclass(frozen=True)
class Progress:
    """The progress of the runs of a study."""

    finished: int
    running: dict[str, int]  # the episode that each has reached
    failed: dict[str, str]  # why


def progress(folder: Path) -> Progress:
    """Read the progress of the runs in the folder of a study."""
    finished, running, failed = 0, {}, {}
    for path in sorted(folder.glob(f"{RUNS}/*/{RUN}")):
        run = RunFolder(path.parent)
        facts = run.facts()
        match facts.get("status"):
            case "finished" | "stopped":
                finished += 1
            case "running":
                running[path.parent.name] = run.episode()
            case "failed":
                failed[path.parent.name] = str(facts.get("words", ""))
    return Progress(finished, running, failed)
