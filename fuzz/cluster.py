"""A private PostgreSQL server in a temporary folder, on a Unix socket, run by a user that is not root."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

#: Where Debian has the programs of the server.
DEBIAN = Path("/usr/lib/postgresql")

MEMORY = Path("/dev/shm")

#: A user without rights, for the server refuses to run as root.
NOBODY = 65534


def programs() -> Path | None:
    """Return the folder with initdb and postgres; None if PostgreSQL is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max((path.parent for path in DEBIAN.glob("*/bin/initdb")), default=None)


class Cluster:
    """A server of its own, with an empty database "tightrope", in a folder or in memory (/dev/shm)."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or (MEMORY if MEMORY.is_dir() else None)
        found = programs()
        assert found is not None, "PostgreSQL is not installed; on Debian: apt-get install postgresql"
        self._programs, self._folder = found, tempfile.TemporaryDirectory(prefix="pg-", dir=folder)
        self.folder = Path(self._folder.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._user = NOBODY if os.getuid() == 0 else os.getuid()
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        options = ["--auth=trust", "--username=tightrope", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._call("initdb", f"--pgdata={self.folder / 'data'}", *options)
        self.start()
        self._call("psql", "--host", str(self.folder), "-U", "tightrope", "-c", "CREATE DATABASE tightrope", "postgres")

    def address(self, schema: str = "") -> str:
        """Return the URL of the database, or of a schema in it."""
        return f"postgresql://tightrope@/tightrope?host={self.folder}" + (f"&schema={schema}" if schema else "")

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, capture_output=True, user=self._user, cwd="/", env=_environment())
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        command += ["-c", "listen_addresses=", "-c", "max_connections=50"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd="/", env=_environment(), start_new_session=True
            )
        ready = [str(self._programs / "pg_isready"), "-q", "-h", str(self.folder)]
        while subprocess.run(ready, env=_environment()).returncode:
            time.sleep(0.02)
            if self._process.poll() is not None:
                last = "\n".join((self.folder / "log").read_text().splitlines()[-5:])
                assert "shared memory block" in last, last  # of the processes of a killed server, which still end
                self.start()
                return

    def stop(self, signal: int) -> None:
        """End the server by a signal, SIGKILL included; what it left behind does not hinder the next start."""
        assert self._process is not None
        self._process.send_signal(signal)
        self._process.wait()

    def close(self) -> None:
        """Stop the server and delete its folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop(3)  # SIGQUIT: at once
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _environment() -> dict[str, str]:
    """Return ours without the variables of PostgreSQL, such as the address of another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
