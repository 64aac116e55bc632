"""Counts, epochs and confidence sets: against their definitions, and against chance."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tests.conftest import pair_of_tuple, random_mdp, random_policy, rngs, spaces
from tests.twins import layer_of_state, sample_path
from tightrope import Box, InvalidInputError, KLBall, KnownModel, L1Ball, LayeredSpace, PaperRadius, core
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, Counts


def random_counts(rng: np.random.Generator, space: LayeredSpace) -> tuple[np.ndarray, np.ndarray]:
    """Visits of pairs (a third of them none) and of tuples."""
    pair = pair_of_tuple(space)
    N = rng.integers(1, 1000, space.n_pairs) * (rng.random(space.n_pairs) < 0.7)
    M = np.concatenate([rng.multinomial(N[i], rng.dirichlet(np.ones((pair == i).sum()))) for i in range(space.n_pairs)])
    return N, M


# --------------------------------------------------------------------------------------------- radii


@given(spaces(), rngs(), st.integers(1, 10**6), st.floats(1e-6, 0.999), st.floats(0, 3))
def test_paper_radius_is_the_formula(
    space: LayeredSpace, rng: np.random.Generator, T: int, zeta: float, scale: float
) -> None:
    N, M = random_counts(rng, space)
    ball = PaperRadius(episodes=T, level=zeta, scale=scale)(space, N, M)
    ball.check(space)
    for i, (s, a) in enumerate(space.pairs.tolist()):
        here = (space.tuples[:, 0] == s) & (space.tuples[:, 1] == a)
        if N[i] == 0:
            assert ball.radius[i] == np.inf
            continue
        next_layer = int((layer_of_state(space) == layer_of_state(space)[s] + 1).sum())
        eps = math.sqrt(2 * next_layer * math.log((T + 1) * space.n_states * space.n_actions / zeta) / max(1, N[i]))
        assert ball.radius[i] == pytest.approx(scale * eps, rel=1e-12)
        np.testing.assert_array_equal(ball.center[here], M[here] / N[i])


def test_paper_radius_by_hand() -> None:
    """T + 1 = 100, |S||A| = 4·2 and ζ = 800/e⁸ make the logarithm 8: ε = sqrt(16 |S'| / N)."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    rule = PaperRadius(episodes=99, level=800 / math.e**8)
    N = np.array([8, 32, 0, 1, 16, 64])
    M = np.array([8, 0, 24, 8, 0, 1, 16, 64])
    ball = rule(space, N, M)
    np.testing.assert_allclose(ball.radius, [2, 1, np.inf, 4, 1, 0.5], rtol=1e-12)
    np.testing.assert_array_equal(ball.center, [1, 0, 0.75, 0.25, 0, 1, 1, 1])
    np.testing.assert_allclose(replace(rule, scale=0.5)(space, N, M).radius, ball.radius / 2)
    np.testing.assert_array_equal(replace(rule, scale=0.0)(space, N, M).radius, [0, 0, np.inf, 0, 0, 0])


def test_every_rule_can_be_made_by_name() -> None:
    assert CONFIDENCE_RULES["paper"](episodes=7, level=0.2, scale=0.5) == PaperRadius(episodes=7, level=0.2, scale=0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"level": 0.0}, "level is 0.0"),
        ({"level": 1.0}, "level is 1.0"),
        ({"level": np.nan}, "level is nan"),
        ({"scale": -0.1}, "scale is -0.1"),
        ({"scale": np.inf}, "scale is inf"),
    ],
)
def test_paper_radius_refuses_wrong_arguments(change: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        PaperRadius(**({"episodes": 10, "level": 0.1, "scale": 1.0} | change))  # type: ignore[arg-type]


@given(spaces(), rngs())
def test_known_model_is_one_point(space: LayeredSpace, rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, space, zeros=0.3)
    rule = KnownModel(transitions=mdp.transitions)
    for counts in (random_counts(rng, space), (np.zeros(space.n_pairs, int), np.zeros(space.n_tuples, int))):
        ball = rule(space, *counts)
        ball.check(space)
        np.testing.assert_array_equal(ball.center, mdp.transitions)
        np.testing.assert_array_equal(ball.radius, np.zeros(space.n_pairs))


def test_known_model_must_be_a_model() -> None:
    space = LayeredSpace.dense([1, 2, 1], 1)
    none = np.zeros(space.n_pairs, int), np.zeros(space.n_tuples, int)
    with pytest.raises(InvalidInputError, match=r"transitions from state 0 under action 0 sum to 0\.9"):
        KnownModel(transitions=np.array([0.5, 0.4, 1.0, 1.0]))(space, *none)
    assert repr(KnownModel(transitions=np.ones(4))) == "KnownModel()"


@given(spaces(), rngs())
def test_violation_of_a_ball(space: LayeredSpace, rng: np.random.Generator) -> None:
    """By how much a conditional is farther from the centre than its radius, over pairs with mass and a ball."""
    pair = pair_of_tuple(space)
    theta = rng.exponential(size=space.n_tuples) * (rng.random(space.n_pairs) < 0.7)[pair]
    center = random_mdp(rng, space).transitions
    radius = np.where(rng.random(space.n_pairs) < 0.3, np.inf, rng.uniform(0, 1.2, space.n_pairs))
    worst = 0.0
    for i in range(space.n_pairs):
        mass = theta[pair == i].sum()
        if mass > 0:
            worst = max(worst, np.abs(theta[pair == i] / mass - center[pair == i]).sum() - radius[i])
    assert L1Ball(center, radius).violation(space, theta) == pytest.approx(worst, abs=1e-12)


@given(spaces(), rngs(), st.sampled_from(["sum", "sign", "radius", "no number", "nothing"]), st.booleans())
def test_an_invalid_ball_is_refused(space: LayeredSpace, rng: np.random.Generator, what: str, free: bool) -> None:
    """One pair is spoilt; a center does no harm where the pair is free."""
    center, pair = random_mdp(rng, space).transitions, pair_of_tuple(space)
    radius = np.where(rng.random(space.n_pairs) < 0.3, np.inf, rng.uniform(0, 1.9, space.n_pairs))
    i = int(rng.integers(space.n_pairs))
    radius[i] = rng.choice([2.0, np.inf]) if free else 1.0
    first, last = np.flatnonzero(pair == i)[[0, -1]]
    match what:
        case "sum":
            center[first] += 2e-9
        case "sign":  # of the same sum; with one successor nothing changes
            center[first] -= 2.0
            center[last] += 2.0
        case "radius":
            radius[i] = -1e-300
        case "no number":
            radius[i] = np.nan
    ball = L1Ball(center, radius)
    if what == "nothing" or (free and what in ("sum", "sign")) or (what == "sign" and first == last):
        ball.check(space)
    else:
        s, a = space.pairs[i]
        with pytest.raises(InvalidInputError, match=f"state {s}, action {a}: (center is no distribution|radius is)"):
            ball.check(space)


# -------------------------------------------------------------------------------------------- epochs


def literal_counts(space: LayeredSpace, trajectories: list[list[int]]) -> list[tuple[int, list[int], list[int]]]:
    """Lines 6 to 15 of Algorithm 1, n >= max(1, N) over all pairs: (epoch, N, n) after every episode."""
    pairs = [tuple(row) for row in space.pairs.tolist()]
    N, n, epoch, after = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0), 1, []
    for steps in trajectories:
        for s, a, _ in space.tuples[steps].tolist():
            n[s, a] += 1
        if any(n[pair] >= max(1, N[pair]) for pair in pairs):
            for pair in pairs:
                N[pair] += n[pair]
                n[pair] = 0
            epoch += 1
        after.append((epoch, list(N.values()), list(n.values())))
    return after


def played(counts: Counts, path: np.ndarray) -> Counts:
    after, over = counts.after(path)
    return after.next_epoch() if over else after


@settings(max_examples=40)
@given(spaces(), rngs())
def test_epochs_and_literal_twin(space: LayeredSpace, rng: np.random.Generator) -> None:
    mdp, T = random_mdp(rng, space), 60
    trajectories = []
    for _ in range(T):
        pi = random_policy(rng, space).probabilities
        trajectories.append(sample_path(space, pi, mdp.transitions, rng.random(2 * space.n_layers))[2])
    counts = Counts(space)
    for t, expected in enumerate(literal_counts(space, trajectories)):
        counts = played(counts, np.array(trajectories[t]))
        assert (counts.epoch, counts.N.tolist(), counts.n.tolist()) == expected
        N, M = counts.totals()
        seen = np.concatenate(trajectories[: t + 1])
        np.testing.assert_array_equal(M, np.bincount(seen, minlength=space.n_tuples))
        np.testing.assert_array_equal(N, np.bincount(pair_of_tuple(space), M))
        np.testing.assert_array_equal(counts.N, np.bincount(pair_of_tuple(space), counts.M))
    # an epoch that a pair ends is at least max(1, N) episodes long and takes N to 2N or more: if the pair ends K of
    # them, these take 2^(K-1) episodes, so ΣK <= n_pairs log2(2T/n_pairs)
    assert space.n_pairs <= T
    assert counts.epoch <= 1 + space.n_pairs * math.log2(2 * T / space.n_pairs)
    assert counts.epoch <= space.n_states * space.n_actions * math.log2(8 * T / (space.n_states * space.n_actions))


def test_epochs_reach_the_largest_possible_number() -> None:
    """One action after another, each 1, 1, 2, 4, … times in a row, meets the bound above exactly."""
    n_actions, K = 5, 6
    space = LayeredSpace.dense([1, 1], n_actions)
    counts = Counts(space)
    T = 0
    for a in range(n_actions):
        for _ in range(2 ** (K - 1)):
            counts = played(counts, np.array([a]))
            T += 1
    assert counts.epoch == 1 + n_actions * K == 1 + space.n_pairs * math.log2(2 * T / space.n_pairs)


@pytest.mark.parametrize("before", [2**31 - 1, 2**31, 2**40])
def test_an_epoch_ends_before_its_counts_overflow(before: int) -> None:
    space = LayeredSpace.dense([1, 1], 2)
    counts, path = Counts(space), np.array([1])
    counts.N[1] = counts.M[1] = before
    counts.n[1] = counts.m[1] = 2**31 - 3
    counts, over = counts.after(path)
    assert not over
    counts = played(counts, path)
    assert (counts.epoch, counts.n.tolist(), counts.m.tolist()) == (2, [0, 0], [0, 0])
    assert counts.N.tolist() == counts.M.tolist() == [0, before + 2**31 - 1]
    np.testing.assert_array_equal(counts.totals(), (counts.N, counts.M))


def test_totals_reach_beyond_32_bits() -> None:
    counts = Counts(LayeredSpace.dense([1, 1], 1))
    counts.N[:], counts.M[:], counts.n[:], counts.m[:] = 2**31, 2**31, 2**31 - 1, 2**31 - 1
    assert [total.tolist() for total in counts.totals()] == [[2**32 - 1]] * 2


def test_counts_do_not_change_when_others_are_made_of_them(rng: np.random.Generator) -> None:
    space = LayeredSpace.dense([1, 3, 2, 1], 2)
    mdp, counts = random_mdp(rng, space), Counts(space)
    pi = random_policy(rng, space).probabilities
    for _ in range(30):
        path = np.array(sample_path(space, pi, mdp.transitions, rng.random(2 * space.n_layers))[2])
        before = {name: np.array(part) for name, part in counts.state().items()}
        after = played(counts, path)
        for name, part in counts.state().items():
            np.testing.assert_array_equal(part, before[name])
        assert after.totals()[1].sum() == counts.totals()[1].sum() + space.n_layers
        counts = after


# ------------------------------------------------------------------------------------------ coverage

REPETITIONS, EPISODES, LEVEL = 150, 150, 0.2


def runs_that_leave(rule: ConfidenceRule) -> int:
    """In how many runs the true model is outside the set of some epoch, playing whatever was visited least."""
    rng = np.random.default_rng(11)
    space = LayeredSpace.dense([1, 3, 3, 1], 2)
    failures = 0
    for _ in range(REPETITIONS):
        mdp, counts = random_mdp(rng, space), Counts(space)
        inside = True
        for uniforms in rng.random((EPISODES, 6)):
            visits = counts.totals()[0]
            rare = visits == np.minimum.reduceat(visits, space.csr.state_ptr[:-2])[space.pairs[:, 0]]
            pi = rare / np.add.reduceat(rare, space.csr.state_ptr[:-2])[space.pairs[:, 0]]
            _, _, steps = core.sample_path(space.native, pi, mdp.transitions, uniforms)
            epoch = counts.epoch
            counts = played(counts, steps)
            if counts.epoch > epoch:
                ball = rule(space, counts.N, counts.M)
                assert isinstance(ball, L1Ball)
                off = space.sum_over_successors(np.abs(mdp.transitions - ball.center))
                inside &= bool((off <= ball.radius).all())
        failures += not inside
    return failures


def test_the_true_model_is_in_every_set_of_every_epoch() -> None:
    """As often as promised: more failures than `most` have a probability below 1e-9 if each has one of ζ."""
    most = binom.isf(1e-9, REPETITIONS, LEVEL)
    assert runs_that_leave(PaperRadius(episodes=EPISODES, level=LEVEL)) <= most
    # and this many runs would show a radius that is too small
    assert runs_that_leave(PaperRadius(episodes=EPISODES, level=LEVEL, scale=0.25)) > most


def test_a_pair_with_next_to_no_mass_violates_nothing() -> None:
    """Of 5e-324 a third and two thirds are the same number: the conditionals of such a pair say nothing."""
    space = LayeredSpace.dense([1, 2, 1], 1)
    center, radius = np.array([0.9, 0.1, 1.0, 1.0]), np.zeros(3)
    box = Box([0.9, 0.1, 1.0, 1.0], [0.9, 0.1, 1.0, 1.0])
    for confidence in (L1Ball(center, radius), KLBall(center, radius), box):
        assert confidence.violation(space, np.array([5e-324, 5e-324, 0.0, 1.0])) == 0
        assert confidence.violation(space, np.array([1e-299, 1e-299, 0.0, 1.0])) > 0.3
