"""Blocks: consecutive episodes that are played with one policy, and that one step learns from."""

from typing import NamedTuple

import numpy as np

from tightrope.learners.parts import WarmStart
from tightrope.learners.shared.counting import CountingState
from tightrope.space import FloatArray
from tightrope.storage.state import measure, numbers, part, state

#: After so many episodes blocks may be longer by one.
BLOCK_GROWTH = 250


@state
class BlockState(CountingState):
    """Counts, the measure that is played, and the block."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")  #: where the solver of the next mirror step begins
    multipliers: FloatArray = numbers(least=0)  #: (I,) the prices, per unit of the constraint
    losses: FloatArray = numbers(since=4)  #: (n_tuples,) sum of the losses of the block
    waiting: int = numbers(least=0, since=4)  #: how many they are
    last_use: FloatArray = numbers(since=4)  #: (I,) of the path before
    squares: FloatArray = numbers(least=0, since=4)  #: (I,) of the differences between uses of successive paths, summed
    steps: int = numbers(least=0)  #: m


class Block(NamedTuple):
    """The block after one more episode; nothing is `waiting` where the block has ended, and a step is due."""

    losses: FloatArray
    waiting: int
    last_use: FloatArray
    squares: FloatArray


def block_after(state: BlockState, f: FloatArray, met: FloatArray, most: int) -> Block:
    """Add a loss f (n_tuples,) and the constraints met on the path (I, L) to the block of at most `most` episodes."""
    use, waiting = met.sum(axis=1), state.waiting + 1
    squares = state.squares + (use - state.last_use) ** 2 if state.observed > 0 else state.squares
    if waiting < block_length(state, most):
        return Block(state.losses + f, waiting, use, squares)
    return Block(no_losses(f.size), 0, use, squares)


def block_loss(state: BlockState, f: FloatArray) -> FloatArray:
    """Return the mean loss of the block that f ends; f itself if the block has no other."""
    return f if state.waiting == 0 else (state.losses + f) / (state.waiting + 1)


def block_length(state: BlockState, most: int) -> int:
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
