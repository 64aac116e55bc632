"""A small edition of python -m benchmarks.waves."""

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from benchmarks import waves
from benchmarks.runs import Row


def row(episodes: int, period: float, regret: float, learner: str = "a") -> Row:
    return {"learner": learner, "losses": "waves", "episodes": episodes, "period": period, "regret": regret}


def test_periods_double_from_two_to_the_number_of_episodes() -> None:
    assert waves.periods(64, 1) == [2, 4, 8, 16, 32, 64]
    assert waves.periods(63, 1) == [2, 4, 8, 16, 32]
    assert waves.periods(8, 2) == [2, 2.828, 4, 5.657, 8]


@pytest.mark.parametrize("shape", waves.SHAPES)
def test_the_losses_of_the_two_actions_are_opposite_waves(shape: str) -> None:
    problem = waves.make(waves.TWO_ACTIONS, shape, 12.0)
    f = np.array([problem.losses.begin(np.random.default_rng(0)).loss(t) for t in range(1, 37)])
    x = np.arange(36) / 12
    expected = np.sin(2 * np.pi * x) if shape == "waves" else np.where(x % 1 < 0.5, 1.0, -1.0)
    np.testing.assert_allclose(f, np.stack([expected, -expected], axis=1), atol=1e-12)
    history = tr.run(problem, "uniform", episodes=36)
    assert history["regret"][-1] == pytest.approx(0, abs=1e-9)
    assert history["violation"][-1] == 0


def test_the_worst_period_is_shown_and_how_it_grows() -> None:
    rows = [row(100, 2, 0.1), row(100, 4, 0.2), row(10_000, 2, 2.0), row(10_000, 64, -1.0)]
    assert "| a | waves | 0.200 (P = 4) | 2.000 (P = 2) | 1.00 | 0 of 4 |" in waves.summary(rows)
    failed = {"learner": "b", "losses": "waves", "episodes": 100, "period": 2, "error": "ConvergenceError"}
    printed = waves.summary([*rows, failed, row(10_000, 2, -0.5, "b")])
    assert "| b | waves | – | -0.500 (P = 2) | – | 1 of 2 |" in printed


@pytest.mark.parametrize("problem", [waves.TWO_ACTIONS, "rare-crash"])
def test_a_learner_is_played_at_every_period(problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--learner", "uniform", "--problem", problem, "--episodes", "16", "32", "--per-octave", "1"]
    waves.main([*asked, "--jobs", "1", "--results", str(tmp_path / "rows.jsonl")])
    printed = capsys.readouterr().out
    assert "18 are to be played" in printed  # 4 and 5 periods of two shapes
    assert printed.count("| 0 of 9 |") == 2
