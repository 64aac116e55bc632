"""Corrections: outcomes that are retracted or amended after they were learned.

A correction is an event of the journal. After it the learner has the state of one that was told the same events in the
same order, but for the outcomes that are retracted and with those that are amended in the place of the first ones:

    state = apply(… apply(base, event) …)    over the events after a snapshot, as `Corrected` changes them.

Corrections are read from newest to oldest: one that a later one undoes does not count, a retracted outcome stays so
whatever else amends it, and of two amendments the later one counts. So undoing is a correction, too, and can be undone.

Outcomes told before the last correction were played by policies of a learner that had learned something else. They are
learned with the policy that the journal recorded. An outcome that the corrected learner cannot learn (because it learns
only from its own policy, or a solver fails) is left out; its `tell` would have refused it, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Self

import msgspec

from tightrope.errors import ConflictError, ConvergenceError, InvalidInputError, StorageError
from tightrope.ops.database import DIGEST, REMEDY
from tightrope.ops.state import Arrays, Loader, State, apply, refuse_foreign
from tightrope.ops.store import ZEROS, Event, SnapshotRow, digest_of_row

#: An outcome in the journal: the numbers of its event and of its episode.
Tell = tuple[int, int]

#: The kinds of events that are corrections.
KINDS = ("retract", "amend")

#: The errors of an outcome that a corrected learner cannot learn.
UNLEARNABLE = (InvalidInputError, ConvergenceError, ArithmeticError)


class Body(msgspec.Struct, frozen=True):
    """The contents of the event of a correction, as MessagePack."""

    previous: bytes  #: the digest of the correction before; `ZEROS` for the first
    reason: str
    tells: tuple[Tell, ...] = ()  #: retracted, or amended
    undoes: tuple[int, ...] = ()  #: numbers of events of other corrections
    left_out: tuple[Tell, ...] = ()  #: cannot be learned now
    outcome: bytes = b""  #: of an amendment: the body of the event that would tell it

    def event(self, event: Event) -> Event:
        """Return the event with this body. It begins with a digest of its own: older events may be deleted."""
        payload = msgspec.msgpack.encode(self)
        return event._replace(body=_digest(event, payload) + payload)


def _digest(event: Event, payload: bytes) -> bytes:
    return digest_of_row(*event._replace(body=payload).columns)


class Recorded(NamedTuple):
    """A correction in a journal."""

    event: Event
    body: Body

    @property
    def digest(self) -> bytes:
        """The digest of the correction."""
        return self.event.body[:DIGEST]

    @property
    def kind(self) -> Literal["retract", "amend", "undo"]:
        """What it does."""
        if self.event.kind == "amend":
            return "amend"
        return "undo" if self.body.undoes else "retract"

    def amended(self, told: Event) -> Event:
        """Return the event of the outcome, as this amendment has it."""
        return told._replace(body=self.body.outcome, loss=self.event.loss, constraints=self.event.constraints)


def read(events: Iterable[Event], *, whole: bool = True) -> list[Recorded]:
    """Return the corrections of a journal, oldest first; raise StorageError if one is damaged or missing.

    Without `whole` others may be missing.
    """
    found: list[Recorded] = []
    for event in events:
        payload = event.body[DIGEST:]
        if event.body[:DIGEST] != _digest(event, payload):
            raise StorageError(f"event {event.seq}, a correction, is damaged; {REMEDY}")
        found.append(Recorded(event, msgspec.msgpack.decode(payload, type=Body)))
    for one, digest in zip(found, [ZEROS, *(one.digest for one in found)], strict=False):
        if whole and one.body.previous != digest:
            raise StorageError(f"the correction before event {one.event.seq} is missing; {REMEDY}")
    return found


def undone(corrections: Sequence[Recorded]) -> dict[int, int]:
    """Return the numbers of the corrections that are undone, with those of the corrections that undo them."""
    found: dict[int, int] = {}
    for one in reversed(corrections):
        if one.event.seq not in found:
            found |= dict.fromkeys(one.body.undoes, one.event.seq)
    return found


def changes(corrections: Sequence[Recorded]) -> dict[int, int]:
    """Return the corrected outcomes, by the number of their event: 0 if retracted, or the event that amends it."""
    void, found = undone(corrections), dict[int, int]()
    for one in reversed(corrections):
        if one.event.seq not in void:
            for seq, _ in one.body.tells:
                found[seq] = 0 if one.event.kind == "retract" else found.get(seq, one.event.seq)
    return found


class Corrected:
    """A journal under its corrections.

    Parameters
    ----------
    corrections : oldest first.
    """

    def __init__(self, corrections: Sequence[Recorded]) -> None:
        self.corrections = corrections
        self.last = corrections[-1].event.seq if corrections else 0  #: the event of the last correction
        self.changes: Mapping[int, int] = changes(corrections)
        self._by_event = {one.event.seq: one for one in corrections}

    @property
    def events(self) -> list[Event]:
        """The events of the corrections, oldest first."""
        return [one.event for one in self.corrections]

    @property
    def retracted(self) -> int:
        """The number of outcomes that are retracted."""
        return sum(change == 0 for change in self.changes.values())

    @property
    def left_out(self) -> int:
        """The number of outcomes that cannot be learned since the last correction."""
        return len(self.corrections[-1].body.left_out) if self.corrections else 0

    def current(self, told: Event) -> Event:
        """Return the event of an outcome that is not retracted, as it is amended."""
        change = self.changes.get(told.seq)
        return self._by_event[change].amended(told) if change else told

    def with_last(self, body: Body) -> "Corrected":
        """Return the same corrections, the last with another body."""
        *others, last = self.corrections
        return Corrected([*others, last._replace(body=body)])

    def left_out_before(self, seq: int) -> tuple[Tell, ...]:
        """Return the outcomes up to an event that the state after it leaves out."""
        seen = [one for one in self.corrections if one.event.seq <= seq]
        return tuple(tell for tell in seen[-1].body.left_out if tell[0] <= seq) if seen else ()

    def is_base(self, snapshot: SnapshotRow) -> bool:
        """Return whether a snapshot contains all corrections of the events before it, and no others."""
        seen = changes([one for one in self.corrections if one.event.seq <= snapshot.seq])
        return all(self.changes.get(seq) == seen.get(seq) for seq in {*self.changes, *seen} if seq <= snapshot.seq)

    def apply(self, state: State, event: Event, arrays: Arrays, load: Loader, left_out: list[Tell]) -> State:
        """Return the state after an event, as `state.apply` does; add an outcome that cannot be learned to `left_out`.

        Raises
        ------
        ConflictError : if another event from before the last correction cannot happen any more.
        """
        if event.kind in KINDS:
            return state
        if event.seq > self.last:
            return apply(state, event, arrays, load)
        if event.kind == "failed" or self.changes.get(event.seq) == 0:  # recorded again if the challenger still fails
            return state
        event = self.current(event)
        try:
            if event.kind == "tell":
                refuse_foreign(state.learner, event.policy, str(event.episode))
            new = apply(state, event, arrays, load)
            if reason := new.entrants[new.champion].failed:
                raise InvalidInputError(f"{new.champion} has failed, {reason}")
        except UNLEARNABLE as error:
            if event.kind != "tell" or event.episode is None:
                words = f"event {event.seq} ({event.kind}) could not have happened then: {error}; nothing was changed"
                raise ConflictError(words) from error
            left_out.append((event.seq, event.episode))
            return state
        return new


class Correction(msgspec.Struct, frozen=True):
    """A correction, as it is shown."""

    event: int  #: its number
    kind: Literal["retract", "amend", "undo"]
    time: float  #: seconds since 1970
    author: str
    reason: str
    episodes: tuple[int, ...]  #: numbers of the episodes, with which their ids begin
    left_out: tuple[int, ...]  #: episodes that the corrected learner could not learn
    undoes: tuple[int, ...]  #: events of corrections
    undone_by: int | None  #: the event that undid it; None while it holds

    @classmethod
    def all(cls, corrections: Sequence[Recorded]) -> "tuple[Self, ...]":
        """Return all corrections, oldest first."""
        void = undone(corrections)
        return tuple(
            cls(
                one.event.seq,
                one.kind,
                (one.event.time or 0) / 1e6,
                one.event.author,
                one.body.reason,
                tuple(episode for _, episode in one.body.tells),
                tuple(episode for _, episode in one.body.left_out),
                one.body.undoes,
                void.get(one.event.seq),
            )
            for one in corrections
        )
