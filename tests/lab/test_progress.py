"""Progress on a terminal and elsewhere."""

import sys

import pytest

from tightrope.lab import runner


class Clock:
    """A time that one can set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_a_bar_on_a_terminal_and_a_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with runner.shown(4000, 3, 1000, 1) as show:
        show(4000, 3)
    assert capsys.readouterr().err == "playing 2 runs, 3,000 episodes\n"
    with runner.shown(40, 1, 0, 0):
        pass
    assert capsys.readouterr().err == "playing 40 episodes\n"

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich looks here before it draws
    monkeypatch.setenv("COLUMNS", "120")
    with runner.shown(4000, 3, 1000, 1) as show:
        show(4000, 3)
    shown = capsys.readouterr().err
    assert "3 of 3 runs, 4,000 of 4,000 episodes" in shown


def test_the_estimate_is_over_episodes_from_the_first_seconds_on() -> None:
    clock = Clock()
    estimate = runner.Estimate(10_000, 4_000, clock)
    assert estimate(4_000) == ""  # nothing was played yet
    clock.now = 50.0
    assert estimate(4_100) == ""
    clock.now = 52.0
    assert estimate(4_300) == "about 57 s left"  # 100 a second, 5,700 to go
    clock.now = 54.0
    assert estimate(4_104) == "about 2 h left"  # slower: 1 a second, 5,896 to go


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (120, "2 min"), (5400, "2 h"), (200_000, "2 days")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert runner.lasting(seconds) == words


def test_where_there_is_no_terminal_a_line_is_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    show = runner.lines(lambda episodes, runs: f"{episodes} {runs}", clock)
    for second in range(0, 200, 2):
        clock.now = second
        show(second, 0)
    assert capsys.readouterr().err.split("\n") == ["6 0", "16 0", "30 0", "60 0", "120 0", "180 0", ""]
