"""A tabular MDP as its user gives it (rows, probabilities, start), and its layout in layers.

`Layout` is what `unroll` and `pad` return: a layered model, and the map back to the user's states, actions and rows.
Both merge what comes after the end: terminal states into one that waits, and the targets of the last moves into the
single last state. A pair that leads there has one tuple for several moves, whose value is the expectation over them:

    f(s, a, merged) = Σ_s' P(s'|s,a) f(s, a, s') / Σ_s' P(s'|s,a)    over the s' that are merged.

This leaves the expected loss of every policy unchanged, pair by pair. A random start is drawn in a step of its own,
before the first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import real, shown, texts, whole
from tightrope.arguments.arrays import floats, wholes
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties

#: The largest number of a state, an action or a step: products of two of them have room in 64 bits.
LARGEST_NUMBER = 2**31 - 1

Indices = NDArray[np.int64]

#: The state where episodes start, or {state: probability}.
Start = int | Mapping[int, float]


def checked_start(start: Start) -> tuple[Indices, FloatArray | None]:
    """Return the states of the first layer, ascending, and their probabilities (None if there is only one state)."""
    if not isinstance(start, Mapping):
        return np.array([whole(start, "start", 0, LARGEST_NUMBER)]), None
    given = {whole(s, "a state of start", 0, LARGEST_NUMBER): real(p) for s, p in start.items()}
    chances = {s: -1.0 if p is None else p for s, p in given.items() if p != 0}
    total = sum(chances.values())
    if not (chances and min(chances.values()) > 0 and abs(total - 1) <= SUM_TOLERANCE):
        raise InvalidInputError(f"the probabilities of start are {shown(start)}; they must be positive and sum to 1")
    states = sorted(chances)
    return np.array(states), np.array([chances[s] for s in states])


def checked_rows(
    rows: ArrayLike, probabilities: ArrayLike, steps: ArrayLike | None
) -> tuple[Indices, FloatArray, Indices]:
    """Return rows, probabilities and steps as arrays, after checking that they are distributions without duplicates."""
    table = wholes(rows, "rows", ("n_rows", 3))
    if len(table) == 0:
        raise InvalidInputError("rows is empty; expected (n_rows, 3): state, action, next_state")
    at = np.zeros(len(table), dtype=np.int64) if steps is None else wholes(steps, "steps", (len(table),))
    for what, numbers in (("rows", table), ("steps", at)):
        outside = (numbers < 0) | (numbers > LARGEST_NUMBER)
        if outside.any():
            j = int(np.argmax(outside.reshape(len(table), -1).any(axis=1)))
            raise InvalidInputError(
                f"row {j} of {what} is {numbers[j]}; states, actions and steps count from 0 to {LARGEST_NUMBER}"
            )
    P = flat(probabilities, len(table), "probabilities").copy()
    if (P < 0).any():
        raise InvalidInputError(f"row {np.argmax(P < 0)} has probability {P.min()}; it cannot be negative")
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], at))
    _check_distributions(table[order], P[order], at[order])
    return table, P, at


def _check_distributions(table: Indices, P: FloatArray, at: Indices) -> None:
    """Refuse duplicates among sorted rows, and pairs whose probabilities do not sum to one at a step."""
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


#: The loss or use of many moves at once: function(state, action, next_state, step) -> values.
MoveFunction = Callable[[Indices, Indices, Indices, Indices], ArrayLike]

#: Stand for a user's state: several merged states, or the state before a random start.
MERGED, START = -1, -2


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """A user's MDP in layers. Actions keep their numbers.

    A *move* is one of the user's rows (state, action, next_state) at one place of the layered space. Most moves have a
    tuple of their own; where states are merged, several moves of a pair share one. Waiting and the draw of a random
    start are tuples without a move, with the loss and uses 0.
    """

    mdp: LayeredMDP
    state: Indices  # (n_states,) the user's state, or the one waited for; MERGED or START where there is none
    step: Indices  # (n_states,) the number of moves before it; in a padded graph, the largest number
    waiting: NDArray[np.bool_]  # (n_states,) whether this is a state of waiting, without a choice
    timed: bool  # whether a user's state has a copy for every step at which it can be reached
    rows: Indices  # (n_rows, 3) the user's rows, as given
    probabilities: FloatArray  # (n_rows,)
    row_of_move: Indices  # (n_moves,)
    tuple_of_move: Indices  # (n_moves,) in ascending order
    ties: Ties | None = None  # pairs with the same transition distribution, if there are any

    @property
    def space(self) -> LayeredSpace:
        return self.mdp.space

    @property
    def tuples(self) -> Indices:
        """(n_tuples, 4) the user's state, action, next_state (or MERGED or START) and the step of each tuple."""
        s, a, s_next = self.space.tuples.T
        return np.stack([self.state[s], a, self.state[s_next], self.step[s]], axis=1)

    def lay_out(self, values: ArrayLike | MoveFunction) -> FloatArray:
        """Return a loss or constraint (n_tuples,), flat over `space.tuples`; merged moves get their expectation.

        Parameters
        ----------
        values : one value for each row that was given, (n_rows,), for each (state, action), or for each (state,
            action, next_state); or a function(state, action, next_state, step) that takes arrays of moves. If the
            function returns several values for each move, (…, n_moves), the result is (…, n_tuples).

        Raises
        ------
        InvalidInputError : if the shape is none of these.
        """
        row = self.row_of_move
        state, action, next_state = self.rows[row].T
        if callable(values):
            step = self.step[self.space.tuples[self.tuple_of_move, 0]]
            charged = floats(values(state, action, next_state, step), "the value of the function", None)
            if charged.shape and charged.shape[-1] != len(row):
                raise InvalidInputError(f"the function returned shape {charged.shape}; expected {row.shape}")
            return self._merged(np.broadcast_to(charged, (*charged.shape[:-1], len(row))))

        table = floats(values, "values", None)
        n_states, n_actions = int(self.rows[:, (0, 2)].max()) + 1, int(self.rows[:, 1].max()) + 1
        sizes = {1: (len(self.rows),), 2: (n_states, n_actions), 3: (n_states, n_actions, n_states)}
        if table.shape != sizes.get(table.ndim):
            raise InvalidInputError(
                f"values has shape {table.shape}; expected {sizes[1]}, one for each row, {sizes[2]}, one for "
                f"each (state, action), or {sizes[3]}, one for each (state, action, next_state)"
            )
        index = {1: (row,), 2: (state, action), 3: (state, action, next_state)}[table.ndim]
        return self._merged(table[index])

    def state_names(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a name for each layered state, from the names of the user's states (or from their numbers)."""
        names = texts(names, "names")
        if names and len(names) <= self.state.max():
            raise InvalidInputError(f"names has {len(names)} entries, none for state {self.state.max()}")
        columns = zip(self.state.tolist(), self.step.tolist(), self.waiting.tolist(), strict=True)
        shown = []
        for s, k, waiting in columns:
            name = {MERGED: "done", START: "start"}.get(s) or (names[s] if names else f"state {s}")
            if waiting and s >= 0:
                name = f"waiting for {name}"
            shown.append(f"{name}, step {k}" if s != START and (self.timed or waiting) else name)
        return (*shown[:-1], "end")

    def _merged(self, charged: FloatArray) -> FloatArray:
        """Return values over tuples (last axis) from values over moves: their mean, weighted by probability."""
        flat = np.zeros((*charged.shape[:-1], self.space.n_tuples))
        flat[..., self.tuple_of_move] = charged
        merged = np.bincount(self.tuple_of_move, minlength=self.space.n_tuples)[self.tuple_of_move] > 1
        if merged.any():
            p, charged = self.probabilities[self.row_of_move[merged]], charged[..., merged]
            first = np.flatnonzero(np.diff(self.tuple_of_move[merged], prepend=-1))
            mean = np.add.reduceat(p * charged, first, axis=-1) / np.add.reduceat(p, first)
            # rounding must not carry a mean beyond its terms, past a bound such as |f| <= 1
            least, most = (extreme.reduceat(charged, first, axis=-1) for extreme in (np.minimum, np.maximum))
            flat[..., self.tuple_of_move[merged][first]] = np.clip(mean, least, most)
        return flat


def layout_of(
    table: Indices,
    P: FloatArray,
    *,
    sizes: list[int],
    state: Indices,
    step: Indices,
    waiting: NDArray[np.bool_],
    timed: bool,
    row: Indices,
    links: Indices,
    chances: FloatArray | None,
) -> Layout:
    """Return the layout of moves and waits (sorted links; row -1 is a wait); equal links become one tuple.

    With `chances`, one more state comes first, from which the states of layer 0 are drawn, in this order.
    """
    p = np.where(row >= 0, P[row], 1.0)
    if chances is not None:
        n_first = len(chances)
        draws = np.arange(n_first)[:, None] * (0, 0, 1)
        links = np.concatenate([draws, links + np.array([1, 0, 0])]) + np.array([0, 0, 1])
        row, p = np.concatenate([np.full(n_first, -1), row]), np.concatenate([chances, p])
        sizes = [1, *sizes]
        state, step = np.concatenate([[START], state]), np.concatenate([[-1], step])
        waiting = np.concatenate([[False], waiting])

    new = np.ones(len(links), dtype=bool)
    new[1:] = (np.diff(links, axis=0) != 0).any(axis=1)
    n_actions = max(int(table[:, 1].max()), int(links[:, 1].max())) + 1
    space = LayeredSpace(sizes, n_actions, links[new])
    transitions = np.add.reduceat(p, np.flatnonzero(new))
    alone = space.expand_to_tuples(space.successors_per_pair) == 1
    transitions[alone] = 1.0  # exactly one: the sum differs only by rounding
    moves = row >= 0
    return Layout(
        mdp=LayeredMDP(space, transitions),
        state=state,
        step=step,
        waiting=waiting,
        timed=timed,
        rows=table,
        probabilities=P,
        row_of_move=row[moves],
        tuple_of_move=(np.cumsum(new) - 1)[moves],
    )


def tied(layout: Layout, labels: Indices, place: Callable[[int], str] | None = None) -> Layout:
    """Return the layout with ties: rows of the same label, (n_rows,), are the same outcome of tied distributions.

    Pairs with one successor and tuples without a move are not tied. Errors name the `place` of a row.
    """
    labels = np.unique(labels, return_inverse=True)[1].reshape(-1)
    space, P, label = layout.space, layout.probabilities, labels[layout.row_of_move]

    def name(row: int) -> str:
        return f"row {row} {tuple(layout.rows[row].tolist())}" if place is None else place(row)

    alone = space.successors_per_pair[space.pair_of_tuple[layout.tuple_of_move]] == 1
    # the label of a tuple is the least label of its moves
    least = np.full(space.n_tuples, np.iinfo(np.int64).max)
    np.minimum.at(least, layout.tuple_of_move[~alone], label[~alone])
    own = least == np.iinfo(np.int64).max
    outcome = np.where(own, 1 + int(label.max(initial=0)) + np.arange(space.n_tuples), least)
    first_move = np.searchsorted(layout.tuple_of_move, space.csr.pair_ptr)
    ties = Ties(space, outcome, lambda i: name(int(layout.row_of_move[first_move[i]])))

    used = np.flatnonzero(P > 0)
    first = used[np.unique(labels[used], return_index=True)[1]]
    model = first[np.searchsorted(labels[first], labels[used])]
    for i in np.flatnonzero(np.abs(P[used] - P[model]) > SUM_TOLERANCE)[:1].tolist():
        raise InvalidInputError(
            f"{name(int(used[i]))} and {name(int(model[i]))} are tied, but their probabilities are {P[used[i]]:.9g} "
            f"and {P[model[i]]:.9g}"
        )
    return replace(layout, ties=ties if ties.n_laws < space.n_pairs else None)
