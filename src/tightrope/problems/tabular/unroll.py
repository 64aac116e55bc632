"""Any MDP unrolled over time: layer k holds the states that can be met after k moves."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import listed, room, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.problems.tabular.layout import MERGED, Layout, layout_of, tied
from tightrope.problems.tabular.rows import LARGEST_NUMBER, Start, checked_rows, checked_start

#: The longest episode: one step after another is laid out.
MOST_STEPS = 1_000_000


def unroll(
    rows: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_steps: int,
    start: Start = 0,
    steps: ArrayLike | None = None,
    terminal: Iterable[int] = (),
    ties: ArrayLike | None = None,
) -> Layout:
    """Unroll rows (state, action, next_state), of shape (n_rows, 3), and their probabilities, (n_rows,).

    Only what can be reached from `start` in `n_steps` steps is kept; a row of probability 0 counts as absent.
    If the MDP changes over time, `steps`, (n_rows,), says at which step, 0..n_steps-1, each row holds; if it does not,
    a (state, action) has one law at all steps, and the layout's `ties` say so. In a `terminal` state the episode is
    over: it waits there to the last step, at no charge (rows that start there are left out). Where several
    (state, action), or one at several of the `steps`, have one law, `ties` says so as in `pad`.

    >>> up_or_stay = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    >>> layout = unroll(up_or_stay, [1.0, 1.0, 1.0], n_steps=3)
    >>> layout.space.layer_sizes, layout.state.tolist()
    ((1, 2, 2, 1), [0, 0, 1, 0, 1, -1])
    """
    n_steps = whole(n_steps, "n_steps", at_least=1, at_most=MOST_STEPS)
    table, P, at = checked_rows(rows, probabilities, steps)
    ends = {whole(s, "a terminal state", 0, LARGEST_NUMBER) for s in listed(terminal, "terminal")}
    over = np.array(sorted(ends), dtype=np.int64)
    first_states, chances = checked_start(start)
    if np.isin(first_states, over).any():
        raise InvalidInputError(f"start is {start}, a terminal state: the episode would be over before it begins")

    # terminal states become one more state, which has a row of its own (number -1): it stays
    done = int(max(table[:, (0, 2)].max(), first_states.max(), over.max(initial=0))) + 1
    used = np.flatnonzero((P > 0) & ~np.isin(table[:, 0], over))
    stays = np.arange(n_steps if steps is not None else 1) if len(over) else np.empty(0, dtype=np.int64)
    row, at = np.concatenate([used, np.full(len(stays), -1)]), np.concatenate([at[used], stays])
    state, action, next_state = np.concatenate([table[used], np.tile((done, 0, done), (len(stays), 1))]).T
    next_state = np.where(np.isin(next_state, over), done, next_state)
    order = np.lexsort((next_state, action, state, at))
    row, action, next_state = row[order], action[order], next_state[order]
    key = at[order] * (done + 1) + state[order]  # sorted: the rows of a state at a step stand together

    layer, offset = first_states, len(first_states)
    layers, moves, source, target, n_moves = [layer], [], [], [], 0
    for k in range(n_steps):
        wanted = layer if steps is None else k * (done + 1) + layer
        first, last = np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")
        count = last - first
        if not count.all():
            raise InvalidInputError(
                f"state {layer[np.argmin(count)]} can be met at step {k}, but no row starts there then; "
                "add one (that stays, if nothing happens any more), or call the state terminal"
            )
        n_moves += int(count.sum())
        room(n_moves, f"what is unrolled over {n_steps} steps")
        here = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        moves.append(here)
        source.append(offset - len(layer) + np.repeat(np.arange(len(layer)), count))
        layer = np.unique(next_state[here]) if k < n_steps - 1 else np.array([done])
        reached = np.searchsorted(layer, next_state[here]) if k < n_steps - 1 else 0
        target.append(offset + np.broadcast_to(reached, here.shape))
        layers.append(layer)
        offset += len(layer)

    move = np.concatenate(moves)
    states = np.concatenate(layers)
    layout = layout_of(
        table,
        P,
        sizes=[len(states) for states in layers],
        state=np.where(states == done, MERGED, states),
        step=np.repeat(np.arange(n_steps + 1), [len(states) for states in layers]),
        waiting=states == done,
        timed=True,
        row=row[move],
        links=np.stack([np.concatenate(source), action[move], np.concatenate(target)], axis=1),
        chances=chances,
    )
    return tied(layout, np.arange(len(table)) if ties is None else wholes(ties, "ties", (len(table),)))
