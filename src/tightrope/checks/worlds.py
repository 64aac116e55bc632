"""The small worlds of the checks, and how learners play on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tightrope import core
from tightrope.learners import BanditEpisode, Episode, Learner, Maker
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace

#: The number of episodes of a check.
EPISODES = 12


class LearnerCheck(Protocol):
    """A check: raises an AssertionError if the learners of a maker break the contract."""

    __name__: str

    def __call__(self, make: Maker, /) -> None: ...


class Checks(list[LearnerCheck]):
    """The checks of a module in order; used as a decorator, which appends a check."""

    def __call__(self, check: LearnerCheck) -> LearnerCheck:
        self.append(check)
        return check

    def on_every_world(self, check: Callable[["World", Maker], None]) -> Callable[["World", Maker], None]:
        """Append a check once for each of `WORLDS`."""
        for name, make_world in WORLDS.items():

            def on_this_world(make: Maker, make_world: Callable[[], World] = make_world) -> None:
                check(make_world(), make)

            on_this_world.__name__ = f"{check.__name__}_{name}"
            self.append(on_this_world)
        return check


@dataclass(frozen=True)
class World:
    """A small problem: two losses in turn, constraints scaled by a random factor, budgets with some slack."""

    mdp: LayeredMDP
    scenarios: FloatArray  # (2, n_tuples)
    mean: FloatArray  # (I, n_tuples)
    budgets: FloatArray  # (I,)

    @property
    def space(self) -> LayeredSpace:
        return self.mdp.space

    @property
    def constraints(self) -> "World":
        """The world itself, since it has the `mean` of the constraints."""
        return self

    @property
    def losses(self) -> "World":
        return self

    def begin(self, rng: np.random.Generator) -> "World":
        return self

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[episode % 2]
        return f

    def watch(self, policy: Policy) -> None:
        return

    def play(self, policy: Policy, feedback: str, episode: int, rng: np.random.Generator) -> Any:
        """Return an episode under `policy` with this feedback, in new arrays."""
        uniforms = rng.random(2 * self.space.n_layers)
        path = core.sample_path(self.space.native, policy.probabilities, self.mdp.transitions, uniforms)
        states, actions, steps = path
        f, g = self.loss(episode).copy(), rng.uniform(0.5, 1.5, (len(self.mean), 1)) * self.mean
        if feedback == "bandit":
            return BanditEpisode(states, actions, f[steps], g[:, steps])
        return Episode(states, actions, f, g)


def world(space: LayeredSpace, n_constraints: int, zeros: float = 0.0, seed: int = 7) -> World:
    """Return a random world in which a share `zeros` of the transitions has probability 0."""
    rng = np.random.default_rng([seed, space.n_tuples, n_constraints])
    P = rng.exponential(size=space.n_tuples) * (rng.random(space.n_tuples) >= zeros)
    total = space.expand_to_tuples(space.sum_over_successors(P))
    P = np.divide(P, total, out=1 / space.expand_to_tuples(space.successors_per_pair), where=total > 0)
    mdp = LayeredMDP(space, P)
    mean = rng.uniform(0, 1, (n_constraints, space.n_tuples)) / (1.5 * max(1, n_constraints))
    budgets = 1.1 * mean @ mdp.occupancy(Policy.uniform(space))  # with some slack, even if every policy is the same
    return World(mdp, rng.uniform(-1, 1, (2, space.n_tuples)), mean, budgets)


def sparse_space() -> LayeredSpace:
    """Return a space with one to three actions per state, and one to three successors per pair."""
    tuples = [
        (0, 0, 1), (0, 0, 2), (0, 2, 3), (1, 1, 4), (2, 0, 4), (2, 0, 5), (2, 1, 5), (2, 2, 4), (3, 0, 4), (3, 0, 5),
        (3, 0, 6), (3, 2, 6), (4, 0, 7), (4, 2, 7), (5, 1, 7), (6, 0, 7), (6, 1, 7), (6, 2, 7),
    ]  # fmt: skip
    return LayeredSpace.from_tuples([1, 3, 3, 1], 3, tuples)


#: The worlds that every learner is checked on.
WORLDS: dict[str, Callable[[], World]] = {
    "a_dense_space_with_two_constraints": lambda: world(LayeredSpace.dense([1, 3, 2, 1], 2), 2),
    "a_dense_space_without_constraints": lambda: world(LayeredSpace.dense([1, 3, 2, 1], 2), 0),
    "a_sparse_space": lambda: world(sparse_space(), 1),
    "transitions_of_probability_zero": lambda: world(LayeredSpace.dense([1, 3, 3, 1], 2), 1, zeros=0.5),
    "one_action": lambda: world(LayeredSpace.dense([1, 3, 2, 1], 1), 1),
    "one_state_layers": lambda: world(LayeredSpace.dense([1, 1, 1, 1], 3), 1),
    "one_step": lambda: world(LayeredSpace.dense([1, 1], 4), 1),
}


def ordinary_world() -> World:
    """Return the world of most checks."""
    return world(sparse_space(), 2)


def new(make: Maker, at: World | None = None, *, episodes: int = EPISODES, seed: int = 0) -> tuple[World, Learner]:
    at = at or ordinary_world()
    return at, make(at, episodes=episodes, seed=seed)


Trace = list[tuple[FloatArray, FloatArray, int]]


def drive(
    at: World,
    learner: Learner,
    first: int = 1,
    last: int = EPISODES,
    between: Callable[[int], None] = lambda t: None,
    after: Callable[[Any], None] = lambda episode: None,
) -> Trace:
    """Play episodes first..last; return policy, multipliers and epoch before each, and after the last.

    Episode t depends only on the policy and on t, so that a run can continue from any episode.
    """
    trace = []
    for t in range(first, last + 1):
        between(t)
        trace.append(now(learner))
        episode = at.play(learner.policy, learner.feedback, t, np.random.default_rng([9, t]))
        learner.observe(episode)
        after(episode)
    return [*trace, now(learner)]


def now(learner: Learner) -> tuple[FloatArray, FloatArray, int]:
    """Return copies of policy and multipliers, and the epoch."""
    return learner.policy.probabilities.copy(), np.array(learner.multipliers), learner.epoch


def same(one: Trace, other: Trace, promise: str) -> None:
    """Raise an AssertionError with this promise unless two traces have the same bits."""
    for k, ((p, Q, epoch), (p_, Q_, epoch_)) in enumerate(zip(one, other, strict=True)):
        for what, x, y in (("policy", p, p_), ("multipliers", Q, Q_), ("epoch", epoch, epoch_)):
            assert np.array_equal(x, y), f"{promise}; its {what} differs after {k} episodes: {x} and {y}"


def arrays(episode: Any) -> dict[str, Any]:
    """Return the arrays of an episode by name."""
    return {name: getattr(episode, name) for name in episode.__slots__ if name != "policy"}
