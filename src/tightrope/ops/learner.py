"""The durable learner: a learner in a directory. What a call acknowledges is on disk, and counts once.

The methods here check their arguments; `tightrope.ops.engine` stores and recovers.
"""

import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
from numpy.typing import ArrayLike

from tightrope.arguments import (
    function,
    instance,
    listed,
    number,
    shown,
    text,
    unknown,
    whole,
)
from tightrope.errors import ConflictError, InvalidInputError, StorageError, TooManyOpenError
from tightrope.learners.base import Feedback, LearnerBase
from tightrope.learners.episodes import checked_budgets
from tightrope.model import Policy
from tightrope.ops import rebuilding, snapshots
from tightrope.ops.corrections import Correction
from tightrope.ops.database import Database
from tightrope.ops.engine import LONGEST_NAME, Engine, Result, check_length, checked_author, exclusive, reading
from tightrope.ops.state import LARGEST_SUM, StopLoss, refuse_foreign
from tightrope.ops.status import Status
from tightrope.ops.store import (
    UNKNOWN,
    EpisodeRow,
    bytes_of,
)
from tightrope.space import LayeredSpace
from tightrope.storage import checkpoints

#: More bytes than a commit takes besides the arrays of an episode.
COMMIT_BYTES = 2**17

#: Default retention of the journal, and its longest one.
KEEP_DAYS, KEEP_JOURNAL, MOST_DAYS = 90.0, 100_000, 36_500.0

#: Names that mean something else in a URL.
DOTS = (".", "..")


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode to play: pass its id to `tell` or `give_up`."""

    id: str  #: unique across directories, crashes and restored backups
    policy: Policy  #: the policy to play


class DurableLearner(Engine):
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
        How many events are kept for that, at most; with 0 only those that a recovery needs.
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
        self._most_open = whole(most_open, "most_open", 1)
        self._expire_after = number(expire_after, "expire_after", 0.0, inf)
        if learner is not None:
            _check_learner(learner)
        super().__init__(
            address,
            learner,
            problem,
            classes=tuple(instance(kind, "classes", type) for kind in listed(classes, "classes")),
            snapshot_every=whole(snapshot_every, "snapshot_every", 1),
            keep_days=number(keep_days, "keep_days", 0.0, MOST_DAYS),
            keep_journal=whole(keep_journal, "keep_journal", 0),
            remember=whole(remember, "remember", 0),
            author=checked_author(author),
            progress=None if progress is None else function(progress, "progress"),
        )

    def together(self, calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
        """Run calls of methods of this object one after another, and sync them to disk together.

        The results are those of separate calls, at the cost of one sync: nothing is published or returned before all of
        it is on disk. A call that fails changes nothing, and the others continue.

        Parameters
        ----------
        calls : sequence of callables
            Each is called once, without arguments.

        Returns
        -------
        The result of each call, or its exception. Nothing is stored of the calls that have a StorageError.
        """
        return self._together(calls)

    def _open_episode(self, policy: Policy | None, author: str | None, key: str = "") -> EpisodeRow:
        """Commit a new episode, played by `policy`, or by an unknown one."""
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
            Chosen by the caller. While the episode is open, another call with the same key returns that episode instead
            of opening one, so that a call whose answer was lost can be repeated.

        Raises
        ------
        TooManyOpenError
            If `most_open` episodes are open.
        """
        if text(key, "key"):
            check_length(key, "key")
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
        event, arrays = self._state.format.event(seq, episode, outcome)
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
        """Close an episode without an outcome; its spending stays unknown.

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
        """Open an episode that another system plays (shadow mode), and return its id.

        All learners learn from it. What each would have spent is estimated by importance sampling; if the policy is not
        known, the costs of the path that was played are reported instead.

        Parameters
        ----------
        policy : Policy, optional
            The policy that plays the episode, if known.

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
        """Change the budgets, from the next episode that is told on. The learners keep what they learned.

        Parameters
        ----------
        budgets : mapping or array_like
            The budgets to change, by name and in their own units; or all of them (I,), in the units of the learner.

        Raises
        ------
        InvalidInputError
            If a budget is unknown or too large, or a learner works only with the budgets that it was made for.
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
            The policy to play meanwhile; needed if there are rules.

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
        """Add a challenger: it learns from the same episodes, and `status.standings` shows what it would have spent.

        A challenger that cannot learn from an episode has failed. It stops learning; the others continue.

        Parameters
        ----------
        name : str
            A new name of at most 100 characters, without "/".
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
            raise InvalidInputError(f"name is {shown(name)}, which another learner has; choose another one")
        if state.learner.learns_from == "own":
            raise InvalidInputError(f"{state.champion} cannot learn from episodes that a challenger plays")
        state.refuse_unfit(_check_learner(learner))
        checkpoint = snapshots.checkpoint_of(learner)
        self._load(checkpoint)  # refuses a learner that could not be restored
        self._apply_and_commit(self._event("challenge", name.encode() + b"\0" + checkpoint, author))

    @exclusive
    def promote(self, name: str, *, author: str | None = None) -> None:
        """Make a challenger the champion, whose policy `ask` returns. The former champion becomes a challenger.

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

    retract, amend, undo = rebuilding.retract, rebuilding.amend, rebuilding.undo

    @reading
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
        """Write as many bytes as an episode may take, and delete them.

        Raises
        ------
        StorageError
            If the directory cannot be written.
        """
        format = self._state.format
        self._store.database.check_writable(COMMIT_BYTES + 8 * format.space.n_tuples * (1 + format.n_constraints))
        self._store.check_writable()

    @reading
    def open_episodes(self, ids: Collection[str] | None = None) -> dict[str, OpenEpisode]:
        """Return the open episodes whose policy is known, by id, oldest first; only those of `ids`, if given."""
        found = {}
        for episode in self._open.values():
            if episode.policy != UNKNOWN and (ids is None or episode.id in ids):
                policy = Policy.unchecked(self.space, self._store.array(episode.policy))
                found[episode.id] = OpenEpisode(episode.id, policy)
        return found

    @reading
    def opened_at(self) -> dict[str, float]:
        """Return when each open episode was opened, in seconds since 1970, oldest first; 0 before format 7."""
        return {id: (episode.time or 0) / 1e6 for id, episode in self._open.items()}

    @reading
    def open_ids(self) -> list[str]:
        """Return the ids of all open episodes, oldest first."""
        return list(self._open)

    @property
    def database(self) -> Database:
        """Where the journal and other files of the learner are stored."""
        return self._store.database

    @reading
    def refresh(self) -> None:
        """Learn what other replicas committed, so that `status` and `policy` show it. Every other method does this."""

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
    @reading
    def facts(self) -> dict[str, Any]:
        """What the directory was created with: names of states and actions, units, the first learner."""
        return self._store.facts()

    @reading
    def fingerprint(self, name: str | None = None) -> bytes:
        """Return the bytes of a checkpoint of a learner, by default the champion.

        They are equal for learners that will continue alike.
        """
        name = self._state.champion if name is None else self._checked_name(name)
        return checkpoints.fingerprint(self._state.entrants[name].learner)

    def close(self) -> None:
        """Release the directory. Everything that was acknowledged is on disk already."""
        self._close()

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


def _check_learner(learner: LearnerBase) -> LearnerBase:
    return instance(learner, "learner", LearnerBase)  # type: ignore[type-abstract]
