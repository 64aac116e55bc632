"""A problem that all unconstrained learners are made for, small enough to see them learn it."""

from collections.abc import Iterator

import numpy as np

from tests.conftest import random_mdp
from tests.twins import sample_path
from tightrope import Episode, History, LayeredMDP, LayeredSpace, Problem, make_learner, run
from tightrope.learners import LearnerBase
from tightrope.problems.constraints import make_constraints
from tightrope.problems.losses import make_losses


def gap_problem(losses: str) -> Problem:
    """The second action is better at every state, the state it leads to as well; the first costs 1.2 more in all."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [0.8, 0.2, 0.2, 0.8, 1, 1, 1, 1])
    mean = np.array([0.2, 0.2, 0, 0, 0.9, 0.6, 0.3, -0.8])
    noise = np.random.default_rng(0).uniform(-0.1, 0.1, (8, space.n_tuples))
    scenarios = mean + noise - noise.mean(axis=0)
    return Problem(
        name="gap",
        mdp=mdp,
        losses=make_losses(losses, scenarios, mdp),
        constraints=make_constraints("none", np.zeros((0, space.n_tuples))),
        budgets=np.zeros(0),
        constraint_names=(),
    )


def play_gap(name: str, losses: str, episodes: int, **options: float) -> History:
    problem = gap_problem(losses)
    learner = make_learner(name, problem, episodes=episodes, seed=1, **options)
    return run(problem, learner, episodes=episodes, seed=1, regret="last")


def regret_per_episode(name: str, losses: str, episodes: int, **options: float) -> float:
    return float(play_gap(name, losses, episodes, **options)["regret"][-1]) / episodes


def random_episodes(learner: LearnerBase, seed: int, number: int) -> Iterator[Episode]:
    """Episodes of a random model under the learner's policies, with random losses and no constraints."""
    rng, space = np.random.default_rng(seed), learner.space
    mdp = random_mdp(rng, space)
    for _ in range(number):
        uniforms = rng.random(2 * space.n_layers)
        states, actions, _ = sample_path(space, learner.policy.probabilities, mdp.transitions, uniforms)
        yield Episode(states, actions, rng.uniform(-1, 1, space.n_tuples), np.zeros((0, space.n_tuples)))
