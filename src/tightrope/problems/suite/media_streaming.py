"""Media streaming: fill a player's buffer over a fast or a slow link, on a budget of fast steps.

The buffer holds 0..9 units and starts empty. At each step the player drains one with probability ρ = 0.8, and
the chosen link delivers one with probability μ (fast 0.9, slow 0.1). The level goes up with probability
μ(1 − ρ), down with (1 − μ)ρ, and else stays; it stays too where it would leave 0..9. Away from the ends:

    fast:   up 0.18   down 0.08   stay 0.74
    slow:   up 0.02   down 0.72   stay 0.26

Loss scenarios, each a function of the level before the move; the default (`fixed`) is playback alone:

    0  playback   1 when the buffer is empty, else 0
    1  live       level / 9: what is buffered is delay
    2  download   1 − level / 9: what is not buffered is missing

One constraint: the number of fast steps, on average at most 5 of the 10.

Without the budget the best loss in playback is 5.39, with 8.56 fast steps; with it 6.75, multiplier 0.50. In
download it is 9.23, with 9 fast steps, and 9.46, multiplier 0.08. In live the budget is slack: 0.03, with no
fast step. For the mean of the three: 5.13, with 8.56 fast steps, and 5.58, multiplier 0.17. The slow link
alone uses nothing, so 5 is also the slack (Slater).

Reference: A. Bura, A. HasanzadeZonuzy, D. Kalathil, S. Shakkottai, J.-F. Chamberland, "DOPE: doubly
optimistic and pessimistic exploration for safe reinforcement learning", NeurIPS 2022. Scenarios 1 and 2 are
this package's.
"""

from tightrope.arguments import MOST_STATES, number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll

#: Probability that the fast and the slow link deliver a unit, and that the player drains one.
DELIVERS = (0.9, 0.1)
DRAINS = 0.8


def media_streaming(
    *,
    n_levels: int = 10,
    n_steps: int = 10,
    budget: float = 5.0,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """Levels 0..n_levels-1, n_steps steps, at most `budget` fast steps on average."""
    top = whole(n_levels, "n_levels", 2, MOST_STATES) - 1
    n_steps = whole(n_steps, "n_steps", at_least=1)
    budget = number(budget, "budget", 0, n_steps)

    rows: dict[tuple[int, int, int], float] = {}
    for n in range(top + 1):
        for link, delivers in enumerate(DELIVERS):
            up, down = delivers * (1 - DRAINS), (1 - delivers) * DRAINS
            for n_next, probability in ((n + 1, up), (n - 1, down), (n, 1 - up - down)):
                row = (n, link, min(max(n_next, 0), top))
                rows[row] = rows.get(row, 0.0) + probability
    layout = unroll(list(rows), list(rows.values()), n_steps=n_steps)

    level, action, _, _ = layout.tuples.T
    fill = level / top
    return Problem.from_units(
        name="media-streaming",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[level == 0, fill, 1 - fill],
        losses=losses,
        uses=[action == 0],
        noise=noise,
        budgets=[budget],
        constraint_names=("fast steps",),
        state_names=layout.state_names([f"level {n}" for n in range(top + 1)]),
        action_names=("fast", "slow"),
    )
