"""Our problems as Gymnasium environments: they pass the checker, and they are the problem they stand for."""

import sys
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tightrope as tr
from tests.conftest import FloatArray
from tightrope import InvalidInputError
from tightrope.errors import MissingPackageError
from tightrope.interop import ProblemEnv, SixTuple
from tightrope.interop.gym_env import env_id
from tightrope.problems import PROBLEMS
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Fixed, Replay
from tightrope.streams import streams


def uneven() -> tr.Problem:
    """0 → {1, 2} → 3; state 1 has actions 0 and 3, state 2 has only 2. Losses in euros, two budgets."""
    space = tr.LayeredSpace.from_tuples(
        [1, 2, 1], 4, [(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 3), (1, 3, 3), (2, 2, 3)]
    )
    return tr.Problem.from_units(
        name="my own: uneven",
        mdp=tr.LayeredMDP(space, [0.25, 0.75, 1, 1, 1, 1]),
        scenarios=[[10, 11, 12, 13, 14, 15], [20, 21, 22, 23, 24, 25]],
        losses={"name": "switching", "period": 1},
        uses=[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 0, 0]],
        budgets=[5, 9],
        constraint_names=("left", "right"),
        loss_bounds=(0, 30),
        state_names=("home", "lane", "road", "town"),
        action_names=("a", "b", "c", "d"),
    )


def play(env: Any, policy: tr.Policy, rng: np.random.Generator, **options: Any) -> list[tuple[int, float, Any]]:
    """One episode: (state, reward, cost) of each step."""
    state, _ = env.reset(**options)
    steps, over = [], False
    while not over:
        begin, end = policy.space.csr.state_ptr[state : state + 2]
        action = rng.choice(policy.space.csr.action[begin:end], p=policy.probabilities[begin:end])
        before = int(state)
        state, reward, over, truncated, info = env.step(action)
        assert not truncated
        steps.append((before, float(reward), info["cost"]))
    return steps


@pytest.mark.parametrize("name", PROBLEMS)
def test_registered_environments_pass_the_checker(name: str) -> None:
    env = gymnasium.make(env_id(name))
    assert isinstance(env.unwrapped, ProblemEnv)
    assert env.unwrapped.problem.name == name
    check_env(env.unwrapped)


@pytest.mark.parametrize("strict", [False, True])
def test_a_users_problem_passes_the_checker(strict: bool) -> None:
    problem = tr.make("media-streaming")
    check_env(ProblemEnv(problem, strict=strict))
    check_env(ProblemEnv(uneven()))


def test_environment_ids_are_made_from_the_names_of_problems() -> None:
    assert env_id("edge-cloud") == "tightrope/EdgeCloud-v0"
    assert env_id("my own: uneven") == "tightrope/MyOwnUneven-v0"
    assert {f"tightrope/{name}-v0" for name in ("EdgeCloud", "FrozenLake", "TaxiFuel", "Random")} <= set(
        gymnasium.registry
    )


def test_options_are_the_problems() -> None:
    env = gymnasium.make("tightrope/MediaStreaming-v0", n_steps=4, budget=2, losses="drifting")
    assert isinstance(env.unwrapped, ProblemEnv)
    assert env.unwrapped.problem.space.n_layers == 4
    assert env.unwrapped.problem.losses.name == "drifting"
    with pytest.raises(InvalidInputError, match="'n_steps'"):
        gymnasium.make("tightrope/MediaStreaming-v0", nsteps=4)


def test_several_environments_can_be_stepped_together() -> None:
    envs = gymnasium.make_vec("tightrope/MediaStreaming-v0", num_envs=3)
    observations, _ = envs.reset(seed=1)
    assert observations.tolist() == [0, 0, 0]
    _, rewards, _, _, infos = envs.step(np.zeros(3, dtype=np.int64))
    assert rewards.tolist() == [-1, -1, -1]  # the buffer is empty
    assert infos["cost"].tolist() == [1, 1, 1]  # the fast link
    envs.close()


def test_rewards_and_costs_are_in_the_problems_own_units() -> None:
    env = ProblemEnv(uneven())
    env.reset(seed=0)
    *step, info = env.step(1)
    assert step == [2, pytest.approx(-12), False, False]
    np.testing.assert_allclose(info["cost"], [2, 8])
    *step, info = env.step(2)
    assert step == [3, pytest.approx(-15), True, False]
    np.testing.assert_allclose(info["cost"], [5, 0])
    np.testing.assert_allclose(env.budgets, [5, 9])
    # the next episode is the next of the losses; a seed begins again
    for options, first in (({}, -22), ({}, -12), ({}, -22), ({"seed": 5}, -12), ({}, -22)):
        _, info = env.reset(**options)  # type: ignore[arg-type]
        assert env.step(1)[1] == pytest.approx(first)
    assert info["episode"] == env.episode == 2


@pytest.mark.parametrize(("n_constraints", "kind"), [(0, float), (1, float), (2, np.ndarray)])
def test_one_cost_is_a_number_several_are_an_array(n_constraints: int, kind: type) -> None:
    problem = uneven()
    cut = replace(
        problem,
        constraints=Deterministic(problem.constraints.mean[:n_constraints]),
        budgets=problem.budgets[:n_constraints],
        constraint_names=problem.constraint_names[:n_constraints],
        constraint_scales=problem.constraint_scales[:n_constraints],
    )
    env = ProblemEnv(cut)
    env.reset(seed=0)
    cost = env.step(1)[4]["cost"]
    assert isinstance(cost, kind)
    assert np.sum(np.asarray(cost)) == pytest.approx([0, 2, 10][n_constraints])


def test_states_are_met_as_often_as_the_model_says() -> None:
    problem = tr.make("random", layer_sizes=[1, 3, 4, 1], n_actions=2, losses="fixed", seed=3)
    policy = tr.Policy.uniform(problem.space)
    rng, episodes = np.random.default_rng(0), 2000
    env = ProblemEnv(problem)
    met, returns, costs = np.zeros(problem.space.n_states), [], []
    for t in range(episodes):
        steps = play(env, policy, rng, **({"seed": 1} if t == 0 else {}))
        for state, _, _ in steps:
            met[state] += 1
        returns.append(sum(reward for _, reward, _ in steps))
        costs.append(sum(cost for _, _, cost in steps))
    theta = problem.mdp.occupancy(policy)
    expected = np.bincount(problem.space.tuples[:, 0], theta, minlength=problem.space.n_states)
    spread = np.sqrt(expected * (1 - expected) / episodes)
    assert (np.abs(met / episodes - expected) <= 4 * spread + 1e-12).all()
    loss = problem.losses.begin(rng).loss(1) @ theta
    assert np.mean(returns) == pytest.approx(-loss, abs=4 * np.std(returns) / np.sqrt(episodes))
    used = (problem.constraints.mean @ theta)[0]
    assert np.mean(costs) == pytest.approx(used, abs=4 * np.std(costs) / np.sqrt(episodes))


def test_a_seed_gives_the_constraints_and_losses_of_a_run_with_that_seed() -> None:
    problem = tr.make("edge-cloud", losses="iid")
    env = ProblemEnv(problem)
    expected = streams(8)
    adversary = problem.losses.begin(expected.adversary)
    for t in range(1, 6):
        state, _ = env.reset(seed=8) if t == 1 else env.reset()
        f, g = adversary.loss(t), problem.constraints.sample(expected.constraints)
        over = False
        while not over:
            before, (state, reward, over, _, info) = state, env.step(t % 4)
            [j] = np.flatnonzero((problem.space.tuples == (before, t % 4, state)).all(axis=1))
            assert reward == pytest.approx(-problem.loss_scale * f[j] - problem.loss_offset)
            np.testing.assert_allclose(info["cost"], problem.constraint_scales * g[:, j])


def test_the_same_seed_gives_the_same_play() -> None:
    problem = tr.make("edge-cloud")
    policy = tr.Policy.uniform(problem.space)

    def two_episodes(**options: Any) -> list[tuple[int, float, Any]]:
        env, rng = ProblemEnv(problem), np.random.default_rng(0)
        steps = play(env, policy, rng, **options) + play(env, policy, rng)
        return [(state, reward, cost.tolist()) for state, reward, cost in steps]

    assert two_episodes(seed=4) == two_episodes(seed=4)
    assert two_episodes(seed=4) != two_episodes(seed=5)
    assert two_episodes() != two_episodes()  # without one, every environment is another


def test_the_user_can_set_the_random_generator() -> None:
    plays = []
    for _ in range(2):
        env = ProblemEnv(uneven())
        env.np_random = np.random.default_rng(3)
        env.reset()
        plays.append([env.step(0)[0], env.step(0)[0]])
    assert plays[0] == plays[1]


def test_an_unavailable_action_is_replaced_by_an_available_one() -> None:
    env = ProblemEnv(uneven())
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1, 0, 0]
    for asked, taken in ((3, 1), (2, 1), (1, 1), (0, 0)):
        env.reset()
        assert env.step(asked)[4]["action"] == taken
    env.reset()
    _, _, _, _, info = env.step(1)  # to state 2, which has only action 2
    assert info["action_mask"].tolist() == [0, 0, 1, 0]
    state, _, _, _, info = env.step(0)
    assert [int(state), info["action"], info["action_mask"].tolist()] == [3, 2, [0, 0, 0, 0]]
    for nonsense in (4, -1, 0.5, "a"):
        env.reset()
        with pytest.raises(InvalidInputError, match=r"not a whole number in 0\.\.3"):
            env.step(nonsense)  # type: ignore[arg-type]


def test_a_strict_environment_refuses_unavailable_actions() -> None:
    env = ProblemEnv(uneven(), strict=True)
    env.reset(seed=0)
    with pytest.raises(
        InvalidInputError, match=r"action 3 \(d\) is not available in state 0 \(home\); available: 0 \(a\), 1"
    ):
        env.step(3)
    assert env.step(1)[4]["action"] == 1


def test_a_step_needs_a_reset() -> None:
    env = ProblemEnv(uneven())
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    env.step(1)
    env.step(2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_rendering_names_the_state() -> None:
    env = ProblemEnv(uneven(), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "home"
    env.step(1)
    assert env.render() == "road"
    assert ProblemEnv(uneven()).render() is None
    with pytest.raises(InvalidInputError, match="'human'"):
        ProblemEnv(uneven(), render_mode="human")


class Watching(Fixed):
    """Remembers what it was told."""

    def __init__(self, scenarios: Any) -> None:
        super().__init__(scenarios)
        self.told: list[FloatArray] = []

    def watch(self, policy: tr.Policy) -> None:
        self.told.append(policy.probabilities)


def test_an_adaptive_adversary_sees_the_trajectory() -> None:
    problem = uneven()
    losses = Watching(np.zeros((1, problem.space.n_tuples)))
    env = ProblemEnv(replace(problem, losses=losses))
    env.reset(seed=0)
    env.step(1)
    env.step(2)
    assert losses.told == []
    env.reset()
    env.reset()
    # pairs: (0, a) (0, b) (1, a) (1, d) (2, c)
    assert [told.tolist() for told in losses.told] == [[0, 1, 0.5, 0.5, 1], [0.5, 0.5, 0.5, 0.5, 1]]
    env.reset(seed=0)
    assert len(losses.told) == 2


def test_six_tuple_returns_the_costs_beside_the_reward() -> None:
    env = SixTuple(ProblemEnv(uneven()))
    env.reset(seed=0)
    observation, reward, cost, *ends, info = env.step(1)
    assert [observation, reward, ends] == [2, pytest.approx(-12), [False, False]]
    np.testing.assert_allclose(cost, [2, 8])
    assert info["cost"] is cost
    plain = SixTuple(gymnasium.make("FrozenLake-v1"))
    plain.reset(seed=0)
    with pytest.raises(InvalidInputError, match=r"no info\['cost'\]"):
        plain.step(0)


def test_a_recorded_sequence_is_replayed() -> None:
    problem = uneven()
    table = np.linspace(-1, 1, 5)[:, None] * np.ones(problem.space.n_tuples)
    env = ProblemEnv(replace(problem, losses=Replay(table), loss_scale=1.0, loss_offset=0.0))
    rewards = []
    for t in range(6):
        env.reset(**({"seed": 0} if t == 0 else {}))  # type: ignore[arg-type]
        rewards.append(env.step(0)[1])
    assert rewards == pytest.approx([1, 0.5, 0, -0.5, -1, 1])


@pytest.mark.parametrize("name", ["frozen-lake", "taxi-fuel"])
def test_without_gymnasium_its_problems_say_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gymnasium", "gymnasium.envs.toy_text.frozen_lake", "gymnasium.envs.toy_text.taxi"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'tightrope\[gymnasium\]'"):
        tr.make(name)


def test_without_gymnasium_the_environment_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "tightrope.interop.gym_env")
    monkeypatch.delitem(vars(tr.interop), "ProblemEnv")
    with pytest.raises(ImportError, match=r"pip install 'tightrope\[gymnasium\]'"):
        tr.interop.ProblemEnv  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tr.interop.nothing  # noqa: B018
    assert "play_live" in dir(tr.interop)
