"""Types of parameters in the Python reference, with links to the documentation of Python and NumPy.

The types come from the annotations. A public name is called as users call it, and an array without the type of its
elements. Builds are offline, so the names that are linked are listed in docs/inventories, one file for each project.
"""

import re
import zlib
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import tightrope

INVENTORIES = Path(__file__).parents[1] / "inventories"
#: Where each inventory leads.
SITES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "matplotlib": "https://matplotlib.org/stable",
}
#: What anything is written as that NumPy can make an array of.
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
#: Where a public class is defined, and how it is called.
PUBLIC = {
    f"{found.__module__}.{found.__qualname__}": f"tightrope.{name}"
    for name in dir(tightrope)
    if isinstance(found := getattr(tightrope, name), type)
}


def compiled(name: str) -> bytes:
    """Return docs/inventories/`name`.txt in the format of Sphinx: one line `name role page` for each name."""
    lines = []
    for line in (INVENTORIES / f"{name}.txt").read_text("utf-8").splitlines():
        full, role, page = line.split()
        lines.append(f"{full} {role} 1 {page} -\n")
    header = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n# The rest is compressed with zlib.\n"
    return header.encode() + zlib.compress("".join(lines).encode())


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """Write every inventory into `folder`, and return what intersphinx is to know of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SITES:
        (folder / f"{name}.inv").write_bytes(compiled(name))
    return {name: (url, str(folder / f"{name}.inv")) for name, url in SITES.items()}


def readable(annotation: str) -> str:
    """Return an annotation with arrays as arrays and public names as users write them."""
    inside = r"\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*\]"
    annotation = annotation.replace(ARRAY_LIKE, "~numpy.typing.ArrayLike")
    annotation = re.sub(rf"(~?numpy\.ndarray){inside}", r"\1", annotation)
    annotation = re.sub(r"~?typing\.Annotated\[((?:(?!Annotated).)*?), ~?msgspec\.Meta\([^)]*\)\]", r"\1", annotation)
    for defined, called in PUBLIC.items():
        annotation = re.sub(rf"(?<![\w.]){re.escape(defined)}(?!\w)", called, annotation)
    return re.sub(r"(?<![~\w.])tightrope\.", "~tightrope.", annotation)


def simplify(app: Sphinx, domain: str, kind: str, content: Element) -> None:
    for found in app.env.current_document.autodoc_annotations.values():
        found.update({name: readable(annotation) for name, annotation in found.items()})


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("object-description-transform", simplify, priority=400)  # before autodoc writes them
    return {"parallel_read_safe": True}
