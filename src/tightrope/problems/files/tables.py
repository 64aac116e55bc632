"""Tables in CSV or Parquet files, with the line and column of every cell for errors.

A CSV file is UTF-8 (with or without a byte-order mark, with any line ends), separated by commas, and its first line
names the columns. Parquet needs the extra `parquet`. Files that are too large are refused before they are parsed, and
columns are checked before the rows.
"""

import csv
import io
import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError, missing
from tightrope.problems.files.reading import LARGEST_NUMBER, decode
from tightrope.space import FloatArray

#: The most bytes, lines (or rows) and cells of a table: these fit into a gigabyte.
MOST_BYTES = 64_000_000
MOST_LINES = 1_000_000
MOST_CELLS = 10_000_000

#: Above this, some whole numbers are not representable as floats.
LARGEST_WHOLE = 2**53

#: The most names that an error lists.
SHOWN = 12


class Table:
    """The columns of a table, and the line of each row (None: the format has no lines)."""

    def __init__(self, path: Path, columns: Mapping[str, Sequence[Any]], lines: Sequence[int] | None) -> None:
        self.path = path
        self.columns = dict(columns)
        self.lines = lines

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def place(self, row: int) -> str:
        """Return the place of a row within the table."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def where(self, row: int, column: str | None = None) -> str:
        """Return the file and the place of a row, or of its cell in `column`."""
        cell = "" if column is None else f", column {list(self.columns).index(column) + 1} ({column})"
        return f"{self.path}, {self.place(row)}{cell}"

    @property
    def heading(self) -> str:
        """The file and the line of the column names."""
        return str(self.path) if self.lines is None else f"{self.path}, line 1"

    def check_columns(self, needed: Collection[str], known: Collection[str] | None) -> None:
        """Refuse a table without a needed column, or with one that is not `known` (None: any is allowed)."""
        head = self.heading
        for name in needed:
            if name not in self.columns:
                raise InvalidInputError(f"{head}: there is no column {name!r} (there is {listed(self.columns)})")
        for k, name in enumerate(self.columns):
            if known is not None and name not in known:
                raise unknown(f"{head}, column {k + 1}: unknown column", name, known)

    def names(self, column: str, *, optional: bool = False) -> list[str]:
        """Return the cells of a column as names; empty ones are refused unless `optional`."""
        names = ["" if cell is None else str(cell).strip() for cell in self.columns[column]]
        if not optional and "" in names:
            raise InvalidInputError(f"{self.where(names.index(''), column)}: the cell is empty")
        return names

    def numbers(self, column: str) -> FloatArray:
        """Return the cells of a column as finite floats, (n_rows,)."""
        cells = self.columns[column]
        numbers = np.array([_number(cell) for cell in cells])
        for row in np.flatnonzero(~np.isfinite(numbers))[:1].tolist():
            shown = "" if cells[row] is None else str(cells[row]).strip()
            raise InvalidInputError(
                f"{self.where(row, column)}: {shown or 'empty'} where a number should be, such as 0.25"
            )
        for row in np.flatnonzero(np.abs(numbers) > LARGEST_NUMBER)[:1].tolist():
            raise InvalidInputError(f"{self.where(row, column)}: {numbers[row]:g} is too large; choose a larger unit")
        return numbers

    def whole_numbers(self, column: str, at_least: int) -> NDArray[np.int64]:
        """Return the cells of a column as integers, (n_rows,)."""
        numbers = self.numbers(column)
        whole = (numbers == np.floor(numbers)) & (at_least <= numbers) & (numbers <= LARGEST_WHOLE)
        for row in np.flatnonzero(~whole)[:1].tolist():
            raise InvalidInputError(
                f"{self.where(row, column)}: {numbers[row]:g} is not a whole number of at least {at_least}"
            )
        return numbers.astype(np.int64)


def _number(cell: Any) -> float:
    """Return a cell as a float; nan if it is not a number (true and false are not)."""
    try:
        return math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def read_table(path: Path, data: bytes, needed: Collection[str], known: Collection[str] | None) -> Table:
    """Parse the table in `data`, the bytes of `path`: Parquet if its suffix says so, else CSV.

    Parameters
    ----------
    needed, known : columns that it must have, and may have (None: any).
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path, data, needed, known)
    try:
        return _read_csv(path, data, needed, known)
    except UnicodeDecodeError:
        decode(path, data)
        raise


def listed(names: Iterable[str]) -> str:
    """Return the first few names as text, separated by commas."""
    names = iter(names)
    shown = list(islice(names, SHOWN))
    return ", ".join([*shown, "…"] if next(names, None) is not None else shown)


def _read_csv(path: Path, data: bytes, needed: Collection[str], known: Collection[str] | None) -> Table:
    n_lines = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    _check_amount(path, lines=n_lines, cells=n_lines + data.count(b","))
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""), strict=True)
    try:
        head = next(([cell.strip() for cell in cells] for cells in reader if any(map(str.strip, cells))), None)
        if head is None:
            raise InvalidInputError(f"{path} is empty; its first line should name its columns")
        _check_heading(f"{path}, line {reader.line_num}", head)
        columns: list[list[str]] = [[] for _ in head]
        lines = array("q")
        table = Table(path, dict(zip(head, columns, strict=True)), lines)
        table.check_columns(needed, known)
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if len(cells) != len(head):
                raise InvalidInputError(
                    f"{path}, line {reader.line_num}: {len(cells)} cells where the heading has {len(head)} "
                    f"({listed(head)})"
                )
            lines.append(reader.line_num)
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
    except csv.Error as error:
        raise InvalidInputError(f"{path}, line {reader.line_num}: {error}") from error
    if not lines:
        raise InvalidInputError(f"{path} has a heading but no rows")
    return table


def _check_amount(path: Path, **amounts: int) -> None:
    """Refuse a file with more lines or cells than fit into memory, before it is parsed."""
    for what, amount in amounts.items():
        most = MOST_CELLS if what == "cells" else MOST_LINES
        if amount > most:
            raise InvalidInputError(
                f"{path} has {amount} {what}, and at most {most} are read; record fewer episodes, or set a default "
                "for rows with equal values"
            )


def _check_heading(where: str, head: Sequence[str]) -> None:
    if len(head) == 1 and (";" in head[0] or "\t" in head[0]):
        raise InvalidInputError(f"{where}: columns are separated by commas, not {head[0]!r}")
    seen: set[str] = set()
    for k, name in enumerate(head):
        if not name or name in seen:
            complaint = f"the name {name!r} occurs twice" if name else "the name is empty"
            raise InvalidInputError(f"{where}, column {k + 1}: {complaint}")
        seen.add(name)


def _read_parquet(path: Path, data: bytes, needed: Collection[str], known: Collection[str] | None) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("pyarrow", extra="parquet") from error
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
        _check_schema(path, file, needed, known)
        # repeated text is stored once: a small file can expand to a large amount
        text = [field.name for field in file.schema_arrow if pyarrow.types.is_string(field.type)]
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=text)
        columns = {name: _cells(column) for name, column in zip(file.schema_arrow.names, file.read(), strict=True)}
    except InvalidInputError:
        raise
    except Exception as error:  # pyarrow raises many kinds of errors, all about the file
        raise InvalidInputError(f"{path} is not a Parquet file, or it is damaged: {error}") from error
    return Table(path, columns, None)


def _check_schema(path: Path, file: Any, needed: Collection[str], known: Collection[str] | None) -> None:
    """Refuse wrong columns and too many rows before any row is read."""
    from pyarrow import types

    names = file.schema_arrow.names
    if not names or not file.metadata.num_rows:
        raise InvalidInputError(f"{path} has no rows")
    _check_heading(str(path), names)
    Table(path, dict.fromkeys(names, ()), None).check_columns(needed, known)
    _check_amount(path, rows=file.metadata.num_rows, cells=file.metadata.num_rows * len(names))
    for k, field in enumerate(file.schema_arrow):
        kind = field.type
        if types.is_nested(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind):
            raise InvalidInputError(f"{path}, column {k + 1} ({field.name}): {kind}; a column holds names or numbers")


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column; equal texts are the same object."""
    cells: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = chunk.dictionary.to_pylist()
            cells.extend(None if i is None else words[i] for i in chunk.indices.to_pylist())
        else:
            cells.extend(chunk.to_pylist())
    return cells
