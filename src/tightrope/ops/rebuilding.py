"""Correct a durable learner while it runs: choose outcomes, rebuild the state without them, replace the state.

    1  choose the outcomes among the events of the journal
    2  restore the newest snapshot before the first of them, and replay the journal after it as corrected;
       episodes are opened and told meanwhile, with the old policies
    3  with the learner locked: replay the last events, write a snapshot, and commit it with the correction

A crash before the commit leaves the old state, a crash after it the new one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from numpy.typing import ArrayLike

from tightrope.arguments import number, shown, text, texts, whole
from tightrope.errors import ConflictError, InvalidInputError
from tightrope.ops import corrections, snapshots
from tightrope.ops.corrections import Body, Corrected, Recorded, Tell
from tightrope.ops.engine import Engine
from tightrope.ops.state import State
from tightrope.ops.status import Status
from tightrope.ops.store import ZEROS, Event, SnapshotRow, digest_of_row, floats_of
from tightrope.space import FloatArray

#: Events that are read at once; and how many may be left to be replayed while the learner is locked.
BATCH, LAST = 200, 20

#: Characters of the reason of a correction.
LONGEST_REASON = 1000

#: The number of a correction's event while it is prepared: after all others.
PENDING = 2**62

#: A time later than that of any event, in seconds since 1970.
LATEST = 1e11

Arrays = Mapping[bytes, bytes]

Result = TypeVar("Result")


class Effect(msgspec.Struct, frozen=True):
    """The effect of a correction."""

    event: int  #: number of the correction; 0 in a dry run
    episodes: tuple[int, ...]  #: numbers of the corrected episodes, with which their ids begin
    left_out: tuple[int, ...]  #: episodes that the corrected learner could not learn
    replayed: int  #: number of events
    before: Status
    after: Status


class Selection(NamedTuple):
    """Which outcomes to retract: those that meet every condition."""

    episodes: frozenset[int] | None  #: numbers
    since: float  #: seconds since 1970
    until: float
    told_by: str | None

    @classmethod
    def of(
        cls,
        episodes: frozenset[int] | None,
        since: "datetime | float | None",
        until: "datetime | float | None",
        told_by: str | None,
    ) -> Self:
        """Check the conditions; there must be one."""
        if episodes is None and since is None and until is None and told_by is None:
            raise InvalidInputError("no condition is given; pass episodes, since, until or told_by")
        author = None if told_by is None else text(told_by, "told_by")
        return cls(episodes, seconds(since, "since", 0.0), seconds(until, "until", LATEST), author)

    def matches(self, event: Event) -> bool:
        """Return whether an outcome is selected; one without a time is not in any range of times."""
        if self.episodes is not None and event.episode not in self.episodes:
            return False
        if self.told_by is not None and event.author != self.told_by:
            return False
        if event.time is None:
            return self.since == 0.0 and self.until == LATEST
        return self.since <= event.time / 1e6 < self.until


def seconds(time: "datetime | float | None", name: str, default: float) -> float:
    """Return a time in seconds since 1970."""
    if time is None:
        return default
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise InvalidInputError(f"{name} is {time.isoformat()}, without a time zone; add one, such as timezone.utc")
        time = time.timestamp()
    return number(time, name, 0.0, LATEST)


class Draft(NamedTuple):
    """A correction before its event has a number."""

    event: Event
    body: Body
    arrays: Arrays


#: Returns a draft from the corrections so far and the events that can be corrected.
Choose = Callable[[Corrected, Iterator[Event]], Draft]


def retraction(selection: Selection, reason: str) -> Choose:
    """Choose outcomes to retract."""

    def choose(corrected: Corrected, events: Iterator[Event]) -> Draft:
        told = [event for event in events if event.kind == "tell" and selection.matches(event)]
        if selection.episodes is not None and (missing := selection.episodes - {event.episode for event in told}):
            raise InvalidInputError(
                f"episode {min(e for e in missing if e is not None)} cannot be retracted: it was not told, does not "
                "meet the other conditions, or was told before the journal begins; then restore an older backup"
            )
        if not told:
            raise InvalidInputError("no outcome in the journal meets these conditions; nothing was changed")
        if all(corrected.changes.get(event.seq) == 0 for event in told):
            raise ConflictError("all of these episodes are retracted already; nothing was changed")
        tells = tuple((event.seq, event.episode) for event in told if event.episode is not None)
        return Draft(Event(PENDING, "retract", b""), Body(_previous(corrected), reason, tells), {})

    return choose


def amendment(episode: int, told: Event, arrays: Arrays, reason: str) -> Choose:
    """Choose the outcome of an episode to be replaced by that of the event `told`."""

    def choose(corrected: Corrected, events: Iterator[Event]) -> Draft:
        old = next((event for event in events if event.kind == "tell" and event.episode == episode), None)
        if old is None:
            raise InvalidInputError(
                f"episode {episode} was told before the journal begins; restore an older backup to amend it"
            )
        change = corrected.changes.get(old.seq)
        if change == 0:
            raise ConflictError(f"episode {episode} is retracted; undo that first")
        if corrected.current(old).contents == told.contents:
            raise ConflictError(f"episode {episode} has this outcome already; nothing was changed")
        event = told._replace(seq=PENDING, kind="amend", body=b"")
        return Draft(event, Body(_previous(corrected), reason, ((old.seq, episode),), outcome=told.body), arrays)

    return choose


def undoing(target: int, reason: str) -> Choose:
    """Choose a correction to be undone."""

    def choose(corrected: Corrected, events: Iterator[Event]) -> Draft:
        found = [one.event.seq for one in corrected.corrections]
        if whole(target, "event", 1) not in found:
            raise InvalidInputError(f"event {target} is no correction; the corrections are events {shown(found)}")
        if by := corrections.undone(corrected.corrections).get(target):
            raise ConflictError(f"the correction of event {target} was undone by event {by}; undo that instead")
        return Draft(Event(PENDING, "retract", b""), Body(_previous(corrected), reason, undoes=(target,)), {})

    return choose


def _previous(corrected: Corrected) -> bytes:
    return corrected.corrections[-1].digest if corrected.corrections else ZEROS


class Rebuild:
    """A correction of a durable learner, from the choice to the commit."""

    def __init__(self, durable: Engine) -> None:
        self.durable, self.store = durable, durable._store
        self.locked: Any = durable._locked  #: calls a function while no other thread uses the store
        self.left_out: list[Tell] = []
        self.new_arrays: Arrays = {}  #: of an amendment; not in the journal yet
        self.replayed = 0

    def run(self, choose: Choose, author: str, now: Callable[[], int], dry_run: bool) -> Effect:
        """Correct the learner, or with `dry_run` return what that would do."""
        found, rows = self.locked(lambda: (corrections.read(self.store.corrections()), self.store.snapshots()))
        draft = choose(Corrected(found), self._events(rows[-1]))
        self.new_arrays = draft.arrays
        corrected = Corrected([*found, Recorded(draft.event, draft.body)])
        if not any(map(corrected.is_base, rows)):
            raise InvalidInputError(
                f"the journal reaches back to event {rows[-1].seq}, and an outcome was told before that; restore an "
                "older backup"
            )
        state, snapshot = self.locked(lambda: snapshots.newest(self.store, self.durable._load, corrected))
        self.left_out += Corrected(found).left_out_before(snapshot.seq)
        state, snapshot = self._replay(state, snapshot, corrected, LAST)

        def finish() -> Effect:
            self.locked = _at_once
            if len(self.store.corrections()) != len(found):
                raise ConflictError("another replica made a correction meanwhile; nothing was changed: try again")
            last, _ = self._replay(state, snapshot, corrected, 0)
            if any(tell in self.left_out for tell in draft.body.tells):
                raise InvalidInputError(
                    "the learner cannot learn from the amended outcome; nothing was changed: retract the episode"
                )
            before, event = self.durable._status, 0
            body = msgspec.structs.replace(draft.body, left_out=tuple(self.left_out))
            if not dry_run:
                event = self.store.last_event + 1
                self.durable._put(
                    last, body.event(draft.event._replace(seq=event, time=now(), author=author)), draft.arrays
                )
            after = self.durable._status_of(last, corrected.with_last(body)) if dry_run else self.durable._status
            episodes = tuple(episode for _, episode in draft.body.tells)
            return Effect(event, episodes, tuple(episode for _, episode in self.left_out), self.replayed, before, after)

        effect: Effect = self.locked(finish)
        return effect

    def _replay(
        self, state: State, after: SnapshotRow, corrected: Corrected, most_left: int
    ) -> tuple[State, SnapshotRow]:
        """Replay the events after a row until at most so many are left; return the last row with the state after it."""
        while self.store.last_event - after.seq > most_left:
            for event in self._events(after):
                if self.locked is _at_once:
                    self.store.database.keep_alive()
                state = corrected.apply(state, event, self._array, self.durable._load, self.left_out)
                after = _row(after, event)
                self.replayed += 1
        return state, after

    def _events(self, after: SnapshotRow) -> Iterator[Event]:
        """Yield the events after a row. Between two batches, other threads can use the learner."""
        while batch := self.locked(partial(self._batch, after)):
            for event in batch:
                after = _row(after, event)
                yield event

    def _batch(self, after: SnapshotRow) -> list[Event]:
        if self.store.snapshots()[-1].seq > after.seq:  # another replica does not know that they are needed
            raise ConflictError("another replica deleted old events meanwhile; nothing was changed: try again")
        return list(islice(self.store.events(after), BATCH))

    def _array(self, digest: bytes) -> FloatArray:
        if digest in self.new_arrays:
            return floats_of(self.new_arrays[digest])
        array: FloatArray = self.locked(lambda: self.store.array(digest))
        return array


def _at_once(function: Callable[[], Result]) -> Result:
    return function()


def _row(after: SnapshotRow, event: Event) -> SnapshotRow:
    return SnapshotRow(event.seq, digest_of_row(after.chain, *event.row), b"")


def retract(
    self: Engine,
    episodes: Iterable[str] | None = None,
    *,
    since: datetime | float | None = None,
    until: datetime | float | None = None,
    told_by: str | None = None,
    reason: str = "",
    author: str | None = None,
    dry_run: bool = False,
) -> Effect:
    """Retract outcomes: the learner becomes one that never learned them.

    The outcomes are those that meet all conditions. Other calls are answered meanwhile with the old policies, and
    outcomes that they tell are learned. Retracted episodes count as told: telling one of them again answers "already".

    Parameters
    ----------
    episodes : iterable of str, optional
        Ids.
    since, until : datetime or float, optional
        When they were told: at `since` or later, before `until`; in seconds since 1970, or with a time zone.
    told_by : str, optional
        Their author.
    reason : str
        Recorded with the correction, for the audit trail.
    author : str, optional
        Recorded with the correction; by default the author of this object.
    dry_run : bool
        Return the effect, and change nothing.

    Returns
    -------
    The retracted episodes, those left out, and the status before and after.

    Raises
    ------
    InvalidInputError
        If no outcome is selected, or one was told before the journal begins.
    UnknownEpisodeError
        If there is no episode of an id.
    ConflictError
        If all of them are retracted already, another correction is in progress, or something else in the journal
        could not have happened without them (such as a promotion of a learner that now failed before).
    """
    numbers = None
    if episodes is not None:
        ids = texts(episodes, "episodes")
        numbers = frozenset(episode.number for episode in self._locked(lambda: [self._find(id) for id in ids]))
    selection = Selection.of(numbers, since, until, told_by)
    return _correct(self, retraction(selection, _checked_reason(reason)), author, dry_run)


def amend(
    self: Engine,
    id: str,
    states: ArrayLike,
    actions: ArrayLike,
    loss: ArrayLike,
    constraints: ArrayLike,
    *,
    reason: str = "",
    author: str | None = None,
    dry_run: bool = False,
) -> Effect:
    """Replace the outcome of an episode: the learner becomes one that was told this outcome in its place.

    Parameters
    ----------
    id : str
        The id of the episode.
    states, actions, loss, constraints : array_like
        The outcome, as for `tell`.
    reason, author, dry_run
        As for `retract`.

    Returns
    -------
    What was left out, and the status before and after.

    Raises
    ------
    InvalidInputError, UnknownEpisodeError, ConflictError
        As for `retract`, and if the learner cannot learn from the outcome, or the episode is retracted.
    """
    outcome = (states, actions, loss, constraints)

    def told() -> tuple[Event, dict[bytes, bytes]]:
        episode = self._find(id)
        if episode.fate != "told":
            raise ConflictError(f"episode {id} is {episode.fate}; only an outcome that was told can be amended")
        return self._state.format.event(0, episode, outcome)

    event, arrays = self._locked(told)
    assert event.episode is not None
    choose = amendment(event.episode, event, arrays, _checked_reason(reason))
    return _correct(self, choose, author, dry_run)


def undo(self: Engine, event: int, *, reason: str = "", author: str | None = None, dry_run: bool = False) -> Effect:
    """Undo a correction, given by the number of its event. This can be undone, too.

    Returns
    -------
    What was left out, and the status before and after.

    Raises
    ------
    InvalidInputError, ConflictError
        As for `retract`, and if there is no such correction, or it is undone already.
    """
    return _correct(self, undoing(event, _checked_reason(reason)), author, dry_run)


def _correct(self: Engine, choose: Choose, author: str | None, dry_run: bool) -> Effect:
    name, correction = self._author_of(author), Rebuild(self)

    def begin() -> None:
        if self._correction is not None:
            raise ConflictError("another correction is in progress; wait until it is done")
        self._correction = correction

    try:  # an interrupt may come as soon as it has begun
        self._locked(begin)
        return correction.run(choose, name, self._now, dry_run)
    finally:
        if self._correction is correction:
            self._correction = None


def _checked_reason(reason: str) -> str:
    if len(text(reason, "reason")) > LONGEST_REASON or not (reason.isprintable() or not reason):
        raise InvalidInputError(f"reason is {shown(reason)}; expected at most {LONGEST_REASON} printable characters")
    return reason
