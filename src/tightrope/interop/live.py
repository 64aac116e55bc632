"""Learners on an environment with an unknown model, through `env.step`.

A learner needs a layered space, and `state_of`, which maps an observation to one of its states. `LiveSpace` makes both
from numbered observations, and ties the steps. In episode t = 1, 2, … the environment is reset, actions are drawn from
the learner's policy for L steps, and the learner observes

- with bandit feedback: the loss and the costs of each step, which the environment gives.
- with full information: the whole functions f^t and g^t, also off the path. An environment does not give them; `tables`
  does, if they are known after the episode (such as published prices). Without `tables`, the value of each tuple is its
  mean so far, and 0 without visits. These means converge if loss and cost depend on the move and independent noise
  only; against an adversary they do not, and the theorem does not apply.

The results are realised sums, with their noise. Exact regret and violation need the model.
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
    """An environment: a Gymnasium environment, or any object with these two methods."""

    def reset(self) -> Any: ...
    def step(self, action: Any) -> Any: ...


class Step(NamedTuple):
    """The report of the environment about one step."""

    observation: Any  # before the step
    action: Any
    next_observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


#: function(observation, step) -> the state of layer `step`.
StateOf = Callable[[Any, int], int]

#: function(episode) -> the loss (n_tuples,) and the constraints (I, n_tuples) of an episode that has ended.
Tables = Callable[[int], tuple[ArrayLike, ArrayLike]]


class LiveSpace:
    """Numbered observations over the steps of an episode, with `space`, `ties` and `state_of` for `play_live`.

    An action at an observation has the same transition distribution at every step, which `ties` records.

    Parameters
    ----------
    n_observations, n_actions, n_steps : sizes; observations and actions are numbers from 0.
    start : the observation after a reset; None if it is random.
    moves : (n, 3) the possible moves (observation, action, next observation), if they are known, including one that
        stays where an episode can end. With fewer moves, a learner estimates their probabilities faster.

    Examples
    --------
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
        if start is None:  # one more observation, the reset, from which every observation is possible
            first = np.indices((1, n_actions, n_observations)).reshape(3, -1).T + np.array([n_observations, 0, 0])
            rows, start = np.concatenate([rows, first]), n_observations
        else:
            start = whole(start, "start", 0, n_observations - 1)
        _, pair, count = np.unique(rows[:, :2], axis=0, return_inverse=True, return_counts=True)
        even = 1 / count[pair.reshape(-1)]  # the layout needs probabilities, but the space does not depend on them
        layout = unroll(rows, even, n_steps=n_steps, start=start)
        self.space, self.ties = layout.space, layout.ties
        columns = zip(layout.state.tolist(), layout.step.tolist(), strict=True)
        self._number = {place: number for number, place in enumerate(columns)}

    def state_of(self, observation: Any, step: int) -> int:
        """Return the state of an observation at `step`, 1..L-1; refuse one that the moves cannot reach."""
        number = self._number.get((whole(observation, "an observation", 0), whole(step, "step", 0)))
        if number is None:
            raise InvalidInputError(f"no moves lead to observation {observation} at step {step}; correct moves")
        return number

    def __repr__(self) -> str:
        space = self.space
        known = f", {self.ties}" if self.ties is not None else ""
        return f"LiveSpace({space.n_layers} steps, {space.n_states} states, {space.n_tuples} tuples{known})"


def _checked_moves(moves: ArrayLike, sizes: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return moves as rows of whole numbers, after checking that each is below its size."""
    rows = wholes(moves, "moves", ("n", 3))
    for row in rows[((rows < 0) | (rows >= sizes)).any(axis=1)][:1].tolist():
        raise InvalidInputError(f"the move {row} is outside of {sizes[0]} observations and {sizes[1]} actions")
    return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveHistory:
    """The realised losses and costs of each episode."""

    loss: FloatArray  # (T,) in the units of `loss_of`
    cost: FloatArray  # (T, I) in the units of `cost_of`
    budgets: FloatArray  # (I,) limits on the average cost of an episode
    settings: dict[str, float | str]  # the settings of the learner, with environment and seed

    @property
    def violation(self) -> FloatArray:
        """(T,) the violation so far, ‖[Σ (cost − budgets)]_+‖₂, in which episodes below budget offset others."""
        over = np.maximum(np.cumsum(self.cost - self.budgets, axis=0), 0.0)
        norms: FloatArray = np.sqrt((over * over).sum(axis=1))
        return norms

    def __repr__(self) -> str:
        return (
            f"LiveHistory({len(self.loss)} episodes: mean loss {self.loss.mean():.6g}, "
            f"mean cost {self.cost.mean(axis=0)} on budgets {self.budgets})"
        )


def minus_reward(step: Step) -> float:
    """Return the default loss of a step: minus its reward."""
    return -step.reward


def info_cost(step: Step) -> ArrayLike:
    """Return the default costs of a step: `info["cost"]`, a number or one for each budget."""
    if "cost" not in step.info:
        raise InvalidInputError("the environment reports no info['cost']; pass cost_of, a function of a step")
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
    """Play episodes of an environment with a learner, which observes each of them.

    Parameters
    ----------
    env : a Gymnasium environment, or any object with its `reset` and `step`.
    learner : a learner, in its state so far.
    episodes : the number of episodes.
    state_of : function(observation, step) -> the state of layer `step`, 1..L-1; not called for a layer with one state.
        After the environment ends an episode early, it gets the last observation until step L, loss and cost are 0, and
        actions have no effect: the space needs states that wait. After step L the environment is reset.
    tables : the functions f^t and g^t for a learner with full information, see above.
    loss_of, cost_of : the loss and the costs of a step in the learner's units: |loss| ≤ 1, and the largest costs of the
        constraints sum to at most 1 (Assumption 2).
    action_of : function(action of the space) -> action of the environment.
    seed : of the environment's first reset and of the drawn actions.
    progress : called with the number of episodes played, after each.

    Returns
    -------
    LiveHistory : realised losses and costs.

    Raises
    ------
    InvalidInputError : with the episode, if a state, a loss or a cost is invalid.
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
    """The mean loss and constraints at each tuple so far; 0 without visits."""

    def __init__(self, space: LayeredSpace, n_constraints: int) -> None:
        self.visits = np.zeros(space.n_tuples)
        self.loss = np.zeros(space.n_tuples)
        self.constraints = np.zeros((n_constraints, space.n_tuples))

    def add(self, path: NDArray[np.int64], losses: FloatArray, costs: FloatArray) -> None:
        """Add an episode: its distinct tuples (L,), and the losses (L,) and costs (I, L) there."""
        self.visits[path] += 1
        # arrays that were returned before do not change
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
    """Play one episode; return its states (L+1,), actions (L,), losses (L,) and costs (I, L)."""
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
    state = whole(state_of(observation, step), "the value of state_of", 0)
    if state not in states:
        raise InvalidInputError(
            f"state_of returned {state} for observation {observation!r} at step {step}; "
            f"the states of layer {step} are {states.start}..{states.stop - 1}"
        )
    return state
