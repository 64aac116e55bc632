"""A request played: all learners and seeds, alone here or side by side in processes, with the same results."""

import signal
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import joblib

from tightrope.errors import ConvergenceError
from tightrope.experiments.history import History, in_units
from tightrope.experiments.progress import Watch, silence
from tightrope.experiments.request import Request
from tightrope.experiments.run import run
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

    with _interrupts_ignored():  # the workers start deaf to Ctrl-C and stay so: it is ours alone to answer
        # workers that are there already may have started elsewhere
        place, asked = folder.absolute(), request.anywhere()
        jobs = (joblib.delayed(_play_one)(asked, learner, seed, place) for learner, seed in request.runs)
        arriving = joblib.Parallel(n_jobs=-1, return_as="generator")(jobs)
    try:
        with watch("seeds" if len(request.learners) == 1 else "runs", len(request.runs)) as show:
            for done, result in enumerate(arriving, 1):
                yield result
                show(done)
    finally:
        with warnings.catch_warnings(action="ignore"):  # it warns that it cancels what is no longer wanted
            arriving.close()


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


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
