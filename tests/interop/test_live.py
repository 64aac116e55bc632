"""A learner driven by env.step: what it is told, what is reported, and what is refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import tightrope as tr
from tightrope import BanditEpisode, InvalidInputError
from tightrope.interop import LiveHistory, LiveSpace, ProblemEnv, play_live
from tightrope.interop.live import RunningMeans, Step


class Listener:
    """Plays uniformly at random and keeps what it is told."""

    multipliers, epoch = np.zeros(0), 1

    def __init__(self, space: tr.LayeredSpace, budgets: list[float], feedback: Any = "full") -> None:
        self.space, self.budgets, self.feedback = space, np.array(budgets), feedback
        self.policy = tr.Policy.uniform(space)
        self.told: list[Any] = []

    def observe(self, episode: Any) -> None:
        self.told.append(episode)

    @property
    def settings(self) -> dict[str, float | str]:
        return {"learner": "listener"}


class Corridor:
    """Walk right (1) or stay (0), cells 0..2; the third ends the episode. Reward is the cell, cost is 0.5 a move."""

    def __init__(self, report_cost: bool = True) -> None:
        self.report_cost, self.seeds = report_cost, []  # type: ignore[var-annotated]

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.seeds.append(seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert self.cell < 2, "the episode is over"
        self.cell += action
        info = {"cost": 0.5 * action} if self.report_cost else {}
        return self.cell, self.cell / 2, self.cell == 2, False, info


def corridor_space(n_steps: int = 4) -> tr.LayeredSpace:
    """Cells 0, 1, 2 in every inner layer."""
    return tr.LayeredSpace.dense([1] + [3] * (n_steps - 1) + [1], 2)


def cell_of(observation: int, step: int) -> int:
    return 1 + 3 * (step - 1) + observation


def test_a_bandit_learner_observes_only_the_costs_of_the_path() -> None:
    env, learner = Corridor(), Listener(corridor_space(), [1.0], "bandit")
    history = play_live(env, learner, episodes=20, state_of=cell_of, seed=3)
    assert env.seeds == [3] + [None] * 19
    for t, episode in enumerate(learner.told):
        assert isinstance(episode, BanditEpisode)
        learner.space.path(episode.states, episode.actions)
        cell = 0
        for k, action in enumerate(np.asarray(episode.actions).tolist()):
            over = cell == 2
            cell = cell if over else cell + action
            assert np.asarray(episode.losses)[k] == (0 if over else -cell / 2)
            assert np.asarray(episode.constraints)[0, k] == (0 if over else 0.5 * action)
            if k < 3:
                assert np.asarray(episode.states)[k + 1] == cell_of(cell, k + 1)
        assert history.loss[t] == np.sum(episode.losses)
        assert history.cost[t, 0] == np.sum(episode.constraints)
    assert len({float(loss) for loss in history.loss}) > 2
    assert history.settings == {"environment": str(env), "seed": 3, "learner": "listener"}


def test_the_same_seed_gives_the_same_history() -> None:
    def play(seed: int) -> list[float]:
        learner = Listener(corridor_space(), [1.0], "bandit")
        return list(play_live(Corridor(), learner, episodes=20, state_of=cell_of, seed=seed).loss)

    assert play(0) == play(0) != play(1)


def test_tables_of_losses_and_costs_reach_the_learner() -> None:
    learner = Listener(corridor_space(2), [1.0])
    n = learner.space.n_tuples
    asked = []

    def tables(episode: int) -> tuple[Any, Any]:
        asked.append((episode, len(learner.told)))
        return np.full(n, episode / 10), np.full((1, n), 0.5)

    done: list[int] = []
    play_live(Corridor(), learner, episodes=3, state_of=cell_of, tables=tables, progress=done.append)
    assert asked == [(1, 0), (2, 1), (3, 2)]
    assert done == [1, 2, 3]
    assert [episode.loss[0] for episode in learner.told] == [0.1, 0.2, 0.3]


def test_without_tables_the_learner_gets_running_means() -> None:
    space = corridor_space(2)
    means = RunningMeans(space, 1)
    before = means.loss
    path = np.array([0, 7])
    means.add(path, np.array([1.0, -1.0]), np.array([[0.5, 0.0]]))
    means.add(path, np.array([0.0, -0.5]), np.array([[0.1, 0.0]]))
    means.add(np.array([0, 8]), np.array([-0.4, 0.2]), np.array([[0.0, 0.3]]))
    assert not before.any()  # an array that was returned before does not change
    assert means.loss[[0, 7, 8, 1]] == pytest.approx([0.2, -0.75, 0.2, 0])
    assert means.constraints[0, [0, 7, 8, 1]] == pytest.approx([0.2, 0, 0.3, 0])

    learner = Listener(space, [1.0])
    play_live(Corridor(), learner, episodes=30, state_of=cell_of)
    last = learner.told[-1]
    tuples = space.tuples.tolist()
    assert last.loss[tuples.index([0, 1, 2])] == pytest.approx(-0.5)
    assert last.constraints[0, tuples.index([0, 1, 2])] == pytest.approx(0.5)
    assert last.loss[tuples.index([0, 0, 3])] == 0  # cannot happen


def test_actions_are_drawn_from_the_policy() -> None:
    space = tr.LayeredSpace.from_tuples([1, 1], 5, [(0, a, 1) for a in (0, 2, 3, 4)])
    learner = Listener(space, [], "bandit")
    learner.policy = tr.Policy(space, [0.0, 0.25, 0.75, 0.0])
    taken: list[int] = []

    def keep(step: Step) -> float:
        taken.append(step.action)
        return 0.0

    play_live(
        Corridor(), learner, episodes=400, state_of=cell_of, loss_of=keep, action_of=lambda a: min(a - 2, 1), seed=1
    )
    chosen = [int(episode.actions[0]) for episode in learner.told]
    assert taken == [a - 2 for a in chosen]
    assert set(chosen) == {2, 3}
    assert np.mean(np.array(chosen) == 2) == pytest.approx(0.25, abs=0.07)


def test_ucpd_learns_on_an_environment_whose_model_it_never_sees() -> None:
    problem = tr.make("media-streaming")
    T = 1500
    learner = tr.UCPD(problem.space, problem.budgets, episodes=T)
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    history = play_live(
        ProblemEnv(problem),
        learner,
        episodes=T,
        state_of=lambda observation, step: observation,
        tables=lambda episode: (loss, problem.constraints.mean),
    )
    assert isinstance(history, LiveHistory)
    aimless = float(loss @ problem.mdp.occupancy(tr.Policy.uniform(problem.space)))
    assert history.loss[-150:].mean() < aimless - 0.4
    assert "1500 episodes" in repr(history)


def near(cell: int) -> list[int]:
    """Itself and its neighbours, on 4 by 4 cells."""
    y, x = divmod(cell, 4)
    places = ((y, x), (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
    return sorted(4 * v + u for v, u in places if 0 <= v < 4 and 0 <= u < 4)


def test_ucpd_practical_crosses_the_lake() -> None:
    """The dry lake, 8 steps: the learner does not know where the ice is, and a fall ends the episode early."""
    moves = [(cell, a, to) for cell in range(16) for a in range(4) for to in near(cell)]
    lake = LiveSpace(n_observations=16, n_actions=4, n_steps=8, start=0, moves=moves)
    history = play_live(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        tr.UCPDPractical(lake.space, [0.2], ties=lake.ties),
        episodes=900,
        state_of=lake.state_of,
        cost_of=lambda step: float(step.terminated and step.reward == 0),
    )
    assert set(history.cost.ravel().tolist()) == {0.0, 1.0}
    assert history.settings["ties"] == str(lake.ties)
    assert history.cost[:100].mean() > 0.3
    assert -history.loss[-100:].mean() > 0.9  # the goal
    assert history.cost[-100:].mean() < 0.1


def test_observations_over_time() -> None:
    """Any move may happen at any step, by the same law: the dense space, and its ties."""
    corridor = LiveSpace(n_observations=3, n_actions=2, n_steps=4, start=0)
    assert corridor.space.layer_sizes == (1, 3, 3, 3, 1)
    assert corridor.space.n_tuples == tr.LayeredSpace.dense([1, 3, 3, 3, 1], 2).n_tuples
    assert [corridor.state_of(cell, step) for step in (1, 2, 3) for cell in range(3)] == list(range(1, 10))
    assert corridor.ties is not None
    law = corridor.ties.law
    assert law[:2].tolist() == law[2:4].tolist() == law[8:10].tolist()  # cell 0 at steps 0, 1 and 2
    assert law[2:8].tolist() == law[8:14].tolist()
    history = play_live(Corridor(), Listener(corridor.space, [1.0]), episodes=5, state_of=corridor.state_of)
    assert len(history.loss) == 5


def test_a_reset_that_may_lead_anywhere_is_a_law_of_its_own() -> None:
    corridor = LiveSpace(n_observations=3, n_actions=2, n_steps=4)
    assert corridor.space.layer_sizes == (1, 3, 3, 3, 1)
    assert corridor.ties is not None
    law = corridor.ties.law
    assert not set(law[:2].tolist()) & set(law[2:].tolist())
    assert law[2:8].tolist() == law[8:14].tolist()
    assert "4 steps, 11 states" in repr(corridor)


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ([(0, 0, 1), (0, 1, 0)], "no row starts there"),
        ([(0, 0)], r"shape \(1, 2\)"),
        ([(0.5, 0, 1)], "float64"),
        ([(0, 0, 3)], r"the move \[0, 0, 3\] is outside of 3 observations and 2 actions"),
        ([(0, -1, 0)], "outside"),
    ],
)
def test_impossible_moves_are_refused(moves: list[Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        LiveSpace(n_observations=3, n_actions=2, n_steps=4, start=0, moves=moves)


def test_an_observation_that_the_moves_rule_out_is_refused() -> None:
    corridor = LiveSpace(n_observations=3, n_actions=2, n_steps=4, start=0, moves=[(0, 0, 0), (0, 1, 2), (2, 0, 2)])
    with pytest.raises(InvalidInputError, match=r"episode \d: no moves lead to observation 1 at step 1"):
        play_live(Corridor(), Listener(corridor.space, [1.0]), episodes=9, state_of=corridor.state_of, seed=1)


def test_violation_is_that_of_the_costs_that_occurred() -> None:
    history = LiveHistory(
        loss=np.zeros(3),
        cost=np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 5.0]]),
        budgets=np.array([1.0, 1.0]),
        settings={},
    )
    assert history.violation == pytest.approx([1, 1, 3])  # (1, -1), (1, -1), (0, 3)


def test_without_constraints_the_history_has_no_costs() -> None:
    learner = Listener(corridor_space(), [], "bandit")
    history = play_live(Corridor(report_cost=False), learner, episodes=2, state_of=cell_of)
    assert history.cost.shape == (2, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"episodes": 0}, "episodes is 0"),
        (
            {"state_of": lambda observation, step: 99},
            r"episode 1: state_of returned 99 for observation .* layer 1 are 1\.\.3",
        ),
        ({"env": Corridor(report_cost=False)}, r"episode 1: the environment reports no info\['cost'\]"),
        ({"cost_of": lambda step: [0.1, 0.2]}, r"the cost of a step has shape \(2,\); expected \(1,\)"),
        ({"cost_of": lambda step: np.nan}, "the cost of a step is nan"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"env": Corridor(), "episodes": 2, "state_of": cell_of} | options
    with pytest.raises(InvalidInputError, match=words):
        play_live(arguments.pop("env"), Listener(corridor_space(), [1.0], "bandit"), **arguments)


def test_a_move_that_the_space_does_not_know_is_refused() -> None:
    space = tr.LayeredSpace.from_tuples([1, 2, 1], 2, [(0, 0, 1), (0, 1, 1), (0, 0, 2), (1, 0, 3), (2, 0, 3)])
    learner = Listener(space, [1.0], "bandit")
    with pytest.raises(
        InvalidInputError, match=r"episode \d+: step 0 of the trajectory cannot happen: state 0, action 1"
    ):
        play_live(Corridor(), learner, episodes=9, state_of=lambda observation, step: 1 + observation)
