"""The work of the commands after parsing: play studies, check problems, learn from recorded episodes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tightrope.cli import note, options, show
from tightrope.cli.options import Conduct
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.lab.engines import Engine
from tightrope.lab.plan import folder_of
from tightrope.lab.report import served
from tightrope.lab.results import Results, studies_in
from tightrope.lab.runner import conducted, estimate, shown
from tightrope.lab.study import STUDY, Study, with_budgets, with_values
from tightrope.learners import load, make_learner
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import Policy
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem, load_with_digest
from tightrope.problems.files.declaration import FILE
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, read_table
from tightrope.problems.logs import evaluate
from tightrope.problems.logs.estimate import best_within, has_steps, log_of, write_from_log


def study_file(path: Path) -> Path:
    """Return the file of a study, given that file or its folder; for a problem, raise an error that names `run`."""
    if path.is_dir() and (path / STUDY).is_file():
        return path / STUDY
    if path.name == FILE or (path / FILE).is_file():
        folder = path.parent if path.name == FILE else path
        raise InvalidInputError(f"{path} is a problem, not a study; to run it: tightrope run {folder}")
    if path.is_dir() and (studies := studies_in(path)):
        raise InvalidInputError(f"{path} is not the folder of a study; it holds these: {studies}")
    if str(path) in PROBLEMS and not path.exists():
        raise InvalidInputError(f"{path} is a problem, not a study; to run it: tightrope run {path}")
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
    engine = Engine(conduct.jobs, conduct.backend, conduct.address)
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
    from tightrope.lab import figures

    if not results.runs:
        return
    sections = results.sections
    for section in sections:
        show("\n".join([*section.lines(), ""]))
    show(f"table    {results.tables[0]}")
    show(f"summary  {results.summaries[0]} (and .md, .tex)")
    for k, section in enumerate(sections if draw else (), 1):
        name = "picture" if len(sections) == 1 else f"picture-{k}"
        show(f"picture  {figures.save(section.plot(), results.folder, name)[0]} (and .svg)")


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
    from tightrope import theory
    from tightrope.lab import figures
    from tightrope.theory.page import draw, facts, page
    from tightrope.theory.runs import answering

    if figure is not None:
        figures.form_of(figure)  # refused before anything is computed
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
        figures.write(draw(found), figure)
        note(f"picture  {figure}")
    return found.holds


# --------------------------------------------------------------------------------------------- recorded episodes


def _pairs(flag: str, given: Iterable[str]) -> dict[str, str]:
    """Parse --unit loss=euros --unit hours=h."""
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise typer.BadParameter(f"{flag} {text}: expected a name and a value, NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def _numbers(flag: str, given: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Parse --bins level=10,20,50 --bins hour=6,12."""
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
