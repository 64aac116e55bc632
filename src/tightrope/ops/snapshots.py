"""Snapshots: the state after an event, as one checkpoint file for each learner, with digests in the journal.

The last two are kept, with the journal since the older one. If the newer one is damaged, the older one and the journal
give the same bits. Older ones are kept, with growing gaps, for as long as corrections may need them (`Retention`). A
snapshot that a correction has made invalid is not restored.
"""

import io
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np

from tightrope.errors import ConvergenceError, InvalidInputError, StorageError
from tightrope.learners.base import LearnerBase
from tightrope.ops import corrections
from tightrope.ops.corrections import Corrected, Tell
from tightrope.ops.database import REMEDY
from tightrope.ops.state import Account, Entrant, EpisodeFormat, Guard, Loader, Shadow, State
from tightrope.ops.store import Journal, SnapshotRow, digest_of
from tightrope.storage import checkpoints

log = logging.getLogger("tightrope")

#: Snapshots that are always kept.
KEPT = 2

#: Of three snapshots in a row, the second is dropped if the first and the third are no further apart than this fraction
#: of the age of the first, in events. So a correction replays at most a third more than it has to.
SPACING = 0.25


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept for corrections, beyond what a recovery needs; the tighter limit counts."""

    events: int  #: number of events
    since: int  #: time of the oldest event, in microseconds since 1970


class Fields:
    """Values by name that a checkpoint stores beside its learner."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    @classmethod
    def of(cls, value: Account | Guard | Shadow) -> "Fields":
        """Return the fields of a dataclass."""
        return cls(**{field.name: getattr(value, field.name) for field in fields(value)})

    def state(self) -> dict[str, Any]:
        """Return the values."""
        return self.values

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the values."""
        self.values = dict(state)


def _entrant_fields(entrant: Entrant) -> Fields:
    return Fields(shadow=Fields.of(entrant.shadow), failed=entrant.failed)


def _state_fields(state: State) -> Fields:
    """Return all parts of a state except the learners, with the estimates of the first learner."""
    first, *_ = state.entrants.values()
    return Fields(
        account=Fields.of(state.account),
        guard=Fields.of(state.guard),
        first=_entrant_fields(first),
        champion=state.champion,
        feedback=str(state.format.feedback),
        names=json.dumps(list(state.entrants)),
    )


def _entrant(learner: LearnerBase, found: Fields) -> Entrant:
    shadow = Shadow(**found.values["shadow"].values)
    if min(shadow.weighed, shadow.met, shadow.uncovered) < 0 or not np.isfinite(shadow.sums).all():
        raise InvalidInputError("its estimates of what a learner would have spent are negative or not finite")
    return Entrant(learner, shadow, found.values["failed"])


def _state(files: list[bytes], load: Loader) -> State:
    """Return the state from the contents of its files."""
    first, *others = files
    learner = load(first)
    fresh = State.new(learner)
    found = _state_fields(fresh)
    checkpoints.restore(first, found)
    account, guard = Account(**found.values["account"].values), Guard(**found.values["guard"].values)
    if account.told < 0 or not np.isfinite(account.sums).all():
        raise InvalidInputError("its account is negative or not finite")
    numbers = np.hstack([guard.safe, guard.most, guard.back, guard.rate])
    if not np.isfinite(numbers).all() or guard.safe.min() < 0 or guard.window.min(initial=1) < 1:
        raise InvalidInputError("its stop-loss rules are invalid")
    if guard.stops and not guard.safe.any():
        raise InvalidInputError("its stop-loss has stopped the learner without a safe policy")
    names = json.loads(found.values["names"])
    entrants = {names[0]: _entrant(learner, found.values["first"])}
    for name, data in zip(names[1:], others, strict=True):
        beside = _entrant_fields(Entrant.new(other := load(data)))
        checkpoints.restore(data, beside)
        entrants[name] = _entrant(other, beside)
    form = fresh.format._replace(feedback=found.values["feedback"])  # the first learner may have been dismissed
    return State(found.values["champion"], entrants, form, account, guard)


def format_of(files: list[bytes], load: Loader) -> EpisodeFormat:
    """Return the format of outcomes, from the contents of the files of a snapshot."""
    return _state(files, load).format


def checkpoint_of(learner: LearnerBase, beside: Fields | None = None) -> bytes:
    """Return the bytes of a checkpoint of a learner, with values beside it."""
    buffer = io.BytesIO()
    checkpoints.write(learner, buffer, beside)
    return buffer.getvalue()


def write(journal: Journal, state: State) -> None:
    """Write the state after the last event, and record it in the journal. Raises StorageError if that fails."""
    beside = [_state_fields(state), *(_entrant_fields(one) for one in islice(state.entrants.values(), 1, None))]
    learners = [one.learner for one in state.entrants.values()]
    files = [checkpoint_of(learner, values) for learner, values in zip(learners, beside, strict=True)]
    snapshot = SnapshotRow(journal.last_event, journal.chain, b"".join(map(digest_of, files)))
    with journal.transaction():
        for name, data in zip(snapshot.files, files, strict=True):
            journal.database.write_file(name, data)
        journal.record_snapshot(snapshot)


def read(journal: Journal, snapshot: SnapshotRow) -> list[bytes]:
    """Return the contents of the files of a snapshot; raise StorageError if one is missing or damaged."""
    files = []
    for name, digest in snapshot.files.items():
        data = journal.database.read_file(name)
        if data is None:
            raise StorageError(f"{journal}: {name} is missing")
        if digest_of(data) != digest:
            raise StorageError(f"{journal}: {name} is damaged")
        files.append(data)
    return files


def newest(journal: Journal, load: Loader, corrected: Corrected) -> tuple[State, SnapshotRow]:
    """Return the state of the newest valid snapshot that is intact, and its row; log a warning for each damaged one."""
    damage: list[str] = []
    for snapshot in filter(corrected.is_base, journal.snapshots(damage)):
        try:
            files = read(journal, snapshot)
        except StorageError as error:
            damage.append(str(error))
            continue
        for words in damage:
            log.warning("%s; the state is restored from the snapshot before it and the journal", words)
        try:
            return _state(files, load), snapshot
        except InvalidInputError as error:
            raise StorageError(f"{journal}: the snapshot cannot be restored: {error}") from error
    raise StorageError(f"{'; '.join(damage) or 'there is no snapshot'}; {REMEDY}")


def prune(journal: Journal, retention: Retention, keep_episodes: int) -> None:
    """Delete snapshots and rows of the journal that neither a recovery nor, within `retention`, a correction needs."""
    with journal.transaction():
        valid = list(filter(Corrected(corrections.read(journal.corrections())).is_base, journal.snapshots()))
        kept = list(islice((one for one in valid if _is_intact(journal, one)), KEPT))
        if not kept:
            raise StorageError(f"{journal}: no snapshot can be read; {REMEDY}")
        kept += _older(journal, [one for one in valid if one.seq < kept[-1].seq], kept[-1], retention)
        journal.prune(kept[-1].seq, kept, journal.last_episode + 1 - keep_episodes)
        journal.database.keep_files("snapshot-*.npz", {name for snapshot in kept for name in snapshot.files})


def _older(
    journal: Journal, older: Sequence[SnapshotRow], oldest: SnapshotRow, retention: Retention
) -> list[SnapshotRow]:
    """Return the snapshots before `oldest` that are kept, newest first."""
    kept: list[SnapshotRow] = []
    last = journal.last_event
    for one, before in zip(older, [*older, None][1:], strict=True):
        newer = kept[-1] if kept else oldest
        is_old = newer.seq < last and (journal.time_of(newer.seq + 1) or 0) < retention.since
        if is_old or last - newer.seq >= retention.events:
            break  # everything within the retention comes after `newer`
        if before is None or newer.seq - before.seq > SPACING * (last - before.seq):
            kept.append(one)
    return kept


def _is_intact(journal: Journal, snapshot: SnapshotRow) -> bool:
    """Return whether the files of a snapshot are intact; raise StorageError if they cannot be read now."""
    try:
        read(journal, snapshot)
    except StorageError as error:
        if error.__cause__ is not None:  # an error of the disk
            raise
        return False
    return True


def restore(journal: Journal, load: Loader, progress: Callable[[int], None] | None = None) -> tuple[State, int]:
    """Return the state on disk: the newest intact snapshot, and the events of the journal after it.

    Parameters
    ----------
    journal : of the learner.
    load : returns a learner from the bytes of a checkpoint.
    progress : called before each event with the number of events replayed so far.

    Returns
    -------
    The state, and the number of events after the snapshot. Of a directory whose last correction is newer than the
    snapshot, the state is the corrected one.

    Raises
    ------
    StorageError : if the directory is damaged.
    """
    journal.check_end()
    corrected = Corrected(corrections.read(journal.corrections()))
    state, snapshot = newest(journal, load, corrected)
    journal.settled = snapshot.seq
    left_out: list[Tell] = []
    for event in journal.events(snapshot):
        if progress is not None:
            progress(event.seq - snapshot.seq - 1)
        journal.database.keep_alive()
        try:
            state = corrected.apply(state, event, journal.array, load, left_out)
        except (InvalidInputError, ConvergenceError, ArithmeticError) as error:
            words = f"event {event.seq} was learned before and cannot be learned again: {error}"
            raise StorageError(f"{journal}: {words}") from error
    return state, journal.last_event - snapshot.seq
