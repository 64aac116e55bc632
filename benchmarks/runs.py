"""Runs of learners that are written to a file as soon as they end, and statistics over them.

A *task* is a dictionary of JSON values that describes a run, a *row* the task with its results. A file of rows has one
JSON object per line, so that a benchmark that was stopped continues where it was.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import tightrope as tr
from tightrope.lab.history import use_columns
from tightrope.lab.tables import band
from tightrope.problems.base import Problem

MEASURES = ("regret", "violation", "strong_violation")

Row = dict[str, Any]
Play = Callable[..., Row]


def run(problem: Problem, learner: str, episodes: int, seed: int, options: Row | None = None) -> Row:
    """Play one run and return its results.

    Parameters
    ----------
    problem : what is played.
    learner : name of the learner.
    episodes : number of episodes T.
    seed : of the run, not of the problem.
    options : of the learner.

    Returns
    -------
    dict with the measures in shares of sqrt(L|S||A|T) and `use`, the largest use of a budget divided by that budget.
    """
    made = tr.make_learner(learner, problem, episodes=episodes, seed=seed, **(options or {}))
    history = tr.run(problem, made, episodes=episodes, seed=seed, records=1, regret="last")
    space = problem.space
    unit = np.sqrt(space.n_layers * space.n_states * space.n_actions * episodes)
    with np.errstate(divide="ignore", invalid="ignore"):  # a budget may be 0
        used = np.array([history[column][-1] for column in use_columns(problem)]) / (episodes * problem.budgets)
    return {measure: float(history[measure][-1] / unit) for measure in MEASURES} | {"use": float(used.max())}


def run_or_error(problem: Problem, learner: str, episodes: int, seed: int) -> Row:
    """Play one run and return its results, or {"error": words} if it raised an exception."""
    try:
        return run(problem, learner, episodes, seed)
    except Exception as error:  # a learner that fails is a result
        return {"error": f"{type(error).__name__}: {error}"}


def played(tasks: Sequence[Row], play: Play, results: Path, jobs: int = -1, *, again: bool = False) -> list[Row]:
    """Play all tasks in a pool of processes and return their rows, in order.

    Parameters
    ----------
    tasks : what to play; all have the same keys.
    play : called as play(**task), returns the row.
    results : the file of rows. Tasks that have a row there are not played; every row is appended when it is there.
    jobs : number of processes; -1 for all cores.
    again : play tasks that have a row, too; the last row of a task counts.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    text = results.read_text("utf-8") if results.exists() else ""
    names = tuple(tasks[0]) if tasks else ()
    known = {_key(row, names): row for row in _rows(text)}
    missing = [task for task in tasks if again or _key(task, names) not in known]
    print(f"{len(tasks) - len(missing)} runs are in {results}, {len(missing)} are to be played", flush=True)
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    with results.open("a", encoding="utf-8") as file:
        if text and not text.endswith("\n"):
            file.write("\n")  # the last run was stopped while it wrote
        for number, row in enumerate(parallel(joblib.delayed(play)(**task) for task in missing), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            known[_key(row, names)] = row
            print(f"{number}/{len(missing)} {' '.join(map(shown, row.values()))}", flush=True)
    return [known[_key(task, names)] for task in tasks]


def _rows(text: str) -> Iterable[Row]:
    """Yield the rows of a file; a line that was cut off is left out."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _key(row: Row, names: Sequence[str]) -> str:
    return json.dumps([row.get(name) for name in names], sort_keys=True)


def shown(value: object) -> str:
    """Return a value as text, numbers with three decimals."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def statistics(values: Sequence[float]) -> list[str]:
    """Return median, mean with its 95 % interval, 95th percentile and maximum, for a table; "–" without values."""
    if not values:
        return ["–"] * 4
    mean, low, high = (float(part[0]) for part in band(np.array(values)[:, None]))
    interval = f"{mean:.3f} ({low:.3f} to {high:.3f})" if len(values) > 1 else f"{mean:.3f}"
    return [f"{np.median(values):.3f}", interval, f"{np.quantile(values, 0.95):.3f}", f"{max(values):.3f}"]


def failures(rows: Sequence[Row]) -> str:
    """Return a Markdown list of the failed runs; empty if there are none."""
    names = ("learner", "problem", "losses", "allowed", "one_in", "crashes", "period", "seed", "episodes")
    lines = []
    for row in rows:
        if "error" in row:
            what = ", ".join(f"{name} {row[name]}" for name in names if name in row)
            lines.append(f"- {what}: {row['error']}")
    return "\n".join(lines)


def parser(description: str | None, learners: Sequence[str], results: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks of learners share.

    Parameters
    ----------
    description : the docstring of the benchmark.
    learners : those that are played without --learner.
    results : path of the file of rows.
    """
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--learner", action="append", metavar="NAME", help=f"repeatable; default {', '.join(learners)}")
    made.add_argument("--quick", action="store_true", help="a small edition, a minute or less")
    made.add_argument("--jobs", type=int, default=-1, help="number of processes; default: all cores")
    made.add_argument(
        "--results", type=Path, default=Path(results), help="file of rows; rows in it are not played again"
    )
    made.add_argument("--again", action="store_true", help="play rows of the file again, after a change of the learner")
    made.set_defaults(learners=tuple(learners))
    return made


def learners(given: argparse.Namespace) -> tuple[str, ...]:
    """Return the learners that were asked for, or the default ones."""
    return tuple(dict.fromkeys(given.learner or given.learners))
