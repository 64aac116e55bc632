"""ucpd-practical-0.2 with bandit feedback: estimates replace losses and constraints off the path.

`ucpd-bandit` replaces it: its budgets on rare events are exceeded. It goes in the next version.

Blocks, sets, prices and steps are lines 1 to 5 of `ucpd_practical_0_2`, with these in place of f, ḡ_i, F and S. In
episode t, with π the policy of θ, and losses f and constraints g_i observed at the pairs (s,a) of the path:
a. A prediction m(s,a) of the loss: the mean of the losses observed at (s,a); −1, the least possible loss, if there is
   none, or none in the later half of the episodes so far.
b. f̂ = m + Δ, with Δ(s,a) = (f(s,a) − m(s,a)) / (u(s,a) + γ_t) along the path and 0 elsewhere: u(s,a) is the largest
   probability of passing (s,a) with π under any model of the set (Comp-UOB), γ_t = √(L log(L|S||A|/ζ) / (t|S||A|))
   (implicit exploration). With m = −1 it is the estimate of UOB-REPS; if losses do not change, Δ becomes 0.
c. ḡ_i(s,a): the mean of the observed g_i at (s,a), or over all pairs if (s,a) was never visited. It is used to charge π
   (line 2). The step (line 4) subtracts ω (ḡ_i − g̲_i) from g̃_i, where g̲_i is below the true means of all pairs at
   all times with probability 1 − ζ (`core.lower_means`), and −1 before the first visit.
d. F = 2, the largest difference of losses, and S = Σ <θ, (a block's mean of Δ)²>, without products of different
   episodes, whose means are 0.

Ties pool the counts of moves, but not losses and constraints: every pair has its own means.

Feedback: bandit. Needs to know: the space and the budgets.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import whole
from tightrope.arithmetic import dot, log
from tightrope.confidence import Box, ConfidenceRule, Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, SHARE, parameter
from tightrope.learners.parts import (
    Dynamics,
    PolicyOfMeasure,
    block_after,
    block_length,
    block_loss,
    estimated,
    no_losses,
    published_exploration,
)
from tightrope.learners.shared.counting import CountingLearner
from tightrope.learners.shared.pricing import Prices, PriceStep, PricingState, View
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state

#: F: losses lie in [-1, 1].
SPAN = 2.0


@state
class BanditState02(PricingState):
    """The state of ucpd-bandit-0.2."""

    cost_sum: FloatArray = numbers(least=-1e-3)  #: (1 + I, n_pairs) of the loss, then of each constraint, as (x + 1)/2
    spread: FloatArray = numbers(least=0)  #: (I, n_pairs) Σ (x − x̂)², x = (g + 1)/2, x̂ the mean of ½ and those before
    last_visit: NDArray[np.int64] = numbers(least=0)  #: (n_pairs,) the episode of the last visit; 0 if there is none


class UCPDBandit02(CountingLearner[BanditState02]):
    """The bandit learner of 0.2, kept for one version: prices from integrals, bounds on the constraints' means.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : not needed; nothing depends on it.
    confidence : a rule that makes an interval for every successor, "kl-box" or "kl-l1-box", or one of your own.
    level : ζ, the probability that the model may ever leave its set, and that a mean may ever be below its bound.
    radius_scale : multiplies the radii of the sets and ḡ − g̲; the guarantees are for 1.
    optimism : ω; with 1 a step uses the bounds g̲, with 0 the means ḡ.
    renewal, ties, first_rate, change_rate, correction, prudence, integral, realism, largest_tilt, block : as in
        `UCPDPractical02`.
    """

    name = "ucpd-bandit-0.2"
    reference = (
        "tightrope: ucpd-practical-0.2 with the loss estimates of Jin, Jin, Luo, Sra, Yu (ICML 2020) and bounds on the "
        "constraints' means (this package)"
    )
    constants = "declared departure"

    learns_from = "told"

    plans = False
    ties_by_default = True
    feedback = "bandit"

    model: LayeredMDP | None = field(init=False, default=None)
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl-box"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    correction: float = parameter(POSITIVE, default=0.3)
    prudence: float = parameter(NOT_NEGATIVE, default=0.5)
    integral: float = parameter(POSITIVE, default=3.0)
    realism: float = parameter(SHARE, default=0.5)
    largest_tilt: float = parameter(POSITIVE, default=100.0)
    block: int = 6
    optimism: float = parameter(SHARE, default=0.1)

    def configure(self) -> None:
        self.block = whole(self.block, "block", 1)
        self.unreported = set() if self.confidence == "paper" else {"episodes"}
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._price_step = PriceStep(self, self._dynamics)
        self._policy_of = PolicyOfMeasure(self.space)

    def initial(self) -> BanditState02:
        space, n = self.space, len(self.budgets)
        counts, zeros = Counts(space, self.ties, self.renewal), np.zeros(n)
        self.set_of(counts)
        return BanditState02(
            counts=counts, theta=self._dynamics.first_measure(), solver=self._price_step.mirror_step.begin(counts),
            integrals=zeros, multipliers=zeros, losses=no_losses(space.n_tuples), waiting=0, last_use=zeros,
            squares=zeros, changes=0.0, steps=0, cost_sum=np.zeros((1 + n, space.n_pairs)),
            spread=np.zeros((n, space.n_pairs)), last_visit=np.zeros(space.n_pairs, dtype=np.int64),
        )  # fmt: skip

    def set_of(self, counts: Counts) -> Box:
        """Return the confidence set of these counts, an interval for every successor."""
        made = self._price_step.mirror_step.set_of(counts)
        if not isinstance(made, Box):
            raise InvalidInputError(
                f"confidence is {self.confidence!r}, which makes a {type(made).__name__}; {self.name} needs an "
                "interval for every successor: 'kl-box' or 'kl-l1-box'"
            )
        return made

    @property
    def confidence_set(self) -> Box:
        """The confidence set of the next step."""
        return self.set_of(self.state.counts)

    def offer(self, state: BanditState02) -> Offer:
        return Offer(self._policy_of(state.theta), state.multipliers, state.counts.epoch)

    def step(self, state: BanditState02, seen: Seen) -> BanditState02:
        """Return the next state: lines a to d, and a step at the end of a block."""
        path, f, g, played = seen
        space, pairs, t = self.space, self.space.pair_of_tuple[path], state.observed + 1
        believed = self._believed(state)
        gamma = published_exploration(space, self.level, t)
        delta = estimated(played, self.set_of(state.counts), path, f - believed[path], gamma)
        S = state.changes + dot(state.theta, delta * delta) / block_length(state, self.block) ** 2
        cost_sum, spread, last_visit = state.cost_sum.copy(), state.spread.copy(), state.last_visit.copy()
        cost_sum[:, pairs] += (np.vstack([f, g]) + 1) / 2
        counts = state.counts.counted(path)
        guess = (0.5 + state.cost_sum[1:, pairs]) / (1 + state.counts.totals()[0][pairs])
        spread[:, pairs] += ((g + 1) / 2 - guess) ** 2
        last_visit[pairs] = t
        estimate = believed + delta
        block, m, theta, solver = block_after(state, estimate, g, self.block), state.steps, state.theta, state.solver
        prices = Prices(state.integrals, state.multipliers, SPAN, S)
        if block.waiting == 0:
            mean, optimism = self._constraints(counts, cost_sum, spread)
            view = View(block_loss(state, estimate), believed, mean, SPAN, S, optimism)
            policy = self.offered(state).policy
            theta, solver, prices = self._price_step(state, policy, lambda: view, block.squares, counts)
            m += 1
        return BanditState02(
            observed=t, counts=counts, theta=theta, solver=solver, integrals=prices.integrals,
            multipliers=prices.multipliers, **block._asdict(), changes=S, steps=m, cost_sum=cost_sum, spread=spread,
            last_visit=last_visit,
        )  # fmt: skip

    def believed_losses(self) -> FloatArray:
        """Return m (n_tuples,) of line a."""
        return self._believed(self.state)

    def _believed(self, state: BanditState02) -> FloatArray:
        m = 2 * state.cost_sum[0] / np.maximum(1, state.counts.totals()[0]) - 1
        m[2 * state.last_visit <= state.observed] = -1
        believed: FloatArray = m[self.space.pair_of_tuple]
        return believed

    def _constraints(self, counts: Counts, cost_sum: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ḡ and ω (ḡ − g̲), (I, n_tuples) each (line c)."""
        visits, total = counts.totals()[0], cost_sum[1:]
        log_inverse = log(max(1, spread.size) / self.level)
        lower = core.lower_means(visits, total, spread, log_inverse, self.radius_scale)
        anywhere = total.sum(axis=1, keepdims=True) / visits.sum()
        mean = np.where(visits > 0, total / np.maximum(1, visits), anywhere)
        by_tuple = self.space.expand_to_tuples
        return by_tuple(2 * mean - 1), by_tuple(2 * self.optimism * (mean - lower))
