"""The actions of the commands, after parsing: studies, checks, directories, new learners, and recorded episodes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tightrope import theory
from tightrope.cli import note, options, show
from tightrope.cli.options import Conduct
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.lab import drawing
from tightrope.lab.engines import Engine
from tightrope.lab.folder import STUDY
from tightrope.lab.plan import folder_of
from tightrope.lab.progress import shown
from tightrope.lab.report.page import served
from tightrope.lab.results import Results, studies_in
from tightrope.lab.runner import conducted, estimate
from tightrope.lab.study import Study, with_budgets, with_values
from tightrope.learners import load, make_learner
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import Policy
from tightrope.problems import make
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem, load_with_digest
from tightrope.problems.files.declaration import FILE
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, read_table
from tightrope.problems.logs import evaluate
from tightrope.problems.logs.folder import best_within, has_steps, log_of, write_from_log


def study_file(path: Path) -> Path:
    """Return the file of a study, given by the file or its folder; refuse a problem, and name the right command."""
    if path.is_dir() and (path / STUDY).is_file():
        return path / STUDY
    if path.name == FILE or (path / FILE).is_file():
        folder = path.parent if path.name == FILE else path
        raise InvalidInputError(f"{path} is a problem, not a study; to run it: tightrope run {folder}")
    if path.is_dir() and (studies := studies_in(path)):
        raise InvalidInputError(f"{path} holds several studies; give one of them: {studies}")
    return path


def with_options(study: Study, conduct: Conduct) -> Study:
    """`study` with the values of --set and --budget."""
    return with_budgets(with_values(study, conduct.set_ or []), options.budgets(conduct.budget or []))


def play_study(study: Study, folder: Path, conduct: Conduct, *, beside: Path = Path(), draw: bool) -> None:
    """Play a study, print its results and where they are."""
    if conduct.jobs == 0:
        raise InvalidInputError("--jobs is 0; give a number of parallel runs, or -1 for one for each core")
    if conduct.address is not None and conduct.backend not in ("dask", "ray"):
        raise InvalidInputError(f"--address needs --backend dask or ray; the backend is {conduct.backend}")
    engine = Engine(conduct.jobs, conduct.backend.value, conduct.address)
    if conduct.dry_run:
        show("\n".join(estimate(study, folder, engine, beside)))
        return
    with ExitStack() as meanwhile:
        if conduct.watch:
            note(f"live page: {meanwhile.enter_context(served(folder, conduct.port))}")
        board = None
        if conduct.tensorboard is not None:
            from tightrope.interop import TensorBoard

            board = meanwhile.enter_context(TensorBoard(conduct.tensorboard))
        results = meanwhile.enter_context(
            conducted(
                study,
                folder,
                engine,
                beside=beside,
                fresh=conduct.fresh,
                save_every=conduct.checkpoint_every,
                watch=shown,
                callback=board,
                tell=note,
            )
        )
        _print(results, draw)
    if results.failed:
        name, words = next(iter(results.failed.items()))
        n = len(results.failed)
        others = f" ({n} runs failed; the same command tries them again)" if n > 1 else ""
        raise TightropeError(f"{name}: {words}{others}")


def _print(results: Results, draw: bool) -> None:
    """Print the tables before drawing the pictures, which takes a while."""
    if not results.runs:
        return
    sections = results.sections
    for section in sections:
        show("\n".join([*section.lines(), ""]))
    show(f"table    {results.tables[0]}")
    show(f"summary  {results.summaries[0]} (and .md, .tex)")
    for k, section in enumerate(sections if draw else (), 1):
        name = "picture" if len(sections) == 1 else f"picture-{k}"
        show(f"picture  {drawing.save(section.plot(), results.folder, name)[0]} (and .svg)")


def check_problem(
    name: str,
    episodes: int,
    seed: int,
    losses: str | None,
    noise: str | None,
    level: float | None,
    limits: Mapping[str, float],
    learner: str,
    figure: Path | None,
    as_json: bool,
) -> bool:
    """Print what the theorem says about a problem, by name or in a folder; return whether its assumptions hold."""
    from tightrope.theory.page import facts, page
    from tightrope.theory.picture import draw
    from tightrope.theory.runs import answering

    if figure is not None:
        drawing.form_of(figure)  # refused before anything is computed
    place, asked = folder_of(name, Path()), {"losses": losses, "noise": noise}
    chosen: Any = {kind: choice for kind, choice in asked.items() if choice is not None}
    loaded = make(name, **chosen) if place is None else load_with_digest(place, **chosen, any_budgets=True)[0]
    problem = loaded.with_budgets(limits)
    at: dict[str, Any] = {} if level is None else {"level": level}
    with shown(episodes, 1, 0, 0) if answering(problem) else nullcontext() as tell:
        found = theory.check(
            problem,
            episodes=episodes,
            seed=seed,
            **at,
            learner=learner,
            progress=tell and (lambda done: tell(done, 0)),
        )
    show(json.dumps(facts(found), indent=2, ensure_ascii=False) if as_json else "\n".join(page(found)))
    if figure is not None:
        drawing.write(draw(found), figure)
        note(f"picture  {figure}")
    return found.holds


def inspect_directory(folder: Path, in_json: bool, policy: Path | None) -> bool:
    """Print the state of a durable learner, write its policy; return whether its directory is undamaged."""
    from tightrope.ops.inspection import as_json, inspect, page, write_policy

    found = inspect(folder)
    show(json.dumps(as_json(found), indent=2, ensure_ascii=False) if in_json else "\n".join(page(found)))
    if policy is not None and found.status is not None:
        write_policy(found.status.policy, policy, found.facts.get("states", ()), found.facts.get("actions", ()))
        note(f"policy  {policy}")
    return not found.damage


def migrate_directory(folder: Path, dry_run: bool) -> None:
    """Migrate the directory of a durable learner to the present format; a dry run does so in memory."""
    from tightrope.ops.formats import FORMAT
    from tightrope.ops.inspection import format_of, inspect
    from tightrope.ops.learner import DurableLearner

    found = inspect(folder)
    if found.damage:
        raise TightropeError(f"{folder} is damaged and was not migrated: {'; '.join(found.damage)}")
    before = format_of(folder)
    if before == FORMAT:
        show(f"{folder} has format {FORMAT} already")
        return
    if not dry_run:
        DurableLearner(folder).close()
    show(f"{folder} {'would be' if dry_run else 'was'} migrated from format {before} to {FORMAT}")
    copy = folder / f"before-format-{FORMAT}"
    note(f"a copy of format {before} {'would be' if dry_run else 'is'} kept in {copy}")


def backup_directory(folder: Path, file: Path) -> None:
    """Write a backup of a durable learner."""
    from tightrope.ops.backups import backup

    last = backup(folder, file)
    show(f"{file} holds {folder} up to event {last}, {file.stat().st_size / 1e6:.2f} MB")


def restore_directory(file: Path, folder: Path, to_event: int | None) -> None:
    """Restore a durable learner from a backup."""
    from tightrope.ops.backups import restore

    status = restore(file, folder, to_event).status
    if status is not None:
        show(f"{folder} is at event {status.event}: {status.told} episodes told, {status.open} open")


def new_learner(directory: Path, problem: str, learner: str, episodes: int | None, name: str | None) -> Any:
    """Make the learner that the options of `tightrope serve` describe, for its directory."""
    from tightrope.ops.server import NewLearner

    if name is not None and (not name or name in (".", "..") or "/" in name):
        raise InvalidInputError(f"--name {name!r} cannot be the name of a folder")
    place = folder_of(problem, Path())
    found: Problem = make(problem) if place is None else load_problem(place)
    return NewLearner(directory / name if name else directory, found, make_learner(learner, found, episodes=episodes))


def _pairs(flag: str, given: Iterable[str]) -> dict[str, str]:
    """Parse options such as --unit loss=euros --unit hours=h."""
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise typer.BadParameter(f"{flag} {text}: expected a name and a value, NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def _numbers(flag: str, given: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Parse options such as --bins level=10,20,50."""
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
    """Write the problem of a log, and print its limitations."""
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
    """Print the estimates of a policy from the log of a folder."""
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
