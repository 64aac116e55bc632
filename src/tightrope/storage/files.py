"""Files of a run: each is written whole (`replacing`), and its folder belongs to that run alone."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope import __version__
from tightrope.errors import InvalidInputError
from tightrope.storage.replacing import is_temporary, lock, replacing

#: The file that says which run a folder holds.
SETTINGS = "settings.json"


def write_bytes(path: Path, data: bytes) -> None:
    """`Path.write_bytes`, through `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Indented JSON with a final newline, through `replacing`; NaN and infinity are refused."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    # a name that is not UTF-8 has characters that cannot be encoded; escaped, as JSON knows it, they read back
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_csv(path: Path, columns: Mapping[str, NDArray[np.float64]]) -> None:
    """A heading and one line per record, through `replacing`; every number reads back to the same bits."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(repr(value).removesuffix(".0") for value in row) for row in rows)]
    write_bytes(path, ("\n".join(lines) + "\n").encode())


@contextmanager
def claim_folder(folder: Path, request: Mapping[str, Any]) -> Iterator[bool]:
    """Make `folder` for the run that `request` asks for; yield whether it held that same run before.

    A folder with anything else in it is refused, another run of ours included: nothing is ever overwritten except by
    the run that wrote it. Until the block ends, nobody else can claim the folder.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(folder))
            new = all(is_temporary(path) for path in folder.iterdir())
            if new:
                write_json(folder / SETTINGS, {"tightrope": __version__, "request": request})
            there = _request_of(folder)
        except OSError as error:
            raise InvalidInputError(f"cannot write a run to the folder {folder}: {error.strerror}") from error
        if there is None:
            raise InvalidInputError(f"{folder} holds files that are no run of tightrope; choose another with --out")
        for key in {**request, **there}:
            if request.get(key) != there.get(key):
                raise InvalidInputError(
                    f"{folder} holds another run ({key} {there.get(key)}, now {request.get(key)}); "
                    "choose another folder with --out, or delete that one"
                )
        yield not new


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Refuse a folder that somebody else holds."""
    if sys.platform == "win32":  # where folders cannot be locked
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if lock(descriptor, wait=False) is False:
            raise InvalidInputError(
                f"somebody else is writing to {folder}; wait until that is done, or choose another folder with --out"
            )
        yield
    finally:
        os.close(descriptor)


def _request_of(folder: Path) -> dict[str, Any] | None:
    """What the run in `folder` was asked to do; None if no run of ours wrote it."""
    try:
        settings = json.loads((folder / SETTINGS).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if not (isinstance(settings, dict) and "tightrope" in settings and isinstance(settings.get("request"), dict)):
        return None
    return dict(settings["request"])
