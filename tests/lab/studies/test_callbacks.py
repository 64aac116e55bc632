"""Callbacks of studies, in this process and from workers: the same results, stopped or not."""

from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tests.lab.studies.test_conduct import STUDY, rows
from tightrope import Results, Study
from tightrope.lab.engines import Engine
from tightrope.lab.runner import conducted
from tightrope.lab.study import Records


def conduct(folder: Path, jobs: int, callback: Any, study: Study = STUDY, backend: Any = "processes") -> Results:
    with conducted(study, folder, Engine(jobs=jobs, backend=backend), callback=callback) as done:
        return done


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_callback_gets_every_record_of_every_run_in_this_process(jobs: int, tmp_path: Path) -> None:
    told: list[tr.Record] = []
    conduct(tmp_path, jobs, told.append)
    table = {(row["run"], int(row["episode"])): row for row in rows(tmp_path)}
    assert {(record.run, record.episode) for record in told} == set(table)
    assert len(told) == len(table) == 4 * 5
    for record in told:
        row = table[record.run, record.episode]
        assert record.episodes == 30
        assert record.metrics == {name: float(row[name]) for name in record.metrics}
        assert {"regret", "use_constraint_0", "violation_constraint_0"} <= set(record.metrics)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stopped_run_says_so_and_continues_the_next_time(jobs: int, tmp_path: Path) -> None:
    def stop(record: tr.Record) -> tr.Stop | None:
        return tr.Stop("slow") if "o-reps" in record.run and record.episode > 2 else None

    done = conduct(tmp_path / "cut", jobs, stop)
    assert done.failed == {}
    reports = {name: run.report() for name, run in done.runs.items()}
    for name, report in reports.items():
        slow = "o-reps" in name
        assert report is not None and report.status == ("stopped" if slow else "finished")
        episodes = [int(row["episode"]) for row in rows(tmp_path / "cut") if row["run"] == name]
        assert len(episodes) == (3 if slow else 5)
        assert report.words == (f"after {episodes[-1]} of 30 episodes: slow" if slow else "")
    conduct(tmp_path / "cut", jobs, None)
    conduct(tmp_path / "whole", 1, None)
    assert (tmp_path / "cut/table.csv").read_bytes() == (tmp_path / "whole/table.csv").read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_callback_that_raises_is_named_and_nothing_is_lost(jobs: int, tmp_path: Path) -> None:
    def board(record: tr.Record) -> None:
        if "uniform" in record.run and record.episode > 5:
            raise OSError("disk full")

    done = conduct(tmp_path / "cut", jobs, board)
    assert len(done.failed) == 2
    for name, words in done.failed.items():
        assert "uniform" in name
        assert "board raised OSError after episode" in words and words.endswith(f"of {name}: disk full")
    conduct(tmp_path / "cut", jobs, None)
    conduct(tmp_path / "whole", 1, None)
    assert (tmp_path / "cut/table.csv").read_bytes() == (tmp_path / "whole/table.csv").read_bytes()
    log = (tmp_path / "cut/runs" / next(iter(done.failed)) / "log.txt").read_text()
    assert "continues after episode" in log


def test_a_callback_needs_the_backend_processes(tmp_path: Path) -> None:
    small = Study(problems=STUDY.problems, learners=["uniform"], episodes=5, records=Records(count=2))
    with pytest.raises(tr.InvalidInputError, match="the backend is loky; a callback needs the backend processes"):
        conduct(tmp_path, 2, print, small, "loky")
