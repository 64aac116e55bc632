"""Unrolling over time, against a twin made of dictionaries and against the MDP itself."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.problems.transforms import Unrolled, unroll

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

    def unrolled(self) -> Unrolled:
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


def random_policy(rng: np.random.Generator, unrolled: Unrolled) -> tuple[Policy, dict[Any, dict[int, float]]]:
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
        (np.empty((0, 3), int), [], {}, r"rows has shape \(0, 3\)"),
        ([(0.0, 0.0, 0.0)], [1.0], {}, "rows holds float64"),
        ([(0, 0, 0), (0, -1, 0)], [1.0, 1.0], {}, r"row 1 of rows is \[ 0 -1  0\]"),
        (ROWS, [0.5, 0.5], {}, r"probabilities has shape \(2,\)"),
        (ROWS, [0.5, np.nan, 1.0], {}, "probabilities is nan at index 1"),
        (ROWS, [1.5, -0.5, 1.0], {}, "row 1 has probability -0.5"),
        (ROWS, [0.5, 0.4, 1.0], {}, "state 0 under action 0 sum to 0.9, not 1"),
        ([*ROWS, (0, 0, 1)], [0.5, 0.25, 1.0, 0.25], {}, r"row \(0, 0, 1\) is given twice"),
        ([(0, 0, 1)], [1.0], {"n_steps": 2}, "state 1 can be met at step 1, but no row starts there"),
        (ROWS, [0.5, 0.5, 1.0], {"start": 7}, "state 7 can be met at step 0"),
        (ROWS, [0.5, 0.5, 1.0], {"start": -1}, "start is -1"),
        (ROWS, [0.5, 0.5, 1.0], {"n_steps": 0}, "n_steps is 0"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0]}, r"steps has shape \(2,\)"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0, -1]}, "row 2 of steps is -1"),
        (ROWS, [0.5, 0.5, 1.0], {"steps": [0, 0, 0.5]}, "steps holds float64"),
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
