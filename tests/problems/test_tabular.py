"""Unrolling over time and padding, against twins made of dictionaries and against the MDP itself."""

import itertools
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs
from tightrope import InvalidInputError, Policy, pad, unroll
from tightrope.planning.hindsight import best_policy
from tightrope.problems.layout import MERGED, START, Layout

Law = dict[tuple[int, int], dict[int, float]]  # (state, action) -> next state -> probability


class Tabular(NamedTuple):
    """A user's MDP, one law for each step."""

    laws: list[Law]
    n_steps: int
    start: int
    changes: bool  # over time; else all laws are the same

    def rows(self) -> tuple[list[tuple[int, int, int]], list[float], list[int]]:
        flat = [
            ((s, a, s_next), p, k)
            for k, law in enumerate(self.laws if self.changes else self.laws[:1])
            for (s, a), successors in law.items()
            for s_next, p in successors.items()
        ]
        return [row for row, _, _ in flat], [p for _, p, _ in flat], [k for _, _, k in flat]

    def unrolled(self) -> Layout:
        rows, P, steps = self.rows()
        given_steps = steps if self.changes else None
        return unroll(rows, P, n_steps=self.n_steps, start=self.start, steps=given_steps)


def random_law(rng: np.random.Generator, n_states: int, n_actions: int) -> Law:
    """Some of the actions in each state, some successors for each, a few of them with probability 0."""
    law: Law = {}
    for s in range(n_states):
        for a in rng.choice(n_actions, rng.integers(1, n_actions + 1), replace=False).tolist():
            successors = rng.choice(n_states, rng.integers(1, n_states + 1), replace=False).tolist()
            weights = rng.exponential(size=len(successors)) * (rng.random(len(successors)) < 0.8)
            weights[0] += 0.1
            law[s, a] = dict(zip(successors, (weights / weights.sum()).tolist(), strict=True))
    return law


@st.composite
def tabular_mdps(draw: st.DrawFn) -> Tabular:
    rng, n_states, n_actions = draw(rngs()), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    n_steps, changes = draw(st.integers(1, 5)), draw(st.booleans())
    laws = [random_law(rng, n_states, n_actions) for _ in range(n_steps if changes else 1)]
    return Tabular(laws if changes else laws * n_steps, n_steps, int(rng.integers(n_states)), changes)


def twin_layers(mdp: Tabular) -> list[list[int]]:
    """What can be met after 0, 1, … moves."""
    layers = [[mdp.start]]
    for law in mdp.laws[:-1]:
        reached = {
            s_next for (s, _), successors in law.items() if s in layers[-1] for s_next, p in successors.items() if p > 0
        }
        layers.append(sorted(reached))
    return layers


def twin_tuples(mdp: Tabular) -> list[tuple[int, int, int, int, float]]:
    """(state, action, next_state or -1, step, probability), in the order of layered tuples."""
    tuples = []
    for k, (layer, law) in enumerate(zip(twin_layers(mdp), mdp.laws, strict=True)):
        for s, a in sorted(pair for pair in law if pair[0] in layer):
            if k == mdp.n_steps - 1:
                tuples.append((s, a, -1, k, 1.0))
            else:
                tuples += [(s, a, s_next, k, p) for s_next, p in sorted(law[s, a].items()) if p > 0]
    return tuples


def played(mdp: Tabular, policy: dict[tuple[int, int], dict[int, float]]) -> dict[tuple[int, int, int, int], float]:
    """The probability of each move (state, action, next_state, step), forward over the user's states."""
    at, moves = {mdp.start: 1.0}, {}
    for k, law in enumerate(mdp.laws):
        then: defaultdict[int, float] = defaultdict(float)
        for s, mass in at.items():
            for a, share in policy[s, k].items():
                for s_next, p in law[s, a].items():
                    moves[s, a, s_next, k] = mass * share * p
                    then[s_next] += mass * share * p
        at = {s: mass for s, mass in then.items() if mass > 0}
    return moves


def random_policy(rng: np.random.Generator, unrolled: Layout) -> tuple[Policy, dict[Any, dict[int, float]]]:
    """A policy on the layered space, and the same one by (state, step) of the user."""
    space = unrolled.space
    weights = rng.exponential(size=space.n_pairs)
    states = space.pairs[:, 0]
    policy = Policy(space, weights / np.bincount(states, weights)[states])
    of_user: dict[Any, dict[int, float]] = defaultdict(dict)
    for (s, a), share in zip(space.pairs.tolist(), policy.probabilities.tolist(), strict=True):
        of_user[int(unrolled.state[s]), int(unrolled.step[s])][a] = share
    return policy, of_user


@given(tabular_mdps())
def test_states_tuples_and_probabilities_are_those_of_the_twin(mdp: Tabular) -> None:
    unrolled, layers, tuples = mdp.unrolled(), twin_layers(mdp), twin_tuples(mdp)
    assert unrolled.space.layer_sizes == (*(len(layer) for layer in layers), 1)
    assert unrolled.state.tolist() == [s for layer in layers for s in layer] + [-1]
    assert unrolled.step.tolist() == [k for k, layer in enumerate(layers) for _ in layer] + [mdp.n_steps]
    assert unrolled.tuples.tolist() == [list(row[:4]) for row in tuples]
    np.testing.assert_array_equal(unrolled.mdp.transitions, [row[4] for row in tuples])


@given(tabular_mdps(), rngs())
def test_occupancy_is_that_of_the_mdp_itself(mdp: Tabular, rng: np.random.Generator) -> None:
    unrolled = mdp.unrolled()
    policy, of_user = random_policy(rng, unrolled)
    expected: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for (s, a, s_next, k), mass in played(mdp, of_user).items():
        expected[s, a, s_next if k < mdp.n_steps - 1 else -1, k] += mass
    theta = unrolled.mdp.occupancy(policy)
    np.testing.assert_allclose(theta, [expected[tuple(row)] for row in unrolled.tuples.tolist()], atol=1e-14)


@given(tabular_mdps(), rngs())
def test_what_is_laid_out_costs_a_policy_what_it_costs_in_the_mdp(mdp: Tabular, rng: np.random.Generator) -> None:
    unrolled = mdp.unrolled()
    policy, of_user = random_policy(rng, unrolled)
    theta, moves = unrolled.mdp.occupancy(policy), played(mdp, of_user)
    rows, _, steps = mdp.rows()
    n_states, n_actions = 1 + max(max(s, s_next) for s, _, s_next in rows), 1 + max(a for _, a, _ in rows)
    of_pair = rng.normal(size=(n_states, n_actions))
    of_move = rng.normal(size=(n_states, n_actions, n_states))
    of_row = rng.normal(size=len(rows))
    row_at = {(*row, k): value for row, k, value in zip(rows, steps, of_row.tolist(), strict=True)}
    of_step = rng.normal(size=(n_states, n_actions, n_states, mdp.n_steps))
    for values, charged in (
        (of_pair, lambda s, a, s_next, k: of_pair[s, a]),
        (of_move, lambda s, a, s_next, k: of_move[s, a, s_next]),
        (of_row, lambda s, a, s_next, k: row_at[s, a, s_next, k if mdp.changes else 0]),
        (lambda s, a, s_next, k: of_step[s, a, s_next, k], lambda *move: of_step[move]),
        (lambda s, a, s_next, k: 0.5, lambda *move: 0.5),
    ):
        flat = unrolled.lay_out(values)
        assert flat.shape == (unrolled.space.n_tuples,)
        np.testing.assert_allclose(flat @ theta, sum(mass * charged(*move) for move, mass in moves.items()))


@given(tabular_mdps())
def test_before_the_last_step_each_move_keeps_its_own_value_to_the_bit(mdp: Tabular) -> None:
    unrolled = mdp.unrolled()
    s, a, s_next, k = unrolled.tuples.T
    inner = k < mdp.n_steps - 1
    flat = unrolled.lay_out(lambda s, a, s_next, k: s + 10 * a + 100 * s_next + 1000 * k)
    np.testing.assert_array_equal(flat[inner], (s + 10 * a + 100 * s_next + 1000 * k)[inner])


def test_the_last_step_is_an_expectation() -> None:
    unrolled = unroll([(0, 0, 0), (0, 0, 1), (0, 0, 2)], [0.2, 0.3, 0.5], n_steps=1)
    assert unrolled.tuples.tolist() == [[0, 0, -1, 0]]
    np.testing.assert_allclose(unrolled.lay_out([1.0, -1.0, 0.5]), [0.2 - 0.3 + 0.25])


@given(rngs(), st.integers(1, 9))
def test_rounding_carries_no_expectation_past_a_bound(rng: np.random.Generator, n_successors: int) -> None:
    P = rng.dirichlet(np.ones(n_successors))
    unrolled = unroll([(0, 0, s) for s in range(n_successors)], P, n_steps=1)
    assert unrolled.lay_out(np.ones(n_successors)).tolist() == [1.0]
    assert unrolled.lay_out(np.full(n_successors, -0.1)).tolist() == [-0.1]


def test_the_order_of_rows_does_not_matter_and_rows_keep_their_values(rng: np.random.Generator) -> None:
    law = random_law(rng, 5, 3)
    rows, P, _ = Tabular([law], 1, 0, False).rows()
    values = rng.normal(size=len(rows))
    shuffle = rng.permutation(len(rows))
    one = unroll(rows, P, n_steps=4)
    other = unroll(np.array(rows)[shuffle], np.array(P)[shuffle], n_steps=4)
    assert one.space == other.space
    np.testing.assert_array_equal(one.mdp.transitions, other.mdp.transitions)
    np.testing.assert_array_equal(one.lay_out(values), other.lay_out(values[shuffle]))


def test_names_of_layered_states() -> None:
    unrolled = unroll([(0, 0, 1), (1, 0, 1)], [1.0, 1.0], n_steps=2)
    assert unrolled.state_names(["idle", "busy"]) == ("idle, step 0", "busy, step 1", "end")
    assert unrolled.state_names() == ("state 0, step 0", "state 1, step 1", "end")


def test_a_grid_of_a_hundred_thousand_states_unrolls() -> None:
    """50 x 50 cells, 65 steps, 4 actions with up to 5 successors each, from the middle."""
    n, directions = 50, ((1, 0), (-1, 0), (0, 1), (0, -1), (0, 0))
    x, y, a = np.indices((n, n, 4)).reshape(3, -1)
    moves: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for d, (dx, dy) in enumerate(directions):
        target = np.clip(x + dx, 0, n - 1) * n + np.clip(y + dy, 0, n - 1)
        share = np.where(a == d, 0.6, 0.1)
        for row, p in zip(np.stack([x * n + y, a, target], axis=1).tolist(), share.tolist(), strict=True):
            moves[tuple(row)] += p
    middle = 25 * n + 25
    unrolled = unroll(list(moves), list(moves.values()), n_steps=65, start=middle)
    # after k moves: a diamond of radius k, cut to the grid
    cells = np.abs(np.arange(n) - 25)
    diamonds = [(cells[:, None] + cells <= k).sum() for k in range(65)]
    assert unrolled.space.layer_sizes == (*diamonds, 1)
    assert unrolled.space.n_states > 100_000
    theta = unrolled.mdp.occupancy(Policy.uniform(unrolled.space))
    steps_right = unrolled.lay_out(lambda s, a, s_next, k: (s_next % n) - (s % n))
    drift_until_the_wall = steps_right[unrolled.step[unrolled.space.tuples[:, 0]] < 20]
    assert abs(drift_until_the_wall @ theta[: len(drift_until_the_wall)]) < 1e-9  # left and right alike


ROWS = [(0, 0, 0), (0, 0, 1), (1, 0, 1)]


@pytest.mark.parametrize(
    ("rows", "P", "options", "words"),
    [
        ([(0, 0)], [1.0], {}, r"rows has shape \(1, 2\)"),
        (np.empty((0, 3), int), [], {}, "rows is empty"),
        ([(0.0, 0.0, 0.0)], [1.0], {}, r"rows is no .* array of whole numbers: it holds float64"),
        ([(0, 0, 0), (0, -1, 0)], [1.0, 1.0], {}, r"row 1 of rows is \[ 0 -1  0\]"),
        (ROWS, [0.5, 0.5], {}, r"probabilities has shape \(2,\)"),
        (ROWS, [0.5, np.nan, 1.0], {}, "probabilities is nan at index 1"),
        (ROWS, [1.5, -0.5, 1.0], {}, "row 1 has probability -0.5"),
        (ROWS, [0.5, 0.4, 1.0], {}, "state 0 under action 0 sum to 0.9, not 1"),
        ([*ROWS, (0, 0, 1)], [0.5, 0.25, 1.0, 0.25], {}, r"row \(0, 0, 1\) is given twice"),
        ([(0, 0, 1)], [1.0], {"n_steps": 2}, "state 1 can be reached at step 1, but no row starts there .* terminal"),
        (ROWS, [0.5, 0.5, 1.0], {"terminal": [0]}, "start is 0, a terminal state"),
        (ROWS, [0.5, 0.5, 1.0], {"terminal": [-1]}, "a terminal state is -1"),
        (ROWS, [0.5, 0.5, 1.0], {"terminal": ["a"]}, "a terminal state is 'a'"),
        (ROWS, [0.5, 0.5, 1.0], {"start": {0: 0.5, 1: 0.4}}, r"probabilities of start are \{0: 0.5, 1: 0.4\}"),
        (ROWS, [0.5, 0.5, 1.0], {"start": {0: 1.5, 1: -0.5}}, "must be positive and sum to 1"),
        (ROWS, [0.5, 0.5, 1.0], {"start": {}}, "must be positive and sum to 1"),
        (ROWS, [0.5, 0.5, 1.0], {"start": {0.5: 1.0}}, "a state of start is 0.5"),
        (ROWS, [0.5, 0.5, 1.0], {"start": {0: 0.5, 1: 0.5}, "terminal": [1]}, "a terminal state"),
        (ROWS, [0.5, 0.5, 1.0], {"start": 7}, "state 7 can be reached at step 0"),
        (ROWS, [0.5, 0.5, 1.0], {"start": -1}, "start is -1"),
        (ROWS, [0.5, 0.5, 1.0], {"n_steps": 0}, "n_steps is 0"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0]}, r"steps has shape \(2,\)"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0, -1]}, "row 2 of steps is -1"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0, 0.5]}, r"steps is no .*: it holds float64"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 1, 1]}, "state 0 under action 0 sum to 0.5"),
    ],
)
def test_rows_that_make_no_mdp_are_refused(rows: Any, P: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        unroll(rows, P, **({"n_steps": 2} | options))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(2), r"values has shape \(2,\); expected \(3,\), one for each row, \(2, 1\)"),
        (np.zeros((1, 2)), r"values has shape \(1, 2\)"),
        (np.zeros((2, 1, 1)), r"values has shape \(2, 1, 1\)"),
        (0.5, r"values has shape \(\)"),
        (lambda s, a, s_next, k: s[:1], r"the function returned shape \(1,\)"),
    ],
)
def test_values_of_another_shape_are_refused(values: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        unroll(ROWS, [0.5, 0.5, 1.0], n_steps=3).lay_out(values)


# ------------------------------------------------------------------- what is over, and where it starts


@st.composite
def ending_mdps(draw: st.DrawFn) -> tuple[Tabular, set[int], dict[int, float]]:
    """A law for every step, some terminal states, and a random start elsewhere."""
    rng, n_states, n_steps = draw(rngs()), draw(st.integers(2, 6)), draw(st.integers(1, 5))
    laws = [random_law(rng, n_states, 3) for _ in range(n_steps)]
    order = rng.permutation(n_states).tolist()
    over = set(order[: draw(st.integers(0, n_states - 1))])
    first = order[len(over) :][: draw(st.integers(1, 3))]
    return Tabular(laws, n_steps, 0, True), over, dict(zip(first, rng.dirichlet(np.ones(len(first))), strict=True))


@given(ending_mdps(), rngs(), st.booleans())
def test_an_ending_mdp_costs_what_it_costs_and_nothing_once_it_is_over(
    ending: tuple[Tabular, set[int], dict[int, float]], rng: np.random.Generator, rows_of_the_end: bool
) -> None:
    mdp, over, start = ending
    rows, P, steps = mdp.rows()
    if not rows_of_the_end:  # they may be there, as in Gymnasium's tables, or not
        kept = [i for i, row in enumerate(rows) if row[0] not in over]
        rows, P, steps = [rows[i] for i in kept], [P[i] for i in kept], [steps[i] for i in kept]
    layout = unroll(rows, P, n_steps=mdp.n_steps, start=start, steps=steps, terminal=over)
    assert layout.space.n_layers == mdp.n_steps + 1
    policy, of_user = random_policy(rng, layout)

    charged = rng.normal(size=len(rows))
    value_of = {(*row, k): value for row, k, value in zip(rows, steps, charged.tolist(), strict=True)}
    total, at = 0.0, dict(start)
    for k, law in enumerate(mdp.laws):
        then: defaultdict[int, float] = defaultdict(float)
        for s, mass in at.items():
            for a, share in of_user[s, k].items():
                for s_next, p in law[s, a].items():
                    total += mass * share * p * value_of[s, a, s_next, k]
                    then[s_next] += mass * share * p
        at = {s: mass for s, mass in then.items() if mass > 0 and s not in over}
    theta = layout.mdp.occupancy(policy)
    np.testing.assert_allclose(layout.lay_out(charged) @ theta, total, atol=1e-12)

    # a state that waits has one action and one successor
    waits = np.flatnonzero(layout.waiting[:-1])
    assert len(set(layout.step[waits])) == len(waits)
    assert (layout.state[waits] == MERGED).all()
    for s in waits.tolist():
        assert layout.space.pairs[layout.space.pairs[:, 0] == s].tolist() == [[s, 0]]
    assert not over & set(layout.state.tolist())


def test_terminal_states_become_one_that_waits() -> None:
    """From 0, action 0 ends in 1 or 2, action 1 stays: the two ends share a tuple and its charge."""
    rows = [(0, 0, 1), (0, 0, 2), (0, 1, 0)]
    layout = unroll(rows, [0.25, 0.75, 1.0], n_steps=3, terminal=[1, 2])
    assert layout.space.layer_sizes == (1, 2, 2, 1)
    assert layout.state_names(["here", "a", "b"]) == (
        "here, step 0",
        "here, step 1",
        "done, step 1",
        "here, step 2",
        "done, step 2",
        "end",
    )
    assert layout.tuples.tolist()[:2] == [[0, 0, MERGED, 0], [0, 1, 0, 0]]
    values = layout.lay_out([4.0, 8.0, 1.0])
    np.testing.assert_allclose(values, [0.25 * 4 + 0.75 * 8, 1, 7, 1, 0, 7, 1, 0])


def test_a_random_start_is_a_step_of_its_own() -> None:
    layout = unroll([(0, 0, 1), (1, 0, 1), (2, 0, 0)], [1.0] * 3, n_steps=2, start={2: 0.25, 1: 0.75})
    assert layout.space.layer_sizes == (1, 2, 2, 1)
    assert layout.state.tolist() == [START, 1, 2, 0, 1, MERGED]
    assert layout.step.tolist() == [-1, 0, 0, 1, 1, 2]
    assert layout.mdp.transitions.tolist()[:2] == [0.75, 0.25]
    assert layout.state_names(["a", "b", "c"])[:3] == ("start", "b, step 0", "c, step 0")
    assert layout.lay_out(np.ones(3)).tolist() == [0, 0, 1, 1, 1, 1]  # drawing the start is free


def test_a_start_that_is_sure_but_given_as_chances_keeps_its_step() -> None:
    assert unroll(ROWS, [0.5, 0.5, 1.0], n_steps=2, start={0: 1.0, 1: 0.0}).space.layer_sizes == (1, 1, 2, 1)


# ---------------------------------------------------------------------------------------------- padding


class Graph(NamedTuple):
    law: Law
    start: dict[int, float]

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        return [(s, a, s_next) for (s, a), successors in self.law.items() for s_next in successors]

    @property
    def probabilities(self) -> list[float]:
        return [p for successors in self.law.values() for p in successors.values()]

    def padded(self, as_chances: bool) -> Layout:
        [first] = self.start if len(self.start) == 1 else [0]
        return pad(self.rows, self.probabilities, start=self.start if as_chances else first)


@st.composite
def loop_free_graphs(draw: st.DrawFn) -> Graph:
    """Moves lead to states further on in a random order; states without moves are where it is over."""
    rng, n_states, n_actions = draw(rngs()), draw(st.integers(2, 8)), draw(st.integers(1, 3))
    order = rng.permutation(n_states).tolist()
    law: Law = {}
    for i, s in enumerate(order[:-1]):
        if i > 0 and rng.random() < 0.2:
            continue
        for a in range(int(rng.integers(1, n_actions + 1))):
            further = rng.choice(order[i + 1 :], size=min(n_states - 1 - i, int(rng.integers(1, 4))), replace=False)
            law[s, a] = dict(zip(further.tolist(), rng.dirichlet(np.ones(len(further))).tolist(), strict=True))
    inner = [s for s in order if (s, 0) in law]
    first = inner[: draw(st.integers(1, 2))]
    return Graph(law, dict(zip(first, rng.dirichlet(np.ones(len(first))).tolist(), strict=True)))


@given(loop_free_graphs(), rngs())
def test_every_move_of_a_padded_graph_is_as_likely_as_before(graph: Graph, rng: np.random.Generator) -> None:
    drawn = len(graph.start) > 1
    layout = graph.padded(as_chances=drawn)
    space = layout.space
    weights = rng.exponential(size=space.n_pairs)
    policy = Policy(space, weights / np.bincount(space.pairs[:, 0], weights)[space.pairs[:, 0]])
    share = {
        (int(layout.state[s]), a): p
        for (s, a), p in zip(space.pairs.tolist(), policy.probabilities.tolist(), strict=True)
        if not layout.waiting[s]
    }

    mass: defaultdict[int, float] = defaultdict(float, graph.start)
    expected: dict[tuple[int, int, int], float] = {}
    depth = {s: int(layout.step[j]) for j, s in enumerate(layout.state.tolist()) if s >= 0 and not layout.waiting[j]}
    for s in sorted(depth, key=lambda s: depth[s]):
        for (here, a), successors in graph.law.items():
            if here == s:
                for s_next, p in successors.items():
                    expected[s, a, s_next] = mass[s] * share[s, a] * p
                    mass[s_next] += mass[s] * share[s, a] * p
    theta = layout.mdp.occupancy(policy)
    for i, row in enumerate(graph.rows):
        indicator = np.eye(len(graph.rows))[i]
        assert layout.lay_out(indicator) @ theta == pytest.approx(expected.get(row, 0.0), abs=1e-12)


@given(loop_free_graphs())
def test_a_padded_graph_holds_every_state_once_and_waits_without_a_choice(graph: Graph) -> None:
    layout = graph.padded(as_chances=len(graph.start) > 1)
    own = layout.state[~layout.waiting & (layout.state >= 0)].tolist()
    reached, todo = set(graph.start), list(graph.start)
    while todo:
        s = todo.pop()
        new = {t for (here, _), successors in graph.law.items() if here == s for t in successors} - reached
        reached |= new
        todo += new
    assert sorted(own) == sorted(s for s in reached if (s, 0) in graph.law)
    waits = set(np.flatnonzero(layout.waiting[:-1]).tolist())
    for s in waits:
        assert (layout.space.tuples[:, 0] == s).sum() == 1
    places = list(zip(layout.state.tolist(), layout.step.tolist(), layout.waiting.tolist(), strict=True))
    assert len(set(places)) == len(places)
    names = layout.state_names([f"s{s}" for s in range(8)])
    assert len(set(names)) == len(names)


def test_a_padded_graph_is_as_long_as_its_longest_path() -> None:
    """0 → 1 → 2 → over, 0 → 2, 1 → over, 0 → over."""
    rows = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 1, 2), (1, 1, 4), (0, 2, 4)]
    layout = pad(rows, [1.0] * 6)
    assert layout.space.layer_sizes == (1, 3, 2, 1)
    assert layout.state_names(["a", "b", "c", "d", "e"]) == (
        "a",
        "done, step 1",
        "b",
        "waiting for c, step 1",
        "done, step 2",
        "c",
        "end",
    )
    assert layout.lay_out([1.0, 2, 3, 4, 5, 6]).tolist() == [1, 4, 6, 0, 2, 5, 0, 0, 3][: layout.space.n_tuples]


def test_how_states_are_numbered_does_not_matter_to_padding() -> None:
    """Two ways into the same state, of two and of three moves."""
    moves = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (3, 5)]
    for number in itertools.permutations(range(6)):
        rows = [(number[s], a, number[t]) for a, (s, t) in zip((0, 0, 0, 1, 0, 0), moves, strict=True)]
        layout = pad(rows, [1.0] * 6, start=number[0])
        assert layout.space.layer_sizes == (1, 2, 2, 1, 1)


def test_padding_and_unrolling_have_the_same_best_value(rng: np.random.Generator) -> None:
    rows = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 1, 2), (1, 1, 3), (2, 1, 3)]
    losses = rng.uniform(-1, 1, 6)
    padded, unrolled = pad(rows, [1.0] * 6), unroll(rows, [1.0] * 6, n_steps=3, terminal=[3])
    values = [best_policy(layout.mdp, layout.lay_out(losses))[0] for layout in (padded, unrolled)]
    assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize(
    ("rows", "start", "words"),
    [
        ([(0, 0, 1), (1, 0, 2), (2, 0, 1)], 0, "states (1 → 2 → 1|2 → 1 → 2) form a loop"),
        ([(0, 0, 0)], 0, "states 0 → 0 form a loop"),
        ([(0, 0, 1)], 1, "start is 1, where no row starts"),
        ([(0, 0, 1)], 7, "start is 7, where no row starts"),
        ([(0, 0, 1), (0, 0, 1)], 0, "given twice"),
        ([(0, 0, 1)], {0: 0.5}, "must be positive and sum to 1"),
    ],
)
def test_graphs_that_cannot_be_padded_are_refused(rows: Any, start: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        pad(rows, [1.0] * len(rows), start=start)


def test_a_loop_that_cannot_be_reached_does_no_harm() -> None:
    assert pad([(0, 0, 1), (2, 0, 2)], [1.0, 1.0]).space.layer_sizes == (1, 1)
