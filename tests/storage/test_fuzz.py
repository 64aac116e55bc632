"""A sample of the fuzzer of checkpoints: `python -m fuzz.checkpoints` tries many more, within limits."""

from pathlib import Path

import pytest

from fuzz import checkpoints
from tightrope import load
from tightrope.checks.worlds import WORLDS
from tightrope.learners import LEARNERS


@pytest.mark.parametrize("tens", range(8))
def test_a_damaged_checkpoint_is_refused_in_words_or_plays_on(tens: int, tmp_path: Path) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        place = tmp_path / str(number)
        place.mkdir()
        assert checkpoints.attempt(1, number, place).startswith(("loaded", "refused"))


def test_the_checkpoints_are_fine_before_they_are_damaged(tmp_path: Path) -> None:
    for learner in LEARNERS:
        path = tmp_path / learner
        path.write_bytes(checkpoints.saved(learner, "a_sparse_space", 5))
        checkpoints.play_on(load(path), WORLDS["a_sparse_space"]())


def test_an_invalid_policy_fails_the_check(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    path.write_bytes(checkpoints.saved("ucpd", "a_sparse_space", 5))
    learner = load(path)
    learner.policy.probabilities[0] = 2.0
    with pytest.raises(AssertionError, match="ucpd hands out no policy after 0 episodes"):
        checkpoints.play_on(learner, WORLDS["a_sparse_space"]())
