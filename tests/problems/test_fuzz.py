"""A sample of the fuzzer of problem folders: `python -m fuzz.folders` tries many more, within limits."""

import time
from pathlib import Path

import pytest

from fuzz import folders, watchdog
from tightrope import InvalidInputError


@pytest.mark.parametrize("tens", range(15))
def test_a_damaged_folder_is_loaded_or_refused_in_words(tens: int, tmp_path: Path) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        place = tmp_path / str(number)
        place.mkdir()
        assert folders.attempt(1, number, place) in ("loaded", "refused")


def test_the_folders_are_fine_before_they_are_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MUTATIONS", (lambda rng, files: None,))
    for number in range(12):
        place = tmp_path / str(number)
        place.mkdir()
        assert folders.attempt(0, number, place) == "loaded"


def test_the_watchdog_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int, number: int, folder: Path) -> str:
        raise KeyError("a key")

    def waiting(seed: int, number: int, folder: Path) -> str:
        time.sleep(60)
        return "refused"

    def working(seed: int, number: int, folder: Path) -> str:
        while True:
            pass

    assert watchdog.guarded(broken, 0, 0).startswith("FAILED: KeyError in ")
    monkeypatch.setattr(watchdog, "WAITING", 0.2)
    assert watchdog.guarded(waiting, 0, 0).startswith("FAILED: more than 0.2 s of waiting, in ")
    monkeypatch.setattr(watchdog, "WAITING", 60)
    monkeypatch.setattr(watchdog, "SECONDS", 0.2)
    assert watchdog.guarded(working, 0, 0).startswith("FAILED: more than 0.2 s of work, in ")
    monkeypatch.setattr(watchdog, "MEGABYTES", 1)
    assert watchdog.guarded(lambda seed, number, folder: "refused", 0, 0).startswith("FAILED: more than 1 MB")


def test_another_error_than_ours_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(folder: Path) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(folders, "load_problem", stumble)
    with pytest.raises(ZeroDivisionError):
        folders.attempt(0, 0, tmp_path)


def test_a_refusal_that_cannot_be_shown_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise InvalidInputError("caf\udce9")

    monkeypatch.setattr(folders, "load_problem", refuse)
    with pytest.raises(UnicodeEncodeError):
        folders.attempt(0, 0, tmp_path)
