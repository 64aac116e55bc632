"""What a release wrote opens with this version, with the policies that it had, and goes on.

`python -m tests.releases.write` wrote the archives with that release, and its docstring says what is in them.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.releases.archives import top_folders, unpack
from tests.releases.write import inspected
from tightrope.storage.checkpoints import RENAMED

HERE = Path(__file__).parent
RELEASES = sorted(path.parent for path in HERE.glob("*/learners.tar.gz"))
CASES = [(release, name) for release in RELEASES for name in top_folders(release / "learners.tar.gz")]
DIRECTORIES = [(release, name) for release in RELEASES for name in top_folders(release / "durable.tar.gz")]

#: What is promised of a policy that was saved.
SAVED = 1e-9

#: After more episodes. A projection is solved to a flow residual of 1e-9 and divided by the probability of a state, at
#: least 0.01 here, for a policy; the dozen that follow start from one another, none of which amplifies by much.
CONTINUED = 1e-6


def label(value: Any) -> str:
    return value.name if isinstance(value, Path) else str(value)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """For each release the folder of its learners: nothing there is written to."""
    folders = {release: tmp_path_factory.mktemp(release.name) for release in RELEASES}
    for release, folder in folders.items():
        unpack(release / "learners.tar.gz", folder)
    return folders


@pytest.mark.parametrize(("release", "name"), CASES, ids=label)
def test_a_checkpoint_opens_with_the_policy_it_had_and_learns_on(
    release: Path, name: str, unpacked: dict[Path, Path]
) -> None:
    folder = unpacked[release] / name
    learner = tr.load(folder / "checkpoint")
    with np.load(folder / "expected.npz") as file:
        expected = dict(file)
    assert_same_state(learner, expected, 0, SAVED)
    for t, (states, actions, loss, constraints) in enumerate(
        zip(*(expected[key] for key in ("states", "actions", "loss", "constraints")), strict=True), 1
    ):
        kind: Any = tr.Episode if learner.feedback == "full" else tr.BanditEpisode
        learner.observe(kind(states, actions, loss, constraints))
        assert_same_state(learner, expected, t, CONTINUED)


def assert_same_state(learner: Any, expected: dict[str, Any], t: int, tolerance: float) -> None:
    where = f"{t} episodes after it was saved"
    if learner.name == "s-ops" and t > 0:  # prices that θ hardly depends on: a solve's tolerance is seen in both
        expected, tolerance = expected | {"multipliers": [learner.multipliers] * (t + 1)}, 10 * tolerance
    np.testing.assert_allclose(learner.policy.probabilities, expected["policy"][t], 0, tolerance, err_msg=where)
    np.testing.assert_allclose(learner.multipliers, expected["multipliers"][t], tolerance, tolerance, err_msg=where)
    assert learner.epoch == expected["epoch"][t], where


@pytest.mark.parametrize("release", RELEASES, ids=label)
def test_a_finished_study_is_kept(release: Path, tmp_path: Path) -> None:
    unpack(release / "studies.tar.gz", tmp_path)
    folder = tmp_path / "finished"
    table = read_table(folder)
    (folder / "table.csv").unlink()
    said = sweep(folder)
    assert "4 of 4 runs are finished and kept" in said
    assert table.items() <= read_table(folder).items()


@pytest.mark.parametrize("release", RELEASES, ids=label)
def test_a_study_that_was_cut_is_resumed(release: Path, tmp_path: Path) -> None:
    unpack(release / "studies.tar.gz", tmp_path)
    expected = read_table(tmp_path / "finished")
    said = sweep(tmp_path / "cut")
    assert "1 of 4 runs are finished and kept" in said
    [log] = tmp_path.glob("cut/runs/*-ucpd-practical-*-seed1-*/log.txt")
    assert "continues after episode 25" in log.read_text() and "after episode 25 of" in said
    table = read_table(tmp_path / "cut")
    assert expected.keys() <= table.keys()
    for column, values in expected.items():
        if is_number(values[0]):
            found, right = (np.array(texts, dtype=float) for texts in (table[column], values))
            np.testing.assert_allclose(found, right, CONTINUED, CONTINUED, err_msg=column)
        else:
            assert table[column] == values


def sweep(folder: Path) -> str:
    """Conduct the study in a folder again, in one process; returns what it says on stderr."""
    command = [sys.executable, "-m", "tightrope", "sweep", str(folder / "study.toml"), "--jobs", "1"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def read_table(folder: Path) -> dict[str, list[str]]:
    """The table of a study by column."""
    with (folder / "table.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("release", "name"), DIRECTORIES, ids=label)
def test_a_directory_opens_with_its_status_and_policies_and_learns_on(release: Path, name: str, tmp_path: Path) -> None:
    unpack(release / "durable.tar.gz", tmp_path)
    directory = tmp_path / name / "directory"
    expected = json.loads((tmp_path / name / "expected.json").read_text())
    continued, stories = expected.pop("continued"), expected.pop("stories")
    assert_alike(inspected(directory), expected, SAVED)
    with tr.DurableLearner(directory) as durable:
        for told in stories:
            id_ = told.pop("id") or durable.ask().id
            assert durable.tell(id_, **told) == "learned"
            assert durable.tell(id_, **told) == "already"
    assert_alike(inspected(directory), continued, CONTINUED)


def assert_alike(found: Any, expected: Any, tolerance: float, where: str = "") -> None:
    """Everything that is expected is there, numbers up to a tolerance."""
    match expected:
        case dict():
            for key in expected:
                assert_alike(found[key], expected[key], tolerance, f"{where}/{key}")
        case list():
            assert len(found) == len(expected), where
            for k, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert_alike(one, other, tolerance, f"{where}/{k}")
        case str():
            assert found in (expected, RENAMED.get(expected)), where
        case float():
            assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), where
        case _:
            assert found == expected, where
