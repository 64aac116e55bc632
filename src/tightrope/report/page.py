"""The page: one file with all that it needs, which asks nobody for anything."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from tightrope.report.content import content as content_of
from tightrope.report.parts import HARMLESS, LICENCE, SCRIPTS, STYLES, as_json, asset
from tightrope.storage.files import write_bytes


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    write_bytes(path, page(content_of(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """The whole page; nothing in `content` can end its element or run, whatever characters are in it."""
    return Template(asset("page.html")).substitute(
        title=escape(str(content["title"])),
        connect="'self'" if content["live"] else "'none'",
        styles="\n".join(map(asset, STYLES)),
        scripts="\n".join(map(asset, (*SCRIPTS, "page.js"))),
        licence=asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )
