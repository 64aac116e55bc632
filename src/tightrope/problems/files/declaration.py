"""`problem.toml`: the declaration of a problem in a folder, with the line of every key.

Unknown keys are errors. See `docs/how-to/your-own-problem.md` for what each of them means.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError
from tightrope.problems.files.reading import TomlFile

FILE = "problem.toml"

Choice = str | dict[str, Any]


class FileTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of a form: its file, and the column of its values."""

    file: str
    column: str | None = None


class Charged(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Losses or uses of moves, from one table, or from a form that combines several."""

    table: str | None = None
    form: str | None = None
    column: str | None = None
    bounds: tuple[float, float] | None = None
    default: float | None = None
    unit: str = ""


class LossDeclaration(Charged, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The table `[loss]` of the declaration."""

    bounds: tuple[float, float]
    sequence: Choice | None = None


class ConstraintDeclaration(Charged, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table `[constraints.NAME]` of the declaration."""

    budget: float


class Declaration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The whole file; `constraints` are read one by one, so that an error can name the constraint."""

    n_steps: Annotated[int, msgspec.Meta(ge=1)]
    start: str | dict[str, float]
    transitions: str
    loss: dict[str, Any]
    constraints: dict[str, dict[str, Any]] = {}  # msgspec copies it
    tables: dict[str, Any] = {}
    name: str | None = None
    terminal: list[str] = []
    noise: Choice | None = None
    allow_unreachable: bool = False
    warnings: list[str] = []
    log: str | None = None


class Toml(TomlFile):
    """A declaration and the text of its file."""

    about = "a problem"

    def __init__(self, path: Path) -> None:
        _check_there(path)
        super().__init__(path)
        self.whole = self.read(self.content, Declaration)
        self.loss = self.read(self.whole.loss, LossDeclaration, "loss")
        self.constraints = {
            name: self.read(part, ConstraintDeclaration, "constraints", name)
            for name, part in self.whole.constraints.items()
        }
        for keys, part in self.charged.items():
            self._check_charged(keys, part)

    @property
    def charged(self) -> dict[tuple[str, ...], Charged]:
        """The loss and the constraints, by their keys."""
        parts: dict[tuple[str, ...], Charged] = {("loss",): self.loss}
        return parts | {("constraints", name): part for name, part in self.constraints.items()}

    def file_table(self, name: str) -> FileTable | None:
        """Return the file of a table of a form; None if its numbers are in the declaration."""
        given = self.whole.tables[name]
        if isinstance(given, str):
            return FileTable(file=given)
        if isinstance(given, dict) and isinstance(given.get("file"), str):
            return self.read(given, FileTable, "tables", name)
        if isinstance(given, dict | list):
            return None
        raise InvalidInputError(
            f"{self.where('tables', name)}: {name} is {given!r}; expected a file, numbers by name, or a list of numbers"
        )

    def bounds(self, part: Charged, *keys: str) -> tuple[float, float] | None:
        """Return the bounds of this part of the declaration, if it has any, after checking their order."""
        if part.bounds is not None and not part.bounds[0] < part.bounds[1]:
            low, high = part.bounds
            raise InvalidInputError(
                f"{self.where(*keys, 'bounds')}: bounds are {low:g} and {high:g}; the second should be larger"
            )
        return part.bounds

    def _check_charged(self, keys: tuple[str, ...], part: Charged) -> None:
        named = f"[{'.'.join(keys)}]"
        if (part.table is None) == (part.form is None):
            several = "both table and form; leave out one" if part.table else "neither table nor form; it needs one"
            raise InvalidInputError(f"{self.where(*keys)}: {named} has {several}")
        for key in ("column", "default") if part.form is not None else ():
            if getattr(part, key) is not None:
                raise InvalidInputError(f"{self.where(*keys, key)}: {named} has a form, which takes no {key}")


def _check_there(path: Path) -> None:
    """Refuse a declaration that does not exist, or whose folder does not."""
    with suppress(OSError):  # a name that is too long is refused when it is read
        if not path.parent.is_dir():
            raise InvalidInputError(f"there is no folder {printable(path.parent)}")
        if not path.exists():
            raise InvalidInputError(f"{printable(path.parent)} has no {FILE}; `tightrope new` writes an example")
