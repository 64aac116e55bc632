"""Points of reference: fixed policies that learn nothing.

1. `uniform` plays every action with equal probability: what knowing nothing and never learning gives.
2. `safe-baseline` plays the policy that leaves all budgets the most slack: never over budget, at whatever loss.
3. `hindsight` plays the answer of the hindsight LP: what knowing everything beforehand gives, so regret 0 at the end.

Feedback: full information, which they do not look at. Needs to know: nothing; the safe policy; the best policy.
"""

from tightrope.learners.base import Episode
from tightrope.learners.carrying import CarryingLearner
from tightrope.model import Policy


class FixedPolicy(CarryingLearner):
    """One policy for ever; a subclass sets it."""

    plans = False
    learns_from = "any"

    def observe(self, episode: Episode) -> None:
        """Check it, as any learner would, and go on."""
        self._read(episode)
        self._learn()


class Uniform(FixedPolicy):
    """Every action with equal probability, for ever: a point of reference."""

    name = "uniform"
    reference = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.policy = Policy.uniform(self.space)


class SafeBaseline(FixedPolicy):
    """The policy that leaves all budgets the most slack, for ever: a point of reference."""

    name = "safe-baseline"
    reference = "none"
    needs = ("safe_policy",)

    safe_policy: Policy

    def __post_init__(self) -> None:
        super().__post_init__()
        self.policy = self.safe_policy


class Hindsight(FixedPolicy):
    """The best fixed policy for the losses to come, as if they were known: the point of reference of regret."""

    name = "hindsight"
    reference = "none"
    needs = ("hindsight_policy",)

    hindsight_policy: Policy

    def __post_init__(self) -> None:
        super().__post_init__()
        self.policy = self.hindsight_policy
