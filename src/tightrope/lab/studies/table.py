"""The tidy table: a row for each record of each run, with columns that say which (docs/studies.md)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope.lab.folder import Facts, RunFolder
from tightrope.lab.history import History, in_units
from tightrope.lab.studies.configuration import Configuration
from tightrope.problems.base import Problem
from tightrope.storage.files import write_bytes, write_csv

TABLE = "table"

#: Columns that say which run a row is of, but for those of its options, which stand before the seed.
RUN_COLUMNS = ("run", "problem", "losses", "noise", "learner", "episodes", "seed")

#: What ends the name of a column in the units that the learner works in, where its own are others.
SCALED = "_scaled"

#: Columns that are the same in any units.
WITHOUT_UNITS = ("episode", "multiplier_norm", "epoch")


def columns_of(configuration: Configuration, problem: Problem, history: History) -> dict[str, Sequence[Any]]:
    """The columns of one run: which it is, then what was recorded, in own units and in those of the learner."""
    facts, n = Facts.of(problem), len(history["episode"])
    which: dict[str, Any] = {
        "run": configuration.name,
        "problem": configuration.conditions.problem.name,
        "losses": facts.losses,
        "noise": facts.noise,
        "learner": configuration.learner.name,
        **{
            name: value if isinstance(value, int | float | str) else str(value)
            for name, value in configuration.options.items()
        },
        "episodes": configuration.episodes,
        "seed": configuration.seed,
    }
    own = {name: column.tolist() for name, column in in_units(problem, history).items()}
    scaled = {name + SCALED: column.tolist() for name, column in history.items() if name not in WITHOUT_UNITS}
    return {name: [value] * n for name, value in which.items()} | own | scaled


def write_table(folder: Path, runs: Sequence[RunFolder]) -> list[Path]:
    """One table of all these runs, as CSV, and as Parquet where that can be written; returns where they are."""
    parts = [run.columns() for run in runs]
    names = ordered(parts)
    table: dict[str, list[str]] = {name: [] for name in names}
    for part in parts:
        n = len(part["run"])
        for name, column in table.items():
            column.extend(part.get(name, [""] * n))
    paths = [folder / f"{TABLE}.csv"]
    write_csv(paths[0], table)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        return paths
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table({name: typed(column) for name, column in table.items()}), sink)
    paths.append(folder / f"{TABLE}.parquet")
    write_bytes(paths[1], sink.getvalue().to_pybytes())
    return paths


def ordered(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of all runs together: which run, its options, what was recorded, in the order they are met."""
    met = list(dict.fromkeys(name for part in parts for name in part))
    options = sorted(name for name in met if "." in name)
    which = [name for name in RUN_COLUMNS if name in met]
    rest = [name for name in met if name not in which and name not in options]
    own = [name for name in rest if not name.endswith(SCALED)]
    return [*which[:5], *options, *which[5:], *own, *(name for name in rest if name.endswith(SCALED))]


def typed(column: Sequence[str]) -> list[int | float | str | None]:
    """Cells as numbers if they all are, empty ones as nothing."""
    for kind in (int, float):
        try:
            return [None if cell == "" else kind(cell) for cell in column]
        except ValueError:
            continue
    return [cell or None for cell in column]
