"""The build backend: scikit-build-core, with a compiler from PyPI on machines that have none.

The hooks of PEP 517 are those of scikit-build-core. Where no C++ compiler is found, the build also requires `ziglang`,
a wheel with a C++ compiler in it, and compiles with that. A compiler counts as found if the environment variable CXX
names it or one of `COMPILERS` is on the PATH. On Windows only clang counts: the core uses vector extensions that the
compiler of Visual Studio does not have.
"""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

COMPILERS = ("clang++",) if sys.platform == "win32" else ("c++", "g++", "clang++")

Settings = dict[str, Any] | None


def has_compiler() -> bool:
    """Return whether the machine has a C++ compiler that can build the core."""
    return bool(os.environ.get("CXX")) or any(shutil.which(name) for name in COMPILERS)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what a wheel needs to be built."""
    return [*backend.get_requires_for_build_wheel(config_settings), *_compiler_requirement()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return what an editable install needs to be built."""
    return [*backend.get_requires_for_build_editable(config_settings), *_compiler_requirement()]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel into a directory; return its name."""
    with _compiler():
        wheel: str = backend.build_wheel(wheel_directory, config_settings, metadata_directory)
    return wheel


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable install into a directory; return its name."""
    with _compiler():
        wheel: str = backend.build_editable(wheel_directory, config_settings, metadata_directory)
    return wheel


def _compiler_requirement() -> list[str]:
    return [] if has_compiler() else ["ziglang>=0.13"]


@contextlib.contextmanager
def _compiler() -> Iterator[None]:
    """Compile with ziglang inside the `with` statement, if the machine has no compiler."""
    if has_compiler():
        if sys.platform == "win32":
            os.environ.setdefault("CXX", "clang++")
            os.environ.setdefault("CMAKE_GENERATOR", "Ninja")
        yield
        return
    try:
        import ziglang
    except ImportError:
        sys.exit(
            "tightrope needs a C++20 compiler to build. Install g++ or clang++, name one in the environment variable "
            "CXX, or run `pip install ziglang`."
        )
    zig = Path(ziglang.__file__).parent / ("zig.exe" if sys.platform == "win32" else "zig")
    with tempfile.TemporaryDirectory(prefix="tightrope-zig-") as folder:
        tools = {name: _script(Path(folder), zig, name) for name in ("c++", "ar", "ranlib")}
        arguments = [f"-DCMAKE_AR={tools['ar']}", f"-DCMAKE_RANLIB={tools['ranlib']}"]
        before = dict(os.environ)
        os.environ["CXX"] = str(tools["c++"])
        os.environ["CMAKE_ARGS"] = shlex.join([*shlex.split(before.get("CMAKE_ARGS", "")), *arguments])
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _script(folder: Path, zig: Path, name: str) -> Path:
    """Write a script that runs one of zig's tools, since CMake wants a program without arguments."""
    if sys.platform == "win32":
        script, text = folder / f"zig-{name}.bat", f'@"{zig}" {name} %*\r\n'
    else:
        script, text = folder / f"zig-{name}", f'#!/bin/sh\nexec {shlex.quote(str(zig))} {name} "$@"\n'
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    return script
