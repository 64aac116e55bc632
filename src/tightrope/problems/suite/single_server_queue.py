"""Single-server queue: keep it short without working too hard or turning too many away.

Up to 5 customers wait, 0 at the start. In each step the operator chooses how fast to serve, a in {0.2, 0.4, 0.6, 0.8},
and how many to let in, b in {0.4, 0.5, 0.6, 0.7}: with probability a one is served, with probability b one arrives,
independently. The queue x

    0 < x < 5   down with a (1 − b), up with (1 − a) b, else stays
    x = 0       up with (1 − a) b, else stays (an arrival may be served at once)
    x = 5       down with a, else stays (the queue is full)

Two constraints, as averages over the steps: the effort of serving, 10 a, at most 5; and the cost of turning customers
away, 10 (1 − b)², at most 2. Loss scenarios:

    0  waiting   x customers
    1  rush      x (k + 1) / n_steps in step k: waiting late in the day is worse
    2  empty     5 − x: an idle server is expensive

References: E. Altman, "Constrained Markov decision processes", Chapman & Hall 1999 (control of service and flow). L.
Zheng, L. J. Ratliff, "Constrained upper confidence reinforcement learning", L4DC 2020 (a queue of this size with two
constraints of this shape). Made episodic here; the numbers, as they stand, and scenarios 1 and 2 are this package's.
"""

import numpy as np

from tightrope.arguments import MOST_STATES, number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll

SERVICE = (0.2, 0.4, 0.6, 0.8)
FLOW = (0.4, 0.5, 0.6, 0.7)


def single_server_queue(
    *,
    capacity: int = 5,
    n_steps: int = 10,
    max_effort: float = 5.0,
    max_turned_away: float = 2.0,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """At most `capacity` customers, `n_steps` steps, limits as averages over the steps."""
    capacity = whole(capacity, "capacity", 2, MOST_STATES)
    n_steps = whole(n_steps, "n_steps", at_least=1)

    rows: dict[tuple[int, int, int], float] = {}
    for x in range(capacity + 1):
        for action, (a, b) in enumerate((a, b) for a in SERVICE for b in FLOW):
            down, up = a * (1 - b), (1 - a) * b
            if x == 0:
                down = 0.0
            elif x == capacity:
                down, up = a, 0.0
            moves = {x - 1: down, x: 1 - down - up, x + 1: up}
            rows |= {(x, action, x_next): chance for x_next, chance in moves.items() if chance > 0}
    layout = unroll(list(rows), list(rows.values()), n_steps=n_steps)

    x, action, _, step = layout.tuples.T
    effort = 10 * np.repeat(SERVICE, len(FLOW))
    turned_away = 10 * (1 - np.tile(FLOW, len(SERVICE))) ** 2
    limits = [
        number(max_effort, "max_effort", 0, effort.max()),
        number(max_turned_away, "max_turned_away", 0, turned_away.max()),
    ]
    return Problem.from_units(
        name="single-server-queue",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[x, x * (step + 1) / n_steps, capacity - x],
        losses=losses,
        loss_unit="customers",
        uses=[effort[action], turned_away[action]],
        use_bounds=[effort.max(), turned_away.max()],
        noise=noise,
        budgets=n_steps * np.array(limits),
        constraint_names=("effort", "turned away"),
        state_names=layout.state_names([f"queue {x}" for x in range(capacity + 1)]),
        action_names=tuple(f"serve {a}, admit {b}" for a in SERVICE for b in FLOW),
    )
