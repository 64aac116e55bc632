"""Temporary directories in memory, where the system has them: tests do not wait for the disk. A PostgreSQL server."""

import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from fuzz.cluster import Cluster, programs

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server, if it is installed (.ci/run installs it)."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with Cluster() as found:
        yield found


@pytest.fixture
def database(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The address of an empty schema."""
    return cluster.address(f"test-{blake2b(request.node.nodeid.encode(), digest_size=8).hexdigest()}")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A new directory, or an empty schema of a database."""
    if request.param == "sqlite":
        return tmp_path / "it"
    found: str = request.getfixturevalue("database")
    return found
