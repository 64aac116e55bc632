"""Files from anywhere: regular ones, and no more of them than there is room for."""

import math
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from tightrope.arguments import printable, unknown
from tightrope.errors import InvalidInputError
from tightrope.storage.files import open_regular


def read_regular(path: Path, limit: int) -> bytes:
    """All of a regular file of at most `limit` bytes; anything else is refused unread, and never waited for.

    What the system says (there is no such file, it must not be read) is raised as OSError.
    """
    with open_regular(path) as descriptor:
        _check_size(path, os.fstat(descriptor).st_size, limit)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1) or b""
        _check_size(path, len(data), limit)  # it may have grown
        return data


def decode(path: Path, data: bytes) -> str:
    """The text of a file, refused with the line of the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # a byte-order mark is not counted in the position, but the lines are the same
        start = error.start + (len(data) - len(error.object))
        line = data.count(b"\n", 0, start) + 1
        raise InvalidInputError(
            f"{printable(path)}, line {line}: byte {data[start]:#04x} is not UTF-8; save the file in that encoding"
        ) from error


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        found, most = f"{size / 1e6:.1f} MB", f"{limit / 1e6:g}"
        raise InvalidInputError(
            f"{printable(path)} has {found}, and at most {most} are read; leave out what can be left out"
        )


#: Sums and products of larger numbers might overflow.
LARGEST_NUMBER = 1e100

#: How many bytes it may have.
MOST_BYTES = 1_000_000

#: Keys with so many dots take tomllib time that grows with their square; none of ours has more than three.
DEEP = re.compile(r"""(?<![\w"'-])(?>(?:[\w-]++|"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+')[ \t]*+\.[ \t]*+){50}""")

Part = TypeVar("Part", bound=msgspec.Struct)


class TomlFile:
    """What is in the file, as plain values, and on which line each stands."""

    about: ClassVar[str]  #: what such a file describes, in words
    ours: ClassVar[tuple[str, ...]] = ()  #: keys that are for us to write, and not told about

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = self._bytes()
        self.text = decode(path, self.data)
        if deep := DEEP.search(self.text):
            line = self.text.count("\n", 0, deep.start()) + 1
            raise InvalidInputError(
                f"{printable(path)}, line {line}: a key with more than 50 dots; none has more than three"
            )
        try:
            self.content = tomllib.loads(self.text)
            self._check_numbers(self.content)
        except InvalidInputError:
            raise
        except ValueError as error:  # of tomllib, or of Python for a number with thousands of digits
            raise InvalidInputError(f"{printable(path)} is no valid TOML: {error}") from error
        except RecursionError as error:
            raise InvalidInputError(f"{printable(path)}: brackets within brackets without end; close them") from error

    def _bytes(self) -> bytes:
        try:
            return read_regular(self.path, MOST_BYTES)
        except FileNotFoundError:
            raise InvalidInputError(f"there is no file {printable(self.path)}") from None
        except OSError as error:
            raise InvalidInputError(f"{printable(self.path)} cannot be read: {error.strerror or error}") from error

    def where(self, *keys: str) -> str:
        """The file, and the line of the key with this path if it has one of its own."""
        line = _line_of(self.text, keys)
        return printable(self.path) if line is None else f"{printable(self.path)}, line {line}"

    @contextmanager
    def blaming(self, *keys: str, when: bool = True) -> Iterator[None]:
        """Whatever input is refused inside is the fault of this key (when it is)."""
        try:
            yield
        except InvalidInputError as error:
            if not when:
                raise
            raise type(error)(f"{self.where(*keys)}: {error}") from error

    def _check_numbers(self, content: Any, *keys: str) -> None:
        """TOML knows inf and nan, and numbers of any size; nothing here can be any of them."""
        if isinstance(content, float) and not math.isfinite(content):
            raise InvalidInputError(f"{self.where(*keys)}: {content} in {'.'.join(keys)}; a number should be there")
        if isinstance(content, int | float) and abs(content) > LARGEST_NUMBER:
            raise InvalidInputError(
                f"{self.where(*keys)}: the number in {'.'.join(keys)} is too large to reckon with; choose a larger unit"
            )
        if isinstance(content, dict):
            for key, inner in content.items():
                self._check_numbers(inner, *keys, key)
        if isinstance(content, list):
            for inner in content:
                self._check_numbers(inner, *keys)

    def read(self, content: dict[str, Any], kind: type[Part], *keys: str) -> Part:
        """A part of the file as a struct, refused with the line that is wrong."""
        for key in content:
            if key not in kind.__struct_fields__:
                table = f"[{'.'.join(keys)}]" if keys else self.about
                known = [field for field in kind.__struct_fields__ if field not in self.ours]
                raise unknown(f"{self.where(*keys, key)}: {table} has no key", key, known)
        try:
            return msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            complaint, _, path = str(error).partition(" - at ")
            inner = re.findall(r"[\w-]+", path.partition("[")[0])
            named = ".".join([*keys, *inner])
            lacking = complaint.replace("Object missing required field", "there is no").replace("`", "'")
            raise InvalidInputError(
                f"{self.where(*keys, *inner)}: {lacking}" + (f" in {named}" if named else "")
            ) from error


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line of a key, or else of the nearest table or key that it is inside of; None at the top."""
    best: tuple[int, int] | None = None  # how many of the keys match, line
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            parsed: Any = tomllib.loads(line)
        except (ValueError, RecursionError):
            # the first line of a value that goes on, or a line inside one
            match = re.match(r"\s*([\w-]+)\s*=", line)
            parsed = {match[1]: None} if match else {}
        path = []
        while isinstance(parsed, dict) and len(parsed) == 1:
            key, parsed = next(iter(parsed.items()))
            path.append(key)
        if line.lstrip().startswith("["):
            table = full = path
        else:
            full = [*table, *path]
        depth = next((i for i, (a, b) in enumerate(zip(full, keys, strict=False)) if a != b), min(len(full), len(keys)))
        if path and depth and (best is None or depth > best[0]):
            best = depth, number
    return None if best is None else best[1]
