"""DO-REPS: many O-REPS at different rates, and weights over them, against losses that change (Zhao, Li & Zhou 2022).

In every episode t, with losses ℓ in [0, 1], for bases i = 1, …, N with rates η_i = 2^(i−1) η_1:
1. Play π_t(a|s) ∝ q_t(s,a) of q_t = Σ_i p_{t,i} q_{t,i}, p_{t,i} ∝ exp(−ε Σ_{τ<t} <ℓ^τ, q_{τ,i}>); every q_{1,i} is the
   occupancy measure of the model with the largest entropy.
2. q_{t+1,i} = argmin over the occupancy measures q of the model of η_i <ℓ^t, q> + D(q, q̃_{t,i}),
   q̃_{t,i} = (1 − α) q_{t,i} + α q_1.

Against one fixed policy a slow base is best; against policies that change, a fast one. Nobody knows how fast the losses
will change; the weights find the base for it, and the dynamic regret, against any sequence of policies whose measures
move by P_T in all, is of order L √(T log(|S||A|/L) + T P_T log(LT) / L).

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It keeps measures at 1/(LT)² and more by taking
steps only among those that are, which there need not be where a state is hard to reach; here that share of q_1 is mixed
in. We could not read its print: rates, number of bases and ε are those that balance the terms of its bound, which is
(L log(|S||A|/L) + 2 P_T log(LT)) / η + η L T for P_T from 0 to 2LT, and L √(T log N) for the weights. Its authors' code
(PyNOL) has η_1 = ε = 1/√T, rates up to the first above 1, and keeps measures at 0.001 and more.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arithmetic import exp, log
from tightrope.learners.base import Episode, sums_of
from tightrope.learners.o_reps import OREPS
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PUBLISHED, SHARE, carried, parameter
from tightrope.learners.shared.mirror import FLOOR
from tightrope.model import check_measure, inner
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace

#: By how much the logarithm of a power of two may be above it.
ROUNDING = 1e-9


class Projectors:
    """One for each base, which begins where the last answer of that base was."""

    def __init__(self, number: int, space: LayeredSpace, tolerance: float) -> None:
        self.of = [Projector(space, tolerance) for _ in range(number)]

    def state(self) -> dict[str, FloatArray]:
        """All that the next solves start from."""
        states = [projector.state() for projector in self.of]
        return {name: np.stack([state[name] for state in states]) for name in states[0]}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from what `state` gave."""
        for i, projector in enumerate(self.of):
            projector.restore({name: values[i] for name, values in state.items()})


class DynamicOREPS(OREPS):
    """O-REPS at many rates, weighted: losses that change, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η_1, that of the slowest base; by default √(log(|S||A|/L) / T), as O-REPS.
    largest_rate : rates double until one is as large; by default η_1 √(1 + 4T log(LT) / log(|S||A|/L)).
    meta_rate : ε; by default √(log N / T) / L.
    mixing : α; by default 1/(LT)².
    """

    name = "dynamic-o-reps"
    reference = "Zhao, Li, Zhou: Dynamic regret of online Markov decision processes (ICML 2022)"
    constants = "balanced by us"

    largest_rate: float = parameter(POSITIVE, default=PUBLISHED)
    meta_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    mixing: float = parameter(SHARE, default=PUBLISHED)
    measures: FloatArray = carried()  #: q_{t,i} (N, n_tuples)
    base_losses: FloatArray = carried()  #: Σ_τ <ℓ^τ, q_{τ,i}> (N,)
    _projectors: Projectors = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        widest = np.sqrt(1 + 4 * T * log(L * T) / log(S * A / L))
        self.default_to(largest_rate=self.learning_rate * widest, mixing=1 / (L * T) ** 2)
        doublings = np.ceil(log(self.largest_rate / self.learning_rate) / log(2) - ROUNDING)
        self.rates = self.learning_rate * 2.0 ** np.arange(1 + max(0, int(doublings)))  #: η_i (N,)
        self.default_to(meta_rate=np.sqrt(log(len(self.rates)) / T) / L)
        self._first = self.theta
        self.measures = np.tile(self.theta, (len(self.rates), 1))
        self.base_losses = np.zeros(len(self.rates))
        self._projectors = Projectors(len(self.rates), self.space, self.tolerance)

    def observe(self, episode: Episode) -> None:
        """Line 2, and line 1 for the next episode."""
        path, f, _ = self._read(episode)
        losses, measures = (f + 1) / 2, np.empty_like(self.measures)
        base_losses = self.base_losses + inner(self.measures, losses)
        for i, rate in enumerate(self.rates):
            mixed = (1 - self.mixing) * self.measures[i] + self.mixing * self._first
            reference = core.lift(self.space.native, mixed, FLOOR)
            self._projectors.of[i].solve(reference, rate * losses, self.confidence_set, measures[i])
        theta = self._combined(measures, base_losses)
        self._learn(
            counts=self._counted(path), measures=measures, base_losses=base_losses, theta=theta,
            policy=self._policy_of(theta),
        )  # fmt: skip

    def weights(self, base_losses: FloatArray) -> FloatArray:
        """p ∝ exp(−ε base_losses)."""
        weight = exp(-self.meta_rate * (base_losses - base_losses.min()))
        shares: FloatArray = weight / weight.sum()
        return shares

    def _combined(self, measures: FloatArray, base_losses: FloatArray) -> FloatArray:
        """q of line 1."""
        p = self.weights(base_losses)
        combined: FloatArray = core.weigh(p[0], measures[0], p[1:], measures[1:], 1.0)
        return combined

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        losses = sums_of(self.space.n_layers * self.observed)
        return super().bounds() | {"measures": (0, np.inf), "base_losses": losses}

    def _restored(self) -> None:
        for i, measure in enumerate(self.measures):
            check_measure(self.space, measure, f"measures[{i}]")
        super()._restored()
