"""The directory of a durable learner: what is in memory, what is on disk, and how the one follows the other.

A change is made in memory first, then committed to the journal (one fsync), then shown. Whatever ends that in between,
be it an error, a signal or a full disk, what is on disk counts: the next call goes back to the last snapshot and learns
the journal again, to the same bits. So a row of the journal is always something that could be learnt.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from msgspec.structs import replace

from tightrope.arguments import printable, shown, text
from tightrope.errors import ConflictError, InvalidInputError, StorageError, TooManyOpenError, UnknownEpisodeError
from tightrope.learners import load
from tightrope.learners.base import LearnerBase
from tightrope.model import Policy
from tightrope.ops import snapshots
from tightrope.ops.facts import facts_of, refuse_other
from tightrope.ops.folder import claimed
from tightrope.ops.journal import Event, Handed, Journal, unbegun
from tightrope.ops.records import Told
from tightrope.ops.state import CANNOT_LEARN, UNKNOWN, State
from tightrope.ops.status import BudgetUnits, Status, status_of

#: Bytes that a commit takes beside an episode, and more.
PROBE = 2**17

#: Told how many events were learnt again while a directory is opened; whatever it raises ends that.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How a directory is kept."""

    snapshot_every: int
    keep_journal: int
    remember: int
    most_open: int
    classes: tuple[type, ...]
    progress: Progress | None


class Directory:
    """Owned by one process. Who calls is `in_turn`; `status` never waits."""

    def __init__(self, path: Path, options: Options, learner: LearnerBase | None, problem: Any) -> None:
        self.options = options
        self._owner = os.getpid()
        self.state: State
        self.status: Status
        self.open: dict[str, Handed]  #: what was handed out and not settled, by id
        self.lock = RLock()
        self.ready_in = 0  #: the process in whose memory all is as on disk; 0: it may differ, or is closed
        self._since = 0  #: events since the last snapshot
        self._within: tuple[bytes | None, bytes | None] = None, None  #: what was within Assumption 2 the last time
        self._trouble = ""
        with ExitStack() as stack:
            self.path = stack.enter_context(claimed(path, make=learner is not None))
            self.journal = Journal(self.path)
            stack.callback(self.journal.close)
            self.journal.check_end()
            if damage := self.journal.damage():
                raise StorageError(f"{self.journal}: {damage[0]}; restore the directory from a copy")
            if not self.journal.rows("SELECT 1 FROM snapshots LIMIT 1"):
                self._begin(learner, problem)
            else:
                refuse_other(self.journal.facts(), learner, self.path)
            self.units = BudgetUnits.read(self.journal.facts()["units"])
            self._recover()
            self._held: ExitStack | None = stack.pop_all()

    def _begin(self, learner: LearnerBase | None, problem: Any) -> None:
        """Make a new directory: the facts, then snapshot 0, by which it is known to be whole."""
        if learner is None:
            raise unbegun(self.path)
        if self.journal.last or self.journal.asked:
            raise StorageError(f"{self.journal}: there is no snapshot any more; restore the directory from a copy")
        self.journal.write_facts(facts_of(learner, BudgetUnits.of(problem, len(learner.budgets)), problem))
        self.journal.commit()
        snapshots.write(self.path, self.journal, State(learner))

    def _recover(self) -> None:
        """Bring memory to what is on disk."""
        self.journal.reread()
        self.state, self._since = replayed(self.path, self.journal, self.options.classes, self.options.progress)
        self.open = {handed.id: handed for handed in self.journal.open_episodes()}
        self._show()
        self.ready_in = self._owner

    def _show(self) -> None:
        """What is on disk is to be seen."""
        asked, open_ = self.journal.asked, len(self.open)
        self.status = status_of(self.state, self.units, self.journal.last, asked, open_, self._trouble)

    def refuse_nested(self) -> None:
        """Who interrupts a call, in its thread, must not begin another one: memory is half changed."""
        if self.lock._is_owned():  # type: ignore[attr-defined]
            raise ConflictError("a call is under way in this thread; a handler of signals cannot make another one")

    def make_ready(self) -> None:
        """Bring memory to what is on disk: the call before was cut off. Or say why that cannot be."""
        if self._held is None:
            raise InvalidInputError(f"the learner in {printable(self.path)} is closed")
        if os.getpid() != self._owner:
            raise InvalidInputError(f"another process opened {printable(self.path)}, before it forked; open it there")
        self._recover()

    def find(self, id: str) -> Handed:
        """The episode of that id."""
        if isinstance(id, str) and (found := self.open.get(id)):
            return found
        number, *_ = text(id, "id").partition("-")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            for handed in self.journal.handed("number = ?", int(number)):
                if handed.id == id:
                    return handed
        raise UnknownEpisodeError(
            f"there is no episode {shown(id)} here; it was handed out elsewhere, or settled more than "
            f"{self.options.remember} episodes ago"
        )

    def refuse_more(self) -> None:
        """Refuse to hand out more than may be open."""
        most = self.options.most_open
        if len(self.open) >= most:
            raise TooManyOpenError(f"{most} episodes are open, and no more may be; tell or give up some of them")

    def hand_out(self, policy: Policy | None) -> Handed:
        """A new episode, to be played with this policy; None: nobody knows with which."""
        digest = UNKNOWN if policy is None else self.journal.arrays.hold(policy.probabilities)[0]
        self.ready_in = 0
        handed = self.journal.hand_out(secrets.token_hex(4), digest)
        self.journal.commit()
        self.open[handed.id] = handed
        self.status = replace(self.status, asked=handed.number, open=len(self.open))
        self.ready_in = self._owner
        return handed

    def give_up(self, handed: Handed) -> None:
        """Nobody will tell of it."""
        self.ready_in = 0
        self.journal.settle([handed._replace(fate="given up")])
        self.journal.commit()
        del self.open[handed.id]
        self.status = replace(self.status, open=len(self.open))
        self.ready_in = self._owner

    def event_of(self, handed: Handed, told: Told) -> tuple[Event, Told]:
        """The event that telling this of an episode would be; and the same in arrays of ours, to be read only.

        What is not within Assumption 2 is refused; what was looked at the last time is not looked at again.
        """
        journal, form, loss, constraints = self.journal, self.state.form, None, None
        if form.feedback == "full":
            loss, f = journal.arrays.hold(told.loss)
            constraints, g = journal.arrays.hold(told.constraints)
            told = Told(told.path, f, g)
        else:
            told = told.copy()
        if loss is None or (loss, constraints) != self._within:
            form.refuse_beyond(handed.number, told)
            self._within = loss, constraints
        event = Event(journal.last + 1, "tell", handed.number, handed.policy, loss, constraints, form.encode(told))
        return event, told

    def change(self, kind: str, body: bytes) -> None:
        """Take over an event that is about no episode."""
        self.take_over(self._event(kind, body))

    def _event(self, kind: str, body: bytes) -> Event:
        return Event(self.journal.last + 1, kind, None, None, None, None, body)

    def take_over(self, event: Event, id: str | None = None, told: Told | None = None) -> None:
        """Take over an event: in memory, then on disk, then to be seen; now and then a snapshot.

        If it is about an episode, that has this id, and this was `told`.
        """
        journal, self.ready_in = self.journal, 0
        try:
            failed = self.state.apply(event, journal.arrays.kept, self.read, told)
        except InvalidInputError as error:
            if type(error) is InvalidInputError and self.state.whole:  # who refuses stays as before
                self.ready_in = self._owner
            raise
        journal.append(event, None if id is None else self.open[id])
        for name in failed:  # said in the journal, and so by whoever replays it elsewhere
            journal.append(self._event("failed", f"{name}\0{self.state.entrants[name].failed}".encode()))
        journal.commit()
        if id is not None:
            del self.open[id]
        self._since += 1 + len(failed)
        self._show()
        self.ready_in = self._owner
        if self._since >= self.options.snapshot_every:
            self.snapshot()

    def check_disk(self) -> None:
        """Write as much as an episode may take, and keep none of it: one row may fit where nothing else does."""
        form = self.state.form
        try:
            with TemporaryFile(dir=self.path) as file:
                file.write(bytes(PROBE + 8 * form.space.n_tuples * (1 + form.n_constraints)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"{printable(self.path)} cannot be written: {error.strerror}") from error
        self.journal.touch()

    def read(self, checkpoint: bytes) -> LearnerBase:
        """A learner from the bytes of a checkpoint."""
        return load(checkpoint, *self.options.classes)

    def snapshot(self) -> str:
        """Write the state, and forget what that makes needless.

        What goes wrong is returned and shown, and put off to the next time: all that counts is in the journal.
        """
        self.ready_in = 0  # if something else ends it, whatever is to be written is forgotten
        try:
            snapshots.write(self.path, self.journal, self.state)
            snapshots.prune(self.path, self.journal, self.options.keep_journal, self.options.remember)
            self._since, self._trouble = 0, ""
        except StorageError as error:
            self.journal.forget()
            self._trouble = str(error)
        self._show()
        self.ready_in = self._owner
        return self._trouble

    def close(self) -> None:
        """Let go of it; all that was acknowledged is on disk already."""
        self.refuse_nested()
        with self.lock:
            if self._held is not None:
                self.ready_in, held, self._held = 0, self._held, None
                held.close()


class _Inside(Protocol):
    _in: Directory


Self_ = TypeVar("Self_", bound=_Inside)
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def in_turn(
    method: Callable[Concatenate[Self_, Arguments], Answer],
) -> Callable[Concatenate[Self_, Arguments], Answer]:
    """A method of what is `_in` a directory: one caller at a time, with memory as it is on disk."""

    @wraps(method)
    def call(self: Self_, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        directory = self._in
        directory.refuse_nested()
        with directory.lock:
            if directory.ready_in != os.getpid():
                directory.make_ready()
            return method(self, *args, **kwargs)

    return call


def replayed(
    path: Path, journal: Journal, classes: tuple[type, ...], progress: Progress | None = None
) -> tuple[State, int]:
    """The state that is on disk, and how many events it is after the snapshot."""
    journal.check_end()

    def read(checkpoint: bytes) -> LearnerBase:
        return load(checkpoint, *classes)

    state, snapshot = snapshots.newest(path, journal, read)
    journal.settled = snapshot.seq
    for event in journal.events(snapshot.seq, snapshot.chain):
        if progress is not None:
            progress(event.seq - snapshot.seq - 1)
        try:
            state.apply(event, journal.arrays.kept, read)
        except CANNOT_LEARN as error:
            words = f"event {event.seq} was learnt once and cannot be now: {error}"
            raise StorageError(f"{journal}: {words}") from error
    return state, journal.last - snapshot.seq
