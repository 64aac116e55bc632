"""A problem folder from a log: the estimated tables, and the log itself after repairs."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.problems.base import Problem
from tightrope.problems.files.declaration import FILE, Toml
from tightrope.problems.files.folder import new_folder
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, read_table
from tightrope.problems.logs.estimate import Estimated, checked_limits, estimated, largest_use, loss_bounds
from tightrope.problems.logs.log import Column, Log, read_log
from tightrope.storage.files import write_bytes, write_csv

LOG = "log.csv"

TOML = """\
# Made from a log of {episodes} episodes: {source}
# `tightrope check {folder}` says what can be had, `tightrope learn {folder} FILE` makes a learner that knows the log,
# and `tightrope evaluate {folder} best` says what the best policy would cost. Every key is explained in
# docs/how-to/your-own-problem.md.

n_steps = {n_steps}
start = {start}
terminal = {terminal}
transitions = "transitions.csv"   # state, action, next_state and how often that was seen
allow_unreachable = true
log = "{log}"                   # the recorded episodes
warnings = {warnings}

[loss]
table = "costs.csv"               # means over the log
unit = {loss_unit}
bounds = [{low:.17g}, {high:.17g}]{guessed}
"""

CONSTRAINT = """
[constraints.{key}]
table = "costs.csv"
column = {column}
unit = {unit}
budget = {budget:.17g}
bounds = [{low:.17g}, {high:.17g}]
"""


def write_from_log(
    folder: Path,
    source: str | PathLike[str] | Log | Any,
    *,
    budgets: Mapping[str, float],
    columns: Mapping[str, Column] | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    by_step: bool = False,
    terminal: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[list[Path], Estimated]:
    """Write the problem of a log to a new folder; return its files and the estimate.

    Parameters are those of `problem_from_log`; `folder` must not exist. Nothing is written if an error is raised.
    """
    named, given = dict(units or {}), dict(bounds or {})
    limits = checked_limits(budgets, named, given)
    log = read_log(source, budgets=tuple(limits), columns=columns, bins=bins)
    made = estimated(log, by_step=by_step, terminal=terminal)
    low, high = loss_bounds(log, given.get("loss"))
    text = TOML.format(
        episodes=log.n_episodes,
        source=json.dumps(Path(source).name if isinstance(source, str | PathLike) else "a table", ensure_ascii=False),
        folder=folder if str(folder).isprintable() else "FOLDER",
        n_steps=log.n_steps,
        start=_start(made),
        terminal=json.dumps([made.states[k] for k in made.terminal], ensure_ascii=False),
        log=LOG,
        warnings=json.dumps(list(made.notes), ensure_ascii=False, indent=4),
        loss_unit=json.dumps(named.get("loss", ""), ensure_ascii=False),
        low=low,
        high=high,
        guessed="" if "loss" in given else "   # what was recorded; make them wider if more can happen",
    )
    for budget, limit in limits.items():
        least, most = given.get(budget) or (-(largest := largest_use(log, budget, None)), largest)
        largest_use(log, budget, given.get(budget))
        text += CONSTRAINT.format(
            key=json.dumps(budget, ensure_ascii=False),
            column=json.dumps(budget, ensure_ascii=False),
            unit=json.dumps(named.get(budget, ""), ensure_ascii=False),
            budget=limit,
            low=least,
            high=most,
        )
    new_folder(folder)
    write_csv(folder / "transitions.csv", _transitions(made))
    write_csv(folder / "costs.csv", _costs(made))
    write_csv(folder / LOG, _columns(log))
    write_bytes(folder / FILE, text.encode())
    return [folder / name for name in (FILE, "transitions.csv", "costs.csv", LOG)], made


def log_of(folder: Path) -> Log:
    """Return the log that `problem.toml` names."""
    toml = Toml(folder / FILE)
    if toml.whole.log is None:
        raise InvalidInputError(f'{toml.path} names no log; add log = "FILE", or make the folder with --from-log')
    return read_log(folder / toml.whole.log, budgets=tuple(toml.constraints))


def has_steps(folder: Path) -> bool:
    """Return whether the transitions of a problem folder have a column step."""
    path = folder / Toml(folder / FILE).whole.transitions
    return "step" in read_table(path, read_regular(path, MOST_BYTES), (), None).columns


def best_within(problem: Problem) -> Policy:
    """Return the best policy within the budgets of an estimated problem, whose losses are the same in all episodes."""
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    return solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).policy


def _start(made: Estimated) -> str:
    names = {made.states[k]: chance for k, chance in made.start.items()}
    if len(names) == 1:
        return json.dumps(next(iter(names)), ensure_ascii=False)
    return "{ " + ", ".join(f"{json.dumps(n, ensure_ascii=False)} = {p:.17g}" for n, p in names.items()) + " }"


def _transitions(made: Estimated) -> dict[str, Sequence[object]]:
    state, action, then = made.rows.T.tolist()
    steps = {} if made.steps is None else {"step": made.steps.tolist()}
    return {
        **steps,
        "state": [made.states[k] for k in state],
        "action": [made.actions[k] for k in action],
        "next_state": [made.states[k] for k in then],
        "count": made.counts.tolist(),
    }


def _costs(made: Estimated) -> dict[str, Sequence[object]]:
    state, action = made.pairs[:, -2:].T.tolist()
    return {
        **({"step": made.pairs[:, 0].tolist()} if made.by_step else {}),
        "state": [made.states[k] for k in state],
        "action": [made.actions[k] for k in action],
        "loss": made.loss.tolist(),
        **dict(zip(made.log.budgets, made.uses.tolist(), strict=True)),
    }


def _columns(log: Log) -> dict[str, Sequence[object]]:
    return {
        "episode": (log.episode + 1).tolist(),
        "step": log.step.tolist(),
        "state": log.state.tolist(),
        "action": log.action.tolist(),
        **({"next_state": log.next_state.tolist()} if log.ends_known else {}),
        "loss": log.loss.tolist(),
        **dict(zip(log.budgets, log.uses.tolist(), strict=True)),
        **({} if log.probability is None else {"probability": log.probability.tolist()}),
    }
