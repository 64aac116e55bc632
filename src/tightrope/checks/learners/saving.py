"""Checks that a saved and loaded learner continues with the same bits."""

import tempfile
from pathlib import Path
from typing import Any

from tightrope.checks.learners.play import EPISODES, Checks, World, drive, new, now, same
from tightrope.learners import Maker, load
from tightrope.learners.base import Learner

checks = Checks()


@checks
def check_saved_in_mid_run_it_goes_on_the_same(make: Maker) -> None:
    for saved_after in (0, 1, EPISODES // 2, EPISODES):
        at, learner = new(make)
        drive(at, learner, last=saved_after)
        again = _copy(learner)
        first, last = saved_after + 1, saved_after + EPISODES
        promise = f"saved after {saved_after} episodes and loaded, it continues like the original"
        same(drive(at, again, first, last), drive(at, learner, first, last), promise)
        assert again.settings == learner.settings, f"{promise}; the settings differ"


@checks
def check_saving_changes_nothing(make: Maker) -> None:
    at, learner = new(make)
    _, twin = new(make)

    def save(t: int) -> None:
        _copy(learner)

    same(drive(at, learner, between=save), drive(at, twin), "saving changes nothing")


@checks
def check_a_loaded_one_shares_nothing(make: Maker) -> None:
    at, learner = new(make)
    drive(at, learner, last=4)
    again, third = _copy(learner), _copy(learner)
    promise = "a loaded learner shares nothing with the one it was saved from"
    trace = drive(at, learner, first=5)
    same(drive(at, again, first=5), trace, promise)
    same(drive(at, third, first=5), trace, promise)


@checks
def check_saving_over_a_file_replaces_it(make: Maker) -> None:
    at, learner = new(make)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner")
        _save(learner, path)
        drive(at, learner, last=4)
        _save(learner, path)
        assert [file.name for file in Path(folder).iterdir()] == ["learner"], "saving left other files behind"
        again = load(path, type(learner))
    same([now(again)], [now(learner)], "saving over a file replaces it")


@checks.on_every_world
def check_saved_it_goes_on_the_same_on(at: World, make: Maker) -> None:
    _, learner = new(make, at)
    drive(at, learner)
    again = _copy(learner)
    first, last = EPISODES + 1, EPISODES + 3
    same(drive(at, again, first, last), drive(at, learner, first, last), "saved and loaded, it continues the same")


def _copy(learner: Learner) -> Learner:
    """Save the learner to a file and load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner")
        _save(learner, path)
        return load(path, type(learner))


def _save(learner: Any, path: Path) -> None:
    learner.save(path)
