"""Points of reference: fixed policies that learn nothing.

1. `uniform` plays every action with equal probability: what knowing nothing and never learning gives.
2. `safe-baseline` plays the policy that leaves all budgets the most slack: never over budget, at whatever loss.
3. `hindsight` plays the answer of the hindsight LP: what knowing everything beforehand gives, so regret 0 at the end.

Feedback: full information, which they do not look at. Needs to know: nothing; the safe policy; the best policy.
"""

from numpy.typing import ArrayLike

from tightrope.learners.base import Episode, LearnerBase
from tightrope.model import Policy
from tightrope.space import LayeredSpace


class FixedPolicy(LearnerBase):
    """One policy for ever."""

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, policy: Policy) -> None:
        super().__init__(space, budgets, episodes=episodes)
        self.policy = policy

    def observe(self, episode: Episode) -> None:
        """Check it, as any learner would, and go on."""
        self._full(episode)
        self.observed += 1

    def _restored(self) -> None:
        """Nothing follows from how many episodes went by."""


class Uniform(FixedPolicy):
    """Every action with equal probability, for ever: a point of reference."""

    name = "uniform"
    reference = "none"

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int) -> None:
        super().__init__(space, budgets, episodes=episodes, policy=Policy.uniform(space))


class SafeBaseline(FixedPolicy):
    """The policy that leaves all budgets the most slack, for ever: a point of reference."""

    name = "safe-baseline"
    reference = "none"
    needs = ("safe_policy",)

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, safe_policy: Policy) -> None:
        super().__init__(space, budgets, episodes=episodes, policy=safe_policy)


class Hindsight(FixedPolicy):
    """The best fixed policy for the losses to come, as if they were known: the point of reference of regret."""

    name = "hindsight"
    reference = "none"
    needs = ("hindsight_policy",)

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, hindsight_policy: Policy) -> None:
        super().__init__(space, budgets, episodes=episodes, policy=hindsight_policy)
