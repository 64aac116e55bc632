"""ucpd-practical where losses and constraints are seen only along the path: estimates in place of what is not seen.

Blocks, sets, prices and steps are lines 1 to 5 of `ucpd_practical`, with these in place of f, ḡ_i, F and S. In episode
t, with π the policy of θ, and losses f and constraints g_i met at the pairs (s,a) of the path:
a. What is believed of the losses, m(s,a): the mean of those met at (s,a) so far; −1, the least that one can be, before
   the first, and again while no visit was in the later half of all episodes.
b. f̂ = m + Δ, with Δ(s,a) = (f(s,a) − m(s,a)) / (u(s,a) + γ_t) along the path and 0 elsewhere: u(s,a) is the largest
   probability of passing (s,a) with π under any model of the set (Comp-UOB), γ_t = √(L log(L|S||A|/ζ) / (t|S||A|))
   (implicit exploration). With m = −1 it is the estimate of UOB-REPS; where losses stand still, Δ is 0 once they are
   known.
c. ḡ_i(s,a): the mean of what was met there; before the first visit, of what was met anywhere. With it π is charged
   (line 2). The step (line 4) takes ω (ḡ_i − g̲_i) off g̃_i: g̲_i is below the true means of all pairs at all times with
   probability 1 − ζ (`core.lower_means`), and −1 before the first visit.
d. F = 2, the most that losses can differ by, and S = Σ <θ, (a block's mean of Δ)²>, but for the products of different
   episodes, whose means are 0.

Ties pool the counts of moves. What a step costs is not tied: every pair has means of its own.

Feedback: bandit. Needs to know: the space and the budgets.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arithmetic import dot, log
from tightrope.confidence import Box, ConfidenceRule, ConfidenceSet, Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import BanditEpisode
from tightrope.learners.parameters import SHARE, carried, parameter
from tightrope.learners.shared.averaging import Sums
from tightrope.learners.shared.estimating import EstimatingLearner
from tightrope.learners.shared.importance import estimated, published_exploration
from tightrope.learners.shared.pricing import PricingLearner, View
from tightrope.space import FloatArray

#: F: losses lie in [-1, 1].
SPAN = 2.0


class UCPDBandit(PricingLearner, EstimatingLearner):
    """UCPD with bandit feedback: adversarial losses, unknown dynamics, budgets; only what is met is seen.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : not needed; nothing depends on it.
    confidence : a rule that makes an interval for every successor, "kl-box" or "kl-l1-box", or one of your own.
    level : ζ, the probability that the model may ever leave its set, and that a mean may ever be below its bound.
    radius_scale : multiplies r of the sets, and what g̲ is below the mean; 1 is what holds.
    optimism : ω; with 1 a step takes the bounds themselves, with 0 the means.
    renewal, ties, first_rate, change_rate, correction, prudence, integral, realism, largest_tilt, block : as in
        `UCPDPractical`.
    """

    name = "ucpd-bandit"
    reference = (
        "tightrope: ucpd-practical with the loss estimates of Jin, Jin, Luo, Sra, Yu (ICML 2020) and bounds on the "
        "constraints' means (this package)"
    )
    constants = "declared departure"

    learns_from = "told"

    confidence: str | ConfidenceRule = "kl-box"
    optimism: float = parameter(SHARE, default=0.1)
    confidence_set: Box = field(init=False)
    spread: FloatArray = carried()  #: (I, n_pairs) Σ (x − x̂)², x = (g + 1)/2, x̂ the mean of ½ and those before
    last_visit: NDArray[np.int64] = carried()  #: (n_pairs,) its episode; 0 before the first

    def __post_init__(self) -> None:
        super().__post_init__()
        self.spread = np.zeros((len(self.budgets), self.space.n_pairs))
        self.last_visit = np.zeros(self.space.n_pairs, dtype=np.int64)

    def _set_of(self, counts: Counts) -> ConfidenceSet:
        made = super()._set_of(counts)
        if not isinstance(made, Box):
            raise InvalidInputError(
                f"confidence is {self.confidence!r}, which makes a {type(made).__name__}; {self.name} needs an "
                "interval for every successor: 'kl-box' or 'kl-l1-box'"
            )
        return made

    def observe(self, episode: BanditEpisode) -> None:
        """Lines a to d; at the end of a block a step."""
        path, f, g = self._read(episode)
        pairs, t = self.space.pair_of_tuple[path], self.observed + 1
        believed = self.believed_losses()
        gamma = published_exploration(self.space, self.level, t)
        delta = estimated(self._played(episode), self.confidence_set, path, f - believed[path], gamma)
        S = self.changes + dot(self.theta, delta * delta) / self._block_now() ** 2
        sums, spread, last_visit = self._sums_with(path, f, g), self.spread.copy(), self.last_visit.copy()
        guess = (0.5 + self.cost_sum[1:, pairs]) / (1 + self.counts.totals()[0][pairs])
        spread[:, pairs] += ((g + 1) / 2 - guess) ** 2
        last_visit[pairs] = t
        loss, changes = self._gather(believed + delta, g)
        changes["changes"] = S
        if loss is None:
            changes |= self._renewal(sums.counts)
        else:
            view = View(loss, believed, *self._constraints(sums, spread))
            changes |= self._step_on(view, SPAN, S, changes["squares"], sums.counts)
        self._learn(**sums._asdict(), spread=spread, last_visit=last_visit, **changes)

    def _renewal(self, counts: Counts) -> dict[str, Any]:
        """The set of an epoch that begins inside a block: the next loss is weighed under it, here and after a load."""
        if counts.epoch == self._renewed:
            return {}
        return {
            "confidence_set": self._set_of(counts),
            "_laws": self._evidence(counts),
            "_renewed": counts.epoch,
        }

    def believed_losses(self) -> FloatArray:
        """Line a: m (n_tuples,)."""
        m = 2 * self.cost_sum[0] / np.maximum(1, self.counts.totals()[0]) - 1
        m[2 * self.last_visit <= self.observed] = -1
        believed: FloatArray = m[self.space.pair_of_tuple]
        return believed

    def _constraints(self, sums: Sums, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Line c: ḡ and ω (ḡ − g̲), (I, n_tuples) each."""
        visits, total = sums.counts.totals()[0], sums.cost_sum[1:]
        log_inverse = log(max(1, spread.size) / self.level)
        lower = core.lower_means(visits, total, spread, log_inverse, self.radius_scale)
        anywhere = total.sum(axis=1, keepdims=True) / visits.sum()
        mean = np.where(visits > 0, total / np.maximum(1, visits), anywhere)
        by_tuple = self.space.expand_to_tuples
        return by_tuple(2 * mean - 1), by_tuple(2 * self.optimism * (mean - lower))

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        bounds, visits = super().bounds(), self.counts.totals()[0]
        most = 3 / published_exploration(self.space, self.level, max(1, self.observed))  # |Δ| is 2/γ, and a little
        return bounds | {
            "spread": (0, 2 * visits),
            "last_visit": (visits > 0, self.observed * (visits > 0)),
            "losses": (-self.waiting * (2 + most), self.waiting * (2 + most)),
            "changes": (0, self.space.n_layers * self.observed * most**2),
        }
