"""Machine cycle: a machine goes round its three states; each move earns something and wears it down.

States 0, 1, 2; at each step the machine stays, which earns and costs nothing, or moves from s to (s + 1) mod 3. It
starts at 0. All is deterministic. The loss of a move from s is minus its earnings, which depend on the loss scenario:

    0  rising    (s + 1) / 3        the last move of a round is worth most
    1  falling   (3 − s) / 3        the first is
    2  middle    1 from s = 1 only

One constraint: the number of moves, on average at most 3 of the 6 steps.

Reference: A. Bura, A. HasanzadeZonuzy, D. Kalathil, S. Shakkottai, J.-F. Chamberland, "DOPE: doubly optimistic and
pessimistic exploration for safe reinforcement learning", NeurIPS 2022 (the "factored CMDP"). Scenarios 1 and 2 are this
package's.
"""

import numpy as np

from tightrope.arguments import MOST_STATES, number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll

STAY, MOVE = 0, 1


def machine_cycle(
    *,
    n_states: int = 3,
    n_steps: int = 6,
    budget: float = 3.0,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """A cycle of `n_states` states, `n_steps` steps, at most `budget` moves on average."""
    n = whole(n_states, "n_states", 2, MOST_STATES)
    n_steps = whole(n_steps, "n_steps", at_least=1)
    budget = number(budget, "budget", 0, n_steps)

    rows = [(s, a, (s + a) % n) for s in range(n) for a in (STAY, MOVE)]
    layout = unroll(rows, [1.0] * len(rows), n_steps=n_steps)

    s, action, _, _ = layout.tuples.T
    move = (action == MOVE).astype(np.float64)
    return Problem.from_units(
        name="machine-cycle",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[-move * (s + 1) / n, -move * (n - s) / n, -move * (s == n // 2)],
        losses=losses,
        uses=[move],
        noise=noise,
        budgets=[budget],
        constraint_names=("moves",),
        state_names=layout.state_names([f"state {s}" for s in range(n)]),
        action_names=("stay", "move"),
    )
