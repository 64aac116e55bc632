"""The command line: what it prints where, what it writes, and how it fails."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tightrope import __version__, cli
from tightrope.cli import Request, app, results
from tightrope.errors import ConvergenceError
from tightrope.experiments import run as running
from tightrope.problems import make

SHORT = ["run", "media-streaming", "--episodes", "40"]


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, prog_name="tightrope")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def python(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: Path) -> dict[str, list[float]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def test_a_run_writes_tables_picture_and_settings_and_says_where(tmp_path: Path) -> None:
    code, out, err = invoke(*SHORT, "--seed", "3")
    assert (code, err) == (0, "playing 40 episodes\n")
    folder = Path("runs/media-streaming-ucpd-T40-seed3")
    written = sorted(path.name for path in folder.iterdir())
    assert written == ["history-seed3.csv", "picture.png", "picture.svg", "settings.json"]
    for name in ("history-seed3.csv", "picture.png"):
        assert str(folder / name) in out

    history = running.run(make("media-streaming"), episodes=40, seed=3)
    table = read(folder / "history-seed3.csv")
    assert list(table) == list(history)
    for name, column in history.items():
        np.testing.assert_array_equal(table[name], column)

    settings = json.loads((folder / "settings.json").read_text())
    assert settings["tightrope"] == __version__
    assert settings["request"]["episodes"] == 40
    for name in ("alpha", "V", "mixing", "level", "radius_scale"):
        assert settings["learners"]["ucpd"][name] == history.settings[name]
        assert f"{name} {history.settings[name]:.6g}" in out


def test_the_table_has_the_last_record_of_every_seed_then_mean_and_standard_error() -> None:
    columns = ["episode", "loss", "hindsight", "regret", "violation", "strong_violation"]
    histories = [
        {name: np.array([0.0, value]) for name, value in zip(columns, values, strict=True)}
        for values in ([100, 1234.5, 1000, 234.5, 0.25, 3], [100, 1236.5, 1000, 236.5, 0.75, 5])
    ]
    request = Request(problem="p", losses=None, learner="l", episodes=100, seed=4, seeds=2)
    head, *rows = [line.split("  ") for line in results(request, {"l": histories}, {"l": {}})[:5]]
    assert [cell.strip() for cell in head if cell] == [
        "seed", "episodes", "loss", "LP value", "regret", "violation", "strong violation"
    ]  # fmt: skip
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["4", "100", "1234.5", "1000.0", "234.50", "0.2500", "3.0000"],
        ["5", "100", "1236.5", "1000.0", "236.50", "0.7500", "5.0000"],
        ["mean", "100", "1235.5", "1000.0", "235.50", "0.5000", "4.0000"],
        ["± s.e.", "1.0", "0.0", "1.00", "0.2500", "1.0000"],
    ]
    lines = results(request, {"l": histories}, {"l": {}})
    assert len({len(line) for line in lines[:5]}) == 1
    assert any(line.startswith("violation:") and "strong violation:" in line for line in lines)


def test_several_seeds_in_parallel_give_the_bits_of_each_alone() -> None:
    assert invoke(*SHORT, "--seeds", "2", "--out", "both")[0] == 0
    for seed in ("0", "1"):
        assert invoke(*SHORT, "--seed", seed, "--out", f"only{seed}")[0] == 0
        name = f"history-seed{seed}.csv"
        assert Path("both", name).read_bytes() == Path(f"only{seed}", name).read_bytes()
    assert Path("only0/history-seed0.csv").read_bytes() != Path("only1/history-seed1.csv").read_bytes()


def test_several_learners_share_a_table_and_a_picture() -> None:
    names = "uniform,o-reps,uniform,uc-o-reps"
    code, out, err = invoke(*SHORT, "--learners", names, "--seeds", "2")
    assert (code, err) == (0, "playing 6 runs\n")
    folder = Path("runs/media-streaming-uniform+o-reps+uc-o-reps-T40-seeds0-1")
    learners = ["uniform", "o-reps", "uc-o-reps"]
    written = {path.name for path in folder.iterdir()}
    tables = {f"history-{name}-seed{seed}.csv" for name in learners for seed in (0, 1)}
    assert written == tables | {"picture.png", "picture.svg", "settings.json"}
    settings = json.loads((folder / "settings.json").read_text())["learners"]
    assert list(settings) == learners

    head, *rows = [line.split("  ") for line in out.splitlines()[2:6]]
    assert [cell.strip() for cell in head if cell.strip()] == [
        "learner", "confidence scale", "loss", "LP value", "regret", "violation", "strong violation"
    ]  # fmt: skip
    for name, scale, row in zip(learners, ("–", "–", "1"), rows, strict=True):
        cells = [cell.strip() for cell in row if cell.strip()]
        assert cells[:2] == [name, scale]
        last = [read(folder / f"history-{name}-seed{seed}.csv")["regret"][-1] for seed in (0, 1)]
        mean, error = cells[4].split(" ± ")
        assert float(mean) == pytest.approx(np.mean(last), abs=0.01)
        assert float(error) == pytest.approx(abs(last[0] - last[1]) / 2, abs=0.01)
    assert len({len(line) for line in out.splitlines()[2:6]}) == 1
    for words in (
        "over 2 seeds",
        "o-reps (model)",
        "settings of uc-o-reps: learning_rate",
        "settings of uniform: none",
    ):
        assert words in out


def test_of_several_learners_the_wrong_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = invoke(*SHORT, "--learners", "ucpd,nobody")
    assert (code, out) == (2, "")
    assert "'nobody'" in err
    assert not list(Path.cwd().iterdir())


def test_losses_are_passed_on() -> None:
    code, out, _ = invoke(*SHORT, "--losses", "drifting")
    assert code == 0
    assert "drifting" in out
    history = running.run(make("media-streaming", losses="drifting"), episodes=40)
    table = read(Path("runs/media-streaming-drifting-ucpd-T40-seed0/history-seed0.csv"))
    np.testing.assert_array_equal(table["loss"], history["loss"])


def test_the_same_run_may_write_again_but_no_other() -> None:
    assert invoke(*SHORT, "--out", "here")[0] == 0
    first = {path.name: path.read_bytes() for path in Path("here").iterdir()}
    code, _, err = invoke(*SHORT, "--out", "here")
    assert code == 0
    assert "here" in err
    assert {path.name: path.read_bytes() for path in Path("here").iterdir()} == first

    code, out, err = invoke(*SHORT, "--out", "here", "--seed", "1")
    assert (code, out) == (2, "")
    assert "another run (seed 0, now 1)" in err
    assert {path.name: path.read_bytes() for path in Path("here").iterdir()} == first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing command"),
        (["run"], "PROBLEM"),
        (["walk"], "'walk'"),
        (["run", "edge-cluod"], "'edge-cloud'"),
        ([*SHORT, "--learner", "nobody"], "'nobody'"),
        ([*SHORT, "--losses", "weather"], "'weather'"),
        (["run", "media-streaming", "--episodes", "0"], "--episodes"),
        (["run", "media-streaming", "--episodes", "many"], "--episodes"),
        (["run", "media-streaming", "--seeds", "0"], "--seeds"),
        (["run", "media-streaming", "--seed", "-1"], "--seed"),
        (["run", "media-streaming", "--epsiodes", "3"], "--epsiodes"),
        (["list", "people"], "people"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    code, out, err = invoke(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tightrope: ")
    assert err.count("\n") == 1
    assert words in err
    assert not list(Path.cwd().iterdir())


def test_a_folder_of_somebody_else_is_left_alone() -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter1.tex").write_text("words")
    code, _, err = invoke(*SHORT, "--out", "thesis")
    assert code == 2
    assert "thesis" in err
    assert [path.name for path in Path("thesis").iterdir()] == ["chapter1.tex"]


def test_a_failed_run_is_one_line_and_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ConvergenceError("stopped at a flow residual of 1\nabove its tolerance")

    monkeypatch.setattr(running, "run", fail)
    code, out, err = invoke(*SHORT)
    assert (code, out) == (1, "")
    assert err == "playing 40 episodes\ntightrope: seed 0: stopped at a flow residual of 1 above its tolerance\n"


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(running, "run", fail)
    assert isinstance(CliRunner().invoke(app, SHORT).exception, ZeroDivisionError)


def test_progress_is_a_bar_on_a_terminal_and_a_note_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with cli._bar("episodes", 40) as show:
        show(40)
    assert capsys.readouterr().err == "playing 40 episodes\n"

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich looks here before it draws
    with cli._bar("episodes", 40) as show:
        show(40)
    assert "40/40" in capsys.readouterr().err


def test_lists() -> None:
    code, out, _ = invoke("list")
    assert code == 0
    for name in ("edge-cloud", "media-streaming", "random", "ucpd", "fixed", "switching", "drifting"):
        assert name in out
    code, out, _ = invoke("list", "losses")
    heading, *names = [line.split()[0] for line in out.splitlines()]
    assert heading == "name"
    assert names == sorted(names)
    assert {"drifting", "fixed", "switching"} <= set(names)
    assert all(len(line.split()) > 3 for line in out.splitlines())  # each with a summary
    code, out, _ = invoke("list", "learners")
    [line] = [line for line in out.splitlines() if line.startswith("o-reps ")]
    assert line.split()[:3] == ["o-reps", "full", "model"]
    assert line.endswith("Zimin & Neu (NIPS 2013)")
    code, out, _ = invoke("list", "problems")
    [line] = [line for line in out.splitlines() if line.startswith("edge-cloud ")]
    assert line.split()[1:4] == ["318", "12", "2"]
    assert line.endswith("Wang et al. 2015")


def test_version() -> None:
    assert invoke("--version") == (0, f"tightrope {__version__}\n", "")


def test_help_is_there_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from tightrope.cli import app\n"
        "for arguments in (['--help'], ['run', '--help'], ['--version']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "print(sorted({'numpy', 'scipy', 'numba', 'matplotlib', 'joblib'} & set(sys.modules)))"
    )
    out, err = python(code, tmp_path).communicate(timeout=60)
    assert (out, err) == ("[]\n", "")


@pytest.mark.parametrize("seeds", [1, 2])
def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path: Path, seeds: int) -> None:
    # a run too long to end by itself, interrupted as a terminal does it: the whole process group
    arguments = ["run", "media-streaming", "--episodes", "50000000", "--seeds", str(seeds)]
    process = python(f"from tightrope.cli import app; app({arguments})", tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("playing")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "tightrope: interrupted\n")


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("tightrope")
    done = subprocess.run([command, "list", "problems"], capture_output=True, text=True, check=True)
    assert done.stdout == invoke("list", "problems")[1]
    assert cli.main.__module__ == "tightrope.cli"
