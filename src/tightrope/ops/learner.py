"""The durable learner: a learner in a directory. What a call acknowledges is on disk, and is counted once.

A change is applied to the state in memory, committed to the journal, and then published:

    new = apply(state, event); commit(event); self._state = new

Whatever interrupts this (an error, a signal, a full disk), the disk decides: the next call restores the newest snapshot
and replays the journal, to the same bits. So every event in the journal is one that the learner could learn.
"""

import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial, wraps
from math import inf
from os import PathLike
from threading import RLock
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import msgspec
from numpy.typing import ArrayLike

from tightrope import __version__
from tightrope.arguments import (
    file_path,
    function,
    instance,
    listed,
    number,
    printable,
    shown,
    text,
    texts,
    unknown,
    whole,
)
from tightrope.errors import ConflictError, InvalidInputError, StorageError, TooManyOpenError, UnknownEpisodeError
from tightrope.learners import load
from tightrope.learners.base import Feedback, LearnerBase
from tightrope.learners.episodes import checked_budgets
from tightrope.model import Policy
from tightrope.ops import corrections, rebuilding, snapshots
from tightrope.ops.corrections import Corrected, Correction
from tightrope.ops.database import POSTGRES, REMEDY, Database
from tightrope.ops.formats import FORMAT
from tightrope.ops.rebuilding import Choose, Effect, Rebuild, Selection
from tightrope.ops.sqlite import SQLite, no_learner, owned_directory
from tightrope.ops.state import LARGEST_SUM, State, StopLoss, apply, refuse_foreign
from tightrope.ops.status import BudgetUnits, Status, status_of
from tightrope.ops.store import (
    UNKNOWN,
    EpisodeRow,
    Event,
    Journal,
    bytes_of,
    digest_of_row,
    floats_of,
)
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage import checkpoints

#: Bytes that a commit may take beside the arrays of an episode, and more.
COMMIT_BYTES = 2**17

#: Default retention of the journal, its longest one, and microseconds of a day.
KEEP_DAYS, KEEP_JOURNAL, MOST_DAYS, DAY = 90.0, 100_000, 36_500.0, 86_400_000_000

#: Characters of the name of a challenger, of an author and of a key; and names that mean something else in a URL.
LONGEST_NAME, DOTS = 100, (".", "..")

#: Characters of the reason of a correction.
LONGEST_REASON = 1000

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode to play: pass its id to `tell` or `give_up`."""

    id: str  #: unique across directories, crashes and restored backups
    policy: Policy  #: the policy to play


def exclusive(
    method: Callable[Concatenate["DurableLearner", Arguments], Result],
) -> Callable[Concatenate["DurableLearner", Arguments], Result]:
    """Let one thread at a time run a method: in a transaction, with memory and disk in agreement."""

    @wraps(method)
    def call(self: "DurableLearner", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if self._grouping and self._lock._is_owned():  # type: ignore[attr-defined]
            self._grouping = False
            try:
                return method(self, *args, **kwargs)
            finally:
                self._grouping = True
        [result] = self.together([partial(call, self, *args, **kwargs)])
        if isinstance(result, Exception):
            raise result
        return result

    return call


def looking(
    method: Callable[Concatenate["DurableLearner", Arguments], Result],
) -> Callable[Concatenate["DurableLearner", Arguments], Result]:
    """Let one thread at a time run a method that changes nothing, after it learned what other replicas committed."""

    @wraps(method)
    def call(self: "DurableLearner", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
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


class DurableLearner:
    """A learner in a directory of its own.

    Calls from several threads run one after another; `status` and `policy` never wait.

    Parameters
    ----------
    address : path or str
        A new directory is created for `learner`; an existing one continues with the learner that it contains. Or the
        URL of a PostgreSQL database, `postgresql://user@host/database`, which several replicas may share; with
        `?schema=name`, a schema of its own in the database.
    learner : LearnerBase, optional
        Needed for a new directory. For an existing one it must have the same parameters, or may be left out.
    problem : optional
        Its names and units are stored in the directory, and spending is reported in them. Without a problem, spending
        is reported in the units of the learner.
    classes : tuple of types
        Learners and confidence rules of your own that the directory may contain, as for `tightrope.load`.
    snapshot_every : int
        Number of events between two snapshots; no more are replayed when the directory is opened.
    keep_days : float
        How long events are kept in the journal, in days, so that they can be corrected.
    keep_journal : int
        How many events are kept for that, at most; 0: none but those that a recovery needs.
    remember : int
        Number of episodes, the last that were opened, whose outcome is remembered: `tell` answers "already" for them.
        Open episodes are never forgotten.
    most_open : int
        Number of episodes that may be open at once.
    expire_after : float
        Seconds after which an episode that is still open is given up, by `expire` or when `most_open` are open.
    author : str
        Recorded with every change, unless a call names another author.
    progress : callable, optional
        Called before each event that is replayed, with the number of events replayed so far. An exception that it
        raises ends the opening, without loss.

    Raises
    ------
    InvalidInputError
        If the directory belongs to another process, contains something else, or contains another learner.
    StorageError
        If the directory is damaged, or cannot be read or written.

    Example
    -------
    >>> import tempfile, tightrope as tr
    >>> problem = tr.make("river-swim")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DurableLearner(folder, tr.make_learner("uniform", problem, episodes=100), problem=problem) as learner:
    ...         episode = learner.ask()
    ...         answer = learner.give_up(episode.id)
    ...     (answer, learner.status.given_up)
    ('given up', 1)
    """

    def __init__(
        self,
        address: str | PathLike[str],
        learner: LearnerBase | None = None,
        *,
        problem: Any = None,
        classes: tuple[type, ...] = (),
        snapshot_every: int = 1000,
        keep_days: float = KEEP_DAYS,
        keep_journal: int = KEEP_JOURNAL,
        remember: int = 100_000,
        most_open: int = 1000,
        expire_after: float = inf,
        author: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._progress = None if progress is None else function(progress, "progress")
        self._snapshot_every = whole(snapshot_every, "snapshot_every", 1)
        self._keep_days = number(keep_days, "keep_days", 0.0, MOST_DAYS)
        self._keep_journal = whole(keep_journal, "keep_journal", 0)
        self._remember = whole(remember, "remember", 0)
        self._most_open = whole(most_open, "most_open", 1)
        self._expire_after = number(expire_after, "expire_after", 0.0, inf)
        self._expired, self._opened = 0, _now()
        self._author = _checked_author(author)
        self._classes = tuple(instance(kind, "classes", type) for kind in listed(classes, "classes"))
        if learner is not None:
            _check_learner(learner)
        self._lock = RLock()
        self._process = os.getpid()
        self._state: State
        self._status: Status
        self._corrected: Corrected
        self._open: dict[str, EpisodeRow]  #: open episodes by id
        self._stale = True  #: memory may differ from disk
        self._torn = False  #: learners in memory may have learned from an event that was not stored
        self._grouping = False  #: the methods that are called now belong to the transaction of `together`
        self._correction: Rebuild | None = None  #: being prepared
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
        """Store the facts, then snapshot 0, without which the directory is not complete."""
        if learner is None:
            raise no_learner(self.name)
        if self._store.last_event or self._store.last_episode:
            raise StorageError(f"{self._store}: the snapshots are missing; {REMEDY}")
        self._store.create(facts_of(learner, problem))
        snapshots.write(self._store, State.new(learner))

    def together(self, calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
        """Run calls of methods of this object one after another, and sync them to disk together.

        The result is that of the calls alone, for the price of one sync: nothing is published or returned before all of
        it is on disk. A call that fails changes nothing, and the others go on.

        Parameters
        ----------
        calls : sequence of callables
            Each is called once, without arguments.

        Returns
        -------
        The result of each call, or its exception. If the disk fails, nothing is stored of all the calls that have a
        StorageError.
        """
        self._refuse_nested()
        with self._lock:
            results: list[Result | Exception] = []
            while len(results) < len(calls):
                results += self._commit_together(calls[len(results) :])
        return results

    def _commit_together(self, calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
        """Run calls in one transaction, as far as the state in memory remains whole; return their results."""
        self._check_open()
        results: list[Result | Exception] = []
        try:
            self._make_usable()
            self._stale, self._torn, event = True, False, self._store.last_event
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
                    if self._torn:
                        break
        except Exception as error:  # nothing is stored
            return [error] * (min(len(results) + 1, len(calls)) if results else len(calls))
        if self._torn:
            with suppress(StorageError):  # which the next call reports
                self._make_usable()
            return results
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
        """Recover after an interrupted call."""
        if self._stale:
            self._store.reload()
            with self._store.database.reading():
                self._store.read_end()
                self._recover()

    def _recover(self) -> None:
        """Restore memory from disk."""
        self._state, self._since_snapshot = snapshots.restore(self._store, self._load, self._progress)
        self._open = {episode.id: episode for episode in self._store.open_episodes()}
        self._corrected = Corrected(corrections.read(self._store.corrections()))
        self._publish()

    def _catch_up(self) -> bool:
        """Learn what other replicas committed since this one looked; return whether there was anything."""
        store = self._store
        end = store.database.head() if store.database.shared else store.head
        if end == store.head:
            return False
        lost = end.event < store.last_event or end.episode < store.last_episode  # an older state was restored there
        if lost or (end.event > store.last_event and not store.reaches_back()):
            store.read_end()
            self._recover()
            return True
        for event in store.new_events():
            if event.kind in corrections.KINDS:  # the state is another one now
                store.read_end()
                self._recover()
                return True
            store.database.keep_alive()
            self._state = apply(self._state, event, store.array, self._load)
            self._since_snapshot += 1
            if event.kind == "tell":
                self._open = {id: one for id, one in self._open.items() if one.number != event.episode}
        self._open |= {episode.id: episode for episode in store.new_episodes()}
        if end.given_up != store.given_up:
            store.given_up = end.given_up
            self._open = {episode.id: episode for episode in store.open_episodes()}
        return True

    def _publish(self) -> None:
        """Make the state on disk visible."""
        self._status = self._status_of(self._state, self._corrected)
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

        self._torn = True
        try:
            new = apply(self._state, event, array, self._load)
        except InvalidInputError as error:
            self._torn = type(error) is not InvalidInputError  # a learner that refuses an episode stays as it was
            raise
        events = [event]
        for name, one in new.entrants.items():
            if one.failed and not self._state.entrants[name].failed:  # recorded, so that every replay agrees
                body = f"{name}\0{one.failed}".encode()
                events.append(Event(event.seq + len(events), "failed", body, time=event.time, author=event.author))
        store.append(events, new_arrays)
        self._state = new
        self._open.pop(id, None)
        self._since_snapshot += len(events)
        self._torn = False

    def _event(self, kind: str, body: bytes, author: str | None = None) -> Event:
        """Return the next event; it is not about an episode."""
        return Event(self._store.last_event + 1, kind, body, time=self._now(), author=self._author_of(author))

    def _now(self) -> int:
        """Return the time of the database, which is the same for all replicas, as the journal stores it."""
        return _now() + self._store.database.clock_offset

    def _author_of(self, author: str | None) -> str:
        return self._author if author is None else _checked_author(author)

    def _snapshot(self) -> None:
        """Write a snapshot. An error is reported in the status, and the next event tries again: no event is lost."""
        due, self._snapshot_due = self._snapshot_due, False
        self._stale = True
        try:
            with self._store.transaction():
                self._catch_up()
                newest = self._store.snapshots()[:1] if self._store.database.shared else []  # of another replica
                if due or not newest or self._store.last_event - newest[0].seq >= self._snapshot_every:
                    snapshots.write(self._store, self._state)
            if not self.correcting:  # what a correction reads is kept until it is done
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

    def _open_episode(self, policy: Policy | None, author: str | None, key: str = "") -> EpisodeRow:
        """Commit a new episode; None: the policy that plays it is not known."""
        if len(self._open) >= self._most_open:
            self._expire()
        if len(self._open) >= self._most_open:
            raise TooManyOpenError(f"{self._most_open} episodes are open, which is the limit; tell or give up some")
        name, probabilities = self._author_of(author), None if policy is None else policy.probabilities
        episode = self._store.open_episode(secrets.token_hex(4), probabilities, self._now(), name, key)
        self._open[episode.id] = episode
        return episode

    @exclusive
    def ask(self, *, author: str | None = None, key: str = "") -> OpenEpisode:
        """Open an episode, and return its id and the policy to play it with; on disk when it returns.

        Parameters
        ----------
        author : str, optional
            Recorded with the episode; by default the author of this object.
        key : str
            Chosen by the caller for this call. As long as the episode is open, another call with the same key returns
            that episode instead of opening one, so that a call whose answer was lost can be repeated.

        Raises
        ------
        TooManyOpenError
            If `most_open` episodes are open.
        """
        if text(key, "key"):
            _check_length(key, "key")
            for found in self._open.values():
                if found.key == key:
                    return OpenEpisode(found.id, Policy.unchecked(self.space, self._store.array(found.policy)))
        policy = self._state.policy
        episode = self._open_episode(policy, author, key)
        return OpenEpisode(episode.id, Policy.unchecked(policy.space, policy.probabilities.copy()))

    @exclusive
    def tell(
        self,
        id: str,
        states: ArrayLike,
        actions: ArrayLike,
        loss: ArrayLike,
        constraints: ArrayLike,
        *,
        author: str | None = None,
    ) -> Literal["learned", "already"]:
        """Learn from the outcome of an open episode. Episodes are learned in the order of these calls.

        Parameters
        ----------
        id : str
            The id of the episode.
        states, actions : array_like
            The path, (L + 1,) and (L,).
        loss : array_like
            With full feedback (n_tuples,); with bandit feedback (L,), along the path.
        constraints : array_like
            With full feedback (I, n_tuples); with bandit feedback (I, L), along the path.
        author : str, optional
            Recorded with the outcome; by default the author of this object.

        Returns
        -------
        "learned", or "already" if the same outcome was told before.

        Raises
        ------
        UnknownEpisodeError
            If the episode is not known.
        ConflictError
            If the episode was given up or told with another outcome, or if the champion cannot learn from its policy.
        InvalidInputError
            If the outcome is impossible or violates Assumption 2; the episode stays open.
        ConvergenceError
            If the champion cannot learn from the outcome; the episode stays open.
        """
        episode = self._find(id)
        outcome, seq = (states, actions, loss, constraints), self._store.last_event + 1
        event, arrays = self._state.format.event(seq, episode, outcome, self._store.digest)
        if episode.fate != "open":
            if episode.contents == event.contents:
                return "already"
            fate = "told with another outcome" if episode.fate == "told" else "given up"
            raise ConflictError(f"episode {id} was {fate} before; nothing was changed")
        refuse_foreign(self._state.learner, episode.policy, id)
        self._apply_and_commit(event._replace(time=self._now(), author=self._author_of(author)), arrays, id)
        return "learned"

    @exclusive
    def give_up(self, id: str) -> Literal["given up", "already"]:
        """Close an episode without an outcome; what it spent is not known.

        Returns
        -------
        "given up", or "already" if it was given up before.

        Raises
        ------
        UnknownEpisodeError, ConflictError
            If the episode is not known, or was told.
        """
        episode = self._find(id)
        if episode.fate == "told":
            raise ConflictError(f"episode {id} was told before; nothing was changed")
        if episode.fate != "open":
            return "already"
        self._give_up(episode)
        return "given up"

    def _give_up(self, episode: EpisodeRow) -> None:
        self._store.give_up(episode)
        del self._open[episode.id]

    @exclusive
    def expire(self) -> list[str]:
        """Give up the episodes that have been open for more than `expire_after` seconds, and return their ids.

        An episode that was opened before format 7, without a time, counts from when this object was made.
        """
        return self._expire()

    def _expire(self) -> list[str]:
        now = self._now()
        old = [one for one in self._open.values() if now - (one.time or self._opened) > 1e6 * self._expire_after]
        for episode in old:
            self._expired += 1
            self._give_up(episode)
        return [episode.id for episode in old]

    @exclusive
    def watch(self, policy: Policy | None = None, *, author: str | None = None) -> str:
        """Open an episode that somebody else plays (shadow mode), and return its id.

        All learners learn from it. What each would have spent is estimated by importance; if the policy is not known,
        the costs of the played path are reported instead.

        Parameters
        ----------
        policy : Policy, optional
            The policy that plays the episode, if it is known.

        Raises
        ------
        InvalidInputError
            If a learner cannot learn from episodes of others, or of others with an unknown policy.
        TooManyOpenError
            If `most_open` episodes are open.
        """
        for name, one in self._state.learning.items():
            if one.learner.learns_from == "own":
                raise InvalidInputError(f"{name} cannot learn from episodes that others play")
            if one.learner.learns_from == "told" and policy is None:
                raise InvalidInputError(f"{name} can learn from episodes that others play only with their policy")
        checked = None if policy is None else self._checked_policy(policy, "policy")
        return self._open_episode(checked, author).id

    @exclusive
    def set_budgets(self, budgets: ArrayLike | Mapping[str, float], *, author: str | None = None) -> None:
        """Change the budgets of all episodes that are told from now on. The learners keep what they learned.

        Parameters
        ----------
        budgets : mapping or array_like
            The budgets to change, by name and in their own units; or all of them (I,), in the units of the learner.

        Raises
        ------
        InvalidInputError
            If a budget is unknown or too large, or a learner was made for the budgets that it has.
        """
        if isinstance(budgets, Mapping):
            budgets = self._units.changed(self._state.learner.budgets, budgets)
        self._apply_and_commit(self._event("budgets", bytes_of(checked_budgets(self.space, budgets)), author))

    @exclusive
    def stop_loss(
        self, rules: Mapping[str, StopLoss], safe_policy: Policy | None = None, *, author: str | None = None
    ) -> None:
        """Replace the stop-loss rules: `ask` returns the safe policy while a rule stops the learner.

        Parameters
        ----------
        rules : mapping
            Rules by the name of the budget; without rules nothing stops.
        safe_policy : Policy, optional
            The policy to play then; needed if there are rules.

        Raises
        ------
        InvalidInputError
            If a budget is unknown, a number is too large, or the champion cannot learn from other policies.
        """
        names, scales, learner = self._units.names, self._units.scales, self._state.learner
        if learner.learns_from == "own":
            raise InvalidInputError(f"{learner.name} cannot learn from episodes that the safe policy plays")
        for name, rule in instance(rules, "rules", Mapping).items():  # type: ignore[type-abstract]
            if name not in names:
                raise unknown("there is no budget", name, names)
            instance(rule, f"the rule of {name}", StopLoss).refuse_beyond(LARGEST_SUM * scales[names.index(name)], name)
        if safe_policy is None and rules:
            raise InvalidInputError("safe_policy is missing; pass the policy to play when a rule stops the learner")
        safe = learner.policy if safe_policy is None else self._checked_policy(safe_policy, "safe_policy")
        body = {
            "rules": {names.index(name): msgspec.structs.asdict(rule) for name, rule in rules.items()},
            "safe": safe.probabilities.tolist(),
            "scales": scales,
        }
        self._apply_and_commit(self._event("stop-loss", json.dumps(body).encode(), author))

    @exclusive
    def challenge(self, name: str, learner: LearnerBase, *, author: str | None = None) -> None:
        """Add a learner that learns from the same episodes; `status.standings` shows what it would have spent.

        A challenger that cannot learn from an episode has failed and learns no more; the others continue.

        Parameters
        ----------
        name : str
            A name of its own, of at most 100 characters, without "/".
        learner : LearnerBase
            A learner for the same space and number of budgets.

        Raises
        ------
        InvalidInputError
            If the name is taken or invalid, or the learner cannot learn from these episodes.
        """
        state = self._state
        if not text(name, "name").isprintable() or "/" in name or not 1 <= len(name) <= LONGEST_NAME or name in DOTS:
            raise InvalidInputError(
                f"name is {shown(name)}; expected at most {LONGEST_NAME} printable characters without /, and not a dot"
            )
        if name in state.entrants:
            raise InvalidInputError(f"name is {shown(name)}, which another learner has; choose a different one")
        if state.learner.learns_from == "own":
            raise InvalidInputError(f"{state.champion} cannot learn from episodes that a challenger plays")
        state.refuse_unfit(_check_learner(learner))
        checkpoint = snapshots.checkpoint_of(learner)
        self._load(checkpoint)  # refuses a learner that could not be restored
        self._apply_and_commit(self._event("challenge", name.encode() + b"\0" + checkpoint, author))

    @exclusive
    def promote(self, name: str, *, author: str | None = None) -> None:
        """Make a challenger the champion: `ask` returns its policy. The former champion becomes a challenger.

        Raises
        ------
        InvalidInputError
            If there is no such learner, or it has failed.
        """
        if self._checked_name(name) == self._state.champion:
            return
        if reason := self._state.entrants[name].failed:
            raise InvalidInputError(f"{name} has failed, {reason}; dismiss it")
        self._apply_and_commit(self._event("promote", name.encode(), author))

    @exclusive
    def dismiss(self, name: str, *, author: str | None = None) -> None:
        """Remove a challenger.

        Raises
        ------
        InvalidInputError
            If there is no such learner, or it is the champion.
        """
        if self._checked_name(name) == self._state.champion:
            raise InvalidInputError(f"{name} is the champion; promote another learner first")
        self._apply_and_commit(self._event("dismiss", name.encode(), author))

    def retract(
        self,
        episodes: Iterable[str] | None = None,
        *,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        told_by: str | None = None,
        reason: str = "",
        author: str | None = None,
        dry_run: bool = False,
    ) -> Effect:
        """Take outcomes back: the learner becomes one that never learned them.

        The outcomes are those that meet all conditions given. Other calls are answered meanwhile, with the old
        policies; the outcomes that they tell are learned. The episodes count as told: telling one of them again
        answers "already".

        Parameters
        ----------
        episodes : iterable of str, optional
            Ids.
        since, until : datetime or float, optional
            When they were told: at `since` or later, before `until`; in seconds since 1970, or with a time zone.
        told_by : str, optional
            The author who told them.
        reason : str
            Recorded with the correction, for the audit trail.
        author : str, optional
            Recorded with the correction; by default the author of this object.
        dry_run : bool
            Find out what would be the effect, and change nothing.

        Returns
        -------
        What was retracted and left out, and the status before and after.

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
        return self._correct(rebuilding.retraction(selection, _checked_reason(reason)), author, dry_run)

    def amend(
        self,
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
        """Replace the outcome of an episode that was told: the learner becomes one that was told this outcome then.

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
            return self._state.format.event(0, episode, outcome, self._store.digest)

        event, arrays = self._locked(told)
        assert event.episode is not None
        choose = rebuilding.amendment(event.episode, event, arrays, _checked_reason(reason))
        return self._correct(choose, author, dry_run)

    def undo(self, event: int, *, reason: str = "", author: str | None = None, dry_run: bool = False) -> Effect:
        """Undo a correction, by the number of its event. An undoing can be undone, too.

        Returns
        -------
        What was left out, and the status before and after.

        Raises
        ------
        InvalidInputError, ConflictError
            As for `retract`, and if there is no such correction, or it is undone already.
        """
        return self._correct(rebuilding.undoing(event, _checked_reason(reason)), author, dry_run)

    def _correct(self, choose: Choose, author: str | None, dry_run: bool) -> Effect:
        name, correction = self._author_of(author), Rebuild(self)
        try:  # an interrupt may come as soon as it has begun
            self._locked(partial(self._begin_correction, correction))
            return correction.run(choose, name, self._now, dry_run)
        finally:
            if self._correction is correction:
                self._correction = None

    def _begin_correction(self, correction: Rebuild) -> None:
        if self._correction is not None:
            raise ConflictError("another correction is in progress; wait until it is done")
        self._correction = correction

    def _locked(self, function: Callable[[], Result]) -> Result:
        """Call a function that reads, as `exclusive` does; in a directory without a transaction."""
        self._refuse_nested()
        with self._lock:
            self._check_open()
            self._make_usable()
            if not self.database.shared:
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

    @looking
    def corrections(self) -> tuple[Correction, ...]:
        """Return all corrections, oldest first."""
        return Correction.all(self._corrected.corrections)

    @property
    def correcting(self) -> bool:
        """Whether a correction is in progress; never waits."""
        return self._correction is not None

    @exclusive
    def _request_snapshot(self) -> None:
        self._snapshot_due = True

    def snapshot(self) -> None:
        """Write a snapshot now, and delete what it makes unnecessary.

        Raises
        ------
        StorageError
            If it cannot be written; nothing is lost.
        """
        self._request_snapshot()
        if self._snapshot_error:
            raise StorageError(self._snapshot_error)

    @exclusive
    def check_disk(self) -> None:
        """Write as much as an episode may take, and keep none of it.

        Raises
        ------
        StorageError
            If the directory cannot be written.
        """
        format = self._state.format
        self._store.database.check_writable(COMMIT_BYTES + 8 * format.space.n_tuples * (1 + format.n_constraints))
        self._store.check_writable()

    @looking
    def open_episodes(self, ids: Collection[str] | None = None) -> dict[str, OpenEpisode]:
        """Return the open episodes whose policy is known, by id, oldest first; only those of `ids`, if given."""
        found = {}
        for episode in self._open.values():
            if episode.policy != UNKNOWN and (ids is None or episode.id in ids):
                policy = Policy.unchecked(self.space, self._store.array(episode.policy))
                found[episode.id] = OpenEpisode(episode.id, policy)
        return found

    @looking
    def opened_at(self) -> dict[str, float]:
        """Return when each open episode was opened, in seconds since 1970, oldest first; 0 before format 7."""
        return {id: (episode.time or 0) / 1e6 for id, episode in self._open.items()}

    @looking
    def open_ids(self) -> list[str]:
        """Return the ids of all open episodes, oldest first."""
        return list(self._open)

    @property
    def database(self) -> Database:
        """Where the journal and other files of the learner are stored."""
        return self._store.database

    @looking
    def refresh(self) -> None:
        """Learn what other replicas committed, so that `status` and `policy` show it. Every other method does, too."""

    @property
    def status(self) -> Status:
        """The status after the last call that returned; never waits."""
        return self._status

    @property
    def policy(self) -> Policy:
        """A copy of the policy that `ask` returns now; never waits."""
        return self._status.policy

    @property
    def space(self) -> LayeredSpace:
        """The space of all its learners."""
        return self._state.format.space

    @property
    def feedback(self) -> Feedback:
        """The feedback that `tell` takes: "full" or "bandit"."""
        return self._state.format.feedback

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter of the champion; never waits."""
        status = self._status
        return dict(next(one.settings for one in status.entrants if one.name == status.champion))

    @property
    @looking
    def facts(self) -> dict[str, Any]:
        """What the directory was created with: names of states and actions, units, the first learner."""
        return self._store.facts()

    @looking
    def fingerprint(self, name: str | None = None) -> bytes:
        """Return the bytes of a checkpoint of a learner, by default the champion.

        They are equal for learners that will continue alike.
        """
        name = self._state.champion if name is None else self._checked_name(name)
        return checkpoints.fingerprint(self._state.entrants[name].learner)

    def close(self) -> None:
        """Release the directory. Everything that was acknowledged is on disk already."""
        self._refuse_nested()
        with self._lock:
            if self._resources is not None:
                resources, self._resources = self._resources, None
                resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DurableLearner({self.name!r}, {self.status.champion}, told={self.status.told})"

    def _checked_name(self, name: str) -> str:
        if not isinstance(name, str) or name not in self._state.entrants:
            raise unknown("there is no learner here called", name, self._state.entrants)
        return name

    def _checked_policy(self, policy: Policy, name: str) -> Policy:
        if instance(policy, name, Policy).space != self.space:
            raise InvalidInputError(f"{name} is for {policy.space!r}; the learner has {self.space!r}")
        return Policy(self.space, policy.probabilities)  # checks the probabilities again, which may have been changed


def _now() -> int:
    """Return the time as the journal stores it, in microseconds since 1970."""
    return time.time_ns() // 1000


def _checked_author(author: str) -> str:
    return _check_length(text(author, "author"), "author")


def _check_length(words: str, name: str) -> str:
    if len(words) > LONGEST_NAME or not (words.isprintable() or not words):
        raise InvalidInputError(f"{name} is {shown(words)}; expected at most {LONGEST_NAME} printable characters")
    return words


def _checked_reason(reason: str) -> str:
    if len(text(reason, "reason")) > LONGEST_REASON or not (reason.isprintable() or not reason):
        raise InvalidInputError(f"reason is {shown(reason)}; expected at most {LONGEST_REASON} printable characters")
    return reason


def _check_learner(learner: LearnerBase) -> LearnerBase:
    return instance(learner, "learner", LearnerBase)  # type: ignore[type-abstract]


def facts_of(learner: LearnerBase, problem: Any) -> dict[str, Any]:
    """Return what is stored of a new directory: to show it, and to refuse another learner."""
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
    """Raise InvalidInputError if a learner differs from the one that a directory was created with."""
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
