"""From a log of 400 made-up episodes to a problem, a check, a learner and an evaluation: four commands."""

from pathlib import Path

import pytest

import tightrope as tr
from tests.problems.folders import invoke
from tests.problems.recorded import recorded, written


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(recorded(400, seed=1), tmp_path / "weeks.csv")


def test_new_check_learn_and_evaluate_work_on_a_log(log: Path) -> None:
    code, out, err = invoke("new", "shop", "--from-log", "weeks.csv", "--budget", "hours=2", "--unit", "loss=euros")
    assert (code, out.split()) == (
        0,
        [f"shop/{name}" for name in ("problem.toml", "transitions.csv", "costs.csv", "log.csv")],
    )
    assert "400 episodes of up to 7 steps, 3 states, 6 pairs that were tried" in err
    assert "6 of 12 pairs of a state and an action (50%) were never tried" in err

    code, out, _ = invoke("check", "shop", "--episodes", "400")
    assert code == 0 and "WARNING: 6 of 12 pairs" in out and "<- yours" in out

    code, out, err = invoke("learn", "shop", "shop.learner")
    assert (code, out) == (0, "shop.learner\n")
    assert "ucpd-practical has counted 400 episodes" in err
    problem, learner = tr.load_problem("shop"), tr.load("shop.learner")
    assert tr.run(problem, learner, episodes=20)["regret"].shape

    code, out, err = invoke("evaluate", "shop")
    assert "best was chosen on this log" in err
    assert code == 0 and "loss, euros  by the model" in out and "hours" in out
    code, out, _ = invoke("evaluate", "shop", "uniform", "--level", "0.9")
    assert code == 0 and "by importance" in out and "probability 0.9" in out
    assert invoke("evaluate", "shop", "shop.learner")[0] == 0


def test_a_policy_may_be_a_table(log: Path) -> None:
    assert invoke("new", "shop", "--from-log", "weeks.csv", "--budget", "hours=2", "--by-step")[0] == 0
    table = tr.Policy.uniform(tr.load_problem("shop").space).table()
    rows = zip(table["state_name"], table["action_name"], table["probability"], strict=True)
    lines = [f'"{state}",{action},{p}' for state, action, p in rows]
    Path("policy.csv").write_text("\n".join(["state_name,action_name,probability", *lines]) + "\n")
    assert invoke("evaluate", "shop", "policy.csv")[1] == invoke("evaluate", "shop", "uniform")[1]
    Path("policy.csv").write_text("state_name,action_name,probability\nnowhere,run,1\n")
    code, _, err = invoke("evaluate", "shop", "policy.csv")
    assert (
        code == 2 and "policy.csv, line 2, column 1 (state_name): the problem has no action 'run' in 'nowhere'" in err
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["new", "x", "--from-log", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["new", "x", "--from-log", "weeks.csv", "--column", "loss"], "--column loss: expected a name and a value"),
        (["new", "x", "--from-log", "weeks.csv", "--bins", "loss=a,b"], "expected NAME=NUMBER,NUMBER"),
        (["new", "x", "--from-log", "weeks.csv", "--bounds", "loss=3"], "expected the least and the largest value"),
        (["new", "x", "--from-log", "weeks.csv", "--column", "loss=cost"], "there is no column 'cost' for loss"),
        (["new", "x", "--from-log", "weeks.csv", "--budget", "hours=nan"], "the budget of hours is nan"),
        (["new", "x", "--from-log", "weeks.csv", "--unit", "days=d"], "there is no budget 'days'"),
        (["new", "x", "--from-log", "weeks.csv", "--terminal", "broken"], "a step begins in 'broken'"),
        (["new", "x", "--budget", "hours=2"], "need --from-log"),
        (["learn", "made", "weeks.csv"], "is there already, and is no learner"),
        (["evaluate", "made", "latin.csv"], "latin.csv, line 1: byte 0xff is not UTF-8"),
        (["evaluate", "example", "best"], "names no log"),
        (["learn", "made", "out", "--learner", "opt-cmdp", "--episodes", "9"], "cannot learn from a log"),
        (["learn", "made", "out", "--learner", "uniform", "--episodes", "9"], "keeps no counts"),
        (["evaluate", "made", "nobody"], "neither best nor uniform, and there is no such file"),
    ],
)
def test_an_error_is_one_line(log: Path, arguments: list[str], words: str) -> None:
    assert invoke("new", "example")[0] == 0
    assert invoke("new", "made", "--from-log", "weeks.csv", "--budget", "hours=2")[0] == 0
    Path("latin.csv").write_bytes(b"\xff\n")
    code, out, err = invoke(*arguments)
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1
    assert not Path("x").exists()


def test_evaluate_reads_the_transitions_that_the_folder_names(log: Path) -> None:
    assert invoke("new", "made", "--from-log", "weeks.csv", "--budget", "hours=2")[0] == 0
    before = invoke("evaluate", "made")
    Path("made/transitions.csv").rename("made/moves.csv")
    toml = Path("made/problem.toml")
    toml.write_text(toml.read_text().replace('"transitions.csv"', '"moves.csv"'))
    assert invoke("evaluate", "made") == before
