"""The part of a model that a learner knows: layers, states, actions, and the possible moves.

States are numbered 0.. in layer order; an episode takes one state of every layer, from the single state of layer 0
to the single state of layer L, in L steps. A *pair* is (state, action), a *tuple* (state, action, next_state).
Only possible tuples are stored (compressed rows), so no array has size |S|·|A|·|S|.
"""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arguments import LISTED, listed, room, shown, texts, unknown, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError

IntArray = NDArray[np.integer]
FloatArray = NDArray[np.float64]
DType = TypeVar("DType", bound="np.generic[Any]")

#: Actions are numbered in 32 bits.
MOST_ACTIONS = 2**31 - 1

#: Stands for the number of a state whose name is not unique.
AMBIGUOUS = -1


class Csr(NamedTuple):
    """Compressed rows of a space.

    The pairs of state s are state_ptr[s]:state_ptr[s+1], the tuples of pair i are pair_ptr[i]:pair_ptr[i+1],
    the states of layer k are layer_ptr[k]:layer_ptr[k+1].
    """

    layer_ptr: NDArray[np.int64]  # (L + 2,)
    state_ptr: NDArray[np.int64]  # (n_states + 1,)
    pair_ptr: NDArray[np.int64]  # (n_pairs + 1,)
    action: NDArray[np.int32]  # (n_pairs,)
    successor: NDArray[np.int32]  # (n_tuples,)


class LayeredSpace:
    """Layers of states, the actions of each state, and the successors of each (state, action).

    Build one with `dense` (every action leads anywhere in the next layer) or `from_tuples` (only the given moves
    can happen; states may differ in their actions).

    Parameters
    ----------
    layer_sizes : the number of states of each layer; the first and the last have one.
    n_actions : the number of actions.
    tuples : (n_tuples, 3) state, action and successor of each possible move, sorted.

    Examples
    --------
    >>> space = LayeredSpace.dense(layer_sizes=[1, 5, 5, 1], n_actions=3)
    >>> space.n_layers, space.n_states, space.n_pairs, space.n_tuples
    (3, 12, 33, 105)
    """

    state_names: tuple[str, ...] = ()  #: one for every state; empty: their numbers
    action_names: tuple[str, ...] = ()  #: likewise

    def __init__(self, layer_sizes: Sequence[int], n_actions: int, tuples: IntArray) -> None:
        """Make a space of sorted tuples; `from_tuples` accepts any order."""
        sizes = _checked_sizes(layer_sizes)
        n_actions = whole(n_actions, "n_actions", 1, MOST_ACTIONS)
        self.layer_sizes = sizes
        self.n_layers = len(sizes) - 1
        self.n_states = sum(sizes)
        self.n_actions = n_actions
        tuples = wholes(tuples, "tuples", ("n_tuples", 3))
        _check_reach(self.n_states, len(tuples))
        _check_moves(sizes, n_actions, tuples)
        self.tuples = np.ascontiguousarray(tuples, dtype=np.int32)
        _check_order(self.tuples)
        first_of_pair = np.ones(len(tuples), dtype=bool)
        first_of_pair[1:] = (tuples[1:, :2] != tuples[:-1, :2]).any(axis=1)
        starts = np.flatnonzero(first_of_pair)
        self.pairs = np.ascontiguousarray(self.tuples[starts, :2])
        self.n_pairs = len(self.pairs)
        self.n_tuples = len(self.tuples)
        self.csr = Csr(
            layer_ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            state_ptr=np.searchsorted(self.pairs[:, 0], np.arange(self.n_states + 1)).astype(np.int64),
            pair_ptr=np.append(starts, self.n_tuples).astype(np.int64),
            action=np.ascontiguousarray(self.pairs[:, 1]),
            successor=np.ascontiguousarray(self.tuples[:, 2]),
        )
        self.tuples.flags.writeable = False
        self.pairs.flags.writeable = False
        self._check_connected()

    @classmethod
    def dense(cls, layer_sizes: Sequence[int], n_actions: int) -> Self:
        """Return the space in which every action is available and may lead to every state of the next layer."""
        sizes, n_actions = _checked_sizes(layer_sizes), whole(n_actions, "n_actions", 1, MOST_ACTIONS)
        room(n_actions * sum(n * m for n, m in pairwise(sizes)), "a dense space of these sizes")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        blocks = [
            np.stack(
                np.meshgrid(
                    np.arange(starts[k], starts[k + 1], dtype=np.int32),
                    np.arange(n_actions, dtype=np.int32),
                    np.arange(starts[k + 1], starts[k + 2], dtype=np.int32),
                    indexing="ij",
                ),
                axis=-1,
            ).reshape(-1, 3)
            for k in range(len(sizes) - 1)
        ]
        return cls(sizes, n_actions, np.concatenate(blocks))

    @classmethod
    def from_tuples(cls, layer_sizes: Sequence[int], n_actions: int, tuples: ArrayLike) -> Self:
        """Return the space of these tuples (state, action, next_state), (n_tuples, 3), in any order."""
        rows = wholes(tuples, "tuples", ("n_tuples", 3))
        return cls(layer_sizes, n_actions, rows[np.lexsort(rows.T[::-1])])

    def named(self, state_names: Sequence[str] = (), action_names: Sequence[str] = ()) -> Self:
        """Return the space with these names, one for every state and action; empty ones are kept."""
        space = copy(self)
        space.__dict__.pop("_numbers", None)
        space.state_names = _checked_names(state_names, self.n_states, "state_names") or self.state_names
        space.action_names = _checked_names(action_names, self.n_actions, "action_names") or self.action_names
        return space

    def _check_connected(self) -> None:
        reached = np.zeros(self.n_states, dtype=bool)
        reached[0] = True
        reached[self.csr.successor] = True
        if not reached.all():
            s = int(np.argmin(reached))
            raise InvalidInputError(
                f"state {s} (layer {self.layer_of(s)}) cannot be reached: no tuple leads there; drop the state"
            )
        idle = np.flatnonzero(np.diff(self.csr.state_ptr)[:-1] == 0)
        if len(idle):
            s = int(idle[0])
            raise InvalidInputError(f"state {s} (layer {self.layer_of(s)}) has no action: no tuple starts there")

    def layer_of(self, state: int) -> int:
        """Return the layer of `state`."""
        state = whole(state, "state", 0, self.n_states - 1)
        return int(np.searchsorted(self.csr.layer_ptr, state, side="right")) - 1

    def states_of(self, layer: int) -> range:
        """Return the states of `layer`, in order."""
        layer = whole(layer, "layer", 0, self.n_layers)
        return range(int(self.csr.layer_ptr[layer]), int(self.csr.layer_ptr[layer + 1]))

    def state_name(self, state: int) -> str:
        """Return the name of a state."""
        state = whole(state, "state", 0, self.n_states - 1)
        return self.state_names[state] if self.state_names else str(state)

    def action_name(self, action: int) -> str:
        """Return the name of an action."""
        action = whole(action, "action", 0, self.n_actions - 1)
        return self.action_names[action] if self.action_names else str(action)

    def state_number(self, state: int | str) -> int:
        """Return the number of a state, given by number or name."""
        if not isinstance(state, str):
            return whole(state, "state", 0, self.n_states - 1)
        if not self.state_names:
            raise InvalidInputError(f"state is {shown(state)}, and the states of {self!r} have no names, only numbers")
        if self._numbers.get(state) == AMBIGUOUS:
            raise InvalidInputError(f"several states have the name {shown(state)}; give a number")
        if state not in self._numbers:
            raise unknown("there is no state", state, self._numbers)
        return self._numbers[state]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the states by name."""
        names = Counter(self.state_names)
        return {name: AMBIGUOUS if names[name] > 1 else state for state, name in enumerate(self.state_names)}

    @property
    def layer_of_pair(self) -> IntArray:
        """(n_pairs,) the layer each pair starts from."""
        return np.repeat(np.arange(self.n_layers), self._pairs_per_layer)

    @property
    def next_layer_size(self) -> IntArray:
        """Return |S_{k(s)+1}| (n_pairs,), the number of states of the layer that each pair leads to."""
        return np.repeat(self.layer_sizes[1:], self._pairs_per_layer)

    @property
    def _pairs_per_layer(self) -> IntArray:
        return np.diff(self.csr.state_ptr[self.csr.layer_ptr[:-1]])

    @property
    def tuples_before(self) -> NDArray[np.int64]:
        """(L + 1,) the tuples of layer k are tuples_before[k]:tuples_before[k+1]."""
        return self.csr.pair_ptr[self.csr.state_ptr[self.csr.layer_ptr[:-1]]]

    @cached_property
    def native(self) -> core.Csr:
        """The rows in the form of the compiled core."""
        return core.Csr(*self.csr)

    @cached_property
    def pair_of_tuple(self) -> NDArray[np.int64]:
        """(n_tuples,) the index of the pair of each tuple."""
        return self.expand_to_tuples(np.arange(self.n_pairs))

    @property
    def successors_per_pair(self) -> IntArray:
        """(n_pairs,) the number of successors of each pair."""
        return np.diff(self.csr.pair_ptr)

    def sum_over_successors(self, values: FloatArray) -> FloatArray:
        """Return sums over the successors of each pair, (…, n_pairs), of values (…, n_tuples); overflow gives inf."""
        _check_last_axis(values, self.n_tuples)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(values, self.csr.pair_ptr[:-1], axis=-1)

    def expand_to_tuples(self, values: NDArray[DType]) -> NDArray[DType]:
        """Return for each tuple the value of its pair: (…, n_tuples) from values (…, n_pairs)."""
        _check_last_axis(values, self.n_pairs)
        return np.repeat(values, self.successors_per_pair, axis=-1)

    def uniform(self) -> FloatArray:
        """(n_tuples,) uniform on every layer's tuples: what Algorithm 1 mixes in (no occupancy measure in general)."""
        per_layer = np.diff(self.tuples_before)
        return np.repeat(1.0 / per_layer, per_layer)

    def path(self, states: ArrayLike, actions: ArrayLike) -> NDArray[np.int64]:
        """Return the tuples (L,) of states (L + 1,) and actions (L,); refuse a path that cannot happen."""
        visited = wholes(states, "states", (self.n_layers + 1,))
        chosen = wholes(actions, "actions", (self.n_layers,))
        steps: NDArray[np.int64] = core.find_path(self.native, visited, chosen)
        if steps[-1] < 0:
            bad = int(np.argmax(steps < 0))
            raise InvalidInputError(
                f"step {bad} of the trajectory cannot happen: state {visited[bad]}, action {chosen[bad]}, "
                f"next state {visited[bad + 1]}; {self._what_can_happen(bad, int(visited[bad]), int(chosen[bad]))}"
            )
        return steps

    def _what_can_happen(self, step: int, state: int, action: int) -> str:
        """Return the possible states, actions or successors of a step, for an error."""
        states = self.states_of(step)
        if state not in states:
            return f"step {step} starts in state {_in_words(states)}"
        tuples = self.tuples[self.tuples[:, 0] == state]
        if action not in tuples[:, 1]:
            return f"state {state} has action {_in_words(np.unique(tuples[:, 1]))}"
        return f"this action leads to state {_in_words(tuples[tuples[:, 1] == action, 2])}"

    def trajectory(self, path: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the states (L + 1,) and actions (L,) of the tuples of a path; refuse tuples that are not a path."""
        if path.shape != (self.n_layers,) or not ((path >= 0) & (path < self.n_tuples)).all():
            raise InvalidInputError(
                f"path is {shown(path.tolist())}; expected {self.n_layers} tuples out of {self.n_tuples}"
            )
        states, actions, successors = self.tuples[path].astype(np.int64).T
        if states[0] != 0 or (successors[:-1] != states[1:]).any():
            raise InvalidInputError(f"path is {shown(path.tolist())}; expected tuples that form a path")
        return np.append(states, successors[-1]), actions.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayeredSpace):
            return NotImplemented
        return self is other or (
            self.layer_sizes == other.layer_sizes
            and self.n_actions == other.n_actions
            and (self.tuples is other.tuples or np.array_equal(self.tuples, other.tuples))
        )

    def __deepcopy__(self, memo: object) -> Self:
        return self  # it never changes, and is large

    def __hash__(self) -> int:
        return hash((self.layer_sizes, self.n_actions, self.n_tuples))

    def __repr__(self) -> str:
        return (
            f"LayeredSpace({self.n_states} states in {self.n_layers + 1} layers, {self.n_actions} actions, "
            f"{self.n_tuples} tuples)"
        )


def _checked_sizes(layer_sizes: Sequence[int]) -> tuple[int, ...]:
    given = listed(layer_sizes, "layer_sizes")
    sizes = tuple(whole(n, f"the size of layer {k}", 1) for k, n in enumerate(given))
    if len(sizes) < 2:
        raise InvalidInputError(f"layer_sizes is {list(sizes)}; at least a first and a last layer are needed")
    for k in (0, len(sizes) - 1):
        if sizes[k] != 1:
            raise InvalidInputError(
                f"layer {k} has {sizes[k]} states; the first and the last layer hold one state each "
                "(add one before random starts, merge terminal states into one)"
            )
    return sizes


def _checked_names(names: Sequence[str], size: int, what: str) -> tuple[str, ...]:
    names = texts(names, what)
    if len(names) not in (0, size):
        raise InvalidInputError(f"{what} has {len(names)} names; expected {size}, or none")
    return names


def _check_reach(n_states: int, n_tuples: int) -> None:
    """Refuse sizes with too few tuples to reach every state, before arrays of these sizes are allocated."""
    if n_tuples == 0:
        raise InvalidInputError("tuples is empty; expected (n_tuples, 3): state, action, next_state")
    if n_states > n_tuples + 1:
        raise InvalidInputError(
            f"layer_sizes sum to {n_states} states, and {n_tuples} tuples cannot reach them all; drop some"
        )


def _check_moves(sizes: Sequence[int], n_actions: int, rows: IntArray) -> None:
    """Refuse tuples with unknown states or actions, or that do not lead from one layer to the next."""
    n_states = sum(sizes)
    for column, name, bound in ((0, "state", n_states), (1, "action", n_actions), (2, "next_state", n_states)):
        bad = np.flatnonzero((rows[:, column] < 0) | (rows[:, column] >= bound))
        if len(bad):
            raise InvalidInputError(
                f"tuple {_show(rows[bad[0]])}: {name} {rows[bad[0], column]} is outside 0..{bound - 1}"
            )
    layer = np.repeat(np.arange(len(sizes)), sizes)
    bad = np.flatnonzero(layer[rows[:, 2]] != layer[rows[:, 0]] + 1)
    if len(bad):
        s, _, s_next = rows[bad[0]]
        raise InvalidInputError(
            f"tuple {_show(rows[bad[0]])} goes from layer {layer[s]} to layer {layer[s_next]}; "
            "a move leads from one layer to the next (pad shorter paths with waiting states)"
        )


def _check_order(rows: IntArray) -> None:
    """Refuse tuples that are not sorted by state, action and next state, or not distinct."""
    s, a, s_next = np.diff(rows, axis=0).T
    bad = np.flatnonzero((s < 0) | ((s == 0) & ((a < 0) | ((a == 0) & (s_next <= 0)))))
    if len(bad):
        before, after = rows[bad[0]], rows[bad[0] + 1]
        if (before == after).all():
            raise InvalidInputError(f"tuple {_show(after)} is given twice")
        raise InvalidInputError(
            f"tuple {_show(after)} comes after {_show(before)}; LayeredSpace.from_tuples takes them in any order"
        )


def _check_last_axis(values: object, size: int) -> None:
    if not (isinstance(values, np.ndarray) and values.shape[-1:] == (size,) and values.dtype.kind in "biuf"):
        raise InvalidInputError(f"values is {shown(values)}; expected an array of numbers, {size} along its last axis")


def _show(row: IntArray) -> str:
    return f"({', '.join(str(int(v)) for v in row)})"


def _in_words(numbers: Sequence[int] | IntArray) -> str:
    """Return numbers in ascending order as text: "3", "3 or 5", "3 to 6"."""
    found = [int(number) for number in numbers]
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"{found[0]} to {found[-1]}"
    more = [f"{len(found) - LISTED} more"] if len(found) > LISTED else []
    *others, last = [*map(str, found[:LISTED]), *more]
    return f"{', '.join(others)} or {last}" if others else last
