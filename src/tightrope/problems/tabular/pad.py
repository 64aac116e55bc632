"""An MDP without loops, padded to paths of one length.

Its paths end where no row starts, some sooner than others. Every state stands once, in the layer of its longest path
from the start, and whoever comes sooner waits.
"""

import graphlib

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.problems.tabular.layout import MERGED, Layout, layout_of, tied
from tightrope.problems.tabular.rows import Indices, Start, checked_rows, checked_start

#: A layered state: its depth, the user's state, and whether that is only waited for.
Place = tuple[int, int, bool]


def pad(rows: ArrayLike, probabilities: ArrayLike, *, start: Start = 0, ties: ArrayLike | None = None) -> Layout:
    """Pad a graph without loops: rows (state, action, next_state), (n_rows, 3), and probabilities, (n_rows,).

    States where no row starts are where an episode is over. Only what can be reached from `start` is kept; a row of
    probability 0 counts as absent. Each move that skips layers leads through states in which one waits, which are
    shared by all who wait for the same state. Where several (state, action) have one law, `ties`, (n_rows,), says so:
    rows of the same number are the same outcome, and who shares one outcome shares all of them.

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
