"""A witness for every entry of docs/explanation/errata.md: an instance on which the print fails, or numbers."""

import math
import re
from itertools import pairwise
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tests.conftest import FloatArray, mdps, random_mdp, random_policy, rngs
from tests.conic import measures
from tightrope import UCPD, Episode, L1Ball, LayeredMDP, LayeredSpace, PaperRadius, project
from tightrope.confidence import frequencies
from tightrope.confidence.counts import Counts
from tightrope.core import dual_step, mix

ERRATA = Path(__file__).parent.parent / "docs" / "explanation" / "errata.md"


def test_every_erratum_names_its_witnesses() -> None:
    """And every witness here is named there, by the number in its name."""
    entries = re.split(r"^\*\*(\d+)\. ", ERRATA.read_text("utf-8"), flags=re.MULTILINE)[1:]
    texts = zip(map(int, entries[::2]), entries[1::2], strict=True)
    named = {number: re.findall(r"`(test_erratum_\w+)`", text) for number, text in texts}
    assert list(named) == list(range(1, len(named) + 1))
    for number, witnesses in named.items():
        assert witnesses, f"erratum {number} names no witness"
        assert all(name.startswith(f"test_erratum_{number}_") for name in witnesses)
    here = {name for name in globals() if name.startswith("test_erratum_")}
    assert here == {name for witnesses in named.values() for name in witnesses}


# ------------------------------------------------------------------------------------------ the algorithm


def test_erratum_1_a_pair_without_visits_would_end_every_epoch() -> None:
    """Two actions, one of them never played: as printed 100 epochs end in 100 episodes, where 30.6 are allowed."""
    space, T = LayeredSpace.dense([1, 1], 2), 100
    N, n, printed = np.zeros(2, int), np.zeros(2, int), 1
    counts = Counts(space)
    for _ in range(T):
        n[0] += 1
        if (n >= N).any():  # as printed
            N, n, printed = N + n, np.zeros(2, int), printed + 1
        counts, over = counts.after(np.array([0]))
        counts = counts.next_epoch() if over else counts
    SA = space.n_states * space.n_actions
    assert printed == T + 1 > SA * np.log2(8 * T / SA)
    assert counts.epoch == 1 + 1 + 6  # after 1, 2, 4, …, 64 visits


@given(rngs(), st.integers(2, 6), st.floats(1e-6, 0.99))
def test_erratum_2_a_ball_around_nothing_holds_every_law(rng: np.random.Generator, d: int, zeta: float) -> None:
    """P̂ = 0 is no law, and every law is at distance 1 of it, within ε; from ε = 2 on any centre would do."""
    space = LayeredSpace.dense([1, d, 1], 2)
    none = np.zeros(space.n_pairs, int), np.zeros(space.n_tuples, int)
    assert not frequencies(space, *none).any()
    p, center = rng.dirichlet(np.ones(d)), rng.dirichlet(np.full(d, 0.1))
    eps = math.sqrt(2 * d * math.log((1 + 1) * space.n_states * space.n_actions / zeta))
    assert np.abs(p - 0).sum() == pytest.approx(1) and eps > 1
    assert np.abs(p - center).sum() <= 2
    assert (PaperRadius(episodes=1, level=zeta)(space, *none).radius >= 2).all()


class Dual:
    """The printed dual of an instance, Σ_k log Z^k(μ, β), for a conic solver."""

    def __init__(self, space: LayeredSpace, reference: FloatArray, cost: FloatArray, ball: L1Ball) -> None:
        self.beta = cp.Variable(space.n_states)
        self.plus, self.minus = (cp.Variable(space.n_tuples, nonneg=True) for _ in range(2))
        self.by_pair = measures(space).by_pair
        apart = self.minus - self.plus
        inside = self.by_pair.T @ (self.by_pair @ cp.multiply(ball.center, apart))
        exponent = (
            apart + cp.multiply(self.plus + self.minus, space.expand_to_tuples(ball.radius)) - inside
            + self.beta[space.tuples[:, 2]] - self.beta[space.tuples[:, 0]] - cost + np.log(reference)
        )  # fmt: skip
        self.F = sum(cp.log_sum_exp(exponent[a:b]) for a, b in pairwise(space.tuples_before))
        self.pinned = [self.beta[0] == 0, self.beta[space.n_states - 1] == 0]
        total, n = self.plus + self.minus, self.by_pair.sum(axis=1)
        shared = self.by_pair.T @ cp.multiply(1 / np.asarray(n).ravel(), self.by_pair @ total)
        self.coupled = [total == shared]

    def least(self, *held: cp.Constraint) -> float:
        problem = cp.Problem(cp.Minimize(self.F), list(held))
        problem.solve(solver=cp.CLARABEL)
        assert problem.status == "optimal"
        return float(problem.value)


def test_erratum_3_the_printed_dual_is_of_another_problem() -> None:
    """With β(s_0) free it has no minimum; pinned, it is the dual of bounds tuple by tuple; coupled, of ours."""
    rng = np.random.default_rng(3)
    space = LayeredSpace.dense([1, 3, 1], 2)
    reference, cost = rng.dirichlet(np.ones(space.n_tuples)), rng.uniform(-2, 2, space.n_tuples)
    ball = L1Ball(random_mdp(rng, space).transitions, rng.uniform(0.1, 0.5, space.n_pairs))
    dual = Dual(space, reference, cost, ball)

    for variable in (dual.plus, dual.minus):
        variable.value = rng.uniform(0, 1, space.n_tuples)
    dual.beta.value = np.zeros(space.n_states)
    before = dual.F.value
    dual.beta.value = np.array([1000.0, *np.zeros(space.n_states - 1)])  # β(s_0) >= 0 may be as large as it likes
    assert dual.F.value == pytest.approx(before - 1000)

    def value(theta: FloatArray) -> float:
        return float(cost @ theta + theta @ np.log(theta / reference))

    found = measures(space)
    mean = found.by_pair.T @ (found.by_pair @ found.theta)
    apart = cp.abs(found.theta - cp.multiply(ball.center, mean))
    radius = space.expand_to_tuples(ball.radius)
    found.held.append(apart <= cp.multiply(radius, found.theta))
    status, by_tuple = found.nearest(reference, cost)
    ours = project(space, reference, cost, ball).theta
    assert status == "optimal"
    assert dual.least(*dual.pinned) == pytest.approx(-value(by_tuple), abs=1e-6)
    assert dual.least(*dual.pinned, *dual.coupled) == pytest.approx(-value(ours), abs=1e-6)
    assert (value(by_tuple), value(ours)) == pytest.approx((2.01128, 1.66042), abs=1e-5)


# ------------------------------------------------------------------------------------------- the analysis


def test_erratum_4_conditionals_may_be_two_radii_apart() -> None:
    """P and those of θ on either side of P̂: the lemma's sum with P̂ is half of ‖θ − θ̄‖₁."""
    space, eps = LayeredSpace.dense([1, 2, 1], 1), 0.2
    truth = LayeredMDP(space, np.array([0.4, 0.6, 1, 1]))
    ball = L1Ball(np.array([0.5, 0.5, 1, 1]), np.array([eps, 0, 0]))
    theta = project(space, np.full(4, 0.5), cost=np.array([0, 0, -50.0, 50.0]), confidence=ball).theta
    assert theta[0] == pytest.approx(0.6)
    assert ball.violation(space, truth.transitions) == pytest.approx(0, abs=1e-12)
    apart = np.abs(theta - truth.occupancy(random_policy(np.random.default_rng(0), space))).sum()
    printed = 2 * np.abs(ball.center - truth.transitions).sum()  # pair (s_0, a) counts in layers 0 and 1
    assert printed == pytest.approx(2 * eps) and apart == pytest.approx(2 * printed)


@given(rngs(), st.integers(1, 20))
def test_erratum_4_martingale_differences_are_at_most_2(rng: np.random.Generator, n: int) -> None:
    """Σ (μ − 1{visited}) ξ is E[Y] − Y of a Y between 0 and 2; so L(L+1)/2 of them are within the printed 2L²."""
    mu, xi = rng.dirichlet(np.full(n, 0.2)), rng.choice([0.0, 2.0, 2 * rng.random()], n)
    differences = [float((mu - (np.arange(n) == visited)) @ xi) for visited in range(n)]
    assert max(map(abs, differences)) <= 2 + 1e-12 and np.ptp(differences) <= 2 + 1e-12
    assert 2 * n * (n + 1) / 2 <= 2 * n**2 < 4 * n * (n + 1) / 2  # n for L


def test_erratum_5_the_printed_lemma_fails() -> None:
    """Two actions, losses that alternate, V = 100 and α = 1: regret 99 where 56.0 is the most as printed."""
    space, T, V, alpha, lam = LayeredSpace.dense([1, 1], 2), 100, 100.0, 1.0, 0.01
    learner = UCPD(space, budgets=[], episodes=T, V=V, alpha=alpha, mixing=lam)
    losses = np.array([[1.0, -1.0], [-1.0, 1.0]] * (T // 2))
    paid = 0.0
    for f in losses:
        paid += float(f @ learner.state.theta)
        learner.observe(Episode([0, 1], [0], loss=f, constraints=np.zeros((0, 2))))
    regret = paid - losses.sum(axis=0).min()
    L, S, A = 1, space.n_states, space.n_actions
    rest = (4 * L**2 * T + (lam * T + 1) * alpha * L * math.log(S**2 * A)) / V + 2 * lam * L * T
    assert regret > 98 > 57 > rest + L * T / (2 * alpha)
    assert regret < rest + L * T * V / (2 * alpha)

    x = np.linspace(0, 2, 2001) * V / alpha
    assert (-V * x + alpha / 2 * x**2).min() == pytest.approx(-(V**2) / (2 * alpha))
    assert -(V**2) / (2 * alpha) < -V / (2 * alpha)


@given(st.integers(1, 50), st.floats(1e-6, 2))
def test_erratum_6_printed_constants_are_loose_not_false(L: int, share: float) -> None:
    """Of the drift lemma with steps ρ = 2L and drift κ = σ̄/4, σ̄ at most 2L; and of ½ Σ_i (<g_i, θ> − c_i)² <= 2L²."""
    sigma = share * L
    rho, kappa = 2 * L, sigma / 4
    assert 4 * rho**2 / kappa == pytest.approx(64 * L**2 / sigma)
    assert 8 * rho**2 / kappa**2 == pytest.approx(512 * L**2 / sigma**2)
    growth = math.exp(sigma / (32 * L))
    assert kappa / (4 * rho) == pytest.approx(math.log(growth))
    derived = 64 * math.log(1 + 512 * L**2 / sigma**2 * growth)
    assert derived <= 512 * math.log(1 + 128 * L**2 / sigma**2 * growth)
    assert (2 * L) ** 2 / 2 == 2 * L**2 < 4 * L**2


def test_erratum_7_after_an_unlucky_history_multipliers_rise() -> None:
    """Each action led to the dear state 128 times out of 128, which has a chance: the set has lost the model, whatever
    is chosen is believed to be over its budget, and ‖Q‖ rises by 0.07 an episode, where −σ̄/4 was to be expected."""
    space, T = LayeredSpace.dense([1, 2, 1], 2), 300
    fair = LayeredMDP(space, np.array([0.5] * 4 + [1.0] * 4))
    g = np.array([[0, 0, 0, 0, 1, 1, 0, 0.0]])  # in state 1; half of the time, and 0.6 is allowed: slack 0.1
    learner = UCPD(space, budgets=[0.6], episodes=T)
    for t in range(256):
        learner.observe(Episode([0, 1, 3], [t % 2, 0], loss=np.zeros(8), constraints=g))
    assert learner.confidence_set.violation(space, fair.transitions) > 0
    tau, Q = math.isqrt(T), float(learner.multipliers[0])
    for t in range(tau):
        learner.observe(Episode([0, 2, 3], [t % 2, 0], loss=np.zeros(8), constraints=g))
    assert learner.multipliers[0] - Q >= 0.07 * tau


def test_erratum_8_multipliers_within_a_window() -> None:
    """Steps of 0.9 L in the same direction, as noise allows: the cross term is above 2Lτ², and below 4L²τ²."""
    L, tau, c = 5, 10, np.array([0.5])
    space = LayeredSpace.dense([1] * (L + 1), 2)
    theta, g = space.uniform(), np.ones((1, space.n_tuples))  # g is 1 or −1, evenly: 0 in the mean, slack 0.5
    start = Q = np.zeros(1)
    cross = 0.0
    for _ in range(tau):
        cross += 2 * float((Q - start) @ (g @ theta - c))
        Q = dual_step(Q, g, theta, c)
    assert 2 * L * tau**2 < cross <= 4 * L**2 * tau**2
    a = b = float((g @ theta - c)[0])
    assert 2 * a * b > a + b


def test_erratum_9_the_tail_of_a_walk() -> None:
    """T fair steps of ς = 1: above √(T log 1/p) more often than 2p; above √(2T log 1/p) less often than p."""
    T, p = 1000, 1e-3

    def above(z: float) -> float:
        """P(Σ ±1 >= z): (T + z)/2 steps up or more."""
        return float(binom.sf(math.ceil((T + z) / 2) - 1, T, 0.5))

    assert above(math.sqrt(T * math.log(1 / p))) > 2 * p
    assert above(math.sqrt(2 * T * math.log(1 / p))) < p


def test_erratum_10_mixing_moves_up_to_twice_as_far() -> None:
    """‖θ^t − θ̃^{t−1}‖₁ is below (1 − λ)‖θ^t − θ^{t−1}‖₁ − λL."""
    lam, old = 0.05, np.eye(10)[0]
    new = np.array([0.9, *np.full(9, 0.1 / 9)])
    mixed = (1 - lam) * old + lam / 10
    far = (1 - lam) * np.abs(new - old).sum()
    assert far - 2 * lam < np.abs(new - mixed).sum() < far - lam


@given(mdps(), rngs(), st.floats(0, 1))
def test_erratum_10_with_twice_as_much_it_holds(mdp: LayeredMDP, rng: np.random.Generator, lam: float) -> None:
    space = mdp.space
    old, new = (random_mdp(rng, space).occupancy(random_policy(rng, space, zeros=0.4)) for _ in range(2))
    mixed = mix(space.native, old, lam)
    far = (1 - lam) * np.abs(new - old).sum()
    assert np.abs(new - mixed).sum() >= far - 2 * lam * space.n_layers - 1e-9


def test_erratum_11_negative_multipliers() -> None:
    """One action, loss 0, use 0 of a budget of 1: q(η) = −η is largest at 0 among η >= 0, and without bound below."""

    def q(eta: float) -> float:
        return 0.0 + eta * (0.0 - 1.0)

    assert all(q(0) - q(eta) >= abs(eta) for eta in (1.0, 10.0, 100.0))
    assert all(q(0) - q(eta) < 0 for eta in (-1.0, -10.0, -100.0))


def test_erratum_12_misprints() -> None:
    """f in place of g; a divergence without its logarithm; ψ of the second proof, short of a factor T."""
    rng = np.random.default_rng(12)
    space = LayeredSpace.dense([1, 3, 1], 2)
    theta, other = (random_mdp(rng, space).occupancy(random_policy(rng, space)) for _ in range(2))
    f, g = rng.uniform(-1, 1, (2, space.n_tuples))
    assert abs(f @ theta - g @ theta) > 0.1
    D = float((theta * np.log(theta / other) - theta + other).sum())
    np.testing.assert_allclose(D, theta @ np.log(theta / other))
    assert abs(D - theta @ (theta / other)) > 0.1
    L, T, log = 3, 10_000, 7.0
    alpha, tau = L * T, math.sqrt(T)
    assert 2 * alpha * L * log / tau == pytest.approx(2 * L**2 * math.sqrt(T) * log)


@given(st.integers(2, 30), st.integers(1, 10**6), st.integers(4, 10**4), st.floats(1e-9, 0.5))
def test_what_is_left_open_the_radius_is_loose(d: int, T: int, pairs: int, zeta: float) -> None:
    """‖P̂ − P‖₁ > r with probability at most (2^d − 2) e^{−N r²/2} (Weissman et al. 2003), so that a union over the
    pairs and N = 1, …, T asks for r² N = 2 (d log 2 + log(T·pairs/ζ)); the paper's radius has r² N = 2 d log(…)."""
    enough = 2 * (d * math.log(2) + math.log(T * pairs / zeta))
    assert math.log(T * pairs) + math.log(2**d - 2) - enough / 2 <= math.log(zeta) + 1e-9
    assert enough < 2 * d * math.log((T + 1) * pairs / zeta)
