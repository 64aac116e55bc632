"""DO-REPS: many O-REPS at different rates, and weights over them, against losses that change (Zhao, Li & Zhou 2022).

In every episode t, with losses ℓ in [0, 1], for bases i = 1, …, N with rates η_i = 2^(i−1) η_1:
1. Play π_t(a|s) ∝ q_t(s,a) of q_t = Σ_i p_{t,i} q_{t,i}, p_{t,i} ∝ exp(−ε Σ_{τ<t} <ℓ^τ, q_{τ,i}>); every q_{1,i} is the
   occupancy measure of the model with the largest entropy.
2. q_{t+1,i} = argmin over the occupancy measures q of the model of η_i <ℓ^t, q> + D(q, q̃_{t,i}),
   q̃_{t,i} = (1 − α) q_{t,i} + α q_1.

A slow base is best against a fixed policy, a fast one against policies that change. The weights find the right base, so
that the dynamic regret, against any sequence of policies whose measures move by P_T in total, is of order L √(T
log(|S||A|/L) + T P_T log(LT) / L).

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It restricts steps to measures of at least 1/(LT)²,
which may not exist if a state is hard to reach; here that share of q_1 is mixed in. We had no access to the paper in
print: rates, number of bases and ε balance the terms of its bound, which is
(L log(|S||A|/L) + 2 P_T log(LT)) / η + η L T for P_T from 0 to 2LT, and L √(T log N) for the weights. The code of its
authors (PyNOL) has η_1 = ε = 1/√T, rates up to the first above 1, and measures of at least 0.001.
"""

import numpy as np

from tightrope import core
from tightrope.arithmetic import exp, log
from tightrope.confidence import ConfidenceSet, KnownModel
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.o_reps import first_state
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PUBLISHED, SHARE, parameter
from tightrope.learners.parts import MirrorStep, Warmed, WarmStart, policy_of_measure, positive
from tightrope.learners.shared.counting import MirrorState
from tightrope.model import LayeredMDP, inner
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import measure, numbers, part, state

#: The rounding error of the logarithm of a power of two.
ROUNDING = 1e-9


class Projectors:
    """One solver for each base, with its own warm start."""

    def __init__(self, number: int, space: LayeredSpace) -> None:
        self.of = [Projector(space) for _ in range(number)]

    def state(self) -> dict[str, FloatArray]:
        """Return the warm starts of the solvers, stacked over the bases."""
        states = [projector.state() for projector in self.of]
        return {name: np.stack([state[name] for state in states]) for name in states[0]}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from the warm starts of `state`."""
        for i, projector in enumerate(self.of):
            projector.restore({name: values[i] for name, values in state.items()})


@state
class DynamicState(MirrorState):
    """The state of dynamic O-REPS."""

    measures: FloatArray = measure()  #: (N, n_tuples) q_{t,i}
    base_losses: FloatArray = numbers(least=-1e-3)  #: (N,) Σ_τ <ℓ^τ, q_{τ,i}>
    solvers: WarmStart = part(written_as="_projectors")


class DynamicOREPS(LearnerBase[DynamicState]):
    """O-REPS at many rates, weighted: losses that change, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η_1, that of the slowest base; by default √(log(|S||A|/L) / T), as O-REPS.
    largest_rate : rates double until one is at least this; by default η_1 √(1 + 4T log(LT) / log(|S||A|/L)).
    meta_rate : ε; by default √(log N / T) / L.
    mixing : α; by default 1/(LT)².
    """

    name = "dynamic-o-reps"
    reference = "Zhao, Li, Zhou: Dynamic regret of online Markov decision processes (ICML 2022)"
    constants = "balanced by us"

    needs = ("model",)
    learns_from = "any"

    model: LayeredMDP
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)
    largest_rate: float = parameter(POSITIVE, default=PUBLISHED)
    meta_rate: float = parameter(NOT_NEGATIVE, default=PUBLISHED)
    mixing: float = parameter(SHARE, default=PUBLISHED)

    def configure(self) -> None:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        self.default_to(learning_rate=float(np.sqrt(log(S * A / L) / T)))
        widest = np.sqrt(1 + 4 * T * log(L * T) / log(S * A / L))
        self.default_to(largest_rate=self.learning_rate * widest, mixing=1 / (L * T) ** 2)
        doublings = np.ceil(log(self.largest_rate / self.learning_rate) / log(2) - ROUNDING)
        self.rates = self.learning_rate * 2.0 ** np.arange(1 + max(0, int(doublings)))  #: η_i (N,)
        self.default_to(meta_rate=np.sqrt(log(len(self.rates)) / T) / L)
        self.rule = KnownModel(transitions=self.model.transitions)
        self._mirror_step = MirrorStep(self.space, self.rule)
        self._first = first_state(self._mirror_step, self.model)
        self._projectors = Warmed(Projectors(len(self.rates), self.space))

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The set of models that contains the true one only."""
        return self._mirror_step.set_of(self.state.counts)

    def initial(self) -> DynamicState:
        first = self._first
        return DynamicState(
            counts=first.counts,
            theta=first.theta,
            solver=first.solver,
            measures=np.tile(first.theta, (len(self.rates), 1)),
            base_losses=np.zeros(len(self.rates)),
            solvers=self._projectors.now(),
        )

    def offer(self, state: DynamicState) -> Offer:
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)))

    def step(self, state: DynamicState, seen: Seen) -> DynamicState:
        """Return the next state (line 2, and line 1 for the next episode)."""
        losses, measures = (seen.loss + 1) / 2, np.empty_like(state.measures)
        base_losses = state.base_losses + inner(state.measures, losses)
        projectors, known = self._projectors.from_(state.solvers), self._mirror_step.set_of(state.counts)
        for i, rate in enumerate(self.rates):
            reference = positive(self.space, (1 - self.mixing) * state.measures[i] + self.mixing * self._first.theta)
            projectors.of[i].solve(reference, rate * losses, known, measures[i])
        p = self.weights(base_losses)
        return DynamicState(
            observed=state.observed + 1,
            counts=state.counts.counted(seen.path),
            theta=core.weigh(p[0], measures[0], p[1:], measures[1:], 1.0),
            solver=state.solver,
            measures=measures,
            base_losses=base_losses,
            solvers=self._projectors.now(),
        )

    def weights(self, base_losses: FloatArray) -> FloatArray:
        """Return p ∝ exp(−ε base_losses), (N,)."""
        weight = exp(-self.meta_rate * (base_losses - base_losses.min()))
        shares: FloatArray = weight / weight.sum()
        return shares
