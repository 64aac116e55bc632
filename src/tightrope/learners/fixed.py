"""Points of reference: fixed policies that learn nothing.

1. `uniform` plays every action with equal probability: what knowing nothing and never learning gives.
2. `safe-baseline` plays the policy that leaves all budgets the most slack: never over budget, at whatever loss.
3. `hindsight` plays the answer of the hindsight LP: what knowing everything beforehand gives, so regret 0 at the end.

Feedback: full information, which they do not look at. Needs to know: nothing; the safe policy; the best policy.
"""

from dataclasses import field

import numpy as np

from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.model import Policy
from tightrope.storage.state import State, state


@state
class Played(State):
    """The number of episodes, and nothing else."""


class FixedPolicy(LearnerBase[Played]):
    """One policy for ever: `fixed`, which a subclass sets in `configure`."""

    plans = False
    learns_from = "any"

    fixed: Policy = field(init=False)

    def initial(self) -> Played:
        return Played()

    def step(self, state: Played, seen: Seen) -> Played:
        return Played(observed=state.observed + 1)

    def offer(self, state: Played) -> Offer:
        return Offer(self.fixed, np.zeros(len(self.budgets)))


class Uniform(FixedPolicy):
    """Every action with equal probability, for ever: a point of reference."""

    name = "uniform"
    reference = "none"

    def configure(self) -> None:
        self.fixed = Policy.uniform(self.space)


class SafeBaseline(FixedPolicy):
    """The policy that leaves all budgets the most slack, for ever: a point of reference."""

    name = "safe-baseline"
    reference = "none"
    needs = ("safe_policy",)

    safe_policy: Policy

    def configure(self) -> None:
        self.fixed = self.safe_policy


class Hindsight(FixedPolicy):
    """The best fixed policy for the losses to come, as if they were known: the point of reference of regret."""

    name = "hindsight"
    reference = "none"
    needs = ("hindsight_policy",)

    hindsight_policy: Policy

    def configure(self) -> None:
        self.fixed = self.hindsight_policy
