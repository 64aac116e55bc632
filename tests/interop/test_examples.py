"""The examples in the documents about Gymnasium and one's own files run."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.problems.recorded import recorded, written
from tightrope.problems.files import load_problem, write_example
from tightrope.problems.files.declaration import ConstraintDeclaration, Declaration, LossDeclaration

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["gymnasium", "logs", "your-own-problem"])
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_example(Path("workshop"))
    written(recorded(30, seed=1), Path("weeks.csv"))
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "how-to" / f"{name}.md").read_text("utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, name, "exec"), names)


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
