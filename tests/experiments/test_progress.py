"""How far a play has come, on a terminal and elsewhere."""

import sys

import pytest

from tightrope.experiments import progress


def test_progress_is_a_bar_on_a_terminal_and_a_note_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.bar("episodes", 40) as show:
        show(40)
    assert capsys.readouterr().err == "playing 40 episodes\n"

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich looks here before it draws
    with progress.bar("episodes", 40) as show:
        show(40)
    assert "40/40" in capsys.readouterr().err
