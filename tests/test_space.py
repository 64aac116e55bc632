"""Layered spaces: what they hold, in which order, and what they refuse."""

import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import twins
from tests.conftest import layer_sizes, pair_of_tuple, random_sparse_space, rngs, spaces
from tightrope import InvalidInputError, LayeredSpace
from tightrope.core import find_path

#: Two ways through: state 1 has actions 0 and 2, state 2 only action 1.
DIAMOND = [(0, 0, 1), (0, 1, 1), (0, 1, 2), (1, 0, 3), (1, 2, 3), (2, 1, 3)]


def diamond() -> LayeredSpace:
    return LayeredSpace.from_tuples([1, 2, 1], 3, DIAMOND)


# ----------------------------------------------------------------------------------- what a space holds


def test_dense_holds_every_move_in_order() -> None:
    space = LayeredSpace.dense([1, 2, 1], n_actions=2)
    assert (space.layer_sizes, space.n_layers, space.n_states, space.n_actions) == ((1, 2, 1), 2, 4, 2)
    assert (space.n_pairs, space.n_tuples) == (6, 8)
    assert space.pairs.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert space.tuples.tolist() == [
        [0, 0, 1],
        [0, 0, 2],
        [0, 1, 1],
        [0, 1, 2],
        [1, 0, 3],
        [1, 1, 3],
        [2, 0, 3],
        [2, 1, 3],
    ]


def test_states_may_differ_in_their_actions() -> None:
    space = diamond()
    assert space.pairs.tolist() == [[0, 0], [0, 1], [1, 0], [1, 2], [2, 1]]
    assert space.successors_per_pair.tolist() == [1, 2, 1, 1, 1]
    assert space.layer_of_pair.tolist() == [0, 0, 1, 1, 1]
    assert space.csr.state_ptr.tolist() == [0, 2, 4, 5, 5]
    assert space.csr.pair_ptr.tolist() == [0, 1, 3, 4, 5, 6]
    assert space.csr.layer_ptr.tolist() == [0, 1, 3, 4]
    assert space.csr.action.tolist() == [0, 1, 0, 2, 1]
    assert space.csr.successor.tolist() == [1, 1, 2, 3, 3, 3]


@given(layer_sizes(), st.integers(1, 3), rngs())
def test_dense_is_from_tuples_with_every_tuple(sizes: list[int], n_actions: int, rng: np.random.Generator) -> None:
    dense = LayeredSpace.dense(sizes, n_actions)
    given_all = LayeredSpace.from_tuples(sizes, n_actions, rng.permutation(dense.tuples))
    assert given_all == dense
    assert hash(given_all) == hash(dense)
    for name in dense.csr._fields:
        one, other = getattr(given_all.csr, name), getattr(dense.csr, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@given(spaces())
def test_tuples_and_pairs_are_sorted_unique_and_linked(space: LayeredSpace) -> None:
    tuples, pairs = list(map(tuple, space.tuples.tolist())), list(map(tuple, space.pairs.tolist()))
    assert tuples == sorted(set(tuples))
    assert pairs == sorted({(s, a) for s, a, _ in tuples})
    assert (space.n_tuples, space.n_pairs) == (len(tuples), len(pairs))
    assert space.n_states == sum(space.layer_sizes)
    for s in range(space.n_states):
        own = range(space.csr.state_ptr[s], space.csr.state_ptr[s + 1])
        assert [i for i, pair in enumerate(pairs) if pair[0] == s] == list(own)
    for i, pair in enumerate(pairs):
        own = range(space.csr.pair_ptr[i], space.csr.pair_ptr[i + 1])
        assert [j for j, row in enumerate(tuples) if row[:2] == pair] == list(own)


@given(spaces())
def test_every_state_and_pair_knows_its_layer(space: LayeredSpace) -> None:
    expected = twins.layer_of_state(space)
    assert [space.layer_of(s) for s in range(space.n_states)] == expected.tolist()
    assert [s for k in range(space.n_layers + 1) for s in space.states_of(k)] == list(range(space.n_states))
    assert [len(space.states_of(k)) for k in range(space.n_layers + 1)] == list(space.layer_sizes)
    np.testing.assert_array_equal(space.layer_of_pair, expected[space.pairs[:, 0]])
    np.testing.assert_array_equal(space.next_layer_size, np.array(space.layer_sizes)[space.layer_of_pair + 1])
    before = [np.count_nonzero(expected[space.tuples[:, 0]] < k) for k in range(space.n_layers + 1)]
    assert space.tuples_before.tolist() == before


@given(spaces(), rngs())
def test_sums_over_successors_and_back(space: LayeredSpace, rng: np.random.Generator) -> None:
    values = rng.uniform(-1, 1, (2, space.n_tuples))
    pair = pair_of_tuple(space)
    sums = [np.bincount(pair, row) for row in values]
    np.testing.assert_allclose(space.sum_over_successors(values), sums, atol=1e-15)
    np.testing.assert_allclose(space.sum_over_successors(values[0]), sums[0], atol=1e-15)
    over_pairs = rng.uniform(-1, 1, (2, space.n_pairs))
    np.testing.assert_array_equal(space.expand_to_tuples(over_pairs), over_pairs[:, pair])


def test_a_sum_without_room_in_floats_is_infinite() -> None:
    space = LayeredSpace.dense([1, 2, 1], 1)
    with warnings.catch_warnings(action="error"):
        sums = space.sum_over_successors(np.array([1e308, 1e308, 1.0, 2.0]))
        nothing = space.sum_over_successors(np.array([np.inf, -np.inf, 1.0, 2.0]))
    np.testing.assert_array_equal(sums, [np.inf, 1.0, 2.0])
    np.testing.assert_array_equal(nothing, [np.nan, 1.0, 2.0])


@given(spaces())
def test_uniform_is_uniform_on_every_layer(space: LayeredSpace) -> None:
    layer = twins.layer_of_state(space)[space.tuples[:, 0]]
    for k in range(space.n_layers):
        share = space.uniform()[layer == k]
        np.testing.assert_allclose(share, 1 / len(share), rtol=1e-15)


def test_equality_sees_layers_actions_and_tuples() -> None:
    space = diamond()
    assert space == diamond()
    assert space != LayeredSpace.from_tuples([1, 2, 1], 4, DIAMOND)
    assert space != LayeredSpace.from_tuples([1, 2, 1], 3, [*DIAMOND, (0, 0, 2)])
    assert LayeredSpace.from_tuples([1, 2, 1, 1], 1, [(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 4)]) != space
    assert space != "diamond"
    assert repr(space) == "LayeredSpace(4 states in 3 layers, 3 actions, 6 tuples)"


def test_orders_cannot_be_changed_from_outside() -> None:
    space = diamond()
    with pytest.raises(ValueError, match="read-only"):
        space.tuples[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        space.pairs[0, 0] = 1


def test_a_large_sparse_space_stays_sparse() -> None:
    """20 000 states, 100 actions: dense over states, actions and successors it would hold 4e10 numbers."""
    width, layers = 2_000, 10
    first = 1 + width * np.arange(layers - 1)[:, None] + np.arange(width)
    inner = np.stack([first, first % 100, first + width], axis=-1).reshape(-1, 3)
    start = np.stack([np.zeros(width), np.arange(width) % 100, 1 + np.arange(width)], axis=-1)
    last = 1 + width * layers
    end = np.stack([np.arange(last - width, last), np.zeros(width), np.full(width, last)], axis=-1)
    tuples = np.concatenate([start, inner, end]).astype(np.int64)
    space = LayeredSpace.from_tuples([1, *[width] * layers, 1], 100, tuples)
    assert space.n_states == last + 1
    assert space.n_tuples == width * (layers + 1)
    assert sum(array.nbytes for array in (*space.csr, space.tuples, space.pairs)) < 2_000_000


# -------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1], r"layer_sizes is \[1\]; at least a first and a last layer"),
        ([], r"layer_sizes is \[\]"),
        ([1, 0, 1], "the size of layer 1 is 0; it must be a whole number"),
        ([1, 3, -2, 1], "the size of layer 2 is -2; it must be a whole number"),
        ([2, 3, 1], "layer 0 has 2 states; the first and the last layer hold one state each"),
        ([1, 3, 3], "layer 2 has 3 states; the first and the last layer hold one state each"),
    ],
)
def test_bad_layers_are_named(sizes: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LayeredSpace.dense(sizes, 2)
    with pytest.raises(InvalidInputError, match=message):
        LayeredSpace.from_tuples(sizes, 2, [(0, 0, 1)])


@pytest.mark.parametrize("n_actions", [0, -1])
def test_a_space_without_actions_is_refused(n_actions: int) -> None:
    with pytest.raises(InvalidInputError, match=f"n_actions is {n_actions}"):
        LayeredSpace.dense([1, 2, 1], n_actions)


@pytest.mark.parametrize(
    ("tuples", "message"),
    [
        ([*DIAMOND, (0, 0, 3)], r"tuple \(0, 0, 3\) goes from layer 0 to layer 2"),
        ([*DIAMOND, (1, 0, 2)], r"tuple \(1, 0, 2\) goes from layer 1 to layer 1"),
        ([*DIAMOND, (2, 0, 0)], r"tuple \(2, 0, 0\) goes from layer 1 to layer 0"),
        ([*DIAMOND, (3, 0, 3)], r"tuple \(3, 0, 3\) goes from layer 2 to layer 2"),
        ([*DIAMOND, (4, 0, 3)], r"tuple \(4, 0, 3\): state 4 is outside 0\.\.3"),
        ([*DIAMOND, (-1, 0, 1)], r"tuple \(-1, 0, 1\): state -1 is outside 0\.\.3"),
        ([*DIAMOND, (1, 3, 3)], r"tuple \(1, 3, 3\): action 3 is outside 0\.\.2"),
        ([*DIAMOND, (1, 1, 4)], r"tuple \(1, 1, 4\): next_state 4 is outside 0\.\.3"),
        ([*DIAMOND, (1, 0, 3)], r"tuple \(1, 0, 3\) is given twice"),
        ([t for t in DIAMOND if t != (0, 1, 2)], r"state 2 \(layer 1\) cannot be reached"),
        ([t for t in DIAMOND if t[0] != 2], r"state 2 \(layer 1\) has no action"),
        ([], r"tuples is empty; expected \(n_tuples, 3\)"),
        ([(0, 0), (0, 1)], r"tuples has shape \(2, 2\)"),
        ([0, 0, 1], r"tuples has shape \(3,\)"),
        ([(0.0, 0.0, 1.0)], r"tuples is no \(n_tuples, 3\) array of whole numbers: it holds float64"),
    ],
)
def test_bad_tuples_are_named(tuples: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LayeredSpace.from_tuples([1, 2, 1], 3, tuples)
    with pytest.raises(InvalidInputError, match=message):
        LayeredSpace([1, 2, 1], 3, sorted(tuples))  # type: ignore[arg-type]


@given(st.permutations(DIAMOND))
def test_the_constructor_takes_one_order_only(tuples: list[tuple[int, int, int]]) -> None:
    rows = np.array(tuples)
    if tuples == DIAMOND:
        assert LayeredSpace([1, 2, 1], 3, rows) == diamond()
    else:
        late = next(after for before, after in pairwise(tuples) if after < before)
        with pytest.raises(InvalidInputError, match=rf"tuple {re.escape(str(late))} comes after .* in any order"):
            LayeredSpace([1, 2, 1], 3, rows)


# ------------------------------------------------------------------------------------------ trajectories


def trajectory_through(space: LayeredSpace, j: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """A random trajectory that takes tuple j."""
    s, a, s_next = (int(v) for v in space.tuples[j])
    states, actions = [s, s_next], [a]
    while states[0] != 0:
        row = rng.choice(space.tuples[space.tuples[:, 2] == states[0]])
        states.insert(0, int(row[0]))
        actions.insert(0, int(row[1]))
    while states[-1] != space.n_states - 1:
        row = rng.choice(space.tuples[space.tuples[:, 0] == states[-1]])
        actions.append(int(row[1]))
        states.append(int(row[2]))
    return states, actions


@given(spaces(), rngs())
def test_every_tuple_is_found_on_a_path(space: LayeredSpace, rng: np.random.Generator) -> None:
    for j in range(space.n_tuples):
        states, actions = trajectory_through(space, j, rng)
        steps = space.path(states, actions)
        assert steps.tolist() == twins.find_path(space, np.array(states), np.array(actions))
        assert j == steps[space.layer_of(int(space.tuples[j, 0]))]
        back = space.trajectory(steps)
        assert (back[0].tolist(), back[1].tolist()) == (states, actions)


@pytest.mark.parametrize("path", [[0], [0, 8], [-1, 4], [[0], [4]], [], [0, 6], [4, 0]])
def test_an_impossible_path_has_no_trajectory(path: list[int]) -> None:
    """Tuples 0, 4 and 6 are (0,0,1), (1,0,3) and (2,0,3)."""
    with pytest.raises(InvalidInputError, match=r"path is .*; expected (2 tuples out of 8|tuples that form)"):
        LayeredSpace.dense([1, 2, 1], 2).trajectory(np.array(path, np.int64))


@given(spaces(max_steps=3, max_width=3), rngs())
def test_find_path_kernel_and_twin(space: LayeredSpace, rng: np.random.Generator) -> None:
    """Trajectories with one or two entries replaced by anything, in range or not."""
    for _ in range(20):
        visited, chosen = trajectory_through(space, int(rng.integers(space.n_tuples)), rng)
        states, actions = np.array(visited), np.array(chosen)
        for array, bound in ((states, space.n_states), (actions, space.n_actions)):
            if rng.random() < 0.7:
                array[rng.integers(len(array))] = rng.integers(-1, bound + 1)
        steps = find_path(space.native, states, actions).tolist()
        expected = twins.find_path(space, states, actions)
        assert steps == expected or (expected is None and steps[-1] == -1)
        found = [j for j in steps if j >= 0]
        assert steps == found + [-1] * (len(steps) - len(found))


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        ([0, 2, 3], [0, 1], "step 0 .* state 0, action 0, next state 2; this action leads to state 1"),
        ([0, 2, 3], [1, 0], "step 1 .* state 2, action 0, next state 3; state 2 has action 1"),
        ([0, 1, 3], [0, 7], "step 1 .* state 1, action 7"),
        ([0, 1, 2], [0, 0], "step 1 .* state 1, action 0, next state 2; this action leads to state 3"),
        ([1, 1, 3], [0, 0], "step 0 .* state 1"),
        ([0, 1, 4], [0, 0], "step 1 .* next state 4"),
        ([-1, 1, 3], [0, 0], "step 0 .* state -1"),
        ([0, 1], [0, 0], r"states has shape \(2,\); expected \(3,\)"),
        ([0, 1, 3], [0], r"actions has shape \(1,\); expected \(2,\)"),
        ([[0, 1, 3]], [0, 0], r"states has shape \(1, 3\); expected \(3,\)"),
    ],
)
def test_a_trajectory_that_cannot_happen_is_named(states: Any, actions: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        diamond().path(states, actions)


def test_random_sparse_spaces_are_sparse(rng: np.random.Generator) -> None:
    """The generator that the other tests lean on really leaves tuples out, and actions too."""
    space = random_sparse_space(rng, [1, 5, 5, 1], 4, density=0.2)
    dense = LayeredSpace.dense([1, 5, 5, 1], 4)
    assert space.n_tuples < 0.5 * dense.n_tuples
    assert space.n_pairs < dense.n_pairs


@pytest.mark.parametrize(
    ("states", "actions", "words"),
    [
        ([1, 1, 5], [0, 0], "step 0 of the trajectory cannot happen: state 1, .*; step 0 starts in state 0$"),
        ([0, 4, 5], [0, 0], "action 0, next state 4; this action leads to state 1 to 3$"),
        ([0, 4, 5], [1, 1], "state 4, action 1, next state 5; state 4 has action 0$"),
        ([0, 3, 4], [0, 0], "next state 4; this action leads to state 5$"),
        ([0, 1, 5], [1, 0], "next state 1; this action leads to state 2 or 4$"),
    ],
)
def test_an_impossible_step_is_refused_with_what_is_possible_there(
    states: list[int], actions: list[int], words: str
) -> None:
    moves = [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 2), (0, 1, 4), *((s, 0, 5) for s in (1, 2, 3, 4))]
    space = LayeredSpace.from_tuples([1, 4, 1], 2, moves)
    with pytest.raises(InvalidInputError, match=words):
        space.path(states, actions)
