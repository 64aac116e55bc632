"""Rare crash: be careful, at a loss, or bold, at the risk of a rare crash.

Four steps. At each of them an action is chosen:

    careful   loss 0.5, never crashes
    bold      loss 0, crashes with probability p (0.02); a crash uses 1 of the budget

After a crash the next step is like any other. Loss scenarios, the loss of a careful step:

    0  urgent   0.5
    1  calm     0.1

One constraint: crashes, on average at most half of those of a policy that is always bold, 2p an episode (or another
share, `allowed`). Best under scenario 0 is to be bold half of the time, at a loss of 1, and one more crash would gain
0.5 / p: the rarer the crash, the larger its price, and the fewer episodes show one. In T episodes 2pT crashes are
allowed. With this share the uniform policy is one of the best.

The states after the last step are merged into the end of the episode, where a bold step costs its expectation, p.
"""

from tightrope.arguments import number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import MOST_STEPS, unroll

WELL, CRASHED = 0, 1
CAREFUL, BOLD = 0, 1

#: The loss of a careful step, one number per scenario.
LOSSES = (0.5, 0.1)


def rare_crash(
    *,
    probability: float = 0.02,
    n_steps: int = 4,
    allowed: float = 0.5,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """A bold step crashes with this `probability`; `allowed` is the share of the crashes of always bold, as budget."""
    p = number(probability, "probability", 1e-12, 1)
    n_steps = whole(n_steps, "n_steps", at_least=1, at_most=MOST_STEPS)
    allowed = number(allowed, "allowed", 0, 1)

    rows = [(s, action, WELL) for s in (WELL, CRASHED) for action in (CAREFUL, BOLD)]
    rows += [(s, BOLD, CRASHED) for s in (WELL, CRASHED)]
    layout = unroll(rows, [1.0, 1 - p, 1.0, 1 - p, p, p], n_steps=n_steps)

    careful = layout.tuples[:, 1] == CAREFUL
    return Problem.from_units(
        name="rare-crash",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[loss * careful for loss in LOSSES],
        losses=losses,
        uses=[layout.lay_out([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])],
        noise=noise,
        budgets=[allowed * n_steps * p],
        constraint_names=("crashes",),
        state_names=layout.state_names(["well", "crashed"]),
        action_names=("careful", "bold"),
    )
