"""Several learners on one problem, under the same conditions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from tightrope.arguments import MOST_RUNS, function, listed, whole
from tightrope.errors import CallbackError, InvalidInputError, TightropeError
from tightrope.lab.history import History
from tightrope.lab.pool import number_of_workers
from tightrope.lab.run import Callback, Regret, Run
from tightrope.learners import Maker, learner_called, make_learner
from tightrope.problems import problem_or_named
from tightrope.problems.base import Problem
from tightrope.signals import end_with_parent

#: More processes than any machine has room for.
MOST_JOBS = 10_000


def compare(
    problem: Problem | str,
    learners: str | Sequence[str | Maker] | Mapping[str, Maker],
    *,
    episodes: int,
    seeds: int | Sequence[int] = 1,
    n_jobs: int = 1,
    records: int = 60,
    regret: Regret = "records",
    callback: Callback | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, list[History]]:
    """Run several learners on a problem, all under the same conditions.

    Parameters
    ----------
    problem : a problem, or the name of one.
    learners : a name, or a list of names and of functions make(problem, *, episodes, seed) that return a learner, or
        labels with such functions: {"wide": partial(tr.make_learner, "ucpd")}.
    episodes, records, regret : as in `run`.
    seeds : how many (0, 1, …), or which.
    n_jobs : how many processes share the runs; -1 is one for each core. The results do not depend on it.
    callback : as in `run`, for every run; it is called in this process, and takes n_jobs = 1.
    progress : called with the number of finished runs, after each.

    Returns
    -------
    dict : for each learner one history for each seed.

    Raises
    ------
    InvalidInputError : if an argument is wrong.
    InfeasibleError : if no policy can meet the budgets.
    CallbackError : if the callback raises an error; `histories` are those of the runs that finished before.

    Examples
    --------
    >>> import tightrope as tr
    >>> histories = tr.compare("media-streaming", ["ucpd-practical", "uniform"], episodes=50, seeds=2)
    >>> {name: len(of_seeds) for name, of_seeds in histories.items()}
    {'ucpd-practical': 2, 'uniform': 2}
    """
    played_on = problem_or_named(problem)
    if not isinstance(learners, Mapping):
        names = [learners] if isinstance(learners, str) else listed(learners, "learners")
        learners = dict(labelled(one) for one in names)
    for given, what in ((callback, "callback"), (progress, "progress")):
        if given is not None:
            function(given, what)
    for label, maker in learners.items():
        function(maker, f"learners[{label!r}]")
    episodes, n_jobs = whole(episodes, "episodes", 1), whole(n_jobs, "n_jobs", -1, MOST_JOBS)
    if n_jobs == 0:
        raise InvalidInputError("n_jobs is 0; it is a number of processes, or -1 for one per core")
    if callback is not None and n_jobs != 1:
        raise InvalidInputError(f"n_jobs is {n_jobs}; a callback is called in this process, and takes n_jobs = 1")
    if isinstance(seeds, int):
        which: Sequence[int] = range(whole(seeds, "seeds", 1, MOST_RUNS))
    else:
        which = [whole(seed, "a seed", 0) for seed in listed(seeds, "seeds")]

    how: dict[str, Any] = {"episodes": episodes, "records": records, "regret": regret}
    jobs = [partial(play, played_on, label, make, seed, how) for label, make in learners.items() for seed in which]
    in_processes = n_jobs != 1 and len(jobs) > 1
    histories = _in_processes(jobs, n_jobs) if in_processes else (job(callback=callback) for job in jobs)
    played: list[History] = []
    try:
        for done, history in enumerate(histories, 1):
            played.append(history)
            if progress is not None:
                progress(done)
    except CallbackError as error:
        error.histories = played
        raise
    one_by_one = iter(played)
    return {label: [next(one_by_one) for _ in which] for label in learners}


def labelled(learner: str | Maker) -> tuple[str, Maker]:
    """Return a learner of a list with its label: its name, or that of the function that makes it."""
    label = getattr(learner, "__name__", None)
    if isinstance(label, str) and not isinstance(learner, (str, type)):
        return label, function(learner, f"learners[{label!r}]")
    return learner_called(cast("str", learner)).name, partial(make_learner, cast("str", learner))


def play(
    problem: Problem, label: str, make: Maker, seed: int, how: Mapping[str, Any], callback: Callback | None = None
) -> History:
    """Play one run of a comparison."""
    learner = make(problem, episodes=how["episodes"], seed=seed)
    run = Run(problem, learner, seed=seed, **how)
    run.name = f"{problem.name}-{label}-seed{seed}"
    return run.play(callback=callback)


def _in_processes(jobs: Sequence[Callable[[], History]], n_jobs: int) -> Iterator[History]:
    """Yield the histories of the jobs, in order, as workers of joblib play them; an error of a job is raised here."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    n_workers = number_of_workers(n_jobs, len(jobs))
    parallel = joblib.Parallel(n_workers, backend="loky", batch_size=1, return_as="generator")
    try:
        yield from parallel(joblib.delayed(_play_in_worker)(job) for job in jobs)
    except TerminatedWorkerError as error:
        raise TightropeError("a process of the comparison was ended from outside; run it again") from error


def _play_in_worker(job: Callable[[], History]) -> History:
    """Play a run in a worker, which ends with its parent."""
    end_with_parent()
    return job()
