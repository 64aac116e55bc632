"""FPOP: follow the perturbed optimistic policy (Neu, György & Szepesvári 2012, Algorithm 1).

Before the first episode:
1. Draw Y(s,a), independent and exponential with rate η, for every pair; it does not change.

In every episode t, with ℓ^τ the losses and R_{t-1} = Σ_{τ<t} ℓ^τ their sum:
2. Play π_t of (π_t, P_t) = argmin over the policies π and the models P in the confidence set of <R_{t-1} − Y, θ^{P,π}>:
   one pass of extended value iteration. Y is a head start for every pair, as in follow the perturbed leader.
3. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and compute the confidence set, an L1 ball around the frequencies of radius
   sqrt(2 |S_{k(s)+1}| log(T|S||A|/δ) / max(1, N(s,a))).

Feedback: full information. Needs to know: the space, the number of episodes T, and random numbers of its own. Budgets
are ignored. Where we depart from the publication: it has rewards r(s,a) in [0, 1], here losses ℓ = (f + 1)/2 depend on
tuples; the logarithm has T + 1 for T, as in UCPD, and the epoch rule and unvisited pairs are treated as there
(docs/explanation/errata.md).
"""

from copy import deepcopy

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import Counts, L1Ball, PaperRadius
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.planning.dynamic_programming import optimistic_policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import numbers, state


@state
class FPOPState(CountingState):
    """The state of FPOP between two episodes."""

    total_loss: FloatArray = numbers(least=-1e-3)  #: (n_tuples,) R
    perturbation: FloatArray = numbers(least=0)  #: (n_pairs,) Y


class FPOP(CountingLearner[FPOPState]):
    """Follow the perturbed optimistic policy: adversarial losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    rng : where the perturbation is drawn from, once.
    learning_rate : η; by default the smaller of 1/(|S||A|), up to which Theorem 1 holds, and
        sqrt( log2(8T/|S||A|) (1 + Σ_k log(|S_k||A|)/L) / ((e−1) T) ), which balances the two terms of its bound,
        |S||A| log2(8T/|S||A|) Σ_k (1 + log(|S_k||A|)) / η + η (e−1) |S||A| L T.
    level : δ, the probability that the model may leave its confidence set; by default the published 1/T.
    radius_scale : multiplies the confidence radius; 1 is the published one.
    """

    name = "fpop"
    reference = (
        "Neu, György, Szepesvári: The adversarial stochastic shortest path problem with unknown transition "
        "probabilities (AISTATS 2012)"
    )
    constants = "balanced by us"
    needs = ("rng",)

    rng: np.random.Generator
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)
    level: float = parameter(PROBABILITY, default=PUBLISHED)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.default_to(learning_rate=_balanced_rate(self.space, self.episodes), level=1 / max(2, self.episodes))
        self.rule = PaperRadius(episodes=self.episodes, level=self.level, scale=self.radius_scale)

    def initial(self) -> FPOPState:
        """Return the state before the first episode (line 1)."""
        perturbation = deepcopy(self.rng).exponential(1 / self.learning_rate, size=self.space.n_pairs)
        return FPOPState(
            counts=Counts(self.space, self.ties), total_loss=np.zeros(self.space.n_tuples), perturbation=perturbation
        )

    def step(self, state: FPOPState, seen: Seen) -> FPOPState:
        """Return the next state (line 3)."""
        return FPOPState(
            observed=state.observed + 1,
            counts=state.counts.counted(seen.path),
            total_loss=state.total_loss + (seen.loss + 1) / 2,
            perturbation=state.perturbation,
        )

    def offer(self, state: FPOPState) -> Offer:
        """Return the next policy (line 2)."""
        cost = state.total_loss - self.space.expand_to_tuples(state.perturbation)
        policy = optimistic_policy(self.space, self.set_of(state.counts), cost)
        return Offer(policy, np.zeros(len(self.budgets)), state.counts.epoch)

    @property
    def confidence_set(self) -> L1Ball:
        """The confidence set of the next episode."""
        return self.set_of(self.state.counts)

    def set_of(self, counts: Counts) -> L1Ball:
        """Return the confidence set of line 3."""
        return self.rule(self.space, *counts.laws)


def _balanced_rate(space: LayeredSpace, episodes: int) -> float:
    """Return the learning rate η of Theorem 1."""
    n_pairs = space.n_states * space.n_actions
    epochs = log(max(2.0, 8 * episodes / n_pairs)) / log(2)
    logs = log(np.array(space.layer_sizes[:-1]) * space.n_actions)
    return float(min(1 / n_pairs, np.sqrt(epochs * (1 + logs.mean()) / ((np.e - 1) * episodes))))
