"""The work of the commands after parsing: play studies and check problems."""

import json
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from tightrope import theory
from tightrope.cli import note, options, show
from tightrope.cli.options import Conduct
from tightrope.errors import InvalidInputError, TightropeError
from tightrope.lab import figures
from tightrope.lab.engines import Engine
from tightrope.lab.plan import folder_of
from tightrope.lab.report import served
from tightrope.lab.results import Results, studies_in
from tightrope.lab.runner import conducted, estimate, shown
from tightrope.lab.study import STUDY, Study, with_budgets, with_values
from tightrope.problems import PROBLEMS, make
from tightrope.problems.files import load_with_digest
from tightrope.problems.files.declaration import FILE


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
