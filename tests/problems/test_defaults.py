"""A default that stands for what was not recorded is never silent."""

import json
from pathlib import Path

import pytest

from tests.problems.folders import edit, fresh_shop, invoke, refused
from tightrope import load_problem, theory

#: What was recorded of two weeks: only the moves that were played.
PATHS = """\
episode,state,action,loss
1,good,run,-100
1,worn,service,20
2,good,run,-30
2,worn,run,-20
2,broken,repair,40
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = fresh_shop(tmp_path, monkeypatch)
    (folder / "loss.csv").write_text(PATHS)
    return folder


def with_default(folder: Path) -> Path:
    edit(folder, "problem.toml", ('table = "loss.csv"', 'default = 0\ntable = "loss.csv"'))
    return folder


def test_a_record_of_paths_is_refused_with_the_way_to_use_it(shop: Path) -> None:
    words = refused(shop)
    assert "loss.csv: there is no row for state " in words
    assert "tightrope new NAME --from-log loss.csv" in words
    assert "default" not in words


def test_a_default_for_what_was_not_recorded_is_a_warning_in_check(shop: Path) -> None:
    problem = load_problem(with_default(shop))
    [words] = problem.warnings
    # 60 moves over the seven steps: in week 1, 34 of them have no row; in week 2, 24
    assert "loss.csv has no row for 48% of the possible moves, which get default = 0 of [loss]" in words
    assert "WARNING: loss.csv has no row for 48%" in invoke("check", "shop", "--episodes", "100")[1]
    facts = json.loads(invoke("check", "shop", "--episodes", "100", "--json")[1])
    assert facts["warnings"] == [words]
    assert theory.with_budgets(problem, {"technician": 3}).warnings == problem.warnings


def test_the_warning_is_in_run_and_report(shop: Path) -> None:
    code, out, err = invoke("run", str(with_default(shop)), "--episodes", "20", "--jobs", "1", "--out", "played")
    assert code == 0, err
    assert "WARNING: loss.csv has no row for 48%" in out
    assert invoke("report", "played")[0] == 0
    assert "loss.csv has no row for 48%" in Path("played/report.html").read_text("utf-8")


def test_a_default_for_few_moves_causes_no_warning(shop: Path, tmp_path: Path) -> None:
    rows = [f"{week},{state},{action},1" for week in range(1, 21) for state, action in PAIRS]
    (shop / "loss.csv").write_text("\n".join(["episode,state,action,loss", *rows[:-1]]) + "\n")
    assert load_problem(with_default(shop)).warnings == ()


PAIRS = [
    *(("good", action) for action in ("run", "service")),
    *(("worn", action) for action in ("run", "service")),
    *(("broken", action) for action in ("stand", "repair")),
]
