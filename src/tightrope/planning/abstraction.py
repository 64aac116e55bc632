"""Classes of states that the constraints do not distinguish, and planning with a model known between classes.

States of a layer are in one class if every action has the same uses there, and the same probabilities of the classes of
the next layer. So the uses of a policy that depends on classes only are determined by the model between classes.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.dynamic_programming import Intervals
from tightrope.space import FloatArray, LayeredSpace

#: Uses and probabilities are compared after rounding to so many digits.
DIGITS = 9


def classes_of(mdp: LayeredMDP, uses: FloatArray) -> NDArray[np.int64]:
    """Return the coarsest classes of states, (n_states,), for uses (I, n_pairs), by one backward pass."""
    space, P = mdp.space, mdp.transitions
    classes = np.zeros(space.n_states, dtype=np.int64)
    found = 1
    for k in range(space.n_layers - 1, -1, -1):
        known: dict[tuple[object, ...], int] = {}
        for s in space.states_of(k):
            kind: list[object] = []
            for i in range(*space.csr.state_ptr[s : s + 2].tolist()):
                first, end = space.csr.pair_ptr[i : i + 2].tolist()
                to = np.bincount(classes[space.tuples[first:end, 2]], P[first:end])
                reached = np.flatnonzero(np.round(to, DIGITS))
                used = tuple((np.round(uses[:, i], DIGITS) + 0.0).tolist())
                kind.append((int(space.csr.action[i]), used, tuple(reached), tuple(np.round(to[reached], DIGITS))))
            classes[s] = known.setdefault(tuple(kind), found + len(known))
        found += len(known)
    return classes


def class_transitions(mdp: LayeredMDP, classes: NDArray[np.int64]) -> FloatArray:
    """Return the probability that each pair leads to the class of the tuple's successor, (n_tuples,)."""
    middle = Halves(mdp.space, classes).middle
    likely = np.bincount(middle, mdp.transitions).astype(np.float64)
    return likely[middle]


class Halves:
    """A space with every step split in two: from the pair to the class of the next state, then to the state.

    The probabilities of the first half are known, so confidence intervals apply to the second half only.
    """

    def __init__(self, space: LayeredSpace, classes: NDArray[np.int64]) -> None:
        s_next = space.tuples[:, 2]
        pair, n_classes = space.pair_of_tuple, int(classes.max()) + 1
        #: (n_tuples,) between which pair and class a tuple passes, by number
        kinds, self.middle = np.unique(pair * n_classes + classes[s_next], return_inverse=True)
        self.pair = kinds // n_classes  #: the pair of each of them
        layer = space.layer_of_pair[self.pair]
        per_layer = np.bincount(layer, minlength=space.n_layers)
        before = np.concatenate([[0], np.cumsum(per_layer)])  # of each layer of states
        until = np.cumsum(space.layer_sizes)  # states up to each layer
        state = np.arange(space.n_states) + np.repeat(before, space.layer_sizes)
        middle = np.arange(len(kinds)) + until[layer]
        rows = np.vstack(
            [
                np.column_stack([state[space.pairs[self.pair, 0]], space.pairs[self.pair, 1], middle]),
                np.column_stack([middle[self.middle], np.zeros_like(s_next), state[s_next]]),
            ]
        )
        order = np.lexsort(rows.T[::-1])
        place = np.argsort(order)
        sizes = np.empty(2 * space.n_layers + 1, dtype=np.int64)
        sizes[::2], sizes[1::2] = space.layer_sizes, per_layer
        self.outer = space
        self.space = LayeredSpace.from_tuples(sizes.tolist(), space.n_actions, rows[order])
        self._first, self._second = place[: len(kinds)], place[len(kinds) :]  # where the halves of a step are

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """(n_pairs,) the pair of `space` for each pair of the original space."""
        _, at = np.unique(self.pair, return_index=True)
        pairs: NDArray[np.int64] = self.space.pair_of_tuple[self._first[at]]
        return pairs

    def costs(self, outside: FloatArray) -> FloatArray:
        """Convert costs of original pairs, (…, n_pairs), to `space`, with the costs in the first half."""
        inside = np.zeros((*outside.shape[:-1], self.space.n_pairs))
        inside[..., self.pairs] = outside
        return inside

    def intervals(self, box: Intervals, likely: FloatArray) -> Intervals:
        """Return the intervals of a box that agree with known class probabilities `likely`, (n_tuples,).

        A class without such an interval is left free.
        """
        lower, upper = np.zeros(self.space.n_tuples), np.ones(self.space.n_tuples)
        known, share = np.bincount(self.middle, likely) / np.bincount(self.middle), np.maximum(likely, 1e-300)
        lower[self._first] = upper[self._first] = known
        low, high = np.minimum(box.lower / share, 1.0), np.minimum(box.upper / share, 1.0)
        fits = (np.bincount(self.middle, low) <= 1) & (np.bincount(self.middle, high) >= 1)
        lower[self._second] = np.where(fits[self.middle], low, 0.0)
        upper[self._second] = np.where(fits[self.middle], high, 1.0)
        return Intervals(lower, upper, np.zeros(self.space.n_pairs))

    def policy(self, inside: Policy) -> Policy:
        """Convert a policy of `space` to the original space."""
        return Policy.unchecked(self.outer, inside.probabilities[self.pairs])

    def most(self, intervals: Intervals, policy: Policy, cost: FloatArray) -> float:
        """Return the largest expected cost of an original policy, for costs (n_pairs,), over all models."""
        pi = np.ones(self.space.n_pairs)
        pi[self.pairs] = policy.probabilities
        V = core.dearest_values(self.space.native, intervals.lower, intervals.upper, pi, self.costs(cost))
        return float(V[0])
