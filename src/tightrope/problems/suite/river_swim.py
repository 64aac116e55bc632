"""River swim: a reward upstream that takes many strokes to reach, and strokes cost strength.

Six places along a river, from 0, downstream, where an episode starts, to 5, upstream. Drifting left always brings one
place down. Swimming right fights the current:

    at 0           stays 0.4, up 0.6
    at 1..4        down 0.05, stays 0.6, up 0.35
    at 5           down 0.4, stays 0.6

Rewards (negative losses) of the scenarios; 0 elsewhere:

    0  upstream     1 for swimming at 5, 0.005 for drifting at 0
    1  downstream   0.2 for swimming at 5, 0.1 for drifting at 0

One constraint: the number of strokes (steps spent swimming right), on average at most 12 of the 20.

References: A. L. Strehl, M. L. Littman, "An analysis of model-based interval estimation for Markov decision processes",
Journal of Computer and System Sciences 74, 2008 (the river). I. Osband, D. Russo, B. Van Roy, "(More) efficient
reinforcement learning via posterior sampling", NeurIPS 2013 (its currents and rewards, over 20 steps). The cost of
swimming and scenario 1 are this package's.
"""

from tightrope.arguments import MOST_STATES, number, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll

DRIFT, SWIM = 0, 1

#: Probabilities of (down, stay, up) when swimming.
AT_FIRST, BETWEEN, AT_LAST = (0.0, 0.4, 0.6), (0.05, 0.6, 0.35), (0.4, 0.6, 0.0)

#: The rewards of swimming at the last place and of drifting at the first one, one row per scenario.
REWARDS = ((1.0, 0.005), (0.2, 0.1))


def river_swim(
    *,
    n_places: int = 6,
    n_steps: int = 20,
    budget: float = 12.0,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """A river of `n_places` places, `n_steps` steps, at most `budget` strokes on average."""
    last = whole(n_places, "n_places", 2, MOST_STATES) - 1
    n_steps = whole(n_steps, "n_steps", at_least=1)
    budget = number(budget, "budget", 0, n_steps)

    rows = {(s, DRIFT, max(s - 1, 0)): 1.0 for s in range(last + 1)}
    for s in range(last + 1):
        law = AT_FIRST if s == 0 else AT_LAST if s == last else BETWEEN
        rows |= {(s, SWIM, s + shift): chance for shift, chance in zip((-1, 0, 1), law, strict=True) if chance > 0}
    layout = unroll(list(rows), list(rows.values()), n_steps=n_steps)

    s, action, _, _ = layout.tuples.T
    upstream, downstream = (s == last) & (action == SWIM), (s == 0) & (action == DRIFT)
    return Problem.from_units(
        name="river-swim",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[-high * upstream - low * downstream for high, low in REWARDS],
        losses=losses,
        uses=[action == SWIM],
        noise=noise,
        budgets=[budget],
        constraint_names=("strokes",),
        state_names=layout.state_names([f"place {s}" for s in range(last + 1)]),
        action_names=("drift", "swim"),
    )
