"""Charging an electric car at home, at the day-ahead prices of the Netherlands, 2015 to early 2025.

An episode is a night. The car is away at 16:00, comes home in the next hours with some energy missing, and leaves
at 07:00. Arrivals and energy are drawn from what home chargers in the Netherlands recorded (ElaadNL): the hour of
arrival from 17:00 to 24:00 (earlier ones count as 17:00, later ones as 24:00), and the missing energy in units of 3.7
kWh, at most 12 of them (44.4 kWh). Every hour the charger, which has three phases of 16 A, does one of

    discharge   1 unit from the car into the grid
    off
    3.7 kW      1 unit into the car
    7.4 kW      2 units
    11 kW       3 units

as far as the car has room or energy. A unit takes 3.7 / 0.92 kWh from the grid and gives 3.7 · 0.92 kWh back to it.
With p the price of the hour on that night, in euros per kWh, wholesale and without taxes,

    loss        p · energy from the grid                                 euros, negative when energy is sold
    missing     energy still missing at 07:00                            kWh, 2 a night on average
    discharged  energy out of the car: wear of its battery               kWh, 4 a night on average

Losses are the 3,659 nights in their order (`losses="replay"`), from the evening of the first day of the table to the
morning of its last: prices have no stationary distribution, in particular not in 2022. The learner sees the prices of a
night after it. In practice day-ahead prices are known in the evening, so that each night can be planned on its own;
docs/explanation/real-problems.md gives the difference.

The first five days of the table are alike in the source, and so are the first four nights.

References: prices from the ENTSO-E Transparency Platform, arrivals and energy from ElaadNL, both as distributed in S.
Orfanoudakis, C. Diaz-Londono, Y. E. Yılmaz, P. Palensky, P. P. Vergara, "EV2Gym: a flexible V2G simulator for EV smart
charging research and benchmarking", IEEE Transactions on Intelligent Transportation Systems, 2024 (`problems/traces`).
Charger, efficiency and budgets are this package's.
"""

import numpy as np

from tightrope.arguments import number
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.factors import Factors
from tightrope.problems.losses import LossChoice
from tightrope.problems.traces import read_rows
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: The hours of a night.
HOURS = (*range(16, 24), *range(7))

#: The energy of a unit in kWh, the most missing units, and the efficiency from the grid to the battery or back.
UNIT, MOST, EFFICIENCY = 3.7, 12, 0.92

#: The actions: name, and units that go into the car.
RATES = (("discharge", -1), ("off", 0), ("3.7 kW", 1), ("7.4 kW", 2), ("11 kW", 3))

#: The state of a car that is not at home; the other states are numbers of missing units.
AWAY = MOST + 1


def ev_charging(
    *,
    max_missing: float = 2.0,
    max_discharged: float = 4.0,
    losses: LossChoice = "replay",
    noise: NoiseChoice = "none",
) -> Problem:
    """The budgets are in kWh a night."""
    budgets = [
        number(max_missing, "max_missing", 0, MOST * UNIT),
        number(max_discharged, "max_discharged", 0, UNIT * len(HOURS)),
    ]
    arrives, missing = home_charging()
    rows, chances, steps = [], [], []
    for step in range(len(HOURS)):
        home = [(AWAY, 1, units, float(arrives[step] * chance)) for units, chance in enumerate(missing)]
        for row in [*home, (AWAY, 1, AWAY, float(1 - arrives[step]))]:
            if row[3] > 0:
                rows.append(row[:3])
                chances.append(row[3])
                steps.append(step)
        for units in range(MOST + 1):
            for action, (_, charged) in enumerate(RATES):
                if 0 <= units - charged <= MOST:
                    rows.append((units, action, units - charged))
                    chances.append(1.0)
                    steps.append(step)
    layout = unroll(rows, chances, n_steps=len(HOURS), steps=steps, start=AWAY)

    into_car = UNIT * np.array([units for _, units in RATES])
    from_grid = np.where(into_car > 0, into_car / EFFICIENCY, into_car * EFFICIENCY)
    last = np.arange(len(HOURS)) == len(HOURS) - 1
    charge = Factors("0.001 * price[episode, step] * grid[action]", price=night_prices(), grid=from_grid)
    missing_energy = Factors(
        "last[step] * missing[next_state]", last=last, missing=[*(UNIT * n for n in range(MOST + 1)), 0]
    )
    discharged = Factors("out[action]", out=np.maximum(-into_car, 0))
    names = [*(f"{UNIT * n:.1f} kWh missing" for n in range(MOST + 1)), "away"]
    return Problem.from_units(
        name="ev-charging",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=layout.lay_out(charge),
        losses=losses,
        loss_unit="euros",
        uses=[layout.lay_out(use) for use in (missing_energy, discharged)],
        use_bounds=[MOST * UNIT, UNIT],
        noise=noise,
        budgets=budgets,
        constraint_names=("missing", "discharged"),
        constraint_units=("kWh", "kWh"),
        state_names=layout.state_names(names),
        action_names=tuple(name for name, _ in RATES),
    )


def night_prices() -> FloatArray:
    """(n_nights, n_steps) EUR/MWh from 16:00 of a day to 07:00 of the next."""
    _, rows = read_rows("dutch-day-ahead-prices")
    prices = np.array([row[1:] for row in rows], dtype=np.float64)
    return np.concatenate([prices[:-1, 16:], prices[1:, :7]], axis=1)


def home_charging() -> tuple[FloatArray, FloatArray]:
    """Return the probability of an arrival in each step (n_steps,), and of each number of missing units (13,)."""
    _, rows = read_rows("dutch-home-charging")
    shares = np.array([float(value) for what, _, value in rows if what.startswith("arrivals")])
    arriving = np.zeros(len(HOURS))  # by the end of the hour: from 12:00 on, and those after midnight at 24:00
    arriving[0] = shares[12:17].sum()
    arriving[1:8] = shares[17:24]
    arriving[7] += shares[:2].sum()
    left = arriving.sum() - np.concatenate([[0.0], np.cumsum(arriving)[:-1]])
    arrives = np.ones(len(HOURS))  # every car is back by midnight
    arrives[:8] = arriving[:8] / left[:8]
    arrives[7] = 1.0
    energy = np.array([float(value) for what, _, value in rows if what.startswith("kWh")][::-1])
    units = np.clip(np.ceil((energy[1:] + energy[:-1]) / 2 / UNIT), 0, MOST).astype(np.int64)  # of each per cent
    return arrives, np.bincount(units, minlength=MOST + 1) / len(units)
