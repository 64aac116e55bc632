"""The subproblem with linear inequalities: against a conic solver, by hand, and where they can hardly be met."""

import itertools
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import kl_div

from tests.conftest import FloatArray, pair_of_tuple
from tests.conic import measures
from tests.instances import Boxed, Instance, flow_residual, random_box, random_instance
from tests.projection.test_kl import Curved, curved_instance
from tightrope import ConvergenceError, InfeasibleError, InvalidInputError, L1Ball, LayeredSpace, core, project
from tightrope.confidence.sets import bounds_of, least_possible
from tightrope.projection import reference as in_numpy
from tightrope.projection.priced import PricedProjector, least_excess
from tightrope.projection.projector import Projector, hand_over

Some = Instance | Boxed | Curved


def boxed_instance(seed: int) -> Boxed:
    return random_box(seed, with_ball=seed % 2 == 0)


KINDS: dict[str, Callable[[int], Some]] = {"l1": random_instance, "box": boxed_instance, "kl": curved_instance}


def objective(instance: Some, theta: FloatArray) -> float:
    """<cost, θ> + D(θ, reference)."""
    return float(instance.cost @ theta + kl_div(theta, instance.reference).sum())


def some_inequalities(seed: int, instance: Some, m: int, room: float) -> tuple[FloatArray, FloatArray]:
    """A and b that another answer in the set meets, with `room` to spare."""
    rng = np.random.default_rng([seed, 99])
    A, elsewhere = rng.normal(size=(m, instance.space.n_tuples)), instance.cost + rng.normal(size=instance.cost.shape)
    return A, A @ project(instance.space, instance.reference, elsewhere, instance.confidence).theta + room


def conic_solution(instance: Some, A: FloatArray, b: FloatArray) -> tuple[str, FloatArray]:
    theta, by_pair, held = among = measures(instance.space)
    mass = by_pair.T @ by_pair @ theta
    if isinstance(instance, Boxed):
        held += [
            theta >= sp.diags(instance.confidence.lower) @ mass,
            theta <= sp.diags(instance.confidence.upper) @ mass,
        ]
    elif isinstance(instance, Instance):
        ball = instance.confidence
        bound = np.flatnonzero(ball.radius < 2)
        if len(bound):
            away = cp.abs(theta - sp.diags(ball.center) @ mass)
            held.append(by_pair[bound] @ away <= sp.diags(ball.radius[bound]) @ by_pair[bound] @ theta)
    else:
        pair, round_ = pair_of_tuple(instance.space), instance.confidence
        for i in np.flatnonzero(~round_.free(instance.space)):
            seen = np.flatnonzero((pair == i) & (round_.center > 0))
            total = cp.sum(theta[np.flatnonzero(pair == i)])
            divergence = cp.sum(cp.rel_entr(round_.center[seen] * total, theta[seen]))
            held.append(divergence <= round_.radius[i] * total)
    held.append(A @ theta <= b)
    return among.nearest(instance.reference, instance.cost)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_a_conic_solver(kind: str) -> None:
    """Never worse than the conic solver, certified, and the same minimum where that solver is exact."""
    agreed = priced = 0
    for seed in range(8):
        instance = KINDS[kind](2 * seed)  # boxes without balls have odd seeds
        if kind == "box":
            instance = random_box(seed, with_ball=False)
        A, b = some_inequalities(seed, instance, m=1 + seed % 7, room=0.05)
        answer = project(*instance, inequalities=(A, b))
        ours = objective(instance, answer.theta)
        assert flow_residual(instance.space, answer.theta) <= 1e-9
        assert answer.set_violation <= 1e-9
        assert np.all(A @ answer.theta <= b + 1e-9 * np.abs(A).max(axis=1))
        assert abs(answer.duality_gap) <= 1e-7 * (1 + abs(ours))
        priced += answer.multipliers.max() > 1e-3
        try:
            status, theta = conic_solution(instance, A, b)
        except cp.SolverError:
            continue
        if status == cp.OPTIMAL:
            theirs = objective(instance, np.maximum(theta, 0.0))
            assert ours <= theirs + 1e-5 * (1 + abs(theirs)), seed
            agreed += theirs <= ours + 1e-4 * (1 + abs(ours))
    assert agreed >= 3
    assert priced >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_multipliers_are_the_prices_at_which_the_plain_answer_is_the_same(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed + 20)
    A, b = some_inequalities(seed, instance, m=3, room=0.02)
    answer = project(*instance, inequalities=(A, b))
    assert (answer.multipliers >= 0).all()
    np.testing.assert_allclose(answer.multipliers * (b - A @ answer.theta), 0.0, atol=1e-8)
    priced = instance._replace(cost=instance.cost + answer.multipliers @ A)
    np.testing.assert_allclose(project(*priced).theta, answer.theta, atol=1e-8)


def test_by_hand() -> None:
    """One choice, θ = (1 − x, x), x <= 1/4, reference (1/2, 1/2), cost (0, −1): x = 1/4, y = log 3 + 1."""
    space = LayeredSpace.dense([1, 1], 2)
    free = L1Ball(np.ones(2), np.full(2, np.inf))
    plain = project(space, [0.5, 0.5], [0.0, -1.0], free)
    assert plain.theta[1] == pytest.approx(0.731058578630005, abs=1e-12)  # e / (1 + e)
    assert (len(plain.multipliers), plain.excess) == (0, 0.0)
    answer = project(space, [0.5, 0.5], [0.0, -1.0], free, inequalities=([[0.0, 1.0]], [0.25]))
    np.testing.assert_allclose(answer.theta, [0.75, 0.25], atol=1e-9)
    assert answer.multipliers == pytest.approx([2.09861228866811], abs=1e-8)
    assert answer.excess <= 1e-9


def test_rows_that_are_equal_scaled_or_empty() -> None:
    instance = random_instance(45)
    A, b = some_inequalities(0, instance, m=2, room=0.0)
    alone = project(*instance, inequalities=(A, b))
    assert alone.multipliers.max() > 0.01
    rows = np.vstack([A, A, 1e4 * A[:1], np.zeros_like(A[:1])])
    answer = project(*instance, inequalities=(rows, np.concatenate([b, b, 1e4 * b[:1], [0.0]])))
    np.testing.assert_allclose(answer.theta, alone.theta, atol=1e-8)
    of_first = answer.multipliers[0] + answer.multipliers[2] + 1e4 * answer.multipliers[4]
    together = np.array([of_first, answer.multipliers[1] + answer.multipliers[3]])
    np.testing.assert_allclose(together, alone.multipliers, rtol=1e-5, atol=1e-8)
    assert answer.multipliers[5] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_inequalities_with_room_change_nothing(kind: str) -> None:
    """θ̃ meets them: no price, and the answer without them; also where they are met to the last bit."""
    instance = KINDS[kind](5)
    plain = project(*instance)
    A = np.random.default_rng(0).normal(size=(9, instance.space.n_tuples))
    answer = project(*instance, inequalities=(A, A @ plain.theta))
    np.testing.assert_array_equal(answer.theta, plain.theta)
    assert not answer.multipliers.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_border_can_be_met_and_beyond_it_nothing(kind: str, seed: int) -> None:
    """b is the least that a row can be, or just below: an answer, and an error with the number in it."""
    instance = KINDS[kind](seed)
    A = np.random.default_rng(seed).integers(0, 3, size=(1, instance.space.n_tuples)).astype(float)
    least, _ = least_possible(instance.space, bounds_of(instance.confidence, instance.space), A[0])
    room = 1e-4 if kind == "kl" else 0.0  # at the surface of a KL ball prices would be infinite
    assert project(*instance, inequalities=(A, [least + room])).excess <= 1e-9
    for short, said in ((0.25, "0.25 less"), (1e-6, "1e-06 less")):
        with pytest.raises(InfeasibleError, match=r"inequality 0 cannot be met") as error:
            project(*instance, inequalities=(A, [least - short]))
        assert said in str(error.value)


def test_inequalities_that_exclude_each_other() -> None:
    """x <= 0.3 and 1 − x <= 0.5: whatever x, one is exceeded by 0.1 or more; the third has nothing to do with it."""
    space = LayeredSpace.dense([1, 1], 2)
    free = L1Ball(np.ones(2), np.full(2, np.inf))
    rows = ([[0.0, 1.0], [0.0, -0.5], [1.0, 0.0]], [0.3, 5.0, 0.5])
    with pytest.raises(InfeasibleError, match=r"inequalities 0 and 2 cannot be met together: .* by 0.1 or more"):
        project(space, [0.5, 0.5], [0.0, 0.0], free, inequalities=rows)
    with pytest.raises(InfeasibleError, match=r"inequality 1 cannot .* is 0 at the least, and b\[1\] is -1, 1 less"):
        project(space, [0.5, 0.5], [0.0, 0.0], free, inequalities=([[0.0, 1.0], [0.0, 0.0]], [0.3, -1.0]))


@pytest.mark.parametrize("seed", range(4))
def test_the_least_excess_is_that_of_a_linear_program(seed: int) -> None:
    """On L1 balls, written out for HiGHS: |p − center| becomes two more variables a tuple."""
    space, _, _, ball = random_instance(seed + 40)
    rng = np.random.default_rng(seed)
    A, b, n = rng.normal(size=(3, space.n_tuples)), rng.normal(size=3) - 2, space.n_tuples
    by_pair = measures(space).by_pair.toarray()
    spread = np.diag(ball.center) @ by_pair.T @ by_pair
    bound = np.flatnonzero(ball.radius < 2)
    away = np.eye(n) - spread
    upper = [
        np.hstack([A, np.zeros((3, n)), -np.ones((3, 1))]),
        np.hstack([away, -np.eye(n), np.zeros((n, 1))]),
        np.hstack([-away, -np.eye(n), np.zeros((n, 1))]),
        np.hstack([-(ball.radius[bound, None] * by_pair[bound]), by_pair[bound], np.zeros((len(bound), 1))]),
    ]
    layer, inner = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes), range(1, space.n_states - 1)
    mass = [np.append((layer[space.tuples[:, 0]] == k) * 1.0, np.zeros(n + 1)) for k in range(space.n_layers)]
    flow = [np.append(1.0 * (space.tuples[:, 2] == s) - (space.tuples[:, 0] == s), np.zeros(n + 1)) for s in inner]
    lp = linprog(
        np.append(np.zeros(2 * n), 1.0), np.vstack(upper), np.concatenate([b, np.zeros(2 * n + len(bound))]),
        np.array(mass + flow), np.append(np.ones(len(mass)), np.zeros(len(flow))),
        bounds=[(0, None)] * (2 * n) + [(None, None)],
    )  # fmt: skip
    excess, y = least_excess(space, ball, A, b)
    assert excess == pytest.approx(lp.fun, abs=1e-6)  # as HiGHS meets its rows
    assert y.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direct", [True, False], ids=["factors", "conjugate gradients"])
def test_the_response_to_prices_is_that_of_the_answer(kind: str, direct: bool) -> None:
    """S are the derivatives of −<A_i, θ>, and dβ is the one in NumPy but for a constant on each layer."""
    moved = 0.0
    for seed in range(10, 16):
        instance = KINDS[kind](seed)
        instance = instance._replace(cost=0.1 * np.tanh(instance.cost), reference=np.sqrt(instance.reference))
        space, confidence = instance.space, instance.confidence
        A = np.random.default_rng(seed).normal(size=(2, space.n_tuples))
        projector, theta = Projector(space, 1e-13), np.empty(space.n_tuples)
        projector.solve(instance.reference, instance.cost, confidence, theta)
        parts = core.Parts(space.native, direct)
        hand_over(confidence, parts, confidence.free(space))
        parts.evaluate(instance.reference, instance.cost, projector.potentials.copy(), False)
        drained, dbeta, S = np.empty((2, space.n_states)), np.empty((2, space.n_states)), np.empty((2, 2))
        parts.respond(A, 0.0, drained, dbeta, S)
        at = in_numpy.dual(space, instance.reference, instance.cost, confidence, projector.potentials.copy())
        expected, slopes = in_numpy.sensitivities(space, at, A)
        layers = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)
        for found, wanted in zip(dbeta, expected, strict=True):
            off = found - wanted
            np.testing.assert_allclose(off, (np.bincount(layers, off) / np.bincount(layers))[layers], atol=1e-6)
        np.testing.assert_allclose(S, -A @ slopes.T, atol=1e-8)
        ends = []
        for row, h in itertools.product(A, (1e-5, -1e-5)):
            end, other = np.empty_like(theta), Projector(space, 1e-13)
            other.solve(instance.reference, instance.cost + h * row, confidence, end)
            ends.append(end)
        numeric = np.array([ends[0] - ends[1], ends[2] - ends[3]]) / 2e-5
        np.testing.assert_allclose(S, -A @ numeric.T, atol=1e-4)
        moved += np.abs(S).max()
    assert moved > 0.3


def test_from_one_episode_to_the_next() -> None:
    """Warm starts are near, and a projector that was restored goes on to the last bit."""
    instance = random_instance(45)
    A, b = some_inequalities(0, instance, m=2, room=0.0)
    first, second = PricedProjector(instance.space, 2), PricedProjector(instance.space, 2)
    theta, again = np.empty((2, instance.space.n_tuples))
    rest = instance.confidence, A, b, np.full(2, np.inf)
    first.solve(instance.reference, instance.cost, *rest, theta)
    cold = first.iterations
    second.restore({name: np.array(values) for name, values in first.state().items()})
    for projector, answer in ((first, theta), (second, again)):
        projector.solve(instance.reference, 1.001 * instance.cost, *rest, answer)
    assert first.iterations < cold
    np.testing.assert_array_equal(theta, again)
    np.testing.assert_array_equal(first.multipliers, second.multipliers)
    second.multipliers = np.array([1e9, 1e9])  # out of the range of numbers: it starts again from none
    second.solve(instance.reference, 1.001 * instance.cost, *rest, again)
    np.testing.assert_allclose(theta, again, atol=1e-8)
    with pytest.raises(InvalidInputError, match="prices are not finite, or below 0"):
        second.restore(second.state() | {"prices": np.array([-1.0, 0.0])})
    with pytest.raises(InfeasibleError):
        first.solve(instance.reference, instance.cost, instance.confidence, A, b - 1e3, np.full(2, np.inf), theta)
    first.solve(instance.reference, 1.001 * instance.cost, *rest, theta)
    np.testing.assert_allclose(theta, again, atol=1e-8)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ("x", "expected .A, b."),
        (([[1.0, 2.0]], [1.0], 3), "expected .A, b."),
        (([[1.0, 2.0, 3.0]], [1.0]), "A of the inequalities has shape"),
        (([[1.0, 2.0]], [1.0, 2.0]), "b of the inequalities has shape"),
        (([[1.0, np.nan]], [1.0]), "A of the inequalities is nan"),
        (([[1.0, 2.0]], [np.inf]), "b of the inequalities is inf"),
    ],
)
def test_invalid_inequalities_are_refused(given_: object, said: str) -> None:
    space = LayeredSpace.dense([1, 1], 2)
    with pytest.raises(InvalidInputError, match=said):
        project(space, [0.5, 0.5], [0.0, 0.0], L1Ball(np.ones(2), np.full(2, np.inf)), inequalities=given_)  # type: ignore[arg-type]


def test_no_entries_give_none() -> None:
    instance = random_instance(3)
    none = (np.empty((0, instance.space.n_tuples)), np.empty(0))
    np.testing.assert_array_equal(project(*instance, inequalities=none).theta, project(*instance).theta)


@given(seed=st.integers(0, 10_000), m=st.integers(1, 8), room=st.sampled_from([0.0, 1e-6, 0.1]))
@settings(max_examples=25)
def test_an_answer_or_an_error_never_less(seed: int, m: int, room: float) -> None:
    """Up to more inequalities than tuples, all of them met by something: certified, or refused as out of range."""
    instance = random_instance(seed)
    A, b = some_inequalities(seed, instance, m, room)
    try:
        answer = project(*instance, inequalities=(A, b))
    except ConvergenceError:
        assert room == 0.0  # nothing but one measure may be left
        return
    assert answer.excess <= 1e-9
    assert abs(answer.duality_gap) <= 1e-6 * (1 + abs(objective(instance, answer.theta)))
