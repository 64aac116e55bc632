"""Callbacks: records in own units, runs that stop early and continue, errors of callbacks; tables of histories."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import tightrope as tr
from tests.lab.test_resume import problem_with
from tests.lab.test_run import assert_same_history
from tightrope.lab.history import in_units

HOW: dict[str, Any] = {"episodes": 60, "seed": 3, "records": 8}


def test_the_callback_gets_every_record_in_own_units() -> None:
    problem = tr.make("edge-cloud")
    told: list[tr.Record] = []
    history = in_units(problem, tr.run(problem, "ucpd", callback=told.append, **HOW))
    assert [record.episode for record in told] == history["episode"].tolist()
    for k, record in enumerate(told):
        assert (record.run, record.episodes) == ("edge-cloud-ucpd-seed3", 60)
        assert record.metrics == {name: column[k] for name, column in history.items() if name != "episode"}
    delay = problem.use_in_units(problem.budgets)[0] * 60  # hops, of 14.4 an episode
    over = told[-1].metrics["use_delay"] - delay
    assert told[-1].metrics["violation_delay"] == pytest.approx(max(over, 0.0))


def test_a_callback_does_not_change_the_run() -> None:
    problem = problem_with("bursts")
    assert_same_history(tr.run(problem, **HOW), tr.run(problem, callback=lambda record: True, **HOW))


def stop_at(episode: int, record: tr.Record) -> tr.Stop | None:
    return tr.Stop("enough is known") if record.episode >= episode else None


@pytest.mark.parametrize("regret", ["records", "last"])
def test_a_run_that_is_stopped_says_where_and_why(regret: Any) -> None:
    problem, done = problem_with("switching"), list[int]()
    history = tr.run(problem, callback=partial(stop_at, 20), regret=regret, progress=done.append, **HOW)
    at = int(history["episode"][-1])
    assert 20 <= at < 60
    assert done[-1] == at
    assert history.settings["stopped"] == f"after {at} of 60 episodes: enough is known"
    whole = tr.run(problem, **HOW)
    k = len(history["episode"]) - 1
    assert history["regret"][-1] == pytest.approx(whole["regret"][k])  # also where it is computed only at the last
    assert history["loss"].tolist() == whole["loss"][: k + 1].tolist()
    assert "stopped" not in whole.settings


def test_a_stopped_run_computes_its_last_regret_without_keeping_it() -> None:
    problem = problem_with("switching")
    run = tr.Run(problem, "ucpd", regret="last", **HOW)
    assert np.isfinite(run.play(callback=partial(stop_at, 20))["regret"][-1])
    assert_same_history(tr.run(problem, "ucpd", regret="last", **HOW), run.play())


def test_returning_the_class_stop_is_enough() -> None:
    history = tr.run(problem_with("fixed"), callback=lambda record: tr.Stop, **HOW)
    assert history["episode"].tolist() == [1]
    assert history.settings["stopped"] == "after 1 of 60 episodes: no reason was given"


def test_a_run_continues_after_a_stop_and_after_an_error() -> None:
    def stumble(record: tr.Record) -> None:
        if record.episode > 30:
            raise ZeroDivisionError("nothing to divide")

    problem = problem_with("random-walk", "correlated")
    run = tr.Run(problem, "ucpd", **HOW)
    run.play(5)
    assert run.episode == 5
    stopped = run.play(callback=partial(stop_at, 20))
    assert "stopped" in stopped.settings
    with pytest.raises(
        tr.CallbackError, match=r"callback .*stumble raised ZeroDivisionError after .*: nothing"
    ) as caught:
        run.play(callback=stumble)
    assert caught.value.run is run
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    whole, pieces = tr.run(problem, "ucpd", **HOW), run.play()
    assert_same_history(whole, pieces)
    assert pieces.settings == whole.settings
    with pytest.raises(tr.InvalidInputError, match="until is 3; it must be a whole number of at least 60"):
        run.play(3)


def test_a_run_continues_from_a_file_if_made_the_same_way(tmp_path: Path) -> None:
    problem, path = problem_with("bursts"), str(tmp_path / "run")
    run = tr.Run(problem, "ucpd-practical", **HOW)
    run.play(callback=partial(stop_at, 20))
    run.save(path)
    assert_same_history(tr.Run.load(path, problem, **HOW).play(), tr.run(problem, "ucpd-practical", **HOW))
    with pytest.raises(tr.InvalidInputError, match=r"a run of 60 episodes of random with seed 3.*of .* with seed 4"):
        tr.Run.load(path, problem, **HOW | {"seed": 4})


def test_a_learner_that_has_played_is_refused() -> None:
    problem = problem_with("fixed")
    learner = tr.make_learner("ucpd", problem, episodes=60)
    tr.run(problem, learner, **HOW)
    with pytest.raises(tr.InvalidInputError, match="the learner has observed 60 episodes, and this run has played 0"):
        tr.run(problem, learner, **HOW)
    with pytest.raises(tr.InvalidInputError, match="make a new learner, or continue the run"):
        tr.compare(problem, {"same": lambda *problem, **how: learner}, episodes=60)
    run = tr.Run(problem, tr.make_learner("ucpd", problem, episodes=60), **HOW)
    run.play(10)
    tr.Run(problem, "uniform", **HOW).play()  # another one
    run.play(20)


def test_compare_calls_the_callback_for_every_run() -> None:
    problem, told = problem_with("fixed"), list[tuple[str, int]]()

    def stop_one(record: tr.Record) -> tr.Stop | None:
        told.append((record.run, record.episode))
        return tr.Stop("slow") if record.run == "random-slow-seed1" else None

    makers = {"slow": partial(tr.make_learner, "ucpd"), "fast": partial(tr.make_learner, "uniform")}
    compared = tr.compare(problem, makers, episodes=9, seeds=2, records=3, callback=stop_one)
    assert [len(history["episode"]) for histories in compared.values() for history in histories] == [3, 1, 3, 3]
    assert told == [
        (f"random-{label}-seed{seed}", episode)
        for label in makers
        for seed in (0, 1)
        for episode in (1, 3, 9)
        if (label, seed) != ("slow", 1) or episode == 1
    ]
    with pytest.raises(tr.InvalidInputError, match="a callback is called in this process"):
        tr.compare(problem, makers, episodes=9, n_jobs=2, callback=stop_one)


def test_a_comparison_keeps_the_histories_finished_before_an_error() -> None:
    class Board:
        def __call__(self, record: tr.Record) -> None:
            if record.run == "random-uniform-seed1" and record.episode == 9:
                raise OSError("disk full")

    with pytest.raises(tr.CallbackError, match=r"Board raised OSError after episode 9 of .*seed1: disk full") as caught:
        tr.compare(problem_with("fixed"), "uniform", episodes=20, seeds=3, records=5, callback=Board())
    assert len(caught.value.histories) == 1
    alone = tr.run(problem_with("fixed"), "uniform", episodes=20, seed=1, records=5)
    assert_same_history(caught.value.run.play(), alone)


def test_tables_for_data_frames() -> None:
    problem = tr.make("edge-cloud")
    history = tr.run(problem, "ucpd", **HOW)
    plain, own = history.table(), history.table(problem)
    assert list(plain)[:4] == ["problem", "learner", "seed", "episode"]
    assert plain["learner"] == ["ucpd"] * len(plain["episode"])
    assert all(type(value) is int for name in ("seed", "episode", "epoch") for value in plain[name])
    np.testing.assert_allclose(own["use_delay"], problem.constraint_scales[0] * np.array(plain["use_delay"]))
    frame = pandas.DataFrame(own)
    assert frame.shape == (len(history["episode"]), len(own))
    assert frame["episode"].iloc[-1] == 60 and frame["use_delay"].iloc[-1] == own["use_delay"][-1]
    policy = pandas.DataFrame(tr.Policy.uniform(problem.space).table())
    assert (policy.groupby("state")["probability"].sum().round(12) == 1).all()


def test_tables_work_with_polars() -> None:
    polars = pytest.importorskip("polars")
    history = tr.run(problem_with("fixed"), **HOW)
    assert polars.DataFrame(history.table()).height == len(history["episode"])
    assert polars.DataFrame(tr.Policy.uniform(tr.make("grid").space).table())["probability"].sum() > 0


def test_units_of_another_problem_are_refused() -> None:
    history = tr.run(tr.make("edge-cloud"), "uniform", episodes=2)
    for ask in (history.table, history.plot):
        with pytest.raises(tr.InvalidInputError, match=r"is not of 'media-streaming': .*'use_fast_steps'"):
            ask(tr.make("media-streaming"))
