"""UOB-REPS: upper occupancy bound relative entropy policy search (Jin, Jin, Luo, Sra & Yu 2020, Algorithm 2).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ Σ_s' q_t(s,a,s'); q_1 as θ^1 of `ucpd`.
2. For each pair (s,a) of the trajectory, find its upper occupancy bound u_t(s,a): the largest probability of passing
   (s,a) with π_t under any model of the confidence set (Comp-UOB, `core/upper_occupancy.hpp`).
3. Estimate the losses: ℓ̂_t(s,a) = ℓ_t(s,a) / (u_t(s,a) + γ) where the trajectory went, 0 elsewhere. Both u_t in place
   of the unknown probability and γ (implicit exploration) make it optimistic.
4. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and compute the confidence set Δ, |P(s'|s,a) − P̂(s'|s,a)| <=
   2 sqrt(P̂(s'|s,a) log(T|S||A|/δ) / max(1, N(s,a)−1)) + 14 log(T|S||A|/δ) / (3 max(1, N(s,a)−1)).
5. q_{t+1} = argmin over q in Δ of η <ℓ̂_t, q> + D(q, q_t).

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2; the loss of a step may depend on the state it leads
to, and ℓ̂_t(s,a) then estimates its mean.
"""

import numpy as np
from numpy.typing import NDArray

from tightrope.confidence import BernsteinBox, Box, Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.parts import (
    MirrorStep,
    estimated,
    even_measure,
    policy_of_measure,
    published_exploration,
    upper_bounds,
)
from tightrope.learners.shared.counting import CountingLearner, MirrorState, stepped
from tightrope.model import Policy
from tightrope.space import FloatArray


class UOBREPS(CountingLearner[MirrorState]):
    """Upper occupancy bound REPS: adversarial losses, bandit feedback, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    learning_rate, exploration : η and γ; by default both are sqrt(L log(L|S||A|/δ) / (T|S||A|)), as in Theorem 3.
    level : δ; the model may leave its confidence set with probability 4δ.
    radius_scale : multiplies the confidence radius; 1 is the published one.
    """

    name = "uob-reps"
    reference = (
        "Jin, Jin, Luo, Sra, Yu: Learning adversarial Markov decision processes with bandit feedback and unknown "
        "transition (ICML 2020)"
    )
    constants = "published"
    feedback = "bandit"
    learns_from = "told"

    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)
    exploration: float = parameter(POSITIVE, default=PUBLISHED)
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        published = published_exploration(self.space, self.level, self.episodes)
        self.default_to(learning_rate=published, exploration=published)
        self.rule = BernsteinBox(episodes=self.episodes, level=self.level, scale=self.radius_scale)
        self._mirror_step = MirrorStep(self.space, self.rule)

    def initial(self) -> MirrorState:
        counts = Counts(self.space, self.ties)
        return MirrorState(counts=counts, theta=even_measure(self.space), solver=self._mirror_step.begin(counts))

    def offer(self, state: MirrorState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (lines 2 to 5)."""
        box = self.set_of(state.counts)
        estimate = estimated(seen.policy, box, seen.path, (seen.loss + 1) / 2, self.exploration)
        return stepped(self._mirror_step, state, seen.path, self.learning_rate * estimate)

    def set_of(self, counts: Counts) -> Box:
        """Return Δ of the epoch of these counts."""
        box = self._mirror_step.set_of(counts)
        assert isinstance(box, Box)
        return box

    @property
    def confidence_set(self) -> Box:
        """The confidence set Δ of the epoch."""
        return self.set_of(self.state.counts)

    def upper_bounds(self, path: NDArray[np.int64]) -> FloatArray:
        """Return u_t (L,) of line 2 for the pair of each step, given its tuple."""
        return upper_bounds(self.policy, self.confidence_set, path)

    def estimate(self, path: NDArray[np.int64], losses: FloatArray, policy: Policy | None = None) -> FloatArray:
        """Return ℓ̂_t (n_tuples,) of line 3, from the losses (L,) of the path, in [0, 1], which `policy` played."""
        return estimated(policy or self.policy, self.confidence_set, path, losses, self.exploration)
