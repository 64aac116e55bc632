"""A study that is killed at random moments, workers and command; `python -m fuzz.studies` is the same at full size."""

import random
from pathlib import Path

import pytest

from fuzz import studies


def test_a_study_killed_many_times_has_the_table_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "MOST", 0.5)
    file = studies.write_study(tmp_path, runs=4, episodes=2000)
    studies.undisturbed(file, tmp_path / "whole")
    killed = studies.disturbed(file, tmp_path / "cut", random.Random(1), most=6)
    assert killed.total() > 0
    studies.compare(tmp_path / "whole", tmp_path / "cut")
    [run, *_] = (tmp_path / "cut" / "runs").iterdir()
    (run / "checkpoint").write_bytes(b"")
    with pytest.raises(AssertionError, match="differs"):  # it would be seen
        studies.compare(tmp_path / "whole", tmp_path / "cut")
