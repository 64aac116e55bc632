"""`tightrope inspect`: what a directory contains and whether it is intact, without owning it.

Another process may write to the directory meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tightrope.arguments import printable
from tightrope.confidence import Box, KLBall, L1Ball
from tightrope.errors import InvalidInputError, StorageError
from tightrope.learners import load
from tightrope.learners.base import LearnerBase
from tightrope.model import Policy
from tightrope.ops import corrections, snapshots
from tightrope.ops.corrections import Corrected, Correction
from tightrope.ops.sqlite import JOURNAL, SQLite
from tightrope.ops.status import BudgetUnits, Standing, Status, status_of
from tightrope.ops.store import Journal
from tightrope.space import FloatArray
from tightrope.storage.files import write_csv

#: How often a directory that seems damaged is read: a writer may have deleted a snapshot meanwhile.
MOST_ATTEMPTS = 10


@dataclass(frozen=True)
class Widths:
    """The width of a confidence set, over the pairs that it constrains."""

    kind: str
    pairs: int
    free: int  #: pairs that it does not constrain
    least: float
    median: float
    most: float


@dataclass(frozen=True)
class Growth:
    """The size of a directory, and how far back its journal reaches."""

    journal: int  #: bytes, with its log
    snapshots: int  #: bytes
    events: int  #: number of rows
    event_bytes: int  #: bytes of their bodies
    since_snapshot: int  #: events to replay when the directory is opened
    unused: int  #: bytes of the journal that new rows will reuse
    reaches_back: int | None  #: the event after which outcomes can be corrected; None: none can
    since: float | None  #: the time of the first of them, in seconds since 1970; None if that is not known


@dataclass(frozen=True)
class Inspection:
    """The contents of a directory. Without a status, `damage` says why."""

    folder: Path
    facts: dict[str, Any]
    growth: Growth
    damage: tuple[str, ...]
    status: Status | None
    widths: dict[str, Widths]  #: by the name of the learner
    corrections: tuple[Correction, ...]  #: oldest first


def inspect(folder: Path, classes: tuple[type, ...] = ()) -> Inspection:
    """Read every row and every snapshot of a directory, and restore its state.

    Parameters
    ----------
    folder : path of the directory.
    classes : learners and confidence rules of your own that it may contain.

    Returns
    -------
    The contents, and a list of damage.

    Raises
    ------
    InvalidInputError : if the directory contains no durable learner.
    """
    if not (folder / JOURNAL).is_file():
        raise InvalidInputError(f"{printable(folder)} contains no durable learner: {JOURNAL} is missing")
    found, before = _inspect_once(folder, classes), None
    for _ in range(MOST_ATTEMPTS):
        if not found.damage or found.damage == before:
            break
        found, before = _inspect_once(folder, classes), found.damage
    return found


def format_of(folder: Path) -> int:
    """Return the format of a directory's journal on disk."""
    with closing(SQLite(folder, read_only=True)) as database:
        return database.found_format


def _inspect_once(folder: Path, classes: tuple[type, ...]) -> Inspection:
    facts: dict[str, Any] = {}
    damage: list[str] = []
    growth, status, widths = Growth(0, 0, 0, 0, 0, 0, None, None), None, {}
    views: tuple[Correction, ...] = ()
    try:
        with closing(Journal(SQLite(folder, read_only=True))) as journal:
            damage += journal.database.damage()
            facts, growth = journal.facts(), _growth(folder, journal)
            damage += _damage(journal)
            state, _ = snapshots.restore(journal, lambda data: load(data, *classes))
            open_, units = len(journal.open_episodes()), BudgetUnits.read(facts["units"])
            corrected = Corrected(corrections.read(journal.corrections()))
            status = status_of(state, units, journal.last_event, journal.last_episode, open_, corrected)
            views = Correction.all(corrected.corrections)
            widths = {name: wide for name, one in state.entrants.items() if (wide := widths_of(one.learner))}
    except (StorageError, LookupError) as error:
        damage.append(str(error))
    return Inspection(folder, facts, growth, tuple(dict.fromkeys(damage)), status, widths, views)


def _damage(journal: Journal) -> list[str]:
    """Return what is damaged among snapshots, episodes, arrays and events."""
    damage: list[str] = []
    found = journal.snapshots(damage)
    checks: list[Callable[[], object]] = [
        lambda: [snapshots.read(journal, snapshot) for snapshot in found],
        journal.check_rows,
        lambda: [list(journal.events(oldest)) for oldest in found[-1:]],
    ]
    for check in checks:
        try:
            check()
        except StorageError as error:
            damage.append(str(error))
    return damage


def _growth(folder: Path, journal: Journal) -> Growth:
    sizes, found = journal.sizes(), journal.snapshots()
    newest, oldest = found[:1], found[-1:]
    time = journal.time_of(oldest[0].seq + 1) if oldest else None
    return Growth(
        journal=_size(folder / f"{JOURNAL}{end}" for end in ("", "-wal")),
        snapshots=_size(folder.glob("snapshot-*.npz")),
        events=sizes.events,
        event_bytes=sizes.event_bytes,
        since_snapshot=journal.last_event - (newest[0].seq if newest else 0),
        unused=sizes.unused,
        reaches_back=oldest[0].seq if oldest else None,
        since=None if time is None else time / 1e6,
    )


def _size(files: Iterable[Path]) -> int:
    """Return the bytes of files; a writer may delete some of them meanwhile."""
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def widths_of(learner: LearnerBase) -> Widths | None:
    """Return the width of a learner's confidence set; None if it has none, or one of another kind."""
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
    """Return an inspection as values for JSON, with None in place of NaN and infinity."""
    status = found.status
    values: dict[str, Any] = {
        "directory": str(found.folder),
        "whole": not found.damage,
        "damage": list(found.damage),
        "made_with": {name: found.facts.get(name) for name in ("tightrope", "problem", "learner", "budgets")},
        "growth": asdict(found.growth),
        "widths": {name: asdict(wide) for name, wide in found.widths.items()},
        "corrections": found.corrections,
    }
    if status is not None:
        names = ["event", "asked", "told", "open", "given_up", "retracted", "left_out", "champion", "epoch", "loss"]
        names.append("stopped")
        values |= {name: getattr(status, name) for name in names}
        values["spending"] = status.spending
        values["learners"] = [
            {name: getattr(one, name) for name in one.__struct_fields__ if name != "policy"} for one in status.standings
        ]
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return plain


def write_policy(policy: Policy, path: Path, states: Sequence[str] = (), actions: Sequence[str] = ()) -> None:
    """Write a policy as a CSV file with a line for every state and action, with names where they are given.

    Every probability reads back to the same bits.
    """
    if path.suffix != ".csv":
        raise InvalidInputError(f"{path} ends in {path.suffix or 'nothing'}; a policy is written as .csv")
    table = Policy.unchecked(policy.space.named(states, actions), policy.probabilities).table()
    left_out = {"state_name": not states, "action_name": not actions}
    columns = ("layer", "state", "state_name", "action", "action_name", "probability")
    write_csv(path, {name: table[name] for name in columns if not left_out.get(name)})


def page(found: Inspection) -> list[str]:
    """Return an inspection as lines of text."""
    lines = [f"{found.folder}"]
    if problem := found.facts.get("problem"):
        lines[0] += f", for {problem}"
    if found.status is not None:
        lines += _lines_of(found.status, found.widths)
    growth = found.growth
    if found.corrections:
        lines += [
            "",
            "corrections",
            *table([["event", "time", "by", "", "undone by", "reason"], *map(_row, found.corrections)]),
        ]
    lines += [
        "",
        f"on disk    journal {_bytes(growth.journal)} ({_bytes(growth.unused)} unused), {growth.events} events kept "
        f"of {_bytes(growth.event_bytes // max(growth.events, 1))} each; snapshots {_bytes(growth.snapshots)}; "
        f"{growth.since_snapshot} events since the last",
        *_reach(growth),
        f"integrity  {'DAMAGED' if found.damage else 'intact: every row, policy and snapshot is as it was written'}",
        *(f"           {words}" for words in found.damage),
    ]
    return lines


def _reach(growth: Growth) -> list[str]:
    """Return a line about which outcomes can be corrected."""
    if growth.reaches_back is None:
        return []
    when = "" if growth.since is None else f", told since {utc(growth.since)}"
    return [f"           outcomes after event {growth.reaches_back} can be corrected{when}"]


def _row(one: Correction) -> list[str]:
    """Return a correction as a row of text."""
    match one.kind:
        case "undo":
            words = f"undoes {one.undoes[0]}"
        case "amend":
            words = f"amends {one.episodes[0]}"
        case "retract":
            words = f"retracts {len(one.episodes)} episodes"
    if one.left_out:
        words += f", leaves out {len(one.left_out)}"
    return [str(one.event), utc(one.time), one.author or "-", words, str(one.undone_by or "-"), one.reason or "-"]


def utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as text, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _lines_of(status: Status, widths: dict[str, Widths]) -> list[str]:
    lines = [
        f"episodes   {status.told} told, {status.open} open, {status.given_up} given up{_corrected(status)}; "
        f"event {status.event}",
        f"playing    {'the safe policy, because of a stop-loss' if status.stopped else status.champion}",
        *(f"failed     {one.name}: {one.failed}" for one in status.standings if one.failed),
        "",
    ]
    rows = [["budget", "unit", "per episode", "spent", "allowed", "share", "price", "stopped"]]
    for one in status.spending:
        numbers = [f"{x:.6g}" for x in (one.budget, one.spent, one.allowed)]
        stopped = "yes" if one.stopped else "no"
        price = f"{one.price:.4g} {one.price_unit}".rstrip()
        rows.append([one.name, one.unit or "-", *numbers, f"{one.share:.1%}", price, stopped])
    lines += table(rows) if status.spending else ["no budgets"]
    lines += ["", *table([["learner", "epoch", "set", "pairs", "free", "least width", "median", "most"]] + [
        [one.name, str(status.epoch) if one.name == status.champion else "", *_width_cells(widths.get(one.name))]
        for one in status.standings
    ])]  # fmt: skip
    if len(status.standings) > 1 or any(one.on_paths or one.uncovered for one in status.standings):
        lines += ["", "would have spent if its policy had been played", *table(_estimates(status))]
    return lines


def _corrected(status: Status) -> str:
    """Return how many episodes were retracted, in words."""
    left_out = f", {status.left_out} left out" if status.left_out else ""
    return f", {status.retracted} retracted{left_out}" if status.retracted or left_out else ""


def _width_cells(wide: Widths | None) -> list[str]:
    if wide is None:
        return ["-"] * 6
    numbers = ["-" if isnan(x) else f"{x:.4g}" for x in (wide.least, wide.median, wide.most)]
    return [wide.kind, str(wide.pairs), str(wide.free), *numbers]


def _estimates(status: Status) -> list[list[str]]:
    rows = [["learner", "by importance", *(one.name for one in status.spending), "on paths of unknown policies"]]
    for one in status.standings:
        sums = zip(one.would_have_spent, one.standard_errors, strict=True)
        uses = [f"{x:.6g} ± {e:.2g}" if one.weighed else "-" for x, e in sums]
        left_out = f", {one.uncovered} left out" if one.uncovered else ""
        rows.append([one.name, f"{one.weighed} episodes{left_out}", *uses, _on_paths(one)])
    return rows


def _on_paths(one: Standing) -> str:
    return f"{one.on_paths} episodes: {', '.join(f'{x:.6g}' for x in one.spent_on_paths)}" if one.on_paths else "-"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as aligned lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]


def _bytes(n: int) -> str:
    return f"{n} bytes" if n < 10_000 else f"{n / 1e6:.2f} MB"
