"""An interrupted run continues to the bits of an undisturbed one: every learner, loss sequence and noise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.lab.test_run import Charge, assert_same_history, small_problem
from tightrope import Run, make
from tightrope.learners import LEARNERS
from tightrope.problems.constraints import CONSTRAINTS
from tightrope.problems.losses import LOSSES
from tightrope.storage import checkpoints

T = 150

#: What a state has only to be held against the run that takes it over.
CHECKED = {"made", "episode"}


def problem_with(losses: str, noise: str = "scaled") -> tr.Problem:
    return make("random", layer_sizes=[1, 2, 2, 1], n_actions=2, n_scenarios=3, losses=losses, noise=noise, seed=1)


def played(run: Run, until: int) -> Run:
    while run.episode < until:
        run.step()
    return run


def cut(problem: tr.Problem, learner: str, at: tuple[int, ...], path: Path) -> tr.History:
    """A run that is saved, and loaded, after each of these episodes."""
    how: dict[str, Any] = {"episodes": T, "seed": 3, "records": 30}
    run = Run(problem, learner, **how)
    for episode in at:
        played(run, episode).save(path)
        run = Run.load(path, problem, **how)
        assert run.episode == episode
    return played(run, T).history


@pytest.mark.parametrize("losses", LOSSES)
def test_a_saved_run_continues_under_every_loss_sequence(losses: str, tmp_path: Path) -> None:
    problem = problem_with(losses)
    whole = tr.run(problem, "ucpd-practical", episodes=T, seed=3, records=30)
    again = cut(problem, "ucpd-practical", (1, 64, 65, 127), tmp_path / "checkpoint")
    assert_same_history(whole, again)
    assert whole.settings == again.settings


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_saved_run_continues_with_every_learner(learner: str, tmp_path: Path) -> None:
    problem = problem_with("bursts", "correlated")
    whole = tr.run(problem, learner, episodes=T, seed=3, records=30)
    assert_same_history(whole, cut(problem, learner, (0, 77, T), tmp_path / "checkpoint"))


@pytest.mark.parametrize("noise", sorted(set(CONSTRAINTS) - {"replay", "recorded"}))
def test_a_saved_run_continues_under_every_noise(noise: str, tmp_path: Path) -> None:
    problem = problem_with("switching", noise)
    whole = tr.run(problem, "ucpd", episodes=T, seed=3, records=30)
    assert_same_history(whole, cut(problem, "ucpd", (40, 100), tmp_path / "checkpoint"))


@pytest.mark.parametrize(
    "part", [part for part in Run(problem_with("fixed"), episodes=T).state() if part not in CHECKED]
)
def test_every_part_of_the_saved_state_is_needed(part: str, tmp_path: Path) -> None:
    """Left as it is at the beginning, it is missed."""
    problem, path = problem_with("random-walk"), tmp_path / "checkpoint"
    run = played(Run(problem, "ucpd", episodes=T), 70)
    run.save(path)
    again = Run(problem, tr.load(path), episodes=T)
    checkpoints.restore(path, again)
    again.restore(again.state() | {part: Run(problem, "ucpd", episodes=T).state()[part]})
    with pytest.raises(AssertionError):
        assert_same_history(played(run, T).history, played(again, T).history)


def test_the_learner_of_a_run_is_loaded_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    run = played(Run(problem_with("fixed"), "ucpd", episodes=T), 20)
    run.save(path)
    learner = tr.load(path)
    assert learner.observed == 20
    np.testing.assert_array_equal(learner.policy.probabilities, run.learner.policy.probabilities)


def test_the_state_of_another_run_is_refused(tmp_path: Path) -> None:
    problem, path = problem_with("fixed"), tmp_path / "checkpoint"
    run = played(Run(problem, "ucpd", episodes=T), 20)
    run.learner.save(path)  # type: ignore[attr-defined]
    with pytest.raises(tr.InvalidInputError, match="a learner only, without a run"):
        Run.load(path, problem, episodes=T)
    run.save(path)
    with pytest.raises(tr.InvalidInputError, match=r"a run of 150 episodes of random .*; this one is of 10 episodes"):
        Run(problem, tr.load(path), episodes=10).restore(run.state())
    with pytest.raises(tr.InvalidInputError, match="at episode 30, its learner after 20 of 150"):
        Run(problem, tr.load(path), episodes=T).restore(run.state() | {"episode": 30})
    with pytest.raises(tr.InvalidInputError, match="of shape"):
        Run.load(path, problem, episodes=T, records=7)
    with pytest.raises(tr.InvalidInputError, match=r"state of beside\.adversary"):
        Run.load(path, problem_with("bursts"), episodes=T)


def test_custom_losses_that_cannot_be_saved_are_named(tmp_path: Path) -> None:
    problem = small_problem(Charge(lambda t: np.zeros(small_problem().space.n_tuples)))
    with pytest.raises(tr.InvalidInputError, match=r"losses 'charge'.*state, restore"):
        Run(problem, "ucpd", episodes=5).save(tmp_path / "checkpoint")
