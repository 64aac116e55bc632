"""UCPD that keeps its budgets at horizons people can afford: Algorithm 1 with other prices, steps and sets.

Episodes are played in blocks of one policy, of 1 episode at first and 6 later; after each comes a step m, with f the
mean of the losses of the block. With f, g_i and budgets c_i taken from the least of each layer, in shares of their
spans:
1. The sets are anytime balls on the declared successors (`rules`), with the counts of tied pairs pooled, renewed when a
   count has grown by a tenth. The model is in all of them, at all times, with probability 1 − ζ.
2. Charge what was played: e_i = ĝ_i(π) + z σ_i/√t − c_i is by how much the policy uses more than budget i under P̂, for
   the mean ḡ_i of all draws so far, and prudently: σ_i/√t is the standard error of the mean use of t paths, by the
   differences of successive ones. (Algorithm 1 charges the optimistic θ, which believes to be within budget while sets
   are wide.) Q_i ← Q_i + ρ_m e_i, held between 0 and the most of line 3, ρ_m = 3 F / (L √m).
3. Prices: w = argmin over w >= 0 of ½ wᵀ A w − w·(A Q + k e / η − b), at most B/η for what g̃_i differs by in a layer. A
   step of length η changes the uses by −η (b + A w) to first order (`core/played.hpp`), so −b/A is the price
   at which losses and budgets balance, k e / (η A) brings back a share k of the excess in one step, and Q collects what
   this picture gets wrong. For one budget, w = [Q + (k e / η − b) / A]_+.
4. θ ← argmin over θ in Δ of η <f + Σ_i w_i g̃_i, θ> + D(θ, (1 − λ_m) θ + λ_m even), λ_m = 1/(10 + m); even, which
   is θ^1 as well, is the measure of the uniform policy where every successor is as likely. g̃_i = r a_i + (1 − r) ḡ_i,
   a_i(s,a) what π uses more under P̂ from (s,a) on than from s on: with it another policy is charged what it uses more
   than π, by the counts. With ḡ_i alone θ would escape prices to dynamics in which nothing is used; with a_i alone it
   would not try what only seems to use much.
5. η = 1/√(F²/h² + S/κ²): F is the largest span of an f so far, S the sum of squares of the spans of f − (f before).
   Losses that do not change leave η at h/F; those that change all the time make it fall like 1/√m.

Nothing depends on the units of losses and constraints, or on the number of episodes: none needs to be planned. No
step tilts θ by more than e^(h + I B), which the solver takes; so no price is above B/η, which is B F/h at first and
grows as η falls, for what g̃_i differs by.

Feedback: full information. Needs to know: the space and the budgets.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.learners.base import Episode, sums_of
from tightrope.learners.parameters import carried
from tightrope.learners.shared.pricing import PricingLearner, View
from tightrope.learners.shared.rates import spans_after
from tightrope.space import FloatArray


class UCPDPractical(PricingLearner):
    """UCPD with one practical preset: budgets held with valid sets, no horizon, no units, ties where there are any.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    confidence, level, radius_scale, renewal, ties : as in `UCPD`, with other defaults.
    first_rate, change_rate : h and κ of the learning rate η.
    correction : k, the share of the excess that a step brings back.
    prudence : z, how many standard errors it aims below each budget; 0 aims at the budget, and misses it half the time.
    integral : the 3 of ρ_m.
    realism : r, how much of a price is for uses by the counts; the rest is for uses as an optimist sees them.
    largest_tilt : B.
    block : the most episodes that are played with one policy; 1 takes a step after each, at several times the cost.
    """

    name = "ucpd-practical"
    reference = "tightrope: after Qiu, Wei, Yang, Ye, Wang, with prices and steps of its own (this package)"
    constants = "declared departure"

    mean_constraints: FloatArray = carried()  #: (I, n_tuples) ḡ
    last_loss: FloatArray = carried()  #: (n_tuples,) f of the step before
    largest_span: float = carried()  #: F

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mean_constraints = np.zeros((len(self.budgets), self.space.n_tuples))
        self.last_loss = np.zeros(self.space.n_tuples)
        self.largest_span = 0.0

    def observe(self, episode: Episode) -> None:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        path, f, g = self._read(episode)
        counts = self._counted(path)
        mean = self.mean_constraints + (g - self.mean_constraints) / (self.observed + 1)
        loss, changes = self._gather(f, g[:, path])
        if loss is not None:
            F, S = spans_after(self.space, loss, self.last_loss, self.largest_span, self.changes, self.steps)  # line 5
            changes |= self._step_on(View(loss, loss, mean), F, S, changes["squares"], counts)
            changes |= {"last_loss": loss, "largest_span": F}
        self._learn(counts=counts, mean_constraints=mean, **changes)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {
            "mean_constraints": sums_of(1, least=-1),
            "last_loss": sums_of(1, least=-1),
            "losses": sums_of(self.waiting, least=-1),
            "largest_span": (0, 3),
            "changes": (0, 17 * self.steps),  # spans of differences are 4 at most, and a little
        }
