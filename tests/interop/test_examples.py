"""The page on problem folders lists every key."""

import re
import tomllib
from pathlib import Path

from tightrope import load_problem
from tightrope.problems.files import write_example
from tightrope.problems.files.declaration import ConstraintDeclaration, Declaration, LossDeclaration

DOCS = Path(__file__).parents[2] / "docs"


def test_the_document_lists_every_key(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "your-own-problem.md").read_text("utf-8")
    toml, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    listed = tomllib.loads(toml)
    assert set(listed) == {*Declaration.__struct_fields__}
    assert set(listed["loss"]) == {*LossDeclaration.__struct_fields__} - {"form"}  # which stands in place of table
    assert set(listed["constraints"]["technician"]) == {*ConstraintDeclaration.__struct_fields__} - {"form"}
    write_example(tmp_path / "shop")
    (tmp_path / "shop" / "problem.toml").write_text(toml, "utf-8")
    assert load_problem(tmp_path / "shop").name == "workshop"
