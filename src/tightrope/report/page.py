"""The page: one file with all that it needs, which asks nobody for anything."""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from tightrope.report.content import content as content_of
from tightrope.storage.files import write_bytes

ASSETS = files("tightrope.report") / "assets"

#: In the order in which they are put into the page; the library first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "page.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # to be kept with every copy


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    write_bytes(path, page(content_of(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """The whole page; nothing in `content` can end its element or run, whatever characters are in it."""
    return Template(_asset("page.html")).substitute(
        title=escape(str(content["title"])),
        connect="'self'" if content["live"] else "'none'",
        styles="\n".join(map(_asset, STYLES)),
        scripts="\n".join(map(_asset, SCRIPTS)),
        licence=_asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )


#: As JSON and JavaScript read them, and HTML does not.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def as_json(content: Mapping[str, Any]) -> str:
    """As short as it can be; characters that are half of one, as names of files may hold, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def _asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")
