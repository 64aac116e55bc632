"""The page of a study: one HTML file with styles, scripts and content, which makes no requests."""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from tightrope.storage.files import write_bytes

ASSETS = files("tightrope.lab.report") / "assets"

#: In the order in which they are put into a page; the library first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "figures.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # to be kept with every copy

#: Characters that could end the element of the content, as escapes of JSON.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    from tightrope.lab.report.content import content

    write_bytes(path, page(content(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """Return the page of this content as HTML."""
    return whole_page(str(content["title"]), content, asset("page.js"), live=bool(content["live"]))


def whole_page(title: str, content: Mapping[str, Any], script: str, *, live: bool) -> str:
    """Return a page that needs no other file; no text in `content` can end its element or be executed.

    Parameters
    ----------
    script : draws the content.
    live : whether the script may request new content from where the page came from.
    """
    return Template(asset("page.html")).substitute(
        title=escape(title),
        connect="'self'" if live else "'none'",
        styles="\n".join(map(asset, STYLES)),
        scripts="\n".join([*map(asset, SCRIPTS), script]),
        licence=asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )


def as_json(content: Mapping[str, Any]) -> str:
    """Return compact JSON in ASCII; lone surrogates, which file names may have, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (ASSETS / name).read_text("utf-8")
