"""Kernels are compiled before a client waits: a copy of each learner has learned."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.running import Running
from tests.service.test_service import WEEK, served
from tightrope import UCPD, UCPDPractical
from tightrope.learners import make_learner
from tightrope.ops import warm_up
from tightrope.problems.files import load_problem
from tightrope.storage import checkpoints


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the learners that observed an episode, in order."""
    names: list[str] = []
    for kind in (UCPD, UCPDPractical):

        def observing(self: Any, episode: Any, observe: Any = kind.observe) -> None:
            names.append(self.name)
            observe(self, episode)

        monkeypatch.setattr(kind, "observe", observing)
    return names


def test_a_copy_learns_before_the_service_is_ready(tmp_path: Path, machine: Path, learned: list[str]) -> None:
    plain = checkpoints.fingerprint(make_learner("ucpd-practical", load_problem(machine), episodes=1000))
    with Running(tmp_path / "it", machine) as running:
        assert learned == ["ucpd-practical"] * warm_up.EPISODES
        assert served(running).learner.fingerprint() == plain
        assert running.of("/state")["told"] == running.of("/state")["event"] == 0
        place, told = "/learners/it/challengers/other", {"learner": "ucpd", "episodes": 9}
        assert running.send("PUT", place, told).status == 200
        assert learned[warm_up.EPISODES :] == ["ucpd"] * warm_up.EPISODES
        assert running.send("PUT", place, told).status == 200  # it exists already
        assert len(learned) == 2 * warm_up.EPISODES
        assert running.tell(running.ask(), WEEK).status == 200
    learned.clear()
    with Running(tmp_path / "it"):
        assert sorted(set(learned)) == ["ucpd", "ucpd-practical"]


def test_a_failing_warm_up_is_ignored(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "learn", lambda *arguments: 1 / 0)
    with Running(tmp_path / "it", machine) as running:
        assert (
            running.send("PUT", "/learners/it/challengers/other", {"learner": "uniform", "episodes": 9}).status == 200
        )
        assert running.tell(running.ask(), WEEK).status == 200


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("name", ["ucpd-practical", "ucpd-bandit", "reinforce-lagrangian", "psrl", "uniform"])
def test_all_kinds_of_learners_warm_up(machine: Path, name: str, feedback: Any) -> None:
    learner = make_learner(name, load_problem(machine), episodes=1000)
    if learner.feedback == "full" and feedback == "bandit":
        return  # such a directory is refused when it is opened
    state = warm_up.learn(checkpoints.fingerprint(learner), feedback)
    assert (state.learner.observed, state.account.told) == (warm_up.EPISODES, warm_up.EPISODES)
    assert learner.observed == 0
