"""`new --from-log`, `learn` and `evaluate`: a problem, a learner, and the cost of a policy, from recorded episodes."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import typer

from tightrope.cli import note, show
from tightrope.errors import InvalidInputError
from tightrope.learners import load, make_learner
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, read_table
from tightrope.problems.logs import evaluate
from tightrope.problems.logs.estimate import best_within, has_steps, log_of, write_from_log


def _pairs(flag: str, given: Iterable[str]) -> dict[str, str]:
    """--unit loss=euros --unit hours=h."""
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise typer.BadParameter(f"{flag} {text}: expected a name and a value, NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def _numbers(flag: str, given: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """--bins level=10,20,50."""
    try:
        return {name: tuple(map(float, value.split(","))) for name, value in _pairs(flag, given).items()}
    except ValueError as error:
        raise typer.BadParameter(f"{flag}: {error}; expected NAME=NUMBER,NUMBER,….") from error


def new_from_log(
    folder: Path,
    log: Path,
    budgets: dict[str, float],
    columns: Sequence[str],
    bins: Sequence[str],
    units: Sequence[str],
    bounds: Sequence[str],
    terminal: Sequence[str],
    by_step: bool,
) -> None:
    """Write the problem of a log, and print what it lacks."""
    limits = {}
    for name, values in _numbers("--bounds", bounds).items():
        if len(values) != 2 or not values[0] < values[1]:
            raise typer.BadParameter(f"--bounds {name}: expected the least and the largest value, NAME=LEAST,MOST.")
        limits[name] = (values[0], values[1])
    named = {role: tuple(value.split(",")) for role, value in _pairs("--column", columns).items()}
    files, made = write_from_log(
        folder,
        log,
        budgets=budgets,
        columns=named,
        bins=_numbers("--bins", bins),
        by_step=by_step,
        terminal=terminal,
        units=_pairs("--unit", units),
        bounds=limits,
    )
    for path in files:
        show(str(path))
    found = made.log
    note(
        f"{found.n_episodes} episodes of up to {found.n_steps} steps, {len(made.states)} states, "
        f"{len(made.pairs)} pairs that were tried"
    )
    for words in made.notes:
        note(words)
    note(f"next: tightrope check {folder}")


def learn_from_log(folder: Path, file: Path, name: str, episodes: int | None) -> None:
    """Make a learner for the problem of a folder, have it count the folder's log, and save it."""
    problem = load_problem(folder)
    if file.exists():
        try:
            load(file)
        except InvalidInputError as error:
            raise InvalidInputError(f"{file} is there already, and is no learner; choose another name") from error
    learner, log = make_learner(name, problem, episodes=episodes), log_of(folder)
    if not isinstance(learner, CountingLearner):
        raise InvalidInputError(f"{name} keeps no counts, and cannot learn from a log; ucpd-practical can")
    learner.learn_from(log)
    learner.save(file)
    show(str(file))
    visits = learner.state.counts.laws[0]
    shown = f"from {visits.min()} to {visits.max()} visits of each state and action"
    note(f"{learner.name} has counted {log.n_episodes} episodes: {shown}; visits of tied pairs are counted together")


def evaluate_policy(folder: Path, choice: str, level: float) -> None:
    """Print the estimates for a policy from the log of a folder."""
    problem = load_problem(folder)
    found = evaluate(_policy(choice, problem), log_of(folder), by_step=has_steps(folder), level=level)
    units = dict(zip(problem.constraint_names, problem.constraint_units, strict=True))
    show("\n".join(found.lines({"loss": problem.loss_unit, **units})))
    if choice == "best":
        note("best was chosen on this log, so its estimates tend to be too good; check it on episodes recorded later")


def _policy(choice: str, problem: Problem) -> Policy:
    if choice == "uniform":
        return Policy.uniform(problem.space)
    if choice == "best":
        return best_within(problem)
    path = Path(choice)
    if not path.is_file():
        raise InvalidInputError(f"{choice} is neither best nor uniform, and there is no such file")
    if path.suffix == ".csv":
        return _table(path, problem)
    learner = load(path)
    if learner.space != problem.space:
        raise InvalidInputError(f"{path} is a learner on {learner.space!r}; the problem has {problem.space!r}")
    return Policy(problem.space, learner.policy.probabilities)


def _table(path: Path, problem: Problem) -> Policy:
    """A policy as `Policy.table` and `tightrope inspect --policy` write it."""
    space = problem.space
    numbers = {(space.state_name(s), space.action_name(a)): i for i, (s, a) in enumerate(space.pairs.tolist())}
    probabilities = np.zeros(space.n_pairs)
    table = read_table(path, read_regular(path, MOST_BYTES), ("state_name", "action_name", "probability"), None)
    pairs = zip(table.names("state_name"), table.names("action_name"), strict=True)
    for row, (pair, chance) in enumerate(zip(pairs, table.numbers("probability").tolist(), strict=True)):
        if pair not in numbers:
            raise InvalidInputError(
                f"{table.where(row, 'state_name')}: the problem has no action {pair[1]!r} in {pair[0]!r}"
            )
        probabilities[numbers[pair]] = chance
    try:
        return Policy(space, probabilities)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error
