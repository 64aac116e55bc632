"""The results of a study: the records of every run as arrays, read once, for tables, figures, report and notebooks.

results = tr.Study(problems=["edge-cloud"], episodes=2000, seeds=10).run()
results = tr.Results.read("runs/radii")
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tightrope.arguments import LISTED, file_path, printable
from tightrope.errors import InvalidInputError
from tightrope.lab import tables
from tightrope.lab.folder import HISTORY, RUN_COLUMNS, RUNS, SCALED, Facts, Report, RunFolder
from tightrope.lab.history import USE, Budget
from tightrope.lab.study import STUDY
from tightrope.lab.tables import SPREAD, band
from tightrope.problems.files.declaration import FILE
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE, SUMMARY = "table", "summary"

#: Runs with equal values in these columns, and in those of their options, are compared with each other.
CONDITIONS = ("problem", "losses", "noise")
OPTIONS = ("problem.", "losses.", "noise.", "budget.")

#: Floats of this size and above are not written or read as integers.
LARGEST_INTEGER = 1e16


@dataclass(frozen=True)
class RunResult:
    """One run: the cells that identify it, and its records."""

    name: str
    path: Path  # its folder
    which: dict[str, str]  # problem, losses, noise, learner, options, episodes and seed, as the table has them
    columns: dict[str, FloatArray]  # (n_records,) in own units; those that end in _scaled in the learner's units
    facts: Facts  # about the problem
    settings: dict[str, Any]  # every parameter of the learner

    @property
    def seed(self) -> int:
        """The root seed of the run."""
        return int(self.which["seed"])

    def report(self) -> Report | None:
        """The content of `run.json`; None if it is missing or cannot be read."""
        return RunFolder(self.path).report()


@dataclass(frozen=True)
class Curve:
    """All runs of one learner with the same options, one for each seed."""

    label: str
    runs: list[RunResult]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs, in their order."""
        return [run.seed for run in self.runs]

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the learner in its first run."""
        return self.runs[0].settings

    def values(self, column: str, episodes: FloatArray) -> FloatArray:
        """(n_seeds, n) a column at these episodes; NaN where a run has no record or no such column."""
        values = np.full((len(self.runs), len(episodes)), np.nan)
        for k, run in enumerate(self.runs):
            if column in run.columns:
                values[k, np.searchsorted(episodes, run.columns["episode"])] = run.columns[column]
        return values


@dataclass(frozen=True)
class Section:
    """Runs under the same conditions for the same number of episodes, compared in one table or figure."""

    title: str
    horizon: int
    which: dict[str, str]  # the cells of its conditions
    facts: Facts
    curves: list[Curve]

    @property
    def seeds(self) -> list[int]:
        """The seeds of all curves, each once."""
        return list(dict.fromkeys(seed for curve in self.curves for seed in curve.seeds))

    @cached_property
    def episodes(self) -> FloatArray:
        """(n,) the episodes at which any run has a record."""
        return np.unique(np.concatenate([run.columns["episode"] for curve in self.curves for run in curve.runs]))

    @cached_property
    def budgets(self) -> list[Budget]:
        """The budgets of the problem; a limit is NaN if the folder does not say."""
        columns = {name: None for curve in self.curves for run in curve.runs for name in run.columns}
        uses = [name for name in columns if name.startswith(USE) and not name.endswith(SCALED)]
        known = [budget for budget in self.facts.budgets if budget.column in columns]
        return known or [Budget(name, name.removeprefix(USE), "", np.nan) for name in uses]

    @property
    def histories(self) -> dict[str, list[dict[str, FloatArray]]]:
        """The columns of each run, by the label of its curve."""
        return {curve.label: [run.columns for run in curve.runs] for curve in self.curves}

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The parameters of each learner, by the label of its curve."""
        return {curve.label: curve.settings for curve in self.curves}

    def lines(self) -> list[str]:
        """The tables of the section as text: use of the budgets, results, what they mean, parameters."""
        labels, histories = [curve.label for curve in self.curves], self.histories
        return [
            f"{self.title}, learner{'s' * (len(labels) > 1)} {', '.join(labels)}",
            "",
            *(line for words in self.facts.warnings for line in (f"WARNING: {words}", "")),
            *tables.spending(self.budgets, histories),
            *[""] * bool(self.budgets),
            *tables.results(self.horizon, self.seeds, histories, self.settings),
            *filter(None, [self.facts.units]),
            *tables.describe_settings(self.settings),
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each learner: its cells, then mean, low and high of the last record."""
        names = tables.shown_columns(self.histories)
        for curve in self.curves:
            runs = [run.columns for run in curve.runs]
            last = {name: [run[name][-1] for run in runs] for name in names}
            last |= {one.column: [run[one.column][-1] / run["episode"][-1] for run in runs] for one in self.budgets}
            row: dict[str, Any] = {name: self.which.get(name, "") for name in CONDITIONS}
            row |= {name: value for name, value in self.which.items() if name.startswith(OPTIONS)}
            row["budgets"] = ", ".join(f"{budget.name} {budget.limit:g}" for budget in self.budgets)
            row |= {"episodes": self.horizon, "learner": curve.label, "seeds": len(runs)}
            for name, mean, low, high in zip(last, *band(np.array(list(last.values())).T), strict=True):
                row |= {name: float(mean), f"{name}_low": float(low), f"{name}_high": float(high)}
            yield row

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Headings and a row of text for each learner: means and intervals, and use of the budgets."""
        headings, rows = tables.compared(self.histories, self.settings)
        used = [tables.used(self.budgets, runs) for runs in self.histories.values()]
        return [*headings, *map(str, self.budgets)], [[*row, *more] for row, more in zip(rows, used, strict=True)]

    def plot(self) -> "Figure":
        """Draw the section: use of each budget, regret, violations."""
        from tightrope.lab import figures

        title = figures.title(self.title, [curve.label for curve in self.curves], self.horizon, self.seeds)
        return figures.draw(self.histories, title=title, budgets=self.budgets)


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study.

    Attributes
    ----------
    folder : the folder of the study.
    runs : the runs that have results, by name, in the order of the table.
    failed : what went wrong with runs that failed, by name.
    tables, summaries : the files that were written.

    Examples
    --------
    >>> import tightrope as tr
    >>> study = tr.Study(problems=["media-streaming"], learners=["uniform"], episodes=20, seeds=2)
    >>> results = study.run(jobs=1)
    >>> len(results.runs), results.failed
    (2, {})
    """

    folder: Path
    runs: dict[str, RunResult]
    failed: dict[str, str] = field(default_factory=dict)
    tables: list[Path] = field(default_factory=list)
    summaries: list[Path] = field(default_factory=list)

    @classmethod
    def read(cls, folder: str | PathLike[str], *, live: bool = False) -> "Results":
        """Read the folder of a study.

        Parameters
        ----------
        live : read the histories of all runs in the folder, finished or not, rather than the table of the study.
        """
        place = file_path(folder, "folder")
        try:
            paths = [place / f"{TABLE}.csv"]
            if live or not paths[0].is_file():
                paths = sorted(place.glob(f"{RUNS}/*/{HISTORY}"))
            if not paths:
                check_folder(place, live=live)
            return cls(place, {run.name: run for path in paths for run in _read(path, place)})
        except FileNotFoundError:  # runs are being discarded
            raise
        except OSError as error:
            raise InvalidInputError(f"cannot read the folder {printable(place)}: {error.strerror}") from error

    @classmethod
    def of_runs(cls, folder: Path, runs: Iterable[RunFolder], failed: Mapping[str, str]) -> "Results":
        """Read the histories of these runs of a study, and write its table and summary."""
        found = {run.name: run for one in runs if one.history.is_file() for run in _read(one.history, folder)}
        results = cls(folder, found, dict(failed))
        if found:
            results.tables.extend(results._write_table())
            results.summaries.extend(results._write_summary())
        return results

    @cached_property
    def sections(self) -> list[Section]:
        """The runs, grouped by their conditions."""
        groups: dict[tuple[str, ...], list[RunResult]] = {}
        for run in self.runs.values():
            groups.setdefault(_conditions(run), []).append(run)
        several = len({run.which.get("noise") for run in self.runs.values()}) > 1
        return [_section(runs, several) for runs in groups.values()]

    def table(self) -> dict[str, list[Any]]:
        """The tidy table (docs/how-to/studies.md) as columns for `pandas.DataFrame` or `polars.DataFrame`."""
        return {name: _typed(column) for name, column in self._columns().items()}

    def summary(self) -> dict[str, list[Any]]:
        """The last record of every learner, mean over seeds and interval, as columns; None where there is no value."""
        rows = [row for section in self.sections for row in section.rows()]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def __str__(self) -> str:
        return "\n\n".join("\n".join(section.lines()) for section in self.sections)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"Results({str(self.folder)!r}, {len(self.runs)} runs{failed})"

    def _repr_html_(self) -> str:
        """For notebooks: the summary."""
        return "\n".join(line for section in self.sections for line in _html(section))

    def _columns(self) -> dict[str, list[Any]]:
        """Return the columns of the table: text, numbers, and "" for columns that a run lacks."""
        parts = [(run.which, run.columns) for run in self.runs.values()]
        columns: dict[str, list[Any]] = {name: [] for name in _ordered([which | more for which, more in parts])}
        for which, recorded in parts:
            n = len(recorded["episode"])
            for name, column in columns.items():
                column += recorded[name].tolist() if name in recorded else [which.get(name, "")] * n
        return columns

    def _write_table(self) -> list[Path]:
        """Write the table as CSV and, where pyarrow is installed, as Parquet."""
        paths = [self.folder / f"{TABLE}.csv"]
        write_csv(paths[0], self._columns())
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError:
            return paths
        sink = arrow.BufferOutputStream()
        parquet.write_table(arrow.table(self.table()), sink)
        paths.append(self.folder / f"{TABLE}.parquet")
        write_bytes(paths[1], sink.getvalue().to_pybytes())
        return paths

    def _write_summary(self) -> list[Path]:
        """Write the summary as CSV, Markdown and LaTeX."""
        paths = [self.folder / f"{SUMMARY}.{form}" for form in ("csv", "md", "tex")]
        write_csv(paths[0], {name: ["" if v is None else v for v in column] for name, column in self.summary().items()})
        for path, written in zip(paths[1:], (_markdown, _latex), strict=True):
            text = "\n".join(line for section in self.sections for line in written(section))
            write_bytes(path, text.encode(errors="replace"))
        return paths


# --------------------------------------------------------------------------------------------- reading


def check_folder(folder: Path, *, live: bool) -> None:
    """Refuse a folder without results, and name the studies inside it; a `live` study may have no results yet."""
    if not folder.is_dir():
        if folder.exists():
            raise InvalidInputError(f"{folder} is a file; give the folder of a study")
        raise InvalidInputError(f"there is no folder {folder}")
    if (folder / f"{TABLE}.csv").is_file() or any(folder.glob(f"{RUNS}/*/{HISTORY}")):
        return
    if (folder / STUDY).is_file():
        if live:
            return
        raise InvalidInputError(f"no run in {folder} has results yet; to continue the study: tightrope sweep {folder}")
    if (folder / FILE).is_file():
        raise InvalidInputError(f"{folder} is a problem, not the folder of a study; to run it: tightrope run {folder}")
    if studies := studies_in(folder):
        raise InvalidInputError(f"{folder} is not the folder of a study; it holds these: {studies}")
    if not live:
        raise InvalidInputError(f"{folder} holds no {TABLE}.csv and no {RUNS}/*/{HISTORY}; give the folder of a study")


def studies_in(folder: Path) -> str:
    """Return a hint that names the folders of studies inside a folder; empty if there are none."""
    found = sorted(str(path.parent) for path in folder.glob(f"*/{STUDY}"))
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f"{', '.join(found[:LISTED])}{more}"


def _read(path: Path, folder: Path) -> list[RunResult]:
    """The runs of a table or a history, in order."""
    with path.open(newline="", encoding="utf-8") as file:
        heading, *rows = [*csv.reader(file)] or [[]]
    missing = {"run", "problem", "learner", "seed", "episode"} - set(heading)
    if missing:
        raise InvalidInputError(f"{path} has no column {sorted(missing)[0]!r}; expected a table of a study")
    at, runs = heading.index("run"), dict[str, list[list[str]]]()
    for row in rows:
        runs.setdefault(row[at], []).append(row)
    return [_run(name, dict(zip(heading, zip(*rows, strict=True), strict=True)), folder) for name, rows in runs.items()]


def _run(name: str, cells: Mapping[str, Sequence[str]], folder: Path) -> RunResult:
    which = {key: column[0] for key, column in cells.items() if (key in RUN_COLUMNS or "." in key)}
    columns = {
        key: np.array([float(cell or "nan") for cell in column])
        for key, column in cells.items()
        if key not in which and any(column)
    }
    path = folder / RUNS / name
    facts = RunFolder(path).facts()
    try:
        about = msgspec.convert(facts.get("problem", {}), Facts)
    except msgspec.ValidationError:
        about = Facts()
    return RunResult(name, path, which, columns, about, facts.get("settings", {}))


def _conditions(run: RunResult) -> tuple[str, ...]:
    options = [f"{name}={value}" for name, value in run.which.items() if name.startswith(OPTIONS)]
    return (*(run.which.get(name, "") for name in CONDITIONS), run.which.get("episodes", ""), *options)


def _section(runs: Sequence[RunResult], tell_noise: bool) -> Section:
    first = runs[0]
    alike: dict[tuple[str, ...], list[RunResult]] = {}
    for run in runs:
        alike.setdefault((run.which["learner"], *_options(run, "learner").values()), []).append(run)
    labels = _labels([group[0] for group in alike.values()])
    last = max(float(run.columns["episode"][-1]) for run in runs)
    return Section(
        title=_title(first, tell_noise),
        horizon=int(first.which.get("episodes") or last),
        which=first.which,
        facts=first.facts,
        curves=[Curve(label, group) for label, group in zip(labels, alike.values(), strict=True)],
    )


def _options(run: RunResult, kind: str) -> dict[str, str]:
    """Return the options of one kind, such as {"radius_scale": "0.1"}, from the columns of a run."""
    return {name.partition(".")[2]: value for name, value in run.which.items() if name.startswith(f"{kind}.")}


def _title(run: RunResult, tell_noise: bool) -> str:
    """Return problem, losses, noise and limits of budgets.

    Deterministic constraints only where other sections differ.
    """
    parts = []
    for kind, word in zip(CONDITIONS, ("", " losses", " constraints"), strict=True):
        name = run.which.get(kind)
        if not name or ((kind, name) == ("noise", "none") and not tell_noise):
            continue
        options = ", ".join(f"{key}={value}" for key, value in _options(run, kind).items() if value)
        plain = "constant" if (kind, name) == ("noise", "none") else name
        parts.append(f"{plain}{word}{f' ({options})' if options else ''}")
    limits = [f"budget of {key} {value}" for key, value in _options(run, "budget").items() if value]
    return ", ".join([*parts, *limits])


def _labels(firsts: Sequence[RunResult]) -> list[str]:
    """The name of each learner, with the options that distinguish it from others of that name."""
    labels = []
    for run in firsts:
        others = [other.which for other in firsts if other.which["learner"] == run.which["learner"]]
        differing = [
            f"{key}={value}"
            for key, value in _options(run, "learner").items()
            if value and any(other.get(f"learner.{key}") != value for other in others)
        ]
        labels.append(" ".join([run.which["learner"], *differing]))
    return labels


# --------------------------------------------------------------------------------------------- writing


def _ordered(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of all runs: the run, its options, its records in own units, then in the learner's units."""
    met = list(dict.fromkeys(name for part in parts for name in part))
    options = sorted(name for name in met if "." in name)
    which = [name for name in RUN_COLUMNS if name in met]
    rest = [name for name in met if name not in which and name not in options]
    own = [name for name in rest if not name.endswith(SCALED)]
    return [*which[:5], *options, *which[5:], *own, *(name for name in rest if name.endswith(SCALED))]


def _typed(column: Sequence[str | float]) -> list[int | float | str | None]:
    """Cells as numbers if all of them are, as integers if all of them are; empty ones as None."""
    cells = [None if cell == "" else cell for cell in column]
    try:
        numbers = [None if cell is None else float(cell) for cell in cells]
    except ValueError:
        return list(cells)
    whole = all(n is None or (n.is_integer() and abs(n) < LARGEST_INTEGER) for n in numbers)
    return [None if n is None else int(n) for n in numbers] if whole else list(numbers)


def _caption(section: Section) -> str:
    n = len(section.seeds)
    spread = f"mean over {n} seeds [{SPREAD}]" if n > 1 else f"seed {section.seeds[0]}"
    return f"{section.title}; after {section.horizon} episodes; {spread}"


def _markdown(section: Section) -> list[str]:
    headings, rows = section.summary()
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return [_caption(section), "", *(f"| {' | '.join(line)} |" for line in cells), ""]


#: Characters with another meaning in LaTeX.
LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$"
}  # fmt: skip


def _latex(section: Section) -> list[str]:
    headings, rows = section.summary()
    lines = [" & ".join("".join(LATEX.get(c, c) for c in cell) for cell in line) + r" \\" for line in [headings, *rows]]
    columns = "l" + "r" * (len(headings) - 1)
    body = [r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"]
    return [f"% {_caption(section)}", rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}", ""]


def _html(section: Section) -> list[str]:
    headings, rows = section.summary()
    tagged = [("th", headings), *(("td", row) for row in rows)]
    lines = ["".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line) for tag, line in tagged]
    caption = f"<caption>{escape(_caption(section))}</caption>"
    return [f"<table>{caption}", *(f"<tr>{line}</tr>" for line in lines), "</table>"]
