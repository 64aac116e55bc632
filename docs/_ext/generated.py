"""Pages that are written at every build: the command line, the changes, and one page per problem and per learner."""

import re
from pathlib import Path

from gallery import gallery_pages
from sphinx.application import Sphinx


def command_line() -> str:
    """Return the reference of the command line in Markdown, from the help of every command."""
    import typer

    from tightrope.cli.commands import app

    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="tightrope")
    lines = ["# Command line", "", _text(group.help), "", _text(group.epilog or ""), ""]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = typer.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(inner))
        lines += [
            f"## tightrope {name}",
            "",
            _text(command.help),
            "",
            "```text",
            f"tightrope {name} {usage}",
            "```",
            "",
        ]
        records = [record for one in command.get_params(inner) if (record := one.get_help_record(inner))]
        for option, text in records:
            lines += [f"`{option}`", f": {_text(text) or 'No description.'}", ""]
    return "\n".join(lines)


def _text(text: str | None) -> str:
    """Escape what Markdown would read as markup; keep paragraphs."""
    paragraphs = [" ".join(part.split()) for part in (text or "").replace("\b", "").split("\n\n")]
    return "\n\n".join(
        "".join("\\" + letter if letter in "*_[]<>" else letter for letter in part) for part in paragraphs
    )


def copy_of(page: Path) -> str:
    """Return a page of the repository's root with links that hold in docs/reference."""
    text = page.read_text("utf-8").replace("](README.md)", "](../index.md)")
    return re.sub(r"\]\((?!https?:|#|\.\./|docs/)", "](../../", text).replace("](docs/", "](../")


def write(path: Path, text: str) -> None:
    """Write `text` unless it is there already, so that Sphinx reads only pages that changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def generate(app: Sphinx) -> None:
    source = Path(app.srcdir)
    write(source / "reference" / "command-line.md", command_line())
    for name in ("CHANGELOG", "CONTRIBUTING"):
        write(source / "reference" / f"{name.lower()}.md", copy_of(source.parent / f"{name}.md"))
    for name, text in gallery_pages():
        write(source / "gallery" / f"{name}.rst", text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True}
