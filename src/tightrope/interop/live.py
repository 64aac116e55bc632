"""A learner of ours on an environment whose model nobody knows: live, through `env.step`.

The learner is made for a layered space, so somebody must say which of its states an observation is: `state_of`.
`LiveSpace` lays numbered observations out over time, and ties what does not depend on the step. For t = 1, 2, …: the
environment is reset, actions are drawn from the learner's policy for L steps, and the learner is told
what it asks for:

- bandit feedback: what each step lost and cost. That is all an environment shows, and all such a learner needs.
- full information: the whole functions f^t and g^t, also where the episode did not go. No environment shows them;
  `tables` must, as the system's owner knows them when the episode is over (prices that were published, say).
  Without `tables` each tuple is charged the mean of what was met there so far, and 0 where nothing was. These are the
  true functions in the end if loss and cost depend on the move alone, or on it and independent noise; against an
  adversary they are not, and no theorem speaks of them.

Reported are realised sums, with all their noise. Exact regret and violation need the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import MOST, function, having, implements, number, real, room, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.learners.base import BanditEpisode, Episode, Learner
from tightrope.model import flat
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray, LayeredSpace


@runtime_checkable
class Environment(Protocol):
    """What is played: a Gymnasium environment, or anything with these two."""

    def reset(self) -> Any: ...
    def step(self, action: Any) -> Any: ...


class Step(NamedTuple):
    """A step of the environment, as it reported it."""

    observation: Any  # before it
    action: Any
    next_observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


#: function(observation, step) -> the state of layer `step`.
StateOf = Callable[[Any, int], int]

#: function(episode) -> the loss (n_tuples,) and the constraints (I, n_tuples) of that episode, asked for after it.
Tables = Callable[[int], tuple[ArrayLike, ArrayLike]]


class LiveSpace:
    """Numbered observations laid out over the steps of an episode: `space`, `ties`, and `state_of` for `play_live`.

    The same action at the same observation leads on by the same law at every step, and `ties` says so.

    Parameters
    ----------
    n_observations, n_actions, n_steps : observations and actions are numbers from 0.
    start : the observation after a reset; None where that is not always the same.
    moves : (n, 3) which (observation, action, next observation) can happen, if that is known; where an episode can be
        over, one that stays. The fewer there are, the sooner a learner knows their chances.

    >>> LiveSpace(n_observations=16, n_actions=4, n_steps=8, start=0)
    LiveSpace(8 steps, 114 states, 6272 tuples, 128 laws for 452 pairs)
    """

    def __init__(
        self,
        *,
        n_observations: int,
        n_actions: int,
        n_steps: int,
        start: int | None = None,
        moves: ArrayLike | None = None,
    ) -> None:
        n_observations, n_actions = whole(n_observations, "n_observations", 1), whole(n_actions, "n_actions", 1)
        sizes = (n_observations, n_actions, n_observations)
        room(n_actions * n_observations * (n_observations if moves is None else 1), "a space of these sizes")
        rows = np.indices(sizes).reshape(3, -1).T if moves is None else _checked_moves(moves, sizes)
        if start is None:  # one more observation, which is the reset: anything can come of it
            first = np.indices((1, n_actions, n_observations)).reshape(3, -1).T + np.array([n_observations, 0, 0])
            rows, start = np.concatenate([rows, first]), n_observations
        else:
            start = whole(start, "start", 0, n_observations - 1)
        _, pair, count = np.unique(rows[:, :2], axis=0, return_inverse=True, return_counts=True)
        even = 1 / count[pair.reshape(-1)]  # what the chances are nobody knows, and nobody asks
        layout = unroll(rows, even, n_steps=n_steps, start=start)
        self.space, self.ties = layout.space, layout.ties
        columns = zip(layout.state.tolist(), layout.step.tolist(), strict=True)
        self._number = {place: number for number, place in enumerate(columns)}

    def state_of(self, observation: Any, step: int) -> int:
        """The state of layer `step`, 1..L-1, that an observation is."""
        number = self._number.get((whole(observation, "an observation", 0), whole(step, "step", 0)))
        if number is None:
            raise InvalidInputError(f"observation {observation} cannot come after {step} steps, if these are the moves")
        return number

    def __repr__(self) -> str:
        space = self.space
        known = f", {self.ties}" if self.ties is not None else ""
        return f"LiveSpace({space.n_layers} steps, {space.n_states} states, {space.n_tuples} tuples{known})"


def _checked_moves(moves: ArrayLike, sizes: tuple[int, int, int]) -> NDArray[np.int64]:
    """Moves as rows of whole numbers, each below its size."""
    rows = wholes(moves, "moves", ("n", 3))
    for row in rows[((rows < 0) | (rows >= sizes)).any(axis=1)][:1].tolist():
        raise InvalidInputError(f"the move {row} is outside of {sizes[0]} observations and {sizes[1]} actions")
    return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveHistory:
    """What happened, episode by episode."""

    loss: FloatArray  # (T,) realised, in the units of `loss_of`
    cost: FloatArray  # (T, I) realised, in the units of `cost_of`
    budgets: FloatArray  # (I,) what an episode may cost on average
    settings: dict[str, float | str]  # what the learner ran with

    @property
    def violation(self) -> FloatArray:
        """(T,) how far the costs are over budget in sum, ‖[Σ (cost − budgets)]_+‖₂: good episodes pay for bad ones."""
        over = np.maximum(np.cumsum(self.cost - self.budgets, axis=0), 0.0)
        norms: FloatArray = np.sqrt((over * over).sum(axis=1))
        return norms

    def __repr__(self) -> str:
        return (
            f"LiveHistory({len(self.loss)} episodes: mean loss {self.loss.mean():.6g}, "
            f"mean cost {self.cost.mean(axis=0)} on budgets {self.budgets})"
        )


def minus_reward(step: Step) -> float:
    """The loss of a step, unless told otherwise."""
    return -step.reward


def info_cost(step: Step) -> ArrayLike:
    """The costs of a step, unless told otherwise: `info["cost"]`, a number or one for each budget."""
    if "cost" not in step.info:
        raise InvalidInputError("the environment reports no info['cost']; say what a step costs with cost_of")
    cost: ArrayLike = step.info["cost"]
    return cost


def play_live(
    env: Any,
    learner: Learner,
    *,
    episodes: int,
    state_of: StateOf,
    tables: Tables | None = None,
    loss_of: Callable[[Step], float] = minus_reward,
    cost_of: Callable[[Step], ArrayLike] = info_cost,
    action_of: Callable[[int], Any] = int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> LiveHistory:
    """Let `learner` play `episodes` episodes of `env`, a Gymnasium environment or anything with its reset and step.

    Parameters
    ----------
    state_of : which state of layer `step`, 1..L-1, an observation is; not asked where the layer has just one. When the
        environment ends an episode early, the last observation is asked about to the last step, loss and cost are 0,
        and actions go nowhere: have states that wait. An environment that would go on after step L is reset.
    tables : for a learner with full information, see above.
    loss_of, cost_of : what a step is charged, in the units that the learner was made for: |loss| ≤ 1, and the
        largest costs of the constraints sum to at most 1 (Assumption 2).
    action_of : the environment's action for an action of the space.
    seed : for the environment's first reset and for drawing actions.
    """
    episodes, seed = whole(episodes, "episodes", 1, MOST), whole(seed, "seed", 0)
    having(learner, "learner", "space", "budgets", "observe")
    implements(env, "env", Environment)
    for name, given in (("state_of", state_of), ("loss_of", loss_of), ("cost_of", cost_of), ("tables", tables)):
        if given is not None or name != "tables":
            function(given, name)
    space, n_constraints = learner.space, len(learner.budgets)
    rng = np.random.default_rng(seed)
    means = RunningMeans(space, n_constraints)
    loss, cost = np.zeros(episodes), np.zeros((episodes, n_constraints))
    for t in range(1, episodes + 1):
        try:
            states, actions, losses, costs = _play_episode(
                env, learner, rng, seed if t == 1 else None, state_of, loss_of, cost_of, action_of
            )
            path = space.path(states, actions)
        except InvalidInputError as error:
            raise InvalidInputError(f"episode {t}: {error}") from error
        if learner.feedback == "bandit":
            learner.observe(BanditEpisode(states, actions, losses, costs))
        elif tables is not None:
            learner.observe(Episode(states, actions, *tables(t)))
        else:
            means.add(path, losses, costs)
            learner.observe(Episode(states, actions, means.loss, means.constraints))
        loss[t - 1], cost[t - 1] = losses.sum(), costs.sum(axis=1)
        if progress is not None:
            progress(t)
    settings: dict[str, float | str] = {"environment": str(env), "seed": seed}
    return LiveHistory(loss=loss, cost=cost, budgets=learner.budgets.copy(), settings=settings | learner.settings)


class RunningMeans:
    """The mean of all that was met at each tuple so far; 0 where nothing was."""

    def __init__(self, space: LayeredSpace, n_constraints: int) -> None:
        self.visits = np.zeros(space.n_tuples)
        self.loss = np.zeros(space.n_tuples)
        self.constraints = np.zeros((n_constraints, space.n_tuples))

    def add(self, path: NDArray[np.int64], losses: FloatArray, costs: FloatArray) -> None:
        """The tuples of an episode, no two alike, with what was lost (L,) and used (I, L) at each."""
        self.visits[path] += 1
        # what was handed out before stays as it was
        self.loss, self.constraints = self.loss.copy(), self.constraints.copy()
        self.loss[path] += (losses - self.loss[path]) / self.visits[path]
        self.constraints[:, path] += (costs - self.constraints[:, path]) / self.visits[path]


def _play_episode(
    env: Any,
    learner: Learner,
    rng: np.random.Generator,
    seed: int | None,
    state_of: StateOf,
    loss_of: Callable[[Step], float],
    cost_of: Callable[[Step], ArrayLike],
    action_of: Callable[[int], Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:
    """States (L+1,), actions (L,), losses (L,) and costs (I, L) of one episode."""
    space, policy, L, n_constraints = learner.space, learner.policy, learner.space.n_layers, len(learner.budgets)
    states, actions = np.zeros(L + 1, dtype=np.int64), np.zeros(L, dtype=np.int64)
    losses, costs = np.zeros(L), np.zeros((n_constraints, L))
    observation, _ = env.reset() if seed is None else env.reset(seed=seed)
    over = False
    for k in range(L):
        actions[k] = policy.sample(states[k], rng)
        if not over:
            action = action_of(int(actions[k]))
            next_observation, reward, terminated, truncated, info = env.step(action)
            step = Step(observation, action, next_observation, float(reward), terminated, truncated, info)
            losses[k] = number(loss_of(step), "the loss of a step", -np.inf, np.inf)
            if n_constraints:
                cost: Any = cost_of(step)
                costs[:, k] = flat(cost if real(cost) is None else [cost], n_constraints, "the cost of a step")
            observation, over = next_observation, terminated or truncated
        states[k + 1] = _checked_state(space, state_of, observation, k + 1)
    return states, actions, losses, costs


def _checked_state(space: LayeredSpace, state_of: StateOf, observation: Any, step: int) -> int:
    states = space.states_of(step)
    if len(states) == 1:
        return states[0]
    state = whole(state_of(observation, step), "what state_of gave", 0)
    if state not in states:
        raise InvalidInputError(
            f"state_of gave {state} for observation {observation!r} at step {step}; "
            f"the states of layer {step} are {states.start}..{states.stop - 1}"
        )
    return state
