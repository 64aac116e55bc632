"""The page about the architecture and the code say the same."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tightrope"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
[CONTRACT] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]

Edge = tuple[str, str]


def rooms() -> set[str]:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}


def imports(node: ast.AST) -> Iterator[str]:
    """Dotted names of modules, those for type checkers alone left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0 and child.module is not None
            yield from (f"{child.module}.{name.name}" for name in child.names)
        yield from imports(child)


def real_edges() -> set[Edge]:
    edges = set()
    ignored = {tuple(line.split(" -> ")) for line in CONTRACT.get("ignore_imports", [])}
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for name in imports(ast.parse(path.read_text("utf-8"))):
            if (module, name.rpartition(".")[0]) not in ignored:
                edges.add((room_of(module), room_of(name)))
    return {(a, b) for a, b in edges if a != b and {a, b} <= rooms()}


def room_of(name: str) -> str:
    """The second part of a name inside tightrope."""
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] if package == "tightrope" else ""


def drawn_edges() -> set[Edge]:
    [picture] = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
    head, *lines = picture.strip().splitlines()
    assert head == "flowchart TD"
    edges = [re.fullmatch(r" *(\w+) -->\|\"[^\"|]+\"\| (\w+)", line) for line in lines]
    assert all(edges), 'every line of the picture reads: room -->|"what for"| room'
    return {(edge[1], edge[2]) for edge in edges if edge}


def ground_floor() -> set[str]:
    [line] = re.findall(r"The ground floor: (.*)\.", PAGE)
    return set(re.findall(r"`(\w+)`", line))


def test_the_rooms_of_the_page_are_those_of_the_contract_and_of_the_code() -> None:
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)]
    assert rows == [layer.split(" | ") for layer in CONTRACT["layers"]]
    assert {room for row in rows for room in row} == rooms()


def test_every_arrow_of_the_picture_is_an_import() -> None:
    assert drawn_edges() - real_edges() == set()


def test_every_import_between_rooms_is_an_arrow_of_the_picture() -> None:
    above = {(a, b) for a, b in real_edges() if b not in ground_floor()}
    assert above - drawn_edges() == set()
    assert ground_floor() < rooms()


def test_every_function_of_a_tell_is_in_the_file_beside_it() -> None:
    [calls] = re.findall(r"## A tell\n.*?```text\n(.*?)```", PAGE, re.DOTALL)
    for line in calls.splitlines():
        name, path, _ = line.split(maxsplit=2)
        assert re.search(rf"^ *def {name.rpartition('.')[2]}\(", (SOURCE / path).read_text("utf-8"), re.MULTILINE), line


def test_what_the_page_tells_to_touch_is_there() -> None:
    """Links are tested with those of all documents; these are the names beside them."""
    for name, path in (
        ("LEARNERS", "learners/registry.py"),
        ("PROBLEMS", "problems/__init__.py"),
        ("LOSSES", "problems/losses/__init__.py"),
        ("NOISES", "problems/constraints/__init__.py"),
        ("CONFIDENCE_RULES", "confidence/rules.py"),
        ("COLUMNS", "lab/history.py"),
        ("SHOWN", "lab/tables.py"),
    ):
        assert f"`{name}`" in PAGE
        assert re.search(rf"^{name}\b", (SOURCE / path).read_text("utf-8"), re.MULTILINE), name
