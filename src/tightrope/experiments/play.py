"""A request played: all learners and seeds, alone here or side by side in processes, with the same results."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import joblib
import numpy as np

from tightrope.errors import ConvergenceError
from tightrope.experiments.history import History, in_units
from tightrope.experiments.progress import Watch, silence
from tightrope.experiments.request import Request
from tightrope.experiments.run import run
from tightrope.experiments.workers import Message, side_by_side
from tightrope.kernels.compile import compiled_before as compiled_before
from tightrope.learners import LearnerBase, learner_called, make_learner
from tightrope.problems.base import Problem
from tightrope.storage.files import write_csv

#: What a learner ran with.
Settings = dict[str, float | str]


@dataclass(frozen=True)
class Prepared:
    """A request whose names are known to be right. What only one run needs is made here, and only here."""

    request: Request
    problem: Problem
    learner: LearnerBase | None  # of the only run; where there are several, each makes its own


@dataclass(frozen=True)
class Played:
    """What came of it, by learner."""

    histories: dict[str, list[History]]  # one for each seed, in the problem's own units
    settings: dict[str, Settings]


def prepare(request: Request) -> Prepared:
    """Make the problem and look up the learners, or refuse the request before anything is written."""
    problem, request = request.make_problem()
    for name in request.learners:
        learner_called(name)
    if len(request.runs) > 1:
        return Prepared(request, problem, None)
    [(name, seed)] = request.runs
    return Prepared(request, problem, make_learner(name, problem, episodes=request.episodes, seed=seed))


def play(prepared: Prepared, folder: Path, watch: Watch = silence) -> Played:
    """Play every run; the table of each is in `folder` as soon as it is done."""
    request = prepared.request
    histories: dict[str, list[History]] = {learner: [] for learner in request.learners}
    settings: dict[str, Settings] = {}
    with closing(_results(prepared, folder, watch)) as results:
        for (learner, _), (history, ran_with) in zip(request.runs, results, strict=True):
            histories[learner].append(history)
            settings.setdefault(learner, ran_with)
    return Played(histories, settings)


def _results(prepared: Prepared, folder: Path, watch: Watch) -> Generator[tuple[History, Settings]]:
    """In the order of `Request.runs`."""
    request = prepared.request
    if prepared.learner is not None:
        with watch("episodes", request.episodes) as show:
            yield _play_one(request, *request.runs[0], folder, prepared.problem, prepared.learner, show)
        return

    n_cores, n_runs = joblib.cpu_count(), len(request.runs)
    n_workers = min(n_cores, n_runs)
    with (
        side_by_side(_jobs(request, folder), n_workers, n_threads=n_cores // n_workers) as answers,
        watch("seeds" if len(request.learners) == 1 else "runs", n_runs) as show,
    ):
        for done, answer in enumerate(answers, 1):
            yield _heard(answer)
            show(done)


def _jobs(request: Request, folder: Path) -> list[Message]:
    """What `answer` takes, for each run."""
    asked = {"request": asdict(request), "folder": str(folder)}
    return [asked | {"learner": learner, "seed": seed} for learner, seed in request.runs]


def answer(request: Message, learner: str, seed: int, folder: str) -> Message:
    """A run that another process asked for; numbers go through JSON with all their bits."""
    history, ran_with = _play_one(Request(**request), learner, seed, Path(folder))
    columns = {name: column.tolist() for name, column in history.items()}
    return {"columns": columns, "settings": history.settings, "ran_with": ran_with}


def _heard(answer: Message) -> tuple[History, Settings]:
    """The other way round."""
    columns = {name: np.array(column) for name, column in answer["columns"].items()}
    return History(columns, answer["settings"]), answer["ran_with"]


def _play_one(
    request: Request,
    name: str,
    seed: int,
    folder: Path,
    problem: Problem | None = None,
    learner: LearnerBase | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[History, Settings]:
    """One run; its table is on disk before the next begins."""
    problem = problem or request.make_problem()[0]
    try:
        learner = learner or make_learner(name, problem, episodes=request.episodes, seed=seed)
        history = run(problem, learner, episodes=request.episodes, seed=seed, progress=progress)
    except ConvergenceError as error:
        which = f"seed {seed}" if len(request.learners) == 1 else f"{name}, seed {seed}"
        raise ConvergenceError(f"{which}: {error}") from error
    history = in_units(problem, history)
    write_csv(folder / request.table_name(name, seed), history)
    return history, learner.settings
