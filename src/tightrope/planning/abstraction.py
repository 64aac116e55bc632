"""Classes of states that constraints cannot tell apart, and planning with a model that is known between them.

States of a layer are in one class if every action uses the same of every budget there, and is as likely to lead to each
class of the next layer: who chooses actions by class alone uses what the classes say, wherever in them it is.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.dynamic_programming import Intervals
from tightrope.space import FloatArray, LayeredSpace

#: Numbers that differ by less are the same to a class.
DIGITS = 9


def classes_of(mdp: LayeredMDP, uses: FloatArray) -> NDArray[np.int64]:
    """(n_states,) the class of each state, for uses (I, n_pairs): the coarsest there are, by one pass backwards."""
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
    """(n_tuples,) how likely each pair is to lead to the class of the tuple's last state."""
    middle = Halves(mdp.space, classes).middle
    likely = np.bincount(middle, mdp.transitions).astype(np.float64)
    return likely[middle]


class Halves:
    """A space with every step in two: from the pair to the class of the next state, and from there to the state.

    Between pair and class the law is known, so that intervals are about the second half alone.
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
        """(n_pairs,) which pairs of `space` those outside are."""
        _, at = np.unique(self.pair, return_index=True)
        pairs: NDArray[np.int64] = self.space.pair_of_tuple[self._first[at]]
        return pairs

    def costs(self, outside: FloatArray) -> FloatArray:
        """Costs (…, n_pairs) outside, in `space`: paid in the first half."""
        inside = np.zeros((*outside.shape[:-1], self.space.n_pairs))
        inside[..., self.pairs] = outside
        return inside

    def intervals(self, box: Intervals, likely: FloatArray) -> Intervals:
        """Those of a box that agree with what is known: `likely`, (n_tuples,), the law of the classes.

        Where none does, a class is free.
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
        """A policy of `space`, outside."""
        return Policy.unchecked(self.outer, inside.probabilities[self.pairs])

    def most(self, intervals: Intervals, policy: Policy, cost: FloatArray) -> float:
        """What a policy outside costs at most, of costs (n_pairs,) outside, whichever model it is."""
        pi = np.ones(self.space.n_pairs)
        pi[self.pairs] = policy.probabilities
        V = core.dearest_values(self.space.native, intervals.lower, intervals.upper, pi, self.costs(cost))
        return float(V[0])
