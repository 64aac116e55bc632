"""UCPD against Algorithm 1 as it is printed, and against everything that must not happen to it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest

from tests.conftest import FloatArray, pair_of_tuple, random_mdp, random_sparse_space
from tests.twins import first_measure, layer_of_state, policy_of, sample_path
from tightrope import (
    UCPD,
    ConvergenceError,
    Episode,
    InvalidInputError,
    KnownModel,
    L1Ball,
    LayeredMDP,
    LayeredSpace,
    PaperRadius,
    UCPDPractical,
    make,
    project,
)
from tightrope.learners.ucpd import UCPDKnown
from tightrope.learners.ucpd_practical_known import UCPDPracticalKnown
from tightrope.problems import PROBLEMS
from tightrope.projection.projector import Projector

SPACE = LayeredSpace.dense([1, 2, 3, 1], 2)
BUDGETS = np.array([0.4, 0.5])


def episodes_of(
    seed: int, number: int, policy: Callable[[], FloatArray], space: LayeredSpace = SPACE, n_constraints: int = 2
) -> Iterator[Episode]:
    """Episodes of a random model under the current policy; losses and constraints as large as they may be."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, space)
    for _ in range(number):
        states, actions, _ = sample_path(space, policy(), mdp.transitions, rng.random(2 * space.n_layers))
        g = rng.uniform(-0.2, 1, (n_constraints, space.n_tuples))
        g /= max(1, n_constraints) * np.abs(g).max(axis=1, keepdims=True)
        yield Episode(states, actions, rng.uniform(-1, 1, space.n_tuples), g)


def learner_after(number: int, seed: int = 5, **options: Any) -> UCPD:
    learner = UCPD(SPACE, BUDGETS, episodes=40, **({"radius_scale": 0.2} | options))
    for episode in episodes_of(seed, number, lambda: learner.policy.probabilities):
        learner.observe(episode)
    return learner


# ------------------------------------------------------------------------------ Algorithm 1, as printed


class State(NamedTuple):
    theta: FloatArray
    Q: FloatArray
    pi: FloatArray
    epoch: int
    at_the_edge: int  # pairs whose conditional the ball holds back
    free: int  # pairs without a ball


class Transcription:
    """Algorithm 1 over `space.tuples`, the subproblem as it is written; errata 1 (epochs) and 2 (unvisited pairs)."""

    def __init__(
        self,
        space: LayeredSpace,
        c: FloatArray,
        *,
        T: int,
        alpha: float,
        V: float,
        lam: float,
        zeta: float,
        scale: float,
    ) -> None:
        self.space, self.c, self.T = space, c, T
        self.alpha, self.V, self.lam, self.zeta, self.scale = alpha, V, lam, zeta, scale
        self.pair, self.layer = pair_of_tuple(space), layer_of_state(space)
        per_layer = np.bincount(self.layer[space.tuples[:, 0]])
        self.uniform = 1 / per_layer[self.layer[space.tuples[:, 0]]]
        self.theta, self.Q, self.epoch = first_measure(space), np.zeros(len(c)), 1
        self.N, self.n = np.zeros(space.n_pairs, int), np.zeros(space.n_pairs, int)
        self.M, self.m = np.zeros(space.n_tuples, int), np.zeros(space.n_tuples, int)

    def epsilon(self) -> FloatArray:
        S, A = self.space.n_states, self.space.n_actions
        next_layer = np.bincount(self.layer)[self.layer[self.space.pairs[:, 0]] + 1]
        eps = np.sqrt(2 * next_layer * np.log((self.T + 1) * S * A / self.zeta) / np.maximum(1, self.N))
        return np.where(self.N == 0, np.inf, self.scale * eps)

    def subproblem(self, f: FloatArray, g: FloatArray) -> FloatArray:
        tuples, theta = self.space.tuples, cp.Variable(self.space.n_tuples, nonneg=True)
        mixed = (1 - self.lam) * self.theta + self.lam * self.uniform
        eps, P_hat = self.epsilon(), self.M / np.maximum(1, self.N)[self.pair]
        held = [cp.sum(theta[self.layer[tuples[:, 0]] == k]) == 1 for k in range(self.space.n_layers)]
        held += [
            cp.sum(theta[tuples[:, 2] == s]) == cp.sum(theta[tuples[:, 0] == s])
            for s in range(1, self.space.n_states - 1)
        ]
        for i in np.flatnonzero(eps < 2):
            here = self.pair == i
            held.append(cp.norm1(theta[here] - P_hat[here] * cp.sum(theta[here])) <= eps[i] * cp.sum(theta[here]))
        cost = (self.V * f + self.Q @ g) @ theta + self.alpha * cp.sum(cp.kl_div(theta, mixed))
        precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
        cp.Problem(cp.Minimize(cost / self.alpha), held).solve(solver=cp.CLARABEL, **precise)
        answer: FloatArray = np.maximum(theta.value, 0)
        return answer

    def observe(self, episode: Episode) -> None:
        f, g = np.asarray(episode.loss), np.asarray(episode.constraints)
        states, actions = list(np.asarray(episode.states)), list(np.asarray(episode.actions))
        for s, a, s_next in zip(states[:-1], actions, states[1:], strict=True):
            j = int(np.flatnonzero((self.space.tuples == [s, a, s_next]).all(axis=1))[0])
            self.m[j] += 1
            self.n[self.pair[j]] += 1
        if (self.n >= np.maximum(1, self.N)).any():
            self.N, self.M = self.N + self.n, self.M + self.m
            self.n, self.m = 0 * self.n, 0 * self.m
            self.epoch += 1
        self.theta = self.subproblem(f, g)
        self.Q = np.maximum(self.Q + g @ self.theta - self.c, 0)

    def state(self) -> State:
        eps, mass = self.epsilon(), np.bincount(self.pair, self.theta)
        off = np.abs(self.theta / mass[self.pair] - self.M / np.maximum(1, self.N)[self.pair])
        edge = int((np.abs(np.bincount(self.pair, off) - eps) < 1e-5).sum())
        return State(self.theta, self.Q, policy_of(self.space, self.theta), self.epoch, edge, int((eps >= 2).sum()))


@pytest.mark.parametrize(
    ("sparse", "given"),
    [(False, {}), (True, {}), (False, {"alpha": 9.0, "V": 4.0, "mixing": 0.3})],
    ids=["dense", "sparse", "other parameters"],
)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_whole_run_against_algorithm_1(sparse: bool, given: dict[str, float]) -> None:
    """θ, Q, π and ℓ of 15 episodes, with radii scaled so that some balls bind and others are free."""
    T, L, zeta, scale = 15, 3, 0.05, 0.15
    space = random_sparse_space(np.random.default_rng(3), [1, 3, 3, 1], 2, 0.6) if sparse else SPACE
    learner = UCPD(space, BUDGETS, episodes=T, level=zeta, radius_scale=scale, **given)  # type: ignore[arg-type]
    used = {"alpha": L * T, "V": L * np.sqrt(T), "mixing": 1 / T} | given
    alpha, V, lam = used["alpha"], used["V"], used["mixing"]
    printed = Transcription(space, BUDGETS, T=T, alpha=alpha, V=V, lam=lam, zeta=zeta, scale=scale)
    at_the_edge, free, least_Q = 0, 0, 0.0
    for episode in episodes_of(8, T, lambda: learner.policy.probabilities, space):
        learner.observe(episode)
        printed.observe(episode)
        theta, Q, pi, epoch, *pairs = printed.state()
        np.testing.assert_allclose(learner.state.theta, theta, atol=2e-6)
        np.testing.assert_allclose(learner.multipliers, Q, atol=1e-5)
        np.testing.assert_allclose(learner.policy.probabilities, pi, atol=1e-4)
        assert learner.epoch == epoch
        at_the_edge, free, least_Q = at_the_edge + pairs[0], free + pairs[1], max(least_Q, Q.min())
    assert at_the_edge > 15
    assert free > 15
    assert least_Q > 0.1  # both budgets had a price


# --------------------------------------------------------------------------------------- the first measure


FORK = [(0, 0, 1), (0, 1, 1), (0, 1, 2), (1, 0, 3), (2, 0, 3), (2, 1, 3)]


def test_first_measure_is_of_the_uniform_policy_in_a_sparse_space() -> None:
    """From 0 action 0 leads to state 1, action 1 to 1 or 2; by hand. Uniform on tuples, action 1 would get 2/3."""
    space = LayeredSpace.from_tuples([1, 2, 1], 2, FORK)
    for learner in (UCPD(space, [1.0], episodes=9), UCPDPractical(space, [1.0])):
        np.testing.assert_allclose(learner.state.theta, [1 / 2, 1 / 4, 1 / 4, 3 / 4, 1 / 8, 1 / 8], rtol=1e-15)
        np.testing.assert_allclose(learner.policy.probabilities, [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2], rtol=1e-15)


def test_first_measure_with_the_dynamics_known_is_theirs() -> None:
    space = LayeredSpace.from_tuples([1, 2, 1], 2, FORK)
    model = LayeredMDP(space, [1, 0.9, 0.1, 1, 1, 1])
    for learner in (UCPDKnown(space, [1.0], model=model, episodes=9), UCPDPracticalKnown(space, [1.0], model=model)):
        np.testing.assert_allclose(learner.state.theta, [0.5, 0.45, 0.05, 0.95, 0.025, 0.025], rtol=1e-14)


@pytest.mark.parametrize("name", PROBLEMS)
def test_first_measure_on_every_problem(name: str) -> None:
    problem = make(name)
    theta = UCPD(problem.space, problem.budgets, episodes=9).state.theta
    np.testing.assert_allclose(theta, first_measure(problem.space), rtol=1e-12)


# ------------------------------------------------------------------------------------------ parameters


def test_parameters_are_the_theorems() -> None:
    """α = LT, V = L√T, λ = 1/T, the paper's radius; θ¹ uniform on every layer, Q(1) = 0."""
    learner = UCPD(SPACE, BUDGETS, episodes=400)
    assert learner.settings == {
        "learner": "ucpd",
        "episodes": 400,
        "alpha": 1200.0,
        "V": 60.0,
        "mixing": 1 / 400,
        "charge": "optimistic",
        "proportional": 0.0,
        "draws": "last",
        "confidence": "paper",
        "level": 0.01,
        "radius_scale": 1.0,
        "renewal": 1.0,
        "ties": "none",
    }
    assert learner.rule == PaperRadius(episodes=400, level=0.01, scale=1.0)
    assert learner.state.mean_constraints.shape == (0, 0)  # nothing is averaged
    np.testing.assert_array_equal(learner.state.theta, np.repeat([1 / 4, 1 / 12, 1 / 6], [4, 12, 6]))
    np.testing.assert_array_equal(learner.multipliers, [0, 0])
    np.testing.assert_array_equal(learner.policy.probabilities, np.full(12, 0.5))
    assert learner.epoch == 1


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 77.0), ("V", 3.5), ("mixing", 0.25), ("level", 0.2), ("radius_scale", 0.5)]
)
def test_every_parameter_can_be_given_and_is_reported(name: str, value: float) -> None:
    plain = UCPD(SPACE, BUDGETS, episodes=40, radius_scale=0.2)
    changed = UCPD(SPACE, BUDGETS, episodes=40, **({"radius_scale": 0.2} | {name: value}))  # type: ignore[arg-type]
    assert changed.settings == plain.settings | {name: value}
    for episode in episodes_of(1, 30, lambda: plain.policy.probabilities):
        plain.observe(episode)
        changed.observe(episode)
    assert np.abs(changed.state.theta - plain.state.theta).max() > 1e-3  # and makes a difference


def test_a_rule_of_ones_own_is_reported_as_it_is() -> None:
    rule = PaperRadius(episodes=40, level=0.3, scale=0.7)
    settings = UCPD(SPACE, BUDGETS, episodes=40, confidence=rule).settings
    assert settings["confidence"] == "PaperRadius(episodes=40, level=0.3, scale=0.7)"
    assert "level" not in settings  # that of the rule is the one in force
    assert "radius_scale" not in settings
    a, b = learner_after(20, confidence=rule), learner_after(20, level=0.3, radius_scale=0.7)
    np.testing.assert_array_equal(a.state.theta, b.state.theta)


def test_with_the_model_known_theta_is_what_the_policy_does(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, SPACE)
    learner = UCPD(SPACE, BUDGETS, episodes=40, confidence=KnownModel(transitions=mdp.transitions))
    for episode in episodes_of(2, 25, lambda: learner.policy.probabilities):
        learner.observe(episode)
        np.testing.assert_allclose(learner.state.theta, mdp.occupancy(learner.policy), atol=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": np.inf}, "alpha is inf"),
        ({"V": -1.0}, "V is -1.0"),
        ({"V": np.nan}, "V is nan"),
        ({"mixing": 0.0}, "mixing is 0.0"),
        ({"mixing": 1.1}, "mixing is 1.1"),
        ({"level": 0.0}, "level is 0.0"),
        ({"level": 1.0}, "level is 1.0"),
        ({"radius_scale": -0.5}, "radius_scale is -0.5"),
        ({"radius_scale": np.inf}, "radius_scale is inf"),
        ({"confidence": "papier"}, "no confidence rule 'papier'"),
        ({"confidence": KnownModel(transitions=np.ones(22))}, "transitions from state 0 under action 0 sum to 2"),
        ({"budgets": [2.0, 1.5]}, "budgets' absolute values sum to 3.5, above the 3 steps"),
        ({"budgets": [0.1, np.nan]}, "budget 1 is nan"),
        ({"budgets": [[0.1, 0.1]]}, r"budgets has shape \(1, 2\)"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        UCPD(SPACE, **({"budgets": BUDGETS, "episodes": 40} | given))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------- refused, as it was


def snapshot(learner: UCPD) -> dict[str, Any]:
    """A copy of everything that it has learnt."""
    assert isinstance(learner.confidence_set, L1Ball)
    counts = learner.state.counts
    parts = {
        "theta": learner.state.theta,
        "Q": learner.multipliers,
        "pi": learner.policy.probabilities,
        "center": learner.confidence_set.center,
        "radius": learner.confidence_set.radius,
        "counts": np.concatenate([counts.N, counts.M, counts.n, counts.m, [counts.epoch, learner.epoch]]),
        "budgets": learner.budgets,
    }
    return {name: array.copy() for name, array in parts.items()} | {"settings": learner.settings}


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


def assert_goes_on_like(learner: UCPD, other: UCPD) -> None:
    """Check that both learners continue with the same bits."""
    for episode in episodes_of(6, 12, lambda: other.policy.probabilities):
        learner.observe(episode)
        other.observe(episode)
        assert_same(snapshot(learner), snapshot(other))


def changed_at(array: FloatArray, index: tuple[int, ...], value: float) -> FloatArray:
    changed = array.copy()
    changed[index] = value
    return changed


F, G = np.zeros(22), np.zeros((2, 22))
FINE: dict[str, Any] = {"states": [0, 1, 3, 6], "actions": [1, 0, 1], "loss": F, "constraints": G}
#: Tuple 13 of the space is (2, 1, 3).
REFUSED = [
    ({"loss": changed_at(F, (13,), np.nan)}, r"episode 11: loss is nan at tuple \(2, 1, 3\)"),
    ({"loss": changed_at(F, (13,), np.inf)}, r"episode 11: loss is inf at tuple \(2, 1, 3\)"),
    ({"loss": changed_at(F, (13,), -np.inf)}, r"episode 11: loss is -inf at tuple \(2, 1, 3\)"),
    ({"loss": changed_at(F, (13,), 1.001)}, r"episode 11: loss is 1.001 at tuple \(2, 1, 3\); losses lie in \[-1, 1\]"),
    ({"loss": changed_at(F, (13,), -1.5)}, r"episode 11: loss is -1.5 at tuple \(2, 1, 3\)"),
    ({"loss": np.zeros(21)}, r"episode 11: loss has shape \(21,\); expected \(22,\)"),
    ({"loss": np.zeros((22, 1))}, r"episode 11: loss has shape \(22, 1\)"),
    ({"loss": 0.0}, r"episode 11: loss has shape \(\)"),
    ({"loss": ["much"] * 22}, r"episode 11: loss is no \(22,\) array of numbers"),
    ({"constraints": changed_at(G, (1, 13), np.nan)}, r"episode 11: constraint 1 is nan at tuple \(2, 1, 3\)"),
    ({"constraints": changed_at(G, (1, 13), -np.inf)}, r"episode 11: constraint 1 is -inf at tuple \(2, 1, 3\)"),
    ({"constraints": changed_at(G, (0, 13), -1.1)}, r"episode 11: constraint 0 is -1.1 at tuple \(2, 1, 3\)"),
    (
        {"constraints": changed_at(changed_at(G, (1, 13), 0.7), (0, 2), -0.5)},
        r"episode 11: constraint 1 is 0.7 at tuple \(2, 1, 3\); .* sum to at most 1 .* here 1.2",
    ),
    ({"constraints": np.zeros((1, 22))}, r"episode 11: constraints has shape \(1, 22\); expected \(2, 22\)"),
    ({"constraints": np.zeros((22, 2))}, r"episode 11: constraints has shape \(22, 2\)"),
    ({"constraints": np.zeros(22)}, r"episode 11: constraints has shape \(22,\)"),
    ({"constraints": [[0.0] * 22, [0.0]]}, r"episode 11: constraints is no \(2, 22\) array of numbers"),
    ({"states": [0, 1, 2, 6]}, "episode 11: step 1 of the trajectory cannot happen: state 1, action 0, next state 2"),
    ({"states": [1, 1, 3, 6]}, "episode 11: step 0 of the trajectory cannot happen: state 1, action 1, next state 1"),
    ({"states": [0, 1, 3, 5]}, "episode 11: step 2 of the trajectory cannot happen: state 3, action 1, next state 5"),
    ({"states": [0, 1, 3, 99]}, "episode 11: step 2 of the trajectory cannot happen"),
    ({"states": [0, -1, 3, 6]}, "episode 11: step 0 of the trajectory cannot happen"),
    ({"states": [0, 1, 6]}, r"episode 11: states has shape \(3,\); expected \(4,\)"),
    ({"actions": [1, 2, 1]}, "episode 11: step 1 of the trajectory cannot happen: state 1, action 2, next state 3"),
    ({"actions": [1, 0, 1, 1]}, r"episode 11: actions has shape \(4,\); expected \(3,\)"),
    ({"actions": [0.5, 0, 1]}, r"episode 11: actions is no \(3,\) array of whole numbers"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_a_refused_episode_leaves_no_trace(change: dict[str, Any], words: str) -> None:
    learner, never_saw_it = learner_after(10), learner_after(10)
    before = snapshot(learner)
    with pytest.raises(InvalidInputError, match=words):
        learner.observe(Episode(**(FINE | change)))
    assert_same(before, snapshot(learner))
    assert_goes_on_like(learner, never_saw_it)


def test_rounding_at_the_bounds_is_forgiven() -> None:
    learner = learner_after(3)
    learner.observe(Episode([0, 1, 3, 6], [1, 0, 1], np.full(22, 1 + 1e-12), np.full((2, 22), 0.5 + 1e-12)))
    learner.observe(Episode([0, 1, 3, 6], [1, 0, 1], np.full(22, -1 - 1e-12), np.full((2, 22), -0.5 - 1e-12)))
    assert learner.observed == 5


@pytest.mark.parametrize("error", [ConvergenceError("no"), KeyboardInterrupt()], ids=["not converged", "interrupted"])
def test_a_failed_projection_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(self: Projector, reference: FloatArray, cost: FloatArray, confidence: L1Ball, theta: FloatArray) -> None:
        theta[:] = np.nan
        raise error

    epoch_ended = []
    for number in (0, 3, 20, 30, 38):
        learner, never_failed = learner_after(number), learner_after(number)
        [*_, bad] = episodes_of(9, number + 1, lambda: np.full(12, 0.5))
        before = snapshot(learner)
        with monkeypatch.context() as patched, pytest.raises(type(error)):
            patched.setattr(Projector, "solve", fail)
            learner.observe(bad)
        assert_same(before, snapshot(learner))
        assert_goes_on_like(learner, never_failed)
        path = SPACE.path(bad.states, bad.actions)
        epoch_ended.append(learner_after(number).state.counts.after(path)[1])
    assert set(epoch_ended) == {False, True}  # in the middle of an epoch and at its end


def test_a_projection_that_truly_does_not_converge() -> None:
    """The warm start is part of the state, so what follows is the same bit for bit."""
    learner, never_failed = learner_after(10), learner_after(10)
    before = snapshot(learner)
    projector = learner._mirror_step.solver._solver
    projector.tolerance, tolerance = -1.0, projector.tolerance
    with pytest.raises(ConvergenceError, match="flow residual"):
        learner.observe(Episode([0, 1, 3, 6], [1, 0, 1], F + 0.5, G))
    projector.tolerance = tolerance
    assert_same(before, snapshot(learner))
    for episode in episodes_of(6, 12, lambda: never_failed.policy.probabilities):
        learner.observe(episode)
        never_failed.observe(episode)
        np.testing.assert_array_equal(learner.state.theta, never_failed.state.theta)
        np.testing.assert_array_equal(learner.multipliers, never_failed.multipliers)


class Moody:
    """The paper's radius, most of the time."""

    mood: Exception | str = "good"

    def __call__(self, space: LayeredSpace, N: np.ndarray, M: np.ndarray) -> L1Ball:
        if isinstance(self.mood, Exception):
            raise self.mood
        ball = PaperRadius(episodes=40, level=0.1, scale=0.2)(space, N, M)
        return ball if self.mood == "good" else L1Ball(ball.center[:-1], ball.radius)


@pytest.mark.parametrize(
    ("mood", "words"),
    [(ZeroDivisionError("ouch"), "ouch"), ("bad", r"center has shape \(21,\)")],
    ids=["raises", "wrong"],
)
def test_a_rule_that_fails_leaves_no_trace(mood: Exception | str, words: str) -> None:
    rule = Moody()
    learner, never_failed = learner_after(0, confidence=rule), learner_after(0, confidence=rule)
    before = snapshot(learner)
    rule.mood = mood
    with pytest.raises((ZeroDivisionError, InvalidInputError), match=words):
        learner.observe(Episode([0, 1, 3, 6], [1, 0, 1], F, G))  # ends the first epoch
    rule.mood = "good"
    assert_same(before, snapshot(learner))
    assert_goes_on_like(learner, never_failed)


# -------------------------------------------------------------------------------------------- always


def test_observing_changes_nothing_that_it_was_given() -> None:
    budgets = BUDGETS.copy()
    learner = UCPD(SPACE, budgets, episodes=40, radius_scale=0.2)
    frozen = UCPD(SPACE, BUDGETS, episodes=40, radius_scale=0.2)
    for given in episodes_of(5, 15, lambda: learner.policy.probabilities):
        arrays = [np.array(part) for part in (given.states, given.actions, given.loss, given.constraints)]
        copies = [array.copy() for array in arrays]
        learner.observe(Episode(*arrays))
        for array, copy in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(array, copy)
            array.flags.writeable = False
        frozen.observe(Episode(*arrays))  # read-only is enough
        assert_same(snapshot(learner), snapshot(frozen))
    budgets[:] = -1  # the caller's own again
    for part, value in zip(arrays, (0, 0, np.nan, np.nan), strict=True):
        part.flags.writeable = True
        part[...] = value
    assert_goes_on_like(learner, frozen)


def test_returned_arrays_do_not_change() -> None:
    """A policy or a measure of an earlier episode is not overwritten by later ones."""
    learner = learner_after(0)
    handed_out, copies = [], []
    for episode in episodes_of(5, 10, lambda: learner.policy.probabilities):
        handed_out.append((learner.policy.probabilities, learner.state.theta, learner.multipliers))
        copies.append(tuple(array.copy() for array in handed_out[-1]))
        learner.observe(episode)
    for arrays, copied in zip(handed_out, copies, strict=True):
        for array, copy in zip(arrays, copied, strict=True):
            np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("seed", range(12))
def test_the_policy_is_a_distribution_at_every_state_always(seed: int) -> None:
    """Also with steps so large that most actions all but vanish, and with sets of one point."""
    rng = np.random.default_rng(seed)
    sizes, n_actions = [[1, 1], [1, 4, 1], [1, 3, 1, 3, 1]][seed % 3], 1 + seed % 4
    space = LayeredSpace.dense(sizes, n_actions) if seed % 2 else random_sparse_space(rng, sizes, n_actions, 0.5)
    learner = UCPD(
        space, [0.3], episodes=50, alpha=[0.05, 1.0, 250.0][seed % 3], radius_scale=[0.0, 0.2, 1.0][seed // 4]
    )
    for episode in episodes_of(seed, 50, lambda: learner.policy.probabilities, space, n_constraints=1):
        learner.observe(episode)
        pi = learner.policy.probabilities
        assert (pi >= 0).all()
        np.testing.assert_allclose(np.bincount(space.pairs[:, 0], pi), 1, atol=1e-12)


def test_without_budgets() -> None:
    learner = UCPD(SPACE, [], episodes=40)
    for episode in episodes_of(5, 15, lambda: learner.policy.probabilities, n_constraints=0):
        learner.observe(episode)
    assert learner.multipliers.shape == (0,)
    assert np.abs(learner.policy.probabilities - 0.5).max() > 0.01


def test_a_clear_winner_is_found() -> None:
    """One step, three actions that always cost 1, 0, −1 and use 0, 0, 1 of a budget of ½: half −1, half 0."""
    space = LayeredSpace.dense([1, 1], 3)
    learner = UCPD(space, [0.5], episodes=4000)
    shares = np.zeros(3)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        shares += learner.policy.probabilities / 4000
        a = rng.choice(3, p=learner.policy.probabilities)
        learner.observe(Episode([0, 1], [a], [1.0, 0.0, -1.0], [[0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(shares, [0, 0.5, 0.5], atol=0.05)


# ------------------------------------------------------------------------------ options that are not published


def believed_uses(learner: UCPD, g: FloatArray) -> FloatArray:
    """What its policy uses where every pair was seen as often as counted and d times more as θ has it, path by path."""
    space, N, M = learner.space, learner.state.counts.N, learner.state.counts.M
    used, passes = np.zeros(len(g)), np.zeros(space.n_states)
    passes[0] = 1.0
    for i, (s, _) in enumerate(space.pairs):
        mine = np.flatnonzero(pair_of_tuple(space) == i)
        p = learner.state.theta[mine] / learner.state.theta[mine].sum()
        for j, share in zip(mine, (M[mine] + len(mine) * p) / (N[i] + len(mine)), strict=True):
            through = passes[s] * learner.policy.probabilities[i] * share
            used += through * g[:, j]
            passes[space.tuples[j, 2]] += through
    return used


@pytest.mark.parametrize("charge", ["optimistic", "played"])
@pytest.mark.parametrize("kappa", [0.0, 2.5])
@pytest.mark.parametrize("draws", ["last", "mean"])
def test_what_options_change(charge: str, kappa: float, draws: str) -> None:
    """θ is the projection for the weights, and Q what the charge makes of it, each written out once more."""
    T, L = 40, SPACE.n_layers
    learner = UCPD(SPACE, BUDGETS, episodes=T, radius_scale=0.2, charge=charge, proportional=kappa, draws=draws)  # type: ignore[arg-type]
    seen: list[FloatArray] = []
    priced = 0
    for episode in episodes_of(5, 25, lambda: learner.policy.probabilities):
        seen.append(np.asarray(episode.constraints))
        g = np.mean(seen, axis=0) if draws == "mean" else seen[-1]
        Q, theta, excess = learner.multipliers, learner.state.theta, believed_uses(learner, g) - BUDGETS
        weights = Q + kappa * np.sqrt(T) * np.maximum(excess, 0)
        priced += int((weights > Q).any())
        learner.observe(episode)
        cost = (L * np.sqrt(T) * np.asarray(episode.loss) + weights @ g) / (L * T)
        reference = (1 - 1 / T) * theta + SPACE.uniform() / T
        expected = project(SPACE, reference, cost, learner.confidence_set).theta
        np.testing.assert_allclose(learner.state.theta, expected, atol=1e-7)
        charged = excess if charge == "played" else g @ learner.state.theta - BUDGETS
        np.testing.assert_allclose(learner.multipliers, np.maximum(Q + charged, 0), atol=1e-9)
    assert (priced > 0) == (kappa > 0)


def test_options_are_off_in_the_publication_and_refused_when_unknown() -> None:
    usual, told = learner_after(12), learner_after(12, charge="optimistic", proportional=0.0, draws="last")
    assert usual.state.theta.tobytes() == told.state.theta.tobytes()
    with pytest.raises(InvalidInputError, match=r"charge cannot be 'plaid'.*played"):
        UCPD(SPACE, BUDGETS, episodes=9, charge="plaid")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"draws cannot be 'all'"):
        UCPD(SPACE, BUDGETS, episodes=9, draws="all")  # type: ignore[arg-type]
    for wrong in (np.zeros(0), np.zeros(2), None, ["played"]):
        with pytest.raises(InvalidInputError, match=r"charge cannot be"):
            UCPD(SPACE, BUDGETS, episodes=9, charge=wrong)  # type: ignore[arg-type]
