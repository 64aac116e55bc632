"""The last policies of the learners, layer by layer, next to the best fixed policy in hindsight.

The policy of a learner is read from the last checkpoint of its first seed; hindsight is for the first of these runs.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import TightropeError
from tightrope.lab.folder import RUNS, RunFolder
from tightrope.lab.results import Section
from tightrope.lab.run import Run
from tightrope.lab.worker import saved
from tightrope.model import Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.problems.base import Problem

#: The most states that the page shows.
MOST_STATES = 1500

#: Actions with a lower probability are left out.
RAREST = 0.005

#: The names of states that are cells of a grid.
CELL = re.compile(r"row (\d+), column (\d+)")


def policies(folder: Path, section: Section) -> dict[str, Any]:
    """The policies as plain data; `words` is the reason where there are none."""
    loaded: dict[str, Run] = {}
    words = ""
    for curve in section.curves:
        try:
            loaded[curve.label] = _load(RunFolder(folder / RUNS / curve.runs[0].name))
        except (TightropeError, OSError) as error:
            words = f"{curve.runs[0].name}: {error}"
    if not loaded:
        return {"words": f"The policies are not known: {words}"}
    first = next(iter(loaded.values()))
    problem, space = first.problem, first.problem.space
    if space.n_states > MOST_STATES:
        return {"words": f"The problem has {space.n_states} states in {space.n_layers} layers, too many to show here."}
    met = first.account.total_constraints / first.episode if problem.changing else problem.constraints.mean
    best = solve_cmdp(problem.mdp, first.account.total_loss, met, problem.budgets).policy
    return {
        "words": "",
        "actions": [problem.action_name(action) for action in range(space.n_actions)],
        "layers": _layers(problem),
        "seed": first.seed,
        "learned": [
            {"label": label, "episode": run.episode, "states": _states(problem, run.learner.policy)}
            for label, run in loaded.items()
        ],
        "hindsight": _states(problem, best),
    }


def _load(folder: RunFolder) -> Run:
    report = folder.report()
    if report is None or not folder.checkpoint.is_file():
        raise TightropeError("there is no checkpoint")
    return saved(folder, report.configuration)


def _layers(problem: Problem) -> list[list[dict[str, Any]]]:
    """For each layer except the last, its states: the name, and the cell if the problem is a grid."""
    starts = problem.space.csr.layer_ptr.tolist()
    layers = []
    for first, last in pairwise(starts[:-1]):
        names = [problem.state_name(state) for state in range(first, last)]
        cells = [CELL.search(name) for name in names]
        layers.append(
            [
                {"name": name, "cell": [int(part) for part in cell.groups()] if cell else None}
                for name, cell in zip(names, cells, strict=True)
            ]
        )
    return layers


def _states(problem: Problem, policy: Policy) -> list[list[Any]]:
    """For each state the expected visits per episode and the probabilities: [visits, [[action, probability], …]]."""
    space, theta = problem.space, problem.mdp.occupancy(policy)
    visits = np.bincount(space.tuples[:, 0], weights=theta, minlength=space.n_states)
    pairs = list(zip(space.pairs[:, 1].tolist(), policy.probabilities.round(3).tolist(), strict=True))
    ends = space.csr.state_ptr.tolist()
    n_choosing = int(space.csr.layer_ptr[-2])
    return [
        [round(float(visits[s]), 4), [pair for pair in pairs[ends[s] : ends[s + 1]] if pair[1] >= RAREST]]
        for s in range(n_choosing)
    ]
