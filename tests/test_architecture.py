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


NODE = r'(\w+)(?:\["([\w.]+)<br/>([\w/.]+)"\])?'
ARROW = re.compile(rf' *{NODE} -->(?:\|"[^"|]+"\|)? {NODE}')

Place = tuple[str, str]

#: Objects that are called as functions, by the attribute that has them.
CALLED_AS = {"MirrorStep.__call__": "_mirror_step", "PaperRadius.__call__": "rule"}


def diagrams() -> Iterator[tuple[Place, Place]]:
    """The arrows of all diagrams: (function, file) of the caller and of what it calls."""
    for picture in re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL):
        head, *lines = picture.strip().splitlines()
        assert head == "flowchart LR"
        places: dict[str, Place] = {}
        for line in lines:
            found = ARROW.fullmatch(line)
            assert found is not None, line
            for name, function, path in (found.groups()[:3], found.groups()[3:]):
                if function is not None:
                    places[name] = function, path
            yield places[found[1]], places[found[4]]


def definition(function: str, path: str) -> ast.AST:
    """The definition of "function" or "Class.method" in a file of Python."""
    node: ast.AST = ast.parse((SOURCE / path).read_text("utf-8"))
    for name in function.split("."):
        [node, *_] = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == name
        ]
    return node


def test_the_floors_are_the_rows_of_the_contract() -> None:
    table = PAGE.split("## Four floors")[1].split("## An episode")[0]
    floors = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| \w+ \| (`.*?) \|", table, re.MULTILINE)]
    rows = [layer.split(" | ") for layer in CONTRACT["layers"]]
    assert len(floors) == 4 and [room for floor in floors for room in floor] == [room for row in rows for room in row]


def test_the_rooms_of_the_page_are_those_of_the_contract_and_of_the_code() -> None:
    table = PAGE.split("## The rule of imports")[1]
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)]
    assert rows == [layer.split(" | ") for layer in CONTRACT["layers"]]
    assert {room for row in rows for room in row} == rooms()


def test_every_function_of_the_diagrams_is_in_the_file_below_it() -> None:
    for function, path in {place for edge in diagrams() for place in edge}:
        if path.endswith(".py"):
            definition(function, path)
        else:
            assert re.search(rf"\b{function}\(", (SOURCE / path).read_text("utf-8")), (function, path)


def test_every_arrow_of_the_diagrams_is_a_call() -> None:
    for (caller, path), (called, _) in diagrams():
        names = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(definition(caller, path))
            if isinstance(node, ast.Name | ast.Attribute)
        }
        name = CALLED_AS.get(called, called.rpartition(".")[2])
        assert name in names, (caller, called)


def test_what_the_page_tells_to_touch_is_there() -> None:
    """Links are tested with those of all documents; these are the names beside them."""
    for name, path in (
        ("CLASSES", "learners/registry.py"),
        ("PROBLEMS", "problems/__init__.py"),
        ("LOSSES", "problems/losses/__init__.py"),
        ("NOISES", "problems/constraints/__init__.py"),
        ("CONFIDENCE_RULES", "confidence/rules.py"),
        ("COLUMNS", "lab/metrics.py"),
        ("NEEDS", "learners/needs.py"),
    ):
        assert f"`{name}`" in PAGE
        assert re.search(rf"^{name}\b", (SOURCE / path).read_text("utf-8"), re.MULTILINE), name
