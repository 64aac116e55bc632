"""Unroll a tabular MDP over time: states that can be met again and again become states of layers.

A user's MDP has states 0.., actions 0.. and rows (state, action, next_state) with their probabilities. Over
n_steps steps, layer k of the unrolled space holds the states that can be met after k moves; the states after
the last move are merged into the single last state s_L. So the last step has one tuple (s, a, s_L) for each
pair, of probability 1, and what a move is charged there is the expectation over where it would have led:

    f(s, a, s_L) = Σ_s' P(s'|s,a) f(s, a, s').

No policy can tell the difference: expected losses, pair by pair, are the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.problems.options import whole
from tightrope.space import FloatArray, LayeredSpace

Indices = NDArray[np.int64]

#: What moves are charged, many at once: function(state, action, next_state, step) -> values.
MoveFunction = Callable[[Indices, Indices, Indices, Indices], ArrayLike]


@dataclass(frozen=True, kw_only=True, eq=False)
class Unrolled:
    """The layered model, and the way back to the user's own states and rows.

    Actions keep their numbers. A *move* is a row at a step: in the last step the moves of a pair are merged
    into one tuple, everywhere else each move is a tuple, and both stand in the same order.
    """

    mdp: LayeredMDP
    state: Indices  # (n_states,) the user's state; -1 for the last one, into which many are merged
    step: Indices  # (n_states,) how many moves come before
    rows: Indices  # (n_rows, 3) the user's rows, as they were given
    probabilities: FloatArray  # (n_rows,)
    row_of_move: Indices  # (n_moves,)
    last_pairs: Indices  # where in the moves each pair of the last step starts

    @property
    def space(self) -> LayeredSpace:
        return self.mdp.space

    @property
    def tuples(self) -> Indices:
        """(n_tuples, 4) the user's state, action, next_state (-1: merged) and the step of each tuple."""
        s, a, s_next = self.space.tuples.T
        return np.stack([self.state[s], a, self.state[s_next], self.step[s]], axis=1)

    def lay_out(self, values: ArrayLike | MoveFunction) -> FloatArray:
        """(n_tuples,) a loss or constraint, flat over `space.tuples`; in the last step, its expectation.

        `values` holds one value for each (state, action), for each (state, action, next_state), or for each
        row that was given to `unroll`; or it is a function(state, action, next_state, step) that takes arrays
        of moves.
        """
        row = self.row_of_move
        state, action, next_state = self.rows[row].T
        if callable(values):
            charged = np.asarray(values(state, action, next_state, self._step_of_move()), dtype=np.float64)
            if charged.shape not in ((), row.shape):
                raise InvalidInputError(f"the function returned shape {charged.shape}; expected {row.shape}")
            return self._merged(np.broadcast_to(charged, row.shape))

        table = np.asarray(values, dtype=np.float64)
        n_states, n_actions = int(self.rows[:, (0, 2)].max()) + 1, self.space.n_actions
        sizes = {1: (len(self.rows),), 2: (n_states, n_actions), 3: (n_states, n_actions, n_states)}
        if table.shape != sizes.get(table.ndim):
            raise InvalidInputError(
                f"values has shape {table.shape}; expected {sizes[1]}, one for each row, {sizes[2]}, one for "
                f"each (state, action), or {sizes[3]}, one for each (state, action, next_state)"
            )
        index = {1: (row,), 2: (state, action), 3: (state, action, next_state)}[table.ndim]
        return self._merged(table[index])

    def state_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """A name for each layered state, from the names of the user's states."""
        inner = zip(self.state[:-1].tolist(), self.step[:-1].tolist(), strict=True)
        return (*(f"{names[s]}, step {k}" for s, k in inner), "end")

    def _step_of_move(self) -> Indices:
        step = np.full(len(self.row_of_move), self.space.n_layers - 1)
        step[: self.last_pairs[0]] = self.step[self.space.tuples[: self.last_pairs[0], 0]]
        return step

    def _merged(self, charged: FloatArray) -> FloatArray:
        """Flat over moves in, flat over tuples out."""
        first = self.last_pairs[0]
        pairs, last = self.last_pairs - first, charged[first:]
        mean = np.add.reduceat(last * self.probabilities[self.row_of_move[first:]], pairs)
        # a mean lies between what it is a mean of: rounding must not carry it past a bound such as |f| <= 1
        mean = np.clip(mean, np.minimum.reduceat(last, pairs), np.maximum.reduceat(last, pairs))
        return np.concatenate([charged[:first], mean])


def unroll(
    rows: ArrayLike, probabilities: ArrayLike, *, n_steps: int, start: int = 0, steps: ArrayLike | None = None
) -> Unrolled:
    """Unroll rows (state, action, next_state), of shape (n_rows, 3), and their probabilities, (n_rows,).

    Only what can be reached from `start` in `n_steps` steps is kept; a row of probability 0 counts as absent.
    If the MDP changes over time, `steps`, (n_rows,), says at which step, 0..n_steps-1, each row holds.

    >>> up_or_stay = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    >>> unrolled = unroll(up_or_stay, [1.0, 1.0, 1.0], n_steps=3)
    >>> unrolled.space.layer_sizes, unrolled.state.tolist()
    ((1, 2, 2, 1), [0, 0, 1, 0, 1, -1])
    """
    n_steps = whole(n_steps, "n_steps", at_least=1)
    table, P, at = _checked_rows(rows, probabilities, steps)
    n_states = int(max(table[:, (0, 2)].max(), whole(start, "start", at_least=0))) + 1
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], at))
    _check_distributions(table[order], P[order], at[order])
    order = order[P[order] > 0]
    _, action, next_state = table[order].T
    key = at[order] * n_states + table[order, 0]  # sorted: the moves of a state at a step stand together

    layer, offset = np.array([start]), 0
    layers, source, target, moves = [], [], [], []
    for k in range(n_steps):
        wanted = layer if steps is None else k * n_states + layer
        first, last = np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")
        count = last - first
        if not count.all():
            raise InvalidInputError(
                f"state {layer[np.argmin(count)]} can be met at step {k}, but no row starts there then; "
                "add one (that stays, if nothing happens any more)"
            )
        here = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        layers.append(layer)
        moves.append(here)
        source.append(offset + np.repeat(np.arange(len(layer)), count))
        offset += len(layer)
        layer = np.unique(next_state[here])
        target.append(offset + np.searchsorted(layer, next_state[here]))

    a = action[moves[-1]]
    pairs = np.flatnonzero(np.diff(source[-1], prepend=-1) | np.diff(a, prepend=a[0]))
    n_inner = sum(len(here) for here in moves[:-1])
    source[-1], target[-1] = source[-1][pairs], np.full(len(pairs), offset)
    kept = np.concatenate([*moves[:-1], moves[-1][pairs]])
    # sorted and unique by construction: layer by layer, each in the order of the rows
    tuples = np.stack([np.concatenate(source), action[kept], np.concatenate(target)], axis=1)
    sizes = [len(states) for states in layers] + [1]
    space = LayeredSpace(sizes, int(table[:, 1].max()) + 1, tuples)
    transitions = np.ones(space.n_tuples)
    transitions[:n_inner] = P[order][kept[:n_inner]]
    return Unrolled(
        mdp=LayeredMDP(space, transitions),
        state=np.concatenate([*layers, [-1]]),
        step=np.repeat(np.arange(n_steps + 1), sizes),
        rows=table,
        probabilities=P,
        row_of_move=order[np.concatenate(moves)],
        last_pairs=n_inner + pairs,
    )


def _checked_rows(
    rows: ArrayLike, probabilities: ArrayLike, steps: ArrayLike | None
) -> tuple[Indices, FloatArray, Indices]:
    table = np.asarray(rows)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0:
        raise InvalidInputError(f"rows has shape {table.shape}; expected (n_rows, 3): state, action, next_state")
    at = np.zeros(len(table), dtype=np.int64) if steps is None else np.asarray(steps)
    if at.shape != (len(table),):
        raise InvalidInputError(f"steps has shape {at.shape}; expected ({len(table)},)")
    for what, numbers in (("rows", table), ("steps", at)):
        if not np.issubdtype(numbers.dtype, np.integer):
            raise InvalidInputError(f"{what} holds {numbers.dtype}; states, actions and steps are whole numbers")
        if (numbers < 0).any():
            j = int(np.argmax((numbers.reshape(len(table), -1) < 0).any(axis=1)))
            raise InvalidInputError(f"row {j} of {what} is {numbers[j]}; states, actions and steps count from 0")
    P = flat(np.array(probabilities, dtype=np.float64), len(table), "probabilities")
    if (P < 0).any():
        raise InvalidInputError(f"row {np.argmax(P < 0)} has probability {P.min()}; it cannot be negative")
    return table.astype(np.int64), P, at.astype(np.int64)


def _check_distributions(table: Indices, P: FloatArray, at: Indices) -> None:
    """Sorted rows: none may be given twice, and those of a pair must sum to one at every step."""
    new_pair = np.ones(len(table), dtype=bool)
    new_pair[1:] = (np.diff(table[:, :2], axis=0) != 0).any(axis=1) | (np.diff(at) != 0)
    twice = np.flatnonzero(~new_pair[1:] & (np.diff(table[:, 2]) == 0))
    if len(twice):
        s, a, s_next = table[twice[0]]
        raise InvalidInputError(f"row ({s}, {a}, {s_next}) is given twice; add up its probabilities")
    totals = np.add.reduceat(P, np.flatnonzero(new_pair))
    wrong = np.abs(totals - 1) > SUM_TOLERANCE
    if wrong.any():
        i = int(np.argmax(wrong))
        s, a, _ = table[new_pair][i]
        raise InvalidInputError(f"probabilities from state {s} under action {a} sum to {totals[i]:.12g}, not 1")
