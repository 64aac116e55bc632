"""A learner that loses nothing: what it acknowledged is on disk, and a crash at any instruction counts it once.

A tell is learnt first, then committed to the journal (one fsync), then acknowledged. Whatever ends a call in between,
be it an error, a signal or a full disk, what is on disk counts: the next call goes back to the last snapshot and learns
the journal again, to the same bits. So a row of the journal is always an episode that could be learnt, and one that
cannot be is refused and stays open.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from threading import RLock
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import file_path, instance, shown, text, whole
from tightrope.durable import snapshots
from tightrope.durable.facts import facts_of, refuse_other
from tightrope.durable.folder import claimed
from tightrope.durable.journal import Event, Handed, Journal, digest_of
from tightrope.durable.state import State, encoded_budgets, policy_of
from tightrope.durable.status import Status, Units, status_of
from tightrope.errors import (
    ConflictError,
    InvalidInputError,
    StorageError,
    TooManyOpenError,
    UnknownEpisodeError,
)
from tightrope.learners import load
from tightrope.learners.base import Feedback, LearnerBase
from tightrope.learners.episodes import checked_budgets
from tightrope.model import Policy
from tightrope.space import LayeredSpace
from tightrope.storage import checkpoints


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode to be played: tell what came of it by its id, or give it up."""

    id: str  #: no other episode ever has it, whatever happens in between
    policy: Policy  #: what to play


class DurableLearner:
    """A learner in a directory of its own.

    Parameters
    ----------
    directory : a new one takes the learner given; one that is there goes on with its own.
    learner : of tightrope, or derived from `LearnerBase`. For a directory that is there it may be left out; given, it
        must be made with the same parameters.
    problem : whose names and units spending is shown in (kept in the directory); without it, those of the learner.
    classes : learners and confidence rules of your own that the directory may name, as for `tightrope.load`.
    snapshot_every : after so many events the state is written, so that no more than that is ever learnt anew.
    keep_journal : so many events are kept at the least, even if no snapshot needs them.
    remember : of so many episodes, the last ones handed out, it is known what became of them: telling one of them again
        is answered "already". Open ones are never forgotten.
    most_open : so many may be open at once.

    Calls from several threads wait for one another; `status` and `policy` never wait.

    Example
    -------
    >>> import tempfile, tightrope as tr
    >>> problem = tr.make("river-swim")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DurableLearner(folder, tr.make_learner("uniform", problem, episodes=100), problem=problem) as learner:
    ...         episode = learner.ask()
    ...         learner.give_up(episode.id)
    ...         learner.status.given_up
    1
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        learner: LearnerBase | None = None,
        *,
        problem: Any = None,
        classes: tuple[type, ...] = (),
        snapshot_every: int = 1000,
        keep_journal: int = 0,
        remember: int = 100_000,
        most_open: int = 1000,
    ) -> None:
        self.directory = file_path(directory, "directory")
        self._classes = tuple(instance(kind, "classes", type) for kind in classes)
        self._snapshot_every = whole(snapshot_every, "snapshot_every", 1)
        self._keep_journal = whole(keep_journal, "keep_journal", 0)
        self._remember = whole(remember, "remember", 0)
        self._most_open = whole(most_open, "most_open", 1)
        self._lock = RLock()
        self._behind = True  #: whether what is in memory may differ from what is on disk
        self._trouble = ""
        with ExitStack() as stack:
            stack.enter_context(claimed(self.directory))
            self._journal = Journal(self.directory)
            stack.callback(self._journal.close)
            if not self._journal.rows("SELECT 1 FROM snapshots LIMIT 1"):
                self._begin(learner, problem)
            elif learner is not None:
                refuse_other(self._journal.facts(), _checked(learner), self.directory)
            self._units = Units(**{name: tuple(given) for name, given in self._journal.facts()["units"].items()})
            self._recover()
            self._open: ExitStack | None = stack.pop_all()

    def _begin(self, learner: LearnerBase | None, problem: Any) -> None:
        """Make a new directory: the facts, then snapshot 0, by which it is known to be whole."""
        if learner is None:
            raise InvalidInputError(f"{self.directory} holds no learner yet; give it one to begin with")
        _checked(learner)
        with self._journal.commit():
            self._journal.write_facts(facts_of(learner, Units.of(problem, len(learner.budgets)), problem))
        snapshots.write(self.directory, self._journal, State(learner))

    def _recover(self) -> None:
        """Bring memory to what is on disk: the last snapshot, and the journal after it."""
        journal = self._journal
        journal.reread()
        journal.check_end()
        state, seq, chain = snapshots.newest(self.directory, journal, lambda path: load(path, *self._classes))
        self._since = journal.last - seq
        for event in journal.events(seq, chain):
            try:
                state.apply(event, journal.policy)
            except (InvalidInputError, ArithmeticError) as error:
                raise StorageError(
                    f"{journal}: event {event.seq} was learnt once and cannot be now: {error}"
                ) from error
        self._state = state
        self._handed = {handed.number: handed for handed in journal.handed("fate = 'open'")}
        self._publish()
        self._behind = False

    def _publish(self) -> None:
        """Show what is on disk now."""
        asked, open_ = self._journal.last_episode(), len(self._handed)
        self._status = status_of(self._state, self._units, self._journal.last, asked, open_, self._trouble)

    @contextmanager
    def _using(self) -> Iterator[Journal]:
        """One caller at a time, with memory as it is on disk; whatever is raised in the block makes it look again."""
        with self._lock:
            if self._open is None:
                raise InvalidInputError(f"the learner in {self.directory} is closed")
            if self._behind:
                self._recover()
            yield self._journal

    def ask(self) -> OpenEpisode:
        """An episode to be played, on disk before it is handed out."""
        with self._using() as journal:
            if len(self._handed) >= self._most_open:
                raise TooManyOpenError(
                    f"{len(self._handed)} episodes are open, and no more may be; tell or give up some of them"
                )
            policy = self._status.policy
            probabilities = policy.probabilities.astype("<f8", copy=False).tobytes()
            self._behind = True
            with journal.commit():
                handed = journal.hand_out(secrets.token_hex(4), digest_of(probabilities), probabilities)
            self._handed[handed.number] = handed
            self._status = replace(self._status, asked=handed.number, open=len(self._handed))
            self._behind = False
            return OpenEpisode(_id(handed), _copy(policy))

    def tell(
        self, id: str, states: ArrayLike, actions: ArrayLike, loss: ArrayLike, constraints: ArrayLike
    ) -> Literal["learned", "already"]:
        """Learn from an episode that was handed out, in the order in which these calls are answered.

        With full feedback `loss` is (n_tuples,) and `constraints` (I, n_tuples); with bandit feedback (L,) and (I, L),
        along the path. The same told twice is answered "already"; another story about it is refused.
        """
        with self._using():
            handed = self._find(id)
            form = self._state.form
            body = form.encode(form.checked(handed.number, states, actions, loss, constraints))
            contents = digest_of(body)
            if handed.fate == "told" and handed.contents == contents:
                return "already"
            if handed.fate != "open":
                otherwise = "told otherwise" if handed.fate == "told" else "given up"
                raise ConflictError(f"episode {id} was {otherwise} before; nothing was changed")
            self._refuse_late(handed)
            self._change("tell", body, handed, contents)
            return "learned"

    def _change(self, kind: str, body: bytes, handed: Handed | None = None, contents: bytes | None = None) -> None:
        """Take over an event in memory, then on disk, then to be seen."""
        journal = self._journal
        number, policy = (handed.number, handed.policy) if handed else (None, None)
        self._behind = True
        try:
            self._state.apply(Event(journal.last + 1, kind, number, policy, body), journal.policy)
        except InvalidInputError:  # a learner that refuses stays as before
            self._behind = False
            raise
        with journal.commit():
            journal.append(kind, body, number, policy)
            if handed:
                journal.settle(handed, "told", contents)
        if handed:
            del self._handed[handed.number]
        self._since += 1
        self._publish()
        self._behind = False
        if self._since >= self._snapshot_every:
            self._snapshot()

    def _refuse_late(self, handed: Handed) -> None:
        """Some learners learn from what their policy of now played, and from nothing else."""
        learner = self._state.learner
        now = learner.policy.probabilities.astype("<f8", copy=False).tobytes()
        if learner.learns_from == "own" and handed.policy != digest_of(now):
            raise ConflictError(
                f"episode {_id(handed)} was played with a policy that {learner.name} has left since, and it learns "
                "from its own only; give the episode up, and have one open at a time"
            )

    def _find(self, id: str) -> Handed:
        """The episode of that id."""
        number, _, token = text(id, "id").partition("-")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            found = self._handed.get(int(number))
            known = [found] if found else self._journal.handed("number = ?", int(number))
            if known and known[0].token == token:
                return known[0]
        raise UnknownEpisodeError(
            f"there is no episode {shown(id)} here; it was handed out elsewhere, or settled more than "
            f"{self._remember} episodes ago"
        )

    def give_up(self, id: str) -> Literal["given up", "already"]:
        """Nobody will tell of this episode; what it spent is not known."""
        with self._using() as journal:
            handed = self._find(id)
            if handed.fate == "given up":
                return "already"
            if handed.fate == "told":
                raise ConflictError(f"episode {id} was told before; nothing was changed")
            self._behind = True
            with journal.commit():
                journal.settle(handed, "given up")
            del self._handed[handed.number]
            self._status = replace(self._status, open=len(self._handed))
            self._behind = False
            return "given up"

    def set_budgets(self, budgets: ArrayLike) -> None:
        """Other budgets from the next episode on, as many; what was learnt is kept. In the units of the learner."""
        with self._using():
            self._change("budgets", encoded_budgets(checked_budgets(self.space, budgets)))

    def snapshot(self) -> None:
        """Write the state now, and forget what that makes needless."""
        with self._using():
            self._trouble = ""
            self._snapshot()
            if self._trouble:
                raise StorageError(self._trouble)

    def _snapshot(self) -> None:
        """What goes wrong is put off to the next time: all that was acknowledged is in the journal."""
        try:
            snapshots.write(self.directory, self._journal, self._state)
            snapshots.prune(self.directory, self._journal, self._keep_journal, self._remember)
            self._since, self._trouble = 0, ""
        except StorageError as error:
            self._trouble = str(error)
        self._publish()

    def open_episodes(self) -> Mapping[str, OpenEpisode]:
        """Those that were handed out and not told or given up, oldest first, with the policies they were given."""
        with self._using() as journal:
            learner = self._state.learner
            policies = {digest: policy_of(learner, journal.policy(digest)) for digest in self._digests()}
            return {_id(one): OpenEpisode(_id(one), policies[one.policy]) for one in self._handed.values()}

    def _digests(self) -> set[bytes]:
        return {one.policy for one in self._handed.values()}

    @property
    def status(self) -> Status:
        """What is to be seen, as of the last call that was answered; never waits."""
        return self._status

    @property
    def policy(self) -> Policy:
        """What `ask` hands out now; never waits."""
        return self._status.policy

    @property
    def space(self) -> LayeredSpace:
        """Of the learner."""
        return self._state.form.space

    @property
    def feedback(self) -> Feedback:
        """What it is told: whole functions, or what was met on the way."""
        return self._state.form.feedback

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter that the learner runs with."""
        return self._state.learner.settings

    def fingerprint(self) -> bytes:
        """The bytes that a checkpoint of the learner would have now: equal for learners that will go on alike."""
        with self._using():
            return checkpoints.fingerprint(self._state.learner)

    def close(self) -> None:
        """Let go of the directory; all that was acknowledged is on disk already."""
        with self._lock:
            if self._open is not None:
                held, self._open = self._open, None
                held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        status = self._status
        return f"DurableLearner({str(self.directory)!r}, {self.settings['learner']}, told={status.told})"


def _checked(learner: LearnerBase) -> LearnerBase:
    """What can be saved; nothing else can be kept."""
    return instance(learner, "learner", LearnerBase)  # type: ignore[type-abstract]


def _id(handed: Handed) -> str:
    return f"{handed.number}-{handed.token}"


def _copy(policy: Policy) -> Policy:
    """What a caller may change without changing the learner."""
    return Policy.unchecked(policy.space, np.array(policy.probabilities))
