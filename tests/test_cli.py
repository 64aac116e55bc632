"""The command line: what it prints where, what it writes, and how it fails."""

import csv
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.processes import python
from tightrope import __version__, cli
from tightrope.cli.commands import app
from tightrope.errors import ConvergenceError
from tightrope.experiments import figures
from tightrope.experiments import play as playing
from tightrope.experiments.run import run
from tightrope.learners.needs import NEEDS
from tightrope.problems import make
from tightrope.problems.suite import media_streaming

SHORT = ["run", "media-streaming", "--episodes", "40", "--learner", "ucpd"]


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, prog_name="tightrope")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are the subject of other tests."""

    @contextmanager
    def one_by_one(jobs: list[dict[str, Any]], n_workers: int, n_threads: int) -> Iterator[Iterator[dict[str, Any]]]:
        yield (json.loads(json.dumps(playing.answer(**job))) for job in jobs)

    monkeypatch.setattr(playing, "side_by_side", one_by_one)


class Run(NamedTuple):
    """What one call of SHORT printed, and where it wrote."""

    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """SHORT as it stands, with seed 0; shared, so nobody writes to it."""
    place = tmp_path_factory.mktemp("first")
    with chdir(place):
        code, out, err = invoke(*SHORT)
    assert code == 0
    return Run(place / "runs/media-streaming-ucpd-T40-seed0", out, err)


def read(path: Path) -> dict[str, list[float]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_writes_tables_picture_and_settings_and_says_where(first: Run) -> None:
    assert first.err == "playing 40 episodes\n"
    assert sorted(contents(first.folder)) == ["history-seed0.csv", "picture.png", "picture.svg", "settings.json"]
    for name in ("history-seed0.csv", "picture.png"):
        assert str(Path("runs", first.folder.name, name)) in first.out

    history = run(make("media-streaming"), episodes=40)
    table = read(first.folder / "history-seed0.csv")
    assert list(table) == list(history)
    for name, column in history.items():
        np.testing.assert_array_equal(table[name], column)

    settings = json.loads((first.folder / "settings.json").read_text())
    assert settings["tightrope"] == __version__
    assert settings["request"]["episodes"] == 40
    for name in ("alpha", "V", "mixing", "level", "radius_scale"):
        assert settings["learners"]["ucpd"][name] == history.settings[name]
        assert f"{name} {history.settings[name]:.6g}" in first.out


@pytest.mark.usefixtures("without_workers")
@pytest.mark.parametrize("seeds", [1, 2])
def test_every_run_makes_its_problem_and_its_learner_once(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    """A rehearsal of `hindsight` plays all episodes: one that is thrown away doubles the work."""
    made: list[str] = []

    def counted(what: str, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def counting(*args: Any, **options: Any) -> Any:
            made.append(what)
            return make(*args, **options)

        return counting

    monkeypatch.setattr(media_streaming, "media_streaming", counted("problem", media_streaming.media_streaming))
    need = NEEDS["hindsight_policy"]
    monkeypatch.setitem(NEEDS, "hindsight_policy", need._replace(answer=counted("rehearsal", need.answer)))
    assert invoke(*SHORT, "--learner", "hindsight", "--seeds", str(seeds))[0] == 0
    assert made.count("rehearsal") == seeds
    assert made.count("problem") == (1 if seeds == 1 else 1 + seeds)  # and one to see that the request makes sense


def test_several_seeds_in_parallel_give_the_bits_of_each_alone(first: Run) -> None:
    assert invoke(*SHORT, "--seeds", "2", "--out", "both")[0] == 0
    assert invoke(*SHORT, "--seed", "1", "--out", "only1")[0] == 0
    both, only = contents(Path("both")), contents(first.folder) | contents(Path("only1"))
    for name in ("history-seed0.csv", "history-seed1.csv"):
        assert both[name] == only[name]
    assert both["history-seed0.csv"] != both["history-seed1.csv"]


@pytest.mark.usefixtures("without_workers")
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

    spent = out.splitlines()[2:6]
    assert spent[0].split("  ")[0] == "used an episode"
    assert [line.split()[0] for line in spent[1:]] == learners
    uniform = np.mean([read(folder / f"history-uniform-seed{seed}.csv")["use_fast_steps"][-1] / 40 for seed in (0, 1)])
    assert float(spent[1].split()[1]) == pytest.approx(uniform, abs=0.001)
    assert spent[1].endswith("within") == (uniform <= 5)
    head, *rows = [line.split("  ") for line in out.splitlines()[7:11]]
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
    assert len({len(line) for line in out.splitlines()[7:11]}) == 1
    for words in (
        "over 2 seeds",
        "o-reps (model)",
        "settings of uc-o-reps: ",
        "learning_rate",
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
    history = run(make("media-streaming", losses="drifting"), episodes=40)
    table = read(Path("runs/media-streaming-drifting-ucpd-T40-seed0/history-seed0.csv"))
    np.testing.assert_array_equal(table["loss"], history["loss"])


def test_the_same_run_may_write_again_but_no_other(first: Run) -> None:
    shutil.copytree(first.folder, "here")
    code, _, err = invoke(*SHORT, "--out", "here")
    assert code == 0
    assert "here" in err
    assert contents(Path("here")) == contents(first.folder)

    code, out, err = invoke(*SHORT, "--out", "here", "--seed", "1")
    assert (code, out) == (2, "")
    assert "another run (seed 0, now 1)" in err
    assert contents(Path("here")) == contents(first.folder)


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

    monkeypatch.setattr(playing, "run", fail)
    code, out, err = invoke(*SHORT)
    assert (code, out) == (1, "")
    assert err == "playing 40 episodes\ntightrope: seed 0: stopped at a flow residual of 1 above its tolerance\n"


def test_results_are_on_disk_and_printed_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(figures, "draw", stumble)
    result = CliRunner().invoke(app, [*SHORT, "--out", "here"])
    assert isinstance(result.exception, ZeroDivisionError)
    assert "table    here/history-seed0.csv" in result.stdout
    assert sorted(contents(Path("here"))) == ["history-seed0.csv", "settings.json"]
    assert "ucpd" in json.loads(Path("here/settings.json").read_text())["learners"]


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(playing, "run", fail)
    assert isinstance(CliRunner().invoke(app, SHORT).exception, ZeroDivisionError)


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
        "import sys; from typer.testing import CliRunner; from tightrope.cli.commands import app\n"
        "for arguments in (['--help'], ['run', '--help'], ['--version']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "print(sorted({'numpy', 'scipy', 'numba', 'matplotlib', 'joblib'} & set(sys.modules)))"
    )
    with python(code, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("[]\n", "")


@pytest.mark.parametrize(
    ("number", "seeds", "words"),
    [
        (signal.SIGINT, 1, "interrupted"),
        (signal.SIGINT, 2, "interrupted"),
        (signal.SIGTERM, 2, "ended on request (SIGTERM)"),
    ],
)
def test_a_signal_is_one_line_and_its_exit_code(tmp_path: Path, number: int, seeds: int, words: str) -> None:
    # a run too long to end by itself, interrupted as a terminal does it: the whole process group
    arguments = ["run", "media-streaming", "--episodes", "50000000", "--learner", "ucpd", "--seeds", str(seeds)]
    # who starts the tests in the background has Ctrl-C ignored, and children inherit that
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from tightrope.cli import main; sys.argv[1:] = {arguments}; main()"
    )
    with python(code, tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("playing")
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=60)  # of all who can write there: nobody is left
    assert (process.returncode, out, err) == (128 + number, "", f"tightrope: {words}\n")


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("tightrope")
    done = subprocess.run([command, "list", "problems"], capture_output=True, text=True, check=True)
    assert done.stdout == invoke("list", "problems")[1]
    assert cli.main.__module__ == "tightrope.cli"


@pytest.mark.parametrize("place", ["tables/loss.csv", "../loss.csv"])
def test_a_table_that_lies_elsewhere_makes_another_problem_when_it_is_edited(place: str) -> None:
    assert invoke("new", "mine")[0] == 0
    table = Path("mine", place)
    table.parent.mkdir(exist_ok=True)
    Path("mine/loss.csv").rename(table)
    toml = Path("mine/problem.toml")
    toml.write_text(toml.read_text().replace('"loss.csv"', f'"{place}"'))
    assert invoke("run", "mine", "--episodes", "5", "--learner", "ucpd")[0] == 0
    results = Path("runs/mine-ucpd-T5-seed0/history-seed0.csv")
    before = results.read_bytes()
    table.write_text(table.read_text().replace("50", "49", 1))
    code, _, err = invoke("run", "mine", "--episodes", "5", "--learner", "ucpd")
    assert code == 2
    assert "holds another run" in err
    assert results.read_bytes() == before


@pytest.mark.usefixtures("without_workers")
def test_unless_told_otherwise_the_practical_learner_and_the_paper_s_play_side_by_side() -> None:
    code, out, _ = invoke("run", "media-streaming", "--episodes", "2000")
    assert code == 0
    spent = [line.split() for line in out.splitlines()[3:5]]
    assert [line[0] for line in spent] == ["ucpd-practical", "ucpd"]
    assert float(spent[0][1]) < float(spent[1][1])
    assert "OVER" in spent[1]
