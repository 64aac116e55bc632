"""Folders as archives: `pack` makes one, with the same bytes for the same files; `unpack` restores it."""

import gzip
import tarfile
from pathlib import Path


def pack(folder: Path, archive: Path) -> None:
    """Write all files below `folder` to the tar.gz `archive`, without times and owners."""
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                member.size = path.stat().st_size
                with path.open("rb") as content:
                    tar.addfile(member, content)


def unpack(archive: Path, folder: Path) -> None:
    """Restore below `folder` what `pack` wrote."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def top_folders(archive: Path) -> list[str]:
    """The names of the folders in which the files of the archive are, sorted."""
    with tarfile.open(archive) as tar:
        return sorted({name.partition("/")[0] for name in tar.getnames()})
