"""A small edition of python -m benchmarks.held_out."""

from pathlib import Path

import pytest

import tightrope as tr
from benchmarks import held_out
from benchmarks.runs import Row


def row(learner: str, seed: int, regret: float, violation: float) -> Row:
    described = held_out.features(tr.make("random-cmdp", seed=seed))
    measured = {"regret": regret, "violation": violation, "strong_violation": violation, "use": 1.0}
    return {"learner": learner, "seed": seed} | described | measured


def test_a_learner_is_played_on_every_seed_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--learner", "uniform", "--learner", "ucpd-practical", "--instances", "3", "--episodes", "20"]
    asked += ["--jobs", "1", "--results", str(tmp_path / "rows.jsonl")]
    held_out.main(asked)
    printed = capsys.readouterr().out
    assert "6 are to be played" in printed
    assert "random-cmdp, seeds 0 to 2, T = 20" in printed
    assert printed.count("0 of 3") == 2 * len(held_out.MEASURES)
    assert printed.count("| uniform | positive regret |") == 1  # against the preset
    held_out.main(asked)
    again = capsys.readouterr().out
    assert "6 runs are in" in again and "0 are to be played" in again
    assert again.partition("random-cmdp, ")[2] == printed.partition("random-cmdp, ")[2]


def test_failures_do_not_count_in_the_statistics_and_are_listed() -> None:
    rows = [row("a", 1, 0.5, 0.0), row("a", 2, -0.5, 0.25), {"learner": "a", "seed": 3, "error": "ConvergenceError"}]
    regret, positive, violation, *_ = held_out.summary(rows).split("\n\n")
    assert "| a | 0.000 | 0.000 (-0.500 to 0.500) | 0.450 | 0.500 | 1 | 1 of 3 |" in regret
    assert "| a | 0.250 | 0.250 (0.000 to 0.500) | 0.475 | 0.500 | 1 | 1 of 3 |" in positive
    assert "| 0.250 | 2 | 1 of 3 |" in violation


def test_learners_are_compared_on_the_instances_that_both_completed() -> None:
    rows = [row("ucpd-practical", 1, 0.5, 0.1), row("new", 1, 0.25, 0.2), row("new", 2, 9.0, 9.0)]
    lines = held_out.compared(rows).splitlines()
    assert "| new | positive regret | -0.250 | 100% | 0% |" in lines
    assert "| new | violation | 0.100 | 0% | 100% |" in lines


def test_the_worst_instances_are_described() -> None:
    rows = [row("a", seed, regret=seed, violation=-seed) for seed in range(5)]
    lines = held_out.worst(rows, 1).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["0", "4"]
    assert "| fixed | correlated | 11 | 62 | 4 | 1 |" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--first", "900", "--instances", "101"], "ask for them with --report"),
        (["--report", "--first", "999"], "--report is for seeds of at least 1000"),
        (["--instances", "0"], "--instances at least 1"),
    ],
)
def test_held_out_seeds_are_played_for_a_report_only(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        held_out.main(arguments)
    assert words in capsys.readouterr().err
