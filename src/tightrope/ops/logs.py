"""The log of the service: one line for each record, as text or as JSON, with the request that it is about.

A line contains no token, no body and no query string.
"""

import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

Format = Literal["text", "json"]

#: The request that is being answered: its id, address, method and path, and the name of the token.
REQUEST: ContextVar[dict[str, Any] | None] = ContextVar("request", default=None)

#: Seconds between two lines with the same key, and the number of keys that are remembered.
SELDOM, MOST_KEYS = 1.0, 10_000

log = logging.getLogger("tightrope.service")


class Formatter(logging.Formatter):
    """Formats records as text or as JSON, with the fields of the request and of `extra={"fields": …}`."""

    def __init__(self, format: Format) -> None:
        super().__init__()
        self._format = format

    def format(self, record: logging.LogRecord) -> str:
        """Return a line; a traceback adds lines in text, and a field in JSON."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {**(REQUEST.get() or {}), **getattr(record, "fields", {})}
        found = {"time": time, "level": record.levelname.lower(), "message": record.getMessage()} | fields
        if record.exc_info and record.exc_info[0] is not None:
            found["traceback"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        if self._format == "json":
            return msgspec.json.encode(found).decode()
        lines = found.pop("traceback", "")
        words = f"{found['time']} {found['level']}: {found['message']}"
        words += "".join(f" {name}={value}" for name, value in fields.items() if value != "")
        return f"{words}\n{lines}" if lines else words


def configure(level: str, format: Format) -> None:
    """Write records of this level and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter(format))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class Seldom:
    """Limits how often the same message is logged, so that one client cannot fill the log."""

    def __init__(self) -> None:
        self._seen: dict[object, tuple[float, int]] = {}  #: by key: when it was logged, and how often it occurred since

    def due(self, key: object, now: float) -> int | None:
        """Return how often a message was left out since it was logged, if it is due again; None if it is not."""
        logged, since = self._seen.get(key, (-SELDOM, 0))
        if now - logged < SELDOM:
            self._seen[key] = logged, since + 1
            return None
        if len(self._seen) >= MOST_KEYS:
            self._seen.clear()
        self._seen[key] = now, 0
        return since
