"""Directories in memory, and a service in a thread that is called over a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durable.conftest import tmp_path  # noqa: F401
from tests.service.running import Running
from tightrope.problems.files import write_example


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The problem that `tightrope new` writes."""
    folder = tmp_path_factory.mktemp("problems") / "machine"
    write_example(folder)
    return folder


@pytest.fixture
def running(tmp_path: Path, machine: Path) -> Iterator[Running]:  # noqa: F811
    with Running(tmp_path / "machine", machine) as found:
        yield found
