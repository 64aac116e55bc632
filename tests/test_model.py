"""Models, policies and occupancy measures: conditions (a), (b), (c), both ways, and against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import twins
from tests.conftest import FloatArray, mdps, pair_of_tuple, random_mdp, random_policy, random_sparse_space, rngs, spaces
from tightrope import InvalidInputError, LayeredMDP, LayeredSpace, Policy
from tightrope.core import draw, model_of, occupancy, policy_of, sample_path
from tightrope.model import flat


def random_theta(rng: np.random.Generator, space: LayeredSpace) -> FloatArray:
    """Any non-negative numbers over tuples; some pairs and some states without mass."""
    theta = rng.exponential(size=space.n_tuples) * (rng.random(space.n_tuples) < 0.7)
    theta[(rng.random(space.n_pairs) < 0.2)[pair_of_tuple(space)]] = 0.0
    theta[(rng.random(space.n_states) < 0.2)[space.tuples[:, 0]]] = 0.0
    return theta


# ------------------------------------------------------------------------------------ kernels and twins


@given(mdps(), rngs(), st.sampled_from([0.0, 0.5]))
def test_occupancy_kernel_and_twin(mdp: LayeredMDP, rng: np.random.Generator, zeros: float) -> None:
    space, policy = mdp.space, random_policy(rng, mdp.space, zeros)
    theta = occupancy(space.native, policy.probabilities, mdp.transitions)
    _, theta_twin = twins.occupancy(space, policy.probabilities, mdp.transitions)
    np.testing.assert_allclose(theta, theta_twin, rtol=1e-13)
    np.testing.assert_array_equal(mdp.occupancy(policy), theta)


@given(spaces(), rngs())
def test_policy_and_model_kernels_and_twins(space: LayeredSpace, rng: np.random.Generator) -> None:
    theta = random_theta(rng, space)
    pi, P = policy_of(space.native, theta), model_of(space.native, theta)
    np.testing.assert_allclose(pi, twins.policy_of(space, theta), rtol=1e-13)
    np.testing.assert_allclose(P, twins.model_of(space, theta), rtol=1e-13)
    np.testing.assert_array_equal(Policy.from_occupancy(space, theta).probabilities, pi)
    np.testing.assert_array_equal(LayeredMDP.from_occupancy(space, theta).transitions, P)


@given(mdps(), rngs())
def test_sample_path_kernel_and_twin(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space, L = mdp.space, mdp.space.n_layers
    pi = random_policy(rng, space, zeros=0.3).probabilities
    for _ in range(10):
        uniforms = rng.random(2 * L)
        states, actions, steps = sample_path(space.native, pi, mdp.transitions, uniforms)
        expected = twins.sample_path(space, pi, mdp.transitions, uniforms)
        assert (states.tolist(), actions.tolist(), steps.tolist()) == expected
        np.testing.assert_array_equal(space.path(states, actions), steps)
        assert (mdp.transitions[steps] > 0).all()


#: A distribution with zeros at both ends and between, and its neighbours, that must not be touched.
WEIGHTS = np.array([0.9, 0.0, 0.25, 0.0, 0.5, 0.25, 0.0, 0.9])


@given(st.floats(0, 1, exclude_max=True))
def test_draw_kernel_and_twin(u: float) -> None:
    assert draw(WEIGHTS, 1, 7, u) == twins.draw(WEIGHTS, 1, 7, u)


@pytest.mark.parametrize(
    ("u", "index"),
    [(0.0, 2), (np.nextafter(0.25, 0), 2), (0.25, 4), (np.nextafter(0.75, 0), 4), (0.75, 5), (1.0, 5)],
)
def test_draw_never_picks_probability_zero(u: float, index: int) -> None:
    """Also at the edges of an interval, and beyond the last one (a sum may fall short of 1)."""
    assert draw(WEIGHTS, 1, 7, u) == index


@pytest.mark.parametrize("sparse", [False, True])
def test_sampled_episodes_follow_the_occupancy_measure(rng: np.random.Generator, sparse: bool) -> None:
    """Counts of every tuple over 40 000 episodes, within five standard deviations of θ."""
    sizes = [1, 4, 3, 4, 1]
    space = random_sparse_space(rng, sizes, 3) if sparse else LayeredSpace.dense(sizes, 3)
    mdp, policy = random_mdp(rng, space, zeros=0.2), random_policy(rng, space, zeros=0.2)
    n, L = 40_000, space.n_layers
    counts = np.zeros(space.n_tuples)
    for uniforms in rng.random((n, 2 * L)):
        _, _, steps = sample_path(space.native, policy.probabilities, mdp.transitions, uniforms)
        counts[steps] += 1
    theta = mdp.occupancy(policy)
    assert (counts[theta == 0] == 0).all()
    assert (np.abs(counts - n * theta) <= 5 * np.sqrt(n * theta * (1 - theta)) + 1e-6).all()


# ---------------------------------------------------------------------------------- occupancy measures


@given(mdps(), rngs(), st.sampled_from([0.0, 0.5]))
def test_occupancy_measures_meet_their_three_conditions(
    mdp: LayeredMDP, rng: np.random.Generator, zeros: float
) -> None:
    space = mdp.space
    theta = mdp.occupancy(random_policy(rng, space, zeros))
    s, _, s_next = space.tuples.T
    per_layer = np.bincount(twins.layer_of_state(space)[s], theta)
    np.testing.assert_allclose(per_layer, 1, atol=1e-13)  # (a)
    inflow = np.bincount(s_next, theta, minlength=space.n_states)
    outflow = np.bincount(s, theta, minlength=space.n_states)
    np.testing.assert_allclose(inflow[1:-1], outflow[1:-1], atol=1e-14)  # (b)
    pair = pair_of_tuple(space)
    np.testing.assert_allclose(theta, np.bincount(pair, theta)[pair] * mdp.transitions, atol=1e-15)  # (c)


@given(mdps(), rngs(), st.sampled_from([0.0, 0.6]))
def test_policy_to_occupancy_and_back(mdp: LayeredMDP, rng: np.random.Generator, zeros: float) -> None:
    """The same policy where it goes, uniform where it never does; and the occupancy measure is the same."""
    space, policy = mdp.space, random_policy(rng, mdp.space, zeros)
    theta = mdp.occupancy(policy)
    back = Policy.from_occupancy(space, theta)
    s = space.pairs[:, 0]
    reached = (np.bincount(space.tuples[:, 0], theta) > 0)[s]
    np.testing.assert_allclose(back.probabilities[reached], policy.probabilities[reached], rtol=1e-12)
    np.testing.assert_array_equal(back.probabilities[~reached], (1 / np.bincount(s)[s])[~reached])
    np.testing.assert_allclose(mdp.occupancy(back), theta, rtol=1e-12)


@given(mdps(), rngs(), st.sampled_from([0.0, 0.6]))
def test_model_from_occupancy(mdp: LayeredMDP, rng: np.random.Generator, zeros: float) -> None:
    """The same model where the policy goes, uniform where it never does."""
    space = mdp.space
    theta = mdp.occupancy(random_policy(rng, space, zeros))
    back, pair = LayeredMDP.from_occupancy(space, theta), pair_of_tuple(space)
    reached = (np.bincount(pair, theta) > 0)[pair]
    np.testing.assert_allclose(back.transitions[reached], mdp.transitions[reached], rtol=1e-12)
    np.testing.assert_array_equal(back.transitions[~reached], (1 / np.bincount(pair)[pair])[~reached])


def test_never_reached_is_uniform() -> None:
    """The first move always goes to state 1; nothing is known about state 2, which has three actions."""
    tuples = [(0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3), (2, 1, 3), (2, 2, 3)]
    space = LayeredSpace.from_tuples([1, 2, 1], 3, tuples)
    mdp = LayeredMDP(space, np.ones(6))
    theta = mdp.occupancy(Policy(space, [1, 0, 1, 0.2, 0.3, 0.5]))
    assert theta.tolist() == [1, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(Policy.from_occupancy(space, theta).probabilities, [1, 0, 1, 1 / 3, 1 / 3, 1 / 3])


def test_transitions_that_are_a_little_off_are_scaled_and_rounding_is_kept() -> None:
    """Within the tolerance but beyond rounding, a pair sums to one all the same; what only rounds is left as it is."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    given = np.array([0.5, 0.5 + 8e-10, 0.1, 0.9 + 1e-15, 1, 1 - 8e-10, 1, 1])
    P = LayeredMDP(space, given).transitions
    np.testing.assert_allclose(space.sum_over_successors(P), 1, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(P[:2], given[:2] / given[:2].sum())
    np.testing.assert_array_equal(P[2:4], given[2:4])


def test_mass_whose_reciprocal_is_no_number_counts_as_none() -> None:
    """1 / 1e-310 is infinite and shares of so little would be nan: uniform; of a little more they are exact."""
    theta = np.array([3.0, 1.0, 2.0, 2.0, 1.0, 3.0, 0.0, 4.0])
    for mass in (1e-310, 5e-324):
        tiny = np.minimum(theta, 1.0) * mass
        np.testing.assert_array_equal(Policy.from_occupancy(SPACE, tiny).probabilities, 0.5)
        np.testing.assert_array_equal(LayeredMDP.from_occupancy(SPACE, tiny).transitions, EVEN)
    for scale in (1.0, 1e-290):
        policy, mdp = Policy.from_occupancy(SPACE, scale * theta), LayeredMDP.from_occupancy(SPACE, scale * theta)
        np.testing.assert_allclose(policy.probabilities, [0.5, 0.5, 0.25, 0.75, 0, 1], rtol=1e-15)
        np.testing.assert_allclose(mdp.transitions, [0.75, 0.25, 0.5, 0.5, 1, 1, 1, 1], rtol=1e-15)


@given(spaces())
def test_uniform_policy(space: LayeredSpace) -> None:
    s = space.pairs[:, 0]
    np.testing.assert_allclose(Policy.uniform(space).probabilities, 1 / np.bincount(s)[s], rtol=1e-15)


# ------------------------------------------------------------------------------------------- bad input

SPACE = LayeredSpace.dense([1, 2, 1], 2)
EVEN = np.array([0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1])


def with_entry(values: FloatArray, index: int, value: float) -> FloatArray:
    changed = values.copy()
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        (with_entry(EVEN, 2, 0.4), "transitions from state 0 under action 1 sum to 0.9, not 1"),
        (
            with_entry(EVEN, 6, 1.0 + 2e-9),
            "transitions from state 2 under action 0 sum to 1.000000002, not 1",
        ),
        (with_entry(EVEN, 3, -0.5), r"transition \(0, 1, 2\) has probability -0.5"),
        (with_entry(EVEN, 5, np.nan), "transitions is nan at index 5"),
        (with_entry(EVEN, 0, np.inf), "transitions is inf at index 0"),
        (EVEN[:-1], r"transitions has shape \(7,\); expected \(8,\)"),
        (EVEN.reshape(4, 2), r"transitions has shape \(4, 2\); expected \(8,\)"),
    ],
)
def test_bad_transitions_are_named(transitions: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LayeredMDP(SPACE, transitions)


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.4, 1, 0, 1, 0], "action probabilities at state 0 sum to 0.9, not 1"),
        ([0.5, 0.5, 1, 0, 1, 1], "action probabilities at state 2 sum to 2, not 1"),
        ([0.5, 0.5, 1.5, -0.5, 1, 0], "action 1 at state 1 has probability -0.5"),
        ([0.5, 0.5, np.nan, 0, 1, 0], "probabilities is nan at index 2"),
        ([0.5, 0.5, 1, 0, 1], r"probabilities has shape \(5,\); expected \(6,\)"),
    ],
)
def test_bad_policies_are_named(probabilities: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Policy(SPACE, probabilities)


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (with_entry(EVEN, 3, -0.25), r"theta is -0.25 at tuple \(0, 1, 2\)"),
        (with_entry(EVEN, 7, np.nan), "theta is nan at index 7"),
        (EVEN[1:], r"theta has shape \(7,\); expected \(8,\)"),
    ],
)
def test_bad_measures_are_named(theta: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Policy.from_occupancy(SPACE, theta)


def test_bad_measures_give_no_model() -> None:
    with pytest.raises(InvalidInputError, match="theta is inf at index 2"):
        LayeredMDP.from_occupancy(SPACE, with_entry(EVEN, 2, np.inf))
    with pytest.raises(InvalidInputError, match=r"theta has shape \(2,\); expected \(8,\)"):
        LayeredMDP.from_occupancy(SPACE, [1.0, 1.0])


def test_a_policy_of_another_space_is_refused() -> None:
    other = LayeredSpace.from_tuples([1, 2, 1], 2, np.delete(SPACE.tuples, 1, axis=0))
    with pytest.raises(InvalidInputError, match="have different spaces"):
        LayeredMDP(SPACE, EVEN).occupancy(Policy.uniform(other))
    same = LayeredSpace.from_tuples([1, 2, 1], 2, SPACE.tuples)
    assert LayeredMDP(SPACE, EVEN).occupancy(Policy.uniform(same)).sum() == pytest.approx(2)


def test_flat_gives_kernels_what_they_take() -> None:
    frozen = np.ones(3)
    frozen.flags.writeable = False
    for values in (frozen, np.ones(6)[::2], np.ones(3, dtype=np.float32)):
        array = flat(values, 3, "values")
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert array.flags.writeable
    assert not frozen.flags.writeable
    assert flat([1, 2, 3], 3, "values").tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("size", [1e308, 1.7e308, 1e-290, 1.0])
def test_measures_of_any_size_have_a_policy_and_a_model(size: float) -> None:
    theta = np.array([1.0, 0.5, 0.25, 0.25, 1.0, 0.5, 0.5, 1.0]) * size
    np.testing.assert_allclose(Policy.from_occupancy(SPACE, theta).probabilities[:2], [0.75, 0.25])
    np.testing.assert_allclose(LayeredMDP.from_occupancy(SPACE, theta).transitions[:2], [2 / 3, 1 / 3])
