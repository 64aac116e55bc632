"""python -m benchmarks.live: learners on FrozenLake without its model, into docs/how-to/gymnasium.md; a few minutes.

The lake does not slip, an episode has 8 steps and a budget of 0.2 falls. Every row plays seeds 0, 1, … of it.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np

import tightrope as tr
from benchmarks import page
from tightrope.interop import LiveSpace, play_live

SIDE = 4
NEAR = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
#: Every move of a cell to itself and to its neighbours.
MOVES = [
    (SIDE * row + column, action, SIDE * (row + down) + column + right)
    for row in range(SIDE)
    for column in range(SIDE)
    for action in range(4)
    for down, right in NEAR
    if 0 <= row + down < SIDE and 0 <= column + right < SIDE
]


def played(name: str, *, ties: bool, moves: bool, episodes: int, last: int, seed: int) -> tuple[float, float]:
    """Return the share of the last episodes that reach the goal, and the falls per episode, of all."""
    env: Any = gymnasium.make("FrozenLake-v1", is_slippery=False)
    lake = LiveSpace(n_observations=SIDE**2, n_actions=4, n_steps=8, start=0, moves=MOVES if moves else None)
    made = {"UCPDPractical": tr.UCPDPractical, "UCPD": tr.UCPD}[name]
    learner: Any = made(lake.space, budgets=[0.2], episodes=episodes, ties=lake.ties if ties else None)
    history = play_live(
        env,
        learner,
        episodes=episodes,
        state_of=lake.state_of,
        cost_of=lambda step: float(step.terminated and step.reward == 0),
        seed=seed,
    )
    return -float(history.loss[-last:].mean()), float(history.cost.mean())


def between(values: list[float], form: str) -> str:
    """Return the least and the largest value, or one if they look alike."""
    least, most = format(min(values), form), format(max(values), form)
    return (least if least == most else f"{least} to {most}").replace("%", " %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds; the first row plays ten")
    given = parser.parse_args()
    rows = []
    for name, words, ties, moves, episodes, last, seeds in (
        ("UCPDPractical", "with ties", True, False, 3000, 300, max(10, given.seeds)),
        ("UCPDPractical", "without ties", False, False, 3000, 300, given.seeds),
        ("UCPD", "with ties", True, False, 3000, 300, given.seeds),
        ("UCPD", "without ties", False, False, 3000, 300, given.seeds),
        ("UCPDPractical", "with ties, knows which moves are possible", True, True, 1000, 200, given.seeds),
    ):
        found = [played(name, ties=ties, moves=moves, episodes=episodes, last=last, seed=seed) for seed in range(seeds)]
        goals, falls = np.transpose(found).tolist()
        row = (
            f"`{name}` {words}", f"{episodes:,}", f"{between(goals, '.0%')}, of the last {last}",
            between(falls, ".2f"), f"0 to {seeds - 1}",
        )  # fmt: skip
        print(*row, sep=" | ", flush=True)
        rows.append(row)
    headings = ("learner", "episodes", "goal reached", "falls per episode", "seeds")
    page.write("live", page.table(headings, rows), page.DOCS / "how-to" / "gymnasium.md")


if __name__ == "__main__":
    main()
