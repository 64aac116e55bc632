"""The build backend asks for a compiler from PyPI where, and only where, there is none."""

import sys
from pathlib import Path

import pytest

from tools import tightrope_build as backend


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing on its PATH but what is put into this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.chdir(Path(__file__).parent.parent)
    return tmp_path


@pytest.mark.parametrize("hook", [backend.get_requires_for_build_wheel, backend.get_requires_for_build_editable])
def test_ziglang_is_required_without_a_compiler(bare: Path, hook: object) -> None:
    assert any(requirement.startswith("ziglang") for requirement in hook())  # type: ignore[operator]


@pytest.mark.parametrize("name", backend.COMPILERS)
def test_ziglang_is_not_required_with_a_compiler(bare: Path, name: str) -> None:
    compiler = bare / name
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    assert not any("zig" in requirement for requirement in backend.get_requires_for_build_wheel())


def test_a_compiler_may_be_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "some-c++")
    assert not any("zig" in requirement for requirement in backend.get_requires_for_build_wheel())


def test_without_any_compiler_the_remedy_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(SystemExit, match="pip install ziglang"):
        backend.build_wheel(str(bare))
