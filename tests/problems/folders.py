"""A fresh copy of the example folder, and ways to change it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tightrope.cli.commands import app
from tightrope.problems.files import write_example


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, prog_name="tightrope")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def fresh_shop(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, in a working folder of its own."""
    monkeypatch.chdir(working_folder)
    write_example(Path("shop"))
    return Path("shop")


def rewrite(folder: Path, name: str, change: Callable[[str], str]) -> None:
    """Change the text of one file."""
    path = folder / name
    path.write_text(change(path.read_text("utf-8")), "utf-8")


def edit(folder: Path, name: str, *changes: tuple[str, str]) -> None:
    """Replace text that is there exactly once, in one file."""
    text = (folder / name).read_text("utf-8")
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    (folder / name).write_text(text, "utf-8")


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, "utf-8")


def refused(folder: Path) -> str:
    """What the command says about a damaged folder: exit code 2, one line, nothing written."""
    code, out, err = invoke("run", str(folder), "--episodes", "3")
    assert (code, out) == (2, ""), err
    assert err.startswith("tightrope: ")
    assert err.count("\n") == 1
    assert not Path("runs").exists()
    return err
