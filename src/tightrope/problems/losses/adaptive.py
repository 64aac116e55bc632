"""Adaptive adversaries: their losses depend on the policies that the learner has played.

They know the true model. Each takes a few passes over the tuples per episode, and stores one number per pair.
"""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import instance, number, whole
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.problems.losses.oblivious import Play, Scenarios
from tightrope.space import FloatArray


class Adaptive(Scenarios):
    """A loss sequence that depends on the policies played on `mdp`."""

    def __init__(self, scenarios: ArrayLike, mdp: LayeredMDP) -> None:
        super().__init__(scenarios)
        if self.scenarios.shape[1] != instance(mdp, "mdp", LayeredMDP).space.n_tuples:
            raise InvalidInputError(
                f"scenarios has shape {self.scenarios.shape}; expected (n_scenarios, {mdp.space.n_tuples})"
            )
        self.mdp = mdp

    @abstractmethod
    def begin(self, rng: np.random.Generator) -> "ChaserPlay | LowerBoundPlay":
        """Return the adversary of one run."""


class Chaser(Adaptive):
    """Raises the loss at pairs that the learner visited lately.

    Let u be the exponential average, over about the last `memory` episodes, of the probability with which the policies
    played pass through each pair (s,a) of the true model, and û = u / max of u over the layer, in [0, 1]. Then

        f^t(s,a,s') = (1 − weight) f_0(s,a,s') + weight û(s,a),    f_0 the first scenario, û = 0 before episode 1.

    A learner that settles on one policy pays more and more; the best policy in hindsight visits other pairs.
    """

    name = "chaser"

    def __init__(self, scenarios: ArrayLike, mdp: LayeredMDP, *, weight: float = 0.5, memory: int = 100) -> None:
        super().__init__(scenarios, mdp)
        self.weight = number(weight, "weight", 0, 1)
        self.memory = whole(memory, "memory", at_least=1)

    def begin(self, rng: np.random.Generator) -> "ChaserPlay":
        return ChaserPlay(self)


class ChaserPlay(Play):
    """The adversary of one run under `Chaser`; it draws nothing."""

    def __init__(self, losses: Chaser) -> None:
        self.losses = losses
        self.visits = np.zeros(losses.mdp.space.n_pairs)  # u

    def loss(self, episode: int) -> FloatArray:
        space, weight = self.losses.mdp.space, self.losses.weight
        first_pairs = space.csr.state_ptr[space.csr.layer_ptr[:-2]]
        top = np.maximum.reduceat(self.visits, first_pairs)
        sizes = np.diff(first_pairs, append=space.n_pairs)
        share = self.visits / np.repeat(np.where(top > 0, top, 1.0), sizes)
        f: FloatArray = (1 - weight) * self.losses.scenarios[0] + space.expand_to_tuples(weight * share)
        return np.clip(f, -1.0, 1.0, out=f)  # rounding may leave [-1, 1]

    def watch(self, policy: Policy) -> None:
        mdp = self.losses.mdp
        played = mdp.space.sum_over_successors(mdp.occupancy(policy))
        self.visits += (played - self.visits) / self.losses.memory


class LowerBound(Adaptive):
    """The lower bound for bandits in every state: losses ±1 by fair coins, with one action slightly better.

    Episodes come in phases of n = first, 2 first, 4 first, … At the beginning of a phase each state gets a good
    action: the one that the policies played so far chose least (by summed probabilities; ties are broken at random).
    With A the number of actions of the state and ε = min(1/2, sqrt(A / n) / 4), every f^t(s,a,·) is ±1, independently,
    with

        P(f^t(s,a,·) = 1) = 1/2,  and 1/2 − ε for the good action, where there is a choice.

    With bandit feedback, a gap of order sqrt(A / n) cannot be distinguished from chance within n episodes, which costs
    regret of order sqrt(A n). With full information the gap is found earlier, but the coins alone still cost order
    sqrt(n log A): the best of A random sums is that much below their mean. Phases double, so T need not be known and
    the last phase dominates. The scenarios of the problem are not used.

    Reference: P. Auer, N. Cesa-Bianchi, Y. Freund, R. E. Schapire, "The nonstochastic multiarmed bandit problem", SIAM
    Journal on Computing 32, 2002, section 5, has one state, a good action drawn once, and a known T; the choice by the
    policies played, the phases and the constant 1/4 are this package's.
    """

    name = "lower-bound"

    def __init__(self, scenarios: ArrayLike, mdp: LayeredMDP, *, first: int = 64) -> None:
        super().__init__(scenarios, mdp)
        self.first = whole(first, "first", at_least=1)

    def begin(self, rng: np.random.Generator) -> "LowerBoundPlay":
        return LowerBoundPlay(self, rng)


class LowerBoundPlay(Play):
    """The adversary of one run under `LowerBound`."""

    def __init__(self, losses: LowerBound, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng
        space = losses.mdp.space
        self.played = np.zeros(space.n_pairs)  # Σ_t π_t(a|s)
        self.chance = np.full(space.n_pairs, 0.5)  # of a loss of 1
        self.length, self.next_phase = losses.first, 1

    def loss(self, episode: int) -> FloatArray:
        if episode == self.next_phase:
            self._begin_phase()
        space = self.losses.mdp.space
        coins = np.where(self.rng.random(space.n_pairs) < self.chance, 1.0, -1.0)
        return space.expand_to_tuples(coins)

    def _begin_phase(self) -> None:
        space = self.losses.mdp.space
        # the first pair of each state, by its summed probabilities; ties at random
        order = np.lexsort((self.rng.random(space.n_pairs), self.played, space.pairs[:, 0]))
        good = order[space.csr.state_ptr[:-2]]
        A = np.diff(space.csr.state_ptr)[:-1]
        self.chance[:] = 0.5
        self.chance[good] -= np.where(A > 1, np.minimum(0.5, np.sqrt(A / self.length) / 4), 0.0)
        self.next_phase += self.length
        self.length *= 2

    def watch(self, policy: Policy) -> None:
        self.played += policy.probabilities
