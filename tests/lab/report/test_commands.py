"""The commands: report, watch, and --watch."""

import re
import signal
import urllib.request
from pathlib import Path

from typer.testing import CliRunner

from tests.lab.report.folders import write_study
from tests.processes import python
from tightrope.cli.commands import app


def test_report_writes_the_page_and_the_figures(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd",), n_seeds=1)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--figures", "svg"])
    page, *figures = done.stdout.split()
    assert done.exit_code == 0 and page == str(tmp_path / "report.html") and Path(page).is_file()
    assert len(figures) == 7 and all(Path(path).is_file() for path in figures)
    there = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "there.html")])
    assert there.exit_code == 0 and (tmp_path / "there.html").read_bytes() == Path(page).read_bytes()


def test_report_and_watch_of_nothing_are_refused(tmp_path: Path) -> None:
    for command in ("report", "watch"):
        refused = CliRunner().invoke(app, [command, str(tmp_path / "nowhere")])
        assert refused.exit_code == 2 and "nowhere" in refused.stderr


def test_watch_serves_until_it_is_ended(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd",), n_seeds=1)
    code = "import sys; from tightrope.cli import main; sys.argv[1:] = ['watch', '.']; main()"
    with python(code, tmp_path) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert "ucpd" in urllib.request.urlopen(address, timeout=60).read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_run_can_be_watched(tmp_path: Path) -> None:
    arguments = ["run", "media-streaming", "--learner", "uniform", "--episodes", "20", "--jobs", "1", "--watch"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "here")])
    assert done.exit_code == 0 and re.search(r"live page: http://127\.0\.0\.1:\d+/", done.stderr)
