"""A learner in memory and its journal on disk, kept in agreement: transactions, recovery, snapshots, replicas.

A change is applied to the state in memory, committed to the journal, and then published:

    new = apply(state, event); commit(event); self._state = new

The state is a value. Whatever interrupts this (an error, a signal, a full disk), the disk decides: the next call
returns to the last state that was published, and applies the events of the journal after it. Every event in the
journal is one that the learner could learn.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial, wraps
from os import PathLike
from threading import RLock
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from tightrope import __version__
from tightrope.arguments import file_path, printable, shown, text, texts
from tightrope.errors import ConflictError, InvalidInputError, StorageError, UnknownEpisodeError
from tightrope.learners import load
from tightrope.learners.base import LearnerBase
from tightrope.ops import corrections, snapshots
from tightrope.ops.corrections import Corrected
from tightrope.ops.database import POSTGRES, REMEDY, Database
from tightrope.ops.formats import FORMAT
from tightrope.ops.sqlite import SQLite, no_learner, owned_directory
from tightrope.ops.state import State, apply
from tightrope.ops.status import BudgetUnits, Status, status_of
from tightrope.ops.store import EpisodeRow, Event, Journal, digest_of_row, floats_of
from tightrope.space import FloatArray, LayeredSpace

#: Microseconds of a day.
DAY = 86_400_000_000

#: Characters of the name of a challenger, of an author and of a key.
LONGEST_NAME = 100

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Owner = TypeVar("Owner", bound="Engine")


def exclusive(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Run a method in one thread at a time, as a transaction; what it changed is on disk when it returns."""

    @wraps(method)
    def call(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if self._grouping and self._lock._is_owned():  # type: ignore[attr-defined]
            self._grouping = False
            try:
                return method(self, *args, **kwargs)
            finally:
                self._grouping = True
        [result] = self._together([partial(call, self, *args, **kwargs)])
        if isinstance(result, Exception):
            raise result
        return result

    return call


def reading(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Run a method that only reads, in one thread at a time, after what other replicas committed is learned."""

    @wraps(method)
    def call(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if self._grouping and self._lock._is_owned():  # type: ignore[attr-defined]
            return method(self, *args, **kwargs)
        self._refuse_nested()
        with self._lock:
            self._check_open()
            self._make_usable()
            with self._store.database.reading():
                self._stale = True
                changed = self._catch_up()
                self._stale = False
                if changed:
                    self._publish()
                return method(self, *args, **kwargs)

    return call


class _Published(NamedTuple):
    """A state that is on disk, and where the journal ended then."""

    state: State
    event: int
    chain: bytes  #: the digest of that event
    settled: int  #: `Journal.settled`
    since_snapshot: int
    corrections: list[Event]


class Engine:
    """The implementation of `DurableLearner`: everything but its public methods.

    Parameters
    ----------
    address, learner, problem, classes, snapshot_every, keep_days, keep_journal, remember, progress
        As for `DurableLearner`, checked.
    author : str
        Recorded with every event.
    """

    def __init__(
        self,
        address: str | PathLike[str],
        learner: LearnerBase | None,
        problem: Any,
        *,
        classes: tuple[type, ...],
        snapshot_every: int,
        keep_days: float,
        keep_journal: int,
        remember: int,
        author: str,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._classes, self._author, self._progress = classes, author, progress
        self._snapshot_every, self._remember = snapshot_every, remember
        self._keep_days, self._keep_journal = keep_days, keep_journal
        self._opened = _now()
        self._expired = 0  #: episodes that were given up because they were open for too long
        self._lock = RLock()
        self._process = os.getpid()
        self._state: State
        self._status: Status
        self._corrected: Corrected
        self._open: dict[str, EpisodeRow]  #: open episodes by id
        self._stale = True  #: whether memory may differ from disk
        self._published: _Published  #: what is certainly on disk
        self._grouping = False  #: whether the methods that are called now belong to the transaction of `_together`
        self._correction: object = None  #: the one in progress
        self._since_snapshot = 0  #: events
        self._snapshot_due = False
        self._snapshot_error = ""
        with ExitStack() as stack:
            database = stack.enter_context(self._database(address, create=learner is not None))
            self._store = Journal(stack.enter_context(closing(database)))
            with self._store.transaction():
                self._store.read_end()
                self._store.check_end()
                for damage in database.damage():
                    raise StorageError(f"{damage}; {REMEDY}")
                damaged_rows: list[str] = []
                if self._store.snapshots(damaged_rows) or damaged_rows:
                    _refuse_other(self._store.facts(), learner, self.name)
                else:
                    self._create(learner, problem)
            self._units = BudgetUnits.read(self._store.facts()["units"])
            with database.reading():
                self._store.read_end()
                self._recover()
            self._resources: ExitStack | None = stack.pop_all()

    @contextmanager
    def _database(self, address: str | PathLike[str], *, create: bool) -> Iterator[Database]:
        """Open the database for this process."""
        if isinstance(address, str) and address.startswith(POSTGRES):
            from tightrope.ops.postgres import PostgreSQL

            database = PostgreSQL(address, create=create)
            self.name = str(database)  #: the address, without a password
            yield database
            return
        with owned_directory(file_path(address, "directory"), create=create) as self.directory:
            self.name = printable(self.directory)
            yield SQLite(self.directory)

    def _create(self, learner: LearnerBase | None, problem: Any) -> None:
        """Store the facts and snapshot 0, which make a directory complete."""
        if learner is None:
            raise no_learner(self.name)
        if self._store.last_event or self._store.last_episode:
            raise StorageError(f"{self._store}: the snapshots are missing; {REMEDY}")
        self._store.create(facts_of(learner, problem))
        snapshots.write(self._store, State.new(learner))

    def _together(self, calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
        """Run calls one after another, and sync them to disk together; return their results."""
        self._refuse_nested()
        with self._lock:
            results: list[Result | Exception] = []
            while len(results) < len(calls):
                results += self._commit_together(calls[len(results) :])
        return results

    def _commit_together(self, calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
        """Run calls in one transaction; return their results, up to the first that failed to be stored."""
        self._check_open()
        results: list[Result | Exception] = []
        try:
            self._make_usable()
            self._stale, event = True, self._store.last_event
            with self._store.transaction():
                self._catch_up()
                for call in calls:
                    self._store.database.keep_alive()
                    try:
                        self._grouping = True
                        results.append(call())
                    except Exception as error:
                        if isinstance(error, StorageError) or self._store.broken:
                            raise
                        results.append(error)
                    finally:
                        self._grouping = False
        except Exception as error:  # nothing is stored
            return [error] * (min(len(results) + 1, len(calls)) if results else len(calls))
        self._publish()
        if self._snapshot_due or (self._store.last_event > event and self._since_snapshot >= self._snapshot_every):
            self._snapshot()
        return results

    def _refuse_nested(self) -> None:
        """Refuse a call from a signal handler that interrupts another call in the same thread."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise ConflictError("a call is in progress in this thread; a signal handler cannot make another one")

    def _check_open(self) -> None:
        """Refuse a learner that is closed or was opened by another process."""
        if self._resources is None:
            raise InvalidInputError(f"the learner in {self.name} is closed")
        if os.getpid() != self._process:
            raise InvalidInputError(f"another process opened {self.name} before it forked; open it in this process")

    def _make_usable(self) -> None:
        """After a call that was interrupted or failed, continue from what was published before and what is on disk."""
        if not self._stale:
            return
        store, before = self._store, self._published
        store.reload()
        with store.database.reading():
            store.read_end()
            store.check_end()
            if store.last_event < before.event or store.corrections()[-1:] != before.corrections[-1:]:
                self._recover()
                return
            store.last_event, store.chain, store.settled = before.event, before.chain, before.settled
            self._state, self._since_snapshot = before.state, before.since_snapshot
            for event in store.new_events():
                self._apply_stored(event)
            self._open = {episode.id: episode for episode in store.open_episodes()}
            self._publish()

    def _recover(self) -> None:
        """Restore memory from disk."""
        self._state, self._since_snapshot = snapshots.restore(self._store, self._load, self._progress)
        self._open = {episode.id: episode for episode in self._store.open_episodes()}
        self._corrected = Corrected(corrections.read(self._store.corrections()))
        self._publish()

    def _catch_up(self) -> bool:
        """Learn what other replicas have committed; return whether there was anything."""
        store = self._store
        end = store.database.head() if store.database.shared else store.head
        if end == store.head:
            return False
        lost = end.event < store.last_event or end.episode < store.last_episode  # somebody restored an older state
        if lost or (end.event > store.last_event and not store.reaches_back()):
            store.read_end()
            self._recover()
            return True
        for event in store.new_events():
            if event.kind in corrections.KINDS:  # the state is another one now
                store.read_end()
                self._recover()
                return True
            self._apply_stored(event)
            if event.kind == "tell":
                self._open = {id: one for id, one in self._open.items() if one.number != event.episode}
        self._open |= {episode.id: episode for episode in store.new_episodes()}
        if end.given_up != store.given_up:
            store.given_up = end.given_up
            self._open = {episode.id: episode for episode in store.open_episodes()}
        return True

    def _apply_stored(self, event: Event) -> None:
        """Learn from an event of the journal."""
        self._store.database.keep_alive()
        self._state = apply(self._state, event, self._store.array, self._load)
        self._since_snapshot += 1

    def _publish(self) -> None:
        """Make the state visible, which is on disk now."""
        store = self._store
        self._status = self._status_of(self._state, self._corrected)
        self._published = _Published(
            self._state, store.last_event, store.chain, store.settled, self._since_snapshot, self._corrected.events
        )
        self._stale = False

    def _status_of(self, state: State, corrected: Corrected) -> Status:
        store, open_, trouble = self._store, len(self._open), self._snapshot_error
        last, asked = store.last_event, store.last_episode
        return status_of(state, self._units, last, asked, open_, corrected, trouble, self._expired)

    def _load(self, checkpoint: bytes) -> LearnerBase:
        return load(checkpoint, *self._classes)

    def _apply_and_commit(self, event: Event, arrays: Mapping[bytes, bytes] | None = None, id: str = "") -> None:
        """Apply an event in memory, commit it to disk with the arrays it refers to, and publish the new state.

        If it is the outcome of an episode, that has this id.
        """
        store, new_arrays = self._store, arrays or {}

        def array(digest: bytes) -> FloatArray:
            return floats_of(new_arrays[digest]) if digest in new_arrays else store.array(digest)

        new, events = apply(self._state, event, array, self._load), [event]
        for name, one in new.entrants.items():
            if one.failed and not self._state.entrants[name].failed:  # recorded, so that every replay agrees
                body = f"{name}\0{one.failed}".encode()
                events.append(Event(event.seq + len(events), "failed", body, time=event.time, author=event.author))
        store.append(events, new_arrays)
        self._state = new
        self._open.pop(id, None)
        self._since_snapshot += len(events)

    def _event(self, kind: str, body: bytes, author: str | None = None) -> Event:
        """Return the next event, one that is not about an episode."""
        return Event(self._store.last_event + 1, kind, body, time=self._now(), author=self._author_of(author))

    def _now(self) -> int:
        """Return the time of the database, which is the same for all replicas, as the journal stores it."""
        return _now() + self._store.database.clock_offset

    def _author_of(self, author: str | None) -> str:
        return self._author if author is None else checked_author(author)

    def _snapshot(self) -> None:
        """Write a snapshot. An error is reported in the status, and the next event tries again; nothing is lost."""
        due, self._snapshot_due = self._snapshot_due, False
        self._stale = True
        try:
            with self._store.transaction():
                self._catch_up()
                newest = (
                    self._store.snapshots()[:1] if self._store.database.shared else []
                )  # another replica may have written it
                if due or not newest or self._store.last_event - newest[0].seq >= self._snapshot_every:
                    snapshots.write(self._store, self._state)
            if self._correction is None:  # what a correction reads is kept until it is done
                since = self._now() - round(self._keep_days * DAY)
                with self._store.transaction():
                    self._catch_up()
                    snapshots.prune(self._store, snapshots.Retention(self._keep_journal, since), self._remember)
            self._store.database.tidy()
            self._since_snapshot, self._snapshot_error = 0, ""
        except StorageError as error:
            self._snapshot_error = str(error)
        self._publish()

    def _find(self, id: str) -> EpisodeRow:
        if isinstance(id, str) and id in self._open:
            return self._open[id]
        number, *_ = text(id, "id").partition("-")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            episode = self._store.episode(int(number))
            if episode is not None and episode.id == id:
                return episode
        raise UnknownEpisodeError(
            f"there is no episode {shown(id)} here; it was opened in another directory, or closed more than "
            f"{self._remember} episodes ago"
        )

    def _locked(self, function: Callable[[], Result]) -> Result:
        """Call a function in one thread at a time; in a transaction if replicas share the database."""
        self._refuse_nested()
        with self._lock:
            self._check_open()
            self._make_usable()
            if not self._store.database.shared:
                return function()
            self._stale = True
            with self._store.transaction():
                self._catch_up()
                result = function()
            self._publish()
            return result

    def _put(self, state: State, correction: Event, arrays: Mapping[bytes, bytes]) -> None:
        """Commit a correction with a snapshot of the corrected state, and continue from that."""
        self._stale = True
        with self._store.transaction():
            self._store.append([correction], arrays)
            snapshots.write(self._store, state)
        self._state, self._since_snapshot, self._snapshot_error = state, 0, ""
        self._corrected = Corrected(corrections.read(self._store.corrections()))
        self._publish()

    def _close(self) -> None:
        """Release the directory."""
        self._refuse_nested()
        with self._lock:
            if self._resources is not None:
                resources, self._resources = self._resources, None
                resources.close()


def _now() -> int:
    """Return the time as the journal stores it, in microseconds since 1970."""
    return time.time_ns() // 1000


def checked_author(author: str) -> str:
    return check_length(text(author, "author"), "author")


def check_length(words: str, name: str) -> str:
    if len(words) > LONGEST_NAME or not (words.isprintable() or not words):
        raise InvalidInputError(f"{name} is {shown(words)}; expected at most {LONGEST_NAME} printable characters")
    return words


def facts_of(learner: LearnerBase, problem: Any) -> dict[str, Any]:
    """Return the facts of a new directory: what is shown of it, and what another learner is compared with."""
    units = BudgetUnits.of(problem, len(learner.budgets))
    return {
        "format": FORMAT,
        "tightrope": __version__,
        "learner": learner.settings,
        "budgets": learner.budgets.tolist(),
        "space": _digest_of_space(learner.space),
        "problem": str(getattr(problem, "name", "")),
        "units": asdict(units),
        "states": texts(getattr(problem, "state_names", ()), "problem.state_names"),
        "actions": texts(getattr(problem, "action_names", ()), "problem.action_names"),
    }


def _refuse_other(facts: Mapping[str, Any], learner: LearnerBase | None, name: str) -> None:
    """Raise InvalidInputError if a learner is not the one that a directory was created with."""
    if learner is None:
        return
    words = difference(facts["learner"], learner.settings)
    if not words and learner.budgets.tolist() != facts["budgets"]:
        words = "other budgets"
    if not words and _digest_of_space(learner.space) != facts["space"]:
        words = "another space"
    if words:
        raise InvalidInputError(
            f"the learner in {name} was made with {words}; leave the learner out to continue with the one in the "
            "directory, or choose another directory"
        )


def difference(here: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return the first setting that differs between the learner here and the one given, in words; "" if none does."""
    for name in {**here, **given}:
        if here.get(name) != given.get(name):
            return f"{name} = {here.get(name)!r}, the one given with {given.get(name)!r}"
    return ""


def _digest_of_space(space: LayeredSpace) -> str:
    return digest_of_row(repr(space.layer_sizes), space.n_actions, space.tuples.astype("<i8").tobytes()).hex()
