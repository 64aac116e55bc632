"""Several learners under the same conditions."""

import os
import signal
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest

import tightrope as tr
from tests.learners.problems import problem_with

PROBLEM = problem_with(1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_history_is_that_of_a_single_run(n_jobs: int) -> None:
    compared = tr.compare(PROBLEM, ["o-reps", "uniform"], episodes=30, seeds=[3, 5], n_jobs=n_jobs, records=4)
    assert list(compared) == ["o-reps", "uniform"]
    for name, histories in compared.items():
        for seed, history in zip((3, 5), histories, strict=True):
            alone = tr.run(PROBLEM, name, episodes=30, seed=seed, records=4)
            assert history.settings == alone.settings
            for column in alone:
                np.testing.assert_array_equal(history[column], alone[column])


def test_learners_can_be_given_by_labels() -> None:
    narrow = partial(tr.make_learner, "ucpd", radius_scale=0.1)
    compared = tr.compare(PROBLEM, {"wide": partial(tr.make_learner, "ucpd"), "narrow": narrow}, episodes=30)
    assert {label: history.settings["radius_scale"] for label, [history] in compared.items()} == {
        "wide": 1.0,
        "narrow": 0.1,
    }
    assert compared["wide"][0]["loss"][-1] != compared["narrow"][0]["loss"][-1]


def mine(problem: tr.Problem, *, episodes: int, seed: int) -> Any:
    return tr.make_learner("uniform", problem, episodes=episodes, seed=seed)


def test_functions_stand_among_names() -> None:
    compared = tr.compare(PROBLEM, ["o-reps", mine], episodes=10, seeds=1)
    assert list(compared) == ["o-reps", "mine"]
    alone = tr.run(PROBLEM, "uniform", episodes=10, seed=0)
    np.testing.assert_array_equal(compared["mine"][0]["loss"], alone["loss"])
    with pytest.raises(tr.InvalidInputError, match="there is no learner"):
        tr.compare(PROBLEM, [tr.UCPD], episodes=10)  # type: ignore[list-item]


def test_wrong_names_are_refused_before_anything_is_played() -> None:
    with pytest.raises(tr.InvalidInputError, match="'nobody'"):
        tr.compare(PROBLEM, ["ucpd", "nobody"], episodes=10**9)
    with pytest.raises(tr.InvalidInputError, match="seeds"):
        tr.compare(PROBLEM, ["ucpd"], episodes=10, seeds=0)


def test_one_name_is_one_learner_and_progress_is_called() -> None:
    told: list[int] = []
    compared = tr.compare(PROBLEM, "uniform", episodes=5, seeds=3, progress=told.append)
    assert list(compared) == ["uniform"] and len(compared["uniform"]) == 3
    assert told == [1, 2, 3]


def killed(problem: tr.Problem, **_: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def wrong(problem: tr.Problem, **_: Any) -> NoReturn:
    raise tr.InvalidInputError("the learner cannot be made")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (wrong, tr.InvalidInputError, "the learner cannot be made"),
        (killed, tr.TightropeError, "a process of the comparison was ended from outside; run it again"),
    ],
)
def test_an_error_or_the_death_of_a_worker_is_raised(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tr.compare(PROBLEM, {"a": make, "b": make}, episodes=5, n_jobs=2)
    assert len(tr.compare(PROBLEM, "uniform", episodes=5, seeds=2, n_jobs=2)["uniform"]) == 2  # and can be tried again
