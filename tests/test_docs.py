"""What the documents say is so: their examples run, their links lead somewhere, the names they use exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: Pages that the site generates; Sphinx checks links to them.
GENERATED = {DOCS / "reference" / f"{name}.md" for name in ("changelog", "command-line", "contributing")}
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(set(DOCS.rglob("*.md")) - GENERATED)]
#: A dotted name inside tightrope; `space.n_states` and the like are attributes of instances.
NAME = re.compile(
    r"`((?:confidence|core|lab|learners|model|ops|planning|problems|projection|storage|ties|units|space(?=\.[A-Z]))(?:\.\w+)+)`"
)


def test_the_example_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_confidence_set_in_the_page_on_the_solver_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (DOCS / "explanation" / "solver.md").read_text("utf-8"), re.DOTALL)
    exec(compile(example, "solver.md", "exec"), {})
    assert capsys.readouterr().out == "True True\n"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8"))
    targets = {link: (document.parent / link).resolve() for link in links}
    assert [link for link, target in targets.items() if target not in GENERATED and not target.exists()] == []


@pytest.mark.parametrize("document", ["reference/notation.md", "explanation/errata.md", "reference/glossary.md"])
def test_names_exist(document: str) -> None:
    names = NAME.findall((DOCS / document).read_text("utf-8"))
    assert names
    for name in names:
        found = importlib.import_module("tightrope")
        for part in name.split("."):
            found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
