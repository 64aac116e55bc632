"""What lies in the folder of a study (docs/studies.md), as arrays: runs that are compared with each other, together.

Only its files are looked at: the table, or while it is being played the histories of the runs, and their `run.json`.
"""

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.lab.folder import HISTORY, RUN, RunFolder
from tightrope.lab.history import USE, Budget
from tightrope.lab.runner import RUNS, STUDY, studies_in
from tightrope.lab.studies.table import RUN_COLUMNS, SCALED, TABLE
from tightrope.space import FloatArray

#: What tells runs that are compared with each other from the rest, each with its options (problem.…).
CONDITIONS = ("problem", "losses", "noise")
OPTIONS = ("problem.", "losses.", "noise.", "budget.")

Row = dict[str, str]


@dataclass(frozen=True)
class Curve:
    """All runs of one learner with the same options."""

    label: str
    runs: list[str]  # one for each seed
    seeds: list[int]
    columns: dict[str, FloatArray]  # (n_seeds, n) over the records of the section; NaN where a run has none
    settings: dict[str, Any]  # what the learner ran with


@dataclass(frozen=True)
class Section:
    """Runs under the same conditions, for equally many episodes."""

    title: str
    horizon: int
    episodes: FloatArray  # (n,) of the records
    budgets: list[Budget]  # a limit is NaN if nobody has said
    loss_unit: str
    units: str  # of the violation over all constraints, in words
    curves: list[Curve]


@dataclass(frozen=True)
class Progress:
    """How far the runs have come."""

    finished: int
    running: dict[str, int]  # the episode that each has reached
    failed: dict[str, str]  # what went wrong, in words


def sections(folder: Path, *, live: bool = False) -> list[Section]:
    """All runs of the table; `live`: all that are in the folder, as far as they have come."""
    groups: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for row in _rows(folder, live=live):
        groups.setdefault(_conditions(row), {}).setdefault(row["run"], []).append(row)
    return [_section(folder, list(runs.values())) for runs in groups.values()]


def check_folder(folder: Path, *, live: bool) -> None:
    """Refuse a folder without results, and name the studies inside it; a `live` study may have no results yet."""
    if not folder.is_dir():
        raise InvalidInputError(f"there is no folder {folder}")
    if (folder / STUDY).is_file() and live:
        return
    if (folder / f"{TABLE}.csv").is_file() or any(folder.glob(f"{RUNS}/*/{HISTORY}")):
        return
    if studies := studies_in(folder):
        raise InvalidInputError(f"{folder} holds several studies; give one of them: {studies}")
    if not live:
        raise InvalidInputError(f"{folder} holds no {TABLE}.csv and no {RUNS}/*/{HISTORY}; give the folder of a study")


def progress(folder: Path) -> Progress:
    """What the runs say of themselves."""
    finished, running, failed = 0, {}, {}
    for path in sorted(folder.glob(f"{RUNS}/*/{RUN}")):
        run, report = path.parent.name, _report(path.parent)
        match report.get("status"):
            case "finished" | "stopped":
                finished += 1
            case "running":
                running[run] = RunFolder(path.parent).episode()
            case "failed":
                failed[run] = str(report.get("words", ""))
    return Progress(finished, running, failed)


def _rows(folder: Path, *, live: bool) -> Iterable[Row]:
    tables = [folder / f"{TABLE}.csv"]
    if live or not tables[0].is_file():
        tables = sorted(folder.glob(f"{RUNS}/*/{HISTORY}"))
    if not tables:
        check_folder(folder, live=live)
    for path in tables:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            missing = {"run", "problem", "learner", "seed", "episode"} - set(lines.fieldnames or ())
            if missing:
                raise InvalidInputError(f"{path} has no column {sorted(missing)[0]!r}; expected a table of a study")
            yield from lines


def _conditions(row: Row) -> tuple[str, ...]:
    options = [f"{name}={row[name]}" for name in row if name.startswith(OPTIONS)]
    return (*(row.get(name, "") for name in CONDITIONS), row.get("episodes", ""), *options)


def _section(folder: Path, runs: list[list[Row]]) -> Section:
    first = runs[0][0]
    episodes = np.unique(np.array([float(row["episode"]) for rows in runs for row in rows]))
    facts = _report(folder / RUNS / first["run"]).get("problem", {})
    metrics = _metrics([rows[0] for rows in runs])
    alike: dict[tuple[str, ...], list[list[Row]]] = {}
    for rows in runs:
        alike.setdefault((rows[0]["learner"], *_options(rows[0], "learner").values()), []).append(rows)
    labels = _labels([group[0][0] for group in alike.values()])
    return Section(
        title=_title(first),
        horizon=int(first.get("episodes") or episodes[-1]),
        episodes=episodes,
        budgets=_budgets(facts, metrics),
        loss_unit=str(facts.get("loss_unit", "")),
        units=str(facts.get("units", "")),
        curves=[
            _curve(folder, label, group, episodes, metrics) for label, group in zip(labels, alike.values(), strict=True)
        ],
    )


def _curve(folder: Path, label: str, runs: list[list[Row]], episodes: FloatArray, metrics: list[str]) -> Curve:
    columns = {name: np.full((len(runs), len(episodes)), np.nan) for name in metrics}
    for k, rows in enumerate(runs):
        at = np.searchsorted(episodes, [float(row["episode"]) for row in rows])
        for name, column in columns.items():
            column[k, at] = [float(row[name] or "nan") for row in rows]
    return Curve(
        label=label,
        runs=[rows[0]["run"] for rows in runs],
        seeds=[int(rows[0]["seed"]) for rows in runs],
        columns=columns,
        settings=_report(folder / RUNS / runs[0][0]["run"]).get("settings", {}),
    )


def _metrics(rows: list[Row]) -> list[str]:
    """The columns of what was recorded, in own units, that these runs have."""
    names = [name for name in rows[0] if "." not in name and not name.endswith(SCALED)]
    return [name for name in names if name not in (*RUN_COLUMNS, "episode") and any(row.get(name) for row in rows)]


def _budgets(facts: Mapping[str, Any], metrics: list[str]) -> list[Budget]:
    told = [Budget(one["column"], one["name"], one["unit"], float(one["limit"])) for one in facts.get("budgets", [])]
    named = [Budget(name, name.removeprefix(USE), "", np.nan) for name in metrics if name.startswith(USE)]
    return [budget for budget in told if budget.column in metrics] or named


def _options(row: Row, kind: str) -> dict[str, str]:
    return {name: value for name, value in row.items() if name.startswith(f"{kind}.")}


def _told(name: str, value: str) -> str:
    """learner.radius_scale, 0.1 → radius_scale=0.1."""
    return f"{name.partition('.')[2]}={value}"


def _title(row: Row) -> str:
    parts = []
    for kind, word in zip(CONDITIONS, ("", " losses", " constraints"), strict=True):
        if row.get(kind) and (kind, row[kind]) != ("noise", "none"):
            options = ", ".join(_told(name, value) for name, value in _options(row, kind).items() if value)
            parts.append(f"{row[kind]}{word}{f' ({options})' if options else ''}")
    limits = [f"budget of {_told(name, value)}" for name, value in _options(row, "budget").items() if value]
    return ", ".join([*parts, *limits])


def _labels(firsts: list[Row]) -> list[str]:
    """A name, with the options that tell it from others of that name."""
    labels = []
    for row in firsts:
        others = [other for other in firsts if other["learner"] == row["learner"]]
        told = [
            _told(name, value)
            for name, value in _options(row, "learner").items()
            if value and any(other[name] != value for other in others)
        ]
        labels.append(" ".join([row["learner"], *told]))
    return labels


def _report(run: Path) -> dict[str, Any]:
    """The `run.json` of a run, as far as it goes; nothing where there is none that can be read."""
    try:
        found = json.loads((run / RUN).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
