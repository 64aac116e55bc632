"""Reading of files from users: regular files of limited size, and TOML with the line of every key."""

import math
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import msgspec

from tightrope.arguments import printable, unknown
from tightrope.errors import InvalidInputError
from tightrope.storage.files import open_regular


def read_regular(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises
    ------
    InvalidInputError : if it is larger, or a folder, pipe or device, which are not opened.
    OSError : if the file does not exist or cannot be read.
    """
    with open_regular(path) as descriptor:
        _check_size(path, os.fstat(descriptor).st_size, limit)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1) or b""
        _check_size(path, len(data), limit)  # the file may have grown
        return data


def decode(path: Path, data: bytes) -> str:
    """Decode the text of a file; InvalidInputError names the line of the first byte that is not UTF-8."""
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
            f"{printable(path)} has {found}, and at most {most} MB are read; leave out rows or columns"
        )


#: Sums and products of larger numbers might overflow.
LARGEST_NUMBER = 1e100

#: The most bytes of a TOML file.
MOST_BYTES = 1_000_000

#: The time of tomllib is quadratic in the number of dots of a key; none of ours has more than three.
DEEP = re.compile(r"""(?<![\w"'-])(?>(?:[\w-]++|"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+')[ \t]*+\.[ \t]*+){50}""")

Part = TypeVar("Part", bound=msgspec.Struct)


class TomlFile:
    """The content of a TOML file as plain values, with the line of every key; unknown keys are errors."""

    about: ClassVar[str]  #: what such a file describes, for errors
    ours: ClassVar[tuple[str, ...]] = ()  #: keys that only tightrope writes, not suggested in errors

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
            raise InvalidInputError(f"{printable(path)} is not valid TOML: {error}") from error
        except RecursionError as error:
            raise InvalidInputError(f"{printable(path)}: brackets are nested too deeply; close them") from error

    def _bytes(self) -> bytes:
        try:
            return read_regular(self.path, MOST_BYTES)
        except FileNotFoundError:
            raise InvalidInputError(f"there is no file {printable(self.path)}") from None
        except OSError as error:
            raise InvalidInputError(f"{printable(self.path)} cannot be read: {error.strerror or error}") from error

    def where(self, *keys: str) -> str:
        """Return the path of the file, with the line of this key if it has one."""
        line = _line_of(self.text, keys)
        return printable(self.path) if line is None else f"{printable(self.path)}, line {line}"

    @contextmanager
    def blaming(self, *keys: str, when: bool = True) -> Iterator[None]:
        """Prefix any InvalidInputError raised inside with the place of this key, if `when`."""
        try:
            yield
        except InvalidInputError as error:
            if not when:
                raise
            raise type(error)(f"{self.where(*keys)}: {error}") from error

    def _check_numbers(self, content: Any, *keys: str) -> None:
        """Refuse inf, nan and huge numbers, which TOML allows."""
        if isinstance(content, float) and not math.isfinite(content):
            raise InvalidInputError(f"{self.where(*keys)}: {content} in {'.'.join(keys)}; expected a finite number")
        if isinstance(content, int | float) and abs(content) > LARGEST_NUMBER:
            raise InvalidInputError(
                f"{self.where(*keys)}: the number in {'.'.join(keys)} is too large; choose a larger unit"
            )
        if isinstance(content, dict):
            for key, inner in content.items():
                self._check_numbers(inner, *keys, key)
        if isinstance(content, list):
            for inner in content:
                self._check_numbers(inner, *keys)

    def read(self, content: dict[str, Any], kind: type[Part], *keys: str) -> Part:
        """Convert a part of the file to a struct; errors name the line."""
        for key in content:
            if key not in kind.__struct_fields__:
                table = f"[{'.'.join(keys)}]" if keys else self.about
                known = [field for field in kind.__struct_fields__ if field not in self.ours]
                raise unknown(f"{self.where(*keys, key)}: {table} has no key", key, known)
        try:
            return msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            inner, complaint = complaint_of(error, kind)
            named = ".".join([*keys, *inner])
            raise InvalidInputError(f"{self.where(*keys, *inner)}: {named}{': ' * bool(named)}{complaint}") from error


#: The words for the types in the messages of msgspec.
TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def complaint_of(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> tuple[list[str], str]:
    """Return the keys of the value for which msgspec made no `kind`, and what is wrong with it, in words."""
    complaint, _, path = str(error).partition(" - at ")
    keys = re.findall(r"[\w-]+", path.partition("[")[0])
    if found := re.fullmatch(r"Expected `([\w| ]+)`( of length)?( (?:[<>]=?)?.+?)?(?:, got (.+))?", complaint):
        kinds, length, limit, got = found.groups()
        expected = " or ".join(TYPES.get(name, name) for name in kinds.split(" | ") if name != "null")
        wrong = (got or "").strip("`")
        but = f", not {'a decimal number' if wrong == 'float' else TYPES.get(wrong, wrong)}" if got else ""
        return keys, f"expected {expected}{length or ''}{limit or ''}{but}"
    for field in msgspec.structs.fields(kind) if complaint.startswith("Invalid enum value") else ():
        if [field.name] == keys:
            return keys, f"{complaint.removeprefix('Invalid enum value ')} is not one of {get_args(field.type)}"
    complaint = complaint.replace("Object missing required field", "there is no")
    return keys, complaint.replace("Object contains unknown field", "there can be no").replace("`", "'")


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line of a key, or of the nearest table or key that contains it; None if there is none."""
    best: tuple[int, int] | None = None  # number of keys that match, line
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            parsed: Any = tomllib.loads(line)
        except (ValueError, RecursionError):
            # a line of a value that spans several lines
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
