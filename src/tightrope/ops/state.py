"""The state of a durable learner, as a value: `apply(state, event)` returns the state after an event.

A call and a replay of the journal run the same `apply` on the same numbers, so both end with the same bits.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import choice, number, whole
from tightrope.errors import ConflictError, InvalidInputError, StorageError
from tightrope.learners.base import BanditEpisode, Episode, Feedback, LearnerBase
from tightrope.learners.episodes import CheckedEpisode, checked_parts
from tightrope.model import Policy
from tightrope.ops.store import UNKNOWN, EpisodeRow, Event, bytes_of, digest_of, floats_of
from tightrope.space import FloatArray, LayeredSpace

#: Returns a stored array by its digest.
Arrays = Callable[[bytes], FloatArray]

#: Returns a learner from the bytes of a checkpoint.
Loader = Callable[[bytes], LearnerBase]

#: A limit of a stop-loss: larger sums do not occur.
LARGEST_SUM = 1e300

#: Importance weights are clipped here, so that the sum of their squares stays finite.
LARGEST_WEIGHT = 1e100


def totals(costs: FloatArray) -> FloatArray:
    """Sum costs (1 + I, L) over the steps, one after another, so that the bits do not depend on NumPy's order."""
    sums: FloatArray = np.add.accumulate(costs, axis=1)[:, -1]
    return sums


class Outcome(NamedTuple):
    """What is known of an episode after it was played."""

    path: NDArray[np.int64]  #: (L,) the tuple of each step
    states: NDArray[np.int64]  #: (L + 1,)
    actions: NDArray[np.int64]  #: (L,)
    loss: FloatArray  #: (n_tuples,), or (L,) along the path
    constraints: FloatArray  #: (I, n_tuples), or (I, L) along the path
    costs: FloatArray  #: (1 + I, L) the loss and then the constraints of each step


class EpisodeFormat(NamedTuple):
    """Which arrays describe the outcome of an episode, and how an event stores them."""

    space: LayeredSpace
    n_constraints: int
    feedback: Feedback

    def event(self, seq: int, episode: EpisodeRow, outcome: Sequence[ArrayLike]) -> tuple[Event, dict[bytes, bytes]]:
        """Return the event for the outcome of an episode, and the arrays that it refers to by digest.

        The outcome is states, actions, loss and constraints. Whole functions are often the same in many episodes and
        are stored apart, each once. Numbers along the path are stored in the event. Raises InvalidInputError if the
        outcome is impossible or violates Assumption 2.
        """
        path, f, g = checked_parts(self.space, self.n_constraints, episode.number, self.feedback, *outcome)
        body, stored = path.astype("<i8", copy=False).tobytes(), [bytes_of(f), bytes_of(g)]
        if self.feedback == "bandit":
            return Event(seq, "tell", body + b"".join(stored), episode.number, episode.policy), {}
        loss, constraints = map(digest_of, stored)
        event = Event(seq, "tell", body, episode.number, episode.policy, loss, constraints)
        return event, dict(zip((loss, constraints), stored, strict=True))

    def outcome(self, event: Event, arrays: Arrays) -> Outcome:
        """Return the outcome that `event` encoded."""
        L, full = self.space.n_layers, self.feedback == "full"
        if len(event.body) != 8 * L * (1 if full else 2 + self.n_constraints):
            raise InvalidInputError(f"event {event.seq} has {len(event.body)} bytes, which is no episode of this space")
        path = np.frombuffer(event.body, "<i8", L).astype(np.int64)
        states, actions = self.space.trajectory(path)  # refuses a path that is impossible
        if not full:
            costs = floats_of(event.body[path.nbytes :]).reshape(1 + self.n_constraints, L)
            return Outcome(path, states, actions, costs[0], costs[1:], costs)
        f, g = (arrays(digest) for digest in (event.loss, event.constraints) if digest is not None)
        g = g.reshape(self.n_constraints, len(f))
        return Outcome(path, states, actions, f, g, np.vstack([f[path], g[:, path]]))

    def episode(self, outcome: Outcome, feedback: Feedback, played: FloatArray | None) -> Episode | BanditEpisode:
        """Return the episode for a learner with this feedback, in arrays of its own.

        `played` are the probabilities of the policy that played it (n_pairs,), None if they are not known.
        """
        if feedback == "full":  # it was checked when it was told
            return CheckedEpisode.of(self.space, outcome.path, outcome.loss.copy(), outcome.constraints.copy())
        policy, costs = None if played is None else Policy.unchecked(self.space, played.copy()), outcome.costs.copy()
        return BanditEpisode(outcome.states, outcome.actions, costs[0], costs[1:], policy)


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """What was spent along the paths that were told, and what the budgets allowed."""

    told: int  #: episodes
    sums: (
        FloatArray  #: (2, 1 + I) sums of the costs and of what was allowed: the loss (nothing is allowed), then budgets
    )

    def __post_init__(self) -> None:
        self.sums.setflags(write=False)

    @classmethod
    def empty(cls, n_constraints: int) -> Self:
        """Return the account before the first episode."""
        return cls(0, np.zeros((2, 1 + n_constraints)))

    def after(self, costs: FloatArray, budgets: FloatArray) -> "Account":
        """Return the account after one more episode, with costs (1 + I, L) and budgets (I,)."""
        sums = self.sums.copy()
        sums[0] += totals(costs)
        sums[1, 1:] += budgets
        return Account(self.told + 1, sums)

    @property
    def loss(self) -> float:
        """The sum of the losses."""
        return float(self.sums[0, 0])

    @property
    def spent(self) -> FloatArray:
        """(I,) the sum of the constraints."""
        spent: FloatArray = self.sums[0, 1:]
        return spent

    @property
    def allowed(self) -> FloatArray:
        """(I,) the sum of the budgets of these episodes."""
        allowed: FloatArray = self.sums[1, 1:]
        return allowed


class StopLoss(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule for one budget: when the safe policy is played. Numbers are in the units of the budget.

    With spent(t) and allowed(t) summed over the t episodes that were told, a rule compares `most` with

        by="spent"       spent(t) − allowed(t)
        by="predicted"   spent(t) + (T − t) r − allowed(t) − (T − t) c,    T the horizon,

    where c is the budget and r the mean use of the last `window` episodes that the safe policy did not play: the
    overspending expected at the end of the horizon if the learner continues. Before `window` such episodes r is c.
    Above `most` the safe policy is played, until the number is `back` or less.

    Example
    -------
    >>> StopLoss(most=50.0).by
    'spent'
    """

    most: Annotated[float, Meta(description="the overspending, summed over all episodes, above which it stops")]
    by: Annotated[
        Literal["spent", "predicted"],
        Meta(description="compare what was spent, or what is predicted for the end of the horizon"),
    ] = "spent"
    back: Annotated[float, Meta(description="the overspending at which the learner plays again")] = 0.0
    horizon: Annotated[int, Meta(description="number of episodes; for predicted only")] = 0
    window: Annotated[int, Meta(description="number of episodes that a prediction looks back")] = 100

    def __post_init__(self) -> None:
        choice(self.by, "by", ("spent", "predicted"))
        for name in ("most", "back"):
            force_setattr(self, name, number(getattr(self, name), name, -LARGEST_SUM, LARGEST_SUM))
        if self.back > self.most:
            raise InvalidInputError(f"back is {self.back:g}, above most, {self.most:g}; it must be at most that")
        for name, least in (("horizon", int(self.by == "predicted")), ("window", 1)):
            force_setattr(self, name, whole(getattr(self, name), name, least))
        if self.by == "spent" and self.horizon:
            raise InvalidInputError(f'horizon is {self.horizon}, but nothing is predicted; say by="predicted"')

    def refuse_beyond(self, largest: float, budget: str) -> None:
        """Raise InvalidInputError if a number of the rule for `budget` is larger than `largest`."""
        for name in ("most", "back"):
            if abs(getattr(self, name)) > largest:
                raise InvalidInputError(f"{name} of {budget} is {getattr(self, name):g}; the limit is {largest:g}")


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """The stop-loss rules of all budgets, in the units of the learner, and which of them stop it now."""

    safe: FloatArray  #: (n_pairs,) probabilities of the safe policy; zeros if there are no rules
    most: FloatArray  #: (I,) `LARGEST_SUM` where there is no rule
    back: FloatArray  #: (I,)
    horizon: NDArray[np.int64]  #: (I,) 0 for by="spent"
    window: NDArray[np.int64]  #: (I,)
    rate: FloatArray  #: (I,) r, the running mean of the use
    rated: int  #: episodes in `rate`
    stopped: NDArray[np.bool_]  #: (I,)

    def __post_init__(self) -> None:
        self.safe.setflags(write=False)

    @classmethod
    def empty(cls, n_pairs: int, n_constraints: int) -> Self:
        """Return a guard without rules."""
        most, back = np.full((2, n_constraints), LARGEST_SUM)
        horizon, window = np.zeros(n_constraints, dtype=np.int64), np.ones(n_constraints, dtype=np.int64)
        rate, stopped = np.zeros(n_constraints), np.zeros(n_constraints, dtype=np.bool_)
        return cls(np.zeros(n_pairs), most, back, horizon, window, rate, 0, stopped)

    @property
    def has_rules(self) -> bool:
        """Whether there is any rule."""
        return bool((self.most < LARGEST_SUM).any())

    @property
    def stops(self) -> bool:
        """Whether the safe policy is played now."""
        return bool(self.stopped.any())

    def with_rules(
        self, safe: FloatArray, rules: Mapping[int, StopLoss], scales: FloatArray, account: Account, budgets: FloatArray
    ) -> "Guard":
        """Replace the rules, by the number of their budget.

        They hold at once. A budget that is stopped stays stopped until `back`, and the mean use is kept, unless there
        were no rules before.
        """
        fresh = Guard.empty(len(safe), len(self.most))
        for i, rule in rules.items():
            fresh.most[i], fresh.back[i] = rule.most / scales[i], rule.back / scales[i]
            fresh.horizon[i] = rule.horizon
            fresh.window[i] = rule.window
        if self.has_rules:
            fresh = replace(fresh, rate=self.rate, rated=self.rated, stopped=self.stopped)
        return replace(fresh, safe=safe).reassessed(account, budgets)

    def after(self, account: Account, use: FloatArray, budgets: FloatArray, *, by_safe: bool) -> "Guard":
        """Return the guard after one more episode, which used `use` (I,); `by_safe` if the safe policy played it."""
        if not self.has_rules:
            return self
        guard = self
        if not by_safe:
            rated = self.rated + 1
            rate = self.rate + (use - self.rate) / np.minimum(rated, self.window)
            guard = replace(self, rate=rate, rated=rated)
        return guard.reassessed(account, budgets)

    def reassessed(self, account: Account, budgets: FloatArray) -> "Guard":
        """Return the guard after the account, the budgets (I,) or the rules changed."""
        limits = np.where(self.stopped, self.back, self.most)
        return replace(self, stopped=self.overspending(account, budgets) > limits)

    def overspending(self, account: Account, budgets: FloatArray) -> FloatArray:
        """(I,) the numbers that the rules compare with their limits."""
        left = np.where(self.rated >= self.window, np.maximum(self.horizon - account.told, 0), 0)
        over: FloatArray = account.spent - account.allowed + left * (self.rate - budgets)
        return over


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """What a learner would have lost and spent, estimated from episodes that another policy may have played.

    If the policy μ that played is known, the estimate is by importance, step by step: with the costs x_k of step k,

        Σ_k ρ_k x_k,    ρ_k = Π_{h <= k} π(a_h|s_h) / μ(a_h|s_h).

    It is unbiased for the policy π of the learner, whatever the dynamics, if μ covers π: every action that π may take,
    μ may take. Otherwise nothing is known and the episode is counted as uncovered. If μ is not known, the costs of the
    played path are summed apart. Weights are clipped at `LARGEST_WEIGHT`; the standard error shows that they are large.
    """

    weighed: int  #: episodes estimated by importance
    met: int  #: episodes with an unknown policy
    uncovered: int  #: episodes whose policy does not cover π
    sums: FloatArray  #: (3, 1 + I) sums of the estimates, of their squares, and of the costs with an unknown policy

    def __post_init__(self) -> None:
        self.sums.setflags(write=False)

    @classmethod
    def empty(cls, n_constraints: int) -> Self:
        """Return the sums before the first episode."""
        return cls(0, 0, 0, np.zeros((3, 1 + n_constraints)))

    def after(
        self, costs: FloatArray, pairs: NDArray[np.int64], own: FloatArray, played: FloatArray | None
    ) -> "Shadow":
        """Return the sums after one more episode.

        costs (1 + I, L), the pairs (L,) of its steps, the probabilities π and μ of all pairs (n_pairs,).
        """
        if played is not None and ((own > 0) & ~(played > 0)).any():
            return replace(self, uncovered=self.uncovered + 1)
        sums = self.sums.copy()
        if played is None:
            sums[2] += costs.sum(axis=1)
            return Shadow(self.weighed, self.met + 1, self.uncovered, sums)
        estimate = totals(importance_weights(own[pairs], played[pairs]) * costs)
        sums[0] += estimate
        sums[1] += estimate * estimate
        return Shadow(self.weighed + 1, self.met, self.uncovered, sums)

    @property
    def by_importance(self) -> FloatArray:
        """(1 + I,) the sum of the estimates."""
        estimates: FloatArray = self.sums[0]
        return estimates

    @property
    def by_path(self) -> FloatArray:
        """(1 + I,) the sum of the costs of episodes with an unknown policy."""
        met: FloatArray = self.sums[2]
        return met

    def standard_error(self) -> FloatArray:
        """(1 + I,) of the sum of the estimates."""
        n = max(self.weighed, 1)
        variance: FloatArray = np.maximum(self.sums[1] - self.by_importance**2 / n, 0.0) * (n / max(n - 1, 1))
        return np.sqrt(variance)


def importance_weights(own: FloatArray, played: FloatArray) -> FloatArray:
    """Return ρ_k (L,) from π and μ (L,) at the pairs of a path; 0 after a step that π never takes."""
    possible = np.logical_and.accumulate((own > 0) & (played > 0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        products = np.multiply.accumulate(own / played)
    weights: FloatArray = np.where(possible, np.fmin(products, LARGEST_WEIGHT), 0.0)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class Entrant:
    """A learner of the directory, the champion or a challenger."""

    learner: LearnerBase
    shadow: Shadow
    failed: str = ""  #: why it could not learn from an episode, and learns no more; "" while it does

    @classmethod
    def new(cls, learner: LearnerBase) -> Self:
        """Return a learner that has seen no episodes of the directory."""
        return cls(learner, Shadow.empty(len(learner.budgets)))

    def after(self, outcome: Outcome, format: EpisodeFormat, played: FloatArray | None) -> "Entrant":
        """Return the learner after it learned from an episode."""
        pairs, own = format.space.pair_of_tuple[outcome.path], self.learner.policy.probabilities
        shadow = self.shadow.after(outcome.costs, pairs, own, played)
        if played is None and self.learner.learns_from == "told":
            raise InvalidInputError("the policy that played it is not known")
        learner = object.__new__(type(self.learner))
        learner.__dict__ |= self.learner.__dict__  # the same configuration; only the state is replaced
        learner.observe(format.episode(outcome, learner.feedback, played))
        return Entrant(learner, shadow, self.failed)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Everything that the journal determines. The policy of the champion is played; all learners learn.

    An episode that the champion cannot learn from is refused. A challenger that cannot learn from it has failed: it
    stays as it is, to be inspected and dismissed, and the others continue.
    """

    champion: str
    entrants: Mapping[str, Entrant]  #: by name, in the order in which they came
    format: EpisodeFormat
    account: Account
    guard: Guard

    @classmethod
    def new(cls, learner: LearnerBase) -> Self:
        """Return the state of a new directory."""
        n_constraints, space = len(learner.budgets), learner.space
        form = EpisodeFormat(space, n_constraints, learner.feedback)
        entrants = {learner.name: Entrant.new(learner)}
        return cls(
            learner.name, entrants, form, Account.empty(n_constraints), Guard.empty(space.n_pairs, n_constraints)
        )

    @property
    def learner(self) -> LearnerBase:
        """The champion."""
        return self.entrants[self.champion].learner

    @property
    def policy(self) -> Policy:
        """The policy to play now."""
        return Policy.unchecked(self.format.space, self.guard.safe) if self.guard.stops else self.learner.policy

    @property
    def learning(self) -> dict[str, Entrant]:
        """The learners that have not failed, the champion first."""
        others = {name: one for name, one in self.entrants.items() if not one.failed and name != self.champion}
        return {self.champion: self.entrants[self.champion]} | others

    def with_entrant(self, name: str, entrant: Entrant) -> "State":
        """Add or replace a learner."""
        return replace(self, entrants={**self.entrants, name: entrant})

    def reassessed(self) -> "State":
        """Reassess the stop-loss after the budgets or the champion changed."""
        return replace(self, guard=self.guard.reassessed(self.account, self.learner.budgets))

    def refuse_unfit(self, learner: LearnerBase) -> None:
        """Raise InvalidInputError for a learner that cannot learn from the episodes that are told here."""
        if learner.space != self.format.space or len(learner.budgets) != self.format.n_constraints:
            raise InvalidInputError(f"{learner.name} has another space or other budgets than {self.champion}")
        if learner.feedback == "full" and self.format.feedback == "bandit":
            raise InvalidInputError(f"{learner.name} needs full feedback, but only paths are told here")
        if learner.learns_from == "own":
            raise InvalidInputError(f"{learner.name} learns from its own policy only, but others are played here")


def apply(state: State, event: Event, arrays: Arrays, load: Loader) -> State:
    """Return the state after an event.

    Parameters
    ----------
    state : before the event; not changed.
    event : of the journal, or about to be appended.
    arrays : returns the arrays that the event refers to.
    load : returns a learner from the bytes of a checkpoint.
    """
    match event.kind:
        case "tell":
            return _tell(state, event, arrays)
        case "budgets":
            budgets = floats_of(event.body)
            for name, one in state.learning.items():
                state = state.with_entrant(name, replace(one, learner=one.learner.with_budgets(budgets)))
            return state.reassessed()
        case "challenge":
            called, _, checkpoint = event.body.partition(b"\0")
            learner = load(checkpoint)
            state.refuse_unfit(learner)
            return state.with_entrant(called.decode(), Entrant.new(learner))
        case "promote":
            return replace(state, champion=event.body.decode()).reassessed()
        case "failed":
            failed, _, reason = event.body.decode().partition("\0")
            return state.with_entrant(failed, replace(state.entrants[failed], failed=reason))
        case "dismiss":
            dismissed = event.body.decode()
            return replace(state, entrants={name: one for name, one in state.entrants.items() if name != dismissed})
        case "stop-loss":
            return _stop_loss(state, json.loads(event.body))
    raise StorageError(f"event {event.seq} has the kind {event.kind!r}, which this version does not know")


def refuse_foreign(learner: LearnerBase, policy: bytes | None, episode: str) -> None:
    """Raise ConflictError for an episode that was played with a policy (its digest) that the learner cannot use."""
    if learner.learns_from == "told" and policy == UNKNOWN:
        raise ConflictError(
            f"the policy that played episode {episode} is not known, and {learner.name} cannot learn without it; give "
            "the episode up"
        )
    if learner.learns_from == "own" and policy != digest_of(bytes_of(learner.policy.probabilities)):
        raise ConflictError(
            f"episode {episode} was played with an earlier policy, and {learner.name} learns only from its current "
            "one; give the episode up, and have one open at a time"
        )


def _tell(state: State, event: Event, arrays: Arrays) -> State:
    form, budgets = state.format, state.learner.budgets
    outcome = form.outcome(event, arrays)
    played = arrays(event.policy) if event.policy else None
    entrants = dict(state.entrants)
    for name, entrant in state.learning.items():
        try:
            entrants[name] = entrant.after(outcome, form, played)
        except Exception as error:
            if name == state.champion or isinstance(error, MemoryError):
                raise
            entrants[name] = replace(entrant, failed=f"it could not learn from episode {event.episode}: {error}")
    account = state.account.after(outcome.costs, budgets)
    guard = state.guard
    if guard.has_rules:
        by_safe = event.policy == digest_of(bytes_of(guard.safe))
        guard = guard.after(account, totals(outcome.costs)[1:], budgets, by_safe=by_safe)
    return replace(state, entrants=entrants, account=account, guard=guard)


def _stop_loss(state: State, told: dict[str, Any]) -> State:
    rules = {int(i): StopLoss(**rule) for i, rule in told["rules"].items()}
    safe, scales = np.array(told["safe"]), np.array(told["scales"])
    guard = state.guard.with_rules(safe, rules, scales, state.account, state.learner.budgets)
    return replace(state, guard=guard)
