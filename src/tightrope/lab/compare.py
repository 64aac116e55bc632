"""Several learners on one problem, each as it would play alone."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from joblib import Parallel, delayed

from tightrope.arguments import MOST_RUNS, function, listed, whole
from tightrope.ending import end_with_parent
from tightrope.errors import CallbackError, InvalidInputError
from tightrope.lab.callbacks import Callback
from tightrope.lab.history import History
from tightrope.lab.run import Regret, Run
from tightrope.learners import Maker, learner_called, make_learner
from tightrope.problems import problem_or_named
from tightrope.problems.base import Problem

#: More processes than this no machine has room for.
MOST_JOBS = 10_000


def compare(
    problem: Problem | str,
    learners: str | Sequence[str] | Mapping[str, Maker],
    *,
    episodes: int,
    seeds: int | Sequence[int] = 1,
    n_jobs: int = 1,
    records: int = 60,
    regret: Regret = "records",
    callback: Callback | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, list[History]]:
    """Play `problem` with several learners: for each one history per seed, all under the same conditions.

    Parameters
    ----------
    problem : a problem, or the name of one.
    learners : a name, names, or labels with what makes each learner: {"wide": partial(tr.make_learner, "ucpd"), …}.
    seeds : how many (0, 1, …), or which.
    n_jobs : how many processes share the runs, and end with this one; -1 is one per core. The results are the same.
    records, regret : as in `run`.
    callback : as in `run`, of every run; it is called in this process, and so is played with n_jobs = 1.
    progress : called with the number of runs done, after each.
    """
    played_on = problem_or_named(problem)
    if not isinstance(learners, Mapping):
        names = [learners] if isinstance(learners, str) else listed(learners, "learners")
        learners = {learner_called(name).name: partial(make_learner, name) for name in names}
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

    def play_one(label: str, make: Maker, seed: int) -> History:
        end_with_parent()
        learner = make(played_on, episodes=episodes, seed=seed)
        run = Run(played_on, learner, episodes=episodes, seed=seed, records=records, regret=regret)
        run.name = f"{played_on.name}-{label}-seed{seed}"
        return run.play(callback=callback)

    jobs = (delayed(play_one)(label, make, seed) for label, make in learners.items() for seed in which)
    played: list[History] = []
    try:
        for done, history in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs), 1):
            played.append(history)
            if progress is not None:
                progress(done)
    except CallbackError as error:
        error.histories = played
        raise
    one_by_one = iter(played)
    return {label: [next(one_by_one) for _ in which] for label in learners}
