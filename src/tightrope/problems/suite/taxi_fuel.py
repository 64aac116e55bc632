"""Gymnasium's Taxi on a budget of fuel (extra `gymnasium`).

Fetch the passenger at one of R, G, Y, B and drive to another, on Gymnasium's 5x5 map, from a random cell, in n_steps
steps. Every move to another cell uses one litre, and an episode may use `budget` litres on average. The loss is
Gymnasium's reward with its sign changed (1 per move, 10 for a pick-up or drop-off without a passenger there, −20 for
the passenger delivered), and, in the other scenarios, an additional loss per litre for traffic:

    0  clear    nothing
    1  west     2 where the move leaves one of the two columns in the west
    2  east     2 where the move leaves one of the two columns in the east

At the defaults (from R to B, 20 steps, 8 litres, 1234 states):

    scenario   no budget: loss   litres   within it: loss   multiplier
    0                   -7.28     11.72             -0.80         2.00
    1                    6.32     11.72              9.08         0.79
    2                   -1.60     11.72              2.55         1.39
    mean                -0.85     11.72              3.63         1.44

Waiting at a wall uses nothing, so all 8 litres are slack (Slater). Losses and multipliers are in Gymnasium's units;
inside, losses are divided by 20.

References: M. Towers et al., "Gymnasium: a standard interface for reinforcement learning environments",
arXiv:2407.17032; T. G. Dietterich, "Hierarchical reinforcement learning with the MAXQ value function decomposition",
JAIR 13, 2000. The budget and scenarios 1 and 2 are this package's.
"""

from tightrope.arguments import number, unknown, whole
from tightrope.errors import InvalidInputError, missing
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.gym import problem_from_gym
from tightrope.problems.losses import LossChoice

#: The loss that traffic adds to a litre, and the columns with traffic.
TRAFFIC = 2.0
WEST, EAST = (0, 1), (3, 4)

#: Where a passenger can be, in Gymnasium's order.
PLACES = ("R", "G", "Y", "B")


def taxi_fuel(
    *,
    passenger: str = "R",
    destination: str = "B",
    n_steps: int = 20,
    budget: float = 8.0,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """From `passenger` to `destination`, two of R, G, Y, B, on at most `budget` litres an episode on average."""
    try:
        from gymnasium.envs.toy_text.taxi import TaxiEnv
    except ImportError as error:
        raise missing("gymnasium", extra="gymnasium") from error
    for place in (passenger, destination):
        if not isinstance(place, str) or place not in PLACES:
            raise unknown("there is no place", place, PLACES)
    if passenger == destination:
        raise InvalidInputError(f"passenger and destination are both {passenger}; choose different places")
    env = TaxiEnv()
    n_steps = whole(n_steps, "n_steps", at_least=1)
    from_place, to_place = PLACES.index(passenger), PLACES.index(destination)

    decoded = [tuple(env.decode(state)) for state in env.P]  # (row, column, passenger, destination)

    def litres(state: int, action: int, next_state: int) -> float:
        return float(decoded[state][:2] != decoded[next_state][:2])

    def charged(state: int, action: int, columns: tuple[int, ...]) -> float:
        [(_, next_state, reward, _)] = env.P[state][action]
        jam = TRAFFIC if decoded[state][1] in columns else 0.0
        return jam * litres(state, action, next_state) - float(reward)

    starts = [state for state, numbers in enumerate(decoded) if numbers[2:] == (from_place, to_place)]
    return problem_from_gym(
        env,
        name="taxi-fuel",
        n_steps=n_steps,
        start=dict.fromkeys(starts, 1 / len(starts)),
        cost={"fuel": litres},
        budgets={"fuel": number(budget, "budget", 0, n_steps)},
        scenarios=[
            lambda state, action, next_state: charged(state, action, WEST),
            lambda state, action, next_state: charged(state, action, EAST),
        ],
        losses=losses,
        noise=noise,
        constraint_units=["litres"],
        state_names=[_taxi_name(*numbers) for numbers in decoded],
        action_names=("south", "north", "east", "west", "pick up", "drop off"),
    )


def _taxi_name(row: int, column: int, passenger: int, destination: int) -> str:
    where = "in the taxi" if passenger == len(PLACES) else f"at {PLACES[passenger]}"
    return f"row {row}, column {column}, passenger {where}"
