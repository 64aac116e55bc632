"""`tr.Study(...).run()` and `tr.Results`: the same numbers as single runs, as arrays, tables and figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import tightrope as tr

Study: Any = tr.Study  # it takes more than type checkers know: one name for a list, fields for a struct
SMALL: dict[str, Any] = {"name": "random", "layer_sizes": [1, 2, 1], "n_actions": 2}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tr.Results:
    """Two learners with two seeds; shared, so no test writes to it."""
    study = Study(problems=[SMALL], learners=["o-reps", "uniform"], episodes=30, seeds=2, records={"count": 5})
    results: tr.Results = study.run(tmp_path_factory.mktemp("study") / "out", jobs=1)
    return results


def test_the_results_of_a_study_are_those_of_single_runs(results: tr.Results) -> None:
    [section] = results.sections
    assert [(curve.label, curve.seeds) for curve in section.curves] == [("o-reps", [0, 1]), ("uniform", [0, 1])]
    problem = tr.make(**SMALL)
    for curve in section.curves:
        for run in curve.runs:
            history = tr.run(problem, curve.label, episodes=30, seed=run.seed, records=5)
            for name, column in history.items():
                np.testing.assert_array_equal(run.columns[name], column)
            assert run.settings["learner"] == curve.label
        assert curve.values("regret", section.episodes).shape == (2, 5)
        assert np.isnan(curve.values("happiness", section.episodes)).all()


def test_a_folder_reads_back_as_the_same_results(results: tr.Results) -> None:
    for live in (False, True):
        again = tr.Results.read(results.folder, live=live)
        assert set(again.runs) == set(results.runs)
        for name, run in results.runs.items():
            assert again.runs[name].which == run.which and again.runs[name].facts == run.facts
            for column in run.columns:
                np.testing.assert_array_equal(again.runs[name].columns[column], run.columns[column])
    assert again.runs[name].report() is not None


def test_the_table_is_that_of_the_files(results: tr.Results) -> None:
    frame = pandas.DataFrame(results.table())
    written = pandas.read_csv(results.tables[0])
    assert list(frame) == list(written)
    assert frame["episode"].tolist() == written["episode"].tolist() == [1, 2, 5, 13, 30] * 4
    np.testing.assert_array_equal(frame["loss"].to_numpy(), written["loss"].to_numpy())
    summary = pandas.DataFrame(results.summary())
    last = frame[frame["episode"] == 30]
    for _, row in summary.iterrows():
        of_learner = last[last["learner"] == row["learner"]]
        assert row["regret"] == pytest.approx(of_learner["regret"].mean())
        assert row["seeds"] == 2
    assert pandas.read_csv(results.summaries[0])["regret"].tolist() == pytest.approx(summary["regret"].tolist())


def test_results_print_and_draw_themselves(results: tr.Results) -> None:
    assert repr(results) == f"Results({str(results.folder)!r}, 4 runs)"
    assert str(results).startswith("random (layer_sizes=[1, 2, 1], n_actions=2), switching losses, scaled constraints")
    assert "mean over 2 seeds" in str(results)
    html = results._repr_html_()
    assert html.count("<table>") == 1 and html.count("<tr>") == 3 and "[95 % bootstrap" in html
    assert len(results.sections[0].plot().axes) == 4


def test_a_study_called_again_continues(results: tr.Results, tmp_path: Path) -> None:
    study = Study(problems=SMALL, learners="uniform", episodes=[20, 30], seeds=(1, 3))
    said: list[str] = []
    first = study.run(tmp_path / "here", jobs=1)
    again = study.run(tmp_path / "here", jobs=1, notify=said.append)
    assert said == ["4 of 4 runs are finished and kept; --fresh starts them over"]
    assert list(again.runs) == list(first.runs) and len(again.sections) == 2


def test_by_default_the_folder_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = Study(problems="media-streaming", learners="uniform", episodes=5).run(jobs=1)
    assert found.folder == Path("runs/media-streaming-uniform-T5-seed0")


def test_budgets_and_options_are_swept_by_the_grid(tmp_path: Path) -> None:
    grid = {"budget": {"fast steps": [4, 4.5]}, "learner": {"radius_scale": [0.5]}}
    found = Study(problems="media-streaming", learners="ucpd", grid=grid, episodes=5).run(tmp_path / "o", jobs=1)
    assert [section.budgets[0].limit for section in found.sections] == [4, 4.5]
    assert [section.title for section in found.sections] == [
        "media-streaming, fixed losses, budget of fast steps 4",
        "media-streaming, fixed losses, budget of fast steps 4.5",
    ]


def test_a_callback_is_called_at_every_record(tmp_path: Path) -> None:
    told: list[tr.Record] = []
    study = Study(problems=[SMALL], learners="uniform", episodes=10, records={"count": 3})
    study.run(tmp_path / "here", jobs=1, callback=told.append)
    assert [record.episode for record in told] == [1, 3, 10]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"problems": []}, "problems"),
        ({"problems": 3}, "problems is 3"),
        ({"learners": [3]}, r"^learners: expected text or a table, not a whole number$"),
        ({"episodes": 0}, r"^episodes: expected a whole number >= 1$"),
        ({"episodes": None}, "episodes is None"),
        ({"seeds": "few"}, "seeds is 'few'"),
        ({"grid": {"lerner": {}}}, "^grid: there can be no 'lerner'$"),
        ({"grid": {"budget": {"fast steps": ["few"]}}}, "^grid.budget: expected a whole number or a number, not text$"),
        ({"records": {"spacing": "odd"}}, "^records.spacing: 'odd' is not one of .*'log', 'linear'"),
        ({"losses": [object()]}, "no file can hold"),
    ],
)
def test_wrong_values_are_refused_with_their_place(wrong: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(tr.InvalidInputError, match=words):
        Study(**({"problems": [SMALL], "learners": ["uniform"], "episodes": 5} | wrong)).run(tmp_path / "here")
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"jobs": 0}, "jobs is 0"),
        ({"backend": "cray"}, "backend cannot be 'cray'"),
        ({"address": "tcp://here"}, "address needs the backend dask or ray"),
        ({"folder": 3}, "folder is 3"),
    ],
)
def test_wrong_ways_of_running_are_refused(how: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(tr.InvalidInputError, match=words):
        Study(problems=[SMALL]).run(**({"folder": tmp_path / "here"} | how))
