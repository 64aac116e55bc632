"""The types of the core say what the core has."""

import ast

from tightrope import core
from tools.stubs import STUB, generated


def test_the_stub_names_what_the_core_has() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    named |= {ast.unparse(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)}
    there = {name for name in dir(core) if not name.startswith("_")} - {
        "Any",
        "InvalidInputError",
        "import_module",
        "os",
    }
    assert named == there


def test_the_stub_is_up_to_date() -> None:
    """Otherwise run python -m tools.stubs."""
    assert STUB.read_text(encoding="utf-8") == generated()
