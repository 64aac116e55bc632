"""Tokens: who may send requests to a service, and what each of them may do.

A file of tokens is JSON. It contains names, roles and hashes, and no token:

    {"tokens": [{"name": "planner", "sha256": "9f86…", "roles": ["read", "act"], "expires": "2027-01-01T00:00:00Z"}]}

Tokens are made here, of 32 random bytes each, so that their plain SHA-256 cannot be reversed. Several may have the same
name: during a rotation the old one and the new one are valid.
"""

import os
import secrets
import sys
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from tightrope.arguments import printable, shown, unknown
from tightrope.errors import InvalidInputError, in_words
from tightrope.ops.api import ROLES, Role
from tightrope.storage.files import write_bytes

#: Characters; shorter tokens can be guessed.
SHORTEST_TOKEN = 16

#: The permissions that a file of secrets must not give: its group may read it, others have no access.
OPEN_MODE = 0o026

#: Characters of the name of a token, which is the author of events in the journal.
LONGEST_NAME = 100


class Token(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A token as the file stores it."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    roles: list[Role]
    expires: Annotated[datetime, Meta(tz=True)] | None = None

    @property
    def expired(self) -> bool:
        """Whether it has expired."""
        return self.expires is not None and self.expires <= datetime.now(UTC)


class TokenList(Struct, forbid_unknown_fields=True):
    """The contents of a file of tokens."""

    tokens: list[Token]


class Holder(NamedTuple):
    """The sender of a request: the name of its token, and the roles."""

    name: str
    roles: frozenset[Role]


#: The sender of every request to a service without tokens.
ANYBODY = Holder("", frozenset(ROLES))

#: The name of the token of `--token-file` and of the environment.
SINGLE = "token"


def private_text(path: Path, what: str) -> str:
    """Return the text of a file of secrets; refuse one that other users can read or change."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = S_IMODE(os.fstat(file.fileno()).st_mode)
            found = file.read()
    except (OSError, UnicodeDecodeError) as error:
        words = in_words(error) if isinstance(error, OSError) else f"{printable(path)}: not a text file"
        raise InvalidInputError(f"cannot read {what}: {words}") from error
    if sys.platform != "win32" and mode & OPEN_MODE:
        raise InvalidInputError(
            f"{what} in {printable(path)} can be read or changed by other users (mode {mode:o}); run: chmod 600 "
            f"{printable(path)}"
        )
    return found


def read(path: Path) -> list[Token]:
    """Return the tokens in a file."""
    text = private_text(path, "the tokens")
    try:
        found = msgspec.json.decode(text, type=TokenList).tokens
    except msgspec.DecodeError as error:
        words = f"{printable(path)} is not a file of tokens: {error}; make one with: tightrope token add"
        raise InvalidInputError(words) from error
    if bad := [one.name for one in found if not one.name.isprintable()]:
        raise InvalidInputError(f"{printable(path)}: the name {shown(bad[0])} has characters that cannot be printed")
    return found


def write(path: Path, tokens: list[Token]) -> None:
    """Replace a file of tokens; a new one can be read by its owner only."""
    data = msgspec.json.format(msgspec.json.encode(TokenList(tokens)), indent=2) + b"\n"
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # its mode is kept
    write_bytes(path, data)


def made(name: str, roles: Collection[Role], expires: datetime | None = None) -> tuple[Token, str]:
    """Return a new token as the file stores it, and the secret that its holder sends."""
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(f"the name is {shown(name)}; expected at most {LONGEST_NAME} printable characters")
    secret = secrets.token_urlsafe(32)
    return Token(name, _hash(secret.encode()), [role for role in ROLES if role in roles], expires), secret


def add(path: Path, name: str, roles: Collection[Role], expires: datetime | None = None) -> str:
    """Add a token to a file, which is created if needed; return its secret."""
    present = read(path) if path.exists() else []
    if any(one.name == name for one in present):
        raise InvalidInputError(f"there is a token {shown(name)} already; rotate or remove it, or choose another name")
    token, secret = made(name, roles, expires)
    write(path, [*present, token])
    return secret


def rotate(path: Path, name: str, keep: timedelta) -> str:
    """Add a new token with the name, the roles and the expiry of an old one, which stays valid for `keep`."""
    present = read(path)
    old = _called(name, present)
    token, secret = made(name, old[-1].roles, old[-1].expires)
    end = datetime.now(UTC) + keep
    kept = [
        msgspec.structs.replace(one, expires=min(end, one.expires or end)) if one.name == name else one
        for one in present
        if one.name != name or not one.expired
    ]
    write(path, [*kept, token])
    return secret


def remove(path: Path, name: str) -> None:
    """Remove all tokens of a name."""
    present = read(path)
    _called(name, present)
    write(path, [one for one in present if one.name != name])


def _called(name: str, tokens: list[Token]) -> list[Token]:
    found = [one for one in tokens if one.name == name]
    if not found:
        raise unknown("there is no token", name, [one.name for one in tokens])
    return found


def _hash(secret: bytes) -> str:
    return sha256(secret).hexdigest()


class Tokens:
    """The tokens of a service: a single one, those in a file, or both.

    Parameters
    ----------
    single : a token with all roles, None without one.
    path : a file of tokens, None without one. `refresh` reads it again when it has changed.
    """

    def __init__(self, single: str | None = None, path: Path | None = None) -> None:
        if single is not None and (len(single) < SHORTEST_TOKEN or not single.isascii()):
            raise InvalidInputError(f"the token must have at least {SHORTEST_TOKEN} characters, all ASCII")
        self._single = [] if single is None else [Token(SINGLE, _hash(single.encode()), list(ROLES))]
        self._path = path
        self._by_hash: dict[str, Token] = {}
        self._version: object = self  # no version of the file is equal to it
        self.trouble = ""  #: why the file could not be read again; the previous tokens stay valid meanwhile
        self.refresh()
        if self.trouble:
            raise InvalidInputError(self.trouble)

    def __bool__(self) -> bool:
        return bool(self._single) or self._path is not None

    def refresh(self) -> bool:
        """Read the file again if it has changed; return whether it has. After an error nothing changes."""
        version = self._found_version()
        if version == self._version:
            return False
        self._version = version
        try:
            tokens = [] if self._path is None else read(self._path)
        except InvalidInputError as error:
            self.trouble = str(error)
            return True
        self.trouble = ""
        self._by_hash = {one.sha256: one for one in [*tokens, *self._single]}
        return True

    def _found_version(self) -> object:
        """Return a value that changes with the file."""
        if self._path is None:
            return "no file"
        try:
            found = self._path.stat()
        except OSError as error:
            return error.errno
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def find(self, secret: bytes) -> Token | None:
        """Return the token with this secret, even if it has expired; None if there is none."""
        return self._by_hash.get(_hash(secret))
