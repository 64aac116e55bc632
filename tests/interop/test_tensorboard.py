"""What TensorBoard is fed, read back with its own reader."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tests.lab.test_resume import problem_with
from tightrope.cli.commands import app
from tightrope.interop import TensorBoard
from tightrope.lab.history import in_units


def curves(folder: Path) -> dict[str, tuple[list[int], list[float]]]:
    """Steps and values of every curve in the folder of a run."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    return {
        name: ([one.step for one in events.Scalars(name)], [one.value for one in events.Scalars(name)])
        for name in events.Tags()["scalars"]
    }


def test_every_metric_of_every_run_is_a_curve(tmp_path: Path) -> None:
    problem = tr.make("edge-cloud")
    compared = tr.compare(
        problem, ["uniform", "ucpd"], episodes=30, records=6, seeds=[4], callback=TensorBoard(tmp_path)
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edge-cloud-ucpd-seed4", "edge-cloud-uniform-seed4"]
    for name, [history] in compared.items():
        own, found = in_units(problem, history), curves(tmp_path / f"edge-cloud-{name}-seed4")
        assert set(found) == set(own) - {"episode"}
        for column, (steps, values) in found.items():
            assert steps == own["episode"].tolist()
            np.testing.assert_array_equal(values, own[column].astype(np.float32))


def test_a_metric_without_a_value_has_no_point(tmp_path: Path) -> None:
    with TensorBoard(str(tmp_path / "board")) as board:
        tr.run(problem_with("fixed"), "uniform", episodes=20, records=4, regret="last", callback=board)
    [run] = (tmp_path / "board").iterdir()
    assert curves(run)["regret"][0] == [20]
    assert len(curves(run)["loss"][0]) == 4


def test_a_run_that_is_stopped_is_there_up_to_the_stop(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)

    def callback(record: tr.Record) -> Any:
        board(record)
        return tr.Stop("enough") if record.episode > 5 else None

    history = tr.run(problem_with("fixed"), "uniform", episodes=50, callback=callback)
    board.close()
    assert curves(tmp_path / "random-uniform-seed0")["loss"][0] == history["episode"].tolist()


def test_the_command_line_writes_tensorboard_logs(tmp_path: Path) -> None:
    arguments = [
        "run",
        "media-streaming",
        "--episodes",
        "20",
        "--learner",
        "uniform",
        "--jobs",
        "1",
        "--regret",
        "last",
    ]
    where = ["--out", str(tmp_path / "out"), "--tensorboard", str(tmp_path / "board")]
    result = CliRunner().invoke(app, [*arguments, *where], prog_name="tightrope")
    assert result.exit_code == 0, result.output
    [run] = (tmp_path / "board").iterdir()
    assert (tmp_path / "out/runs" / run.name).is_dir()
    assert curves(run)["use_fast_steps"][0][-1] == 20
    refused = CliRunner().invoke(app, [*arguments, *where, "--fresh", "--backend", "loky"], prog_name="tightrope")
    assert refused.exit_code == 2
    assert "a callback needs the backend processes" in " ".join(refused.stderr.split())
    assert (tmp_path / "out/runs" / run.name / "history.csv").exists()


def test_names_of_runs_stay_inside_the_folder(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "board") as board:
        for name in ("../../outside", "..", "a/b c"):
            board(tr.Record(name, 1, 2, {"loss": 1.0}))
    assert [path.name for path in tmp_path.iterdir()] == ["board"]
    assert len(list((tmp_path / "board").iterdir())) == 3
