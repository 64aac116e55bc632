"""The command line: output, files and errors."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.lab.studies.cuts import cut_after
from tests.processes import python
from tightrope import ConvergenceError, Study, __version__, cli, make, make_learner, run
from tightrope import Run as Play
from tightrope.cli import options
from tightrope.cli.commands import LISTS, app
from tightrope.cli.listings import details, names
from tightrope.lab import figures, runner
from tightrope.lab.history import in_units
from tightrope.lab.runner import folder_name
from tightrope.lab.study import with_values
from tightrope.learners.needs import NEEDS

SHORT = ["run", "media-streaming", "--episodes", "40", "--jobs", "1"]
SUMMARIES = ["summary.csv", "summary.md", "summary.tex"]
UCPD = [*SHORT, "--learner", "ucpd"]


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, prog_name="tightrope")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module", autouse=True)
def without_lines_now_and_then() -> Iterator[None]:
    """How many there are depends on how long a run takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "LINES", (10**9,))
        yield


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Run(NamedTuple):
    """What one call of SHORT printed, and where it wrote."""

    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The results of SHORT with seed 0; shared by tests, which only read them."""
    place = tmp_path_factory.mktemp("first")
    with chdir(place):
        code, out, err = invoke(*UCPD)
    assert code == 0
    return Run(place / "runs/media-streaming-ucpd-T40-seed0", out, err)


def read(folder: Path, **which: str) -> dict[str, list[str]]:
    """The rows of the table that are of these runs."""
    with (folder / "table.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[key] == value for key, value in which.items())]
    return {name: [row[name] for row in rows] for name in rows[0]}


def last(folder: Path, column: str, **which: str) -> float:
    return float(read(folder, **which)[column][-1])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_run_writes_a_table_and_a_picture_and_says_where(first: Run) -> None:
    assert first.err == "playing 40 episodes\n"
    assert sorted(contents(first.folder)) == [
        "picture.png", "picture.svg", "study.toml", *SUMMARIES, "table.csv", "table.parquet"
    ]  # fmt: skip
    for name in ("table.csv", "summary.csv", "picture.png"):
        assert str(Path("runs", first.folder.name, name)) in first.out

    history = run(make("media-streaming"), episodes=40)
    table = read(first.folder)
    for name, column in history.items():
        assert [float(cell) for cell in table[name]] == column.tolist()
    assert set(table["learner"]) == {"ucpd"}

    [folder] = (first.folder / "runs").iterdir()
    settings = json.loads((folder / "run.json").read_bytes())["settings"]
    for name in ("alpha", "V", "mixing", "level", "radius_scale"):
        assert settings[name] == history.settings[name]
        assert f"{name} {history.settings[name]:.6g}" in first.out


@pytest.mark.parametrize("seeds", [1, 2])
def test_every_run_makes_its_learner_once(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    """A rehearsal of `hindsight` plays all episodes: one that is thrown away doubles the work."""
    rehearsed: list[int] = []
    need = NEEDS["hindsight_policy"]

    def counted(problem: Any, episodes: int, seed: int) -> Any:
        rehearsed.append(episodes)
        return need.answer(problem, episodes, seed)

    monkeypatch.setitem(NEEDS, "hindsight_policy", need._replace(answer=counted))
    assert invoke(*SHORT, "--learner", "hindsight", "--seeds", str(seeds))[0] == 0
    assert rehearsed == [1] + [40] * seeds  # a small one, to see that its options make sense


def test_several_seeds_in_processes_give_the_bits_of_each_alone(first: Run) -> None:
    assert invoke(*UCPD, "--seeds", "2", "--jobs", "2", "--out", "both")[0] == 0
    assert invoke(*UCPD, "--seed", "1", "--out", "only1")[0] == 0
    both = read(Path("both"))
    assert read(first.folder) == read(Path("both"), seed="0")
    assert read(Path("only1")) == read(Path("both"), seed="1")
    assert len(set(both["run"])) == 2


def test_several_learners_share_a_table_and_a_picture() -> None:
    names = ["--learner", "uniform", "--learner", "o-reps,uniform", "--learners", "uc-o-reps"]
    code, out, err = invoke(*SHORT, *names, "--seeds", "2")
    assert (code, err) == (0, "playing 6 runs, 240 episodes\n")
    folder = Path("runs/media-streaming-uniform+o-reps+uc-o-reps-T40-seeds0-1")
    learners = ["uniform", "o-reps", "uc-o-reps"]
    assert list(dict.fromkeys(read(folder)["learner"])) == learners

    spent = out.splitlines()[2:6]
    assert spent[0].split("  ")[0] == "used per episode"
    assert [line.split()[0] for line in spent[1:]] == learners
    uniform = np.mean([last(folder, "use_fast_steps", learner="uniform", seed=seed) / 40 for seed in "01"])
    assert float(spent[1].split()[1]) == pytest.approx(uniform, abs=0.001)
    assert spent[1].endswith("within") == (uniform <= 5)
    head, *rows = [line.split("  ") for line in out.splitlines()[7:11]]
    assert [cell.strip() for cell in head if cell.strip()] == [
        "learner", "loss", "LP value", "regret", "violation", "strong violation"
    ]  # fmt: skip
    for name, row in zip(learners, rows, strict=True):
        cells = [cell.strip() for cell in row if cell.strip()]
        assert cells[0] == name
        regrets = [last(folder, "regret", learner=name, seed=seed) for seed in "01"]
        shown = [float(number) for number in re.findall(r"-?[\d.]+", cells[3])]
        # of two seeds, a quarter of the draws has one alone
        assert shown == pytest.approx([np.mean(regrets), min(regrets), max(regrets)], abs=0.01)
    assert len({len(line) for line in out.splitlines()[7:11]}) == 1
    for words in (
        "over 2 seeds",
        "o-reps (model)",
        "settings of uc-o-reps: ",
        "learning_rate",
        "settings of uniform: none",
    ):
        assert words in out


def test_options_of_learners_losses_noises_and_records_are_set_on_the_command_line() -> None:
    """The README's table of radius_scale, and what `list noises` lists."""
    code, out, _ = invoke(
        *SHORT, "--learner", "ucpd", "--set", "learner.radius_scale=0.1,0.3", "--losses", "switching",
        "--set", "losses.period=10", "--noise", "scaled", "--set", "noise.spread=0.5", "--records", "4",
        "--spacing", "linear", "--regret", "last", "--out", "here",
    )  # fmt: skip
    assert code == 0
    assert "ucpd radius_scale=0.1" in out and "ucpd radius_scale=0.3" in out
    table = read(Path("here"), **{"learner.radius_scale": "0.3"})
    losses, noise = {"name": "switching", "period": 10}, {"name": "scaled", "spread": 0.5}
    problem = make("media-streaming", losses=losses, noise=noise)
    learner = make_learner("ucpd", problem, episodes=40, radius_scale=0.3)
    history = run(problem, learner, episodes=40, records=4, spacing="linear", regret="last")
    assert [float(cell) for cell in table["loss"]] == history["loss"].tolist()
    assert table["regret"][:-1] == ["nan"] * 3
    assert set(table["losses.period"]) == {"10"} and set(table["noise.spread"]) == {"0.5"}


def test_constraints_are_chosen_like_losses() -> None:
    options_ = ("--learner", "uniform", "--constraints", "switching", "--set", "noise.period=10", "--out", "here")
    code, out, _ = invoke(*SHORT, *options_)
    assert code == 0 and "regret, always" in out
    problem = make("media-streaming", noise={"name": "switching", "period": 10})
    history = in_units(problem, run(problem, "uniform", episodes=40))
    table = read(Path("here"))
    assert [float(cell) for cell in table["regret_always"]] == history["regret_always"].tolist()
    assert set(table["noise"]) == {"switching"}


def test_tables_and_pictures_say_which_problem_and_constraints_they_are_of() -> None:
    code, out, _ = invoke(
        *SHORT, "--learner", "uniform", "--constraints", "none,scaled", "--set", "noise.spread=0.2,0.5",
        "--set", "problem.budget=4", "--out", "here",
    )  # fmt: skip
    named = ["constant constraints", "scaled constraints (spread=0.2)", "scaled constraints (spread=0.5)"]
    titles = [f"media-streaming (budget=4), fixed losses, {which}" for which in named]
    assert code == 0
    assert [line for line in out.splitlines() if " losses" in line] == [f"{title}, learner uniform" for title in titles]
    for k, title in enumerate(titles, 1):
        assert f"<!-- {title} · uniform · " in Path(f"here/picture-{k}.svg").read_text()


@pytest.mark.parametrize(("text", "number"), [("1e2", 100), ("1_000", 1000), ("2.5e3", 2500), ("7", 7)])
def test_whole_numbers_may_be_written_with_underscores_and_exponents(text: str, number: int) -> None:
    assert options.whole("", 1, 10_000).parser(text) == number


def test_a_finished_run_is_shown_again_without_being_played(first: Run) -> None:
    shutil.copytree(first.folder, "here")
    code, out, err = invoke(*UCPD, "--out", "here")
    assert code == 0
    assert err == "1 of 1 runs are finished and kept; --fresh starts them over\n"
    assert out == first.out.replace(str(Path("runs", first.folder.name)), "here")
    assert contents(Path("here")) == contents(first.folder)

    code, _, err = invoke(*UCPD, "--out", "here", "--seed", "1")
    assert code == 0
    assert err.startswith("changed since it was last run: seeds 0, now 1\n")
    assert set(read(Path("here"))["seed"]) == {"1"}
    assert len(list(Path("here/runs").iterdir())) == 2

    assert invoke(*UCPD, "--out", "here", "--fresh")[2].endswith("playing 40 episodes\n")


def test_an_interrupted_command_continues(first: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_after(25, monkeypatch, KeyboardInterrupt):
        result = CliRunner().invoke(app, [*UCPD, "--checkpoint-every", "0"])
        assert result.exit_code != 0
    assert invoke(*UCPD)[0] == 0
    assert contents(Path("runs", first.folder.name)) == contents(first.folder)
    [folder] = Path("runs", first.folder.name, "runs").iterdir()
    assert "continues after episode 25" in (folder / "log.txt").read_text()


def test_other_learners_have_another_folder() -> None:
    five = [
        Study(problems=["random"], learners=["uniform", "ucpd", "o-reps", "uc-o-reps", last], seeds=[0])
        for last in ("hindsight", "opt-cmdp")
    ]
    names = [folder_name(study) for study in five]
    assert all(name.startswith("random-5-learners-T20000-seed0-") for name in names)
    assert names[0] != names[1]
    assert folder_name(Study(problems=["random"], learners=["ucpd"], seeds=[3])) == "random-ucpd-T20000-seed3"
    scaled = with_values(Study(problems=["random"], learners=["ucpd"], seeds=[3]), ["learner.radius_scale=0.1"])
    assert folder_name(scaled).startswith("random-ucpd-T20000-seed3-")


def test_a_study_from_a_file_and_what_it_would_take() -> None:
    Path("radii.toml").write_text(
        'problems = ["media-streaming"]\nlearners = ["uniform"]\nlosses = ["fixed", "switching"]\nepisodes = 20\n'
    )
    code, out, _ = invoke("sweep", "radii.toml", "--dry-run")
    assert code == 0
    assert out.count("to play") == 3 and "2 runs, 40 episodes in all; 2 to play" in out
    assert "MB of memory" in out
    assert not Path("runs").exists()

    code, out, _ = invoke("sweep", "radii.toml", "--jobs", "1")
    assert code == 0
    assert "media-streaming, fixed losses" in out and "media-streaming, switching losses" in out
    assert "table    runs/radii/table.csv" in out
    assert sorted(contents(Path("runs/radii"))) == ["study.toml", *SUMMARIES, "table.csv", "table.parquet"]
    assert "all are finished" in invoke("sweep", "radii.toml", "--dry-run")[1]

    code, out, err = invoke("sweep", "runs/radii/study.toml", "--jobs", "1")  # goes on where it is
    assert (code, err) == (0, "2 of 2 runs are finished and kept; --fresh starts them over\n")
    assert not Path("runs/study").exists()


def test_names_are_completed() -> None:
    assert options.complete("learners")("uniform,opt-c") == ["uniform,opt-cmdp"]
    assert "edge-cloud" in options.complete("problems")("edge")
    assert "scaled" in options.complete("noises")("")
    assert "--install-completion" in invoke("--help")[1]


def test_an_unknown_learner_among_several_is_named_with_the_nearest() -> None:
    code, out, err = invoke(*SHORT, "--learner", "uniform", "--learner", "ucdp")
    assert (code, out) == (2, "")
    assert "'ucdp'; did you mean 'ucpd'?" in err
    assert not list(Path.cwd().iterdir())


def test_losses_are_chosen_on_the_command_line() -> None:
    code, out, _ = invoke(*UCPD, "--losses", "drifting")
    assert code == 0
    assert "drifting" in out
    history = run(make("media-streaming", losses="drifting"), episodes=40)
    table = read(Path("runs/media-streaming-drifting-ucpd-T40-seed0"))
    assert [float(cell) for cell in table["loss"]] == history["loss"].tolist()


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
        (["run", "media-streaming", "--episodes", "1.5"], "--episodes"),
        ([*SHORT, "--noise", "loud"], "'loud'"),
        ([*SHORT, "--set", "learner.radus_scale=1"], "'radius_scale'"),
        ([*SHORT, "--backend", "cray"], "cray"),
        ([*SHORT, "--learner", ","], "--learner ',' names nothing"),
        ([*SHORT, "--learner", "ucpd", "--learner", ""], "--learner '' names nothing"),
        ([*SHORT, "--losses", " , "], "--losses ' , ' names nothing"),
        ([*SHORT, "--noise", ","], "--noise ',' names nothing"),
        (["run", ",", "--episodes", "40"], "no problem ','"),
        (["run", "", "--episodes", "40"], "no problem ''"),
        ([*SHORT, "--records", "10000001"], "--records"),
        ([*SHORT, "--seeds", "1000001"], "--seeds"),
        ([*SHORT, "--seeds", "100000"], "200000 runs or more; at most 100000"),
        ([*SHORT, "--seed", str(2**53 + 1)], "--seed"),
        (["run", "media-streaming", "--episodes", "1e99"], "--episodes"),
        ([*SHORT, "--address", "tcp://here"], "--address"),
        (["run", "media-streaming", "--jobs", "0"], "--jobs"),
        (["sweep", "nowhere.toml"], "there is no file nowhere.toml"),
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


def test_a_folder_with_other_files_is_not_touched() -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter1.tex").write_text("words")
    code, _, err = invoke(*SHORT, "--out", "thesis")
    assert code == 2
    assert "thesis" in err
    assert [path.name for path in Path("thesis").iterdir()] == ["chapter1.tex"]


def test_a_failed_run_is_one_line_and_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Play) -> None:
        raise ConvergenceError("stopped at a flow residual of 1\nabove its tolerance")

    monkeypatch.setattr(Play, "step", fail)
    code, out, err = invoke(*UCPD)
    assert (code, out) == (1, "")
    began, words = err.splitlines()
    assert began == "playing 40 episodes"
    assert words.startswith("tightrope: media-streaming-ucpd-T40-seed0-")
    assert words.endswith(": stopped at a flow residual of 1 above its tolerance")


def test_results_are_on_disk_and_printed_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(figures, "draw", stumble)
    result = CliRunner().invoke(app, [*UCPD, "--out", "here"])
    assert isinstance(result.exception, ZeroDivisionError)
    assert "table    here/table.csv" in result.stdout
    assert sorted(contents(Path("here"))) == ["study.toml", *SUMMARIES, "table.csv", "table.parquet"]


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Play) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Play, "step", fail)
    assert isinstance(CliRunner().invoke(app, UCPD).exception, ZeroDivisionError)


def test_list_shows_every_kind_with_its_names() -> None:
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
    assert "  Zimin & Neu (NIPS 2013)  " in line
    assert line.endswith("  published")
    assert "Osband et al. (NIPS 2013)  " in out  # of two publications the first
    code, out, _ = invoke("list", "problems")
    [line] = [line for line in out.splitlines() if line.startswith("edge-cloud ")]
    assert line.split()[1:4] == ["318", "12", "2"]
    assert line.endswith("Wang et al. 2015")


def test_version_prints_the_version() -> None:
    assert invoke("--version") == (0, f"tightrope {__version__}\n", "")


def test_help_imports_no_numerical_packages_and_workers_none_that_they_do_not_need(tmp_path: Path) -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from tightrope.cli.commands import app\n"
        "for arguments in (['--help'], ['run', '--help'], ['sweep', '--help'], ['--version']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "print(sorted({'numpy', 'highspy', 'matplotlib', 'joblib', 'msgspec'} & set(sys.modules)))\n"
        "import tightrope.lab.engines\n"  # what a worker of a study imports
        "print(sorted({'matplotlib', 'joblib'} & set(sys.modules)))"
    )
    with python(code, tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("[]\n[]\n", "")


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
    arguments = [
        "run",
        "media-streaming",
        "--episodes",
        "50000000",
        "--learner",
        "ucpd",
        "--seeds",
        str(seeds),
        "--jobs",
        "2",
    ]
    # who starts the tests in the background has Ctrl-C ignored, and children inherit that
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from tightrope.cli import main; sys.argv[1:] = {arguments}; main()"
    )
    with python(code, tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("playing")
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=60)  # until every process that could write there has ended
    told = f"tightrope: {words}; the same command continues from the last checkpoint\n"
    assert (process.returncode, out, err) == (128 + number, "", told)


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("tightrope")
    done = subprocess.run([command, "list", "problems"], capture_output=True, text=True, check=True)
    assert done.stdout == invoke("list", "problems")[1]
    assert cli.main.__module__ == "tightrope.cli"


@pytest.mark.parametrize("module", ["tightrope", "tightrope.cli"])
def test_the_command_can_be_run_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == invoke("--version")[1]


@pytest.mark.parametrize("place", ["tables/loss.csv", "../loss.csv"])
def test_a_table_that_lies_elsewhere_makes_another_problem_when_it_is_edited(place: str) -> None:
    assert invoke("new", "mine")[0] == 0
    table = Path("mine", place)
    table.parent.mkdir(exist_ok=True)
    Path("mine/loss.csv").rename(table)
    toml = Path("mine/problem.toml")
    toml.write_text(toml.read_text().replace('"loss.csv"', f'"{place}"'))
    assert invoke("run", "mine", "--episodes", "5", "--learner", "uniform")[0] == 0
    [results] = Path("runs/mine-uniform-T5-seed0/runs").glob("*/history.csv")
    before = results.read_bytes()
    table.write_text(table.read_text().replace("50", "49", 1))
    code, _, err = invoke("run", "mine", "--episodes", "5", "--learner", "uniform")
    assert code == 0
    assert "the files of mine were edited" in err
    assert results.read_bytes() == before
    assert len(list(results.parents[1].iterdir())) == 2


def test_the_default_learners_are_ucpd_practical_and_ucpd() -> None:
    code, out, _ = invoke("run", "media-streaming", "--episodes", "2000", "--jobs", "1")
    assert code == 0
    spent = [line.split() for line in out.splitlines()[3:5]]
    assert [line[0] for line in spent] == ["ucpd-practical", "ucpd"]
    assert float(spent[0][1]) < float(spent[1][1])
    assert "OVER" in spent[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "learner"], "there is no list of 'learner'; did you mean 'learners'? (known: "),
        (["list", "learners", "ucpd-practcal"], "there is no learner 'ucpd-practcal'; did you mean 'ucpd-practical'?"),
        (["list", "problems", "edge"], "there is no problem 'edge'"),
        (["run", "mine/loss.csv"], "mine/loss.csv is a file; give the folder of a problem, which holds problem.toml"),
        (["run", "study.toml"], "study.toml is a file; .*; to run a study: tightrope sweep study.toml"),
        (["sweep", "mine"], "mine is a problem, not a study; to run it: tightrope run mine"),
        (["sweep", "mine/problem.toml"], "mine/problem.toml is a problem, not a study; to run it: tightrope run mine"),
        (["sweep", "several"], "several is not the folder of a study; it holds these: several/a, several/b"),
        (["report", "several"], "several is not the folder of a study; it holds these: several/a, several/b"),
        (["watch", "several"], "several is not the folder of a study; it holds these: several/a, several/b"),
        (["run", "mine", "--episode", "5"], "--episode; did you mean --episodes? (see"),
        (["run", "mine", "--episodes", "-5"], "'--episodes': '-5' is too small; the least is 1 (see"),
        (["run", "mine", "--episodes", "1e99"], "'--episodes': '1e99' is too large; the most is 9007199254740992 (see"),
        (["run", "mine", "--episodes", "many"], "'--episodes': 'many' is not a whole number (see"),
        (
            ["run", "mine", "--budget", "technican=3"],
            "no problem in the study has the budget 'technican'; did you",
        ),
        (["run", "mine", "--budget", "technician"], "--budget technician: expected the name of a budget and its limit"),
        (
            ["run", "mine", "--budget", "technician=-1,3"],
            "technician -1: a budget of -1 hours for 'technician' cannot be met: every policy uses at least 0",
        ),
        (["run", "nowhere"], "there is no folder and no problem 'nowhere'"),
        (["run", "several/a"], "several/a is a study, not a problem; to run it: tightrope sweep several/a"),
        (["run", "random", "--out", "study.toml"], "cannot write to the folder study.toml: it is a file; choose"),
        (["run", "random", "--backend", "threads"], "'--backend': 'threads' is not one of 'processes', 'loky',"),
        (["run", "random", "--checkpoint-every", "-1"], "'--checkpoint-every': it must be greater than or equal to 0"),
        (["run", "random", "--tensorboard", "study.toml"], "cannot write TensorBoard logs to study.toml: File exists"),
        (["sweep", "random"], "random is a problem, not a study; to run it: tightrope run random"),
        (["report", "several/a"], "no run in several/a has results yet; to continue the study: tightrope sweep"),
        (["report", "mine"], "mine is a problem, not the folder of a study; to run it: tightrope run mine"),
        (["watch", "mine"], "mine is a problem, not the folder of a study; to run it: tightrope run mine"),
        (["watch", "study.toml"], "study.toml is a file; give the folder of a study"),
    ],
)
def test_a_mistake_is_answered_with_the_remedy(arguments: list[str], words: str) -> None:
    assert invoke("new", "mine")[0] == 0
    Path("study.toml").write_text("problems = ['random']")
    for name in ("a", "b"):
        Path("several", name).mkdir(parents=True)
        Path("several", name, "study.toml").write_text("problems = ['random']")
    code, out, err = invoke(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(".*".join(map(re.escape, words.split(".*"))), err), err


def test_list_shows_the_options_of_one_learner_problem_loss_sequence_and_constraint_law() -> None:
    code, out, _ = invoke("list", "learners", "ucpd-practical")
    assert code == 0
    assert out.startswith("ucpd-practical: UCPD for practice")
    assert re.search(r"^prudence +0\.5 +z, the number of standard errors", out, re.MULTILINE)
    assert re.search(r"^ties +true ", out, re.MULTILINE)
    assert "set an option with: --set learner.OPTION=VALUE" in out
    assert re.search(r"^alpha +published +α", invoke("list", "learners", "ucpd")[1], re.MULTILINE)
    assert "it has no options" in invoke("list", "learners", "uniform")[1]
    out = invoke("list", "problems", "edge-cloud")[1]
    assert re.search(r"^delay +14\.4 hops$", out, re.MULTILINE) and re.search(r"^n_steps +12$", out, re.MULTILINE)
    assert re.search(r"^period +500$", invoke("list", "losses", "switching")[1], re.MULTILINE)
    assert re.search(r"^spread +0\.25$", invoke("list", "noises", "scaled")[1], re.MULTILINE)


def test_every_name_that_is_listed_can_be_shown() -> None:
    for kind in LISTS:
        for name in names(kind):
            assert details(kind, name)[0].startswith(f"{name}: ")


def test_a_problem_in_files_can_be_given_by_its_problem_toml() -> None:
    assert invoke("new", "mine")[0] == 0
    code, out, _ = invoke("run", "mine/problem.toml", "--episodes", "5", "--learner", "uniform", "--jobs", "1")
    assert code == 0 and "table    runs/mine-uniform-T5-seed0/table.csv" in out
    code, _, err = invoke("run", "mine", "--episodes", "5", "--learner", "uniform", "--jobs", "1")
    assert (code, err) == (0, "1 of 1 runs are finished and kept; --fresh starts them over\n")
    assert invoke("sweep", "runs/mine-uniform-T5-seed0", "--jobs", "1")[2] == err
    assert invoke("check", "mine/problem.toml", "--episodes", "50")[1] == invoke("check", "mine", "--episodes", "50")[1]


def test_a_budget_can_be_changed_and_swept_on_the_command_line() -> None:
    arguments = [*SHORT, "--learner", "uniform", "--budget", "fast steps=4,4.5", "--out", "here"]
    code, out, _ = invoke(*arguments)
    assert code == 0
    table = read(Path("here"))
    assert list(dict.fromkeys(table["budget.fast steps"])) == ["4", "4.5"]
    for limit in (4.0, 4.5):
        assert f"media-streaming, fixed losses, budget of fast steps {limit:g}, learner uniform" in out
        assert f"fast steps, of {limit:g}" in out
        problem = make("media-streaming").with_budgets({"fast steps": limit})
        violation = run(problem, "uniform", episodes=40)["violation"]
        rows = read(Path("here"), **{"budget.fast steps": f"{limit:g}"})
        assert [float(cell) for cell in rows["violation"]] == violation.tolist()
    assert [row["budgets"] for row in read_summary(Path("here"))] == ["fast steps 4", "fast steps 4.5"]
    code, _, err = invoke("sweep", "here/study.toml", "--jobs", "1")  # the limits are in the file
    assert (code, err) == (0, "2 of 2 runs are finished and kept; --fresh starts them over\n")
    assert invoke("report", "here")[0] == 0
    code, _, err = invoke(*SHORT, "--learner", "uniform", "--set", "budget.fast steps=3", "--out", "here")
    assert code == 0 and err.startswith("changed since it was last run: budget.")


def test_limits_of_a_folder_s_budgets_may_replace_limits_that_cannot_be_met() -> None:
    assert invoke("new", "mine")[0] == 0
    toml = Path("mine/problem.toml")
    toml.write_text(re.sub("budget = .*", "budget = -0.001", toml.read_text()))
    assert invoke("run", "mine", "--episodes", "5")[0] == 2
    assert invoke("run", "mine", "--episodes", "5", "--learner", "uniform", "--budget", "technician=2")[0] == 0


def read_summary(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_summary_is_written_as_csv_markdown_and_latex() -> None:
    code, out, _ = invoke(*SHORT, "--learner", "uniform,ucpd", "--seeds", "3", "--out", "here", "--losses", "fixed,iid")
    assert code == 0 and "summary  here/summary.csv (and .md, .tex)" in out
    rows = read_summary(Path("here"))
    assert [(row["losses"], row["learner"]) for row in rows] == [
        ("fixed", "uniform"), ("fixed", "ucpd"), ("iid", "uniform"), ("iid", "ucpd")
    ]  # fmt: skip
    for row in rows:
        which = {"losses": row["losses"], "learner": row["learner"]}
        regrets = [last(Path("here"), "regret", **which, seed=str(seed)) for seed in range(3)]
        assert float(row["regret"]) == pytest.approx(np.mean(regrets))
        assert min(regrets) <= float(row["regret_low"]) <= float(row["regret"]) <= float(row["regret_high"])
        uses = [last(Path("here"), "use_fast_steps", **which, seed=str(seed)) / 40 for seed in range(3)]
        assert float(row["use_fast_steps"]) == pytest.approx(np.mean(uses))
        assert row["seeds"] == "3" and row["episodes"] == "40"
    markdown = Path("here/summary.md").read_text()
    assert markdown.count("| learner | loss | LP value | regret | ") == 2
    latex = Path("here/summary.tex").read_text()
    assert latex.count(r"\begin{tabular}{lrrrrrr}") == 2 and r"\%" in latex
    for line in out.splitlines():
        if line.startswith(("uniform  ", "ucpd  ")) and "[" in line:
            cells = [cell.strip() for cell in re.split("  +", line)]
            assert " | ".join(cells) in markdown and " & ".join(cells) in latex


def test_names_are_escaped_in_the_summary() -> None:
    code, _, _ = invoke(*SHORT, "--learner", "ucpd", "--set", "learner.radius_scale=0.5,1", "--out", "here")
    assert code == 0
    assert r"ucpd radius\_scale=0.5 & 0.5 & " in Path("here/summary.tex").read_text()
    assert "| ucpd radius_scale=0.5 | 0.5 | " in Path("here/summary.md").read_text()


def test_the_confidence_scale_is_shown_only_where_one_is_not_1() -> None:
    assert "confidence scale" not in invoke(*SHORT, "--learner", "ucpd,uniform")[1]
    assert "confidence scale" in invoke(*SHORT, "--learner", "ucpd,uniform", "--set", "learner.radius_scale=0.5")[1]


def test_resuming_says_which_runs_continue_and_from_where(monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_after(25, monkeypatch, KeyboardInterrupt):
        assert CliRunner().invoke(app, [*UCPD, "--checkpoint-every", "0"]).exit_code != 0
    code, _, err = invoke(*UCPD)
    first, second = err.splitlines()
    assert code == 0 and second == "playing 40 episodes"
    assert re.fullmatch(r"continuing media-streaming-ucpd-T40-seed0-\w{8} after episode 25 of 40", first)


def commands() -> list[list[str]]:
    names = [str(command.name or command.callback.__name__) for command in app.registered_commands if command.callback]
    return [[], *([name] for name in names)]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_shows_flags_as_flags_and_no_types(command: list[str]) -> None:
    code, out, _ = invoke(*command, "--help")
    assert code == 0
    assert not re.search(r"<\w+[^>]*>|\{", out), out
    group: Any = get_command(app)
    for parameter in group.commands[command[0]].params if command else group.params:
        if parameter.name not in ("install_completion", "show_completion"):
            assert parameter.help and parameter.help.endswith("."), parameter.name


def test_recorded_days_are_all_played_unless_said_otherwise() -> None:
    assert options.episodes_of("ev-charging", None) == 3659
    assert options.episodes_of("ev-charging", 10) == 10
    assert options.episodes_of("edge-cloud", None) == options.episodes_of("some/folder", None) == 20_000


def test_a_learner_without_parameters_has_the_settings_none() -> None:
    assert "\nsettings: none\n" in invoke(*SHORT, "--learner", "uniform")[1]


def test_a_report_that_cannot_be_written_names_the_missing_folder() -> None:
    assert invoke(*SHORT, "--learner", "uniform", "--out", "here")[0] == 0
    code, _, err = invoke("report", "here", "--out", "nowhere/page.html")
    assert (code, err) == (1, "tightrope: nowhere/page.html: there is no folder nowhere\n")
