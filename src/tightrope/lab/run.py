"""The protocol of an episode, and callbacks at its records.

For t = 1, 2, …: the adversary fixes f^t; the learner's policy is played once; the constraints g^t are drawn, or chosen
as f^t is; the learner observes the trajectory and f^t and g^t (with bandit feedback only along the trajectory); an
adaptive adversary observes the policy. Records hold exact expectations under the true model, never sampled returns.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import MANY, choice, file_path, function, having, instance, whole
from tightrope.errors import CallbackError, InvalidInputError
from tightrope.lab.history import VIOLATION, History, in_units, use_columns
from tightrope.lab.metrics import ALWAYS, COLUMNS, Account, Comparators, Moment
from tightrope.learners import LearnerBase, load, make_learner
from tightrope.learners.base import BanditEpisode, Episode, Learner
from tightrope.learners.episodes import refuse_beyond
from tightrope.learners.in_units import InUnits
from tightrope.model import Policy
from tightrope.problems import problem_or_named
from tightrope.problems.base import Problem
from tightrope.space import FloatArray
from tightrope.storage import checkpoints
from tightrope.streams import streams

#: How records are spaced, and at which of them the hindsight LP is solved.
Spacing = Literal["log", "linear"]
Regret = Literal["records", "last", "never"]


class Record(NamedTuple):
    """The argument of a callback: one record of a run.

    Examples
    --------
    >>> import tightrope as tr
    >>> seen = []
    >>> history = tr.run("media-streaming", "uniform", episodes=3, callback=seen.append)
    >>> seen[-1].episode, sorted(seen[-1].metrics)[:3]
    (3, ['epoch', 'hindsight', 'loss'])
    """

    run: str  #: which run it is: problem, learner and seed; in a study the name of its folder
    episode: int  #: how many were played
    episodes: int  #: how many there will be
    metrics: dict[str, float]  #: the columns of the history at this record, in the problem's own units


class Stop(NamedTuple):
    """The value that a callback returns to end the run.

    Parameters
    ----------
    reason : why; the history has it in `settings["stopped"]`.

    Examples
    --------
    >>> import tightrope as tr
    >>> def stop_early(record: tr.Record) -> tr.Stop | None:
    ...     return tr.Stop("enough") if record.episode >= 5 else None
    >>> tr.run("media-streaming", "uniform", episodes=10, callback=stop_early).settings["stopped"]
    'after 5 of 10 episodes: enough'
    """

    reason: str = "no reason was given"


#: Called at each record. A `Stop` ends the run; any other return value is ignored.
Callback = Callable[[Record], object]


def ask(callback: Callback, record: Record) -> Stop | None:
    """Call the callback; return its `Stop`, or None. If it raises, raise a CallbackError with its name."""
    try:
        answer = callback(record)
    except CallbackError:  # from a callback that forwards records
        raise
    except Exception as error:
        raise CallbackError(
            f"the callback {name_of(callback)} raised {type(error).__name__} after episode {record.episode} of "
            f"{record.run}: {error}"
        ) from error
    if answer is Stop:
        return Stop()
    return Stop(str(answer.reason)) if isinstance(answer, Stop) else None


def name_of(callback: Callback) -> str:
    """The name of a callback in an error."""
    if isinstance(callback, partial):
        return name_of(callback.func)
    return str(getattr(callback, "__qualname__", type(callback).__name__))


def spaced(episodes: int, records: int = 60, spacing: Spacing = "log") -> NDArray[np.int64]:
    """At most `records` episodes from 1 to the last, evenly spaced in their logarithm or linearly."""
    choice(spacing, "spacing", ("log", "linear"))
    space = np.geomspace if spacing == "log" else np.linspace
    return np.unique(np.round(space(episodes, 1, records)).astype(np.int64))


class Run:
    """A run that can be paused, saved and continued. It takes the arguments of `run`.

    `play` plays on, `step` plays one episode, and `history` holds the records so far. A run that is saved and loaded
    between two episodes continues with the same bits. The file holds the learner (a `LearnerBase`), the random streams,
    the adversary, the account and the records.

    Examples
    --------
    >>> import tightrope as tr
    >>> run = tr.Run("media-streaming", "uniform", episodes=20)
    >>> float(run.play(until=10)["episode"][-1])
    10.0
    >>> float(run.play()["episode"][-1])
    20.0
    """

    def __init__(
        self,
        problem: Problem | str,
        learner: str | Learner = "ucpd",
        *,
        episodes: int,
        seed: int = 0,
        records: int = 60,
        spacing: Spacing = "log",
        regret: Regret = "records",
    ) -> None:
        self.problem = problem = problem_or_named(problem)
        self.episodes, self.seed = whole(episodes, "episodes", 1), whole(seed, "seed", 0)
        self.records: list[int] = spaced(self.episodes, whole(records, "records", 1, MANY), spacing).tolist()
        self.regret = choice(regret, "regret", ("records", "last", "never"))
        self._environment, self._constraints, for_adversary, _ = streams(self.seed)
        space, budgets = problem.space, problem.budgets
        self._comparators = Comparators(problem) if regret != "never" else None
        self.learner: Learner = (
            make_learner(learner, problem, episodes=self.episodes, seed=self.seed)
            if isinstance(learner, str)
            else having(
                learner, "learner", "space", "budgets", "feedback", "epoch", "multipliers", "settings", "observe"
            )
        )
        if isinstance(self.learner, InUnits):
            raise InvalidInputError("a run is in the units of its learner; give it the one inside, learner.learner")
        if self.learner.space != space or self.learner.budgets.shape != budgets.shape:
            raise InvalidInputError(
                f"the learner was made for {self.learner.space!r} and {len(self.learner.budgets)} constraints; "
                f"the problem has {space!r} and {len(budgets)}"
            )
        self._adversary = problem.losses.begin(for_adversary)
        self._regulator = problem.begin_constraints(self._constraints)
        self._shapes = ((space.n_tuples,), (len(budgets), space.n_tuples), (space.n_pairs,))
        self.episode = 0  #: how many were played
        self.stopped = ""  #: why a callback ended it
        self.name = f"{problem.name}-{self.learner.settings.get('learner', 'learner')}-seed{self.seed}"
        self.account = Account(problem)
        self._more = tuple(ALWAYS) if problem.changing else ()
        self._columns = (*COLUMNS, *use_columns(problem), *use_columns(problem, VIOLATION), *self._more)
        self._table = np.full((len(self.records), len(self._columns)), np.nan)

    @property
    def done(self) -> bool:
        """Whether all episodes were played."""
        return self.episode == self.episodes

    def play(
        self,
        until: int | None = None,
        *,
        callback: Callback | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> History:
        """Play to episode `until` or the end, or until `callback` returns a `Stop`; return the history so far."""
        for given, name in ((callback, "callback"), (progress, "progress")):
            if given is not None:
                function(given, name)
        report_every = max(1, self.episodes // 500)
        last = self.episodes if until is None else until
        for episode in self.played(until, callback):
            if progress is not None and (episode % report_every == 0 or episode == last or self.stopped):
                progress(episode)
        return self.history

    def played(self, until: int | None = None, callback: Callback | None = None) -> Iterator[int]:
        """Play to episode `until` or the end, and yield the number of each episode: the loop of every run."""
        last = self.episodes if until is None else whole(until, "until", self.episode, self.episodes)
        self.stopped = ""
        while self.episode < last and not self.stopped:
            self.step()
            if callback is not None:
                self.tell(callback)
            yield self.episode

    def tell(self, callback: Callback) -> None:
        """If the last episode was recorded, call the callback, which may set `stopped`."""
        row = self._rows(self.episode) - 1
        if row < 0 or self.records[row] != self.episode:
            return
        now = History({name: column[-1:] for name, column in self.history.items()}, {})
        metrics = {name: column.item() for name, column in in_units(self.problem, now).items() if name != "episode"}
        try:
            answer = ask(callback, Record(self.name, self.episode, self.episodes, metrics))
        except CallbackError as error:
            error.run = self
            raise
        if answer is not None:
            self.stopped = f"after {self.episode} of {self.episodes} episodes: {answer.reason}"

    def step(self) -> None:
        """Play one episode, and record it if its turn has come."""
        t, player, problem, account = self.episode + 1, self.learner, self.problem, self.account
        observed = getattr(player, "observed", 0)
        if observed > self.episode:
            raise InvalidInputError(
                f"the learner has observed {observed} episodes, and this run has played {self.episode}: make a new "
                "learner, or continue the run in which it played (tr.Run: play, save, load)"
            )
        f = np.ascontiguousarray(self._adversary.loss(t), dtype=np.float64)
        g = np.ascontiguousarray(self._regulator.constraints(t), dtype=np.float64)
        policy = player.policy
        _check(t, player, f, g, policy, self._shapes)
        states, actions, steps = account.play(policy, f, g, self._environment.random(2 * problem.space.n_layers))
        row = self._rows(t - 1)
        logged = self.records[row] == t
        if logged:  # before it learns
            multipliers, epoch = player.multipliers, player.epoch

        if player.feedback == "full":
            player.observe(Episode(states, actions, f, g))
        else:
            player.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
        self._adversary.watch(policy)
        self._regulator.watch(policy)

        if logged:
            moment = Moment(t, account, multipliers, epoch)
            metrics = [np.nan if column.value is None else column.value(moment) for column in COLUMNS.values()]
            used, more = account.over + t * problem.budgets, [np.nan] * len(self._more)
            self._table[row] = (*metrics, *used, *np.maximum(account.over, 0.0), *more)
            if self.regret == "records" or t == self.episodes:
                self._compare(self._table[row])
        self.episode, self.stopped = t, ""

    def _compare(self, record: FloatArray) -> None:
        """Write into the record of the last episode the losses of the best fixed policies."""
        if self._comparators is None:
            return
        loss, best = self.account.loss, self._comparators.least(self.account, int(record[0]))
        record[self._columns.index("hindsight")], record[self._columns.index("regret")] = best, loss - best
        if self._more:
            always = self._comparators.least_always(self.account)
            record[-2:] = always, loss - always

    def _rows(self, episode: int) -> int:
        """The number of records up to an episode."""
        return bisect_right(self.records, episode)

    @property
    def history(self) -> History:
        """The history of the records so far."""
        problem, player = self.problem, self.learner
        settings = player.settings | {
            "problem": problem.name,
            "losses": repr(problem.losses),
            "constraints": repr(problem.constraints),
            "episodes": self.episodes,
            "planned_episodes": player.settings.get("episodes", self.episodes),  # what the learner was made for
            "seed": self.seed,
        }
        table = self._table[: self._rows(self.episode)].T.copy()
        if self.stopped:
            settings["stopped"] = self.stopped
            if self.regret == "last":  # computed here; the run may continue
                self._compare(table[:, -1])
        return History(dict(zip(self._columns, table, strict=True)), settings)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to one file; `tightrope.load` reads its learner from it."""
        learner = instance(self.learner, "learner", LearnerBase)  # type: ignore[type-abstract]
        checkpoints.save(learner, file_path(path, "path"), beside=self)

    @classmethod
    def load(cls, path: str | PathLike[str], problem: Problem | str, *classes: type, **how: Any) -> Self:
        """Read the run that was saved at `path`.

        Parameters
        ----------
        problem, **how : the arguments that the run was made with.
        classes : learners and confidence rules of your own that the file may name.
        """
        loaded = cls(problem, load(path, *classes), **how)
        checkpoints.restore(file_path(path, "path"), loaded)
        return loaded

    @property
    def made(self) -> str:
        """The arguments of the run, as text."""
        return f"{self.episodes} episodes of {self.problem.name} with seed {self.seed}, regret {self.regret}"

    def state(self) -> dict[str, Any]:
        """All that is needed to continue, except for the learner."""
        having(self._adversary, f"the play of the losses {self.problem.losses.name!r}", "state", "restore")
        if self.problem.changing:
            having(self._regulator, "the play of the constraints", "state", "restore")
        return {
            "made": self.made,
            "episode": self.episode,
            "loss": self.account.loss,
            "total_loss": self.account.total_loss,
            "over": self.account.over,
            "strong_violation": self.account.strong_violation,
            "table": self._table,
            "environment": self._environment,
            "adversary": self._adversary,  # with its own stream
        } | (
            {"regulator": self._regulator, "total_constraints": self.account.total_constraints}
            if self.problem.changing
            else {"constraints": self._constraints}
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the `state` of a run that was made the same way and has the same learner."""
        if state["made"] != self.made:
            raise InvalidInputError(f"it is a run of {state['made']}; this one is of {self.made}")
        episode, observed = state["episode"], getattr(self.learner, "observed", state["episode"])
        if episode != observed or not 0 <= episode <= self.episodes:
            raise InvalidInputError(f"a run at episode {episode}, its learner after {observed} of {self.episodes}")
        self.episode, self._table = episode, state["table"]
        for name in ("loss", "total_loss", "over", "strong_violation"):
            setattr(self.account, name, state[name])
        self._environment, self._adversary = state["environment"], state["adversary"]
        if self.problem.changing:
            self._regulator, self.account.total_constraints = state["regulator"], state["total_constraints"]
        else:
            self._constraints = state["constraints"]
            self._regulator = self.problem.begin_constraints(self._constraints)


def run(
    problem: Problem | str,
    learner: str | Learner = "ucpd",
    *,
    episodes: int,
    seed: int = 0,
    records: int = 60,
    spacing: Spacing = "log",
    regret: Regret = "records",
    callback: Callback | None = None,
    progress: Callable[[int], None] | None = None,
) -> History:
    """Run a learner on a problem and account for it exactly.

    Parameters
    ----------
    problem : a problem, or the name of one (`tr.make` makes it with other options).
    learner : a name, for that learner with its default parameters, or a learner that has not played yet.
    episodes : the number of episodes.
    seed : gives independent streams to environment, constraints, adversary and learner; same seed, same bits.
    records : how many episodes to record; the last is always among them.
    spacing : whether records are evenly spaced in the logarithm of the episode ("log") or in the episode ("linear").
    regret : solve the hindsight LP at all "records", only at the "last", or "never"; regret is NaN where it was not
        solved. Unless "never", budgets that no policy can meet are refused before the first episode.
    callback : called with a `Record` at each record; may return a `Stop` to end the run, and the history then has the
        reason in `settings["stopped"]`.
    progress : called from time to time with the number of episodes played.

    Returns
    -------
    History : columns over the recorded episodes.

    Raises
    ------
    InvalidInputError : if an argument is wrong.
    InfeasibleError : if no policy can meet the budgets.
    CallbackError : if the callback raises an error.

    Examples
    --------
    >>> import tightrope as tr
    >>> history = tr.run("media-streaming", "ucpd-practical", episodes=100, seed=0)
    >>> len(history["regret"]), float(history["episode"][-1])
    (39, 100.0)
    """
    played = Run(problem, learner, episodes=episodes, seed=seed, records=records, spacing=spacing, regret=regret)
    return played.play(callback=callback, progress=progress)


def _check(
    t: int, player: Learner, f: FloatArray, g: FloatArray, policy: Policy, expected: tuple[tuple[int, ...], ...]
) -> None:
    """Raise InvalidInputError for wrong shapes, and with bandit feedback for losses beyond Assumption 2."""
    shapes = (f.shape, g.shape, policy.probabilities.shape)
    if shapes != expected:
        names = ("the adversary's loss", "the draw of the constraints", "the learner's policy")
        for name, shape, right in zip(names, shapes, expected, strict=True):
            if shape != right:
                raise InvalidInputError(f"episode {t}: {name} has shape {shape}; expected {right}")
    if player.feedback == "bandit":
        refuse_beyond(player.space.tuples, f, g, t)
