"""The pair's question in the core, set by set: against `projection.reference`, by optimality, and by differences."""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from tests.conftest import FloatArray, random_shares, rngs
from tightrope import core
from tightrope.projection import reference

FIXED, SCALED_1, SCALED_2, WHOLE, CURVED = range(5)

WIDTHS = st.integers(1, 9)
PAIRS = st.sampled_from([1, 3, 8, 11, 64])
#: Of log w: from weights that are nearly equal to weights 1e200 apart.
SPREADS = st.sampled_from([1e-9, 0.1, 1.0, 10.0, 230.0])
#: What an earlier call may have left; any number must be accepted.
THRESHOLDS = st.sampled_from([0.0, 1e-300, 0.3, 1.0, 1e250, -1.0, np.inf, np.nan])


class Sets(NamedTuple):
    """The sets of some pairs with d successors; tables are (n_pairs, d)."""

    kind: str
    radius: FloatArray  #: (n_pairs,)
    center: FloatArray
    lower: FloatArray
    upper: FloatArray


class Answers(NamedTuple):
    """The core's answers; tables are (n_pairs, d)."""

    log_W: FloatArray
    p: FloatArray
    label: np.ndarray
    thresholds: FloatArray  #: (2, n_pairs)
    kappa: FloatArray


def random_sets(rng: np.random.Generator, kind: str, n: int, d: int) -> Sets:
    """Centers with and without zeros, points, tiny and large radii; bounds around the center, some equal."""
    center = random_shares(rng, np.repeat(np.arange(n), d), zeros=rng.choice([0.0, 0.5])).reshape(n, d)
    radius = np.where(rng.random(n) < 0.2, 0.0, np.exp(rng.uniform(np.log(1e-9), np.log(1.9), n)))
    slack = rng.choice([0.0, 1e-9, 0.1, 1.0], (2, n, 1)) * rng.random((2, n, d))
    lower, upper = np.maximum(center - slack[0], 0.0), np.minimum(center + slack[1], 1.0)
    if kind == "box":
        radius[:] = np.inf
    elif kind == "kl":
        radius = 0.5 * radius**2
    return Sets(kind, radius, center, lower, upper)


def ask_core(sets: Sets, log_w: FloatArray, thresholds: FloatArray | None = None, at: Any = core) -> Answers:
    """The answers for the rows of log w (n_pairs, d), of the core or of one of its modules."""
    n, d = log_w.shape
    p, W, label, kappa = np.exp(log_w).T.copy(), np.empty(n), np.zeros((d, n), dtype=np.int8), np.ones((d, n))
    thresholds = np.zeros((2, n)) if thresholds is None else thresholds.copy()
    center, lower, upper = (np.ascontiguousarray(table.T) for table in (sets.center, sets.lower, sets.upper))
    if sets.kind == "l1":
        at.answer_l1(center, sets.radius, p, W, label, thresholds)
    elif sets.kind == "kl":
        at.answer_kl(center, sets.radius, p, W, label, thresholds, kappa)
    else:
        at.answer_box(lower, upper, center, sets.radius, p, W, label, thresholds)
    return Answers(np.log(W), (p / W).T, label.T, thresholds, kappa.T)


def ask_reference(sets: Sets, i: int, log_w: FloatArray) -> reference.Answer:
    """Return the answer of the reference for pair i."""
    if sets.kind == "kl":
        return reference.answer_for_kl_ball(log_w, sets.center[i], float(sets.radius[i]))
    lower, upper = (sets.lower[i], sets.upper[i]) if sets.kind != "l1" else (0 * log_w, 0 * log_w + 1)
    return reference.answer_for_box(log_w, lower, upper, sets.center[i], float(sets.radius[i]))


def value(p: FloatArray, log_w: FloatArray) -> float:
    """Return the objective Σ p log(w/p)."""
    return float(np.sum(np.where(p > 0, p * (log_w - np.log(np.where(p > 0, p, 1.0))), 0.0)))


def divergence(P: FloatArray, p: FloatArray) -> FloatArray:
    """KL(P‖p) + Σ p − Σ P over the last axis: nothing cancels where P is close to p."""
    tau = (P - p) / np.maximum(p, 1e-300)
    x = np.clip(tau, -1e-4, 1e-4)
    series = x**2 * (1 / 2 - x * (2 / 3 - x * 3 / 4))
    each = np.where(x == tau, series, np.log1p(np.maximum(tau, -0.999999)) - tau * p / np.maximum(P, 1e-300))
    total: FloatArray = np.sum(np.where(P > 0, P * each, p), axis=-1)
    return total


def movement(answers: Answers, i: int) -> FloatArray:
    """∂p/∂log w of pair i, as its labels say."""
    p, label = answers.p[i], answers.label[i]
    if label[0] == CURVED:
        kappa = answers.kappa[i]
        mean = np.sum(p * kappa)
        if mean == 0:
            return np.zeros((len(p), len(p)))
        v, sigma = p * (1 - kappa / mean), np.sum(p * (1 - kappa / mean) ** 2 / kappa)
        across = np.outer(v, v) / sigma if sigma > 0 else 0.0
        return np.asarray(np.diag(p * kappa) - np.outer(p * kappa, p * kappa) / mean - across)
    groups = [np.full(len(p), True)] if label[0] == WHOLE else [label == SCALED_1, label == SCALED_2]
    moves = np.zeros((len(p), len(p)))
    for group in groups:
        p_G = np.where(group, p, 0.0)
        if p_G.sum() > 0:
            moves += np.diag(p_G) - np.outer(p_G, p_G) / p_G.sum()
    return moves


@pytest.mark.parametrize("kind", ["l1", "box", "box and ball", "kl"])
@given(rng=rngs(), n=PAIRS, d=WIDTHS, spread=SPREADS, left=THRESHOLDS)
def test_answers_are_those_of_the_reference(
    kind: str, rng: np.random.Generator, n: int, d: int, spread: float, left: float
) -> None:
    """W and p, whatever an earlier call left."""
    sets, log_w = random_sets(rng, kind, n, d), spread * rng.uniform(-1, 1, (n, d))
    found = ask_core(sets, log_w, np.full((2, n), left))
    np.testing.assert_allclose(found.p.sum(axis=1), 1.0, rtol=1e-9)
    for i in range(min(n, 11)):
        expected = ask_reference(sets, i, log_w[i])
        assert found.log_W[i] == pytest.approx(value(expected.p, log_w[i]), abs=1e-8 * (1 + spread))
        np.testing.assert_allclose(found.p[i], expected.p, atol=1e-7)


@pytest.mark.parametrize("kind", ["l1", "box", "box and ball", "kl"])
@given(rng=rngs(), n=PAIRS, d=WIDTHS, spread=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_second_call_finds_the_same(kind: str, rng: np.random.Generator, n: int, d: int, spread: float) -> None:
    """From the thresholds that the first one left, and from those of other weights."""
    sets, log_w = random_sets(rng, kind, n, d), spread * rng.uniform(-1, 1, (n, d))
    first = ask_core(sets, log_w)
    other = ask_core(sets, log_w + 0.1 * rng.standard_normal((n, d)), first.thresholds)
    for thresholds in (first.thresholds, other.thresholds):
        again = ask_core(sets, log_w, thresholds)
        np.testing.assert_allclose(again.p, first.p, atol=1e-9)
        np.testing.assert_allclose(again.log_W, first.log_W, atol=1e-9)


@pytest.mark.parametrize("kind", ["l1", "box", "box and ball", "kl"])
@given(rng=rngs(), d=st.integers(2, 7), spread=st.sampled_from([0.1, 1.0, 3.0]))
def test_answers_move_as_they_say(kind: str, rng: np.random.Generator, d: int, spread: float) -> None:
    """∂p/∂log w by central differences, unless there is a kink between them; and ∂log W/∂log w = p."""
    n, h = 8, 1e-6
    sets, log_w = random_sets(rng, kind, n, d), spread * rng.uniform(-1, 1, (n, d))
    found = ask_core(sets, log_w)
    said = np.stack([movement(found, i) for i in range(n)])
    for j in range(d):
        step = h * np.eye(d)[j]
        up, down = ask_core(sets, log_w + step), ask_core(sets, log_w - step)
        np.testing.assert_allclose((up.log_W - down.log_W) / (2 * h), found.p[:, j], atol=1e-5)
        smooth = np.abs(up.p - 2 * found.p + down.p).max(axis=1) <= 1e-3 * h
        moved = (up.p - down.p) / (2 * h)
        np.testing.assert_allclose(moved[smooth], said[smooth, :, j], atol=2e-4)


@given(rng=rngs(), d=st.integers(2, 9), spread=SPREADS)
def test_no_distribution_of_a_box_is_better(rng: np.random.Generator, d: int, spread: float) -> None:
    """The answer is within its bounds and its ball, and moving on to any other point of the set is worse."""
    for kind in ("box", "box and ball"):
        sets, log_w = random_sets(rng, kind, 11, d), spread * rng.uniform(-1, 1, (11, d))
        found, other = ask_core(sets, log_w), ask_core(sets, rng.standard_normal((11, d)))
        for i, p in enumerate(found.p):
            assert (p >= sets.lower[i] - 1e-12).all() and (p <= sets.upper[i] + 1e-12).all()
            assert np.abs(p - sets.center[i]).sum() <= sets.radius[i] + 1e-10
            best = value(p, log_w[i])
            for share in (1e-3, 0.1, 1.0):
                assert value((1 - share) * p + share * other.p[i], log_w[i]) <= best + 1e-10 * (1 + spread)


@given(rng=rngs(), n=st.integers(1, 64), d=st.integers(1, 20), wide=st.booleans())
def test_pairs_inside_their_set_are_left_alone(rng: np.random.Generator, n: int, d: int, wide: bool) -> None:
    """Beside pairs that are clipped, or alone: p is w normalised to the bit, W its sum, and the label WHOLE."""
    for kind in ("l1", "box", "box and ball", "kl"):
        sets, log_w = random_sets(rng, kind, n, d), 0.5 * rng.uniform(-1, 1, (n, d))
        inside = np.ones(n, dtype=bool) if wide else rng.random(n) < 0.5
        sets.radius[inside] = 1.999 if kind != "kl" else 1e3
        sets.lower[inside], sets.upper[inside] = 0.0, 1.0
        sets.center[inside] = 1 / d
        found, w = ask_core(sets, log_w), np.exp(log_w)
        np.testing.assert_array_equal(found.label[inside, 0], WHOLE)
        np.testing.assert_allclose(found.p[inside], (w / w.sum(axis=1, keepdims=True))[inside], rtol=1e-15)
        np.testing.assert_allclose(found.log_W[inside], np.log(w.sum(axis=1))[inside], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kind", ["l1", "box", "box and ball", "kl"])
@given(rng=rngs(), n=st.integers(1, 64), d=WIDTHS, spread=SPREADS)
def test_every_build_of_the_core_gives_the_same_bits(
    kind: str, rng: np.random.Generator, n: int, d: int, spread: float
) -> None:
    sets, log_w = random_sets(rng, kind, n, d), spread * rng.uniform(-1, 1, (n, d))
    builds = {"v2": "_portable", "v3": "_v3", "v4": "_v4"}
    answers = [
        ask_core(sets, log_w, at=import_module(f"tightrope.core.{builds.get(level, '_portable')}"))
        for level in core.levels()
    ]
    for other in answers[1:]:
        for mine, theirs in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", ["box", "box and ball"])
@given(rng=rngs(), n=PAIRS, d=WIDTHS, few=st.booleans())
def test_a_box_is_answered_as_if_it_were_alone(kind: str, rng: np.random.Generator, n: int, d: int, few: bool) -> None:
    """To the bit, with few pairs of the chunk outside their sets or with most."""
    sets, log_w = random_sets(rng, kind, n, d), rng.uniform(-1, 1, (n, d))
    inside = rng.random(n) < (0.9 if few else 0.2)
    sets.radius[inside], sets.lower[inside], sets.upper[inside], sets.center[inside] = 1.999, 0.0, 1.0, 1 / d
    together = ask_core(sets, log_w)
    for i in range(min(n, 20)):
        alone = ask_core(Sets(kind, *(part[[i]] for part in sets[1:])), log_w[[i]])
        np.testing.assert_array_equal(alone.p[0], together.p[i])
        np.testing.assert_array_equal(alone.log_W[0], together.log_W[i])
        np.testing.assert_array_equal(alone.thresholds[:, 0], together.thresholds[:, i])
        rows = d if alone.label[0, 0] in (FIXED, SCALED_1, SCALED_2) else 1
        np.testing.assert_array_equal(alone.label[0, :rows], together.label[i, :rows])


def test_bounds_that_are_tiny_or_a_point() -> None:
    """Entries of next to no probability count for nothing, however large their weight."""
    lower = np.array([[1e-310, 0.3, 0.0], [0.2, 0.3, 0.5]])
    upper = np.array([[1e-310, 1.0, 1.0], [0.2, 0.3, 0.5]])
    sets = Sets("box", np.full(2, np.inf), lower, lower, upper)
    log_w = np.array([[230.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    found = ask_core(sets, log_w)
    np.testing.assert_allclose(found.p, [[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]], atol=1e-15)
    assert found.log_W[0] == pytest.approx(np.log(2))
    assert found.log_W[1] == pytest.approx(value(lower[1], log_w[1]))
    assert found.label[1].tolist() == [FIXED] * 3


# ------------------------------------------------------------------------------------------------ KL balls


def kl_twin(P: FloatArray, r: float, w: FloatArray) -> tuple[float, FloatArray]:
    """(log W, p*) of one pair by bisection: of μ, and of λ for each μ; every p by Wright's function."""
    w_bar = w / w.sum()
    if P @ (np.log(np.where(P > 0, P, 1.0)) - np.log(w_bar)) <= r:
        return float(np.log(w.sum())), w_bar
    seen = P > 0

    def at(mu: float, lam: float) -> FloatArray:
        p: FloatArray = w_bar * np.exp(-mu - lam)
        a = lam - np.log(w_bar[seen] / P[seen])
        p[seen] = P[seen] * mu / wrightomega(a + mu + np.log(mu))
        return p

    def given(mu: float) -> FloatArray:
        low, high = -750.0, 1.0
        for _ in range(50):
            lam = 0.5 * (low + high)
            low, high = (lam, high) if at(mu, lam).sum() > 1 else (low, lam)
        return at(mu, 0.5 * (low + high))

    low, high = -30.0, 30.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(P, given(np.exp(middle))) > r else (low, middle)
    p = given(np.exp(0.5 * (low + high)))
    p /= p.sum()
    return value(p, np.log(w)), p


@settings(max_examples=25)
@given(rngs(), st.integers(2, 9), st.sampled_from([0.0, 0.4, 0.8]), st.sampled_from([0.3, 3.0, 12.0]))
def test_answers_for_kl_balls_by_bisection(rng: np.random.Generator, d: int, zeros: float, spread: float) -> None:
    """Of the core and of the reference."""
    n = 3
    center = random_shares(rng, np.repeat(np.arange(n), d), zeros).reshape(n, d)
    radius = np.exp(rng.uniform(np.log(1e-4), np.log(3.0), n))
    log_w = spread * rng.standard_normal((n, d))
    found = ask_core(Sets("kl", radius, center, center, center), log_w)
    for i in range(n):
        log_W, p = kl_twin(center[i], radius[i], np.exp(log_w[i]))
        assert found.log_W[i] == pytest.approx(log_W, abs=1e-7)
        np.testing.assert_allclose(found.p[i], p, atol=1e-6)
        np.testing.assert_allclose(reference.answer_for_kl_ball(log_w[i], center[i], radius[i]).p, p, atol=1e-6)


@settings(max_examples=60)
@given(rngs(), st.integers(2, 70), st.sampled_from([0.0, 0.5]), st.sampled_from([1e-9, 0.1, 1.0, 10.0, 30.0]))
def test_answers_for_kl_balls_are_stationary_points_on_the_surface(
    rng: np.random.Generator, d: int, zeros: float, spread: float
) -> None:
    """log p − log w̄ + λ = μ (P̂/p − 1), μ >= 0, for radii down to 1e-18 and centers close to w and far from it."""
    n = 20
    center = random_shares(rng, np.repeat(np.arange(n), d), zeros).reshape(n, d)
    radius = np.exp(rng.uniform(np.log(1e-18), np.log(5.0), n))
    near = np.where(center > 0, center, 1.0 if spread > 1 else 1e-3 * spread)
    log_w = np.log(near) + spread * rng.standard_normal((n, d))
    found = ask_core(Sets("kl", radius, center, center, center), log_w)
    np.testing.assert_allclose(found.p.sum(axis=1), 1.0, atol=1e-12)
    for i, (P, r, p) in enumerate(zip(center, radius, found.p, strict=True)):
        log_w_bar = log_w[i] - np.log(np.exp(log_w[i]).sum())
        K, lam = divergence(P, np.exp(log_w_bar)), found.log_W[i] - np.log(np.exp(log_w[i]).sum())
        if r >= K or (r * (1 + 1e-6) >= K and found.label[i, 0] == WHOLE):
            np.testing.assert_allclose(p, np.exp(log_w_bar), rtol=1e-12)
            continue
        assert divergence(P, p) == pytest.approx(r, rel=1e-5)
        there = p > 0  # e^−μ may be too small for a number
        left, right = np.log(p[there]) - log_w_bar[there] + lam, P[there] / p[there] - 1
        furthest = np.argmax(np.abs(right))
        mu = left[furthest] / right[furthest]
        assert mu >= 0
        np.testing.assert_allclose(left, mu * right, atol=1e-9 + 1e-5 * np.abs(left).max())


@settings(max_examples=50)
@given(rngs(), st.integers(2, 9), PAIRS, st.booleans())
def test_the_movement_of_kl_balls_in_every_form(rng: np.random.Generator, d: int, n: int, aligned: bool) -> None:
    """Added to a block of H, and split into D and E: both are the same q (p pᵀ + ∂p/∂log w)."""
    sets, log_w = random_sets(rng, "kl", n, d), rng.standard_normal((n, d))
    found, q = ask_core(sets, log_w), rng.random(n)
    moves = [movement(found, i) for i in range(n)]
    clipped = found.label[:, 0] == CURVED
    if not clipped.any():  # the solver does not ask
        return
    H = sum(q[i] * (moves[i] + np.outer(found.p[i], found.p[i])) for i in range(n))

    W, x = np.exp(rng.uniform(-3, 3, n)), rng.standard_normal(d)
    p, kappa, label = (np.ascontiguousarray(table.T) for table in (found.p * W[:, None], found.kappa, found.label))
    block, D, y = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    core.move_kl(kappa, p, W, label, np.zeros((2, n)), q / W, aligned, x, block, D, y)
    np.testing.assert_allclose(np.triu(block) + np.triu(block, 1).T, H, atol=1e-12)
    np.testing.assert_array_equal(np.tril(block, -1), 0.0)
    diagonal = D + np.sum(q[:, None] * found.p, axis=0)  # D is taken from the inflow
    np.testing.assert_allclose(y + diagonal * x, H @ x, atol=1e-12)


# ------------------------------------------------------------------------------------------------ the border


def test_arrays_that_do_not_fit_are_refused() -> None:
    two, three = np.full((2, 3), 0.5), np.full((3, 3), 0.5)
    W, label, thresholds, radius = np.empty(3), np.zeros((2, 3), dtype=np.int8), np.zeros((2, 3)), np.ones(3)
    core.answer_l1(two, radius, two.copy(), W, label, thresholds)
    for arguments, words in (
        ((three, radius, two.copy(), W, label, thresholds), "center has 3 entries along axis 0; expected 2"),
        ((two, np.ones(2), two.copy(), W, label, thresholds), "radius has 2 entries"),
        ((two, radius, two.copy(), np.empty(2), label, thresholds), "W has 2 entries"),
        ((two, radius, two.copy(), W, label[:1], thresholds), "label has 1 entries"),
        ((two, radius, two.copy(), W, label, thresholds[:1]), "thresholds has 1 entries"),
        ((np.ones((1, 65)), np.ones(65), np.ones((1, 65)), W, label, thresholds), "p has 1 rows and 65 columns"),
    ):
        with pytest.raises(ValueError, match=words):
            core.answer_l1(*arguments)
