"""The theorem of `ucpd-inside`: every lemma against runs that could break it, and the bounds with their numbers."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import tightrope as tr
from tests.conftest import FloatArray, random_mdp, random_policy, rngs
from tests.theory.test_bounds import alternating, tiny
from tests.trajectories import sampled
from tests.twins import divergence, mixed
from tightrope import Episode, InvalidInputError, LayeredSpace, Policy, Problem, Ties
from tightrope.learners.ucpd_inside import (
    ROOMS,
    InsideState,
    UCPDInside,
    layer_variation,
    lower_bounds,
    range_of_D,
    tightened_by,
)
from tightrope.planning.hindsight import HindsightLP, most_slack
from tightrope.problems.constraints import Bernoulli, Constraints, Deterministic, ScaledNoise
from tightrope.problems.losses.adaptive import Chaser
from tightrope.problems.losses.oblivious import Fixed
from tightrope.projection.priced import least_excess
from tightrope.streams import streams
from tightrope.theory import bounds, bounds_inside, met_from
from tightrope.theory.inside import (
    choice_inside,
    deviation,
    first_within,
    log_ratio,
    model_error_inside,
)

LEVEL = 0.1


class Before(NamedTuple):
    """What a step starts from."""

    t: int  #: episodes before this one
    state: InsideState
    f: FloatArray
    policy: Policy


def play(
    problem: Problem, learner: UCPDInside, T: int, seed: int, look: Callable[[Before, UCPDInside], None]
) -> FloatArray:
    """Play T episodes, `look` at each step, and return Σ f."""
    for_losses, for_constraints, for_paths = (
        streams(seed).adversary,
        streams(seed).constraints,
        np.random.default_rng(seed),
    )
    adversary, total = problem.losses.begin(for_losses), np.zeros(problem.space.n_tuples)
    for t in range(T):
        f, g, policy = adversary.loss(t + 1), problem.constraints.sample(for_constraints), learner.policy
        before = Before(t, learner.state, f, policy)
        path = sampled(problem.space, problem.mdp.occupancy(policy), for_paths)
        adversary.watch(policy)
        learner.observe(Episode(*path, f, g))
        total += f
        look(before, learner)
    return total


def inside(problem: Problem, **options: Any) -> UCPDInside:
    return UCPDInside(problem.space, problem.budgets, **{"level": LEVEL} | options)


def rho(learner: UCPDInside, variation: float) -> float:
    return math.sqrt((4 * learner.space.n_layers + variation) / range_of_D(learner.space))


def rows_of(learner: UCPDInside) -> FloatArray:
    """g̲ of the step that gave the learner its θ."""
    state = learner.state
    return lower_bounds(state.mean_constraints, state.squares, state.observed, learner.log_inverse)


def chased(problem: Problem) -> Problem:
    """With losses that depend on the policies played."""
    return replace(problem, losses=Chaser(np.eye(2, problem.space.n_tuples), problem.mdp))


# ------------------------------------------------------------------------------------- 1: the bounds on the means


def share_outside(law: Callable[[np.random.Generator, tuple[int, int]], FloatArray], scale: float) -> float:
    """In how many of 1500 runs the mean is ever outside of [g̲, g̲ + 2b] in 300 draws; b times `scale`."""
    runs, draws, mean = 1500, 300, 0.2
    g = law(np.random.default_rng(11), (draws, runs))
    average, squares, ever = np.zeros((runs, 1)), np.zeros((runs, 1)), np.zeros(runs, dtype=bool)
    for t in range(1, draws + 1):
        off = g[t - 1][:, None] - average
        average, squares = average + off / t, squares + off * off
        low = lower_bounds(average, squares, t, math.log(2 / LEVEL))
        high = -lower_bounds(-average, squares, t, math.log(2 / LEVEL))
        ever |= (average - scale * (average - low) > mean)[:, 0] | (average + scale * (high - average) < mean)[:, 0]
    return float(ever.mean())


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "two ends": lambda rng, shape: np.where(rng.random(shape) < 0.6, 1.0, -1.0),
    "two numbers": lambda rng, shape: np.where(rng.random(shape) < 0.5, 0.1, 0.3),
    "rare": lambda rng, shape: np.where(rng.random(shape) < 0.2, 1.0, 0.0),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_mean_is_hardly_ever_outside_its_bounds(law: str) -> None:
    assert share_outside(LAWS[law], 1.0) * 1500 <= binom.ppf(1 - 1e-6, 1500, LEVEL)
    assert share_outside(LAWS[law], 0.3) > LEVEL  # so that it can fail


@given(st.floats(0, 1e6), st.floats(1e-6, 0.5))
def test_the_deviation_is_that_of_the_kernel(V: float, delta: float) -> None:
    n = 10**7
    kernel = n * (
        0.9 - tr.core.lower_means(np.array([n]), np.array([[0.9 * n]]), np.array([[V]]), math.log(1 / delta), 1.0)
    )
    assert deviation(np.array([V]), math.log(1 / delta))[0] == pytest.approx(kernel[0, 0], rel=1e-6, abs=1e-6)


def test_the_state_has_what_the_bounds_are_made_of() -> None:
    """Means, squares and variation, recomputed from all draws and losses; ζ is shared among both sides of 8 means."""
    problem, learner = tiny(ScaledNoise, alternating), inside(tiny(ScaledNoise, alternating))
    draws: list[FloatArray] = []
    rng, L = np.random.default_rng(1), 2
    for t in range(30):
        draws.append(problem.constraints.sample(rng))
        path = sampled(problem.space, problem.mdp.occupancy(learner.policy), rng)
        learner.observe(Episode(*path, problem.losses.begin(rng).loss(t + 1), draws[-1]))
    before = [np.mean(draws[:t], axis=0) if t else 0.0 for t in range(30)]
    np.testing.assert_allclose(learner.state.mean_constraints, np.mean(draws, axis=0), rtol=1e-12)
    squares = sum((g - mean) ** 2 for g, mean in zip(draws, before, strict=True))
    np.testing.assert_allclose(learner.state.squares, squares, rtol=1e-12)
    assert learner.state.variation == pytest.approx(L * 1 + L * 29 * 4)  # ±1 in both layers: half spans of 1, and 2
    assert learner.log_inverse == pytest.approx(math.log(2 * 8 / LEVEL))
    most = bounds_inside(problem, episodes=31, variation=learner.state.variation)
    assert bounds_inside(problem, episodes=31) == most  # no losses vary more


# ----------------------------------------------------------------------------- 2: the comparator is always allowed


@pytest.mark.parametrize("constraints", [Deterministic, ScaledNoise, Bernoulli])
def test_every_policy_within_the_budgets_is_allowed_in_every_step(constraints: Callable[..., Constraints]) -> None:
    """And with the means themselves for rows, the policies that spend the budget exactly would not be."""
    problem = tiny(constraints if constraints is not Bernoulli else lambda g: Bernoulli(g, height=1.25), alternating)
    rng, g, c = np.random.default_rng(3), problem.constraints.mean, problem.budgets
    rich, poor = np.full(6, 0.5), np.full(6, 0.5)
    rich[[0, 2, 4]], poor[[0, 2, 4]] = 1, 0
    rich, poor = rich - 0.5 * (rich == 0.5), poor + 0.5 * (poor == 0.5)
    high, low = (problem.mdp.occupancy(Policy(problem.space, p)) for p in (rich, poor))
    share = (c[0] - g[0] @ low) / (g[0] @ high - g[0] @ low)
    others = [share * high + (1 - share) * low, low]
    others += [
        u for u in (problem.mdp.occupancy(random_policy(rng, problem.space)) for _ in range(30)) if g[0] @ u <= c[0]
    ]
    assert len(others) > 5
    by_mean, confidence, measures = 0, None, np.array(others).T

    def look(before: Before, learner: UCPDInside) -> None:
        nonlocal by_mean, confidence
        if learner.confidence_set is not confidence:  # an epoch has the same set
            confidence = learner.confidence_set
            assert max(confidence.violation(problem.space, u) for u in others) <= 1e-12
        assert (rows_of(learner) @ measures <= c[:, None] + 1e-12).all()
        by_mean += bool((learner.state.mean_constraints @ others[0] > c + 1e-9).any())

    for seed in range(3):
        play(problem, inside(problem, level=0.001), 200, seed, look)
    assert (by_mean > 100) == (constraints is not Deterministic)


# ------------------------------------------------------------------------------------------- 3: mirror descent


@pytest.mark.parametrize("kappa", [0.0, 0.3])
@pytest.mark.parametrize("binding", [False, True])
def test_one_step(binding: bool, kappa: float) -> None:
    """The inequality that the regret adds up, for every measure that the step allows; of the best it is an equality."""
    problem = tiny(ScaledNoise, Fixed) if binding else chased(tiny(ScaledNoise, alternating))
    space, c, rng = problem.space, problem.budgets, np.random.default_rng(5)
    U = mixed(space, np.zeros(space.n_tuples), 1.0)
    least, looked_at, priced, last = math.inf, 0, 0, np.zeros(space.n_tuples)

    def look(before: Before, learner: UCPDInside) -> None:
        nonlocal least, looked_at, priced, last
        t, theta, old = before.t + 1, learner.state.theta, before.state
        h, last = 2 * before.f - last, before.f
        now, then = rho(learner, learner.state.variation), rho(learner, old.variation)
        reference = mixed(space, old.theta, 1 / (t + 1) ** 2)
        rows, limits = rows_of(learner), c - tightened_by(kappa, t + 1.0)
        assert (rows @ theta <= limits + 1e-8).all()
        if (learner.multipliers > 0.01).any():
            np.testing.assert_allclose(rows @ theta, limits, atol=1e-6)
            priced += 1
        candidates = [problem.mdp.occupancy(random_policy(rng, space, zeros=0.3)) for _ in range(3)]
        for u in [theta, *candidates]:
            if (rows @ u > limits + 1e-9).any() or learner.confidence_set.violation(space, u) > 0:
                continue
            right = then * (divergence(u, reference) - divergence(theta, reference))
            right += (now - then) * (divergence(u, U) - divergence(theta, U)) - now * divergence(u, theta)
            left = h @ (theta - u)
            assert left <= right + 1e-6
            if u is not theta:
                least, looked_at = min(least, float(right - left)), looked_at + 1

    play(problem, inside(problem, tightening=kappa), 150, 1, look)
    assert looked_at > 50
    assert (priced > 100) is binding
    assert least < 1e-3


@given(rngs(), st.integers(1, 8))
def test_losses_in_hindsight_are_those_of_the_steps_and_what_they_did_not_foresee(
    rng: np.random.Generator, T: int
) -> None:
    """(ii): Σ <f^t, θ^t − u>, with a comparator that moves, by the h^t of the steps; whatever all of them are."""
    f, theta, u = (np.vstack([np.zeros(3), rng.normal(size=(T, 3))]) for _ in range(3))
    before = np.vstack([np.zeros(3), f[:-1]])
    d, h = f - before, 2 * f - before
    for start in range(T):
        left = sum(f[t] @ (theta[t] - u[t]) for t in range(start + 1, T + 1))
        right = sum(h[t] @ (theta[t + 1] - u[t + 1]) for t in range(start, T)) + d[T] @ (theta[T] - u[T])
        right += sum(d[t] @ (theta[t] - theta[t + 1] + u[t + 1] - u[t]) for t in range(start + 1, T))
        right -= d[start] @ (theta[start + 1] - u[start + 1])
        assert left == pytest.approx(right, abs=1e-9)


@given(rngs(), st.floats(0.01, 0.9), st.floats(0.1, 20))
def test_moving_and_mixing(rng: np.random.Generator, share: float, rate: float) -> None:
    """(iii) and (iv): what mixing adds to D and to the loss, and a move that D pays for; all are nearly reached."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    measures = (random_mdp(rng, space).occupancy(random_policy(rng, space, zeros=0.3)) for _ in range(3))
    (u, theta, other), d = measures, rng.uniform(-2, 2, space.n_tuples)
    L, reference = space.n_layers, mixed(space, theta, share)

    def added(layers: int) -> float:
        return layers * math.log(1 / (1 - share))

    def paid(W: float, rate: float) -> float:
        return W / (2 * rate)

    assert divergence(u, reference) <= divergence(u, mixed(space, theta, 1e-12)) + added(L) + 1e-6
    assert divergence(u, mixed(space, u, 1.0)) <= range_of_D(space) - L * math.log(2) + 1e-12  # E
    W = layer_variation(space, d)
    assert d @ (theta - reference) <= 2 * share * math.sqrt(L * W) + 1e-12 <= 4 * L * share + 1e-12
    assert d @ (reference - other) - rate * divergence(other, reference) <= paid(W, rate) + 1e-12
    # one layer of many tuples, θ at u: mixing adds what it may
    many = LayeredSpace.dense([1, 1], 100)
    corner = np.eye(1, many.n_tuples)[0]
    assert 0.9 * added(1) < divergence(corner, mixed(many, corner, share)) <= added(1)
    # Pinsker's inequality is sharp at a layer of two halves where rates are high
    one, high, halves = np.array([1.0, -1.0]), 100 * rate, np.full(2, 0.5)
    best = halves * np.exp(-one / high) / np.cosh(1 / high)
    assert 0.98 * paid(1.0, high) < one @ (halves - best) - high * divergence(best, halves) <= paid(1.0, high) + 1e-12


@pytest.mark.parametrize("still", [True, False])
def test_the_right_hand_sides_of_the_steps_add_up(still: bool) -> None:
    """(i) to (iii): what all steps say of every u, at most ρ_{T−1} R; and more than half of that."""
    space, T = LayeredSpace.dense([1, 1], 2), 300
    learner, rng, U = UCPDInside(space, []), np.random.default_rng(6), np.full(2, 0.5)
    then, now, last, f, total = 0.0, rho(learner, 0.0), np.zeros(2), np.zeros(2), np.zeros(2)
    reference = U
    for t in range(T):
        theta = learner.state.theta
        spent = (2 * f - last) @ theta + then * divergence(theta, reference) + (now - then) * divergence(theta, U)
        total += spent - (2 * f - last)
        last, f = f, np.array([1.0, -1.0]) if still else rng.uniform(-1, 1, 2)
        learner.observe(Episode([0, 1], [0], f, np.zeros((0, 2))))
        reference, then, now = mixed(space, theta, 1 / (t + 2) ** 2), now, rho(learner, learner.state.variation)
    allowed = then * range_of_D(space)
    assert total.max() <= allowed
    assert bool(total.max() > 0.6 * allowed) is still


@given(st.lists(st.floats(0, 8), min_size=1, max_size=60), st.floats(0.5, 50))
def test_learning_rates_sum_to_their_bound(W: list[float], R: float) -> None:
    """Σ W_t / (2 ρ_{t−1}) <= √(R Σ W_t), for W_t <= 4L; and mixing costs at most log 2 a layer in all."""
    V = np.cumsum(W)
    before = np.sqrt((8 + V - W) / R)
    assert (np.array(W) / (2 * before)).sum() <= math.sqrt(R * V[-1]) + 1e-9
    mixing = -np.log1p(-1 / np.arange(2.0, len(W) + 2) ** 2)
    assert mixing.sum() <= math.log(2)


def test_the_step_term_is_bounded_for_the_worst_losses() -> None:
    """One step, nothing to learn, no budget: losses that charge what was chosen; never above, and a tenth of it."""
    space = LayeredSpace.dense([1, 1], 2)
    learner, total, paid, V = UCPDInside(space, []), np.zeros(2), 0.0, 0.0
    rng = np.random.default_rng(2)
    T, f = 2000, np.zeros(2)
    for _ in range(T):
        V_before = V
        theta, last = learner.state.theta, f
        f = np.where(rng.random(2) < 0.5, 1.0, -1.0) if rng.random() < 0.5 else np.sign(theta - 0.5 + 1e-12)
        paid, total = paid + float(f @ theta), total + f
        V += layer_variation(space, f - last)
        learner.observe(Episode([0, 1], [0], f, np.zeros((0, 2))))
    assert learner.state.variation == pytest.approx(V)
    bound = choice_inside(space, T, V_before)
    assert 0.1 * bound < paid - total.min() <= bound


def test_losses_that_stand_still_cost_a_constant() -> None:
    """Regret does not grow once Σ W_t has stopped growing."""
    space = LayeredSpace.dense([1, 1], 2)
    learner, regret = UCPDInside(space, []), [0.0]
    for _ in range(400):
        regret.append(regret[-1] + float(np.array([1.0, -1.0]) @ learner.state.theta) + 1)
        learner.observe(Episode([0, 1], [0], np.array([1.0, -1.0]), np.zeros((0, 2))))
    assert regret[-1] - regret[200] < 0.01
    assert regret[-1] <= choice_inside(space, 400, 1.0)


# -------------------------------------------------------------------------------------------- 4: the model error


@given(rngs(), st.lists(st.integers(1, 4), min_size=0, max_size=3))
def test_an_error_counts_in_its_layer_and_in_those_that_follow(rng: np.random.Generator, sizes: list[int]) -> None:
    space = LayeredSpace.dense([1, *sizes, 1], 2)
    P, p, policy = random_mdp(rng, space), random_mdp(rng, space, zeros=0.3), random_policy(rng, space)
    truly, theta = P.occupancy(policy), p.occupancy(policy)
    off = space.sum_over_successors(np.abs(P.transitions - p.transitions))
    bound = (space.n_layers - space.layer_of_pair) * space.sum_over_successors(truly) @ off
    assert np.abs(theta - truly).sum() <= bound + 1e-12


def looped() -> tuple[LayeredSpace, Ties]:
    """One law of two outcomes in layers 0 and 1 of three."""
    tuples = [(0, 0, 1), (0, 0, 2), (1, 0, 3), (1, 0, 4), (2, 0, 4), (3, 0, 5), (4, 0, 5)]
    space = LayeredSpace.from_tuples([1, 2, 2, 1], 1, tuples)
    return space, Ties(space, [0, 1, 0, 1, 2, 3, 4])


def visits_may_add(ratio: float, visits: int, together: int) -> float:
    """Of one law, `together` visits at most with one set after it should have been renewed, Λ = `ratio`."""
    roots = math.sqrt(8 * ratio * visits)
    return (1 + math.sqrt(2)) * roots if together == 1 else 6 * together + 2 * math.sqrt(3) * roots


#: Λ is never less: that of two outcomes and one visit is above 1.
LEAST_RATIO = 1.0


def test_the_first_visits_of_a_law_count_apart() -> None:
    """30 of them before the first set: more than the root allows."""
    assert 2 * math.sqrt(3) * math.sqrt(8 * LEAST_RATIO * 30) < 2 * 30 <= visits_may_add(LEAST_RATIO, 30, 30)
    assert visits_may_add(0.5, 1, 1) >= 2
    assert min(float(log_ratio(np.array([d]), 1, 1, 1.0)[0]) for d in range(2, 2000)) > LEAST_RATIO


@given(
    rngs(), st.integers(1, 5), st.integers(1, 6), st.floats(0.02, 1), st.integers(1, 400), st.floats(LEAST_RATIO, 10)
)
def test_errors_summed_over_the_visits_of_one_law_are_bounded(
    rng: np.random.Generator, m: int, block: int, growth: float, episodes: int, ratio: float
) -> None:
    """Σ min{2, 2√(2Λ/N)} over visits: untied as in UCRL2; of a law met up to m times an episode, as in section 7.

    With blocks of more than one episode N is that of the set when the block began.
    """
    N, n, total = 0, 0, 0.0
    for episode in range(episodes):
        if episode % block == 0:
            chosen_at = N
        visits = int(rng.integers(0, m + 1)) if rng.random() < 0.7 else m
        total += visits * min(2.0, 2 * math.sqrt(2 * ratio / max(1, chosen_at)))
        n += visits
        if n >= max(1, growth * N):
            N, n = N + n, 0
    assert total <= visits_may_add(ratio, N + n, m * block) + 1e-9


def test_sets_of_the_preset_are_one_block_old_at_the_most() -> None:
    """What remains proved of `ucpd-practical`: a law passes the count that renews its set by less than 6m visits."""
    space, ties = looped()
    rng, learner = np.random.default_rng(2), tr.UCPDPractical(space, [1.0], ties=ties, renewal=0.02)
    model, g = random_mdp(rng, space), np.full((1, space.n_tuples), 0.3)
    theta, seen, most = learner.state.theta, learner.state.counts, 0.0
    for _ in range(1500):
        if learner.state.theta is not theta:
            theta, seen = learner.state.theta, learner.state.counts
            assert learner.confidence_set.violation(space, theta) <= 1e-6
        path = sampled(space, model.occupancy(learner.policy), rng)
        learner.observe(Episode(*path, rng.uniform(-1, 1, space.n_tuples), g))
        N, visits = seen.laws[0], learner.state.counts.laws_so_far[0]
        passed = (visits - N - np.maximum(1, 0.02 * N))[space.successors_per_pair > 1]
        most = max(most, float(passed.max()))
    assert 4 < most < 6 * 2


def at_the_edge(center: FloatArray, towards: FloatArray, r: float) -> FloatArray:
    """The last law p with KL(center‖p) <= r on the way from the center."""
    way = np.linspace(0, 1, 2001)[:-1, None]
    laws = (1 - way) * center + way * towards
    law: FloatArray = laws[np.flatnonzero((center * np.log(center / laws)).sum(axis=1) <= r)[-1]]
    return law


@given(rngs(), st.integers(2, 8), st.floats(1e-4, 3))
def test_two_laws_of_one_kl_ball_are_close_in_l1(rng: np.random.Generator, d: int, r: float) -> None:
    """Both within KL(P̂‖·) <= r: not further apart than 2√(2r) in L1; on either side of two halves nearly that far."""
    far, center = 2 * math.sqrt(2 * r), rng.dirichlet(np.ones(d))
    p, q = (at_the_edge(center, corner, r) for corner in rng.dirichlet(np.full(d, 0.1), size=2))
    assert np.abs(p - q).sum() <= far
    p, q = (at_the_edge(np.full(2, 0.5), corner, r) for corner in np.eye(2))
    assert 0.9 * min(far, 1.0) < np.abs(p - q).sum() <= far


def test_what_is_counted_on_paths_and_what_is_expected_of_them() -> None:
    """The last term of M, at its worst: one of two pairs, even odds, an error of 2 in both layers. Not half of it."""
    C, T, runs = 2.0, 400, 4000
    visited = np.random.default_rng(8).binomial(T, 0.5, runs)
    missed, bound = 2 * C * (T / 2 - visited), C * math.sqrt(2 * T * math.log(1 / LEVEL))
    assert np.mean(missed > bound) * runs <= binom.ppf(1 - 1e-6, runs, LEVEL)
    assert np.mean(missed > bound / 2) > LEVEL


@given(st.integers(2, 30), st.integers(1, 10**6), st.integers(0, 2**32))
def test_radii_are_below_what_the_bound_takes_them_for(d: int, N: int, seed: int) -> None:
    """N r <= Λ, whatever the counts; and within log 2 of it where all outcomes are seen equally often."""
    space = LayeredSpace.dense([1, d, 1], 1)
    rng = np.random.default_rng(seed)
    M = np.zeros(space.n_tuples, dtype=np.int64)
    M[:d] = rng.multinomial(N, rng.dirichlet(np.full(d, 0.3)))
    counts = np.array([N, *M[:d]])
    M[d:] = M[:d]
    ratio = float(log_ratio(np.array([d]), N, 1, LEVEL)[0])
    r = tr.core.kl_radii(space.native, counts, M, math.log(1 / LEVEL), 1.0)[0]
    assert N * r <= ratio + 1e-9
    assert ratio - N * r <= d * math.log(2) / 2 + d**2 / (4 * N) + 0.1


# ------------------------------------------------------------------------------------------------- 5: optimism


@given(rngs(), st.integers(1, 5), st.integers(1, 40))
def test_the_bounds_of_a_tuple_are_not_far_from_its_means(rng: np.random.Generator, n: int, s: int) -> None:
    """Σ V_i <= s, and Σ 2b_i as in lemma 3, whatever is drawn; without noise Σ V_i <= 1/4."""
    shares = rng.dirichlet(np.full(n, 0.3), size=s) * rng.choice([-1.0, 1.0], size=(s, n))
    for g, most in ((shares, float(s)), (np.repeat(shares[:1], s, axis=0), 0.25)):
        mean, squares = np.zeros((n, 1)), np.zeros((n, 1))
        for t in range(1, s + 1):
            off = g[t - 1][:, None] - mean
            mean, squares = mean + off / t, squares + off * off
        assert squares.sum() / 4 <= most + 1e-12
        log_inverse, far = math.log(2 * n / LEVEL), 1000.0  # far from −1, where bounds are cut off
        b = mean + far - lower_bounds(mean + far, squares, s, log_inverse)
        allowed = 4 * n * deviation(np.array([most / n]), log_inverse)[0] / s
        assert 0.2 * allowed < 2 * b.sum() <= allowed + 1e-9


def test_what_lemma_3_takes_for_the_squares_is_nearly_reached() -> None:
    """By draws of 1 and −1: 5/8 of s; and without noise by a 1."""
    mean, squares = np.zeros((1, 1)), np.zeros((1, 1))
    for t, g in enumerate((1.0, -1.0), start=1):
        squares, mean = squares + (g - mean) ** 2, mean + (g - mean) / t
    assert squares[0, 0] / 4 == pytest.approx(5 / 8 * 2)


# ---------------------------------------------------------------------------------------- 6: tightened budgets


def slope(space: LayeredSpace, lam: float, w: float) -> float:
    """By how much D(u_w, θ̃) may rise per unit that w falls: E + L log(1/λ) + L log(1/w)."""
    L = space.n_layers
    return range_of_D(space) - L * math.log(2) + L * math.log(1 / lam) + L * math.log(1 / w)


@given(rngs(), st.floats(0.01, 1), st.floats(1e-6, 1), st.integers(1, 50))
def test_a_moving_comparator_adds_its_movement(rng: np.random.Generator, w: float, share: float, t: int) -> None:
    """D(u_{t+1}, θ̃) − D(u_t, θ̃) and <d, u_{t+1} − u_t>, on the way from the measure with slack to the best one."""
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    P = random_mdp(rng, space)
    u, safe, theta = (P.occupancy(random_policy(rng, space, zeros=0.5)) for _ in range(3))
    later, L, lam = share * w, space.n_layers, 1 / (t + 1) ** 2
    reference = mixed(space, theta, lam)
    now, then = (divergence((1 - x) * u + x * safe, reference) for x in (w, later))
    assert then - now <= (w - later) * slope(space, lam, later) + 1e-9
    d = rng.uniform(-2, 2, space.n_tuples)
    assert (w - later) * (d @ (u - safe)) <= 4 * L * (w - later) + 1e-12


def test_a_comparator_that_moves_needs_mass_everywhere() -> None:
    """One layer, θ̃ at u has a share of λ: the slope is E + log(1/λ) + log(1/w), each of them ten or so."""
    space = LayeredSpace.dense([1, 1], 20000)
    u, w, later, lam = np.eye(1, 20000)[0], 2e-5, 1e-5, 1e-5
    safe = (1 - u) / 19999
    now, then = (divergence((1 - x) * u + x * safe, mixed(space, safe, lam)) for x in (w, later))
    allowed = (w - later) * slope(space, lam, later)
    assert 0.95 * allowed < then - now <= allowed


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0, 10))
def test_what_is_spared_counts_in_the_norm(a: list[float], b: float) -> None:
    """‖[a − b1]_+‖₂ <= [‖a‖₂ − b]_+, for a, b >= 0; of one number they are equal."""
    left = float(np.linalg.norm(np.maximum(np.array(a) - b, 0)))
    assert left <= max(0.0, float(np.linalg.norm(a)) - b) + 1e-9


def test_what_is_spent_with_the_draws() -> None:
    """A walk in the plane with steps of 2L stays within 2L√(2T log(2/ζ)) with probability 1 − ζ; not within half."""
    T, runs, L = 200, 3000, 2.0
    angles = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 1.5], size=(T, runs)) * math.pi
    far = 2 * L * np.hypot(np.cos(angles).sum(axis=0), np.sin(angles).sum(axis=0))
    bound = 2 * L * math.sqrt(2 * T * math.log(2 / LEVEL))
    assert np.mean(far > bound) * runs <= binom.ppf(1 - 1e-6, runs, LEVEL)
    assert np.mean(far > bound / 2) > LEVEL


# ---------------------------------------------------------------------------------------------------- the runs


class Measured(NamedTuple):
    """The terms of the bounds, as they came out."""

    model_error: float
    optimism: float
    choice: float
    regret: float
    strong_violation: float
    violation: float


def measured(problem: Problem, T: int, seed: int, **options: Any) -> Measured:
    learner, g, c = inside(problem, **options), problem.constraints.mean, problem.budgets
    L, error, optimism, chosen, played, strong = problem.space.n_layers, 0.0, 0.0, 0.0, 0.0, 0.0
    over = np.zeros(len(c))
    rows = np.full(g.shape, -1.0)

    def look(before: Before, learner: UCPDInside) -> None:
        nonlocal error, optimism, chosen, played, strong, over, rows
        theta, truly = before.state.theta, problem.mdp.occupancy(before.policy)
        not_known, believed = float(np.abs(theta - truly).sum()), float(((g - rows) @ theta).sum())
        if before.t:  # what an episode exceeds budgets by is what was not known, or believed
            assert np.maximum(g @ truly - c, 0).sum() <= not_known + believed + 1e-7
        else:
            assert np.abs(g @ truly - c).sum() <= L + np.abs(c).sum()
        error += not_known
        optimism += believed if before.t else 0.0
        chosen, played = chosen + float(before.f @ theta), played + float(before.f @ truly)
        strong += float(np.linalg.norm(np.maximum(g @ truly - c, 0)))
        over += g @ truly - c
        rows = rows_of(learner)

    total = play(problem, learner, T, seed, look)
    best = HindsightLP(problem.mdp, g, c).solve(total).value
    violation = float(np.linalg.norm(np.maximum(over, 0)))
    return Measured(error, optimism, chosen - best, played - best, strong, violation)


#: The share of its bound that a term reaches in these runs: cut by more than that, the bound fails.
REACHED = {
    "model_error": 0.15,
    "optimism": 0.4,
    "choice": 0.25,
    "regret": 0.04,
    "strong_violation": 0.05,
    "violation": 0.02,
}


def two_budgets() -> Problem:
    """Three layers, two noisy budgets."""
    return tr.make("random", layer_sizes=[1, 3, 2, 1], n_actions=2, n_constraints=2, seed=4, noise="scaled")


def test_no_term_exceeds_its_bound_more_often_than_it_may() -> None:
    T = 600
    problems = [
        tiny(Deterministic, Fixed),
        tiny(ScaledNoise, alternating),
        chased(tiny(ScaledNoise, alternating)),
        two_budgets(),
    ]
    runs = [(bounds_inside(p, episodes=T, level=LEVEL), measured(p, T, seed)) for p in problems for seed in range(3)]
    for name, reached in REACHED.items():
        shares = np.array([getattr(found, name) / bound[name].value for bound, found in runs])
        assert (shares > 1).mean() <= max(bound[name].failure for bound, _ in runs), name
        assert shares.max() >= reached, (name, shares.max())


def test_tightened_steps_stay_below_the_budgets_by_as_much_as_there_is_room() -> None:
    """On the event that the sets hold, <g̲_i, θ^t> <= c_i − min{δ_t, ε}, also where nothing meets c_i − δ_t."""
    problem, kappa = tiny(ScaledNoise, alternating), 20.0
    slack = most_slack(problem.mdp, problem.constraints.mean, problem.budgets).slack
    raised = 0

    def look(before: Before, learner: UCPDInside) -> None:
        nonlocal raised
        delta = float(tightened_by(kappa, before.t + 2.0))
        rows, limits = rows_of(learner), problem.budgets - delta
        left = problem.budgets - rows @ learner.state.theta
        assert (left >= min(delta, slack) - ROOMS[0] - 1e-8).all()
        excess = max(0.0, least_excess(problem.space, learner.confidence_set, rows, limits)[0])
        assert (rows @ learner.state.theta <= limits + excess + ROOMS[0] + 1e-8).all()  # and raised by no more
        raised += bool((left < delta - 1e-3).any())

    play(problem, inside(problem, level=0.001, tightening=kappa), 120, 0, look)
    assert raised == 120


@pytest.mark.parametrize("kappa", [0.2, 1.0])
def test_what_aiming_below_the_budgets_costs_and_gains(kappa: float) -> None:
    problem, T = tiny(ScaledNoise, Fixed), 800
    slack = most_slack(problem.mdp, problem.constraints.mean, problem.budgets).slack
    loose, tight = measured(problem, T, 3), measured(problem, T, 3, tightening=kappa)
    found = bounds_inside(problem, episodes=T, level=LEVEL, tightening=kappa)
    spared = float(np.minimum(tightened_by(kappa, np.arange(2.0, T + 1)), slack).sum())
    assert tight.choice <= found["choice"].value
    assert tight.choice - loose.choice > 0.02 * spared  # it does cost something,
    assert tight.violation < loose.violation - 0.5 * min(spared, loose.violation)  # and gains something
    without = bounds_inside(problem, episodes=T, level=LEVEL)
    assert without["violation"].value - found["violation"].value == pytest.approx(spared, rel=0.02)


def test_steps_are_not_raised_where_budgets_leave_no_slack() -> None:
    """One policy meets the budgets, and what is neglected stays away while dynamics are not known exactly."""
    problem = two_budgets()
    least = -most_slack(problem.mdp, problem.constraints.mean, np.zeros(2)).slack
    problem = replace(problem, budgets=np.full(2, least))

    def look(before: Before, learner: UCPDInside) -> None:
        assert (rows_of(learner) @ learner.state.theta <= problem.budgets + 1e-8).all()

    play(problem, inside(problem, level=0.001), 200, 0, look)


def test_infeasible_budgets_give_the_least_excess() -> None:
    """No error; and the excess that is left is the least that any policy has, and what is not known."""
    problem = replace(tiny(Deterministic, Fixed), budgets=np.array([-0.2]))
    found = measured_over(problem, 300)
    assert found[-1] < 0.2 + 0.1
    assert math.isinf(bounds_inside(problem, episodes=10)["regret"].value)


@pytest.mark.parametrize("n", [1, 2])
def test_where_no_policy_meets_the_budgets_every_one_exceeds_them(n: int) -> None:
    """In every episode by 0.2 or more, in each of n budgets: bounds on violation are never below that."""
    problem = replace(tiny(Deterministic, Fixed), budgets=np.array([-0.2]))
    if n == 2:
        halves = Deterministic(np.repeat(problem.constraints.mean / 2, 2, axis=0))
        problem = replace(
            problem, constraints=halves, budgets=np.full(2, -0.2), constraint_names=("use", "again"),
            constraint_scales=np.ones(2),
        )  # fmt: skip
    for T in (10**3, 10**7):
        feasible = bounds_inside(replace(problem, budgets=np.zeros(n)), episodes=T)
        for term in ("strong_violation", "violation"):
            bound = bounds_inside(problem, episodes=T)[term].value
            least = math.sqrt(n) * 0.2 * T
            assert least < bound == pytest.approx(least + feasible[term].value + n * 0.2)
    assert met_from(problem, tightening=1000.0) == math.inf


@pytest.mark.parametrize(
    ("seed", "sizes", "n_budgets", "spare"),
    [
        (124, [1, 2, 2, 1, 1], 1, -0.1),
        (283, [1, 1, 1], 4, 1e-6),
        (373, [1, 1, 3, 1], 9, -0.1),
        (40, [1, 2, 2, 1, 1], 2, 0.0),
    ],
)
def test_no_step_fails_where_next_to_nothing_meets_the_budgets(
    seed: int, sizes: list[int], n_budgets: int, spare: float
) -> None:
    """Budgets that leave `spare`, which is less than each step aims below them."""
    problem = tr.make("random", layer_sizes=sizes, n_actions=2, n_constraints=n_budgets, seed=seed, noise="scaled")
    least = -most_slack(problem.mdp, problem.constraints.mean, np.zeros(n_budgets)).slack
    problem = replace(problem, budgets=np.full(n_budgets, least + spare))
    for kappa in (0.0, 10.0):
        history = tr.run(problem, inside(problem, tightening=kappa), episodes=40, records=1, regret="never")
        assert math.isfinite(history["strong_violation"][-1])


def measured_over(problem: Problem, T: int) -> FloatArray:
    """<g, θ̄^t> − c of one budget in every episode."""
    over: list[float] = []

    def look(before: Before, learner: UCPDInside) -> None:
        over.append(float(problem.constraints.mean[0] @ problem.mdp.occupancy(learner.policy) - problem.budgets[0]))

    play(problem, inside(problem), T, 0, look)
    return np.array(over)


# ------------------------------------------------------------------------------------------------- the numbers


def test_bounds_by_hand() -> None:
    """T = 100, ζ = 0.1; two pairs of layer 0 have two successors, layers have 4 tuples; c = 0.7, no noise."""
    found = bounds_inside(tiny(Deterministic, Fixed), episodes=100, level=0.1)
    ratio = math.log(2 / 0.1) + math.log(101) / 2 + math.log(2 * math.pi) / 2 + 1 / (12 * 101)  # d = 2, Γ(1) = 1
    error = 2 * (1 + math.sqrt(2)) * math.sqrt(8 * 100 * 2 * ratio) + 2 * math.sqrt(200 * math.log(10))
    R, V = 2 * math.log(4) + 2 * math.log(2), 2 + 8 * 98  # W_1 is at most 2, W_2, …, W_99 at most 8 each
    choice = math.sqrt(R * (8 + V)) + math.sqrt(R * V) + 8 * math.pi**2 / 6
    lam = 0.8 * 2 ** (-np.arange(30) / 2)
    weights = np.log(np.arange(1, 31) * np.arange(2, 32) * 2 * 8 / 0.1)
    b = 4 * ((weights + (-np.log1p(-lam) - lam) / 4) / lam).min()
    optimism = 2 * sum(min(2.0, b / s) for s in range(1, 100))
    assert found["model_error"].value == pytest.approx(error)
    assert found["choice"].value == pytest.approx(choice)
    assert found["regret"].value == pytest.approx(error + choice)
    assert found["optimism"].value == pytest.approx(optimism, rel=0.01)
    assert found["strong_violation"].value == pytest.approx(error + found["optimism"].value + 2.7)
    assert [bound.failure for bound in found.values()] == pytest.approx([0.2, 0.1, 0.2, 0.3, 0.3, 0.3])
    assert [bound.trivial for bound in found.values()] == pytest.approx([400, 400, 400, 400, 270, 270])


def test_bounds_of_tightened_steps_by_hand() -> None:
    """T = 100, ζ = 0.1, κ = 2, one noisy budget, ε = 0.7, layers of 4 tuples; losses known to vary by 50."""
    problem, delta = tiny(ScaledNoise, Fixed), 2 * np.sqrt(np.log(np.arange(101) + 1.0) / np.maximum(1, np.arange(101)))
    found = bounds_inside(problem, episodes=100, level=0.1, tightening=2.0, variation=50)
    room = next(t for t in range(1, 101) if delta[t + 1] <= 0.7)
    assert 10 < room < 90
    E = 2 * math.log(4)
    R = E + 2 * math.log(2)
    for kappa, t in ((2.0, room), (0.1, 1)):
        aim = delta * kappa / 2
        w = aim[t + 1] / 0.7
        assert 0.96 < w <= 1 if kappa == 2 else w < 0.11
        weight = E + 2 * math.log(2) + 4 * math.log(t + 1) + w * (E + 4 * math.log(100) + 2 * math.log(0.7 / aim[100]))
        choice = 4 * t + 4 / 0.7 * aim[t + 1 :].sum() + math.sqrt(R * 50) + 8 * (2 + math.pi**2 / 6)
        bound = choice_inside(problem.space, 100, 50, kappa, 0.7)
        assert bound == pytest.approx(choice + math.sqrt(58 / R) * weight, rel=0.01)
        if kappa == 2:
            assert found["choice"].value == pytest.approx(bound)
    lam = 0.8 * 2 ** (-np.arange(30) / 2)
    weights = np.log(np.arange(1, 31) * np.arange(2, 32) * 2 * 8 / 0.1)
    dev = [((weights + (-np.log1p(-lam) - lam) * s) / lam).min() for s in range(1, 100)]
    optimism = 2 * sum(min(2.0, 4 * d / s) for s, d in enumerate(dev, start=1))
    assert found["optimism"].value == pytest.approx(optimism, rel=0.01)
    strong = found["model_error"].value + found["optimism"].value + 2.7
    assert found["strong_violation"].value == pytest.approx(strong)
    draws = 4 * math.sqrt(200 * math.log(2 / 0.1))
    spared = np.minimum(delta[2:], 0.7).sum()
    assert found["violation"].value == pytest.approx(strong + draws - spared, rel=0.001)
    assert found["violation"].failure == pytest.approx(0.4)
    assert bounds_inside(problem, episodes=room, tightening=2.0)["choice"].value == 4 * room  # no room before
    assert choice_inside(problem.space, 100, 1.0, 1e50, 1e-200) == 400  # nor ever


def test_without_budgets_nothing_is_tightened() -> None:
    problem = tiny(Deterministic, Fixed)
    free = replace(
        problem, constraints=Deterministic(np.zeros((0, 8))), budgets=np.zeros(0), constraint_names=(),
        constraint_scales=np.zeros(0),
    )  # fmt: skip
    assert bounds_inside(free, episodes=100, tightening=1.0) == bounds_inside(free, episodes=100)
    assert bounds_inside(free, episodes=100)["violation"].value == 0


def test_model_errors_of_tied_laws_by_hand() -> None:
    space, ties = looped()
    ratio = math.log(1 / 0.1) + math.log(201) / 2 + math.log(2 * math.pi) / 2 + 1 / (12 * 201)
    bound = 6 * 2 * 3 + 2 * math.sqrt(3) * math.sqrt(8 * ratio * 200) * 3 + (3 + 2) * math.sqrt(200 * math.log(10))
    assert model_error_inside(space, 100, 0.1, ties) == pytest.approx(bound)


@pytest.mark.parametrize("name", ["media-streaming", "river-swim", "random", "edge-cloud"])
def test_below_the_bounds_of_the_paper_and_of_the_order_of_the_root_of_T(name: str) -> None:
    problem = tr.make(name)
    ours = {T: bounds_inside(problem, episodes=T) for T in (10**6, 10**8)}
    papers = bounds(problem, episodes=10**6)
    for term in ("model_error", "regret", "violation"):
        assert ours[10**6][term].value < 0.6 * papers[term].value
    for term, bound in ours[10**8].items():
        assert bound.value < 13 * ours[10**6][term].value, term


def test_ties_help_where_laws_are_met_in_many_layers() -> None:
    problem = tr.make("river-swim")
    tied, apart = (bounds_inside(problem, episodes=10**8, ties=ties)["model_error"].value for ties in (True, False))
    assert tied < 0.9 * apart


def test_the_time_from_which_budgets_are_met() -> None:
    problem = tiny(Deterministic, Fixed)
    for kappa in (300.0, 1000.0):
        T = met_from(problem, tightening=kappa, level=LEVEL)
        assert math.isfinite(T)
        for episodes, met in ((int(T), True), (int(T) // 2, False)):
            found = bounds_inside(problem, episodes=episodes, level=LEVEL, tightening=kappa)
            assert (found["violation"].value == 0) is met
    assert met_from(problem, tightening=0.01, level=LEVEL) == math.inf


def test_the_episode_from_which_there_is_room() -> None:
    for kappa, slack in ((0.1, 0.7), (1.0, 0.7), (30.0, 0.01)):
        t = first_within(kappa, slack)
        assert tightened_by(kappa, t + 1.0) <= slack
        assert t == 1 or tightened_by(kappa, float(t)) > slack


def test_wrong_arguments_of_bounds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="these change"):
        bounds_inside(tr.make("mannor-game"), episodes=10)
    no_room = replace(tiny(Deterministic, Fixed), budgets=np.array([0.0]))
    assert math.isfinite(bounds_inside(no_room, episodes=10)["regret"].value)
    assert bounds_inside(no_room, episodes=10, tightening=1.0)["regret"].value == math.inf
