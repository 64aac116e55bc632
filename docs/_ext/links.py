"""Links from pages to files outside docs.

Pages are also read in the repository, so they link to ../src and to ../README.md. On the site a link to a page of the
root leads to its copy, and a link to any other file becomes its path. A link that is called like its file, such as
[glossary.md](glossary.md), is called like the page.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
#: Pages of the root that the site shows under another name.
COPIES = {
    "../CHANGELOG.md": "reference/changelog",
    "../CONTRIBUTING.md": "reference/contributing",
    "../README.md": "index",
}


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    depth = docname.count("/")

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        path, _, _ = target.partition("#")
        if target.startswith(("http:", "https:", "#", "mailto:")):
            return match[0]
        plain = path.replace("../", "", depth) if depth else path
        if plain in COPIES:
            return f"[{text}]({'../' * depth}{COPIES[plain]}.md)"
        if not plain.startswith("../"):
            return f"[]({target})" if text == Path(path).name and "#" not in target else match[0]
        plain = plain.removeprefix("../")
        if text.startswith("`"):
            return text
        return f"`{plain}`" if plain.endswith(text.replace("\\", "")) else f"{text} (`{plain}`)"

    text = re.sub(r"(?<!!)\[([^\]\[]*)\]\(([^)\s]+)\)", link, source[0])
    source[0] = re.sub(r"```csv\b", "```text", text)  # Pygments does not know it


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True}
