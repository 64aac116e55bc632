"""S-OPS: no budget is exceeded in any episode (after Stradi, Castiglioni, Marchesi & Gatti 2025).

After every block of episodes with one policy π, with f the mean of its losses:
1. Confidence sets C on the model as in `ucpd-practical`: anytime balls, counts of tied pairs pooled. g⁺_i is an upper
   bound on the mean of constraint i, tuple by tuple, at all times (empirical Bernstein). Both hold with probability
   1 − 2ζ.
2. Worst-case use, by dynamic programming that picks the model, too:
   V_i(s) = Σ_a π(a|s) q_i(s,a), q_i(s,a) = max over p in C(s,a) of Σ_s' p(s') (g⁺_i(s,a,s') + V_i(s')); U_i(π) = V_i at
   the first state. A policy with U_i(π) <= c_i for all i is within the budgets, whatever the model.
3. θ ← argmin over θ in Δ with <q_i − V_i, θ> <= [c_i − U_i(π)]_+ of η <f, θ> + D(θ, (1 − λ_m) θ + λ_m even):
   optimistic in the loss, since θ picks its model; pessimistic in the constraints, since another policy uses at most
   <q_i − V_i, its measure> more than π, in the worst case. π itself meets the inequalities, so they can be met; where
   next to nothing else does and no answer is found, θ stays what it is.
4. The next policy is μ π° + (1 − μ) π^θ in every state, π° the safe policy that uses β of the budgets, with the least μ
   that is found (halving an interval) such that U_i <= c_i for all i, or μ₀ if none is: then all L actions are π°'s
   with probability μ₀^L, the use is at most μ₀^L β_i + (1 − μ₀^L) L, and that is c_i.
5. η and λ_m as in `ucpd-practical`.

So every episode is within all budgets in expectation, with probability 1 − 2ζ over the whole run and without a horizon,
be the losses adversarial; the constraints have to be drawn from one law. That its regret falls like 1/√t per episode is
measured, not proved.

Feedback: full information. Needs to know: the space, the budgets, a policy π° strictly within them, and its uses β.
Where we depart from the publication: it has bandit feedback, and so estimates losses and constraints from what paths
met, with Bernstein boxes and Hoeffding's bounds. It steps over optimistic constraints, and mixes by drawing π° with
probability λ_t before the episode, so that budgets hold on average over that draw; here every policy that is played
holds them by itself, by mixing within states, which is why λ_0 = (L − c)/(L − β) is μ₀^L here. Its bound on the use of
π_t is <g⁺, û>, û upper occupancy bounds of each state by itself; line 2 is the use under one model, which is less.
"""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import whole
from tightrope.arithmetic import log, power
from tightrope.confidence import ConfidenceRule, Counts
from tightrope.confidence.extremes import Bounds, bounds_of, most_paid, worst_use
from tightrope.errors import ConvergenceError, InfeasibleError
from tightrope.learners.base import Episode, require, sums_of
from tightrope.learners.parameters import POSITIVE, PROBABILITY, carried, parameter
from tightrope.learners.shared.mirror import ConfidentLearner
from tightrope.learners.shared.rates import rate, spans_after
from tightrope.model import LayeredMDP, Policy, flat
from tightrope.projection.inequalities import InequalityProjector
from tightrope.space import FloatArray

#: After so many episodes blocks may be longer by one.
BLOCK_GROWTH = 100
#: Halvings of the interval of μ.
HALVINGS = 6
#: Uses below this are rounding.
ROUNDING = 1e-9


class SOPS(ConfidentLearner):
    """Budgets hold in every single episode, from a safe policy; losses may be adversarial, dynamics unknown.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    safe_policy, safe_usage : π°, and (I,) what it uses of each budget in expectation.
    confidence, radius_scale, renewal, ties : as in `UCPD`, with other defaults. Below a scale of 1 the promise is gone.
    level : ζ, for the sets and for the constraints each.
    first_rate, change_rate : of the learning rate η, as in `UCPDPractical`.
    block : the most episodes that are played with one policy.
    """

    name = "s-ops"
    reference = (
        "after Stradi, Castiglioni, Marchesi, Gatti: Learning adversarial MDPs with stochastic hard constraints "
        "(ICML 2025)"
    )
    constants = "declared departure"
    needs = ("safe_policy", "safe_usage")
    ties_by_default = True
    plans = False
    tolerance = 1e-6

    safe_policy: Policy
    safe_usage: Any
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    level: float = parameter(PROBABILITY, default=0.005)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    block: int = 10

    mean_constraints: FloatArray = carried()  #: (I, n_tuples) ḡ
    squares: FloatArray = carried()  #: (I, n_tuples) Σ (g − ḡ before)²
    last_loss: FloatArray = carried()  #: (n_tuples,) f of the step before
    losses: FloatArray = carried()  #: (n_tuples,) sum of the losses of the block
    waiting: int = carried()  #: how many they are
    largest_span: float = carried()  #: F of η
    changes: float = carried()  #: S of η
    steps: int = carried()  #: m
    weight: float = carried()  #: μ
    multipliers: FloatArray = carried()  #: (I,) of the inequalities of line 3, per unit of loss
    _projector: Any = carried()
    _renewed: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        space, n = self.space, len(self.budgets)
        self.block = whole(self.block, "block", 1)
        usage = flat(self.safe_usage, n, "safe_usage")
        require(
            bool((usage < self.budgets).all()),
            f"the safe policy uses {usage} of the budgets {self.budgets}; less is needed of each",
        )
        apart = float(np.min((self.budgets - usage) / np.maximum(space.n_layers - usage, 1e-300), initial=1.0))
        self.first_weight = power(1 - apart, 1 / space.n_layers)  #: μ₀
        if n > 0:
            self._projector = InequalityProjector(space, n, self.tolerance)
        self._even = LayeredMDP.even(space).occupancy(Policy.uniform(space))[space.csr.pair_ptr[:-1]]
        self.mean_constraints, self.squares = np.zeros((2, n, space.n_tuples))
        self.last_loss, self.losses = np.zeros((2, space.n_tuples))
        self.waiting = self.steps = 0
        self.largest_span = self.changes = 0.0
        self.weight, self._renewed = self.first_weight, self.counts.epoch
        self.policy = self._mixed(self._probabilities(self.theta), self.weight)

    def observe(self, episode: Episode) -> None:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        path, f, g = self._read(episode)
        off = g - self.mean_constraints
        changes: dict[str, Any] = {
            "counts": self._counted(path),
            "mean_constraints": self.mean_constraints + off / (self.observed + 1),
            "squares": self.squares + off * off,
            "losses": self.losses + f,
            "waiting": self.waiting + 1,
        }
        if changes["waiting"] >= min(self.block, 1 + (self.observed + 1) // BLOCK_GROWTH):
            loss = changes["losses"] / changes["waiting"]
            upper = self._upper(changes["mean_constraints"], changes["squares"])
            changes |= self._step_on(loss, upper, changes["counts"])
            changes |= {"losses": np.zeros_like(loss), "waiting": 0, "last_loss": loss}
        self._learn(**changes)

    def _upper(self, mean: FloatArray, squares: FloatArray) -> FloatArray:
        """Line 1: g⁺ (I, n_tuples). (1 − g)/2 is in [0, 1], and what is below its mean is above that of g."""
        t = self.observed + 1
        log_inverse = log(max(1, mean.size) / self.level)
        n = np.full(self.space.n_tuples, t)
        lower = core.lower_means(n, t * (1 - mean) / 2, squares / 4, log_inverse, self.radius_scale)
        upper: FloatArray = 1 - 2 * lower
        return upper

    def _step_on(self, f: FloatArray, upper: FloatArray, counts: Counts) -> dict[str, Any]:
        """Lines 2 to 5: what they change."""
        confidence_set = self.confidence_set if counts.epoch == self._renewed else self._set_of(counts)
        bounds, m = bounds_of(confidence_set, self.space), self.steps + 1
        F, S = spans_after(self.space, f, self.last_loss, self.largest_span, self.changes, self.steps)
        eta = rate(F, S, self.first_rate, self.change_rate)
        reference = core.mix_pairs(self.space.native, self.theta, 1 / (10 + m), self._even)
        projector, multipliers = self._projector, self.multipliers
        if len(self.budgets) == 0:
            theta = self._step(reference, eta * f, confidence_set)
        else:
            theta, uses = np.empty_like(f), [worst_use(self.space, bounds, self.policy, g) for g in upper]
            more = np.array([use.more for use in uses])
            more[np.abs(more) < ROUNDING] = 0.0
            room = np.maximum(self.budgets - [use.most for use in uses], ROUNDING)
            try:
                projector.solve(reference, eta * f, confidence_set, more, room, theta)
                multipliers = projector.multipliers / eta
            except (ConvergenceError, InfeasibleError):
                theta, projector = self.theta, InequalityProjector(self.space, len(self.budgets), self.tolerance)
        policy, weight = self._within(self._probabilities(theta), bounds, upper)
        return {
            "confidence_set": confidence_set,
            "_renewed": counts.epoch,
            "theta": theta,
            "_projector": projector,
            "policy": policy,
            "weight": weight,
            "multipliers": multipliers,
            "largest_span": F,
            "changes": S,
            "steps": m,
        }

    def _within(self, pi: FloatArray, bounds: Bounds, upper: FloatArray) -> tuple[Policy, float]:
        """Line 4: the policy, and its μ."""

        def holds(policy: Policy) -> bool:
            return all(
                most_paid(self.space, bounds, policy, g)[0] <= c - ROUNDING
                for g, c in zip(upper, self.budgets, strict=True)
            )

        least, most = 0.0, self.first_weight
        policy = self._mixed(pi, least)
        if holds(policy):
            return policy, least
        policy = self._mixed(pi, most)
        if not holds(policy):
            return policy, most
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            tried = self._mixed(pi, middle)
            if holds(tried):
                most, policy = middle, tried
            else:
                least = middle
        return policy, most

    def _probabilities(self, theta: FloatArray) -> FloatArray:
        """(n_pairs,) of the policy of θ."""
        pi: FloatArray = core.policy_of(self.space.native, theta)
        return pi

    def _mixed(self, pi: FloatArray, weight: float) -> Policy:
        """μ π° + (1 − μ) π in every state."""
        return Policy.unchecked(self.space, weight * self.safe_policy.probabilities + (1 - weight) * pi)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {
            "mean_constraints": sums_of(1, least=-1),
            "squares": (0, 5 * self.observed),
            "last_loss": sums_of(1, least=-1),
            "losses": sums_of(self.waiting, least=-1),
            "waiting": (0, self.block - 1),
            "largest_span": (0, 3),
            "changes": (0, 17 * self.steps),
            "steps": (0, self.observed),
            "weight": (0, self.first_weight),
            "multipliers": (0, np.inf),
        }

    def _restored(self) -> None:
        super()._restored()
        self._renewed = self.counts.epoch
        self.policy = self._mixed(self._probabilities(self.theta), self.weight)

    @property
    def settings(self) -> dict[str, float | str]:
        planned = self.confidence == "paper"
        return {name: value for name, value in super().settings.items() if planned or name != "episodes"}
