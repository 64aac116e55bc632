"""The game whose costs turn: its numbers by hand, and that no learner has both a small regret and a small violation."""

import numpy as np
import pytest

import tightrope as tr
from tightrope import solve_cmdp

TURN = 60


def test_the_game_has_the_four_published_entries() -> None:
    problem = tr.make("mannor-game", turn=3)
    losses, costs = problem.losses.begin(np.random.default_rng(0)), problem.begin_constraints(np.random.default_rng(0))
    for t in range(1, 8):
        second = t in (1, 2, 3, 7)
        np.testing.assert_array_equal(losses.loss(t), [-1, 1] if second else [-1, 0])
        np.testing.assert_array_equal(costs.constraints(t), [[1, -1]] if second else [[-1, -1]])
    assert problem.budgets.tolist() == [0]
    assert problem.space.action_names == ("risk", "care")


@pytest.mark.parametrize("q", [0.5, 0.6, 0.75, 0.9, 1.0])
def test_the_reward_in_hindsight_is_the_published_one(q: float) -> None:
    """1/2 + 1/(2q) − q where the second column is played for a share q of the time."""
    problem = tr.make("mannor-game")
    columns = problem.losses.scenarios, problem.constraints.extremes  # type: ignore[attr-defined]
    f, g = (q * both[0] + (1 - q) * both[1] for both in columns)
    assert -solve_cmdp(problem.mdp, f, g, problem.budgets).value == pytest.approx(0.5 + 1 / (2 * q) - q)


@pytest.mark.parametrize(
    "learner",
    ["ucpd", "ucpd-practical", "ucpd-bandit", "uc-o-reps", "drift-plus-penalty", "opt-primal-dual", "opt-cmdp",
     "omdpd", "follow-the-leader", "safe-baseline", "hindsight", "uniform"],
)  # fmt: skip
def test_no_learner_keeps_both_regret_and_violation_small(learner: str) -> None:
    """At the turn the violation, or at twice the turn the regret, is a third of the episodes or more."""
    problem, T = tr.make("mannor-game", turn=TURN), 2 * TURN
    history = tr.run(problem, learner, episodes=T, records=T, spacing="linear", regret="last")
    violation, regret = history["violation"][TURN - 1] / TURN, history["regret"][-1] / T
    assert max(violation, regret) >= 1 / 3 - 1e-9


def test_what_can_be_had_is_half_of_each() -> None:
    """The best within the budget in every episode: nothing in the first half, half a reward an episode in the other."""
    problem = tr.make("mannor-game", turn=TURN)
    history = tr.run(problem, "safe-baseline", episodes=2 * TURN, records=1)
    assert -history["hindsight"][-1] == pytest.approx(2 * TURN)
    assert -history["hindsight_always"][-1] == pytest.approx(TURN / 2)
