"""PSRL: posterior sampling for reinforcement learning (Osband, Russo & Van Roy 2013), or Thompson sampling of models.

With losses ℓ = (f + 1)/2, and for each pair n visits, M(s') of them to s', and R the sum of its losses. Before an
episode:
1. Draw a model from the posterior: at every pair P(·|s,a) from Dirichlet(a + M), ℓ(s,a) from Beta(a + R, a + n − R).
2. Play the best policy for this model, by dynamic programming.

A rarely visited pair is drawn as good with the probability that it is good, which is the exploration. Regret is of
order √(H² S² A T) in expectation over the prior.

With resample="dynamic" a draw is kept, as in Ouyang, Gagrani, Nayyar & Jain (2017), until it was played for more
episodes than the draw before it, or some pair's visits have doubled.

Feedback: bandit. Needs to know: the space and random numbers of its own. Budgets are ignored. Made for losses
whose mean does not change.
Where we depart from the publication: it allows any prior; here it is uniform (a = 1), and a loss ℓ between 0 and 1
counts as ℓ of a loss of 1.
What the layered form changes: nothing for Osband's method, which draws once per episode. Ouyang's process is infinite,
and the rule above divides it into episodes; here the rule is applied after each episode and counts episodes rather than
steps, and visits have doubled in the sense of UCPD (n >= max(1, N)).
"""

from copy import deepcopy
from typing import Literal

import numpy as np

from tightrope import core
from tightrope.arguments import choice
from tightrope.confidence import Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import POSITIVE, parameter
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.model import Policy
from tightrope.planning.dynamic_programming import deterministic
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state

#: The least value of a draw: with a prior near 0, the draws for all successors of a pair could be 0.
LEAST = 1e-300


@state
class PSRLState(CountingState):
    """The state of PSRL between two episodes."""

    total_loss: FloatArray = numbers(least=-1e-3)  #: (n_pairs,) R
    draws: np.random.Generator = part()
    policy: Policy = part()
    played: int = numbers(least=0)  #: episodes with this draw
    played_before: int = numbers(least=0)  #: episodes with the draw before it


class PSRL(CountingLearner[PSRLState]):
    """Posterior sampling: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T; it has no effect.
    rng : the generator of the models.
    prior : a, the fictitious visits of every successor, and of the losses 0 and 1.
    resample : when a model is drawn: before every "episode", as Osband, or "dynamic", as Ouyang.
    """

    name = "psrl"
    reference = (
        "Osband, Russo, Van Roy: (More) efficient reinforcement learning via posterior sampling (NIPS 2013); "
        "Ouyang, Gagrani, Nayyar, Jain: Learning unknown Markov decision processes: a Thompson sampling approach "
        "(NIPS 2017)"
    )
    constants = "balanced by us"
    feedback = "bandit"
    plans = False
    needs = ("rng",)

    rng: np.random.Generator
    prior: float = parameter(POSITIVE, default=1.0)
    resample: Literal["episode", "dynamic"] = "episode"

    def configure(self) -> None:
        choice(self.resample, "resample", ("episode", "dynamic"))
        outcome = np.arange(self.space.n_tuples) if self.ties is None else self.ties.outcome
        self._outcome, self._first = outcome, np.unique(outcome, return_index=True)[1]  # one draw for all tied pairs

    def initial(self) -> PSRLState:
        counts, total_loss, draws = Counts(self.space, self.ties), np.zeros(self.space.n_pairs), deepcopy(self.rng)
        policy = self._plan(counts, total_loss, draws)
        return PSRLState(counts=counts, total_loss=total_loss, draws=draws, policy=policy, played=0, played_before=0)

    def offer(self, state: PSRLState) -> Offer:
        return Offer(state.policy, np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: PSRLState, seen: Seen) -> PSRLState:
        """Return the next state: count and, unless the draw is kept, lines 1 and 2 for the next episode."""
        total_loss = state.total_loss.copy()
        total_loss[self.space.pair_of_tuple[seen.path]] += (seen.loss + 1) / 2
        (counts, doubled), played, before = state.counts.after(seen.path), state.played + 1, state.played_before
        draws, policy = state.draws, state.policy
        if self.resample == "episode" or doubled or played > before:
            counts, draws, played, before = counts.next_epoch(), deepcopy(draws), 0, played
            policy = self._plan(counts, total_loss, draws)
        return PSRLState(
            observed=state.observed + 1, counts=counts, total_loss=total_loss, draws=draws, policy=policy,
            played=played, played_before=before,
        )  # fmt: skip

    def _plan(self, counts: Counts, total_loss: FloatArray, draws: np.random.Generator) -> Policy:
        """Draw a model and plan (lines 1 and 2)."""
        space, (_, M), n = self.space, counts.laws, counts.N
        weights = np.maximum(draws.standard_gamma(self.prior + M[self._first]), LEAST)[self._outcome]
        P = weights / space.expand_to_tuples(space.sum_over_successors(weights))
        R = np.clip(total_loss, 0, n)  # rounding may leave the interval
        loss = space.expand_to_tuples(draws.beta(self.prior + R, self.prior + n - R))
        _, best = core.best_actions(space.native, P, loss)
        return deterministic(space, best)
