"""Reference learners: fixed policies, without learning.

1. `uniform` plays every action with equal probability.
2. `safe-baseline` plays the policy with the most slack in all budgets, and ignores losses.
3. `hindsight` plays the solution of the hindsight LP, so its final regret is 0.

Feedback: full information, which they ignore. Needs to know: nothing, the safe policy, and the best policy,
respectively.
"""

from dataclasses import field

import numpy as np

from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.model import Policy
from tightrope.storage.state import State, state


@state
class Played(State):
    """The state of a fixed policy: the number of episodes."""


class FixedPolicy(LearnerBase[Played]):
    """The same policy in every episode: `fixed`, which a subclass sets in `configure`."""

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
    """Every action with equal probability, without learning: a reference."""

    name = "uniform"
    reference = "none"

    def configure(self) -> None:
        self.fixed = Policy.uniform(self.space)


class SafeBaseline(FixedPolicy):
    """The policy with the most slack to all budgets, without learning: a reference."""

    name = "safe-baseline"
    reference = "none"
    needs = ("safe_policy",)

    safe_policy: Policy

    def configure(self) -> None:
        self.fixed = self.safe_policy


class Hindsight(FixedPolicy):
    """The best fixed policy for the losses of the run, which it is given: the reference of regret."""

    name = "hindsight"
    reference = "none"
    needs = ("hindsight_policy",)

    hindsight_policy: Policy

    def configure(self) -> None:
        self.fixed = self.hindsight_policy
