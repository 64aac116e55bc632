"""Visits of pairs and tuples, in epochs: the epoch rule, and what the counts say of the dynamics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import instance, wholes
from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties

#: No count is larger: a float holds it, and sums of many are still whole numbers of 64 bits.
LARGEST = 2**53


class Counts:
    """How often each pair and tuple was visited: before the epoch (N, M) and inside it (n, m; 32 bits are enough).

    Counts do not change: one more episode, or a new epoch, makes new ones.
    """

    def __init__(self, space: LayeredSpace, ties: Ties | None = None, growth: float = 1.0) -> None:
        self.space = space
        self.ties = ties  #: pairs that share one law: the rule of epochs is about laws
        self.growth = growth  #: an epoch ends when some count has grown by this share
        self.N = np.zeros(space.n_pairs, dtype=np.int64)
        self.M = np.zeros(space.n_tuples, dtype=np.int64)
        self.epoch = 1
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.n = np.zeros(self.space.n_pairs, dtype=np.int32)
        self.m = np.zeros(self.space.n_tuples, dtype=np.int32)
        self._count_laws()

    def _count_laws(self) -> None:
        """What follows from the counts of pairs: those of laws, before the epoch and inside it."""
        if self.ties is not None:
            self._law_N, self._law_n = self.ties.visits(self.N), self.ties.visits(self.n)

    def after(self, path: NDArray[np.int64]) -> "tuple[Counts, bool]":
        """Return the counts with one more episode, given the tuple of each of its steps, and whether the epoch ends.

        It does when some pair (or law) was visited as often inside the epoch as before it, and once: n >= max(1, N),
        or growth · N in place of N; and when an epoch has counted a pair 2³¹ − 1 times.
        """
        csr = self.space.native
        n, m, over = core.count(csr, path, self.N, self.growth, self.n, self.m)
        if self.ties is None:
            return self._with({"n": n, "m": m}), over
        law_n, over = core.count_laws(csr, path, self.ties.law, self._law_N, self.growth, self._law_n)
        return self._with({"n": n, "m": m, "_law_n": law_n}), over

    def _with(self, changes: dict[str, Any]) -> "Counts":
        """These, but for what changed; `copy.copy` takes four times as long."""
        counts = object.__new__(Counts)
        counts.__dict__ = self.__dict__ | changes
        return counts

    def counted(self, path: NDArray[np.int64]) -> "Counts":
        """Return these counts and one more episode, in a new epoch if that ends the old one."""
        counts, over = self.after(path)
        return counts.next_epoch() if over else counts

    def next_epoch(self) -> "Counts":
        """The counts of the epoch folded in."""
        N, M = self.totals()
        counts = self._with({"N": N, "M": M, "epoch": self.epoch + 1})
        counts._begin_epoch()
        return counts

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Visits of every pair and every tuple so far, the epoch included."""
        return self.N + self.n, self.M + self.m

    @property
    def episodes(self) -> int:
        """The number of counted episodes, which is the number of visits to the first state."""
        first_pairs = slice(self.space.csr.state_ptr[1])
        return int(self.N[first_pairs].sum()) + int(self.n[first_pairs].sum())

    @property
    def laws(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Visits of every pair and every tuple, and of all that are tied to it, before the epoch."""
        return (self.N, self.M) if self.ties is None else self.ties.pooled(self.N, self.M)

    @property
    def laws_so_far(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, the epoch included."""
        return self.totals() if self.ties is None else self.ties.pooled(*self.totals())

    def state(self) -> dict[str, Any]:
        """Return the state that `restored` accepts."""
        return {"N": self.N, "M": self.M, "n": self.n, "m": self.m, "epoch": self.epoch}

    def restored(self, state: dict[str, Any]) -> "Counts":
        """Return the counts that gave this `state`; raise `InvalidInputError` for counts that no paths can leave."""
        csr = self.space.csr
        for visits, moves in (("N", "M"), ("n", "m")):
            N, M = state[visits].astype(np.int64), state[moves].astype(np.int64)
            if M.min() < 0 or M.max() > LARGEST:
                raise InvalidInputError(f"the counts {moves} are from {M.min()} to {M.max()}; they are 0 or more")
            if not np.array_equal(np.add.reduceat(M, csr.pair_ptr[:-1]), N):
                raise InvalidInputError(f"the counts {visits} and {moves} contradict each other")
            came, left = np.bincount(csr.successor, M), np.add.reduceat(N, csr.state_ptr[:-2])
            if not np.array_equal(came[1:-1], left[1:]):
                raise InvalidInputError(f"the counts {moves} are of no paths: what comes to a state also leaves it")
        counts = self._with(state)
        if not 1 <= counts.epoch <= 1 + counts.episodes:
            raise InvalidInputError(f"the epoch is {counts.epoch} after {counts.episodes} episodes; the first is 1")
        counts._count_laws()
        return counts


def checked_counts(space: LayeredSpace, N: Any, M: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Visits of every pair and every tuple of a space, as kernels take them."""
    instance(space, "space", LayeredSpace)
    return wholes(N, "N", (space.n_pairs,)), wholes(M, "M", (space.n_tuples,))


def frequencies(space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> FloatArray:
    """(n_tuples,) P̂(s'|s,a) = M(s,a,s') / max(1, N(s,a)): zeros for a pair without visits."""
    N, M = checked_counts(space, N, M)
    P_hat: FloatArray = core.frequencies(space.native, N, M)
    return P_hat
