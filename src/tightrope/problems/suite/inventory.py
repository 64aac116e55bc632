"""Inventory: order stock before an uncertain demand, on a budget for ordering and holding.

The stock is 0..5 units and starts at 0. Each day a ≤ 5 − s units are ordered and arrive at once, then the demand is d
units, with probabilities 0.3, 0.2, 0.2, 0.2, 0.05, 0.05 for d = 0..5; demand beyond the stock is lost:

    s' = max(s + a − d, 0)

    revenue   8 (s + a − s')                        8 for each unit sold; the loss is its negative
    cost      4 [a > 0] + 2 a + (s + a)             an order, each unit of it, and each unit held over the day

A week has 7 days. In the units of the learner, the cost is divided by the largest cost of a day, 19, and the budget is
3.5 (66.5 in the units above). Loss scenarios, with the price of a unit on day k = 0..6:

    0  steady    8
    1  rising    2 + 2 k       from 2 to 14
    2  falling   14 − 2 k

Losses are divided by the largest of all, 14 · 5 = 70.

References: A. Bura, A. HasanzadeZonuzy, D. Kalathil, S. Shakkottai, J.-F. Chamberland, "DOPE: doubly optimistic and
pessimistic exploration for safe reinforcement learning", NeurIPS 2022 (stock, demand, days and budget; costs as shares
of the largest). M. L. Puterman, "Markov decision processes", Wiley 1994, section 3.2 (prices and costs: 8 for a unit
sold, 4 for an order, 2 for a unit ordered, 1 for a unit held). Scenarios 1 and 2 are this package's.
"""

from collections.abc import Sequence

import numpy as np

from tightrope.arguments import listed, number, room, whole
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: Probability that 0, 1, 2, … units are asked for.
DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)

#: The costs of an order, of each unit of it, and of each unit held over the day.
ORDER, UNIT, HOLDING = 4.0, 2.0, 1.0


def inventory(
    *,
    capacity: int = 5,
    n_days: int = 7,
    demand: Sequence[float] = DEMAND,
    budget: float = 3.5,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """Up to `capacity` units in stock, `demand` for 0, 1, … units, `budget` in days of the largest cost."""
    capacity = whole(capacity, "capacity", at_least=1)
    n_days = whole(n_days, "n_days", at_least=1)
    budget = number(budget, "budget", 0, n_days)
    chances = [number(p, f"demand[{d}]", 0, 1) for d, p in enumerate(listed(demand, "demand"))]
    room((capacity + 1) ** 2 * len(chances), "a stock of this capacity")
    if abs(sum(chances) - 1) > 1e-9:
        raise InvalidInputError(f"the probabilities of demand sum to {sum(chances):.12g}, not 1")

    rows: dict[tuple[int, int, int], float] = {}
    for s in range(capacity + 1):
        for a in range(capacity - s + 1):
            for d, chance in enumerate(chances):
                row = (s, a, max(s + a - d, 0))
                rows[row] = rows.get(row, 0.0) + chance
    layout = unroll(list(rows), list(rows.values()), n_steps=n_days)

    def revenue(price: FloatArray) -> FloatArray:
        return layout.lay_out(lambda s, a, s_next, day: price[day] * (s + a - s_next))

    day = np.arange(n_days, dtype=np.float64)
    prices = (np.full(n_days, 8.0), 2 + 2 * day, 2 * (n_days - day))
    largest_cost = ORDER + (UNIT + HOLDING) * capacity
    cost = layout.lay_out(lambda s, a, s_next, day: ORDER * (a > 0) + UNIT * a + HOLDING * (s + a))
    return Problem.from_units(
        name="inventory",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[-revenue(price) for price in prices],
        losses=losses,
        loss_unit="money",
        uses=[cost],
        use_bounds=[largest_cost],
        noise=noise,
        budgets=[budget * largest_cost],
        constraint_names=("cost",),
        constraint_units=("money",),
        state_names=layout.state_names([f"stock {s}" for s in range(capacity + 1)]),
        action_names=tuple(f"order {a}" for a in range(capacity + 1)),
    )
