"""A sample of the fuzzer of the border: `python -m fuzz.api` tries many more, within limits."""

from pathlib import Path

import pytest

from fuzz import api


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries work in folders of their own."""
    monkeypatch.chdir(tmp_path)


def test_everything_answers_before_anything_is_wrong() -> None:
    assert api.prepare() == {"load", "load_problem", "StudyFile"}  # there is no such file or folder


@pytest.mark.parametrize("hundreds", range(5))
def test_wrong_arguments_are_refused_in_words(hundreds: int, tmp_path: Path) -> None:
    for number in range(100 * hundreds, 100 * hundreds + 100):
        assert api.attempt(1, number, tmp_path) in ("answered", "refused", "an error of the user's own")


def test_another_error_than_ours_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*, argument: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(api, "cases", lambda: {"stumble": (stumble, {"argument": 1})})
    with pytest.raises(ZeroDivisionError, match="stumble"):
        api.attempt(0, 0, tmp_path)
