"""Every command and every example of docs/how-to/service.md and docs/how-to/replicas.md, in order."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fuzz.cluster import Cluster, programs
from fuzz.service import free_port

ROOT = Path(__file__).parents[2]
INSTALL = "pip install 'tightrope[service]'\n"


def run(page: str, folder: Path, replaced: Mapping[str, str]) -> str:
    """Run the blocks of a page that are run, with other ports and addresses; return what they print.

    Each block of JSON is what the block before it prints, but for what varies.
    """
    text = (ROOT / "docs" / "how-to" / page).read_text("utf-8").replace(f"```sh\n{INSTALL}```", "")  # we are installed
    blocks = re.findall(r"(<!-- not run: .*? -->\n)?```(sh|json|python)\n(.*?)```", text, re.DOTALL)
    commands = folder / "bin"
    commands.mkdir()
    (commands / "tightrope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tightrope.cli "$@"\n')
    (commands / "tightrope").chmod(0o755)
    script, expected = ["set -euo pipefail", "trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT"], []
    for not_run, kind, code in blocks:
        if kind == "json":
            expected.append((sum(line == "echo; echo ---" for line in script) - 1, json.loads(code)))
        elif not not_run:
            script += [
                code if kind == "sh" else f"{sys.executable} -W error <<'PYTHON'\n{code}PYTHON",
                "echo; echo ---",
            ]
    commanded = "\n".join(script)
    for old, new in replaced.items():
        assert old in commanded
        commanded = commanded.replace(old, new)
    done = subprocess.run(
        ["bash", "-c", commanded],
        cwd=folder, env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = done.stdout.split("---\n")
    for number, said in expected:
        assert shape(json.loads(outputs[number].strip().splitlines()[-1])) == shape(said)
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_every_command_of_the_page_about_the_service(tmp_path: Path) -> None:
    said = run("service.md", tmp_path, {"8000": str(free_port())})
    assert said.count("---\n") == 15
    assert '"answer":"learned"' in said and '"answer":"already"' in said
    assert "given up" in said  # by the asynchronous client
    [spent] = json.loads((tmp_path / "before.json").read_text())
    assert (spent["spent"], spent["allowed"]) == pytest.approx((8, 2))


@pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("prometheus") is None or programs() is None,
    reason="no curl, Prometheus or PostgreSQL on this machine (.ci/run installs them)",
)
def test_every_command_of_the_page_about_replicas(tmp_path: Path) -> None:
    shutil.copy(ROOT / "deploy" / "alerts.yml", tmp_path)
    with Cluster() as cluster:
        replaced = {"postgresql://tightrope@localhost/tightrope": f"'{cluster.address()}'", "15s": "1s"}
        replaced |= {port: str(free_port()) for port in ("8001", "8002", "9091")}
        said = run("replicas.md", tmp_path, replaced)
    assert '"answer":"learned"' in said and said.count("---\n") == 8


def shape(value: object) -> object:
    """Return the keys, and the values that do not depend on the run."""
    if isinstance(value, list):
        return [shape(one) for one in value]
    assert isinstance(value, dict)
    varying = ("episode", "detail", "action", "action_name")
    rounded = {key: round(one, 2) if key == "price" else one for key, one in value.items()}
    return {key: None if key in varying else one for key, one in rounded.items()}
