"""Tables on disk, CSV or Parquet, whose every cell knows where it stands.

A CSV file is UTF-8 (a byte-order mark and any kind of line end are fine), separated by commas, and its first line names
the columns. Parquet needs the extra `parquet`.
"""

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError, missing


class Table:
    """Columns of cells, and the line of each row (None: a format without lines)."""

    def __init__(self, path: Path, columns: Mapping[str, Sequence[Any]], lines: Sequence[int] | None) -> None:
        self.path = path
        self.columns = dict(columns)
        self.lines = lines

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def place(self, row: int) -> str:
        """The place of a row within the table."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def where(self, row: int, column: str | None = None) -> str:
        """The place of a row, or of its cell in `column`."""
        cell = "" if column is None else f", column {list(self.columns).index(column) + 1} ({column})"
        return f"{self.path}, {self.place(row)}{cell}"

    def check_columns(self, needed: Collection[str], known: Collection[str]) -> None:
        """Refuse the lack of a needed column, and a column that nobody knows."""
        head = self.path if self.lines is None else f"{self.path}, line 1"
        for name in needed:
            if name not in self.columns:
                raise InvalidInputError(f"{head}: there is no column {name!r} (there is {', '.join(self.columns)})")
        for k, name in enumerate(self.columns):
            if name not in known:
                raise unknown(f"{head}, column {k + 1}: there is no use for a column", name, known)

    def names(self, column: str) -> list[str]:
        """The cells of a column as names, none of them empty."""
        names = ["" if cell is None else str(cell).strip() for cell in self.columns[column]]
        if "" in names:
            raise InvalidInputError(f"{self.where(names.index(''), column)}: the cell is empty")
        return names

    def numbers(self, column: str) -> list[float]:
        """The cells of a column as finite numbers."""
        numbers = []
        for row, cell in enumerate(self.columns[column]):
            try:
                number = float(cell)
            except (TypeError, ValueError):
                number = math.nan
            if not math.isfinite(number) or isinstance(cell, bool):
                shown = "empty" if cell is None or str(cell).strip() == "" else str(cell)
                raise InvalidInputError(f"{self.where(row, column)}: {shown} where a number should be, such as 0.25")
            numbers.append(number)
        return numbers

    def whole_numbers(self, column: str, at_least: int) -> list[int]:
        """The cells of a column as whole numbers."""
        numbers = self.numbers(column)
        for row, number in enumerate(numbers):
            if number != int(number) or number < at_least:
                raise InvalidInputError(f"{self.where(row, column)}: {number:g} is no whole number from {at_least} up")
        return [int(number) for number in numbers]


def read_table(path: Path) -> Table:
    """The table at `path`: Parquet if it is called so, else CSV."""
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return _read_parquet(path)
        return _read_csv(path)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error


def decode(path: Path) -> str:
    """The text of a file, refused with the line of the first byte that is not UTF-8."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"{path}, line {line}: byte {data[error.start]:#04x} is not UTF-8; save the file in that encoding"
        ) from error


def _read_csv(path: Path) -> Table:
    text = decode(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append([cell.strip() for cell in cells])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise InvalidInputError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise InvalidInputError(f"{path} is empty; its first line should name its columns")
    head, *body = rows
    if len(head) == 1 and (";" in head[0] or "\t" in head[0]):
        raise InvalidInputError(f"{path}, line {lines[0]}: columns are separated by commas, not {head[0]!r}")
    for k, name in enumerate(head):
        if not name or name in head[:k]:
            complaint = f"the name {name!r} comes twice" if name else "the name is empty"
            raise InvalidInputError(f"{path}, line {lines[0]}, column {k + 1}: {complaint}")
    if not body:
        raise InvalidInputError(f"{path} has a heading but no rows")
    for cells, line in zip(body, lines[1:], strict=True):
        if len(cells) != len(head):
            raise InvalidInputError(
                f"{path}, line {line}: {len(cells)} cells where the heading has {len(head)} ({', '.join(head)})"
            )
    return Table(path, dict(zip(head, zip(*body, strict=True), strict=True)), lines[1:])


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("pyarrow", extra="parquet") from error
    try:
        columns = pyarrow.parquet.read_table(path).to_pydict()
    except pyarrow.ArrowException as error:
        raise InvalidInputError(f"{path} is no Parquet file, or damaged: {error}") from error
    if not columns or not len(next(iter(columns.values()))):
        raise InvalidInputError(f"{path} has no rows")
    return Table(path, columns, None)
