"""Studies in their folders: files, kept and continued runs, notes."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.lab.studies.cuts import PowerCutError, conduct, cut_after
from tightrope import ConvergenceError, InvalidInputError, Results, Run, Study, make
from tightrope.lab import engines as player
from tightrope.lab.engines import Engine
from tightrope.lab.folder import RunFolder
from tightrope.lab.history import in_units
from tightrope.lab.runner import conducted, is_conducted
from tightrope.lab.study import Records
from tightrope.problems.files import write_example
from tightrope.storage.files import locked

SMALL: dict[str, Any] = {"name": "random", "layer_sizes": [1, 2, 1], "n_actions": 2}
STUDY = Study(problems=[SMALL], learners=["o-reps", "uniform"], episodes=30, seeds=2, records=Records(count=5))


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_the_numbers_of_single_runs_in_both_units(tmp_path: Path) -> None:
    write_example(tmp_path / "mine")  # in euros and hours
    study = Study(problems=["mine", SMALL], learners=["uniform"], episodes=30, seeds=[4], records=Records(count=5))
    conduct(study, tmp_path / "out", beside=tmp_path)
    table = rows(tmp_path / "out")
    for name, problem in (("mine", tr.load_problem(tmp_path / "mine")), ("random", make(**SMALL))):
        history = tr.run(problem, "uniform", episodes=30, seed=4, records=5)
        of_run = [row for row in table if row["problem"] == name]
        for column, values in in_units(problem, history).items():
            assert [float(row[column]) for row in of_run] == values.tolist()
        for column, values in history.items():
            if column not in ("episode", "multiplier_norm", "epoch"):
                assert [float(row[f"{column}_scaled"]) for row in of_run] == values.tolist()
        limit = problem.use_in_units(problem.budgets)[0]
        constraint = "technician" if name == "mine" else "constraint_0"
        for row in of_run:
            over = float(row[f"use_{constraint}"]) - int(row["episode"]) * limit
            assert float(row[f"violation_{constraint}"]) == pytest.approx(max(0.0, over), abs=1e-9)
        other = "constraint_0" if name == "mine" else "technician"
        assert {row[f"use_{other}"] for row in of_run} == {""}
    assert list(table[0])[:10] == [
        "run", "problem", "losses", "noise", "learner", "problem.layer_sizes", "problem.n_actions", "episodes", "seed",
        "episode",
    ]  # fmt: skip
    assert {row["losses"] for row in table} == {"replay", "switching"}


def test_the_columns_of_the_documentation_are_those_of_the_table(tmp_path: Path) -> None:
    conduct(STUDY, tmp_path / "out")
    page = Path(__file__).parents[3] / "docs" / "how-to" / "studies.md"
    table = page.read_text("utf-8").partition("## The table")[2]
    for column in rows(tmp_path / "out")[0]:
        documented = column.replace("constraint_0", "CONSTRAINT")
        if "." in documented:
            documented = f"{documented.partition('.')[0]}.OPTION"
        assert f"`{documented}`" in table, column


def test_parquet_has_the_same_content(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    done = conduct(STUDY, tmp_path / "out")
    assert [path.name for path in done.tables] == ["table.csv", "table.parquet"]
    read, table = parquet.read_table(done.tables[1]).to_pydict(), rows(tmp_path / "out")
    assert list(read) == list(table[0])
    assert read["regret"] == [float(row["regret"]) for row in table]
    assert read["learner"] == [row["learner"] for row in table]


def test_a_run_writes_its_description_history_checkpoint_and_log(tmp_path: Path) -> None:
    done = conduct(STUDY, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "runs", "study.toml", "summary.csv", "summary.md", "summary.tex", "table.csv", "table.parquet"
    ]  # fmt: skip
    [*_, run] = done.runs.values()
    assert sorted(path.name for path in run.path.iterdir()) == ["checkpoint", "history.csv", "log.txt", "run.json"]
    found = json.loads((run.path / "run.json").read_bytes())
    assert found["status"] == "finished"
    assert found["configuration"]["learner"] == {"name": "uniform", "options": {}}
    assert found["entropy"]["seed"] == 1
    assert found["versions"]["tightrope"] == tr.__version__
    assert found["problem"]["budgets"][0]["limit"] == make(**SMALL).budgets[0]
    assert found["machine"]["cores"] >= 1
    assert tr.load(run.path / "checkpoint").observed == 30
    assert [line.split(" ", 2)[2] for line in (run.path / "log.txt").read_text().splitlines()] == ["begins", "finished"]


def test_finished_runs_are_kept_and_new_ones_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = conduct(STUDY, tmp_path)
    played: list[str] = []
    play = player._play_on

    def noted(run: Run, folder: RunFolder, *how: Any) -> None:
        played.append(folder.path.name)
        play(run, folder, *how)

    monkeypatch.setattr(player, "_play_on", noted)
    before = (tmp_path / "table.csv").read_bytes()
    said: list[str] = []
    conduct(STUDY, tmp_path, said)
    assert (played, said) == ([], ["4 of 4 runs are finished and kept; --fresh starts them over"])
    assert (tmp_path / "table.csv").read_bytes() == before

    said.clear()
    more = Study(problems=[SMALL], learners=["uniform", "hindsight"], episodes=30, seeds=2, records=Records(count=5))
    second = conduct(more, tmp_path, said)
    assert said[0] == "changed since it was last run: learners: without o-reps, with hindsight"
    assert said[1].startswith("2 of 4 runs are finished")
    assert [name.startswith("random") and "hindsight" in name for name in played] == [True, True]
    assert {row["learner"] for row in rows(tmp_path)} == {"uniform", "hindsight"}
    assert all(run.path.exists() for run in (*first.runs.values(), *second.runs.values()))

    played.clear()
    conduct(more, tmp_path, fresh=True)
    assert len(played) == 4


def test_an_edited_problem_makes_new_runs_and_a_note(tmp_path: Path) -> None:
    write_example(tmp_path / "mine")
    study = Study(problems=["mine"], learners=["uniform"], episodes=5)
    first = conduct(study, tmp_path / "out", beside=tmp_path)
    loss = tmp_path / "mine" / "loss.csv"
    loss.write_text(loss.read_text().replace("-100", "-99", 1))
    said: list[str] = []
    second = conduct(study, tmp_path / "out", said, beside=tmp_path)
    assert said == ["changed since it was last run: the files of mine were edited"]
    assert not set(first.runs) & set(second.runs)
    assert all(run.report() is not None for run in first.runs.values())


def test_an_interrupted_run_continues_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often: the table is that of a study without interruptions."""
    conduct(STUDY, tmp_path / "whole")
    cuts = 0
    while not (tmp_path / "cut" / "table.csv").exists():
        try:
            with cut_after(13, monkeypatch):
                conduct(STUDY, tmp_path / "cut", save_every=0.0)
        except PowerCutError:
            cuts += 1
    assert cuts == 4 * 30 // 13
    for name in ("table.csv", "table.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    logs = [log.read_text() for log in sorted((tmp_path / "cut" / "runs").glob("*/log.txt"))]
    assert sum("continues after episode" in log for log in logs) >= 3
    for run in (tmp_path / "cut" / "runs").iterdir():
        assert (run / "run.json").read_bytes() == (tmp_path / "whole" / "runs" / run.name / "run.json").read_bytes()
        assert (run / "checkpoint").read_bytes() == (tmp_path / "whole" / "runs" / run.name / "checkpoint").read_bytes()


def test_an_interrupted_run_has_its_rows_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PowerCutError), cut_after(13, monkeypatch):
        conduct(STUDY, tmp_path, save_every=0.0)
    [folder] = (tmp_path / "runs").iterdir()
    run = RunFolder(folder)
    found = run.report()
    assert found is not None and found.status == "running"
    [read] = Results.read(tmp_path, live=True).runs.values()
    assert read.columns["episode"].tolist() == [1, 2, 5, 13]
    assert run.episode() > 0


def test_a_run_with_a_damaged_checkpoint_starts_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conduct(STUDY, tmp_path / "whole")
    with pytest.raises(PowerCutError), cut_after(13, monkeypatch):
        conduct(STUDY, tmp_path / "cut", save_every=0.0)
    [folder] = (tmp_path / "cut" / "runs").iterdir()
    (folder / "checkpoint").write_bytes((folder / "checkpoint").read_bytes()[:-100])
    conduct(STUDY, tmp_path / "cut")
    assert "starts over, for its checkpoint cannot be read" in (folder / "log.txt").read_text()
    assert (tmp_path / "cut" / "table.csv").read_bytes() == (tmp_path / "whole" / "table.csv").read_bytes()


def test_a_failed_run_does_not_affect_others_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Run.step

    def stumble(self: Run) -> None:
        if self.learner.settings["learner"] == "o-reps" and self.seed == 1 and self.episode == 20:
            raise ConvergenceError("stopped at a residual of 1")
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", stumble)
        done = conduct(STUDY, tmp_path)
    [(name, words)] = done.failed.items()
    assert "o-reps" in name and words == "stopped at a residual of 1"
    assert len(done.runs) == 3
    assert len(rows(tmp_path)) == 15
    found = RunFolder(tmp_path / "runs" / name).report()
    assert found is not None and (found.status, found.words) == ("failed", words)
    assert conduct(STUDY, tmp_path).failed == {}
    assert len(rows(tmp_path)) == 20


def test_a_run_that_another_process_holds_is_not_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "PATIENCE", 0.0)
    [name] = conduct(with_seeds([3]), tmp_path).runs
    (tmp_path / "runs" / name / "run.json").unlink()
    with locked(tmp_path / "runs" / name):
        done = conduct(with_seeds([3]), tmp_path)
    assert "another process is writing" in done.failed[name]


def with_seeds(seeds: list[int]) -> Study:
    return Study(problems=[SMALL], learners=["uniform"], episodes=5, seeds=seeds)


def test_a_folder_is_held_by_one_study_at_a_time(tmp_path: Path) -> None:
    with (
        conducted(with_seeds([0]), tmp_path, Engine(jobs=1)),
        pytest.raises(InvalidInputError, match="another process is writing"),
        conducted(with_seeds([1]), tmp_path, Engine(jobs=1)),
    ):
        pass


def test_a_study_file_that_tightrope_did_not_write_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("# mine\nproblems = []\n")
    with pytest.raises(InvalidInputError, match=r"study\.toml"):
        conduct(with_seeds([0]), tmp_path)
    (tmp_path / "study.toml").write_text("# mine\nproblems = ['random']\n")
    with pytest.raises(InvalidInputError, match="not tightrope's; choose another folder with --out"):
        conduct(with_seeds([0]), tmp_path)
    assert (tmp_path / "study.toml").read_text() == "# mine\nproblems = ['random']\n"
    assert not is_conducted(tmp_path / "study.toml")


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("here", "there"):
        write_example(tmp_path / place / "mine")
    with pytest.raises(InvalidInputError, match="two folders are called mine"):
        conduct(Study(problems=["here/mine", "there/mine"]), tmp_path / "out", beside=tmp_path)


def test_records_follow_count_spacing_and_regret(tmp_path: Path) -> None:
    records = Records(count=4, spacing="linear", regret="last")
    conduct(Study(problems=[SMALL], learners=["uniform"], episodes=[10, 31], records=records), tmp_path)
    table = rows(tmp_path)
    assert [row["episode"] for row in table] == ["1", "4", "7", "10", "1", "11", "21", "31"]
    assert [np.isnan(float(row["regret"])) for row in table] == [True, True, True, False] * 2
    assert [row["episodes"] for row in table] == ["10"] * 4 + ["31"] * 4
