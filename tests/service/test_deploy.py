"""The files in deploy/, and what they rely on: the names of metrics and the variables of the command."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from tests.service.running import Running
from tests.service.test_service import WEEK
from tightrope.cli.commands import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def serve_options() -> dict[str, str]:
    """The options of `tightrope serve`, by the variable of each."""
    command: Any = typer.main.get_command(app)
    serve = command.commands["serve"]
    with click.Context(serve, info_name="serve", **serve.context_settings) as context:
        prefix = context.auto_envvar_prefix
    return {f"{prefix}_{one.name.upper()}": one.opts[0] for one in serve.params if one.param_type_name == "option"}


def test_every_option_of_serve_has_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    command: Any = typer.main.get_command(app)
    serve, found = command.commands["serve"], serve_options()
    assert found["TIGHTROPE_SERVE_PORT"] == "--port" and len(found) > 15
    for variable in found:
        monkeypatch.setenv(variable, "7")
    with click.Context(serve, info_name="serve", **serve.context_settings) as context:
        for one in serve.params:
            if one.param_type_name == "option" and one.name != "help":
                assert one.resolve_envvar_value(context) == "7", one.name


def test_the_files_use_existing_variables() -> None:
    used = {
        name for path in DEPLOY.iterdir() for name in re.findall(r"TIGHTROPE_SERVE_[A-Z_]+\b", path.read_text("utf-8"))
    }
    assert len(used) >= 6
    assert used <= serve_options().keys()


def test_alerts_and_dashboard_use_existing_metrics(running: Running) -> None:
    running.tell(running.ask(), WEEK)
    running.send("PUT", "/learners/machine/challengers/other", {"learner": "uniform", "episodes": 9})
    running.get("/metrics")
    there = set(re.findall(r"(?m)^(tightrope_\w+)", running.get("/metrics").body))
    for name in ("alerts.yml", "alerts.test.yml", "dashboard.json"):
        used = set(re.findall(r"\btightrope_\w+", (DEPLOY / name).read_text("utf-8")))
        assert len(used) >= 5
        assert used <= there, name


def test_the_dashboard_has_a_place_for_every_panel() -> None:
    panels = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))["panels"]
    places = {(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}
    assert len(places) == len(panels) == len({one["id"] for one in panels}) == 12


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (Debian: apt install prometheus)")
@pytest.mark.parametrize(
    "given",
    ["check rules alerts.yml", "test rules alerts.test.yml", "check config --syntax-only prometheus.yml"],
)
def test_promtool_accepts_the_rules_and_their_tests(given: str) -> None:
    done = subprocess.run(["promtool", *given.split()], cwd=DEPLOY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_the_unit_is_hardened() -> None:
    line = "systemd-analyze security --offline=yes --threshold=20 --no-pager"
    done = subprocess.run([*line.split(), str(DEPLOY / "tightrope.service")], capture_output=True, text=True)
    if "Unknown" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("systemd-analyze has no offline mode")
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_a_system_call_that_the_unit_forbids_fails_and_does_not_kill() -> None:
    """NumPy's OpenBLAS calls mbind, which is one of @resources, when it is loaded."""
    lines = (DEPLOY / "tightrope.service").read_text("utf-8").splitlines()
    assert "SystemCallFilter=~@privileged @resources" in lines
    assert "SystemCallErrorNumber=EPERM" in lines
