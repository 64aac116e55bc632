"""How often the intervals of off-policy evaluation hold: `python -m benchmarks.off_policy [SIMULATIONS]`.

The machine of `tightrope new` is played for 400 weeks by a policy that runs it with probability 0.6, and every policy
below is evaluated from that log alone. An interval of 95 % should hold in 95 % of all simulations, or more.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import tightrope as tr
from tests.problems.recorded import recorded
from tightrope.lab.tables import aligned
from tightrope.problems.base import Problem
from tightrope.problems.files import load_problem, write_example

EPISODES, BEHAVIOUR = 400, 0.6


def truth() -> Problem:
    """Return the machine, with the losses of its first week in all weeks."""
    with TemporaryDirectory() as place:
        folder = Path(place, "machine")
        write_example(folder)
        return load_problem(folder, losses="fixed")


def policies(problem: Problem) -> dict[str, tr.Policy]:
    """Return the policies to evaluate: near the one that was played, the best within the budget, and one between."""
    space, first = problem.space, np.ones(problem.space.n_pairs, dtype=bool)
    first[1:] = np.diff(space.pairs[:, 0]) != 0
    many = np.repeat(np.bincount(space.pairs[:, 0]), np.bincount(space.pairs[:, 0])) > 1
    near = np.where(many, np.where(first, 0.7, 0.3), 1.0)
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    best = tr.solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).policy.probabilities
    found = {"near": near, "between": (near + best) / 2, "best": best}
    return {name: tr.Policy(space, probabilities) for name, probabilities in found.items()}


def costs(problem: Problem, policy: tr.Policy) -> dict[str, float]:
    """Return the true expected loss and use of the policy in an episode."""
    theta = problem.mdp.occupancy(policy)
    loss = float(problem.losses.begin(np.random.default_rng(0)).loss(1) @ theta)
    [hours] = problem.use_in_units(problem.constraints.mean @ theta).tolist()
    return {"loss": float(problem.loss_in_units(loss, 1.0)), "hours": hours}


def coverage(simulations: int, seed: int = 0) -> list[tuple[str, str, str, int, int, float]]:
    """Return a row for each policy, method and quantity: the simulations with an interval, how many held, the width."""
    problem = truth()
    played = policies(problem)
    found: dict[tuple[str, str, str], list[float]] = {}
    right = {name: costs(problem, policy) for name, policy in played.items()}
    for k in range(simulations):
        log = tr.read_log(recorded(EPISODES, seed=seed + k, noise=20.0, first=BEHAVIOUR), budgets=("hours",))
        for name, policy in played.items():
            evaluation = tr.evaluate(policy, log)
            for method in ("model", "importance"):
                for what, estimate in (getattr(evaluation, method) or {}).items():
                    row = found.setdefault((name, method, what), [0, 0, 0.0])
                    row[0] += 1
                    row[1] += right[name][what] in estimate
                    row[2] += estimate.high - estimate.low
    return [(*key, int(n), int(held), width / n) for key, (n, held, width) in found.items()]


def main(simulations: int) -> None:
    """Run the simulations, and print the table."""
    rows = [
        (policy, method, what, str(n), f"{held / n:.1%}", f"{width:.3g}")
        for policy, method, what, n, held, width in coverage(simulations)
    ]
    headings = ("policy", "method", "of", "simulations", "held", "width")
    print("\n".join(aligned(headings, rows, text=headings[:3])))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
