"""Blocks: consecutive episodes that are played with one policy, and that one step learns from."""

from typing import NamedTuple, Protocol

import numpy as np

from tightrope.space import FloatArray

#: After so many episodes blocks may be longer by one.
BLOCK_GROWTH = 250


class InBlocks(Protocol):
    """The fields of a state that describe its block."""

    @property
    def observed(self) -> int:
        """Episodes so far."""
        ...

    @property
    def losses(self) -> FloatArray:
        """(n_tuples,) sum of the losses of the block."""
        ...

    @property
    def waiting(self) -> int:
        """How many losses that are."""
        ...

    @property
    def last_use(self) -> FloatArray:
        """(I,) the use of the last path."""
        ...

    @property
    def squares(self) -> FloatArray:
        """(I,) the sum of the squares of the differences between the uses of successive paths."""
        ...


class Block(NamedTuple):
    """The block after one more episode; nothing is `waiting` where the block has ended, and a step is due."""

    losses: FloatArray
    waiting: int
    last_use: FloatArray
    squares: FloatArray


def block_after(state: InBlocks, f: FloatArray, met: FloatArray, most: int) -> Block:
    """Add a loss f (n_tuples,) and the constraints met on the path (I, L) to the block of at most `most` episodes."""
    use, waiting = met.sum(axis=1), state.waiting + 1
    squares = state.squares + (use - state.last_use) ** 2 if state.observed > 0 else state.squares
    if waiting < block_length(state, most):
        return Block(state.losses + f, waiting, use, squares)
    return Block(no_losses(f.size), 0, use, squares)


def block_loss(state: InBlocks, f: FloatArray) -> FloatArray:
    """Return the mean loss of the block that f ends; f itself if the block has no other."""
    return f if state.waiting == 0 else (state.losses + f) / (state.waiting + 1)


def block_length(state: InBlocks, most: int) -> int:
    """Return how many episodes are in the block of the episode just played."""
    return min(most, 1 + (state.observed + 1) // BLOCK_GROWTH)


def no_losses(n_tuples: int) -> FloatArray:
    """Return the sum of no losses, which takes no memory."""
    return np.broadcast_to(0.0, (n_tuples,))


def standard_deviations(squares: FloatArray, t: int) -> FloatArray:
    """Return σ (I,) of the use of a path, given the sum of squares over t paths.

    Successive paths have nearly the same policy: half of the mean square of their difference is a variance, even while
    the mean changes.
    """
    sigma: FloatArray = np.sqrt(squares / 2 / max(t - 1, 1))
    return sigma
