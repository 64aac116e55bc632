"""Tied dynamics: pairs with the same transition distribution.

An MDP that is unrolled over time repeats each (state, action) in every layer. If the copies are tied, their visits are
counted together, up to L times as many for each distribution. Losses and constraints are not tied.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import instance
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.space import LayeredSpace


class Ties:
    """Sets of tied pairs.

    Parameters
    ----------
    space : the space of the pairs.
    outcome : (n_tuples,) whole numbers, equal for tied tuples. Pairs that share one outcome must share all of them:
        they have one transition distribution ("law"), and their visits are counted together.
    pair_name : function(pair) -> its name in errors.

    Raises
    ------
    InvalidInputError : if two successors of one pair are tied, or tied pairs differ in their outcomes.

    Examples
    --------
    >>> space = LayeredSpace.from_tuples([1, 2, 2, 1], 1, [
    ...     (0, 0, 1), (0, 0, 2), (1, 0, 3), (1, 0, 4), (2, 0, 4), (3, 0, 5), (4, 0, 5)])
    >>> ties = Ties(space, [0, 1, 0, 1, 2, 3, 4])
    >>> ties
    Ties(4 laws for 5 pairs)
    >>> ties.law.tolist()
    [0, 0, 1, 2, 3]
    """

    def __init__(self, space: LayeredSpace, outcome: ArrayLike, pair_name: Callable[[int], str] | None = None) -> None:
        given = wholes(outcome, "outcome", (instance(space, "space", LayeredSpace).n_tuples,))
        self.space = space
        self.outcome: NDArray[np.int64] = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
        first = space.csr.pair_ptr[:-1]
        by_pair = np.lexsort((self.outcome, space.pair_of_tuple))  # sorts the outcomes of every pair
        ascending = self.outcome[by_pair]
        name = pair_name or self._numbers
        self._refuse_twice(ascending, name)
        # the smallest outcome of a pair identifies its distribution
        least, self.law = np.unique(ascending[first], return_inverse=True)
        self.n_laws = len(least)
        self._refuse_differences(ascending, name)

    def _numbers(self, pair: int) -> str:
        s, a = self.space.pairs[pair]
        return f"state {s}, action {a}"

    def _refuse_twice(self, ascending: NDArray[np.int64], name: Callable[[int], str]) -> None:
        twice = np.flatnonzero((np.diff(ascending) == 0) & (np.diff(self.space.pair_of_tuple) == 0))
        if len(twice):
            pair = int(self.space.pair_of_tuple[twice[0]])
            raise InvalidInputError(f"{name(pair)}: two of its successors are tied to each other")

    def _refuse_differences(self, ascending: NDArray[np.int64], name: Callable[[int], str]) -> None:
        """Refuse pairs that share an outcome but not all of them."""
        space, law = self.space, self.law[self.space.pair_of_tuple]
        owner = np.zeros(int(ascending.max()) + 1, dtype=np.int64)
        owner[ascending] = space.pair_of_tuple  # some pair that has the outcome
        times, members = np.bincount(ascending), np.bincount(self.law)
        differs = (self.law[owner[ascending]] != law) | (times[ascending] != members[law])
        if differs.any():
            j = int(np.argmax(differs))
            i, has = int(space.pair_of_tuple[j]), space.pair_of_tuple[ascending == ascending[j]]
            # this pair has the outcome or the distribution, but not both
            other = int(np.setxor1d(has, np.flatnonzero(self.law == law[j]))[0])
            raise InvalidInputError(
                f"{name(i)} and {name(other)} are tied, but have different successors: "
                "pairs that share an outcome must share all of them"
            )

    def pooled(self, N: NDArray[np.integer], M: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the visits of pairs (n_pairs,) and tuples (n_tuples,), each summed over all that are tied to it."""
        return self.visits(N)[self.law], _sums(self.outcome, M)[self.outcome]

    def visits(self, N: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the draws from each distribution, (n_laws,), from the visits of pairs (n_pairs,)."""
        return _sums(self.law, N)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ties):
            return NotImplemented
        return self.space == other.space and np.array_equal(self.outcome, other.outcome)

    def __hash__(self) -> int:
        return hash((self.space, self.n_laws))

    def __repr__(self) -> str:
        return f"Ties({self})"

    def __str__(self) -> str:
        return f"{self.n_laws} laws for {self.space.n_pairs} pairs"


def _sums(index: NDArray[np.int64], values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the sum of the values of each index; exact up to 2⁵³."""
    return np.bincount(index, values).astype(np.int64)
