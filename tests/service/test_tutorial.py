"""Every command and every example of docs/how-to/service.md, in order."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.service import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "service.md").read_text("utf-8")
INSTALL = "pip install 'tightrope[service]'\n"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_every_command_of_the_tutorial(tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|json|python)\n(.*?)```", PAGE, re.DOTALL)
    assert blocks[0] == ("sh", INSTALL)  # we are installed
    assert len([1 for kind, _ in blocks if kind == "sh"]) == 13
    assert len([1 for kind, _ in blocks if kind == "python"]) == 3
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "tightrope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tightrope.cli "$@"\n')
    (commands / "tightrope").chmod(0o755)
    script, expected = ["set -euo pipefail", "trap 'kill -9 $! 2>/dev/null || true' EXIT"], []
    for kind, text in blocks[1:]:
        if kind == "sh":
            script += [text, "echo; echo ---"]
        elif kind == "python":
            script += [f"{sys.executable} -W error <<'PYTHON'\n{text}PYTHON", "echo; echo ---"]
        else:
            expected.append((sum(line == "echo; echo ---" for line in script) - 1, json.loads(text)))
    port = str(free_port())
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script).replace("8000", port)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = done.stdout.split("---\n")
    for number, said in expected:
        found = json.loads(outputs[number].strip().splitlines()[-1])
        assert shape(found) == shape(said)
    assert '"answer":"learned"' in done.stdout and '"answer":"already"' in done.stdout
    assert "given up" in done.stdout  # by the asynchronous client
    [spent] = json.loads((tmp_path / "before.json").read_text())
    assert (spent["spent"], spent["allowed"]) == pytest.approx((8, 2))


def shape(value: object) -> object:
    """Return the keys, and the values that do not depend on the run."""
    if isinstance(value, list):
        return [shape(one) for one in value]
    assert isinstance(value, dict)
    varying = ("episode", "detail", "action", "action_name")
    rounded = {key: round(one, 2) if key == "price" else one for key, one in value.items()}
    return {key: None if key in varying else one for key, one in rounded.items()}
