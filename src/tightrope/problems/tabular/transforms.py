"""From a user's tabular MDP to layers: unrolled over time, or padded to paths of one length.

A user's MDP has states 0.., actions 0.. and rows (state, action, next_state) with their probabilities.

`unroll` takes any MDP over n_steps steps: layer k holds the states that can be met after k moves. `pad` takes one
without loops, whose paths end where no row starts, some sooner than others: every state stands once, in the layer of
its longest path from the start, and whoever comes sooner waits. In both, what is over is merged: terminal states into
one that waits, all that comes after the last move into the single last state. There a pair has one tuple for several
moves, and what it is charged is the expectation over where it would have led:

    f(s, a, merged) = Σ_s' P(s'|s,a) f(s, a, s') / Σ_s' P(s'|s,a)    over the s' that are merged.

No policy can tell the difference: expected losses, pair by pair, are the same. A random start is drawn in a step of
its own, before the first.
"""

import graphlib
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import whole
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.problems.tabular.layout import MERGED, START, Indices, Layout
from tightrope.space import FloatArray, LayeredSpace

__all__ = ["Indices", "Layout", "Start", "pad", "unroll"]

#: A layered state of a padded graph: its depth, the user's state, and whether that is only waited for.
Place = tuple[int, int, bool]

#: The state where episodes start, or {state: probability}.
Start = int | Mapping[int, float]


def unroll(
    rows: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_steps: int,
    start: Start = 0,
    steps: ArrayLike | None = None,
    terminal: Iterable[int] = (),
) -> Layout:
    """Unroll rows (state, action, next_state), of shape (n_rows, 3), and their probabilities, (n_rows,).

    Only what can be reached from `start` in `n_steps` steps is kept; a row of probability 0 counts as absent.
    If the MDP changes over time, `steps`, (n_rows,), says at which step, 0..n_steps-1, each row holds. In a `terminal`
    state the episode is over: it waits there to the last step, at no charge (rows that start there are left out).

    >>> up_or_stay = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    >>> layout = unroll(up_or_stay, [1.0, 1.0, 1.0], n_steps=3)
    >>> layout.space.layer_sizes, layout.state.tolist()
    ((1, 2, 2, 1), [0, 0, 1, 0, 1, -1])
    """
    n_steps = whole(n_steps, "n_steps", at_least=1)
    table, P, at = _checked_rows(rows, probabilities, steps)
    over = np.array(sorted({whole(s, "a terminal state", at_least=0) for s in terminal}), dtype=np.int64)
    first_states, chances = _checked_start(start)
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
    layers, moves, source, target = [layer], [], [], []
    for k in range(n_steps):
        wanted = layer if steps is None else k * (done + 1) + layer
        first, last = np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")
        count = last - first
        if not count.all():
            raise InvalidInputError(
                f"state {layer[np.argmin(count)]} can be met at step {k}, but no row starts there then; "
                "add one (that stays, if nothing happens any more), or call the state terminal"
            )
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
    return _layout(
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


def pad(rows: ArrayLike, probabilities: ArrayLike, *, start: Start = 0) -> Layout:
    """Pad a graph without loops: rows (state, action, next_state), (n_rows, 3), and probabilities, (n_rows,).

    States where no row starts are where an episode is over. Only what can be reached from `start` is kept; a row of
    probability 0 counts as absent. Each move that skips layers leads through states in which one waits, which are
    shared by all who wait for the same state.

    >>> long_or_short = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 1, 2)]
    >>> layout = pad(long_or_short, [1.0, 1.0, 1.0, 1.0])
    >>> layout.state_names(["home", "lane", "road", "town"])
    ('home', 'lane', 'waiting for road, step 1', 'road', 'end')
    """
    table, P, _ = _checked_rows(rows, probabilities, None)
    first_states, chances = _checked_start(start)
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
        """Where to go at this depth on the way to s: there, or into the first of the states that wait for it."""
        goal = (depth[s], s, False) if s in inner else (n_steps, MERGED, True)
        first = here = (at, goal[1], True) if at < goal[0] else goal
        while here not in places:
            there = (here[0] + 1, goal[1], True) if here[0] + 1 < goal[0] else goal
            places.add(here)
            links.append((here, 0, there, -1))
            here = there
        return first

    for s in first_states.tolist():  # a state to start in may lie on the way from another one
        arriving(0, s)
    for i in used.tolist():
        s, a, s_next = table[i].tolist()
        links.append(((depth[s], s, False), a, arriving(depth[s] + 1, s_next), i))
    numbered = sorted(places)
    number = {place: j for j, place in enumerate(numbered)}
    links.sort(key=lambda link: (number[link[0]], link[1], number[link[2]]))
    depths, states, waiting = (np.array(column) for column in zip(*numbered, strict=True))
    return _layout(
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
        # the sorter takes predecessors, so this order begins at the ends
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


def _layout(
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
    """Moves and waits (links, sorted; row -1: a wait) into a layout; those with equal links become one tuple.

    With `chances`, the states of layer 0, in this order, are reached by lot from one more state before them.
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
    transitions[alone] = 1.0  # a sum of probabilities that make one, up to rounding
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


def _checked_start(start: Start) -> tuple[Indices, FloatArray | None]:
    """The states of the first layer, ascending, and with which chances they are drawn (None: there is just one)."""
    if not isinstance(start, Mapping):
        return np.array([whole(start, "start", at_least=0)]), None
    chances = {whole(s, "a state of start", at_least=0): float(p) for s, p in start.items() if p != 0}
    total = sum(chances.values())
    if not (chances and min(chances.values()) > 0 and abs(total - 1) <= SUM_TOLERANCE):
        raise InvalidInputError(f"the probabilities of start are {dict(start)}; they must be positive and sum to 1")
    states = sorted(chances)
    return np.array(states), np.array([chances[s] for s in states])


def _checked_rows(
    rows: ArrayLike, probabilities: ArrayLike, steps: ArrayLike | None
) -> tuple[Indices, FloatArray, Indices]:
    """Rows, probabilities and steps as arrays; none may be given twice, those of a pair sum to one at every step."""
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
    table, at = table.astype(np.int64), at.astype(np.int64)
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], at))
    _check_distributions(table[order], P[order], at[order])
    return table, P, at


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
