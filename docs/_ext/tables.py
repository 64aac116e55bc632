"""Cells of tables say what they hold, for site.css: numbers stay on one line, prose gets room on a phone.

A heading without text is no heading to a screen reader: a row of them is removed, a single one gets a hidden name.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NUMBER = re.compile(r"[-−+±<>≤≥~]?\s?\d")


class Cells(SphinxPostTransform):
    """Adds the class `number` or `prose` to a cell, and mends empty headings."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for head in list(self.document.findall(nodes.thead)):
            if not head.astext().strip():
                head.parent.remove(head)
            for cell in head.findall(nodes.entry):
                if not cell.astext().strip():
                    cell += nodes.inline("", "row", classes=["visually-hidden"])
        for cell in self.document.findall(nodes.entry):
            text = cell.astext()
            if len(text) > 40 and len(cell.parent) > 2:
                cell["classes"].append("prose")
            elif NUMBER.match(text) and len(text) <= 32:
                cell["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(Cells)
    return {"parallel_read_safe": True}
