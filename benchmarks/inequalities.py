"""python -m benchmarks.inequalities: the time of a projection with inequalities, beside one without and beside CVXPY.

The cost changes a little from episode to episode, as in a run. Every row has slack at the answer for another cost, so
that about half of them bind. Times are of the processor, the shortest of several replays.
"""

import argparse
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import tightrope as tr
from benchmarks import page
from benchmarks.measure import clock, duration
from tests.conftest import random_mdp
from tests.conic import measures
from tightrope.projection.priced import PricedProjector
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace

SIZES = ((5, 3, 4), (10, 4, 10), (20, 4, 10))  # states of a layer, actions, steps
NUMBERS = (1, 3, 10)
EPISODES, REPLAYS = 20, 5
CONIC = 4_000  # the most tuples for which CVXPY is timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="print only; do not write docs/explanation/benchmarks.md")
    rows = [row for size in SIZES for row in measured(*size)]
    heads = ["model", "tuples", "inequalities", "binding", "plain, warm", "with, warm", "ratio", "steps", "with, cold"]
    text = page.table([*heads, "CVXPY and Clarabel"], rows)
    print(text)
    if not parser.parse_args().print:
        page.write("inequalities", text)


def measured(width: int, n_actions: int, n_steps: int) -> list[list[str]]:
    """Return a row of the table for every number of inequalities."""
    space = LayeredSpace.dense([1, *[width] * (n_steps - 1), 1], n_actions)
    rng = np.random.default_rng(5)
    ball = tr.L1Ball(random_mdp(rng, space).transitions, np.full(space.n_pairs, 0.3))
    reference, cost = space.uniform(), rng.uniform(-1, 1, space.n_tuples)
    costs = [cost + 0.05 * rng.uniform(-1, 1, space.n_tuples) for _ in range(EPISODES)]
    plain, theta = Projector(space), np.empty(space.n_tuples)

    def plain_solve(c: FloatArray) -> int:
        plain.solve(reference, c, ball, theta)
        return plain.iterations

    alone, _ = shortest(plain_solve, costs)
    table = []
    for m in NUMBERS:
        A = rng.uniform(0, 1, (m, space.n_tuples))
        b = A @ tr.project(space, reference, rng.uniform(-1, 1, space.n_tuples), ball).theta
        b -= 0.02 * (b - A @ tr.project(space, reference, A.sum(axis=0), ball).theta)
        solver = PricedProjector(space, m)

        def warm_solve(c: FloatArray, A: FloatArray = A, b: FloatArray = b, solver: Any = solver) -> int:
            solver.solve(reference, c, ball, A, b, np.full(len(b), np.inf), theta)
            return int(solver.iterations)

        def cold_solve(c: FloatArray, A: FloatArray = A, b: FloatArray = b) -> int:
            return warm_solve(c, A, b, PricedProjector(space, len(b)))

        warm, steps = shortest(warm_solve, costs)
        cold, _ = shortest(cold_solve, costs[:2])
        binding = int(np.count_nonzero(solver.multipliers))
        name = f"{width} x {n_actions} over {n_steps}"
        conic = duration(conic_seconds(space, reference, costs[0], ball, A, b)) if space.n_tuples <= CONIC else "—"
        times = [duration(alone), duration(warm), f"{warm / alone:.1f}", f"{steps:.1f}", duration(cold)]
        table.append([name, f"{space.n_tuples:,}", str(m), str(binding), *times, conic])
    return table


def shortest(solve: Callable[[FloatArray], int], costs: list[FloatArray]) -> tuple[float, float]:
    """Return seconds per episode, and Newton steps."""
    best, steps = np.inf, 0
    for _ in range(REPLAYS + 1):  # the first is a warm-up
        begin = clock()
        steps = sum(solve(cost) for cost in costs)
        best = min(best, clock() - begin)
    return best / len(costs), steps / len(costs)


def conic_seconds(
    space: LayeredSpace, reference: FloatArray, cost: FloatArray, ball: tr.L1Ball, A: FloatArray, b: FloatArray
) -> float:
    """Return the processor time of CVXPY for the problem as it is written."""
    begin = clock()
    theta, by_pair, held = among = measures(space)
    away = cp.abs(theta - sp.diags(ball.center) @ by_pair.T @ by_pair @ theta)
    held += [by_pair @ away <= sp.diags(ball.radius) @ by_pair @ theta, A @ theta <= b]
    among.nearest(reference, cost)
    return clock() - begin


if __name__ == "__main__":
    main()
