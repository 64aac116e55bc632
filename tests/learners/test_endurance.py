"""A sample of `python -m fuzz.endurance`: short plans, exceeded five times over."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz.endurance import Combination, done, endure, inspect
from tightrope import UCPD, LayeredSpace
from tightrope.learners import LEARNERS
from tightrope.learners.uc_o_reps import UCOREPS

PLAYED = [("machine-cycle", "chaser"), ("random", "random-walk"), ("inventory", "switching")]


@pytest.mark.parametrize(("problem", "losses"), PLAYED)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_continues_beyond_its_plan(learner: str, problem: str, losses: str) -> None:
    came_of_it = endure(Combination(learner, problem, losses, episodes=20), beyond=5)
    assert (came_of_it["outcome"], came_of_it["played"]) == ("ok", 100)


def test_the_failing_episode_is_reported_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: UCOREPS, episode: object) -> None:
        raise ArithmeticError("no more")

    what = Combination("uc-o-reps", "machine-cycle", "fixed", episodes=20)
    assert endure(what, patience=0)["outcome"] == "ok so far"
    monkeypatch.setattr(UCOREPS, "observe", refuse)
    entry = endure(what)
    assert (entry["outcome"], entry["played"]) == ("ArithmeticError: no more", 0)
    log = tmp_path / "log"
    log.write_text(json.dumps(entry) + '\n{"learner": "uc-o', encoding="utf-8")  # killed while it wrote
    assert done(log) == [entry]


@pytest.mark.parametrize(("name", "worth"), [("multipliers", -1.0), ("multipliers", float("nan")), ("theta", 0.4)])
def test_broken_learners_are_found(name: str, worth: float) -> None:
    learner = UCPD(LayeredSpace.dense([1, 2, 1], 2), [1.0], episodes=5)
    inspect(learner, 1)
    changed: Any = {name: getattr(learner.state, name) * 0 + worth}
    learner.state = replace(learner.state, **changed)
    with pytest.raises(ArithmeticError, match="episode 1"):
        inspect(learner, 1)
