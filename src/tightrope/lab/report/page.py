"""The page: one file with all that it needs, which asks nobody for anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tightrope.lab.report.content import content as content_of
from tightrope.lab.report.parts import asset, whole_page
from tightrope.storage.files import write_bytes


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    write_bytes(path, page(content_of(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """The whole page."""
    return whole_page(str(content["title"]), content, asset("page.js"), live=bool(content["live"]))
