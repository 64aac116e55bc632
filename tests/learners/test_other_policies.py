"""From whose episodes a learner can learn, and with which budgets it can go on."""

import inspect
import sys

import numpy as np
import pytest

from tightrope import BanditEpisode, InvalidInputError, Policy, make_learner
from tightrope.checks.worlds import drive, now, ordinary_world, same
from tightrope.learners import LEARNERS
from tightrope.learners.base import NEEDS_OF_BUDGETS

WORLD = ordinary_world()


@pytest.mark.parametrize("name", LEARNERS)
def test_path_weighting_learners_do_not_learn_from_any_policy(name: str) -> None:
    learner = LEARNERS[name]
    alone = sum(kind.__module__ == learner.__module__ for kind in LEARNERS.values()) == 1
    source = inspect.getsource(sys.modules[learner.__module__] if alone else learner)
    weighs = any(word in source for word in ("estimated(", "importance_weighted(", "unbiased(", "log_gradient("))
    assert (learner.learns_from == "any") is not weighs


@pytest.mark.parametrize("name", [name for name in LEARNERS if LEARNERS[name].learns_from == "told"])
def test_its_own_policy_told_is_its_own_policy(name: str) -> None:
    """And another one is not; one of another space is refused."""
    one, other, third = (make_learner(name, WORLD, episodes=12) for _ in range(3))
    drive(WORLD, one)
    for t in range(1, 13):
        episode = WORLD.play(other.policy, "bandit", t, np.random.default_rng([9, t]))
        parts = {part: getattr(episode, part) for part in ("states", "actions", "losses", "constraints")}
        other.observe(BanditEpisode(**parts, policy=other.policy))
        third.observe(BanditEpisode(**parts, policy=Policy.uniform(WORLD.space)))
    same([now(one)], [now(other)], "a policy that is told is the one it has")
    assert not np.array_equal(one.policy.probabilities, third.policy.probabilities)
    with pytest.raises(InvalidInputError, match="policy is"):
        other.observe(BanditEpisode(**parts, policy=3))  # type: ignore[arg-type]


def test_a_learner_of_its_own_episodes_refuses_others() -> None:
    learner = make_learner("shifted-bandit-uc-o-reps", WORLD, episodes=12)
    drive(WORLD, learner, last=3)
    episode = WORLD.play(learner.policy, "bandit", 4, np.random.default_rng(4))
    parts = {part: getattr(episode, part) for part in ("states", "actions", "losses", "constraints")}
    with pytest.raises(InvalidInputError, match="learns only from its own"):
        learner.observe(BanditEpisode(**parts, policy=Policy.uniform(WORLD.space)))
    learner.observe(BanditEpisode(**parts, policy=learner.policy))


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_budgets_change_nothing_and_new_ones_apply_from_the_next_step(name: str) -> None:
    learner, twin = (make_learner(name, WORLD, episodes=30) for _ in range(2))
    drive(WORLD, learner, last=6)
    drive(WORLD, twin, last=6)
    if set(learner.needs) & set(NEEDS_OF_BUDGETS):
        with pytest.raises(InvalidInputError, match="for the budgets it has"):
            learner.with_budgets(WORLD.budgets)
        return
    same(drive(WORLD, learner.with_budgets(WORLD.budgets), first=7), drive(WORLD, twin, first=7), "nothing changed")
    tighter = learner.with_budgets(WORLD.budgets / 10)
    assert np.array_equal(tighter.budgets, WORLD.budgets / 10)
    assert tighter.observed == 6
    if name in ("ucpd", "ucpd-practical", "ucpd-bandit", "drift-plus-penalty"):
        drive(WORLD, tighter, first=7, last=30)
        drive(WORLD, learner, first=7, last=30)
        assert tighter.multipliers.sum() > learner.multipliers.sum()
    with pytest.raises(InvalidInputError, match="budgets"):
        learner.with_budgets(WORLD.budgets[:1])
