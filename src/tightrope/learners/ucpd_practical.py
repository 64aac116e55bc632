"""UCPD that keeps its budgets at horizons people can afford: Algorithm 1 with other prices, steps and sets.

In every episode t, with f, g_i and budgets c_i taken from the least of each layer and in shares of their spans:
1. The sets are anytime balls on the declared successors (`rules`), with the counts of tied pairs pooled, renewed when a
   count has grown by a tenth. The model is in all of them, at all times, with probability 1 − ζ.
2. Charge what was played: e_i = ĝ_i(π_t) − c_i is by how much the policy uses more than budget i under P̂, for the mean
   ḡ_i of the draws so far. (Algorithm 1 charges the optimistic θ, which believes to be within budget while sets are
   wide.) Q_i ← Q_i + ρ_t e_i, held between 0 and B/η, ρ_t = 3 F / (L √t).
3. Prices: w = argmin over w >= 0 of ½ wᵀ A w − w·(A Q + k e / η − b), B/η at most. A step of length η changes the uses
   by −η (b + A w) to first order (`kernels.played.responses`), so −b/A is the price at which losses and budgets
   balance, k e / (η A) brings back a share k of the excess in one step, and Q collects what this picture gets wrong.
   For one budget, w = [Q + (k e / η − b) / A]_+.
4. θ ← argmin over θ in Δ of η <f + Σ_i w_i ḡ_i, θ> + D(θ, (1 − λ_t) θ + λ_t θ^1), λ_t = 1/(10 + t); θ^1 is the measure
   of the uniform policy where every successor is as likely.
5. η = 1/√(F²/h² + S/κ²): F is the largest span of a loss so far, S the sum of squares of the spans of f^t − f^{t-1}.
   Losses that do not change leave η at h/F; those that change all the time make it fall like 1/√t.

Nothing depends on the units of losses and constraints, or on the number of episodes: none needs to be planned. The
bound B/η says that a unit of use is never priced above B F/h, and more as η falls; no step tilts θ by more than
e^(h + I B), which the solver takes.

Feedback: full information. Needs to know: the space and the budgets.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import ConfidenceRule
from tightrope.learners.base import Episode, sums_of
from tightrope.learners.kernels.played import believe, from_least, least_prices, responses, uses
from tightrope.learners.kernels.primal_dual import weigh
from tightrope.learners.parameters import POSITIVE, carried, parameter
from tightrope.learners.shared.mirror import ConfidentLearner
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray

#: Added to every A_ii: the least response of a use to its own price, in shares of the constraint's span squared.
LEAST_RESPONSE = 1e-3

#: Spans that are nothing: of rounding, relative, and of what is too small to divide by.
ROUNDING, SMALLEST = 1e-13, 1e-290


class UCPDPractical(ConfidentLearner):
    """UCPD with one practical preset: budgets held with valid sets, no horizon, no units, ties where there are any.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    confidence, level, radius_scale, renewal, ties : as in `UCPD`, with other defaults.
    first_rate, change_rate : h and κ of the learning rate η.
    correction : k, the share of the excess that a step brings back.
    integral : the 3 of ρ_t.
    largest_tilt : B.
    """

    name = "ucpd-practical"
    reference = "this package, after Qiu, Wei, Yang, Ye, Wang (2020): its own prices and steps"
    ties_by_default = True

    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    correction: float = parameter(POSITIVE, default=0.3)
    integral: float = parameter(POSITIVE, default=3.0)
    largest_tilt: float = parameter(POSITIVE, default=50.0)

    integrals: FloatArray = carried()  #: (I,) Q, per span of the constraint
    multipliers: FloatArray = carried()  #: (I,) the prices, per unit of the constraint
    mean_constraints: FloatArray = carried()  #: (I, n_tuples) ḡ
    last_loss: FloatArray = carried()  #: (n_tuples,) f^{t-1}
    largest_span: float = carried()  #: F
    changes: float = carried()  #: S
    _laws: Any = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        space, n_constraints = self.space, len(self.budgets)
        even = 1.0 / space.expand_to_tuples(space.successors_per_pair)
        self.theta = self._start = LayeredMDP(space, even).occupancy(Policy.uniform(space))
        self.policy = self._policy_of(self.theta)
        self.integrals = np.zeros(n_constraints)
        self.mean_constraints = np.zeros((n_constraints, space.n_tuples))
        self.last_loss = np.zeros(space.n_tuples)
        self.largest_span = self.changes = 0.0
        self._tuples_before = space.tuples_before
        self._laws = self.counts.laws

    def observe(self, episode: Episode) -> None:
        """Lines 1 to 5 for the next episode."""
        path, f, g = self._read(episode)
        t, space = self.observed + 1, self.space
        largest_span, changes, loss, eta = self._rate(f, t)
        mean = self.mean_constraints + (g - self.mean_constraints) / t
        costs, limits, units = self._in_spans(mean)

        over, b, A = self._assess(loss, costs, limits)
        most = self.largest_tilt / eta
        rho = self.integral * largest_span / (space.n_layers * np.sqrt(t))
        integrals = np.clip(self.integrals + rho * over, 0.0, most)
        prices = np.empty(len(limits))
        least_prices(A, A @ integrals + self.correction / eta * over - b, prices)
        np.minimum(prices, most, out=prices)

        psi = np.empty(space.n_tuples)
        weigh(1.0, loss, prices, costs, 1 / eta, psi)  # η (f + Σ_i w_i ḡ_i)
        mixing = 1 / (10 + t)
        move = self._move(path, (1 - mixing) * self.theta + mixing * self._start, psi)
        self._learn(
            **move,
            _laws=self._laws if move["counts"].epoch == self.counts.epoch else move["counts"].laws,
            integrals=integrals,
            multipliers=np.where(costs.any(axis=1), prices / units, 0.0),
            mean_constraints=mean,
            last_loss=f.copy(),
            largest_span=largest_span,
            changes=changes,
        )

    def _rate(self, f: FloatArray, t: int) -> tuple[float, float, FloatArray, float]:
        """Line 5: F, S, the loss from the least of each layer, and η; 1 as long as no loss made a difference."""
        loss = np.empty(self.space.n_tuples)
        span, _ = from_least(self._tuples_before, f - self.last_loss, loss)
        changes = self.changes + (span**2 if t > 1 else 0.0)
        span, _ = from_least(self._tuples_before, f, loss)
        largest = max(self.largest_span, span if span >= SMALLEST else 0.0)
        eta = 1 / np.hypot(largest / self.first_rate, np.sqrt(changes) / self.change_rate) if largest > 0 else 1.0
        return largest, changes, loss, float(eta)

    def _in_spans(self, mean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """ḡ_i and c_i from the least of each layer, in shares of the span of ḡ_i, and that span (1 where it is 0)."""
        costs, units = np.empty_like(mean), np.ones(len(mean))
        limits = self.budgets.copy()
        for i, row in enumerate(mean):
            span, least = from_least(self._tuples_before, row, costs[i])
            if span <= ROUNDING * np.abs(row).max() or span < SMALLEST:  # no policy makes a difference
                span, costs[i] = 0.0, 0.0
            units[i] = span or 1.0
            costs[i] /= units[i]
            limits[i] = (limits[i] - least) / units[i]
        return costs, limits, units

    def _assess(
        self, loss: FloatArray, costs: FloatArray, limits: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By how much the policy just played is over each limit, as far as is known, and its responses b and A."""
        space, pi, n = self.space, self.policy.probabilities, len(limits)
        P, theta, d = np.empty(space.n_tuples), np.empty(space.n_tuples), np.empty(space.n_states)
        use, b, A, V = np.empty(n), np.empty(n), np.empty((n, n)), np.empty((n + 1, space.n_states))
        believe(space.csr.pair_ptr, *self._laws, self.theta, P)
        uses(space.csr, pi, P, costs, d, theta, use)
        responses(space.csr, pi, P, loss, costs, d, V, b, A)
        A[np.diag_indices(n)] += LEAST_RESPONSE
        return use - limits, b, A

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {
            "integrals": (0, np.inf),
            "multipliers": (0, np.inf),
            "mean_constraints": sums_of(1, least=-1),
            "last_loss": sums_of(1, least=-1),
            "largest_span": (0, 3),
            "changes": (0, 17 * self.observed),  # spans of f^t − f^{t-1} are 4 at most, and a little
        }

    def _restored(self) -> None:
        super()._restored()
        self._laws = self.counts.laws

    @property
    def settings(self) -> dict[str, float | str]:
        planned = self.confidence == "paper"
        return {name: value for name, value in super().settings.items() if planned or name != "episodes"}
