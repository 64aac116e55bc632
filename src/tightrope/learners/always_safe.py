"""AlwaysSafe: an abstraction with known uses, so that no budget is exceeded (Simão, Jansen & Spaan 2021).

The abstraction consists of classes of states, the uses of every action in each class, and the probabilities of moves
between classes. When an epoch ends (a count has doubled):
1. r̃ = r̄ − β^c and the intervals |P − P̄| <= β^p are those of OptCMDP; P also agrees with the known moves between
classes.
2. Ground policy: π = argmin of <r̃, q> over all policies and all such models with <d_i, q> <= α_i − m_i, m = 0 at first.
3. If π can use more than α_i under some model of the set, add the largest excess to m_i and repeat line 2.
4. If line 2 has no solution, play the abstract policy: π(a|s) ∝ Σ of q(s',a) over the s' in the class of s, with q from
   m = 0. Its uses are known, and within the budgets.

No budget is exceeded in expectation, in any episode: for certain by abstract policies, with probability 1 − δ by ground
ones.

Feedback: bandit. Needs to know: the space, the budgets, the number of episodes K and the abstraction.
Where we depart from the publication: the units of costs (`shared.counting`). A state includes its step, so a class
lies in one layer; the coarsest classes are used. Its LP restricts the total flow between classes to the known
probabilities, ours that of every pair, which holds as well and is solved by dynamic programming (`planning`). The
code of its authors has intervals without logarithms, √(P̄ (1 − P̄)/n) + 1/n and 1/n for rewards, and adds half of the
excess in line 3.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.arguments.arrays import wholes
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import (
    CountingLearner,
    Estimates,
    PricedState,
    Radii,
    averaged,
    budgets_of_shares,
    estimates,
    no_sums,
)
from tightrope.model import Policy, flat
from tightrope.planning.dynamic_programming import Halves, OptimisticPlan, plan
from tightrope.space import FloatArray

#: The most repetitions of line 3; more than a few are rare.
TIGHTENINGS = 20


class AlwaysSafe(CountingLearner[PricedState]):
    """A known abstraction for the budgets: stochastic losses, unknown dynamics, budgets that hold in every episode.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : K, the number of episodes that the confidence terms are set for.
    classes : (n_states,) the class of each state.
    class_transitions : (n_tuples,) the probability that the pair leads to the class of the tuple's last state.
    expected_uses : (I, n_pairs) the use of each budget at each pair; the same for all states of a class.
    level : δ, the probability that an estimate may be outside its confidence interval.
    radius_scale : multiplies β^c and β^p; 1 is that of OptCMDP.
    """

    name = "always-safe"
    reference = (
        "Simão, Jansen, Spaan: AlwaysSafe: reinforcement learning without safety constraint violations during training "
        "(AAMAS 2021)"
    )
    constants = "balanced by us"
    needs = ("classes", "class_transitions", "expected_uses")

    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    classes: Any
    class_transitions: Any
    expected_uses: Any

    def configure(self) -> None:
        space, n = self.space, len(self.budgets)
        self.alpha = budgets_of_shares(self.budgets, space)
        self._radii = Radii(space, n, self.episodes, self.level, self.radius_scale)
        self._class = wholes(self.classes, "classes", (space.n_states,))
        self._likely = flat(self.class_transitions, space.n_tuples, "class_transitions")
        uses = flat(np.ravel(self.expected_uses), n * space.n_pairs, "expected_uses")
        self._uses = (uses.reshape(n, space.n_pairs) + 1) / 2
        self._halves = Halves(space, self._class)

    def initial(self) -> PricedState:
        sums = no_sums(self.space, len(self.budgets), self.ties)
        policy, multipliers = self._plan(estimates(sums["counts"], sums["cost_sum"]))
        return PricedState(**sums, policy=policy, multipliers=multipliers)

    def offer(self, state: PricedState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: PricedState, seen: Seen) -> PricedState:
        """Return the next state: count, and if that ends an epoch, lines 1 to 4."""
        after = averaged(state, seen, self.space)
        if after.counts.epoch == state.counts.epoch:
            return after
        policy, multipliers = self._plan(estimates(after.counts, after.cost_sum))
        return replace(after, policy=policy, multipliers=multipliers)

    def _plan(self, averages: Estimates) -> tuple[Policy, FloatArray]:
        """Return the policy of lines 1 to 4, and the multipliers of its budgets."""
        halves = self._halves
        models = halves.intervals(self._radii.box(averages), self._likely)
        loss = halves.costs(averages.costs[0] - self._radii.of_costs(averages.visits))
        uses, margin = halves.costs(self._uses), np.zeros(len(self.budgets))
        first = best = plan(halves.space, models, loss, uses, self.alpha)
        for _ in range(TIGHTENINGS):
            if best.excess > 0:
                break
            policy = halves.policy(best.policy)
            over = np.array([halves.most(models, policy, use) for use in self._uses]) - self.alpha
            if (over <= 1e-9 * self.space.n_layers).all():
                return policy, best.multipliers
            margin += np.maximum(over, 0.0)
            best = plan(halves.space, models, loss, uses, self.alpha - margin)
        return self._abstract(first), first.multipliers

    def _abstract(self, best: OptimisticPlan) -> Policy:
        """Return the abstract policy of line 4; uniform at states that are never reached."""
        space, x = self.space, best.visits[self._halves.pairs]
        states, actions = space.pairs.T
        kind = self._class[states] * space.n_actions + actions
        mass = np.bincount(kind, x)[kind]
        total = np.bincount(states, mass)[states]
        even = Policy.uniform(space).probabilities
        return Policy.unchecked(space, np.where(total > 0, mass / np.where(total > 0, total, 1.0), even))
