"""Small problems to run learners on, and adversaries of a few lines."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tests.conftest import FloatArray, random_mdp
from tightrope import LayeredSpace, Policy, Problem
from tightrope.problems.constraints import Deterministic


class Turns:
    """Scenario 0, 1, …, K − 1, each for `period` episodes, and round again."""

    name = "turns"

    def __init__(self, scenarios: ArrayLike, period: int = 1) -> None:
        self.scenarios, self.period = np.array(scenarios, dtype=np.float64), period

    def begin(self, rng: np.random.Generator) -> "Turns":
        return self

    def __repr__(self) -> str:
        return f"Turns({len(self.scenarios)} scenarios, period={self.period})"

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[(episode - 1) // self.period % len(self.scenarios)]
        return f

    def watch(self, policy: Policy) -> None:
        return


class Coins:
    """One of two scenarios, by the toss of a coin."""

    name = "coins"

    def __init__(self, scenarios: ArrayLike, rng: np.random.Generator | None = None) -> None:
        self.scenarios, self.rng = np.array(scenarios, dtype=np.float64), rng

    def begin(self, rng: np.random.Generator) -> "Coins":
        return Coins(self.scenarios, rng)

    def loss(self, episode: int) -> FloatArray:
        rng = self.rng or np.random.default_rng(0)
        f: FloatArray = self.scenarios[int(rng.integers(2))]
        return f

    def watch(self, policy: Policy) -> None:
        return


class Chaser:
    """Charges 1 for the actions that the last policy preferred."""

    name = "chaser"

    def __init__(self, space: LayeredSpace) -> None:
        self.space, self.f = space, np.zeros(space.n_tuples)

    def begin(self, rng: np.random.Generator) -> "Chaser":
        return Chaser(self.space)

    def loss(self, episode: int) -> FloatArray:
        return self.f

    def watch(self, policy: Policy) -> None:
        self.f = self.space.expand_to_tuples((policy.probabilities > 0.5).astype(float))


def problem_with(
    n_constraints: int, *, seed: int = 4, space: LayeredSpace | None = None, period: int = 1, losses: Any = None
) -> Problem:
    """Random model, two random scenarios in turn, constraints whose budgets bind but can be met with some slack."""
    rng = np.random.default_rng(seed)
    space = space or LayeredSpace.dense([1, 3, 3, 1], 2)
    mdp = random_mdp(rng, space)
    mean = rng.uniform(0, 1, (n_constraints, space.n_tuples)) / max(1, n_constraints)
    return Problem(
        name="small",
        mdp=mdp,
        losses=losses or Turns(rng.uniform(-1, 1, (2, space.n_tuples)), period),
        constraints=Deterministic(mean),
        budgets=0.95 * mean @ mdp.occupancy(Policy.uniform(space)),
        constraint_names=tuple(f"use {i}" for i in range(n_constraints)),
    )
