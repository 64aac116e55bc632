"""UCPD that keeps its budgets at horizons people can afford: Algorithm 1 with other prices, steps and sets.

Episodes are played in blocks of one policy, of 1 episode at first and 6 later; after each comes a step m, with f the
mean of the losses of the block. With f, g_i and budgets c_i taken from the least of each layer, in shares of their
spans:
1. The sets are anytime balls on the declared successors (`rules`), with the counts of tied pairs pooled, renewed when a
   count has grown by a tenth. The model is in all of them, at all times, with probability 1 − ζ.
2. Charge what was played: e_i = ĝ_i(π) + z σ_i/√t − c_i is by how much the policy uses more than budget i under P̂, for
   the mean ḡ_i of all draws so far, and prudently: σ_i/√t is the standard error of the mean use of t paths, by the
   differences of successive ones. (Algorithm 1 charges the optimistic θ, which believes to be within budget while sets
   are wide.) Q_i ← Q_i + ρ_m e_i, held between 0 and B/η, ρ_m = 3 F / (L √m).
3. Prices: w = argmin over w >= 0 of ½ wᵀ A w − w·(A Q + k e / η − b), B/η at most. A step of length η changes the uses
   by −η (b + A w) to first order (`kernels.played.responses`), so −b/A is the price at which losses and budgets
   balance, k e / (η A) brings back a share k of the excess in one step, and Q collects what this picture gets wrong.
   For one budget, w = [Q + (k e / η − b) / A]_+.
4. θ ← argmin over θ in Δ of η <f + Σ_i w_i ḡ_i, θ> + D(θ, (1 − λ_m) θ + λ_m even), λ_m = 1/(10 + m); even, which
   is θ^1 as well, is the measure of the uniform policy where every successor is as likely.
5. η = 1/√(F²/h² + S/κ²): F is the largest span of an f so far, S the sum of squares of the spans of f − (f before).
   Losses that do not change leave η at h/F; those that change all the time make it fall like 1/√m.

Nothing depends on the units of losses and constraints, or on the number of episodes: none needs to be planned. No
unit of use is priced above B/η, which is B F/h at first and grows as η falls; no step tilts θ by more than e^(h + I B),
which the solver takes.

Feedback: full information. Needs to know: the space and the budgets.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import whole
from tightrope.confidence import ConfidenceRule, Counts
from tightrope.learners.base import Episode, sums_of
from tightrope.learners.kernels.played import SMALLEST, assess, from_least, in_spans, least_prices
from tightrope.learners.kernels.primal_dual import mix_pairs, weigh
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, carried, parameter
from tightrope.learners.shared.mirror import ConfidentLearner, Laws
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray

#: After so many episodes blocks may be longer by one.
BLOCK_GROWTH = 250


class UCPDPractical(ConfidentLearner):
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
    largest_tilt : B.
    block : the most episodes that are played with one policy; 1 takes a step after each, at several times the cost.
    """

    name = "ucpd-practical"
    reference = "tightrope: after Qiu, Wei, Yang, Ye, Wang, with prices and steps of its own (this package)"
    ties_by_default = True
    plans = False
    tolerance = 1e-6

    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    correction: float = parameter(POSITIVE, default=0.3)
    prudence: float = parameter(NOT_NEGATIVE, default=0.5)
    integral: float = parameter(POSITIVE, default=3.0)
    largest_tilt: float = parameter(POSITIVE, default=50.0)
    block: int = 6

    integrals: FloatArray = carried()  #: (I,) Q, per span of the constraint
    multipliers: FloatArray = carried()  #: (I,) the prices, per unit of the constraint
    mean_constraints: FloatArray = carried()  #: (I, n_tuples) ḡ
    losses: FloatArray = carried(since=4)  #: (n_tuples,) sum of the losses of the block
    waiting: int = carried(since=4)  #: how many they are
    last_loss: FloatArray = carried()  #: (n_tuples,) f of the step before
    last_use: FloatArray = carried(since=4)  #: (I,) of the path before
    squares: FloatArray = carried(since=4)  #: (I,) of the differences between uses of successive paths, summed
    largest_span: float = carried()  #: F
    changes: float = carried()  #: S
    steps: int = carried()  #: m
    _laws: Laws = field(init=False)
    _renewed: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.block = whole(self.block, "block", 1)
        space, n_constraints = self.space, len(self.budgets)
        even = LayeredMDP.even(space).occupancy(Policy.uniform(space))
        self._even = even[space.csr.pair_ptr[:-1]]  # the same for all successors of a pair
        self.integrals = np.zeros(n_constraints)
        self.mean_constraints = np.zeros((n_constraints, space.n_tuples))
        self.losses = np.zeros(space.n_tuples)
        self.last_loss = np.zeros(space.n_tuples)
        self.last_use, self.squares = np.zeros((2, n_constraints))
        self.largest_span = self.changes = 0.0
        self.waiting = self.steps = 0
        self._tuples_before = space.tuples_before
        self._renewed, self._laws = self.counts.epoch, self._evidence(self.counts)

    def observe(self, episode: Episode) -> None:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        path, f, g = self._read(episode)
        t = self.observed + 1
        counts = self._counted(path)
        mean = self.mean_constraints + (g - self.mean_constraints) / t
        use = g[:, path].sum(axis=1)
        squares = self.squares + (use - self.last_use) ** 2 if t > 1 else self.squares
        losses, waiting = self.losses + f, self.waiting + 1
        changes = {"counts": counts, "mean_constraints": mean, "last_use": use, "squares": squares}
        if waiting >= min(self.block, 1 + t // BLOCK_GROWTH):
            losses /= waiting
            errors = np.sqrt(squares / 2 / max(t - 1, 1) / t)
            step = self._step_on(losses, mean, self.budgets - self.prudence * errors, counts)
            self._learn(**changes, losses=np.zeros_like(losses), waiting=0, **step)
        else:
            self._learn(**changes, losses=losses, waiting=waiting)

    def _step_on(self, f: FloatArray, mean: FloatArray, aims: FloatArray, counts: Counts) -> dict[str, Any]:
        """Lines 1 to 5: what they change."""
        confidence_set, laws = self.confidence_set, self._laws
        if counts.epoch != self._renewed:
            confidence_set, laws = self._set_of(counts), self._evidence(counts)
        space, n, m = self.space, len(self.budgets), self.steps + 1
        loss, costs = np.empty(space.n_tuples), np.empty((n, space.n_tuples))
        limits, units, over, b, prices, A = *np.empty((5, n)), np.empty((n, n))
        change, _ = from_least(self._tuples_before, f - self.last_loss, loss)
        span, _ = from_least(self._tuples_before, f, loss)
        in_spans(self._tuples_before, mean, aims, costs, limits, units)
        assess(space.csr, self.policy.probabilities, *laws, self.theta, loss, costs, limits, over, b, A)

        F = max(self.largest_span, span if span >= SMALLEST else 0.0)
        S = self.changes + (change**2 if m > 1 else 0.0)
        # 1 as long as no loss made a difference
        eta = 1 / np.hypot(F / self.first_rate, np.sqrt(S) / self.change_rate) if F > 0 else 1.0
        rho, mixing, most = self.integral * F / (space.n_layers * np.sqrt(m)), 1 / (10 + m), self.largest_tilt / eta

        integrals = np.clip(self.integrals + rho * over, 0.0, most)
        least_prices(A, A @ integrals + self.correction / eta * over - b, prices)
        np.minimum(prices, most, out=prices)
        weigh(1.0, loss, prices, costs, 1 / eta, loss)  # η (f + Σ_i w_i ḡ_i), in place of f
        priced = np.where(costs.any(axis=1), prices / units, 0.0)
        del costs  # the solver needs the memory next
        reference = np.empty(space.n_tuples)
        mix_pairs(space.csr.pair_ptr, self.theta, mixing, self._even, reference)
        theta = self._step(reference, loss, confidence_set)
        return {
            "confidence_set": confidence_set,
            "_laws": laws,
            "_renewed": counts.epoch,
            "theta": theta,
            "policy": self._policy_of(theta),
            "integrals": integrals,
            "multipliers": priced,
            "last_loss": f,
            "largest_span": F,
            "changes": S,
            "steps": m,
        }

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {
            "integrals": (0, np.inf),
            "multipliers": (0, np.inf),
            "mean_constraints": sums_of(1, least=-1),
            "last_loss": sums_of(1, least=-1),
            "losses": sums_of(self.waiting, least=-1),
            "last_use": sums_of(self.space.n_layers, least=-1),
            "squares": (0, 17 * (self.space.n_layers * self.space.n_layers) * self.observed),
            "waiting": (0, self.block - 1),
            "steps": (0, self.observed),
            "largest_span": (0, 3),
            "changes": (0, 17 * self.steps),  # spans of differences are 4 at most, and a little
        }

    def _restored(self) -> None:
        super()._restored()
        self._renewed, self._laws = self.counts.epoch, self._evidence(self.counts)

    @property
    def settings(self) -> dict[str, float | str]:
        planned = self.confidence == "paper"
        return {name: value for name, value in super().settings.items() if planned or name != "episodes"}
