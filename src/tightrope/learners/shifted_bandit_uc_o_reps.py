"""Shifted Bandit UC-O-REPS (Rosenberg & Mansour 2019b): shifted models keep importance weights bounded.

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ Σ_s' q_t(s,a,s'); q_1 as θ^1 of `ucpd`.
2. Estimate the losses: ℓ̂_t(s,a) = ℓ_t(s,a) / q_t(s,a) where the trajectory went, 0 elsewhere.
3. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and compute the confidence set of UC-O-REPS around the frequencies. Δ_α are the measures
   of its models shifted by α: (1−α) P(s'|s,a) + α/|S_{k(s)+1}|. Under these, every policy passes every state with
   probability at least α/|S_k|.
4. q_{t+1} = argmin over q in Δ_α of η <ℓ̂_t, q> + D(q, q_t).

The shift costs α L² of regret per episode and bounds the estimates: regret is of order T^(3/4).

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2; the loss of a step may depend on the state it leads
to, and ℓ̂_t(s,a) then estimates its mean; where only some successors are possible, the shift is towards these. The epoch
rule and unvisited pairs are treated as in UCPD (docs/explanation/errata.md).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import log
from tightrope.confidence import Box, ConfidenceSet, Counts, L1Ball, PaperRadius
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, POSITIVE_SHARE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.parts import NEVER, MirrorStep, even_measure, importance_weighted, policy_of_measure
from tightrope.learners.shared.counting import CountingLearner, MirrorState, stepped
from tightrope.space import FloatArray, LayeredSpace


@dataclass(frozen=True, kw_only=True)
class ShiftedRadius:
    """The paper's L1 ball with every model in it shifted by α towards the uniform one."""

    unshifted: PaperRadius
    shift: float  #: α

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> Box:
        ball, kept = self.unshifted(space, N, M), 1 - self.shift
        floor = space.expand_to_tuples(self.shift / space.successors_per_pair)
        radius = np.where(ball.radius < 2, kept * np.minimum(ball.radius, 2), np.inf)
        return Box(floor, np.ones(space.n_tuples), L1Ball(kept * ball.center + floor, radius))


class ShiftedBanditUCOREPS(CountingLearner[MirrorState]):
    """Shifted bandit UC-O-REPS: adversarial losses, bandit feedback, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    shift : α; by default sqrt(W|S|/L) (|A|/T)^(1/4), W the largest layer, or 1/2 if that is less. It balances the terms
        L|S| sqrt(|A|T) W/α and α L² T of the bound: regret of the published order, L^(3/2) |S| |A|^(1/4) T^(3/4).
    learning_rate : η; by default sqrt(α log(|S|²|A|/L²) / (W|A|T)), which balances the terms L log(|S|²|A|/L²)/η
        and η L|A|T W/α of the regret within Δ_α.
    level : δ, the probability that the model may leave its confidence set.
    radius_scale : multiplies the confidence radius; 1 is the published one.
    """

    name = "shifted-bandit-uc-o-reps"
    reference = (
        "Rosenberg, Mansour: Online stochastic shortest path with bandit feedback and unknown transition function "
        "(NeurIPS 2019)"
    )
    constants = "balanced by us"
    feedback = "bandit"
    learns_from = "own"  # the estimate divides by θ

    shift: float = parameter(POSITIVE_SHARE, default=PUBLISHED)
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        L, S, A, T = self.space.n_layers, self.space.n_states, self.space.n_actions, self.episodes
        W = max(self.space.layer_sizes)
        self.default_to(shift=min(0.5, np.sqrt(W * S / L) * np.sqrt(np.sqrt(A / max(1, T)))))
        self.default_to(learning_rate=np.sqrt(self.shift * log(S**2 * A / L**2) / (W * A * T)))
        unshifted = PaperRadius(episodes=T, level=self.level, scale=self.radius_scale)
        self.rule = ShiftedRadius(unshifted=unshifted, shift=self.shift)
        self._mirror_step = MirrorStep(self.space, self.rule)

    def initial(self) -> MirrorState:
        counts = Counts(self.space, self.ties)
        return MirrorState(counts=counts, theta=even_measure(self.space), solver=self._mirror_step.begin(counts))

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set Δ of the epoch."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: MirrorState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (lines 2 to 4)."""
        self._check_played(state, seen.path)
        cost = self.learning_rate * self.estimate(state.theta, seen.path, (seen.loss + 1) / 2)
        return stepped(self._mirror_step, state, seen.path, cost)

    def _check_played(self, state: MirrorState, path: NDArray[np.int64]) -> None:
        """Refuse actions with probability 0 under the policy, since losses are divided by the probability."""
        played = self.offered(state).policy.probabilities[self.space.pair_of_tuple[path]]
        if played.min() < NEVER:
            k = int(np.argmin(played))
            s, a, _ = self.space.tuples[path[k]]
            raise InvalidInputError(
                f"episode {state.observed + 1}: step {k} took action {a} at state {s}, to which the policy gives "
                f"probability {played[k]:.3g}; play `policy`, or use the learner uob-reps, which accepts other policies"
            )

    def estimate(self, theta: FloatArray, path: NDArray[np.int64], losses: FloatArray) -> FloatArray:
        """Return ℓ̂_t (n_tuples,) of line 2, from the losses (L,) of the path, in [0, 1]."""
        q = self.space.expand_to_tuples(self.space.sum_over_successors(theta))
        return importance_weighted(self.space, path, losses, q[path])
