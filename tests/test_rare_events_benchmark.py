"""A small edition of python -m benchmarks.rare_events."""

from pathlib import Path

import pytest

from benchmarks import rare_events
from benchmarks.runs import Row


def row(one_in: int, use: float, regret: float, seed: int = 0) -> Row:
    return {"one_in": one_in, "losses": "fixed", "crashes": 50, "seed": seed, "use": use, "regret": regret}


@pytest.mark.parametrize(("allowed", "one_in", "episodes"), [(0.5, 20, 500), (0.25, 20, 1000), (0.5, 30, 750)])
def test_a_run_is_as_long_as_allows_the_crashes(allowed: float, one_in: int, episodes: int) -> None:
    played = rare_events.play("uniform", allowed, one_in, "fixed", 50, 0)
    assert played["episodes"] == episodes
    assert played["use"] == pytest.approx(0.5 / allowed)  # bold half of the time
    played = rare_events.play("uniform", allowed, one_in, "fixed", 25, 0)
    assert played["episodes"] == episodes // 2


def test_a_learner_is_played_under_all_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--learner", "uniform", "--one-in", "20", "50", "--crashes", "5", "--seeds", "1", "--allowed", "0.25"]
    rare_events.main([*asked, "--jobs", "1", "--results", str(tmp_path / "rows.jsonl")])
    printed = capsys.readouterr().out
    assert "| uniform, 25% allowed | fixed, 5 crashes | switching, 5 crashes | chaser, 5 crashes |" in printed
    lines = [line for line in printed.splitlines() if line.startswith("| 1/")]
    assert [line.split(" | ")[0] for line in lines] == ["| 1/20", "| 1/50"]
    assert all(line.count("2.000 / -") == 3 for line in lines)  # twice the budget, and so below the comparator's loss
    assert "0 of 6 runs failed" in printed


def test_a_table_has_means_over_seeds_the_extremes_and_failures() -> None:
    rows = [row(20, 1.0, 0.5, seed=0), row(20, 1.5, -0.25, seed=1), row(100, 0.5, 2.0)]
    rows += [{"one_in": 500, "losses": "fixed", "crashes": 50, "seed": 0, "error": "ConvergenceError"}]
    printed = rare_events.summary(rows, "a")
    assert "| 1/20 | 1.250 / 0.125 |" in printed
    assert "| 1/500 | 1 of 1 failed |" in printed
    assert "budget 1.500 (1/20, fixed), largest regret share 2.000 (1/100, fixed); 1 of 4 runs failed." in printed
    assert rare_events.summary(rows[-1:], "a").endswith("All 1 runs failed.")
