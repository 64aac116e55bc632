"""UOpt-RPGPD: regularised policy gradient, primal and dual, without a horizon (Kitamura et al. 2024).

In every episode k = 0, 1, …, from π_0 uniform and λ_0 = 0, with η_k = (k + 3)^−α_η and τ_k = (k + 3)^−α_τ:
1. Play π_k and count. P̂ are the frequencies of the successors (even at pairs without visits), r̂ and û_i the averages
   of the rewards r = (1 − f)/2 and u_i = (1 − g_i)/2 so far.
2. The bonus b(s,a) = φ + H (φ Σ_s' √P̂(s'|s,a) + 5 φ²), φ(n) = √(2 (log log max(2n, e) + log(48 S²AH/δ)) / n): it holds
   for all n at once, so the number of episodes need not be known.
3. Q(s,a; r) = min{r̂ + b + Σ_s' P̂(s'|s,a) V(s'; r), (1 + τ_k log A) (steps left)},
   V(s; r) = Σ_a π_k(a|s) (Q(s,a; r) − τ_k log π_k(a|s)); the same for each u_i with 0 for τ_k.
4. π_{k+1}(a|s) ∝ π_k(a|s)^(1 − η_k τ_k) exp(η_k (Q(s,a; r) + Σ_i λ_{k,i} Q(s,a; u_i))).
5. λ_{k+1,i} = max{0, λ_{k,i} + η_k (β_i − V(s_1; u_i) − τ_k λ_{k,i})}, β_i = (H − c_i)/2 the required amount of u_i.

Rates and regularisation decrease, so that policies converge, without oscillation, to the best one within the budgets.
For every ε, the number of episodes that are worse or over budget by ε is bounded (uniform PAC).

Feedback: bandit. Needs to know: the space and the budgets.
Where we depart from the publication: costs are unknown here, hence averages and the first φ in b; it has one budget,
here each has its price. The exponents and the form of b are those of its authors' code, which multiplies b by 1/1000,
without the factor H. That code also weights the entropy of line 3 by π_k once more, adds it once more at the end, and
has π_{k+1} in place of π_k in the V of line 5; here these are as in the equations.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arithmetic import log, power
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, SHARE, parameter
from tightrope.learners.shared.counting import (
    CountingLearner,
    Estimates,
    PricedState,
    averaged,
    budgets_of_shares,
    estimates,
    uniform_start,
)
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray


class UOptRPGPD(CountingLearner[PricedState]):
    """Decreasing entropy and prices: stochastic losses, unknown dynamics, long-run budgets.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : has no effect.
    rate_exponent : α_η; the publication asks for 0 < α_τ < 1/2 < α_η and α_η + α_τ < 1.
    entropy_exponent : α_τ.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies b; 1 is b as above.
    """

    name = "uopt-rpgpd"
    reference = (
        "Kitamura, Kozuno, Kato, Ichihara, Nishimori, Sannai, Sonoda, Kumagai, Matsuo: A policy gradient primal-dual "
        "algorithm for constrained MDPs with uniform PAC guarantees (2024)"
    )
    constants = "balanced by us"
    plans = False

    feedback = "bandit"

    episodes: Any = None
    rate_exponent: float = parameter(SHARE, default=0.53)
    entropy_exponent: float = parameter(SHARE, default=0.4)
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self.alpha = budgets_of_shares(self.budgets, self.space)
        self.unreported = {"episodes"}

    def initial(self) -> PricedState:
        return PricedState(**uniform_start(self))

    def offer(self, state: PricedState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: PricedState, seen: Seen) -> PricedState:
        """Return the next state (lines 1 to 5)."""
        eta, tau = power(state.observed + 3, -self.rate_exponent), power(state.observed + 3, -self.entropy_exponent)
        state = averaged(state, seen, self.space)
        V, Q = self._evaluate(estimates(state.counts, state.cost_sum), state.policy, tau)
        worth = core.weigh(1.0, Q[0], state.multipliers, Q[1:], 1.0)
        pi = core.regularised_step(self.space.native, state.policy.probabilities, worth, eta, tau)
        due = self.space.n_layers - self.alpha
        prices = np.maximum(0.0, state.multipliers + eta * (due - V[1:, 0] - tau * state.multipliers))
        return replace(state, policy=Policy.unchecked(self.space, pi), multipliers=prices)

    def _evaluate(self, averages: Estimates, policy: Policy, tau: float) -> tuple[FloatArray, FloatArray]:
        """Return V (1 + I, n_states) and Q (1 + I, n_pairs) of r, then of each u_i (lines 2 and 3)."""
        space = self.space
        model = LayeredMDP.from_occupancy(space, averages.M.astype(np.float64))
        phi, roots = self._phi(averages.N), space.sum_over_successors(np.sqrt(model.transitions))
        bonus = self._phi(averages.visits) + space.n_layers * (phi * roots + 5 * phi**2)
        rewards = 1 - averages.costs + self.radius_scale * bonus
        pi, taus = policy.probabilities, np.zeros(1 + len(self.budgets))
        taus[0] = tau
        V, Q = core.regularised_values(space.native, pi, model.transitions, rewards, taus)
        return V, Q

    def _phi(self, visits: NDArray[np.int64]) -> FloatArray:
        """Return φ(max(1, n)) of line 2 for these visits n."""
        n = np.maximum(1, visits)
        log_term = log(log(np.maximum(2 * n, np.e))) + log(48 * self.space.n_tuples / self.level)
        phi: FloatArray = np.sqrt(2 * log_term / n)
        return phi
