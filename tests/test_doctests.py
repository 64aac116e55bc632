"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import tightrope

PACKAGE = Path(tightrope.__file__).parent
MODULES = sorted(
    "tightrope"
    if path == PACKAGE / "__init__.py"
    else ".".join(["tightrope", *path.relative_to(PACKAGE).with_suffix("").parts])
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py" and ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_print_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name.removesuffix(".__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert (failed, tried > 0) == (0, True)


def test_there_are_modules_with_examples() -> None:
    assert len(MODULES) > 10
