"""The border of the compiled core: what it is given is checked, so that no call can read or write out of bounds."""

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import random_mdp, random_policy
from tightrope import LayeredSpace, core

SPACE = LayeredSpace.from_tuples([1, 2, 3, 1], 3, [
    (0, 0, 1), (0, 0, 2), (0, 2, 2), (1, 1, 3), (1, 1, 4), (2, 0, 4), (2, 0, 5), (2, 1, 3), (3, 0, 6), (4, 0, 6),
    (4, 2, 6), (5, 1, 6),
])  # fmt: skip
RNG = np.random.default_rng(5)
MDP = random_mdp(RNG, SPACE)
PI, P = random_policy(RNG, SPACE).probabilities, MDP.transitions
L, N_PAIRS, N_TUPLES = SPACE.n_layers, SPACE.n_pairs, SPACE.n_tuples
F, G, C = RNG.uniform(-1, 1, N_TUPLES), RNG.uniform(-1, 1, (2, N_TUPLES)), np.array([0.5, 0.25])
R = RNG.random((2, N_PAIRS))
PATH = np.array([0, 3, 8])
N, M = RNG.integers(1, 9, N_PAIRS), RNG.integers(0, 9, N_TUPLES)
LAW = np.arange(N_PAIRS)

#: Every function of a space or of arrays with arguments that it takes; indices are among the arrays of whole numbers.
CALLS: dict[str, tuple[Any, ...]] = {
    "occupancy": (SPACE.native, PI, P),
    "policy_of": (SPACE.native, F),
    "model_of": (SPACE.native, F),
    "draw": (PI, 0, 2, 0.5),
    "sample_path": (SPACE.native, PI, P, RNG.random(2 * L)),
    "find_path": (SPACE.native, np.array([0, 1, 3, 6]), np.array([0, 1, 0])),
    "play": (SPACE.native, PI, P, RNG.random(2 * L), F, G, G, C, np.zeros(N_TUPLES), np.zeros(2)),
    "count": (SPACE.native, PATH, N, 1.0, np.zeros(N_PAIRS, np.int32), np.zeros(N_TUPLES, np.int32)),
    "count_laws": (SPACE.native, PATH, LAW, N, 1.0, N),
    "frequencies": (SPACE.native, N, M),
    "within": (F, G, 1.0),
    "weigh": (2.0, F, C, G, 3.0),
    "mix": (SPACE.native, F, 0.1),
    "mix_pairs": (SPACE.native, F, 0.1, PI),
    "lift": (SPACE.native, F, 0.1),
    "average": (G, G[::-1].copy(), 3.0),
    "dual_step": (C, G, F, C),
    "believe": (SPACE.native, N, M, P),
    "uses": (SPACE.native, PI, N, M, P, G),
    "assess": (SPACE.native, PI, N, M, P, F, G.copy(), 0.5, C),
    "from_least": (SPACE.native, F),
    "span": (SPACE.native, F),
    "in_spans": (SPACE.native, G.copy(), C),
    "least_prices": (np.eye(2), C),
    "evaluate": (SPACE.native, PI, M, N, R),
    "mirror_step": (SPACE.native, PI, R[0], 0.5),
    "regularised_values": (SPACE.native, PI, P, R, C),
    "regularised_step": (SPACE.native, PI, R[0], 0.5, 0.1),
    "bonus_values": (SPACE.native, N, N, M, R[0], 1.0, 1.0, 1.0, R[1]),
    "lower_means": (N, R, R, 1.0, 1.0),
    "upper_occupancy": (SPACE.native, PI, 0 * P, 0 * P + 1, PATH),
}

#: What an array may be replaced by so that no call takes it.
WRONG: dict[str, Callable[[np.ndarray], Any]] = {
    "one entry more": lambda x: np.append(x, x.flat[:1]) if x.ndim == 1 else np.concatenate([x, x[:, :1]], axis=1),
    "one entry less": lambda x: x[..., :-1].copy(),
    "one row more": lambda x: np.concatenate([x, x[:1]]),
    "another type": lambda x: x.astype(np.float32),
    "another size": lambda x: x.astype(np.int16),
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "one axis more": lambda x: x[np.newaxis],
    "no axis": lambda x: x.flat[0],
    "every second entry": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "a list": lambda x: x.tolist(),
    "nothing": lambda x: None,
}

#: Replacements that some function takes: it makes a problem of another size of them.
SIZES = {("draw", "one entry less")} | {(name, "one row more") for name in ("draw", "evaluate", "uses", "within")}
SIZES |= {("draw", "one entry more")}


@pytest.mark.parametrize("name", CALLS)
def test_a_correct_call_returns_and_does_not_change_its_arguments(name: str) -> None:
    arguments = deepcopy(CALLS[name])
    first = getattr(core, name)(*arguments)
    for given_, kept in zip(arguments, CALLS[name], strict=True):
        if isinstance(kept, np.ndarray) and name not in ("play", "assess", "in_spans"):
            np.testing.assert_array_equal(given_, kept)
    again = getattr(core, name)(*deepcopy(CALLS[name]))
    for one, other in zip(parts(first), parts(again), strict=True):
        np.testing.assert_array_equal(one, other)


def parts(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_another_length_type_or_layout_are_refused(name: str, wrong: str) -> None:
    for k, argument in enumerate(CALLS[name]):
        if isinstance(argument, np.ndarray) and (name, wrong) not in SIZES:
            given_ = list(CALLS[name])
            given_[k] = WRONG[wrong](argument)
            with pytest.raises((TypeError, ValueError)):
                getattr(core, name)(*given_)


@pytest.mark.parametrize("name", CALLS)
def test_other_objects_in_place_of_a_space_are_refused(name: str) -> None:
    if CALLS[name][0] is SPACE.native:
        for other in (None, SPACE, SPACE.csr, 3):
            with pytest.raises(TypeError):
                getattr(core, name)(other, *CALLS[name][1:])


@given(st.sampled_from(["count", "count_laws", "upper_occupancy"]), st.integers(0, L - 1), st.data())
def test_a_path_out_of_range_is_refused(name: str, step: int, data: st.DataObject) -> None:
    arguments, path = list(CALLS[name]), PATH.copy()
    path[step] = data.draw(st.integers(-(2**63), -1) | st.integers(N_TUPLES, 2**63 - 1))
    arguments[[x is PATH for x in arguments].index(True)] = path
    with pytest.raises(ValueError, match="path is"):
        getattr(core, name)(*arguments)


def test_a_law_out_of_range_is_refused() -> None:
    for law in (-1, N_PAIRS):
        with pytest.raises(ValueError, match="law is"):
            core.count_laws(SPACE.native, PATH, np.where(LAW == 0, law, LAW), N, 1.0, N)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_draw_outside_of_its_array_is_refused(lo: int, hi: int) -> None:
    if 0 <= lo < hi <= N_PAIRS:
        assert lo <= core.draw(PI, lo, hi, 0.5) < hi
    else:
        with pytest.raises(ValueError, match="expected 0 <= lo < hi"):
            core.draw(PI, lo, hi, 0.5)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2 * L + 1, max_size=2 * L + 1))
def test_any_trajectory_may_be_looked_up(numbers: list[int]) -> None:
    states, actions = np.array(numbers[: L + 1]), np.array(numbers[L + 1 :])
    steps = core.find_path(SPACE.native, states, actions)
    assert ((steps >= -1) & (steps < N_TUPLES)).all()


@given(st.lists(st.floats(), min_size=N_PAIRS + N_TUPLES, max_size=N_PAIRS + N_TUPLES))
def test_any_numbers_may_stand_for_probabilities(numbers: list[float]) -> None:
    pi, P = np.array(numbers[:N_PAIRS]), np.array(numbers[N_PAIRS:])
    states, _, steps = core.sample_path(SPACE.native, pi, P, np.full(2 * L, 0.5))
    assert states[0] == 0 and states[-1] == SPACE.n_states - 1 and ((steps >= 0) & (steps < N_TUPLES)).all()
    assert core.upper_occupancy(SPACE.native, pi, P, P, PATH).shape == (L,)
    assert core.policy_of(SPACE.native, P).shape == (N_PAIRS,)


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda csr: pickle.loads(pickle.dumps(csr))])
def test_rows_can_be_copied_and_pickled(copied: Callable[[Any], Any]) -> None:
    csr = copied(SPACE.native)
    np.testing.assert_array_equal(core.occupancy(csr, PI, P), core.occupancy(SPACE.native, PI, P))


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("successor", 0, 3, "not in the next layer"),
        ("successor", 0, -1, "not in the next layer"),
        ("state_ptr", 1, 0, "state_ptr must"),  # a state without actions
        ("pair_ptr", 1, 0, "pair_ptr must"),  # a pair without successors
        ("layer_ptr", 1, 0, "layer_ptr must"),
        ("state_ptr", -1, 99, "state_ptr must"),
        ("pair_ptr", 0, 1, "pair_ptr must"),
    ],
)
def test_rows_that_lead_nowhere_are_refused(name: str, at: int, value: int, message: str) -> None:
    rows = {field: getattr(SPACE.csr, field).copy() for field in SPACE.csr._fields}
    rows[name][at] = value
    with pytest.raises(ValueError, match=message):
        core.Csr(**rows)


def test_rows_cannot_change_after_they_were_checked() -> None:
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    assert core.span(space.native, np.zeros(space.n_tuples)) == 0
    for field in space.csr._fields:
        with pytest.raises(ValueError, match="read-only"):
            getattr(space.csr, field)[0] = 2**30


ANY_NUMBER = st.floats() | st.sampled_from([0.0, -1.0, 1.0, 1e300, 5e-324, np.inf, np.nan])


@given(st.integers(0, 3), st.booleans(), st.booleans(), st.data())
def test_any_numbers_may_be_given_to_a_solver(kind: int, direct: bool, kept: bool, data: st.DataObject) -> None:
    """It finds an answer or none, and no index comes from a number: `tools/sanitize.sh` would see it."""

    def numbers(n: int) -> np.ndarray:
        return np.array(data.draw(st.lists(ANY_NUMBER, min_size=n, max_size=n)))

    free = np.array(data.draw(st.lists(st.booleans(), min_size=N_PAIRS, max_size=N_PAIRS)))
    center, radius = numbers(N_TUPLES), numbers(N_PAIRS)
    solver: Any = core.Solver(SPACE.native, direct)
    if kind == 0:
        solver.set_l1(center, radius, free)
    elif kind == 1:
        solver.set_box(center, numbers(N_TUPLES), free)
    elif kind == 2:
        solver.set_cut_box(center, numbers(N_TUPLES), center, radius, free)
    else:
        solver.set_kl(center, radius, free)
    if kept:
        factor = np.resize(numbers(7), solver.factor_size)
        solver.restore(numbers(SPACE.n_states), np.resize(radius, (2, N_PAIRS)), factor, data.draw(ANY_NUMBER))
    theta, y = np.empty(N_TUPLES), numbers(2)
    reference, cost, rows = numbers(N_TUPLES), numbers(N_TUPLES), np.resize(numbers(5), (2, N_TUPLES))
    tolerance = data.draw(st.sampled_from([1e-9, 1.0, np.nan]))
    assert len(solver.solve(reference, cost, tolerance, theta)) == 4
    assert len(solver.solve_priced(reference, cost, rows, C, numbers(2), tolerance, 3, y, theta)) == 5
