"""A tabular MDP in layers: `unroll` repeats it over time, `pad` makes all paths of a graph without loops equally long.

Unrolled, every state has a copy for each step at which it can be reached. Padded, every state has one copy, in the
layer of its longest path from the start; shorter paths wait for it.
"""

import graphlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import listed, room, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.problems.layout import (
    LARGEST_NUMBER,
    MERGED,
    Indices,
    Layout,
    Start,
    checked_rows,
    checked_start,
    layout_of,
    tied,
)
from tightrope.space import FloatArray

#: The longest episode; layers are built one by one.
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

    Only states that can be reached from `start` within `n_steps` steps are kept.

    Parameters
    ----------
    rows : (n_rows, 3) state, action, next_state.
    probabilities : (n_rows,); a row of probability 0 counts as absent.
    n_steps : the length of an episode.
    start : the first state, or {state: probability}.
    steps : (n_rows,) the step, 0..n_steps-1, at which each row holds, if the MDP changes over time; otherwise a (state,
        action) has the same distribution at all steps, which the ties of the layout record.
    terminal : states in which the episode ends: it waits there to the last step, with loss and uses 0.
    ties : (n_rows,) labels of outcomes, as in `pad`.

    Returns
    -------
    Layout : the layered MDP, and the map back to the rows.

    Raises
    ------
    InvalidInputError : if the rows are not distributions, or a state is reached from which no row starts.

    Examples
    --------
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

    done = int(max(table[:, (0, 2)].max(), first_states.max(), over.max(initial=0))) + 1
    moves = _sorted_moves(table, P, at, over, done, 1 if steps is None else n_steps)
    layers, taken, source, target = _layers(moves, first_states, n_steps, timed=steps is not None)
    states = np.concatenate(layers)
    layout = layout_of(
        table,
        P,
        sizes=[len(states) for states in layers],
        state=np.where(states == done, MERGED, states),
        step=np.repeat(np.arange(n_steps + 1), [len(states) for states in layers]),
        waiting=states == done,
        timed=True,
        row=moves.row[taken],
        links=np.stack([source, moves.action[taken], target], axis=1),
        chances=chances,
    )
    return tied(layout, np.arange(len(table)) if ties is None else wholes(ties, "ties", (len(table),)))


class _Moves(NamedTuple):
    """The rows by step, state, action and next state; the rows of a state at a step are adjacent."""

    row: Indices  #: the row of the user's table; -1 where a terminal state stays
    key: Indices  #: step · (done + 1) + state, sorted
    action: Indices
    next_state: Indices
    done: int  #: the state that stands for all terminal ones


def _sorted_moves(table: Indices, P: FloatArray, at: Indices, over: Indices, done: int, n_stays: int) -> _Moves:
    """Sort the rows; all terminal states become the state `done`, which leads to itself."""
    used = np.flatnonzero((P > 0) & ~np.isin(table[:, 0], over))
    stays = np.arange(n_stays if len(over) else 0)
    row, at = np.concatenate([used, np.full(len(stays), -1)]), np.concatenate([at[used], stays])
    state, action, next_state = np.concatenate([table[used], np.tile((done, 0, done), (len(stays), 1))]).T
    next_state = np.where(np.isin(next_state, over), done, next_state)
    order = np.lexsort((next_state, action, state, at))
    return _Moves(row[order], at[order] * (done + 1) + state[order], action[order], next_state[order], done)


def _layers(
    moves: _Moves, first_states: Indices, n_steps: int, *, timed: bool
) -> tuple[list[Indices], Indices, Indices, Indices]:
    """Return the states of each layer, and every move between two layers: its number in `moves`, source and target."""
    layer, offset, done = first_states, len(first_states), moves.done
    layers, taken, source, target, n_moves = [layer], [], [], [], 0
    for k in range(n_steps):
        wanted = k * (done + 1) + layer if timed else layer
        first, last = np.searchsorted(moves.key, wanted), np.searchsorted(moves.key, wanted, side="right")
        count = last - first
        if not count.all():
            raise InvalidInputError(
                f"state {layer[np.argmin(count)]} can be reached at step {k}, but no row starts there then; "
                "add one (that stays, if nothing happens any more), or call the state terminal"
            )
        n_moves += int(count.sum())
        room(n_moves, f"what is unrolled over {n_steps} steps")
        here = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        taken.append(here)
        source.append(offset - len(layer) + np.repeat(np.arange(len(layer)), count))
        reached = moves.next_state[here]
        layer = np.unique(reached) if k < n_steps - 1 else np.array([done])
        place = np.searchsorted(layer, reached) if k < n_steps - 1 else 0
        target.append(offset + np.broadcast_to(place, here.shape))
        layers.append(layer)
        offset += len(layer)
    return layers, np.concatenate(taken), np.concatenate(source), np.concatenate(target)


#: A layered state: its depth, the user's state, and whether this is a state of waiting for it.
Place = tuple[int, int, bool]


def pad(rows: ArrayLike, probabilities: ArrayLike, *, start: Start = 0, ties: ArrayLike | None = None) -> Layout:
    """Pad a graph without loops: rows (state, action, next_state), (n_rows, 3), and probabilities, (n_rows,).

    An episode ends in a state where no row starts. Only states that can be reached from `start` are kept. A move that
    skips layers passes through states of waiting, which all moves to the same state share.

    Parameters
    ----------
    rows : (n_rows, 3) state, action, next_state.
    probabilities : (n_rows,); a row of probability 0 counts as absent.
    start : the first state, or {state: probability}.
    ties : (n_rows,) labels of outcomes: rows of the same label are the same outcome, and (state, action) pairs that
        share one outcome have the same distribution, with all outcomes in common.

    Returns
    -------
    Layout : the layered MDP, and the map back to the rows.

    Raises
    ------
    InvalidInputError : if the rows are not distributions, or contain a loop.

    Examples
    --------
    >>> long_or_short = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 1, 2)]
    >>> layout = pad(long_or_short, [1.0, 1.0, 1.0, 1.0])
    >>> layout.state_names(["home", "lane", "road", "town"])
    ('home', 'lane', 'waiting for road, step 1', 'road', 'end')
    """
    table, P, _ = checked_rows(rows, probabilities, None)
    first_states, chances = checked_start(start)
    used = np.flatnonzero(P > 0)
    depth = _longest_paths(table[used], first_states)
    used = used[np.isin(table[used, 0], list(depth))]
    inner = set(table[used, 0].tolist())
    if not inner.issuperset(first_states.tolist()):
        raise InvalidInputError(f"start is {start}, where no row starts: the episode would be over before it begins")
    n_steps = max(depth.values())

    # (depth, user's state or MERGED, waiting): every layered state, in the order in which they are numbered
    places = {(depth[s], s, False) for s in inner} | {(n_steps, MERGED, True)}
    links: list[tuple[Place, int, Place, int]] = []

    def arriving(at: int, s: int) -> Place:
        """Return the state to enter at this depth on the way to s: s itself, or the first state that waits for it."""
        goal = (depth[s], s, False) if s in inner else (n_steps, MERGED, True)
        first = here = (at, goal[1], True) if at < goal[0] else goal
        while here not in places:
            there = (here[0] + 1, goal[1], True) if here[0] + 1 < goal[0] else goal
            places.add(here)
            links.append((here, 0, there, -1))
            here = there
        return first

    for s in first_states.tolist():  # one first state may be on the way from another
        arriving(0, s)
    for i in used.tolist():
        s, a, s_next = table[i].tolist()
        links.append(((depth[s], s, False), a, arriving(depth[s] + 1, s_next), i))
    numbered = sorted(places)
    number = {place: j for j, place in enumerate(numbered)}
    links.sort(key=lambda link: (number[link[0]], link[1], number[link[2]]))
    depths, states, waiting = (np.array(column) for column in zip(*numbered, strict=True))
    layout = layout_of(
        table,
        P,
        sizes=np.bincount(depths).tolist(),
        state=states,
        step=depths,
        waiting=waiting,
        timed=False,
        row=np.array([i for *_, i in links]),
        links=np.array([(number[here], a, number[there]) for here, a, there, _ in links]),
        chances=chances,
    )
    return layout if ties is None else tied(layout, wholes(ties, "ties", (len(table),)))


def _longest_paths(table: Indices, first_states: Indices) -> dict[int, int]:
    """The number of moves of the longest path from a first state to each state that can be reached; refuses loops."""
    successors: dict[int, set[int]] = {}
    for s, _, s_next in table.tolist():
        successors.setdefault(s, set()).add(s_next)
    reached, to_visit = set(first_states.tolist()), first_states.tolist()
    while to_visit:
        new = successors.get(to_visit.pop(), set()) - reached
        reached |= new
        to_visit += new
    try:
        # given successors as predecessors, the sorter returns the reverse order
        sorter = graphlib.TopologicalSorter({s: sorted(successors.get(s, ())) for s in sorted(reached)})
        ends_first = list(sorter.static_order())
    except graphlib.CycleError as error:
        loop = " → ".join(str(s) for s in reversed(error.args[1]))
        raise InvalidInputError(f"states {loop} form a loop, which cannot be padded; unroll them over time") from error
    depth = dict.fromkeys(reached, 0)
    for s in reversed(ends_first):
        for s_next in successors.get(s, ()):
            depth[s_next] = max(depth[s_next], depth[s] + 1)
    return depth
