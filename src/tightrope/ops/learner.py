"""A learner that loses nothing: what it acknowledged is on disk, and a crash at any instruction counts it once."""

from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from tightrope.arguments import file_path, function, instance, listed, whole
from tightrope.errors import ConflictError, StorageError
from tightrope.learners.base import Feedback, LearnerBase
from tightrope.model import Policy
from tightrope.ops.arrays import bytes_of, digest_of
from tightrope.ops.directory import Directory, Options, Progress, in_turn
from tightrope.ops.journal import Handed
from tightrope.ops.operations import Operations, checked
from tightrope.ops.state import UNKNOWN
from tightrope.ops.status import Status
from tightrope.space import LayeredSpace
from tightrope.storage import checkpoints


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode to be played: tell what came of it by its id, or give it up."""

    id: str  #: no other episode ever has it, whatever happens in between
    policy: Policy  #: what to play


class DurableLearner(Operations):
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
    progress : told how many events were learnt again, one after another, while the directory is opened; whatever it
        raises ends that, and nothing is lost.

    Calls from several threads wait for one another; `status` and `policy` never wait.

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
        directory: str | PathLike[str],
        learner: LearnerBase | None = None,
        *,
        problem: Any = None,
        classes: tuple[type, ...] = (),
        snapshot_every: int = 1000,
        keep_journal: int = 0,
        remember: int = 100_000,
        most_open: int = 1000,
        progress: Progress | None = None,
    ) -> None:
        path = file_path(directory, "directory")
        if progress is not None:
            function(progress, "progress")
        options = Options(
            whole(snapshot_every, "snapshot_every", 1),
            whole(keep_journal, "keep_journal", 0),
            whole(remember, "remember", 0),
            whole(most_open, "most_open", 1),
            tuple(instance(kind, "classes", type) for kind in listed(classes, "classes")),
            progress,
        )
        self._in = Directory(path, options, None if learner is None else checked(learner), problem)
        self.directory = self._in.path

    @in_turn
    def ask(self) -> OpenEpisode:
        """An episode to be played with the policy that comes with it; on disk before it is handed out."""
        self._in.refuse_more()
        policy = self._in.state.policy
        own = Policy.unchecked(policy.space, policy.probabilities.copy())  # to be changed as one likes
        return OpenEpisode(self._in.hand_out(policy).id, own)

    @in_turn
    def tell(
        self, id: str, states: ArrayLike, actions: ArrayLike, loss: ArrayLike, constraints: ArrayLike
    ) -> Literal["learned", "already"]:
        """Learn from an episode that was handed out, in the order in which these calls are answered.

        With full feedback `loss` is (n_tuples,) and `constraints` (I, n_tuples); with bandit feedback (L,) and (I, L),
        along the path. The same told twice is answered "already"; another story about it is refused.
        """
        handed = self._in.find(id)
        told = self._in.state.form.shaped(handed.number, states, actions, loss, constraints)
        event, told = self._in.event_of(handed, told)
        if handed.fate != "open":
            if handed.contents == event.contents:
                return "already"
            otherwise = "told otherwise" if handed.fate == "told" else "given up"
            raise ConflictError(f"episode {id} was {otherwise} before; nothing was changed")
        learner = self._in.state.learner
        if learner.learns_from != "any":
            _refuse_foreign(learner, handed)
        self._in.take_over(event, id, told)
        return "learned"

    @in_turn
    def give_up(self, id: str) -> Literal["given up", "already"]:
        """Nobody will tell of this episode; what it spent is not known."""
        handed = self._in.find(id)
        if handed.fate == "told":
            raise ConflictError(f"episode {id} was told before; nothing was changed")
        if handed.fate != "open":
            return "already"
        self._in.give_up(handed)
        return "given up"

    @in_turn
    def snapshot(self) -> None:
        """Write the state now, and forget what that makes needless."""
        if trouble := self._in.snapshot():
            raise StorageError(trouble)

    @in_turn
    def check_disk(self) -> None:
        """Write to the directory, and change nothing: a `StorageError` says why it cannot be written."""
        self._in.check_disk()

    @in_turn
    def open_episodes(self) -> dict[str, OpenEpisode]:
        """Those with a policy that were handed out and not told or given up, oldest first."""
        found = {}
        for handed in self._in.open.values():
            if handed.policy != UNKNOWN:
                policy = Policy.unchecked(self.space, self._in.journal.arrays.kept(handed.policy).copy())
                found[handed.id] = OpenEpisode(handed.id, policy)
        return found

    @in_turn
    def open_ids(self) -> list[str]:
        """Of all episodes that were handed out and not told or given up, oldest first."""
        return [handed.id for handed in self._in.open.values()]

    @property
    def status(self) -> Status:
        """What is to be seen, as of the last call that was answered; never waits."""
        return self._in.status

    @property
    def policy(self) -> Policy:
        """What `ask` hands out now; never waits."""
        return self._in.status.policy

    @property
    def space(self) -> LayeredSpace:
        """Of all its learners."""
        return self._in.state.form.space

    @property
    def feedback(self) -> Feedback:
        """What it is told: whole functions, or what was met on the way."""
        return self._in.state.form.feedback

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter that the champion runs with; never waits."""
        status = self.status
        [champion] = [one for one in status.entrants if one.name == status.champion]
        return dict(champion.settings)

    @property
    @in_turn
    def facts(self) -> dict[str, Any]:
        """What the directory was made with: names of states and actions, units, the first learner."""
        return self._in.journal.facts()

    @in_turn
    def fingerprint(self, name: str | None = None) -> bytes:
        """The bytes that a checkpoint of a learner (the champion) would have now: equal for those that go on alike."""
        name = self._in.state.champion if name is None else self._named(name)
        return checkpoints.fingerprint(self._in.state.entrants[name].learner)

    def close(self) -> None:
        """Let go of the directory; all that was acknowledged is on disk already."""
        self._in.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DurableLearner({str(self.directory)!r}, {self.status.champion}, told={self.status.told})"


def _refuse_foreign(learner: LearnerBase, handed: Handed) -> None:
    """Some learners must know which policy played; some learn from what theirs of now played, and nothing else."""
    if learner.learns_from == "told" and handed.policy == UNKNOWN:
        raise ConflictError(
            f"nobody knows which policy played episode {handed.id}, and {learner.name} learns only if it is told; "
            "give the episode up"
        )
    if learner.learns_from == "own" and handed.policy != digest_of(bytes_of(learner.policy.probabilities)):
        raise ConflictError(
            f"episode {handed.id} was played with a policy that {learner.name} has left since, and it learns "
            "from its own only; give the episode up, and have one open at a time"
        )
