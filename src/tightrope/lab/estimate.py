"""An estimate of the time and memory of a study, from a short trial of each learner on each problem."""

import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import joblib

from tightrope.errors import TightropeError
from tightrope.lab.engines import Engine
from tightrope.lab.folder import RUNS, RunFolder, finished
from tightrope.lab.plan import Configuration, digest
from tightrope.lab.progress import lasting
from tightrope.lab.run import Run
from tightrope.lab.runner import resolved
from tightrope.lab.study import Study
from tightrope.lab.tables import aligned

#: Seconds of a trial, and episodes before it: the first ones compile, renew sets and fill caches.
TRIAL, WARM_UP = 0.5, 3


def estimate(study: Study, folder: Path, engine: Engine, beside: Path) -> list[str]:
    """The runs of a study, which of them are finished, and how long the others would take: lines of text."""
    _, configurations = resolved(study, beside)
    there = {run.name: finished(RunFolder(folder / RUNS / run.name), run) for run in configurations}
    rows = [(run.name, f"{run.episodes:,}", "finished" if there[run.name] else "to play") for run in configurations]
    waiting = [run for run in configurations if not there[run.name]]
    lines = [*aligned(["run", "episodes", ""], rows, text=["run", ""]), ""]
    total = f"{len(configurations)} runs, {sum(run.episodes for run in configurations):,} episodes in all"
    if not waiting:
        return [*lines, f"{total}; all are finished"]
    cores = joblib.cpu_count() if engine.jobs == -1 else engine.jobs
    jobs = min(cores, len(waiting))
    seconds = trials(waiting)
    return [
        *lines,
        f"{total}; {len(waiting)} to play",
        f"about {lasting(seconds / jobs)} on {jobs} processes of this machine, from trials of {TRIAL} s each",
        *(f"about {megabytes:.0f} MB of memory for each process" for megabytes in peak_memory()),
    ]


def peak_memory() -> list[float]:
    """The peak memory of this process in megabytes; empty where the system does not tell."""
    if sys.platform == "win32":
        return []
    import resource

    return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)]


def trials(configurations: Sequence[Configuration]) -> float:
    """Seconds of work, by short trials; runs that differ only in options or seed share one."""
    kinds: dict[tuple[str, str], list[Configuration]] = {}
    for run in configurations:
        kinds.setdefault((digest(run.conditions), run.learner.name), []).append(run)
    return sum(trial(runs[0]) * sum(run.episodes for run in runs) for runs in kinds.values())


def trial(configuration: Configuration) -> float:
    """Seconds of work for an episode, records included."""
    problem = configuration.conditions.make_problem()
    run = Run(problem, configuration.make_learner(problem), **configuration.how)
    began, first = process_time(), 0
    try:
        for episode in run.played():
            if episode == WARM_UP:
                began, first = process_time(), episode
            elif episode > WARM_UP and process_time() - began >= TRIAL:
                break
    except TightropeError:  # reported when it is played
        return 0.0
    return (process_time() - began) / max(1, run.episode - first)
