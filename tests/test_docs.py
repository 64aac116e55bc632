"""What the documents say is so: their code runs, their links lead somewhere, the names they use exist."""

import importlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import typer

from tests.problems.recorded import recorded, written
from tightrope.cli.commands import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: Pages that the site generates; Sphinx checks links to them.
GENERATED = {DOCS / "reference" / f"{name}.md" for name in ("changelog", "command-line", "contributing")}
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(set(DOCS.rglob("*.md")) - GENERATED)]
#: A dotted name inside tightrope; `space.n_states` and the like are attributes of instances.
NAME = re.compile(
    r"`((?:confidence|core|lab|learners|model|ops|planning|problems|projection|storage|ties|units|space(?=\.[A-Z]))(?:\.\w+)+)`"
)


sys.path.insert(0, str(DOCS / "_ext"))

examples: Any = importlib.import_module("examples")

#: Pages whose blocks are run by a test of their own, which has stand-ins for what they need.
RUN_ELSEWHERE = {
    "docs/how-to/python.md": "tests/test_python_page.py",
    "docs/how-to/replicas.md": "tests/service/test_tutorial.py",
    "docs/how-to/service.md": "tests/service/test_tutorial.py",
}
#: Numbers in console blocks may be other ones: where several policies are optimal, the linear program chooses.
NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")


def prepare(folder: Path) -> None:
    """Write the log that docs/how-to/logs.md takes as given."""
    written(recorded(30, seed=1), folder / "weeks.csv")


def words(text: str) -> str:
    """Return the text with every number as # and one space between words."""
    return " ".join(NUMBER.sub("#", text).split())


def same(printed: str, shown: str) -> bool:
    """Return whether a page shows what is printed; `…` stands for any lines."""
    parts = [re.escape(words(part)) for part in shown.split("…")]
    return re.fullmatch(".*".join(parts), words(printed)) is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_code_on_a_page_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = document.relative_to(ROOT).as_posix()
    if name in RUN_ELSEWHERE:
        return
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    session = examples.Session(tmp_path, name)
    for _, block in examples.blocks(document.read_text("utf-8")):
        if block.runs:
            printed = session.run(block)
            if block.language == "console":
                shown = "\n".join(line for line in block.code.splitlines() if not line.startswith("$ "))
                assert same(printed, shown), f"line {block.line} shows:\n{shown}\nbut it prints:\n{printed}"
    plt.close("all")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_block_of_code_is_run_or_says_why_not(document: Path) -> None:
    for _, block in examples.blocks(document.read_text("utf-8")):
        known = block.language in (*examples.LANGUAGES, "toml", "json", "csv", "text", "mermaid")
        assert known or block.why_not or block.code.startswith((":", "```")), f"line {block.line}: name the language"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_that_are_not_run_exist(document: Path) -> None:
    """Also: a command is in a block of code, where the tests see it; an indented block is a formula."""
    text = document.read_text("utf-8")
    assert not re.search(r"(?m)^\n {4}(?:\$ )?(?:\w+=\S+ )?(?:python|pip|tightrope|git|\.ci)\b", text)
    for _, block in examples.blocks(text):
        if block.language == "sh" and not block.runs:
            for line in block.code.splitlines():
                check_command(line.partition("  #")[0])


def check_command(line: str) -> None:
    """Check that a module or a command of ours exists, and knows the options that it is given."""
    if module := re.search(r"python3? -m ((?:benchmarks|fuzz|tools|tests|tightrope)[\w.]*)", line):
        spec = importlib.util.find_spec(module[1])
        assert spec is not None and spec.origin is not None, line
        known = Path(spec.origin).read_text("utf-8")
        assert [option for option in re.findall(r" (--[\w-]+)", line) if f'"{option}"' not in known] == [], line
    elif called := re.match(r"tightrope (\w+)", line):
        commands: Any = vars(typer.main.get_command(app))["commands"]
        assert called[1] in commands, line
        if not hasattr(commands[called[1]], "commands"):  # `token` has commands of its own
            known_options = {name for one in commands[called[1]].params for name in one.opts}
            assert set(re.findall(r" (--[\w-]+)", line)) <= known_options, line
    elif script := re.match(r"(?:\w+=\S+ )?(\.ci/\w+)", line):
        assert (ROOT / script[1]).exists(), line


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("[!i]*.md")), ids=lambda path: path.stem)
def test_a_tutorial_is_a_notebook_with_the_same_code(page: Path) -> None:
    text = page.read_text("utf-8")
    cells = json.loads(examples.notebook(text))["cells"]
    code = ["".join(cell["source"]).removeprefix("%%bash\n") for cell in cells if cell["cell_type"] == "code"]
    ran = [block.code.rstrip("\n") for _, block in examples.blocks(text) if block.runs]
    assert code == [examples.SETUP.rstrip("\n"), *ran]
    assert code[0].startswith("%pip install --quiet tightrope\n")
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert not re.search(r"\]\((?!https?:)|<!--|\{drawing\}", prose)
    imported = re.findall(r"(?m)^(?:import|from) (\w+)", "\n".join(ran))
    assert set(imported) <= {"tightrope", "numpy", "matplotlib", *sys.stdlib_module_names}  # what we install


def test_the_example_in_the_readme_prints_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8"))
    targets = {link: (document.parent / link).resolve() for link in links}
    made = ("gallery", "tutorials/notebooks")
    assert [
        link
        for link, target in targets.items()
        if target not in GENERATED
        and not target.exists()
        and not any(target.is_relative_to(DOCS / one) for one in made)
    ] == []


def test_pages_that_the_code_names_exist() -> None:
    """`docs/…/NAME.md` in sources, tests, benchmarks and the changelog."""
    sources = [
        path for folder in ("src", "tests", "benchmarks", "fuzz", "tools") for path in (ROOT / folder).rglob("*.py")
    ]
    for path in [*sources, *(ROOT / "src").rglob("*.?pp"), *ROOT.glob("*.md")]:
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8")):
            assert (ROOT / page).exists() or ROOT / page in GENERATED, f"{path}: there is no {page}"


@pytest.mark.parametrize("document", ["reference/notation.md", "explanation/errata.md", "reference/glossary.md"])
def test_names_exist(document: str) -> None:
    names = NAME.findall((DOCS / document).read_text("utf-8"))
    assert names
    for name in names:
        found = importlib.import_module("tightrope")
        for part in name.split("."):
            found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
