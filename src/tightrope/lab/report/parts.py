"""What pages are made of: style sheets, scripts, and content that no browser takes for anything else."""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

ASSETS = files("tightrope.lab.report") / "assets"

#: In the order in which they are put into a page; the library first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "figures.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # to be kept with every copy

#: As JSON and JavaScript read them, and HTML does not.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def as_json(content: Mapping[str, Any]) -> str:
    """As short as it can be; characters that are half of one, as names of files may hold, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def whole_page(title: str, content: Mapping[str, Any], script: str, *, live: bool) -> str:
    """A page that needs no other file; nothing in `content` can end its element or run, whatever characters are in it.

    `script` draws it, and may ask for what is new if it is `live`.
    """
    return Template(asset("page.html")).substitute(
        title=escape(title),
        connect="'self'" if live else "'none'",
        styles="\n".join(map(asset, STYLES)),
        scripts="\n".join([*map(asset, SCRIPTS), script]),
        licence=asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )


def asset(name: str) -> str:
    """One of the files."""
    return (ASSETS / name).read_text("utf-8")
