"""What is in a directory, and whether it is whole: looked at without owning it, while somebody else may write."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.arguments import printable
from tightrope.confidence import Box, KLBall, L1Ball
from tightrope.errors import InvalidInputError, StorageError
from tightrope.learners.base import LearnerBase
from tightrope.ops import snapshots
from tightrope.ops.directory import replayed
from tightrope.ops.journal import NAME, Journal
from tightrope.ops.status import BudgetUnits, Status, status_of
from tightrope.space import FloatArray

#: How often a directory that somebody writes to is looked at again.
LOOKS = 10


@dataclass(frozen=True)
class Widths:
    """How wide the confidence set of a learner is, over the pairs that it says anything about."""

    kind: str
    pairs: int
    free: int  #: pairs of which anything may be true
    least: float
    median: float
    most: float


@dataclass(frozen=True)
class Growth:
    """What is on disk."""

    journal: int  #: bytes, its log included
    snapshots: int  #: bytes
    events: int  #: rows that are kept
    event_bytes: int  #: what they take
    since_snapshot: int  #: events to be learnt when it is opened
    unused: int  #: bytes of the journal that new rows will take


@dataclass(frozen=True)
class Inspection:
    """All of it. Without a status, `damage` says why."""

    folder: Path
    facts: dict[str, Any]
    growth: Growth
    damage: tuple[str, ...]
    status: Status | None
    widths: dict[str, Widths]


def inspect(folder: Path, classes: tuple[type, ...] = ()) -> Inspection:
    """Look at a directory: every row, every snapshot, and what they come to."""
    if not (folder / NAME).is_file():
        raise InvalidInputError(f"{printable(folder)} is no directory of a durable learner: it has no {NAME}")
    found, before = _look(folder, classes), None
    for _ in range(LOOKS):  # what is damaged stays so; a snapshot may have been pruned under our eyes
        if not found.damage or found.damage == before:
            break
        found, before = _look(folder, classes), found.damage
    return found


def _look(folder: Path, classes: tuple[type, ...]) -> Inspection:
    facts: dict[str, Any] = {}
    damage: list[str] = []
    growth, status, widths = Growth(0, 0, 0, 0, 0, 0), None, {}
    try:
        journal = Journal(folder, read_only=True)
    except StorageError as error:
        return Inspection(folder, facts, growth, (str(error),), None, {})
    try:
        damage += [f"{journal}: {words}" for words in journal.damage()]
        facts, growth = journal.facts(), _growth(folder, journal)
        damage += _damaged(folder, journal)
        state, _ = replayed(folder, journal, classes)
        open_ = len(journal.open_episodes())
        status = status_of(state, BudgetUnits.read(facts["units"]), journal.last, journal.asked, open_)
        widths = {name: wide for name, one in state.entrants.items() if (wide := widths_of(one.learner))}
    except (StorageError, LookupError) as error:
        damage.append(str(error))
    finally:
        journal.close()
    return Inspection(folder, facts, growth, tuple(dict.fromkeys(damage)), status, widths)


def _damaged(folder: Path, journal: Journal) -> list[str]:
    """What is not as it was written."""
    wrong: list[str] = []
    found = journal.snapshots(wrong)
    try:
        for snapshot in found:
            snapshots.whole(folder, snapshot)
    except StorageError as error:
        wrong.append(str(error))
    try:
        journal.handed("1")
        for digest in journal.arrays.all():
            journal.arrays.kept(digest)
        for oldest in found[-1:]:
            for _ in journal.events(oldest.seq, oldest.chain):
                pass
    except StorageError as error:
        wrong.append(str(error))
    return wrong


def _growth(folder: Path, journal: Journal) -> Growth:
    [[events, event_bytes]] = journal.rows("SELECT count(*), coalesce(sum(length(body)), 0) FROM events")
    [[newest]] = journal.rows("SELECT coalesce(max(seq), 0) FROM snapshots")
    [[unused]], [[page]] = journal.rows("PRAGMA freelist_count"), journal.rows("PRAGMA page_size")
    return Growth(
        journal=_size(folder / f"{NAME}{end}" for end in ("", "-wal")),
        snapshots=_size(folder.glob("snapshot-*.npz")),
        events=events,
        event_bytes=event_bytes,
        since_snapshot=journal.last - newest,
        unused=unused * page,
    )


def _size(files: Iterable[Path]) -> int:
    """Bytes of those that are there; somebody may prune them meanwhile."""
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def widths_of(learner: LearnerBase) -> Widths | None:
    """Of its confidence set; None if it has none, or one of somebody's own."""
    found, space = getattr(learner, "confidence_set", None), learner.space
    match found:
        case L1Ball() | KLBall():
            width: FloatArray = found.radius
        case Box():
            width = np.maximum.reduceat(found.upper - found.lower, space.csr.pair_ptr[:-1])
        case _:
            return None
    free = found.free(space)
    bound = width[~free] if (~free).any() else np.array([np.nan])
    kind = type(found).__name__
    return Widths(kind, space.n_pairs, int(free.sum()), float(bound.min()), float(np.median(bound)), float(bound.max()))


def as_json(found: Inspection) -> dict[str, Any]:
    """All numbers by name; NaN and infinity are null."""
    status = found.status
    shown: dict[str, Any] = {
        "directory": str(found.folder),
        "whole": not found.damage,
        "damage": list(found.damage),
        "made_with": {name: found.facts.get(name) for name in ("tightrope", "problem", "learner", "budgets")},
        "growth": asdict(found.growth),
        "widths": {name: asdict(wide) for name, wide in found.widths.items()},
    }
    if status is not None:
        names = ("event", "asked", "told", "open", "given_up", "champion", "epoch", "loss", "stopped")
        shown |= {name: getattr(status, name) for name in names}
        shown["spending"] = [asdict(one) | {"share": one.share} for one in status.spending]
        left_out = ("policy", "settings")
        shown["learners"] = [
            {name: getattr(one, name) for name in one.__slots__ if name not in left_out} | {"settings": one.settings}
            for one in status.standings
        ]
    return {name: _finite(value) for name, value in shown.items()}


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float():
            return value if np.isfinite(value) else None
    return value
