"""Autonomous driving: arrive soon, on a budget of fuel and of risk.

A road of 12 segments of 1 km, one a step. The car has one of the speeds 30, 50, 80, 100, 130 km/h and starts at 50. Its
driver brakes, holds or accelerates, by one level:

    brake        one level down
    hold         stays 0.9, one down 0.1 (traffic)
    accelerate   one up 0.8, stays 0.2

The segment is driven at the speed after that, v. Segment k bends by b_k = 0.1, 0.1, 0.4, 1, 0.4, 0.1, and again:

    loss    60 / min(v, jam_k) minutes                        jam_k the speed that traffic allows in this scenario
    fuel    0.04 + 0.06 (v / 100)² + 0.04 [accelerated] litres
    risk    b_k (v / 130)²                                    1 is a sharp bend at full speed

Loss scenarios: 0, a free road (jam_k is no limit); 1, the morning (30 km/h on segments 0..3); 2, the evening (30 km/h
on segments 6..11). Two constraints: at most `max_fuel` = 0.09 litres and `max_risk` = 0.1 a segment, on average.

References: S. Qiu, X. Wei, Z. Yang, J. Ye, Z. Wang, "Upper confidence primal-dual reinforcement learning for CMDP with
adversarial loss", NeurIPS 2020 (the example, in words: driving time against fuel efficiency and safety). H. M. Le, C.
Voloshin, Y. Yue, "Batch policy learning under constraints", ICML 2019 (constraints on driving). The model and its
numbers are this package's.
"""

import numpy as np

from tightrope.arguments import number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Indices
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: The speeds of the car, in km/h, and the index of the first one.
SPEEDS = np.array([30.0, 50.0, 80.0, 100.0, 130.0])
FIRST_LEVEL = 1

#: The bends of the segments, repeated on longer roads.
BENDS = np.array([0.1, 0.1, 0.4, 1.0, 0.4, 0.1])

#: Of 12 segments, those where traffic crawls at 30 km/h, in each scenario.
JAMS = (range(0), range(4), range(6, 12))

BRAKE, HOLD, ACCELERATE = range(3)


def autonomous_driving(
    *,
    n_segments: int = 12,
    max_fuel: float = 0.09,
    max_risk: float = 0.1,
    losses: LossChoice = "switching",
    noise: NoiseChoice = "scaled",
) -> Problem:
    """A road of `n_segments` segments; limits as averages over them, fuel in litres."""
    n_segments = whole(n_segments, "n_segments", at_least=1)
    top = len(SPEEDS) - 1

    rows: dict[tuple[int, int, int], float] = {}
    for level in range(top + 1):
        lower, higher = max(level - 1, 0), min(level + 1, top)
        for row, chance in (
            ((level, BRAKE, lower), 1.0),
            ((level, HOLD, level), 0.9),
            ((level, HOLD, lower), 0.1),
            ((level, ACCELERATE, higher), 0.8),
            ((level, ACCELERATE, level), 0.2),
        ):
            rows[row] = rows.get(row, 0.0) + chance
    layout = unroll(list(rows), list(rows.values()), n_steps=n_segments, start=FIRST_LEVEL)

    def minutes(jam: range) -> FloatArray:
        jammed = np.isin(np.arange(n_segments) * 12 // n_segments, jam)  # the same share of the road for any length

        def of_moves(s: Indices, a: Indices, s_next: Indices, segment: Indices) -> FloatArray:
            pace: FloatArray = 60 / np.where(jammed[segment], SPEEDS[0], SPEEDS[s_next])
            return pace

        return layout.lay_out(of_moves)

    fuel = layout.lay_out(lambda s, a, s_next, k: 0.04 + 0.06 * (SPEEDS[s_next] / 100) ** 2 + 0.04 * (a == ACCELERATE))
    risk = layout.lay_out(lambda s, a, s_next, k: BENDS[k % len(BENDS)] * (SPEEDS[s_next] / SPEEDS[top]) ** 2)
    most_fuel = 0.04 + 0.06 * (SPEEDS[top] / 100) ** 2 + 0.04
    limits = [number(max_fuel, "max_fuel", 0, most_fuel), number(max_risk, "max_risk", 0, 1)]
    return Problem.from_units(
        name="autonomous-driving",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[minutes(jam) for jam in JAMS],
        losses=losses,
        loss_unit="minutes",
        uses=[fuel, risk],
        use_bounds=[most_fuel, 1.0],
        noise=noise,
        budgets=n_segments * np.array(limits),
        constraint_names=("fuel", "risk"),
        constraint_units=("litres", ""),
        state_names=layout.state_names([f"{speed:.0f} km/h" for speed in SPEEDS]),
        action_names=("brake", "hold", "accelerate"),
    )
