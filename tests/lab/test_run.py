"""Runs: exact accounting against a recomputation, random streams, the order of an episode, and the theorem's rate."""

from collections.abc import Callable
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, random_mdp
from tightrope import (
    UCPD,
    Episode,
    History,
    InfeasibleError,
    InvalidInputError,
    KnownModel,
    LayeredSpace,
    Policy,
    Problem,
    compare,
    load_problem,
    make,
    run,
    solve_cmdp,
)
from tightrope.lab.history import VIOLATION, use_columns
from tightrope.lab.metrics import COLUMNS
from tightrope.lab.run import spaced
from tightrope.learners.base import Offer
from tightrope.learners.parameters import NOT_NEGATIVE, parameter
from tightrope.planning.hindsight import best_policy
from tightrope.problems.files import write_example

SPACE = LayeredSpace.dense([1, 3, 2, 1], 2)


class Recorder(UCPD):
    """UCPD that writes down what it was asked and shown."""

    name = "recorder"
    radius_scale: float = parameter(NOT_NEGATIVE, default=0.3)
    log: list[tuple[Policy, Episode, FloatArray, int]] = field(init=False, default_factory=list)

    def observe(self, episode: Episode) -> None:
        self.log.append((self.policy, episode, self.multipliers, self.epoch))
        super().observe(episode)


class Steady(Recorder):
    """The same policy in every episode, so that what is drawn depends on nothing else."""

    def observe(self, episode: Episode) -> None:
        self.log.append((self.policy, episode, self.multipliers, self.epoch))


class Charge:
    """A loss sequence and its own adversary: f^t = loss(t); remembers what it was asked and shown, in order."""

    name = "charge"

    def __init__(self, loss: Callable[[int], FloatArray]) -> None:
        self.charge = loss
        self.calls: list[tuple[str, Any]] = []

    def begin(self, rng: np.random.Generator) -> "Charge":
        self.rng = rng
        self.calls = []
        return self

    def loss(self, episode: int) -> FloatArray:
        self.calls.append(("loss", episode))
        return self.charge(episode)

    def watch(self, policy: Policy) -> None:
        self.calls.append(("watch", policy))


class Noisy:
    """g^t = mean times one uniform number around 1 for every constraint."""

    def __init__(self, mean: FloatArray, spread: float = 0.3) -> None:
        self.mean, self.spread = mean, spread

    def sample(self, rng: np.random.Generator) -> FloatArray:
        factors: FloatArray = rng.uniform(1 - self.spread, 1 + self.spread, (len(self.mean), 1))
        return factors * self.mean


class Still(Noisy):
    """Constraints that equal their mean in every episode."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.mean


def small_problem(losses: Charge | None = None, n_constraints: int = 2) -> Problem:
    """Random, with budgets that some policies break and others keep; losses random in every episode."""
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, SPACE)
    mean = rng.random((n_constraints, SPACE.n_tuples)) / (1.3 * max(1, n_constraints))
    table = rng.uniform(-1, 1, (500, SPACE.n_tuples))
    return Problem(
        name="small",
        mdp=mdp,
        losses=losses or Charge(lambda t: table[t]),
        constraints=Noisy(mean),
        budgets=0.98 * mean @ mdp.occupancy(Policy.uniform(SPACE)),
        constraint_names=tuple(f"constraint {i}" for i in range(n_constraints)),
    )


def recorder(problem: Problem, episodes: int) -> Recorder:
    return Recorder(problem.space, problem.budgets, episodes=episodes)


def assert_same_history(one: History, other: History) -> None:
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


# ------------------------------------------------------------------------------------------ accounting


@pytest.mark.parametrize("n_constraints", [0, 1, 2])
def test_every_column_is_what_it_says(n_constraints: int) -> None:
    """Recomputed from the policies that were played, with `occupancy` and the LP alone."""
    T, problem = 60, small_problem(n_constraints=n_constraints)
    learner = recorder(problem, T)
    history = run(problem, learner, episodes=T, records=12)
    assert len(learner.log) == T
    assert history["episode"].tolist() == spaced(T, 12).tolist()
    mdp, mean, c = problem.mdp, problem.constraints.mean, problem.budgets
    thetas = [mdp.occupancy(policy) for policy, *_ in learner.log]
    f = [np.asarray(episode.loss) for _, episode, *_ in learner.log]
    g = [np.asarray(episode.constraints) for _, episode, *_ in learner.log]
    exceeded = 0.0
    for row, t in enumerate(history["episode"].astype(int)):
        loss = sum(f[k] @ thetas[k] for k in range(t))
        best = solve_cmdp(mdp, np.sum(f[:t], axis=0), mean, c).value
        over = sum((g[k] @ thetas[k] - c for k in range(t)), np.zeros(n_constraints))
        strong = sum(np.linalg.norm(np.maximum(mean @ thetas[k] - c, 0)) for k in range(t))
        _, _, Q, epoch = learner.log[t - 1]
        expected = {
            "episode": t,
            "loss": loss,
            "hindsight": best,
            "regret": loss - best,
            "violation": np.linalg.norm(np.maximum(over, 0)),
            "strong_violation": strong,
            "multiplier_norm": np.linalg.norm(Q),
            "epoch": epoch,
        }
        for i in range(n_constraints):
            expected[f"use_constraint_{i}"] = sum(g[k][i] @ thetas[k] for k in range(t))
            expected[f"violation_constraint_{i}"] = max(0.0, expected[f"use_constraint_{i}"] - t * c[i])
        assert set(history) == set(expected)
        for name, value in expected.items():
            assert history[name][row] == pytest.approx(value, abs=1e-9), (name, t)
        exceeded = max(exceeded, float(expected["violation"]), float(expected["multiplier_norm"]))
    assert exceeded > 0.1 or n_constraints == 0  # the columns had something to say
    assert history["epoch"][-1] > history["epoch"][0]


def test_the_learner_sees_what_happened() -> None:
    """A trajectory of the model, the loss of that episode, the constraints of that episode."""
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (41, SPACE.n_tuples))
    problem = small_problem(Charge(lambda t: table[t]))
    learner = recorder(problem, 40)
    run(problem, learner, episodes=40)
    draws = []
    for t, (_, episode, *_) in enumerate(learner.log, start=1):
        path = SPACE.path(episode.states, episode.actions)
        assert (problem.mdp.transitions[path] > 0).all()
        np.testing.assert_array_equal(episode.loss, table[t])
        draws.append(np.asarray(episode.constraints) / problem.constraints.mean)
    factors = np.array(draws)[:, :, 0]
    np.testing.assert_allclose(draws, np.repeat(factors[:, :, None], SPACE.n_tuples, axis=2))
    assert len(np.unique(factors)) == factors.size  # drawn again in every episode


@pytest.mark.parametrize("regret", ["last", "never"])
def test_regret_is_computed_at_the_requested_records(regret: Any) -> None:
    problem = small_problem()
    full = run(problem, recorder(problem, 50), episodes=50)
    some = run(problem, recorder(problem, 50), episodes=50, regret=regret)
    for name in COLUMNS:
        if name not in ("hindsight", "regret"):
            np.testing.assert_array_equal(some[name], full[name])
            continue
        assert np.isnan(some[name][:-1]).all()
        if regret == "last":
            assert some[name][-1] == full[name][-1]
        else:
            assert np.isnan(some[name][-1])


def test_without_regret_no_lp_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.lab.metrics.HindsightLP", None)
    problem = small_problem()
    run(problem, recorder(problem, 5), episodes=5, regret="never")
    with pytest.raises(TypeError):
        run(problem, recorder(problem, 5), episodes=5, regret="last")


@given(st.integers(1, 10**7), st.integers(1, 200))
def test_records_are_spaced_evenly(episodes: int, records: int) -> None:
    log, linear = spaced(episodes, records), spaced(episodes, records, "linear")
    for found in (log, linear):
        assert found.dtype == np.int64
        assert 1 <= len(found) <= records
        assert found[-1] == episodes
        assert (np.diff(found) > 0).all()
    if records >= 2:
        assert log[0] == linear[0] == 1
        # neighbours are a constant factor apart, or as near as whole numbers allow
        factor = episodes ** (1 / (records - 1))
        assert (log[1:] <= np.maximum(log[:-1] + 1, factor * (log[:-1] + 0.5) + 0.5)).all()
        assert np.diff(linear).max(initial=1) <= max(1, (episodes - 1) / (records - 1) + 1)


def test_a_history_is_a_table() -> None:
    problem = small_problem()
    history = run(problem, recorder(problem, 30), episodes=30, records=7)
    assert list(history) == [*COLUMNS, *use_columns(problem), *use_columns(problem, VIOLATION)]
    assert len(history) == len(COLUMNS) + 2 * len(problem.budgets)
    assert {len(column) for column in history.values()} == {len(spaced(30, 7))}
    assert "violation" in repr(history)
    with pytest.raises(KeyError):
        history["happiness"]


# -------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("as_given", [np.asfortranarray, lambda g: np.repeat(g, 2, axis=-1)[..., ::2], np.float32])
def test_losses_and_constraints_may_be_arrays_of_any_kind(as_given: Any) -> None:
    """Fortran order, strides, 32 bits: an own problem's arrays need not be what the kernels want."""
    problem = small_problem()
    f = np.random.default_rng(0).uniform(-1, 1, SPACE.n_tuples)
    histories = []
    for kind in (np.asarray, as_given):
        loss, mean = kind(f), kind(problem.constraints.mean)
        given = replace(problem, losses=Charge(lambda t, loss=loss: loss), constraints=Still(mean))  # type: ignore[misc]
        histories.append(run(given, "ucpd", episodes=5, regret="never"))
    for column in ("loss", "violation", "strong_violation"):
        np.testing.assert_allclose(histories[1][column], histories[0][column], rtol=1e-5)


def test_same_seed_same_bits() -> None:
    problem = small_problem()
    one, again, other = (run(problem, recorder(problem, 80), episodes=80, seed=seed) for seed in (3, 3, 4))
    assert_same_history(one, again)
    assert (one["loss"] != other["loss"]).any()
    by_name, made = run(problem, "ucpd", episodes=80), UCPD(SPACE, problem.budgets, episodes=80)
    assert_same_history(by_name, run(problem, made, episodes=80))


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    problem = small_problem()
    short, long = Steady(SPACE, problem.budgets, episodes=99), Steady(SPACE, problem.budgets, episodes=99)
    run(problem, short, episodes=20)
    run(problem, long, episodes=40)
    for (_, a, *_), (_, b, *_) in zip(short.log, long.log, strict=False):
        np.testing.assert_array_equal(a.states, b.states)
        np.testing.assert_array_equal(a.constraints, b.constraints)


def observed(problem: Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(states and actions, constraints relative to their mean, losses) of 50 episodes of one policy."""
    learner = Steady(problem.space, problem.budgets, episodes=50)
    run(problem, learner, episodes=50, seed=seed, regret="never")
    episodes = [episode for _, episode, *_ in learner.log]
    paths = np.array([np.append(episode.states, episode.actions) for episode in episodes])
    factors = np.array([np.asarray(episode.constraints)[:, 0] for episode in episodes]) / problem.constraints.mean[:, 0]
    return paths, factors, np.array([episode.loss for episode in episodes])


def test_streams_are_independent() -> None:
    """What one draws, and how much, changes nothing for the others."""

    def random_losses(draws: int) -> Charge:
        losses = Charge(lambda t: losses.rng.uniform(-1, 1, (draws, SPACE.n_tuples))[0])
        return losses

    problem = small_problem(random_losses(1))
    paths, factors, losses = observed(problem)
    for changed, same in (
        (replace(problem, constraints=Still(problem.constraints.mean)), (True, False, True)),
        (replace(problem, losses=random_losses(2)), (True, True, False)),
        (replace(problem, mdp=random_mdp(np.random.default_rng(9), SPACE)), (False, True, True)),
        (problem, (True, True, True)),
    ):
        for before, after, unchanged in zip((paths, factors, losses), observed(changed), same, strict=True):
            assert np.array_equal(before, after) == unchanged
    for before, after in zip((paths, factors, losses), observed(problem, seed=1), strict=True):
        assert not np.array_equal(before, after)  # every stream comes from the seed


def test_sampled_paths_follow_the_model_and_the_policy() -> None:
    """Frequencies of 4000 episodes against the exact occupancy measure, within five standard deviations."""
    problem = small_problem(Charge(lambda t: np.zeros(SPACE.n_tuples)))
    learner = Steady(SPACE, problem.budgets, episodes=4000)
    run(problem, learner, episodes=4000, regret="never", seed=7)
    visits = np.zeros(SPACE.n_tuples)
    for _, episode, *_ in learner.log:
        visits[SPACE.path(episode.states, episode.actions)] += 1
    theta = problem.mdp.occupancy(learner.policy)
    assert (np.abs(visits / 4000 - theta) <= 5 * np.sqrt(theta * (1 - theta) / 4000) + 1e-12).all()


# ------------------------------------------------------------------------------- the order of an episode


def test_an_adversary_is_shown_the_policy_after_the_episode() -> None:
    losses = Charge(lambda t: np.full(SPACE.n_tuples, 0.1))
    problem = small_problem(losses)
    learner = recorder(problem, 25)
    run(problem, learner, episodes=25)
    assert [call for call, _ in losses.calls] == ["loss", "watch"] * 25
    assert [episode for call, episode in losses.calls if call == "loss"] == list(range(1, 26))
    watched = [policy for call, policy in losses.calls if call == "watch"]
    for shown, (played, *_) in zip(watched, learner.log, strict=True):
        assert shown is played


def test_an_adaptive_adversary_sees_only_the_past() -> None:
    """It charges the first action that the policies seen so far prefer; the learner is not read before f is fixed."""
    order: list[str] = []

    class Watched(Recorder):
        name = "watched"

        def __getattribute__(self, attribute: str) -> Any:
            if attribute == "policy":
                order.append("policy")
            return super().__getattribute__(attribute)

        def observe(self, episode: Episode) -> None:
            order.append("observe")
            super().observe(episode)

    class Chasing(Charge):
        def __init__(self) -> None:
            super().__init__(self.chase)
            self.seen = np.full(2, 0.5)

        def chase(self, episode: int) -> FloatArray:
            order.append("loss")
            return np.where(SPACE.tuples[:, 1] == np.argmax(self.seen), 1.0, -1.0)

        def watch(self, policy: Policy) -> None:
            order.append("watch")
            self.seen = policy.probabilities[:2]

    problem = small_problem(Chasing())
    order.clear()
    learner = Watched(SPACE, problem.budgets, episodes=30)
    order.clear()
    history = run(problem, learner, episodes=30)
    assert [step for step in order if step != "policy"] == ["loss", "observe", "watch"] * 30
    starts = [k for k, step in enumerate(order) if step == "loss"]
    assert all("policy" not in order[order.index("watch", a) : b] for a, b in pairwise(starts))
    assert "policy" not in order[: starts[0]]

    policies = [policy for policy, *_ in learner.log]
    losses = [np.asarray(episode.loss) for _, episode, *_ in learner.log]
    for t in range(1, 30):
        preferred = np.argmax(policies[t - 1].probabilities[:2])
        np.testing.assert_array_equal(losses[t], np.where(SPACE.tuples[:, 1] == preferred, 1.0, -1.0))
    total = sum(f @ problem.mdp.occupancy(policy) for f, policy in zip(losses, policies, strict=True))
    assert history["loss"][-1] == pytest.approx(total, abs=1e-9)


def test_progress_is_reported_to_the_end() -> None:
    for episodes in (1, 7, 1001):
        seen: list[int] = []
        run(make("random", layer_sizes=[1, 1], n_actions=2), episodes=episodes, regret="never", progress=seen.append)
        assert seen == sorted(set(seen))
        assert seen[-1] == episodes
        assert len(seen) <= 501


# --------------------------------------------------------------------------------- settings and errors


def test_settings_record_everything() -> None:
    problem = small_problem()
    learner = UCPD(SPACE, problem.budgets, episodes=100, radius_scale=0.5, alpha=20.0)
    history = run(problem, learner, episodes=40, seed=6)
    assert history.settings == learner.settings | {
        "problem": "small",
        "losses": repr(problem.losses),
        "constraints": repr(problem.constraints),
        "episodes": 40,
        "planned_episodes": 100,
        "seed": 6,
    }
    assert history.settings["radius_scale"] == 0.5
    assert "planned_episodes" not in learner.settings  # what belongs to the run is not written into the learner
    by_name = run(problem, "ucpd", episodes=40).settings
    assert (by_name["learner"], by_name["episodes"], by_name["planned_episodes"]) == ("ucpd", 40, 40)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"episodes": -3}, "episodes is -3"),
        ({"episodes": 2.5}, "episodes is 2.5"),
        ({"records": 0}, "records is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"regret": "sometimes"}, "'sometimes'.*known: last, never, records"),
        ({"learner": "ucbd"}, "no learner 'ucbd'"),
        ({"learner": UCPD(LayeredSpace.dense([1, 3, 1], 2), [0.1, 0.1], episodes=9)}, "made for .* and 2 constraints"),
        ({"learner": UCPD(SPACE, [0.1], episodes=9)}, "made for .* and 1 constraints; the problem has .* and 2"),
    ],
)
def test_wrong_arguments_of_run_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        run(small_problem(), **({"episodes": 9} | given))


def test_budgets_that_cannot_be_met_are_refused_before_the_first_episode() -> None:
    losses = Charge(lambda t: np.zeros(SPACE.n_tuples))
    problem = replace(small_problem(losses), budgets=np.array([0.0, 1.0]))
    losses.calls = []
    with pytest.raises(InfeasibleError, match=r"a budget of 0 for 'constraint 0' cannot be met: .* at least 0\.\d+ an"):
        run(problem, episodes=10)
    assert ("loss", 1) not in losses.calls


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (np.zeros(SPACE.n_tuples - 1), r"episode 4: the adversary's loss has shape \(\d+,\); expected"),
        (np.zeros((1, SPACE.n_tuples)), r"episode 4: the adversary's loss has shape \(1, "),
        (np.full(SPACE.n_tuples, np.nan), r"episode 4: loss is nan at tuple \(0, 0, 1\)"),
        (np.full(SPACE.n_tuples, 1.5), r"episode 4: loss is 1\.5 at tuple \(0, 0, 1\)"),
    ],
)
def test_an_adversary_that_misbehaves_is_named(loss: FloatArray, words: str) -> None:
    problem = small_problem(Charge(lambda t: loss if t == 4 else np.zeros(SPACE.n_tuples)))
    with pytest.raises(InvalidInputError, match=words):
        run(problem, episodes=10)


def test_constraints_and_policies_of_a_wrong_shape_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem()

    class Short(Still):
        def sample(self, rng: np.random.Generator) -> FloatArray:
            return self.mean[:, :-1]

    with pytest.raises(InvalidInputError, match="episode 1: the draw of the constraints has shape"):
        run(replace(problem, constraints=Short(problem.constraints.mean)), episodes=10)
    learner = recorder(problem, 10)
    elsewhere = Offer(Policy.uniform(LayeredSpace.dense([1, 1], 2)), np.zeros(len(problem.budgets)))
    monkeypatch.setattr(learner, "offer", lambda state: elsewhere)
    learner.state = replace(learner.state)
    with pytest.raises(InvalidInputError, match="episode 1: the learner's policy has shape"):
        run(problem, learner, episodes=10)


# --------------------------------------------------------------------------------------------- the rate


@pytest.mark.parametrize(
    ("layer_sizes", "losses"), [([1, 3, 3, 1], {"name": "switching", "period": 100}), ([1, 3, 1], "fixed")]
)
def test_regret_and_violation_per_episode_fall(layer_sizes: list[int], losses: Any) -> None:
    """With unknown dynamics and the theorem's parameters, T = 1e3, 1e4, 1e5. At √T they fall to 0.32 each time."""
    problem = make("random", layer_sizes=layer_sizes, n_actions=2, losses=losses, seed=0)
    histories = [run(problem, "ucpd", episodes=T, records=2, regret="last") for T in (10**3, 10**4, 10**5)]
    for name in ("regret", "violation", "strong_violation"):
        first, second, third = (history[name][-1] / history["episode"][-1] for history in histories)
        assert second < 0.7 * first, name
        assert third < 0.7 * second, name
        assert first > 0.05, name  # there was something to learn
    # and the regret has the rate of the theorem over the whole range
    assert histories[2]["regret"][-1] < 1.5 * np.sqrt(100) * histories[0]["regret"][-1]


def widest(problem: Problem, f: FloatArray) -> float:
    """max − min of <f, θ> over all policies."""
    return -best_policy(problem.mdp, -f)[0] - best_policy(problem.mdp, f)[0]


class KnownModelBounds:
    """What Algorithm 1 cannot exceed when the model is known and g^t = g, one constraint: the paper's argument with
    the constants of this problem.

    H = Σ_k log(tuples of layer k), G = max |g(θ) − c|, F = max over t of max f^t − min f^t, ε = c − min g (Slater).
    The step of episode t + 1 and the update of Q give for every occupancy measure θ

        V <f^t, θ^{t+1} − θ> + Q(t) (c − g(θ)) + (Q(t+1)² − Q(t)²)/2 + α D(θ^{t+1}, θ̃^t)
            <= G²/2 + α [D(θ, θ̃^t) − D(θ, θ^{t+1})],      D(θ, θ̃^t) <= D(θ, θ^t) + λH,   D(θ, θ^1) <= H.

    Regret: take θ feasible; <f^t, θ^t − θ^{t+1}> costs at most 2λL + LV/(2α) (Pinsker against D); sum over t. θ^1 is
    no occupancy measure: 2L more. Violation: take θ with g(θ) = c − ε. Over τ episodes Q falls by τG at most and
    D(θ, θ̃) <= H + L log(1/λ), so Q cannot grow from ψ(τ) on, and never exceeds ψ(τ) + τG; from the second episode on
    the sum of g(θ^t) − c is at most Q.
    """

    def __init__(self, problem: Problem, scenarios: FloatArray, T: int) -> None:
        space, mdp, g, c = problem.space, problem.mdp, problem.constraints.mean[0], problem.budgets[0]
        L = space.n_layers
        H = np.log(np.bincount(space.layer_of_pair, space.successors_per_pair)).sum()
        F = max(widest(problem, f) for f in scenarios)
        slack = c - best_policy(mdp, g)[0]
        G = max(slack, -best_policy(mdp, -g)[0] - c)
        alpha, V, lam = L * T, L * np.sqrt(T), 1 / T

        def regret(t: FloatArray) -> FloatArray:
            bound: FloatArray = (G**2 / 2 * t + alpha * H * (1 + lam * t)) / V + (2 * lam * L + L * V / (2 * alpha)) * t
            return bound + 2 * L

        tau = np.arange(1, T)
        psi = (V * F + G**2 / 2 + alpha * lam * H) / slack + alpha * (H + L * np.log(1 / lam)) / (slack * tau)
        self.regret = regret
        self.violation = float((psi + G * (tau - 1) / 2 + G * tau).min()) + G
        self.G = G


@pytest.mark.parametrize("losses", ["fixed", {"name": "switching", "period": 100}], ids=["fixed", "switching"])
def test_with_the_model_known_the_hindsight_value_is_reached_at_the_rate_of_the_theorem(losses: Any) -> None:
    T = 30_000
    problem = make("random", layer_sizes=[1, 3, 1], n_actions=4, n_scenarios=2, losses=losses, seed=32)
    problem = replace(problem, constraints=Still(problem.constraints.mean))
    adversary = problem.losses.begin(np.random.default_rng(0))
    scenarios = np.unique([adversary.loss(t) for t in (1, 101)], axis=0)
    bounds = KnownModelBounds(problem, scenarios, T)
    known = KnownModel(transitions=problem.mdp.transitions)
    learner = UCPD(problem.space, problem.budgets, episodes=T, confidence=known, radius_scale=0.0)
    history = run(problem, learner, episodes=T, records=25)

    assert (history["regret"] <= bounds.regret(history["episode"])).all()
    assert (history["violation"] <= bounds.violation).all()
    assert (history["violation"] <= history["multiplier_norm"] + bounds.G).all()
    # C√T with C = 11 is far from trivial: a learner that ignores losses or the budget exceeds it
    assert bounds.regret(np.array(T)) < 11.1 * np.sqrt(T)
    mdp, total = problem.mdp, scenarios.mean(axis=0) * T
    careless = best_policy(mdp, total)[1]
    best = solve_cmdp(mdp, total, problem.constraints.mean, problem.budgets)
    assert total @ mdp.occupancy(Policy.uniform(problem.space)) - best.value > 5 * bounds.regret(np.array(T))
    over = problem.constraints.mean @ mdp.occupancy(careless) - problem.budgets
    assert T * over[0] > 1.5 * bounds.violation
    if losses == "fixed":  # nor can it be below the value by more than what it overspends is worth
        assert history["regret"][-1] >= -best.multipliers[0] * history["violation"][-1] - 1e-6


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    history = run("media-streaming", "uniform", episodes=3)
    with pytest.raises(KeyError, match=r"^the history has no column 'regrets'; did you mean 'regret'\?") as error:
        history["regrets"]
    assert isinstance(error.value, InvalidInputError)
    assert history.get("regrets") is None and "regrets" not in history and "regret" in history


def test_the_keys_of_a_history_print_the_names_of_its_columns() -> None:
    history = run("media-streaming", "uniform", episodes=3)
    assert str(history.keys()).startswith("dict_keys(['episode', 'loss', 'hindsight', 'regret', ")
    assert list(history.keys()) == list(history)


def test_a_problem_can_be_given_by_its_name() -> None:
    by_name = run("media-streaming", "uniform", episodes=20)
    assert by_name["loss"].tolist() == run(make("media-streaming"), "uniform", episodes=20)["loss"].tolist()
    compared = compare("media-streaming", "uniform", episodes=20)
    assert compared["uniform"][0]["loss"].tolist() == by_name["loss"].tolist()
    with pytest.raises(InvalidInputError, match="there is no problem 'media-steaming'; did you mean 'media-streaming'"):
        run("media-steaming", episodes=1)


def test_a_folder_in_place_of_a_problem_is_answered_with_load_problem(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_example(folder)
    with pytest.raises(InvalidInputError, match=r"mine' is a folder; tightrope\.load_problem\('.*mine'\) reads"):
        run(str(folder), "uniform", episodes=5)
    assert load_problem(folder / "problem.toml").name == "mine"


def test_a_class_in_place_of_a_learner_is_named() -> None:
    with pytest.raises(InvalidInputError, match="learner is the class UCPD; expected an object with space, budgets"):
        run("media-streaming", UCPD, episodes=5)  # type: ignore[arg-type]


def test_what_a_learner_of_ones_own_lacks_is_named() -> None:
    class Mine:
        space, budgets, policy = SPACE, np.ones(1), Policy.uniform(SPACE)

        def observe(self, episode: Episode) -> None: ...

    with pytest.raises(InvalidInputError, match=r"expected an object with .*feedback, epoch, multipliers, settings"):
        run("media-streaming", Mine(), episodes=5)  # type: ignore[arg-type]
