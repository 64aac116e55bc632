"""`jit` leans on what numba keeps to itself: this fails when numba changes it, and stale kernels would be run."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tightrope.kernels import compile as compiling

INNER = """
from tightrope.kernels.compile import depend_on, jit

depend_on(__file__)

@jit
def inner(x):
    return x + {}
"""
OUTER = """
from inner_of_a_test import inner
from tightrope.kernels.compile import jit

@jit
def outer(x):
    return inner(x)
"""


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The outer module as a new process would have it: nothing compiled but what is on disk."""
    monkeypatch.setattr(compiling, "_sources", set())
    monkeypatch.setattr(compiling, "_caches", [])
    for name in ("inner_of_a_test", "outer_of_a_test"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


def test_a_kernel_is_read_from_disk_until_one_that_it_contains_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner_of_a_test.py").write_text(INNER.format("1"))
    (tmp_path / "outer_of_a_test.py").write_text(OUTER)
    assert imported(tmp_path, monkeypatch).outer(1) == 2

    again = imported(tmp_path, monkeypatch)
    assert again.outer(1) == 2
    assert sum(again.outer.stats.cache_hits.values()) == 1
    assert sum(again.outer.stats.cache_misses.values()) == 0

    (tmp_path / "inner_of_a_test.py").write_text(INNER.format("10"))
    assert imported(tmp_path, monkeypatch).outer(1) == 11
