"""Runs that benchmarks keep in a file: resumed, played again, failures, statistics."""

import json
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from benchmarks import runs
from benchmarks.runs import Row

PLAYED: list[int] = []


def play(seed: int, learner: str) -> Row:
    PLAYED.append(seed)
    return {"seed": seed, "learner": learner, "regret": 10.0 * seed}


def tasks(n: int) -> list[Row]:
    return [{"seed": seed, "learner": "a"} for seed in range(n)]


@pytest.fixture(autouse=True)
def nothing_played() -> None:
    PLAYED.clear()


def test_runs_in_the_file_are_not_played_again(tmp_path: Path) -> None:
    results = tmp_path / "folder" / "runs.jsonl"
    assert [row["regret"] for row in runs.played(tasks(2), play, results, 1)] == [0.0, 10.0]
    assert [row["regret"] for row in runs.played(tasks(4), play, results, 1)] == [0.0, 10.0, 20.0, 30.0]
    assert PLAYED == [0, 1, 2, 3]
    runs.played([{"seed": 0, "learner": "b"}], play, results, 1)
    assert PLAYED == [0, 1, 2, 3, 0]


def test_a_line_that_was_cut_off_is_played_again_and_spoils_no_other(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    runs.played(tasks(3), play, results, 1)
    results.write_text(results.read_text()[:-9])
    for _ in range(2):
        assert [row["regret"] for row in runs.played(tasks(3), play, results, 1)] == [0.0, 10.0, 20.0]
    assert PLAYED == [0, 1, 2, 2]


def test_the_last_row_of_a_run_counts(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    results.write_text(json.dumps({"seed": 1, "learner": "a", "regret": -1.0}) + "\n")
    [row] = runs.played(tasks(2)[1:], play, results, 1)
    assert row["regret"] == -1.0
    [row] = runs.played(tasks(2)[1:], play, results, 1, again=True)
    assert row["regret"] == 10.0
    assert runs.played(tasks(2)[1:], play, results, 1) == [row]


def test_a_run_is_measured_in_shares_of_the_lower_bound_and_in_shares_of_the_budget() -> None:
    problem = tr.make("rare-crash", probability=0.5)
    row = runs.run(problem, "uniform", 50, 3)
    assert row["use"] == pytest.approx(1.0)  # bold half of the time
    history = tr.run(problem, "uniform", episodes=50, seed=3)
    assert row["regret"] == pytest.approx(history["regret"][-1] / np.sqrt(4 * 8 * 2 * 50))


def test_a_learner_that_raises_is_a_failure() -> None:
    assert runs.run_or_error(tr.make("rare-crash"), "no-such-learner", 5, 0)["error"].startswith("InvalidInputError")
    with pytest.raises(tr.InvalidInputError):
        runs.run(tr.make("rare-crash"), "no-such-learner", 5, 0)


def test_statistics_of_a_hundred_numbers() -> None:
    median, mean, percentile, largest = runs.statistics([float(i) for i in range(101)])
    assert (median, percentile, largest) == ("50.000", "95.000", "100.000")
    value, low, high = (float(part.strip("()")) for part in mean.replace("to", "").split())
    assert value == 50
    assert 42 < low < 46 < 54 < high < 58  # 50 ± 1.96 · 29.2 / sqrt(101) = 50 ± 5.7
    assert runs.statistics([]) == ["–"] * 4
    assert runs.statistics([1.0]) == ["1.000"] * 4


def test_failures_are_listed() -> None:
    rows = [{"learner": "a", "seed": 1, "regret": 0.0}, {"learner": "b", "seed": 2, "error": "ConvergenceError: no"}]
    assert runs.failures(rows) == "- learner b, seed 2: ConvergenceError: no"
